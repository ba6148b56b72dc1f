package executor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ken/internal/testkit"
	"ken/internal/wholefile"
)

// TestFolders: a kept list of names saves looking names up, and is not used once the
// folder may have changed, or where names can be written in more than one way.
func TestFolders(t *testing.T) {
	dir := place(t, map[string]string{".env": ""})
	var c Folders
	later := time.Now()
	c.now = func() time.Time { return later }
	still := func() { // the folder has not changed for an hour
		t.Helper()
		before := time.Now().Add(-time.Hour)
		must(t, os.Chtimes(dir, before, before))
		testkit.Wait(t, "the folder is not recent", func() bool { return !wholefile.StampOf(dir).Recent })
		later = time.Now().Add(time.Hour)
	}
	put := func(name string) {
		t.Helper()
		must(t, os.Symlink(".env", filepath.Join(dir, name)))
	}
	leads := func(name string) bool {
		var f Facts
		c.Texts(&f, fmt.Appendf(nil, "%q", name), dir)
		return slices.Contains(f.Named, ".env")
	}
	if c.list(dir) != nil || c.list(filepath.Join(dir, "none")) != nil || c.list("/proc") != nil {
		t.Error("a folder that has just changed, is not there, or has no times, has a list")
	}
	still()
	l := c.list(dir)
	if l == nil || !l.misses("lnk") || !l.misses("lnk/x") || l.misses(".env") || l.misses(".ENV/x") || l.misses(".") || l.misses("lñk") || leads("lnk") {
		t.Fatalf("the folder has the names %v", l)
	}
	// A link that was made after the list was read, by one who hides it, once the
	// clock of files has ticked.
	before, err := os.Stat(dir)
	must(t, err)
	beside, read := filepath.Join(t.TempDir(), "beside"), wholefile.StampOf(dir).Changed()
	testkit.Wait(t, "the clock of files ticks", func() bool {
		err := os.WriteFile(beside, []byte("x"), 0o600)
		return err != nil || wholefile.StampOf(beside).Changed().After(read)
	})
	put("lnk")
	must(t, os.Chtimes(dir, before.ModTime(), before.ModTime()))
	if !leads("lnk") {
		t.Error("a link that was made after the list was read is not seen")
	}
	put("lñk")
	still()
	if c.list(dir) != nil || !leads("lñk") {
		t.Error("a folder with letters that may be equal to others has a list")
	}
	must(t, os.Remove(filepath.Join(dir, "lñk")))
	for i := range mostListed {
		put(fmt.Sprint("lnk", i))
	}
	still()
	if c.list(dir) != nil || !leads("lnk7") {
		t.Error("a large folder has a list")
	}
}
