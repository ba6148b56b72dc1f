package discover

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/testkit"
)

// TestEdges: they are of visible entries alone, those of one category are
// joined, and they are worked out once.
func TestEdges(t *testing.T) {
	var list []capability.Capability
	for i := range 30 {
		list = append(list, capability.Capability{Name: fmt.Sprintf("t%02d", i), Description: "x", Category: "Big"})
	}
	list[1].RequiredTools = []string{"t00"}
	list[2].RequiredTools = []string{"t03"}
	w := of(t, caps(list...)...)
	narrow := w.See(w.catalog.Snapshot(), "narrow", func(e *catalog.Entry) bool { return e.Name != "t03" })
	for _, tt := range []struct {
		v       *View
		n, need int
	}{{w.view, 30, 2}, {narrow, 29, 1}} {
		e := tt.v.Edges()
		if e != tt.v.Edges() {
			t.Error("edges are worked out again")
		}
		count, met := map[string]int{}, map[int32]bool{}
		for i := range e.From {
			count[string(EdgeTypes()[e.Type[i]])]++
			met[e.From[i]], met[e.To[i]] = true, true
			if !tt.v.Sees(int(e.From[i])) || !tt.v.Sees(int(e.To[i])) {
				t.Errorf("an edge has an end that is not seen: %d %d", e.From[i], e.To[i])
			}
		}
		if count["DEPENDS_ON"] != tt.need || count["SAME_CATEGORY"] != 2*tt.n || len(met) != tt.n || e.Cut != tt.n*(tt.n-1)/2-2*tt.n {
			t.Errorf("edges = %v of %d nodes, %d cut", count, len(met), e.Cut)
		}
	}
}

// TestLargeEdgesAreBounded: a drawing has as many as can be read, and counts the
// rest.
func TestLargeEdgesAreBounded(t *testing.T) {
	testkit.CI(t, "eleven thousand capabilities")
	var list []capability.Capability
	for i := range 11_000 {
		list = append(list, capability.Capability{Name: fmt.Sprintf("t%05d", i), Description: "x", Category: "one"})
	}
	e := of(t, caps(list...)...).view.Edges()
	if n := len(list); len(e.From) != mostEdges || len(e.Weight) != mostEdges || e.Cut != n*(n-1)/2-mostEdges {
		t.Errorf("%d edges, %d cut", len(e.From), e.Cut)
	}
}

// TestKeep: it is made once for each key, whoever asks first.
func TestKeep(t *testing.T) {
	type one struct{}
	type two struct{}
	w := of(t, office()...)
	var made atomic.Int32
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if got := w.view.Keep(one{}, func() any { return made.Add(1) }); got != int32(1) {
				t.Errorf("Keep = %v, want 1", got)
			}
		})
	}
	all.Wait()
	if got := w.view.Keep(two{}, func() any { return "other" }); got != "other" {
		t.Errorf("Keep of another key = %v", got)
	}
}
