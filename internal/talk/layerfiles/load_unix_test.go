//go:build unix

package layerfiles_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ken/internal/talk/layerfiles"
	"ken/internal/talk/prompt"
)

// TestLoadPipe: loading does not wait for the other end of a pipe.
func TestLoadPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, prompt.AgentsFile), 0o644); err != nil {
		t.Fatal(err)
	}
	got, notices := layerfiles.Load(prompt.On{}, layerfiles.Folder{Dir: dir})
	if len(got) != 1 || len(notices) != 1 || !strings.Contains(notices[0].Text, "no regular file") {
		t.Errorf("Load = %d layers, %v", len(got), notices)
	}
}
