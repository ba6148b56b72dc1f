package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ken/internal/wholefile"
)

// laterThan reports whether a file changed after a moment.
func laterThan(file string, at time.Time) bool {
	s := wholefile.StampOf(file)
	return s.Info != nil && s.Changed().After(at)
}

// TestFolders: a kept list of names saves looking names up, and is not used once the
// folder may have changed, or where names can be written in more than one way.
func TestFolders(t *testing.T) {
	dir := t.TempDir()
	var c Folders
	later := time.Now()
	c.now = func() time.Time { return later }
	still := func() {
		t.Helper()
		before := time.Now().Add(-time.Hour)
		if err := os.Chtimes(dir, before, before); err != nil {
			t.Fatal(err)
		}
		for wholefile.StampOf(dir).Recent {
		}
		later = time.Now().Add(time.Hour)
	}
	put := func(name string) {
		t.Helper()
		if err := os.Symlink(".env", filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".env"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	leads := func(name string) bool {
		var f Facts
		c.Texts(&f, fmt.Appendf(nil, "%q", name), dir)
		return slices.Contains(f.Named, ".env")
	}
	if c.list(dir) != nil {
		t.Error("the list of a folder that has just changed is kept")
	}
	still()
	l := c.list(dir)
	if l == nil || !l.misses("lnk") || !l.misses("lnk/x") || l.misses(".env") || l.misses(".ENV/x") || l.misses(".") || l.misses("lñk") {
		t.Fatalf("the folder has the names %v", l)
	}
	if again := c.list(dir); again != l {
		t.Error("the list of a folder that did not change is read again")
	}
	if leads("lnk") {
		t.Error("a name that is not there leads to a file")
	}
	before, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(t.TempDir(), "beside")
	for changed := wholefile.StampOf(dir).Changed(); !laterThan(beside, changed); { // until the clock of files ticks
		if err := os.WriteFile(beside, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("lnk")
	if err := os.Chtimes(dir, before.ModTime(), before.ModTime()); err != nil { // as one who hides the link would
		t.Fatal(err)
	}
	if !leads("lnk") {
		t.Error("a link that was made after the list was read is not seen")
	}
	still()
	if l := c.list(dir); l == nil || l.misses("lnk") || !l.misses("other") {
		t.Error("the list was not read again")
	}
	put("lñk")
	still()
	if c.list(dir) != nil || !leads("lñk") {
		t.Error("a folder with letters that may be equal to others has a list")
	}
	if err := os.Remove(filepath.Join(dir, "lñk")); err != nil {
		t.Fatal(err)
	}
	for i := range mostListed {
		put(fmt.Sprint("lnk", i))
	}
	still()
	if c.list(dir) != nil || !leads("lnk7") {
		t.Error("a large folder has a list")
	}
	if c.list(filepath.Join(dir, "none")) != nil || c.list("/proc") != nil {
		t.Error("a folder that is not there, or has no times, has a list")
	}
}
