package ranking

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/know/index"
	"ken/internal/testkit"
	"ken/internal/testkit/indextest"
)

// TestChangeIsAsBuild: however a list of capabilities came about, it is found
// the same as one that was built at once, in another order.
func TestChangeIsAsBuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := indextest.Capabilities(indextest.Size(t)).Draw(t, "list")
		of := indextest.VectorsFor(t, list)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		shuffled := func() []*capability.Capability {
			l := slices.Clone(list)
			random.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
			return l
		}

		// Some of them, and some that will go again, in several changes.
		strangers := indextest.Capabilities(7).Draw(t, "strangers")
		for i, c := range strangers {
			c.ID = capability.ID(fmt.Sprintf("s:%d", i))
		}
		s, left := index.Build(strangers[:3]), shuffled()
		for round := 0; len(left) > 0; round++ {
			n := min(len(left), 1+random.IntN(len(list)))
			var gone []int
			for slot := range s.Len() {
				if s.At(slot) != nil && round < 3 && random.IntN(4) == 0 {
					gone = append(gone, slot)
					if c := s.At(slot); c.ID[0] == 't' {
						left = append(left, c)
					}
				}
			}
			random.Shuffle(len(gone), func(i, j int) { gone[i], gone[j] = gone[j], gone[i] })
			if random.IntN(2) == 0 {
				s = indextest.Give(t, s, of)
			}
			s, _ = s.Change(append(slices.Clone(left[:n]), strangers[3+random.IntN(4)]), gone)
			left = left[n:]
		}
		var gone []int
		for slot := range s.Len() {
			if c := s.At(slot); c != nil && c.ID[0] == 's' {
				gone = append(gone, slot)
			}
		}
		s, _ = s.Change(nil, gone)

		changed, built := NewView(Part{Segment: indextest.Give(t, s, of)}), NewView(Part{Segment: indextest.Give(t, index.Build(shuffled()), of)})
		same(t, changed, built)

		before := indextest.Give(t, s, of)
		anew, to := before.Rebuilt()
		same(t, NewView(Part{Segment: anew}), built)
		if v := NewView(Part{Segment: anew}); v.Len() != anew.Len() || anew.Len() != built.Len() || len(to) != before.Len() {
			t.Fatalf("Rebuilt has %d slots, %d of them in use, want %d", anew.Len(), v.Len(), built.Len())
		}
		for slot, moved := range to {
			if c := before.At(slot); (c == nil) != (moved < 0) || c != nil && anew.At(int(moved)) != c {
				t.Fatalf("Rebuilt says that slot %d is now slot %d, which has something else", slot, moved)
			}
		}
	})
}

// same compares what two views answer.
func same(t *rapid.T, got, want *View) {
	t.Helper()
	if got.Len() != want.Len() {
		t.Fatalf("Len() = %d, want %d", got.Len(), want.Len())
	}
	for range 4 {
		q := query(t)
		odd := rapid.Bool().Draw(t, "filtered")
		keep := func(v *View) Keep {
			if !odd {
				return nil
			}
			return func(part, slot int, _ float32) bool {
				id := v.parts[part].At(slot).ID
				return id[len(id)-1]%2 == 1
			}
		}
		g, w := got.Search(q, 20, keep(got)), want.Search(q, 20, keep(want))
		if err := sound(got, g, 20); err != nil {
			t.Fatalf("Search(%+v): %v", q, err)
		}
		if x, y := tell(got, g), tell(want, w); !reflect.DeepEqual(x, y) {
			t.Fatalf("Search(%+v) =\n%+v, want\n%+v", q, x, y)
		}
	}
}

// TestFoundWithoutWords: what has no word is found by its name, also after
// changes.
func TestFoundWithoutWords(t *testing.T) {
	same := func(id string) *capability.Capability {
		return &capability.Capability{ID: capability.ID(id), Name: "\U0001F600"}
	}
	next, _ := index.Build([]*capability.Capability{same("1"), same("2"), same("3")}).Change([]*capability.Capability{same("4")}, nil)
	next, _ = next.Change([]*capability.Capability{indextest.Tool("gauge", "")}, []int{0})
	v := NewView(Part{Segment: next})
	if got := ids(v, Query{Text: "\U0001F600"}, 9); !slices.Equal(got, []string{"2", "3", "4"}) {
		t.Errorf("Search(\U0001F600) = %v, want 2, 3 and 4", got)
	}
	if got := names(v, "gauge"); !slices.Equal(got, []string{"gauge"}) {
		t.Errorf("Search(gauge) = %v, want it", got)
	}
}

func TestChangeUsesFreeSlots(t *testing.T) {
	tools := func(names ...string) (list []*capability.Capability) {
		for _, name := range names {
			list = append(list, indextest.Tool(name, ""))
		}
		return list
	}
	s := index.Build(tools("a", "b", "c", "d"))
	for _, step := range []struct {
		add   []*capability.Capability
		gone  []int
		slots []int // of what was added
		names string
	}{
		{tools("e"), []int{2, 0}, []int{0}, "e b - d"},
		{tools("f", "g"), nil, []int{2, 4}, "e b f d g"},
		{nil, []int{0, 1, 2, 3, 4}, nil, "- - - - -"},
		{tools("weather"), nil, []int{0}, "weather - - - -"},
	} {
		var slots []int
		s, slots = s.Change(step.add, step.gone)
		var have []string
		for slot := range s.Len() {
			name := "-"
			if c := s.At(slot); c != nil {
				name = c.Name
			}
			have = append(have, name)
		}
		if got := strings.Join(have, " "); got != step.names || !slices.Equal(slots, step.slots) {
			t.Fatalf("Change without %v = slots %v of %s, want %v of %s", step.gone, slots, got, step.slots, step.names)
		}
	}
	if v := NewView(Part{Segment: s}); v.Len() != 1 || !slices.Equal(names(v, "weather"), []string{"weather"}) {
		t.Errorf("what was added to an emptied segment is not found among %d", v.Len())
	}
}

// TestChangeForgets: a capability that was removed is found by none of what it
// was found by, and the one in its slot by none of it either.
func TestChangeForgets(t *testing.T) {
	old := indextest.Tool("air_probe", "reads barometers", indextest.Alias("pressure-gauge"))
	s := index.Build([]*capability.Capability{old, indextest.Tool("other", "reads")})
	s = testkit.Must(s.WithVectors("model", 2, map[int][]float32{0: {1, 0}, 1: {0, 1}}))(t)
	s, _ = s.Change([]*capability.Capability{indextest.Tool("penman", "writes letters")}, []int{0})
	v := NewView(Part{Segment: s})
	for _, text := range []string{"air_probe", "tool:air_probe", "pressure-gauge", "barometer", "gauge"} {
		if got := names(v, text); len(got) > 0 {
			t.Errorf("Search(%q) = %v, want nothing", text, got)
		}
	}
	if got := names(v, "letter"); !slices.Equal(got, []string{"penman"}) {
		t.Errorf("Search(letter) = %v, want penman", got)
	}
	if s.HasVector("model", 0) || !s.HasVector("model", 1) {
		t.Errorf("HasVector = %v, %v, want the removed one's gone and the other's kept", s.HasVector("model", 0), s.HasVector("model", 1))
	}
}
