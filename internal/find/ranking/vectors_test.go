package ranking

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/know/index"
	"ken/internal/testkit"
	"ken/internal/testkit/indextest"
)

// TestHamming: every vector is compared, wherever its page and however many
// words it has.
func TestHamming(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for _, dims := range []int{5, 64, 256, 300} {
		var list []*capability.Capability
		of := map[int][]float32{}
		for i := range 200 {
			list = append(list, indextest.Tool(indextest.Word(i), ""))
			if i%7 != 3 {
				of[i] = indextest.RandomVector(random, dims)
			}
		}
		s := testkit.Must(index.Build(list).WithVectors("m", dims, of))(t)
		query := indextest.RandomVector(random, dims)
		words := (dims + 63) / 64
		code, distance, histogram := make([]uint64, words), make([]uint16, 200), make([]int32, 64*words+1)
		bytes := make([]int8, dims)
		index.Shrink(query, bytes)
		index.Quantise(bytes, code)
		v := NewView(Part{Segment: s})
		v.parts[0].near(v.parts[0].Second, code, distance, histogram)
		sum := 0
		for slot := range list {
			want := 0
			if vec, ok := of[slot]; ok {
				want = 1
				own := make([]int8, dims)
				index.Shrink(vec, own)
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

// around makes a catalog whose vectors are random, but for one that is like the
// query's and shares no word with it.
func around(t *testing.T, n int, length float32) (v *View, query []float32) {
	random := rand.New(rand.NewPCG(5, 6))
	query = indextest.RandomVector(random, 256)
	var list []*capability.Capability
	of := map[int][]float32{}
	for i := range n {
		list = append(list, indextest.Tool(indextest.Word(i), "has "+indextest.Word(i+1)))
		of[i] = indextest.RandomVector(random, 256)
	}
	list = append(list, indextest.Tool("right", "nothing in common"))
	of[n] = indextest.RandomVector(random, 256)
	for i := range of[n] {
		of[n][i] = (of[n][i] + query[i]) * length
	}
	s := testkit.Must(index.Build(list).WithVectors("m", 256, of))(t)
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
			both := v.Search(Query{Text: "tool:" + indextest.Word(7), Vector: query}, 5, nil)
			if len(both.Hits) < 2 || both.Hits[0].Slot != 7 || both.Hits[1].Slot != n {
				t.Errorf("of %d: Search by name and vector = %+v, want 7 and then %d", n, both.Hits, n)
			}
			hidden := index.NewBits(n + 1)
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
	text := "has " + indextest.Word(3)
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
	plain := index.Build([]*capability.Capability{indextest.Tool("a1", "gauge"), indextest.Tool("a2", "gauge"), indextest.Tool("a3", "gauge"), indextest.Tool("a4", "gauge"), indextest.Tool("a5", "gauge")})
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
		list = append(list, indextest.Tool(indextest.Word(i), ""))
	}
	find := func(list []*capability.Capability) []string {
		of := map[int][]float32{}
		for i := range list {
			of[i] = []float32{1, 1, -1}
		}
		s := testkit.Must(index.Build(list).WithVectors("m", 3, of))(t)
		return ids(NewView(Part{Segment: s}), Query{Text: "zork", Vector: []float32{1, 1, 1}}, 500)
	}
	want := find(list)
	slices.Reverse(list)
	if got := find(list); !slices.Equal(got, want) || len(want) == 0 || len(want) > 2*denseShortlist {
		t.Errorf("of 300 that are alike:\n%v, want\n%v", got, want)
	}
}

// TestDifferentBits: what the processor's own instructions count is what the portable
// code counts.
func TestDifferentBits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var page [4 * index.VectorsPerPage]uint64
		var query [4]uint64
		for i := range page {
			page[i] = random.Uint64()
		}
		for i := range query {
			query[i] = random.Uint64()
			page[i], page[4+i] = query[i], ^query[i] // none and all of the bits
		}
		var got, want [index.VectorsPerPage]uint16
		different(&page, &query, &got)
		differentBits(&page, &query, &want)
		if got != want || got[0] != 1 || got[1] != 257 {
			t.Fatalf("different bits = %v, want %v", got, want)
		}
	}
}
