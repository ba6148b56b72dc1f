//go:build linux

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReachable: a program behind a folder that only root may enter is not
// reachable for a tool of root's, and the error names the file, the folder and
// the fix.
func TestReachable(t *testing.T) {
	dir, err := os.MkdirTemp("/tmp", "reach")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	at := func(mode os.FileMode, folders ...string) string {
		t.Helper()
		folder := filepath.Join(append([]string{dir}, folders...)...)
		file := filepath.Join(folder, "tool")
		must(t, os.MkdirAll(folder, 0o755), os.WriteFile(file, []byte("#!/bin/sh\n"), mode), os.Chmod(file, mode))
		return file
	}
	open, shut, inner := at(0o755, "open"), at(0o700, "open2"), at(0o755, "closed", "deep")
	link := filepath.Join(dir, "open", "link")
	must(t, os.Chmod(dir, 0o755), os.Chmod(filepath.Join(dir, "closed"), 0o700), os.Symlink(inner, link))
	for path, closed := range map[string]string{open: "", shut: shut, inner: filepath.Join(dir, "closed"), link: filepath.Join(dir, "closed")} {
		got, err := closedTo(path)
		switch {
		case err != nil:
			t.Errorf("closedTo(%s): %v", path, err)
		case closed == "" && got != nil:
			t.Errorf("closedTo(%s) = %v, want nil", path, got)
		case closed != "" && (got == nil || got.Closed != closed || !strings.Contains(got.Error(), closed) || !strings.Contains(got.Error(), got.Path) || !strings.Contains(got.Fix(), closed)):
			t.Errorf("closedTo(%s) = %v, want one that names %s", path, got, closed)
		}
	}
	if err := OpenToAll(open); err != nil {
		t.Errorf("OpenToAll(%s) = %v", open, err)
	}
	if err := OpenToAll(inner); (err != nil) != (os.Getuid() == 0) {
		t.Errorf("OpenToAll(%s) = %v", inner, err)
	}
	if err := Reachable(inner, Off); err != nil {
		t.Errorf("Reachable without a sandbox = %v", err)
	}
	want := os.Getuid() == 0 && probed().Isolation.Profile == Full
	if err := Reachable(inner, RequireLandlock); (err != nil) != want {
		t.Errorf("Reachable(%s) = %v, want an error: %v", inner, err, want)
	}
}
