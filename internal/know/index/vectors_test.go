package index

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
)

func exact(a, b []float32) float64 {
	var dot, x, y float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		x += float64(a[i]) * float64(a[i])
		y += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(x*y)
}

// TestQuantise: one byte of each number is enough to tell how similar two
// vectors are, however long these are.
func TestQuantise(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, dims := range []int{1, 2, 63, 64, 65, 256, 1000} {
		for _, length := range []float32{1, 1e-20, 1e15} {
			a, b := randomVector(random, dims), randomVector(random, dims)
			for i := range b {
				b[i] = (b[i] + a[i]) * length
			}
			s, err := Build([]*capability.Capability{tool("a", "")}).WithVectors("m", dims, map[int][]float32{0: b})
			if err != nil {
				t.Fatal(err)
			}
			bytes := make([]int8, dims)
			scale := shrink(a, bytes)
			got, ok := s.vectors.cosine(0, bytes, scale)
			if want := exact(a, b); !ok || math.Abs(float64(got)-want) > 0.02 {
				t.Errorf("cosine of %d numbers = %v, %v, want %v", dims, got, ok, want)
			}
		}
	}
	code := []uint64{^uint64(0), ^uint64(0)}
	vec := make([]int8, 65)
	vec[0], vec[1], vec[64] = 63, -63, 1
	quantise(vec, code)
	if code[0] != 1 || code[1] != 1 {
		t.Errorf("quantise(63, -63, 0 …, 1) = %b, want bits 0 and 64", code)
	}
}

// TestHamming: every vector is compared, wherever its page and however many
// words it has.
func TestHamming(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, dims := range []int{5, 64, 256, 300} {
		var list []*capability.Capability
		of := map[int][]float32{}
		for i := range 200 {
			list = append(list, tool(word(i), ""))
			if i%7 != 3 {
				of[i] = randomVector(random, dims)
			}
		}
		s, err := Build(list).WithVectors("m", dims, of)
		if err != nil {
			t.Fatal(err)
		}
		query := randomVector(random, dims)
		words := (dims + 63) / 64
		code, distance, histogram := make([]uint64, words), make([]uint16, 200), make([]int32, 64*words+1)
		bytes := make([]int8, dims)
		shrink(query, bytes)
		quantise(bytes, code)
		v := NewView(Part{Segment: s})
		v.parts[0].near(code, distance, histogram)
		sum := 0
		for slot := range list {
			want := 0
			if vec, ok := of[slot]; ok {
				want = 1
				own := make([]int8, dims)
				shrink(vec, own)
				for i := range own {
					if (own[i] > 0) != (bytes[i] > 0) {
						want++
					}
				}
			}
			if int(distance[slot]) != want {
				t.Fatalf("%d numbers: the distance of slot %d is %d, want %d", dims, slot, distance[slot], want)
			}
		}
		for _, n := range histogram {
			sum += int(n)
		}
		if sum != len(of) {
			t.Errorf("%d numbers: %d distances are counted, want %d", dims, sum, len(of))
		}
	}
}

func TestWithVectors(t *testing.T) {
	s := Build([]*capability.Capability{tool("a", ""), tool("b", ""), tool("c", "")})
	if model, n := s.Vectors(); model != "" || n != 0 || s.HasVector("", 0) {
		t.Errorf("Vectors() = %q, %d, want none", model, n)
	}
	one, err := s.WithVectors("one", 3, map[int][]float32{0: {1, 0, 0}, 1: {0, 1, 0}, 7: {1, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	if model, n := one.Vectors(); model != "one" || n != 2 || !one.HasVector("one", 0) || one.HasVector("one", 2) || one.HasVector("two", 0) || one.HasVector("one", 7) {
		t.Errorf("Vectors() = %q, %d, want two of model one", model, n)
	}
	more, err := one.WithVectors("one", 3, map[int][]float32{1: {0, 0, 1}, 2: {1, 0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	if model, n := more.Vectors(); model != "one" || n != 3 {
		t.Errorf("Vectors() after more = %q, %d, want three: one was there", model, n)
	}
	if _, n := one.Vectors(); n != 2 || one.HasVector("one", 2) {
		t.Error("WithVectors altered the segment it was made of")
	}
	for what, other := range map[string]func() (*Segment, error){
		"another model":  func() (*Segment, error) { return more.WithVectors("two", 3, map[int][]float32{1: {1, 2, 3}}) },
		"another length": func() (*Segment, error) { return more.WithVectors("one", 2, map[int][]float32{1: {1, 2}}) },
	} {
		next, err := other()
		if err != nil {
			t.Fatal(err)
		}
		if _, n := next.Vectors(); n != 1 || next.HasVector("one", 0) || next.HasVector("two", 0) {
			t.Errorf("%s: %d vectors, want the old ones gone", what, n)
		}
	}
	if _, err := one.WithVectors("one", 3, map[int][]float32{2: {1, 2}}); err == nil || !strings.Contains(err.Error(), "has 2 numbers, not 3") {
		t.Errorf("WithVectors(2 numbers for 3) = %v, want an error that says so", err)
	}
}

// TestWithVectorsLeavesTheOld: giving vectors alters nothing that was there.
func TestWithVectorsLeavesTheOld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := capabilities(rapid.SampledFrom([]int{1, 70, 130}).Draw(t, "size")).Draw(t, "list")
		old := give(t, Build(list), vectorsFor(t, list))
		before := dump(old)
		of := map[int][]float32{}
		for range rapid.IntRange(0, 5).Draw(t, "more") {
			of[rapid.IntRange(0, len(list)-1).Draw(t, "slot")] = vector(t)
		}
		if _, err := old.WithVectors(rapid.SampledFrom([]string{"model", "other"}).Draw(t, "model"), testDims, of); err != nil {
			t.Fatal(err)
		}
		if dump(old) != before {
			t.Fatal("WithVectors altered the segment it was made of")
		}
	})
}

func TestChangeKeepsVectors(t *testing.T) {
	var list []*capability.Capability
	of := map[int][]float32{}
	for i := range 130 {
		list = append(list, tool(word(i), ""))
		of[i] = []float32{float32(i), 1}
	}
	s, err := Build(list).WithVectors("m", 2, of)
	if err != nil {
		t.Fatal(err)
	}
	next, slots := s.Change([]*capability.Capability{tool("new", "")}, []int{3, 64, 129})
	if !slices.Equal(slots, []int{3}) {
		t.Fatalf("Change = %v", slots)
	}
	for slot := range 130 {
		want := slot != 3 && slot != 64 && slot != 129
		if next.HasVector("m", slot) != want {
			t.Errorf("HasVector(%d) = %v, want %v", slot, !want, want)
		}
		if !s.HasVector("m", slot) {
			t.Errorf("the old segment lost the vector of slot %d", slot)
		}
	}
	if _, n := next.Vectors(); n != 127 {
		t.Errorf("%d vectors, want 127", n)
	}
	again, err := next.WithVectors("m", 2, map[int][]float32{3: {0, -1}})
	if err != nil {
		t.Fatal(err)
	}
	if !again.HasVector("m", 3) || next.HasVector("m", 3) {
		t.Error("a slot that was used again does not have its own vector")
	}
}

// around makes a catalog whose vectors are random, but for one that is like the
// query's and shares no word with it.
func around(t *testing.T, n int, length float32) (v *View, query []float32) {
	random := rand.New(rand.NewPCG(5, 6))
	query = randomVector(random, 256)
	var list []*capability.Capability
	of := map[int][]float32{}
	for i := range n {
		list = append(list, tool(word(i), "has "+word(i+1)))
		of[i] = randomVector(random, 256)
	}
	list = append(list, tool("right", "nothing in common"))
	of[n] = randomVector(random, 256)
	for i := range of[n] {
		of[n][i] = (of[n][i] + query[i]) * length
	}
	s, err := Build(list).WithVectors("m", 256, of)
	if err != nil {
		t.Fatal(err)
	}
	return NewView(Part{Segment: s}), query
}

// TestFoundByVector: a capability that shares no word with the message is found
// by its vector, and ranked by how near that is.
func TestFoundByVector(t *testing.T) {
	for _, n := range []int{40, 500} {
		for _, length := range []float32{1, 1000} {
			v, query := around(t, n, length)
			a := v.Search(Query{Text: "foreign words", Vector: query}, 5, nil)
			if len(a.Hits) == 0 || a.Hits[0].Slot != n || a.Hits[0].Near < 3 || len(a.Hits[0].Words) != 0 {
				t.Errorf("of %d: Search by vector = %+v, want the one that is near", n, a.Hits)
			}
			// Words and vectors together: the one by name, and the near one.
			both := v.Search(Query{Text: "tool:" + word(7), Vector: query}, 5, nil)
			if len(both.Hits) < 2 || both.Hits[0].Slot != 7 || both.Hits[1].Slot != n {
				t.Errorf("of %d: Search by name and vector = %+v, want 7 and then %d", n, both.Hits, n)
			}
			hidden := NewBits(n + 1)
			hidden.Set(0)
			hidden.Set(1)
			narrow := NewView(Part{v.parts[0].Segment, hidden})
			if a := narrow.Search(Query{Text: "foreign words", Vector: query}, 5, nil); slices.ContainsFunc(a.Hits, func(h Hit) bool { return h.Slot > 1 }) {
				t.Errorf("of %d: Search by vector = %+v, want nothing hidden", n, a.Hits)
			}
		}
	}
}

// TestVectorsThatSayNothing: a query's vector of zeros, of no numbers or of
// another length is as none; a capability's, as one that has none.
func TestVectorsThatSayNothing(t *testing.T) {
	v, _ := around(t, 60, 1)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	filled := func(x float32) []float32 {
		vec := make([]float32, 256)
		for i := range vec {
			vec[i] = x
		}
		return vec
	}
	mixed := filled(0.1)
	mixed[100] = nan
	text := "has " + word(3)
	want := v.Search(Query{Text: text}, 9, nil)
	for what, vec := range map[string][]float32{
		"zeros": filled(0), "NaN": filled(nan), "infinite": filled(inf), "one NaN": mixed, "too small": filled(1e-44),
		"short": {1, 2}, "long": make([]float32, 300), "empty": {},
	} {
		got := v.Search(Query{Text: text, Vector: vec}, 9, nil)
		if len(got.Hits) != len(want.Hits) || got.Fit != want.Fit || got.Hits[0].Score != want.Hits[0].Score {
			t.Errorf("%s: Search = %+v, want %+v", what, got, want)
		}
	}

	of := map[int][]float32{}
	for i, vec := range [][]float32{filled(0), filled(nan), filled(inf), mixed} {
		of[i] = vec
	}
	plain := Build([]*capability.Capability{tool("a1", "gauge"), tool("a2", "gauge"), tool("a3", "gauge"), tool("a4", "gauge"), tool("a5", "gauge")})
	s, err := plain.WithVectors("m", 256, of)
	if err != nil {
		t.Fatal(err)
	}
	if _, n := s.Vectors(); n != 4 || !s.HasVector("m", 0) {
		t.Errorf("%d vectors, want 4: who asks for what is missing must not ask again for these", n)
	}
	q := Query{Text: "gauge", Vector: filled(-1)}
	got, want := NewView(Part{Segment: s}).Search(q, 9, nil), NewView(Part{Segment: plain}).Search(q, 9, nil)
	for i := range want.Hits {
		if got.Hits[i].Slot != want.Hits[i].Slot || got.Hits[i].Score != want.Hits[i].Score || got.Hits[i].Near != 0 {
			t.Errorf("hit %d = %+v, want %+v", i, got.Hits[i], want.Hits[i])
		}
	}
	if q.Text = "zork"; len(NewView(Part{Segment: s}).Search(q, 9, nil).Hits) != 0 {
		t.Error("a vector that says nothing was found")
	}
	// One that says nothing, and later something.
	s, err = s.WithVectors("m", 256, map[int][]float32{2: filled(-1)})
	if err != nil {
		t.Fatal(err)
	}
	if a := NewView(Part{Segment: s}).Search(q, 9, nil); len(a.Hits) != 1 || a.Hits[0].Slot != 2 {
		t.Errorf("Search = %+v, want slot 2 by its new vector", a.Hits)
	}
}

// TestEquallyNear: of many that are equally near, the same are taken whatever
// their slots.
func TestEquallyNear(t *testing.T) {
	var list []*capability.Capability
	for i := range 300 {
		list = append(list, tool(word(i), ""))
	}
	find := func(list []*capability.Capability) []string {
		of := map[int][]float32{}
		for i := range list {
			of[i] = []float32{1, 1, -1}
		}
		s, err := Build(list).WithVectors("m", 3, of)
		if err != nil {
			t.Fatal(err)
		}
		return ids(NewView(Part{Segment: s}), Query{Text: "zork", Vector: []float32{1, 1, 1}}, 500)
	}
	want := find(list)
	slices.Reverse(list)
	if got := find(list); !slices.Equal(got, want) || len(want) == 0 || len(want) > 2*denseShortlist {
		t.Errorf("of 300 that are alike:\n%v, want\n%v", got, want)
	}
}
