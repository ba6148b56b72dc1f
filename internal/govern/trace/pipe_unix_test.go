//go:build unix

package trace

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFileLink: a folder that is a link to elsewhere is not written to.
func TestFileLink(t *testing.T) {
	workspace, elsewhere := t.TempDir(), t.TempDir()
	dir := filepath.Join(workspace, ".orchestration")
	if err := os.Symlink(elsewhere, dir); err != nil {
		t.Fatal(err)
	}
	f := NewFile(dir)
	if err := f.Append(&Call{}); err == nil || f.Lost() != 1 {
		t.Errorf("Append() through a link out of the workspace = %v, %d lost, want an error and 1", err, f.Lost())
	}
	if files, _ := os.ReadDir(elsewhere); len(files) > 0 {
		t.Errorf("%s has %v, want nothing", elsewhere, files)
	}
}

// TestFilePipe: a pipe in the place of the file is not waited for, with and
// without a reader.
func TestFilePipe(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, FileName)
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip("cannot here: ", err)
	}
	f := NewFile(dir)
	if err := f.Append(&Call{}); err == nil {
		t.Error("Append() into a pipe without a reader = nil")
	}
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if err := f.Append(&Call{}); err == nil {
		t.Error("Append() into a pipe with a reader = nil")
	}
	if f.Lost() != 2 {
		t.Errorf("Lost() = %d, want 2", f.Lost())
	}
}
