package discover

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/catalog"
)

func TestExamples(t *testing.T) {
	entry := func(id, category, description string, change ...func(*catalog.Entry)) *catalog.Entry {
		kind, name, _ := strings.Cut(id, ":")
		e := &catalog.Entry{
			Capability: &capability.Capability{ID: capability.ID(id), Kind: capability.Kind(kind), Name: name, Category: category, Description: description, Trust: capability.TrustUser},
			State:      catalog.Active, Available: true,
		}
		for _, f := range change {
			f(e)
		}
		return e
	}
	list := []*catalog.Entry{
		entry("tool:aaa", "files", "Lists the files of a folder. Use it first."),
		entry("tool:aab", "Files", "Reads one file of a folder."),
		entry("tool:aac", "files", "Packs the files of a folder."),
		entry("tool:away", "far", "Looks at things that are far away", func(e *catalog.Entry) { e.Available = false }),
		entry("tool:held", "held", "Looks at things that are held back", func(e *catalog.Entry) { e.State = catalog.Quarantined }),
		entry("card:note", "notes", "Says something about notes"),
		entry("tool:mail", "mail", "Sends a letter to somebody", func(e *catalog.Entry) { e.SideEffects = true }),
		entry("tool:remote", "remote", "Asks somebody who is far away", func(e *catalog.Entry) { e.Trust = capability.TrustRemote }),
		entry("skill:translate", "language", "Translate things.", func(e *catalog.Entry) {
			e.Triggers = &capability.Triggers{Keywords: []string{"translate", "translate this page into Danish"}}
		}),
		entry("tool:terse", "terse", "Search"),
		entry("tool:odd", "odd", "<b>Runs</b> the odd thing for you"),
		entry("tool:version", "web", "Talks HTTP/1.1 to a web server"),
	}
	want := []string{
		"Lists the files of a folder", "translate this page into Danish", "Talks HTTP/1.1 to a web server", "Sends a letter to somebody", "Asks somebody who is far away",
		"Reads one file of a folder",
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		var got []string
		for _, e := range Examples(slices.Values(list), len(want)) {
			got = append(got, e.Text)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("Examples = %q, want %q", got, want)
		}
	}
	for _, n := range []int{-1, 0} {
		if got := Examples(slices.Values(list), n); got == nil || len(got) != 0 {
			t.Errorf("Examples(%d) = %v, want an empty list", n, got)
		}
	}
}

// TestExamplesOfTheStarter: a newcomer gets sentences of several kinds of things.
func TestExamplesOfTheStarter(t *testing.T) {
	got := Examples(starter(t).view.Snapshot().All(), 4)
	seen := map[string]bool{}
	for _, e := range got {
		seen[e.Category] = true
		if e.Text == "" || len(e.Text) > longestExample {
			t.Errorf("the example of %s is %q", e.ID, e.Text)
		}
	}
	if len(got) != 4 || len(seen) != 4 {
		t.Errorf("Examples(4) = %+v, want four of four categories", got)
	}
}
