package app

import (
	"crypto/sha256"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"ken/internal/find/ranking"
	"ken/internal/know/index"
	second "ken/internal/know/reader"
	"ken/internal/testkit"
)

var update = flag.Bool("update", false, "write starter.vectors of package vectors again")

// TestStarterVectors: the second reader's vectors of all that comes with Ken are
// part of the program, so that a first message need not wait for it.
func TestStarterVectors(t *testing.T) {
	testkit.CI(t, "reads the whole starter catalog")
	if !second.Supported() {
		t.Skip("cannot here: there are no kernels for this processor")
	}
	a := alone(t, "", Config{}) // the second reader reads by default
	m := second.Builtin()
	file := append([]byte(m.Model()), '\n')
	small := make([]int8, m.Dimensions())
	for _, e := range a.Catalog.Snapshot().Entries() {
		d, ok := index.DocumentOf(e.Capability)
		if !ok {
			t.Errorf("%s: the second reader cannot read it", e.ID)
			continue
		}
		sum := sha256.Sum256([]byte(d.Text()))
		file = append(file, sum[:len(sum)/2]...)
		index.Shrink(m.Append(nil, d.Text()), small)
		for _, b := range small {
			file = append(file, byte(b))
		}
	}
	const path = "../find/vectors/starter.vectors"
	if *update {
		if err := os.WriteFile(path, file, 0o644); err != nil {
			t.Fatal(err)
		}
		t.Skip("starter.vectors written: run the tests again to check it")
	}
	if was, err := os.ReadFile(path); err != nil || string(was) != string(file) {
		t.Errorf("%s is not what the second reader makes of the starter; run go test ./internal/app -run TestStarterVectors -update (%v)", path, err)
	}
	a.Vectors.StartKnown(t.Context())
	all := len(a.Catalog.Snapshot().Entries())
	if model, n := ranking.IndexOf(a.Catalog.Snapshot()).Segment.Vectors(); model != m.Model() || n != all {
		t.Errorf("%d of %d capabilities have vectors of %s, want all of %s", n, all, model, m.Model())
	}
	if files, err := os.ReadDir(filepath.Join(a.Places.Cache, "vectors")); err == nil {
		t.Errorf("%d files of vectors are kept, want none: nothing had to be read", len(files))
	}
}
