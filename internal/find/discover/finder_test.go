package discover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"ken/capability"
	"ken/internal/find/ranking"
	"ken/internal/know/catalog"
	"ken/internal/testkit"
)

func (w *world) replace(t failer, things ...thing) *catalog.Snapshot {
	t.Helper()
	b := testkit.Must(memory(things...).Load(context.Background()))(t)
	return w.catalog.Replace("test", b)
}

func TestSeeKeepsViews(t *testing.T) {
	w := of(t, office()...)
	first := w.catalog.Snapshot()
	tools := func(e *catalog.Entry) bool { return e.Kind == capability.KindTool }
	all, narrow := w.See(first, "", nil), w.See(first, "tools", tools)
	if all != w.view || w.See(first, "", nil) != all || w.See(first, "tools", tools) != narrow || narrow == all {
		t.Error("See gave another view for the same snapshot and class, or one for two classes")
	}
	if all.Len() != first.Len() || narrow.Len() != 7 || all.Snapshot() != first || narrow.Snapshot() != first {
		t.Errorf("views of %d and %d, want %d and 7", all.Len(), narrow.Len(), first.Len())
	}
	for i, e := range first.Entries() {
		if narrow.Sees(i) != tools(e) || !all.Sees(i) {
			t.Errorf("Sees(%s) = %v and %v, want all, and tools", e.ID, all.Sees(i), narrow.Sees(i))
		}
	}
	second := w.replace(t, thing{Capability: capability.Capability{Name: "tides", Description: "Tides of the sea"}})
	fresh := w.See(second, "", nil)
	if fresh == all || fresh.Len() != 1 || w.See(second, "", nil) != fresh {
		t.Errorf("See of a new snapshot = %d capabilities, want a new view of one, kept", fresh.Len())
	}
	// Somebody is still in a turn that began before.
	ask := func(v *View) []capability.ID {
		sel := testkit.Must(w.Find(t.Context(), v, Query{Text: "weather forecast for the city"}, Defaults()))(t)
		return idsOf(sel.Briefs)
	}
	if got := ask(all); len(got) == 0 || got[0] != "tool:weather" {
		t.Errorf("an older view finds %v, want tool:weather", got)
	}
	if late := w.See(first, "", nil); late.Len() != first.Len() || !slices.Equal(ask(late), ask(all)) || w.See(second, "", nil) != fresh {
		t.Errorf("a late See of an older snapshot = %d capabilities, want %d, and the newer view kept", late.Len(), first.Len())
	}
}

// TestSeeTellsCatalogsApart: two snapshots of one version are not one.
func TestSeeTellsCatalogsApart(t *testing.T) {
	a, b := of(t, office()...), of(t, weatherThings()...)
	if a.catalog.Snapshot().Version() != b.catalog.Snapshot().Version() {
		t.Fatal("the versions differ, so this shows nothing")
	}
	if v := a.See(b.catalog.Snapshot(), "", nil); v.Len() != 2 || v.Snapshot() != b.catalog.Snapshot() {
		t.Errorf("See = a view of %d, want 2", v.Len())
	}
}

func TestViewsAreBounded(t *testing.T) {
	w := of(t, weatherThings()...)
	s := w.catalog.Snapshot()
	first := w.See(s, "class 0", nil)
	for i := range 3 * mostViews {
		w.See(s, fmt.Sprint("class ", i), nil)
		if n := len(w.views); n > mostViews {
			t.Fatalf("%d views are kept, want at most %d", n, mostViews)
		}
	}
	if sel, err := w.Find(t.Context(), first, Query{Text: "forecast"}, Defaults()); err != nil || len(sel.Briefs) != 1 {
		t.Errorf("a view that is no longer kept finds %v, %v; want what it did", idsOf(sel.Briefs), err)
	}
}

// TestManyAtOnce: finding, narrowing, calling, embedding and changing the
// catalog go on beside each other, and everyone's answer is that of their own
// snapshot.
func TestManyAtOnce(t *testing.T) {
	w := worldOf(t, Parts{Embedder: hashed{}}, memory(office()...))
	versions := [][]thing{office(), weatherThings(), append(office(), manyThings(40)...)}
	rounds := 40
	if testing.Short() {
		rounds = 12
	}
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			for i := range rounds {
				s := w.catalog.Snapshot()
				v := w.See(s, fmt.Sprint("class ", (g+i)%3), func(e *catalog.Entry) bool { return (g+i)%3 == 0 || e.Kind == capability.KindTool })
				sel, err := w.Find(t.Context(), v, Query{Text: "weather forecast for the city", Used: []capability.ID{"tool:calendar"}}, patient())
				if err != nil {
					t.Error(err)
				}
				for _, id := range named(sel) {
					if _, ok := s.Get(id); !ok {
						t.Errorf("%s is not in the snapshot that was searched", id)
					}
				}
				if len(sel.Briefs) == 0 || sel.Briefs[0].ID != "tool:weather" {
					t.Errorf("briefs = %v, want tool:weather first", idsOf(sel.Briefs))
				}
				if a, err := w.Call(t.Context(), v, ToolDescribe, []byte(`{"id":"tool:weather"}`), Defaults()); err != nil || a.Failed && s == w.catalog.Snapshot() {
					t.Errorf("describe = %+v, %v", a, err)
				}
			}
		})
	}
	group.Go(func() {
		for i := range rounds {
			w.replace(t, versions[i%len(versions)]...)
		}
	})
	group.Go(func() {
		for range rounds {
			if err := ranking.Embed(t.Context(), w.catalog, hashed{}); err != nil {
				t.Error(err)
			}
		}
	})
	group.Wait()
}
