package door

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/find/discover"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/testkit"
)

// chain is a door to a catalog where each needs the one before it, and the
// first is not for interns.
func chain(t *testing.T, names ...string) *Door {
	t.Helper()
	m := source.NewMemory("test", capability.TrustUser)
	for i, name := range names {
		c := capability.Capability{Name: name, Description: "Does " + name, RequiredTools: names[max(i-1, 0):i]}
		if name == "both" {
			c.RequiredTools = []string{"first", "nowhere", "second"}
		}
		m.Put(c, capability.Detail{})
	}
	return over(t, m, ruled(t, noInterns("tool:first")), nil)
}

// TestRedactedIsAsAbsent: entries, counts and problems are as if what is hidden did
// not exist, down to what needs what needs it.
func TestRedactedIsAsAbsent(t *testing.T) {
	names := []string{"first", "second", "third", "both"}
	with := chain(t, names...).View(intern)
	m := source.NewMemory("test", capability.TrustUser)
	for e := range chain(t, names...).View(keeper).All() {
		if e.Name != "first" {
			m.Put(*e.Capability, capability.Detail{})
		}
	}
	absent := over(t, m, ruled(t), nil).View(intern)
	got, want := with.RedactedList(), absent.RedactedList()
	if len(got.Capabilities) != 3 || len(want.Capabilities) != 3 {
		t.Fatalf("%d and %d entries, want 3", len(got.Capabilities), len(want.Capabilities))
	}
	for i, e := range got.Capabilities {
		other := want.Capabilities[i]
		if e.ID != other.ID || e.Available != other.Available || !slices.Equal(e.Missing, other.Missing) || !slices.Equal(e.Requires, other.Requires) {
			t.Errorf("%s: %v %q %v, want %v %q %v", e.ID, e.Available, e.Missing, e.Requires, other.Available, other.Missing, other.Requires)
		}
		if told := with.Redacted(e); told != e && !reflect.DeepEqual(told, e) {
			t.Errorf("%s told again is otherwise", e.ID)
		}
	}
	if got.Stats != want.Stats || with.RedactedStats() != want.Stats || got.Stats.Available != 0 {
		t.Errorf("Stats = %+v, want %+v", got.Stats, want.Stats)
	}
	for e := range with.All() {
		if e.Name == "second" && !e.Available {
			t.Error("the entry of the catalog was changed")
		}
	}
}

// TestRedactedToThoseWhoSeeAll: nothing is otherwise for them.
func TestRedactedToThoseWhoSeeAll(t *testing.T) {
	d := chain(t, "first", "second", "third")
	for name, v := range map[string]View{"keeper": d.View(keeper), "overseer": d.OperatorView(intern)} {
		n := 0
		for _, e := range v.Numbered() {
			if n++; v.Redacted(e) != e {
				t.Errorf("%s is told %s otherwise", name, e.ID)
			}
		}
		if n != 3 || v.RedactedStats() != v.Stats() {
			t.Errorf("%s: %d entries, %+v, want %+v", name, n, v.RedactedStats(), v.Stats())
		}
	}
	if list := (View{}).RedactedList(); len(list.Capabilities) != 0 || (View{}).RedactedStats() != (Stats{}) || len(d.Edges(View{}).From) != 0 {
		t.Errorf("nobody is told %+v", list)
	}
}

// TestEdges: who runs Ken sees those of what is hidden too, and what is kept for
// them is not what is kept for others.
func TestEdges(t *testing.T) {
	d := chain(t, "first", "second", "third")
	count := func(v View) int { return len(d.Edges(v).From) }
	if all, some := count(d.OperatorView(intern)), count(d.View(intern)); some >= all || all != count(d.View(keeper)) {
		t.Errorf("%d edges for whoever runs Ken, %d for interns, %d for keepers", all, some, count(d.View(keeper)))
	}
	type key struct{}
	if d.View(intern).Keep(key{}, func() any { return 1 }) != 1 || d.OperatorView(intern).Keep(key{}, func() any { return 2 }) != 2 || d.View(intern).Keep(key{}, func() any { return 3 }) != 1 {
		t.Error("what is kept of one view is given for another")
	}
}

// TestTryRecordsNothing: whatever the session; and it finds what Find does.
func TestTryRecordsNothing(t *testing.T) {
	var said strings.Builder
	d := open(t, &Recorder{Text: &said, Now: time.Now})
	q := Query{Text: "weather forecast for a city", Scope: capability.Scope{Session: "s"}}
	v := d.View(somebody)
	tried, err := d.Preview(t.Context(), v, q)
	if err != nil || said.Len() > 0 {
		t.Fatalf("Preview = %v, and %q was recorded", err, said.String())
	}
	q.Scope.Session = ""
	found := find(t, d, q)
	if !slices.Equal(tried.Ranking, found.Ranking) || tried.Text() != found.Text() || len(found.Briefs) == 0 {
		t.Errorf("Preview gives %q, Find %q", tried.Text(), found.Text())
	}
	testkit.Equal(t, "Settings have tier1TopK", *d.Settings(v, capability.Scope{}).Numbers().TopK, discover.Defaults().TopK)
	if none, err := d.Preview(t.Context(), View{}, q); err != nil || len(none.Ranking) != 0 {
		t.Errorf("Preview of nobody = %+v, %v", none, err)
	}
}

// TestRedactedWithoutFolders: of this disk nobody but whoever runs Ken is told more
// than names.
func TestRedactedWithoutFolders(t *testing.T) {
	at := capability.Origin{Source: "/srv/secret/caps", Format: "card", Path: "/srv/secret/caps/a.md", Line: 3}
	e := &Entry{
		Capability: &capability.Capability{ID: "tool:first", Origin: at, Run: &capability.Recipe{Argv: []string{"/srv/secret/bin/run", "{x}"}}},
		Missing:    catalog.Reasons{{Kind: catalog.Declared, Text: "/srv/secret/caps/run is not there"}}, Standing: "/srv/secret/other/a.md:1",
	}
	d := chain(t, "first")
	got := d.View(keeper).Redacted(e)
	if o := got.Origin; o.Source != "caps" || o.Path != "a.md" || o.Line != 3 || got.Run.Argv[0] != "run" || got.Missing[0].String() != "run is not there" || got.Standing != "a.md:1" {
		t.Errorf("Redacted = %+v of %+v, %+v", got, got.Capability, got.Run)
	}
	if e.Origin != at || e.Run.Argv[0] != "/srv/secret/bin/run" || e.Missing[0] == got.Missing[0] {
		t.Error("Redacted changed the entry of the catalog")
	}
	if d.OperatorView(keeper).Redacted(e) != e {
		t.Error("whoever runs Ken is told otherwise")
	}
	testkit.Equal(t, "lastOf an address", lastOf("https://example.com/a/b.json"), "https://example.com/a/b.json")
}
