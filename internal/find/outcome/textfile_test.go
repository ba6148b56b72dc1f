package outcome

import (
	"os"
	"path/filepath"
	"testing"

	"ken/internal/testkit"
)

// TestTextFile: lines are appended, and a file that is too long is renamed first.
func TestTextFile(t *testing.T) {
	l := &TextFile{Path: filepath.Join(t.TempDir(), "logs", "capabilities.log")}
	for _, line := range []string{"one\n", "", "two\n"} {
		if n, err := l.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if text, err := os.ReadFile(l.Path); string(text) != "one\ntwo\n" || err != nil {
		t.Errorf("the file is %q, %v", text, err)
	}
	testkit.OK(t, os.Truncate(l.Path, longestText+1))
	testkit.Must(l.Write([]byte("three\n")))(t)
	if text, err := os.ReadFile(l.Path); string(text) != "three\n" || err != nil {
		t.Errorf("the new file is %q, %v", text, err)
	}
	if old, err := os.Stat(l.Path + ".1"); err != nil || old.Size() != longestText+1 {
		t.Errorf("the old file is %v, %v", old, err)
	}
}
