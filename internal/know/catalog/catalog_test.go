package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/know/source"
	"ken/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixed is a source that holds what it is given and yields what is sent to it.
type fixed struct {
	name    string
	batch   capability.Batch
	err     error
	changes chan capability.Batch
}

func (f *fixed) Name() string                                   { return f.name }
func (f *fixed) Load(context.Context) (capability.Batch, error) { return f.batch, f.err }
func (f *fixed) Watch(ctx context.Context) iter.Seq2[capability.Batch, error] {
	return func(yield func(capability.Batch, error) bool) {
		for {
			select {
			case <-ctx.Done():
				return
			case b := <-f.changes:
				if !yield(b, nil) {
					return
				}
			}
		}
	}
}

func tool(name string, change ...func(*capability.Capability)) *capability.Capability {
	c := &capability.Capability{
		ID: capability.MakeID(capability.KindTool, name), Kind: capability.KindTool, Name: name,
		Description: "does " + name, Category: "general", Trust: capability.TrustUser, Hash: "sha256:" + name,
	}
	for _, f := range change {
		f(c)
	}
	return c
}

func from(name string, caps ...*capability.Capability) *fixed {
	for i, c := range caps {
		c.Origin = capability.Origin{Source: name, Path: name + ".yaml", Line: i + 1}
	}
	return &fixed{name: name, batch: capability.Batch{Capabilities: caps}, changes: make(chan capability.Batch)}
}

func loaded(t *testing.T, cfg Config) *Catalog {
	t.Helper()
	c, err := New(cfg)
	must(t, err)
	must(t, c.Load(context.Background()))
	return c
}

func codes(s *Snapshot) []string {
	var out []string
	for _, p := range s.Problems() {
		out = append(out, p.Code)
	}
	return out
}

// TestUnicodeForms: an id is found in every Unicode form, and there is one entry
// for all of them.
func TestUnicodeForms(t *testing.T) {
	const composed, decomposed = "cr\u00e8me", "cre\u0300me"
	m := source.NewMemory("m", capability.TrustUser)
	m.Put(*tool(decomposed), capability.Detail{})
	m.Put(*tool("sauce", func(c *capability.Capability) { c.RequiredTools = []string{decomposed} }), capability.Detail{})
	m.Put(*tool(composed), capability.Detail{})
	s := loaded(t, Config{Sources: []capability.Source{m, from("raw", tool("the\u0301"))}}).Snapshot()
	if s.Len() != 2 {
		t.Errorf("%d entries, want one for both forms and sauce", s.Len())
	}
	for _, name := range []string{"tool:" + composed, "tool:" + decomposed, composed, decomposed} {
		if e, err := s.Lookup(name); err != nil || e.ID != "tool:"+composed {
			t.Errorf("Lookup(%+q) = %v, %v", name, e, err)
		}
	}
	if e, _ := s.Get("tool:sauce"); !slices.Equal(e.Requires, []capability.ID{"tool:" + composed}) {
		t.Errorf("sauce requires %v, want the one in form C", e.Requires)
	}
	// A source that does not seal what it brings is told.
	if got := codes(s); !slices.Equal(got, []string{"id-form"}) {
		t.Errorf("problems = %v, want id-form", got)
	}
}

func TestReplaceAddsUpdatesAndDeletes(t *testing.T) {
	a, b := from("a", tool("one"), tool("two")), from("b", tool("three"))
	c := loaded(t, Config{Sources: []capability.Source{a, b}})
	before := c.Snapshot()
	newTwo := tool("two", func(c *capability.Capability) {
		c.Version = "2"
		c.Migrations = []capability.Migration{{From: "", To: "2", Note: "unused"}, {From: "1", To: "2", Note: "rename q to query"}}
	})
	newTwo.Origin.Source = "a"
	after := c.Replace("a", capability.Batch{Capabilities: []*capability.Capability{newTwo, tool("four")}})
	if after.Version() != before.Version()+1 {
		t.Errorf("version went from %d to %d, want one more", before.Version(), after.Version())
	}
	var got []string
	for _, ch := range after.Changes() {
		got = append(got, fmt.Sprintf("%s %s", ch.What, ch.ID))
	}
	want := []string{"added tool:four", "removed tool:one", "updated tool:two"}
	if !slices.Equal(got, want) {
		t.Errorf("changes = %v, want %v", got, want)
	}
	if _, ok := after.Get("tool:three"); !ok {
		t.Error("a capability of another source is gone")
	}
	if _, ok := before.Get("tool:one"); !ok || before.Len() != 3 {
		t.Error("the older snapshot changed")
	}
}

func TestMigrationNoteReachesUsersOfTheOldVersion(t *testing.T) {
	version := func(v string, notes ...capability.Migration) *capability.Capability {
		return tool("a", func(c *capability.Capability) { c.Version, c.Migrations = v, notes })
	}
	src := from("s", version("1"))
	c := loaded(t, Config{Sources: []capability.Source{src}})
	s := c.Replace("s", capability.Batch{Capabilities: []*capability.Capability{
		version("2", capability.Migration{From: "1", To: "2", Note: "rename q to query"}),
	}})
	if got := s.Changes(); len(got) != 1 || got[0].Note != "rename q to query" || got[0].From != "1" || got[0].To != "2" {
		t.Errorf("changes = %+v, want the note from 1 to 2", got)
	}
}

func TestUnreadableSourceCostsOnlyItselfAndKeepsTheLastGood(t *testing.T) {
	a, b := from("a", tool("one")), from("b", tool("two"))
	c := loaded(t, Config{Sources: []capability.Source{a, b}})
	a.err = errors.New("load a: permission denied")
	must(t, c.Load(context.Background()))
	s := c.Snapshot()
	if s.Len() != 2 || !slices.Contains(codes(s), "source-unreadable") {
		t.Errorf("%d capabilities, problems %v; want both and source-unreadable", s.Len(), codes(s))
	}
	a.err = nil
	_ = c.Load(context.Background())
	if got := codes(c.Snapshot()); len(got) != 0 {
		t.Errorf("problems after the fix = %v, want none", got)
	}
}

// TestLargeShadowingNamesAreFlagged puts every name of the corpus beside the one
// it shadows.
func TestLargeShadowingNamesAreFlagged(t *testing.T) {
	testkit.CI(t, "a whole corpus")
	dir := os.Getenv("KEN_ATTACKS")
	if dir == "" {
		t.Skip("KEN_ATTACKS is not set: the corpus is elsewhere")
	}
	data, err := os.ReadFile(filepath.Join(dir, "tool_name_shadowing.jsonl"))
	must(t, err)
	rows := 0
	for line := range strings.Lines(string(data)) {
		var row struct{ Text, Shadows string }
		must(t, json.Unmarshal([]byte(line), &row))
		rows++
		m := source.NewMemory("m", capability.TrustUser)
		m.Put(capability.Capability{Name: row.Shadows}, capability.Detail{})
		m.Put(capability.Capability{Name: row.Text}, capability.Detail{})
		s := loaded(t, Config{Sources: []capability.Source{m}}).Snapshot()
		e, ok := s.Get(capability.MakeID(capability.KindTool, row.Text))
		flagged := slices.ContainsFunc(s.Problems(), func(p capability.Problem) bool { return p.Subject == e.ID || p.Code == "looks-alike" })
		if !ok || !flagged {
			t.Errorf("%q beside %q is neither quarantined nor reported", row.Text, row.Shadows)
		}
	}
	if rows != 94 {
		t.Errorf("%d rows, want 94", rows)
	}
}

func TestLookupSaysWhatWasMeant(t *testing.T) {
	other := tool("b", func(c *capability.Capability) { c.ID, c.Name = "srv/search", "search" })
	evil := tool("helper", func(c *capability.Capability) {
		c.ID, c.Findings = "evil/helper", []capability.Finding{{Rule: "override"}}
	})
	s := loaded(t, Config{Sources: []capability.Source{from("s", tool("search"), other, tool("web-browser"), tool("helper"), evil)}}).Snapshot()
	if e, err := s.Lookup("helper"); err != nil || e.ID != "tool:helper" {
		t.Errorf("Lookup(helper) = %v, %v, want the one that is not quarantined", e, err)
	}
	if e, err := s.Lookup("web-browser"); err != nil || e.ID != "tool:web-browser" {
		t.Errorf("Lookup(web-browser) = %v, %v", e, err)
	}
	if _, err := s.Lookup("search"); err == nil || !strings.Contains(err.Error(), "srv/search, tool:search") {
		t.Errorf("Lookup of a shared name: %v, want both ids", err)
	}
	if _, err := s.Lookup("web-browsr"); capability.KindOf(err) != capability.NotFound || !strings.Contains(err.Error(), "web-browser") {
		t.Errorf("Lookup of a typo: %v, want not found, naming web-browser", err)
	}
	for _, other := range []string{"srv/sailor", "\x00", "tool:seals"} { // like one that is there in its first part alone, or in its length
		if _, err := s.Lookup(other); err == nil || !strings.Contains(err.Error(), "see ken catalog list") {
			t.Errorf("Lookup(%q): %v, want no name that was not meant", other, err)
		}
	}
}

func TestWatchSwapsSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := from("s", tool("one"))
		c := loaded(t, Config{Sources: []capability.Source{src}})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- c.Watch(ctx) }()
		src.changes <- capability.Batch{Capabilities: []*capability.Capability{tool("two")}}
		synctest.Wait()
		if _, ok := c.Snapshot().Get("tool:two"); !ok || c.Snapshot().Len() != 1 {
			t.Error("the change is not in the snapshot")
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Watch = %v, want nil at the end of ctx", err)
		}
	})
}

func TestNextWaitsForAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := loaded(t, Config{Sources: []capability.Source{from("s", tool("one"))}})
		if s, err := c.Next(t.Context(), 0); err != nil || s.Version() != 1 {
			t.Errorf("Next(0) = %v, %v, want version 1 at once", s, err)
		}
		got := make(chan *Snapshot)
		go func() {
			s, _ := c.Next(t.Context(), 1)
			got <- s
		}()
		synctest.Wait()
		select {
		case <-got:
			t.Error("Next(1) returned before a change")
		default:
		}
		c.Replace("s", capability.Batch{})
		if s := <-got; s == nil || s.Version() != 2 {
			t.Errorf("Next(1) = %v, want version 2", s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := c.Next(ctx, 2); !errors.Is(err, context.Canceled) {
			t.Errorf("Next with an ended context: %v", err)
		}
	})
}

func TestChangesSinceMergesVersions(t *testing.T) {
	c := loaded(t, Config{Sources: []capability.Source{from("s", tool("a"), tool("b"))}})
	a, b := c.Snapshot().entries[0].Capability, c.Snapshot().entries[1].Capability
	c.Replace("s", capability.Batch{Capabilities: []*capability.Capability{a, b, tool("x")}})
	c.Replace("s", capability.Batch{Capabilities: []*capability.Capability{a, tool("x"), tool("y")}})
	latest, changes, complete := c.ChangesSince(1)
	var got []string
	for _, ch := range changes {
		got = append(got, ch.What+" "+string(ch.ID))
	}
	if want := []string{"removed tool:b", "added tool:x", "added tool:y"}; !complete || latest.Version() != 3 || !slices.Equal(got, want) {
		t.Errorf("ChangesSince(1) = version %d, %v, %v; want 3, %v", latest.Version(), got, complete, want)
	}
	if _, changes, complete := c.ChangesSince(3); !complete || len(changes) != 0 {
		t.Errorf("ChangesSince the latest = %v, %v", changes, complete)
	}
	c.Replace("s", capability.Batch{Capabilities: []*capability.Capability{tool("a"), b}})
	// What went and came back counts as updated: it may be another.
	if _, changes, _ := c.ChangesSince(1); len(changes) != 2 || changes[0].What != "updated" || changes[1].What != "updated" {
		t.Errorf("after x and y are gone again, ChangesSince(1) = %v, want a and b updated", changes)
	}
	for i := range kept + 1 {
		c.Replace("s", capability.Batch{Capabilities: []*capability.Capability{tool(fmt.Sprint(i))}})
	}
	if _, _, complete := c.ChangesSince(1); complete {
		t.Error("changes since a version that is long gone are called complete")
	}
}

func TestTwoSourcesOfOneNameAreRefused(t *testing.T) {
	if _, err := New(Config{Sources: []capability.Source{from("x"), from("x")}}); err == nil {
		t.Error("New accepted two sources of one name")
	}
}

// TestAdd: a source that comes later is listed, stands before the others, and
// is followed by a Watch that runs already.
func TestAdd(t *testing.T) {
	first := source.NewMemory("first", capability.TrustUser)
	first.Put(capability.Capability{ID: "tool:a", Name: "a", Description: "the first"}, capability.Detail{})
	c, err := New(Config{Sources: []capability.Source{first}, Fallback: source.NewMemory("fallback", capability.TrustBuiltin)})
	must(t, err)
	must(t, c.Load(t.Context()))
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	go func() { watched <- c.Watch(ctx) }()
	later := source.NewMemory("later", capability.TrustUser)
	later.Put(capability.Capability{ID: "tool:a", Name: "a", Description: "the later"}, capability.Detail{Usage: "so"})
	must(t, c.Add(ctx, later))
	e, ok := c.Snapshot().Get("tool:a")
	if !ok || e.Description != "the later" {
		t.Fatalf("tool:a is %+v, want the later one", e)
	}
	if d, err := c.Inspect(ctx, e); err != nil || d.Usage != "so" {
		t.Errorf("Inspect = %+v, %v", d, err)
	}
	if err := c.Add(ctx, source.NewMemory("first", capability.TrustUser)); err == nil {
		t.Error("a second source of one name was taken")
	}
	version := c.Snapshot().Version()
	later.Put(capability.Capability{ID: "tool:b", Name: "b", Description: "more"}, capability.Detail{})
	for range 100 {
		s, err := c.Next(ctx, version)
		must(t, err)
		if _, ok := s.Get("tool:b"); ok {
			break
		}
		version = s.Version()
	}
	stop()
	if err := <-watched; err != nil {
		t.Errorf("Watch = %v", err)
	}
}

// must ends the test where there is an error.
func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
