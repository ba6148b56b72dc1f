package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
)

// dump writes down all that a segment holds.
func dump(s *Segment) string {
	var b strings.Builder
	for slot, d := range s.docs {
		fmt.Fprintf(&b, "%d %p %v %v %v %v %v %v\n", slot, d.capability, d.lang, d.terms, d.counts, d.inName, d.pairs, d.norm)
	}
	fmt.Fprintln(&b, s.live, s.free, s.terms, s.spoken)
	fmt.Fprintln(&b, maps.Collect(s.words.all()), maps.Collect(s.stems.all()))
	called := map[uint64][]int32{}
	for key, c := range s.names.all() {
		called[key] = slices.Collect(c.slots)
	}
	fmt.Fprintln(&b, called)
	for term := range s.postings.n {
		fmt.Fprintln(&b, term, s.postings.says[term], s.postings.of(uint32(term)))
	}
	if v := s.vectors; v != nil {
		fmt.Fprintln(&b, v.model, v.dims, v.n)
		for _, p := range v.pages {
			if p != nil {
				fmt.Fprintln(&b, *p)
			}
		}
	}
	return b.String()
}

// TestChangeIsAsBuild: however a list of capabilities came about, it is found
// the same as one that was built at once, in another order.
func TestChangeIsAsBuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := capabilities(size(t)).Draw(t, "list")
		of := vectorsFor(t, list)
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		shuffled := func() []*capability.Capability {
			l := slices.Clone(list)
			random.Shuffle(len(l), func(i, j int) { l[i], l[j] = l[j], l[i] })
			return l
		}

		// Some of them, and some that will go again, in several changes.
		strangers := capabilities(7).Draw(t, "strangers")
		for i, c := range strangers {
			c.ID = capability.ID(fmt.Sprintf("s:%d", i))
		}
		s, left := Build(strangers[:3]), shuffled()
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
				s = give(t, s, of)
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

		changed, built := NewView(Part{Segment: give(t, s, of)}), NewView(Part{Segment: give(t, Build(shuffled()), of)})
		same(t, changed, built)

		before := give(t, s, of)
		anew, to := before.Anew()
		same(t, NewView(Part{Segment: anew}), built)
		if len(anew.free) > 0 || anew.Len() != built.Len() || len(to) != before.Len() {
			t.Fatalf("Anew has %d slots, %d of them free, want %d in use", anew.Len(), len(anew.free), built.Len())
		}
		for slot, moved := range to {
			if c := before.At(slot); (c == nil) != (moved < 0) || c != nil && anew.At(int(moved)) != c {
				t.Fatalf("Anew says that slot %d is now slot %d, which has something else", slot, moved)
			}
		}
	})
}

// TestWorn: words and slots of what is gone do not pile up for ever, and what
// stays does not wear.
func TestWorn(t *testing.T) {
	list := make([]*capability.Capability, 300)
	for i := range list {
		list[i] = tool(fmt.Sprintf("tool_%d", i), "does this and that")
	}
	s := Build(list)
	for range 3000 {
		s, _ = s.Change([]*capability.Capability{tool("tool_7", "does this and that")}, []int{7})
	}
	if s.Worn() {
		t.Errorf("a segment is worn by the same words: %d of %d", s.size(), s.made)
	}
	changes, most := 0, 0
	for n := range 6000 {
		fresh := strings.Map(func(r rune) rune { return 'a' + r - '0' }, fmt.Sprint(1_000_000+n)) // a word that nobody ever had
		s, _ = s.Change([]*capability.Capability{tool("tool_7", "does "+fresh)}, []int{7})
		if s.Worn() {
			s, _ = s.Anew()
			changes++
			if s.Worn() || s.size() > 2000 {
				t.Fatalf("after Anew its size is %d, worn: %v", s.size(), s.Worn())
			}
		}
		most = max(most, s.size())
	}
	if changes < 1 || changes > 4 || most > 6000 {
		t.Errorf("6000 new words: it was made anew %d times and its size was up to %d, want a few times and less than 6000", changes, most)
	}
	var gone []int
	for slot := range 200 {
		gone = append(gone, slot)
	}
	if s, _ = s.Change(nil, gone); !s.Worn() {
		t.Errorf("%d of %d slots are free, and it is not worn", len(s.free), s.Len())
	}
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

// TestChangeLeavesTheOld: a segment that was changed, twice and in different
// ways, is what it was.
func TestChangeLeavesTheOld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := capabilities(rapid.SampledFrom([]int{1, 3, 70, 130}).Draw(t, "size")).Draw(t, "list")
		old := give(t, Build(list), vectorsFor(t, list))
		if rapid.Bool().Draw(t, "changed before") {
			old, _ = old.Change(nil, []int{0})
			old, _ = old.Change(list[:1], nil)
		}
		before := dump(old)
		var afters []*Segment
		var dumps []string
		for range 2 {
			var gone []int
			for slot := range old.Len() {
				if rapid.IntRange(0, 3).Draw(t, "gone") == 0 {
					gone = append(gone, slot)
				}
			}
			next, slots := old.Change(capabilities(rapid.IntRange(0, 4).Draw(t, "more")).Draw(t, "added"), gone)
			for _, slot := range slots {
				var err error
				if next, err = next.WithVectors("model", testDims, map[int][]float32{slot: vector(t)}); err != nil {
					t.Fatal(err)
				}
			}
			afters, dumps = append(afters, next), append(dumps, dump(next))
		}
		if after := dump(old); after != before {
			t.Fatalf("a change altered the segment it was made of:\n%s\nwant\n%s", after, before)
		}
		if dump(afters[0]) != dumps[0] {
			t.Fatal("a change altered its sibling")
		}
	})
}

// TestChangeLeavesTheOldWithoutWords: also where nobody has a word.
func TestChangeLeavesTheOldWithoutWords(t *testing.T) {
	same := func(id string) *capability.Capability {
		return &capability.Capability{ID: capability.ID(id), Name: "\U0001F600"}
	}
	old := Build([]*capability.Capability{same("1"), same("2"), same("3")})
	before := dump(old)
	next, _ := old.Change([]*capability.Capability{same("4")}, nil)
	if after := dump(old); after != before {
		t.Errorf("a change altered the segment it was made of:\n%s\nwant\n%s", after, before)
	}
	next, _ = next.Change([]*capability.Capability{tool("gauge", "")}, []int{0})
	v := NewView(Part{Segment: next})
	if got := ids(v, Query{Text: "\U0001F600"}, 9); !slices.Equal(got, []string{"2", "3", "4"}) {
		t.Errorf("Search(\U0001F600) = %v, want 2, 3 and 4", got)
	}
	if got := names(v, "gauge"); !slices.Equal(got, []string{"gauge"}) {
		t.Errorf("Search(gauge) = %v, want it", got)
	}
}

func TestChangeUsesFreeSlots(t *testing.T) {
	s := Build([]*capability.Capability{tool("a", ""), tool("b", ""), tool("c", ""), tool("d", "")})
	s, slots := s.Change([]*capability.Capability{tool("e", "")}, []int{2, 0})
	if !slices.Equal(slots, []int{0}) || s.Len() != 4 || s.At(2) != nil || s.At(0).Name != "e" {
		t.Fatalf("Change(e, without 2 and 0) = slots %v of %d, want slot 0 of 4", slots, s.Len())
	}
	s, slots = s.Change([]*capability.Capability{tool("f", ""), tool("g", "")}, nil)
	if !slices.Equal(slots, []int{2, 4}) || s.Len() != 5 {
		t.Fatalf("Change(f, g) = slots %v of %d, want 2 and 4 of 5", slots, s.Len())
	}
	s, slots = s.Change(nil, []int{0, 1, 2, 3, 4})
	if len(slots) != 0 || s.Len() != 5 || NewView(Part{Segment: s}).Len() != 0 {
		t.Fatalf("a segment without anything has %d slots and %d capabilities, want 5 and 0", s.Len(), NewView(Part{Segment: s}).Len())
	}
	s, slots = s.Change([]*capability.Capability{tool("h", "weather")}, nil)
	if !slices.Equal(slots, []int{0}) || !slices.Equal(names(NewView(Part{Segment: s}), "weather"), []string{"h"}) {
		t.Errorf("what was added to an emptied segment is in %v and not found", slots)
	}
}

// TestChangeForgets: a capability that was removed is found by none of what it
// was found by, and the one in its slot by none of it either.
func TestChangeForgets(t *testing.T) {
	old := tool("air_probe", "reads barometers", alias("pressure-gauge"))
	s := Build([]*capability.Capability{old, tool("other", "reads")})
	s, err := s.WithVectors("model", 2, map[int][]float32{0: {1, 0}, 1: {0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	s, _ = s.Change([]*capability.Capability{tool("penman", "writes letters")}, []int{0})
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

// TestLayered: a layered map that is changed again and again holds what one map
// would, and no copy sees what is done to another.
func TestLayered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m layered[int, int]
		want := map[int]int{}
		for range rapid.IntRange(1, 12).Draw(t, "changes") {
			old, had := m, maps.Clone(want)
			l := m.changed()
			start := rapid.IntRange(0, 3000).Draw(t, "start")
			for i := range rapid.SampledFrom([]int{0, 1, 40, 700}).Draw(t, "keys") {
				value := rapid.IntRange(0, 9).Draw(t, "value")
				if i > 3 {
					value = i
				}
				l.set(start+i, value)
				want[start+i] = value
				if got, ok := l.get(start + i); !ok || got != value {
					t.Fatalf("get(%d) = %d, %v, want %d", start+i, got, ok, value)
				}
			}
			m = l.done()
			if got := maps.Collect(m.all()); !maps.Equal(got, want) {
				t.Fatalf("%d keys, want %d", len(got), len(want))
			}
			if got := maps.Collect(old.all()); !maps.Equal(got, had) {
				t.Fatal("a change altered the map it was made of")
			}
			if limit := 1024 + len(m.base)/8 + 700; len(m.top) > limit {
				t.Fatalf("%d keys lie on top, want at most %d", len(m.top), limit)
			}
		}
	})
}
