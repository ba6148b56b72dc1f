package index

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/indextest"
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
			a, b := indextest.RandomVector(random, dims), indextest.RandomVector(random, dims)
			for i := range b {
				b[i] = (b[i] + a[i]) * length
			}
			s, err := Build([]*capability.Capability{indextest.Tool("a", "")}).WithVectors("m", dims, map[int][]float32{0: b})
			must(t, err)
			bytes := make([]int8, dims)
			scale := Shrink(a, bytes)
			got, ok := s.Second.Cosine(0, bytes, scale)
			if want := exact(a, b); !ok || math.Abs(float64(got)-want) > 0.02 {
				t.Errorf("cosine of %d numbers = %v, %v, want %v", dims, got, ok, want)
			}
		}
	}
	code := []uint64{^uint64(0), ^uint64(0)}
	vec := make([]int8, 65)
	vec[0], vec[1], vec[64] = 63, -63, 1
	Quantise(vec, code)
	if code[0] != 1 || code[1] != 1 {
		t.Errorf("quantise(63, -63, 0 …, 1) = %b, want bits 0 and 64", code)
	}
}

func TestWithVectors(t *testing.T) {
	s := Build([]*capability.Capability{indextest.Tool("a", ""), indextest.Tool("b", ""), indextest.Tool("c", "")})
	if model, n := s.Vectors(); model != "" || n != 0 || s.HasVector("", 0) {
		t.Errorf("Vectors() = %q, %d, want none", model, n)
	}
	one, err := s.WithVectors("one", 3, map[int][]float32{0: {1, 0, 0}, 1: {0, 1, 0}, 7: {1, 1, 1}})
	must(t, err)
	if model, n := one.Vectors(); model != "one" || n != 2 || !one.HasVector("one", 0) || one.HasVector("one", 2) || one.HasVector("two", 0) || one.HasVector("one", 7) {
		t.Errorf("Vectors() = %q, %d, want two of model one", model, n)
	}
	more, err := one.WithVectors("one", 3, map[int][]float32{1: {0, 0, 1}, 2: {1, 0, 0}})
	must(t, err)
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
		must(t, err)
		if _, n := next.Vectors(); n != 1 || next.HasVector("one", 0) || next.HasVector("two", 0) {
			t.Errorf("%s: %d vectors, want the old ones gone", what, n)
		}
	}
	if _, err := one.WithVectors("one", 3, map[int][]float32{2: {1, 2}}); err == nil || !strings.Contains(err.Error(), "has 2 numbers, not 3") {
		t.Errorf("WithVectors(2 numbers for 3) = %v, want an error that says so", err)
	}
}

func TestChangeKeepsVectors(t *testing.T) {
	var list []*capability.Capability
	of := map[int][]float32{}
	for i := range 130 {
		list = append(list, indextest.Tool(indextest.Word(i), ""))
		of[i] = []float32{float32(i), 1}
	}
	s, err := Build(list).WithVectors("m", 2, of)
	must(t, err)
	next, slots := s.Change([]*capability.Capability{indextest.Tool("new", "")}, []int{3, 64, 129})
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
	must(t, err)
	if !again.HasVector("m", 3) || next.HasVector("m", 3) {
		t.Error("a slot that was used again does not have its own vector")
	}
}

// TestVectorsAreNotMadeAgain: a changed segment keeps the vectors of what
// stayed, and gives what came the vector that a new segment would.
func TestVectorsAreNotMadeAgain(t *testing.T) {
	m, list := indextest.Builtin(t), indextest.Many(200)
	s := BuildWith(m, list)
	gauge := indextest.Tool("gauge", "reads a pressure gauge")
	changed, slots := s.Change([]*capability.Capability{gauge}, []int{70})
	if model, n := changed.Vectors(); model != m.Model() || n != 200 {
		t.Errorf("after a change Vectors() = %s, %d, want %s, 200", model, n, m.Model())
	}
	if changed.VectorStore.Pages[0] != s.VectorStore.Pages[0] {
		t.Error("a page of vectors was made anew that no change touched")
	}
	list[70] = gauge
	if slots[0] != 70 {
		t.Fatalf("the slot is %d, want 70", slots[0])
	}
	fresh := BuildWith(m, list)
	for i, p := range fresh.VectorStore.Pages {
		got := changed.VectorStore.Pages[i]
		if got.Has != p.Has || !slices.Equal(got.bytes, p.bytes) || !slices.Equal(got.Bits, p.Bits) || got.scale != p.scale {
			t.Errorf("page %d of the changed segment differs from that of a new one", i)
		}
	}
}

// TestCacheKeepsVectors: they are read back as they were, and belong to one
// model.
func TestCacheKeepsVectors(t *testing.T) {
	list := slices.Concat(indextest.Desk(), indextest.Many(400), []*capability.Capability{indextest.Tool("天気", "明日の天気を調べる")})
	c := &Cache{Dir: filepath.Join(t.TempDir(), "cache"), Name: "test", Model: indextest.Builtin(t)}
	made := BuildWith(c.Model, list)
	c.Build(list)
	path, _ := only(t, c.Dir)
	again := c.Build(list)
	if dump(again) != dump(made) {
		t.Error("the segment that was kept is not the one that was made")
	}
	for i, p := range made.VectorStore.Pages {
		got := again.VectorStore.Pages[i]
		if got.Has != p.Has || got.Blank != p.Blank || !slices.Equal(got.bytes, p.bytes) || !slices.Equal(got.Bits, p.Bits) || got.scale != p.scale {
			t.Errorf("page %d was read back differently", i)
		}
	}
	for i := range made.Docs {
		if !slices.Equal(again.Docs[i].nameCodes, made.Docs[i].nameCodes) {
			t.Errorf("the codes of %s were read back differently", list[i].Name)
		}
	}
	words := &Cache{Dir: c.Dir, Name: "test"}
	if model, n := words.Build(list).Vectors(); model != "" || n != 0 {
		t.Errorf("without a model Vectors() = %s, %d: it read the file of another", model, n)
	}
	if files := kept(t, c.Dir); len(files) != 2 || files[filepath.Base(path)] == "" {
		t.Errorf("%d files are kept, want one for each model", len(files))
	}
}
