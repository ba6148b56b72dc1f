package parsecache

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/know/source/catalogfile"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
	"ken/internal/testkit/sourcetest"
)

// largeCatalog is a catalog that is worth caching, with a bad row in it.
func largeCatalog() string {
	var b strings.Builder
	for i := 0; b.Len() < MinSize; i++ {
		fmt.Fprintf(&b, `{"id":"t%d","name":"tool-%d","description":"Does thing %d.","input_schema":{"type":"object","properties":{"a%d":{"type":"string"}}}}`+"\n", i, i, i, i)
	}
	return b.String() + "{bad\n"
}

func entriesIn(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestCacheOfAnotherOwner needs a user who may give files away.
func TestCacheOfAnotherOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("cannot here: only root may give a directory to another user")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if err := (&Cache{Dir: dir}).Check(); capability.KindOf(err) != capability.Denied || !strings.Contains(fmt.Sprint(err), "another user") {
		t.Errorf("Check of another user's directory = %v, want a refusal", err)
	}
}

func TestCacheForgetsTheOldest(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	long := time.Now().Add(-3 * time.Hour)
	for i := range maxEntries + 5 {
		id := Key{byte(i)}
		p := sourcetest.Write(t, dir, id.file(), "x")
		if err := os.Chtimes(p, time.Time{}, long.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	sourcetest.Write(t, dir, "notes.txt", "not ours")
	sourcetest.Write(t, dir, scratchName+"new", "being written")
	if err := os.Chtimes(sourcetest.Write(t, dir, scratchName+"old", "left"), time.Time{}, long); err != nil {
		t.Fatal(err)
	}
	if err := put(root, Key{200}, []byte("newest")); err != nil {
		t.Fatal(err)
	}
	there := func(name string) bool { _, err := fs.Stat(root.FS(), name); return err == nil }
	for i := range maxEntries + 5 {
		if got, want := there(Key{byte(i)}.file()), i >= 6; got != want {
			t.Errorf("entry %d is there: %v, want %v", i, got, want)
		}
	}
	if !there(Key{200}.file()) || !there("notes.txt") || !there(scratchName+"new") || there(scratchName+"old") {
		t.Errorf("left in the cache: %v", entriesIn(t, dir))
	}
}

// TestCacheIgnoresWhatWasCutShort: a load that was cancelled half-way must not
// be remembered as the whole.
func TestCacheIgnoresWhatWasCutShort(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	ctx, cancel := context.WithCancel(context.Background())
	u := &format.Unit{Context: ctx, Root: &safefs.Root{Name: "m"}, Path: "c.jsonl", Format: "jsonl", Data: []byte(largeCatalog())}
	f := catalogfile.JSONLFormat()
	read := f.Read
	f.Read = func(u *format.Unit) { cancel(); read(u) }
	(&Cache{Dir: dir}).Parse(f, u)
	if got := entriesIn(t, dir); len(got) != 0 {
		t.Errorf("the cache holds %v after a cancelled read", got)
	}
}
