package index

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/testkit"
	"ken/internal/testkit/indextest"
)

// dump writes down all that a segment holds.
func dump(s *Segment) string {
	var b strings.Builder
	for slot, d := range s.Docs {
		fmt.Fprintf(&b, "%d %p %v %v %v %v %v %v\n", slot, d.Capability, d.Lang, d.Terms, d.Counts, d.InName, d.Pairs, d.Norm)
	}
	fmt.Fprintln(&b, s.Live, s.free, s.Terms, s.Spoken)
	fmt.Fprintln(&b, maps.Collect(s.Words.All()), maps.Collect(s.Stems.All()))
	called := map[uint64][]int32{}
	for key, c := range s.Names.All() {
		called[key] = slices.Collect(c.Slots)
	}
	fmt.Fprintln(&b, called)
	for term := range s.Postings.Count {
		fmt.Fprintln(&b, term, s.Postings.Says[term], s.Postings.Of(uint32(term)))
	}
	if v := s.VectorStore; v != nil {
		fmt.Fprintln(&b, v.model, v.Dims, v.n)
		for _, p := range v.Pages {
			if p != nil {
				fmt.Fprintln(&b, *p)
			}
		}
	}
	return b.String()
}

// TestFragmented: words and slots of what is gone do not pile up for ever, and what
// stays does not wear.
func TestFragmented(t *testing.T) {
	testkit.CI(t, "changes a segment thousands of times")
	list := make([]*capability.Capability, 300)
	for i := range list {
		list[i] = indextest.Tool(fmt.Sprintf("tool_%d", i), "does this and that")
	}
	s := Build(list)
	for range 3000 {
		s, _ = s.Change([]*capability.Capability{indextest.Tool("tool_7", "does this and that")}, []int{7})
	}
	if s.Fragmented() {
		t.Errorf("a segment is worn by the same words: %d of %d", s.size(), s.made)
	}
	changes, most := 0, 0
	for n := range 6000 {
		fresh := strings.Map(func(r rune) rune { return 'a' + r - '0' }, fmt.Sprint(1_000_000+n)) // a word that nobody ever had
		s, _ = s.Change([]*capability.Capability{indextest.Tool("tool_7", "does "+fresh)}, []int{7})
		if s.Fragmented() {
			s, _ = s.Rebuilt()
			changes++
			if s.Fragmented() || s.size() > 2000 {
				t.Fatalf("after Rebuilt its size is %d, fragmented: %v", s.size(), s.Fragmented())
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
	if s, _ = s.Change(nil, gone); !s.Fragmented() {
		t.Errorf("%d of %d slots are free, and it is not worn", len(s.free), s.Len())
	}
}

// TestChangeLeavesTheOld: a segment that was changed, twice and in different
// ways, is what it was.
func TestChangeLeavesTheOld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := indextest.Capabilities(rapid.SampledFrom([]int{1, 3, 70, 130}).Draw(t, "size")).Draw(t, "list")
		old := indextest.Give(t, Build(list), indextest.VectorsFor(t, list))
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
			next, slots := old.Change(indextest.Capabilities(rapid.IntRange(0, 4).Draw(t, "more")).Draw(t, "added"), gone)
			for _, slot := range slots {
				var err error
				if next, err = next.WithVectors("model", indextest.Dims, map[int][]float32{slot: indextest.Vector(t)}); err != nil {
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
	old.Change([]*capability.Capability{same("4")}, nil)
	if after := dump(old); after != before {
		t.Errorf("a change altered the segment it was made of:\n%s\nwant\n%s", after, before)
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
				if got, ok := l.Get(start + i); !ok || got != value {
					t.Fatalf("get(%d) = %d, %v, want %d", start+i, got, ok, value)
				}
			}
			m = l.done()
			if got := maps.Collect(m.All()); !maps.Equal(got, want) {
				t.Fatalf("%d keys, want %d", len(got), len(want))
			}
			if got := maps.Collect(old.All()); !maps.Equal(got, had) {
				t.Fatal("a change altered the map it was made of")
			}
			if limit := 1024 + len(m.base)/8 + 700; len(m.top) > limit {
				t.Fatalf("%d keys lie on top, want at most %d", len(m.top), limit)
			}
		}
	})
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
