package wholefile

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"ken/internal/testkit"
)

// settled returns the stamp of a file as soon as it is no longer recent.
func settled(path string) Stamp {
	for {
		if s := StampOf(path); !s.Recent {
			return s
		}
	}
}

// TestTimeSetBackIsRecent: a program that writes a file and sets its time back may do
// both again before the clock of the file system moves on.
func TestTimeSetBackIsRecent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("cannot here: only Linux says when anything about a file changed")
	}
	path := filepath.Join(t.TempDir(), "f")
	old := time.Now().Add(-time.Hour)
	for range 1000 { // a machine may be too slow to do all of it within one tick
		testkit.OK(t, errors.Join(os.WriteFile(path, []byte("a"), 0o600), os.Chtimes(path, old, old)))
		if StampOf(path).Recent {
			return
		}
	}
	t.Error("a file that was written just now and has an old time is not recent")
}

// TestStamp: a file is the same only if it was last changed long enough ago and
// looks as it did.
func TestStamp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	none := StampOf(path)
	if !none.Same(StampOf(path)) || !none.Unchanged() {
		t.Error("a file that is not there is not the same")
	}
	write := func(text string, changed time.Time) Stamp {
		t.Helper()
		testkit.OK(t, errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, changed, changed)))
		return settled(path)
	}
	old := time.Now().Add(-time.Hour)
	first := write("a", old)
	if none.Looks(first) || first.Looks(none) || none.Unchanged() {
		t.Error("a new file looks like none")
	}
	if !first.Same(StampOf(path)) || !first.Unchanged() {
		t.Error("an unchanged file is not the same")
	}
	recent := first
	if recent.Recent = true; recent.Same(StampOf(path)) || recent.Unchanged() || !recent.Looks(StampOf(path)) {
		t.Error("a file that was just changed must look the same and not be certain to be")
	}
	if first.Looks(write("ab", old)) || first.Unchanged() {
		t.Error("a longer file looks the same")
	}
	if write("a", old.Add(time.Second)); first.Unchanged() {
		t.Error("a file that was changed later is unchanged")
	}
	second := write("a", old)
	testkit.OK(t, os.Rename(path, path+"2"))
	if write("a", old); second.Unchanged() {
		t.Error("another file with the same size and time is unchanged")
	}
	testkit.OK(t, os.Remove(path))
	if second.Unchanged() {
		t.Error("a file that was removed is unchanged")
	}
}
