package wholefile

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestStamp: a file is the same only if it was last changed long enough ago and
// looks as it did.
func TestStamp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	none := StampOf(path)
	if !none.Same(StampOf(path)) {
		t.Error("a file that is not there is not the same")
	}
	write := func(text string, changed time.Time) Stamp {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, changed, changed); err != nil {
			t.Fatal(err)
		}
		return StampOf(path)
	}
	old := time.Now().Add(-time.Hour)
	first := write("a", old)
	if none.Looks(first) || first.Looks(none) {
		t.Error("a new file looks like none")
	}
	if !first.Same(StampOf(path)) {
		t.Error("an unchanged file is not the same")
	}
	recent := first
	if recent.Recent = true; recent.Same(StampOf(path)) || !recent.Looks(StampOf(path)) {
		t.Error("a file that was just changed must look the same and not be certain to be")
	}
	if first.Looks(write("ab", old)) {
		t.Error("a longer file looks the same")
	}
}
