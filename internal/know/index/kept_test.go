//go:build linux || darwin

package index

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/testkit/indextest"
)

// TestMappedSegment: a segment that is a part of a mapped file is the one that was made,
// changes like it, and stays when the file is replaced and removed.
func TestMappedSegment(t *testing.T) {
	list := slices.Concat(indextest.Desk(), indextest.Many(400), []*capability.Capability{indextest.Tool("天気", "明日の天気を調べる")})
	model := indextest.Builtin(t)
	key := keyOf(list, model)
	made := BuildWith(model, list)
	path := filepath.Join(t.TempDir(), "test"+cacheSuffix)
	must(t, os.WriteFile(path, encode(made, key), 0o600))
	f, err := os.Open(path)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	data := mapFile(f, int(info.Size()))
	if data == nil {
		t.Fatal("the file cannot be mapped")
	}
	f.Close()
	again, ok := keptFile{data: data, mapped: true}.decode(key, list, model)
	if !ok {
		t.Fatal("what was written is not read back")
	}
	if again.VectorStore.kept == nil || again.VectorStore.Pages[0].bytes != nil {
		t.Fatal("the vectors were copied")
	}
	if from, first := again.Docs[0].Terms, &data[0]; !within(from, first, len(data)) {
		t.Fatal("the words were copied")
	}
	other := filepath.Join(t.TempDir(), "other")
	must(t, os.WriteFile(other, []byte("another file"), 0o600))
	must(t, os.Rename(other, path))
	must(t, os.Remove(path))
	alike(t, "read back", again, made)

	fresh := []*capability.Capability{indextest.Tool("aa", "reads a barometer"), indextest.Tool("zz", "a second")}
	changed, slots := again.Change(fresh, []int{3, 70})
	want, wantSlots := made.Change(fresh, []int{3, 70})
	if !slices.Equal(slots, wantSlots) {
		t.Errorf("slots %v, want %v", slots, wantSlots)
	}
	alike(t, "changed", changed, want)
}

// alike compares all of two segments, wherever their vectors are.
func alike(t *testing.T, what string, got, want *Segment) {
	t.Helper()
	x, y := *got, *want
	x.VectorStore, y.VectorStore = nil, nil
	if dump(&x) != dump(&y) {
		t.Errorf("%s: the segment is another", what)
	}
	for slot := range want.Docs {
		if !slices.Equal(got.Docs[slot].nameCodes, want.Docs[slot].nameCodes) {
			t.Errorf("%s: slot %d has other codes", what, slot)
		}
		p, q := got.VectorStore.at(slot), want.VectorStore.at(slot)
		if (p == nil) != (q == nil) {
			t.Fatalf("%s: only one has a vector in slot %d", what, slot)
		}
		if at := slot % VectorsPerPage; p != nil && (!slices.Equal(got.VectorStore.row(p, at), want.VectorStore.row(q, at)) || p.scale[at] != q.scale[at] ||
			p.Blank != q.Blank || !slices.Equal(got.VectorStore.Code(slot), want.VectorStore.Code(slot))) {
			t.Errorf("%s: slot %d has another vector", what, slot)
		}
	}
}
