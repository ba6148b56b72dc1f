package door

import (
	"fmt"
	"testing"

	"ken/capability"
	"ken/internal/find/discover"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/run/executor/results"
)

// TestLookupOwnIsCheap: a tool of the program is found without a search for names
// that are near in a large catalog, which every request of a turn would pay for
// each of them. The catalog's own still goes first.
func TestLookupOwnIsCheap(t *testing.T) {
	load := func(m *source.Memory) *catalog.Catalog {
		c, err := catalog.New(catalog.Config{Sources: []capability.Source{m}})
		if err == nil {
			err = c.Load(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	m, own := source.NewMemory("test", capability.TrustUser), source.NewMemory("own", capability.TrustBuiltin)
	for n := range 2000 {
		m.Put(capability.Capability{Name: fmt.Sprint("thing_", n), Description: "Does something"}, capability.Detail{})
	}
	tool := results.Tools()[0].Capability
	own.Put(tool, capability.Detail{})
	c := load(m)
	d := New(Config{Rules: personal(t), Catalog: c, Own: load(own), Finder: discover.NewFinder(discover.Parts{Source: c})})
	v := d.View(somebody)
	for _, name := range []string{string(tool.ID), tool.Name} {
		if e, err := v.Lookup(name); err != nil || e.ID != tool.ID {
			t.Fatalf("Lookup(%s) = %v, %v", name, e, err)
		}
		if n := testing.AllocsPerRun(5, func() { _, _ = v.Lookup(name) }); n > 10 {
			t.Errorf("Lookup(%s) allocates %v times in a catalog of 2000", name, n)
		}
	}
	if _, err := v.Lookup("thing_20000"); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Lookup of nothing = %v", err)
	}
	m.Put(capability.Capability{Name: tool.Name, Description: "Reads results of races"}, capability.Detail{})
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	want, ok := c.Snapshot().Get(tool.ID)
	if e, err := d.View(somebody).Lookup(string(tool.ID)); err != nil || !ok || e != want {
		t.Errorf("Lookup of what both have = %p, %v; want the catalog's, %p", e, err, want)
	}
}
