package backups

import (
	"os"
	"path/filepath"
	"testing"
)

// TestReplace: a folder that cannot be put in its place leaves what was there.
func TestReplace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "home")
	file := filepath.Join(dir, "ken.yaml")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := replace(dir, filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("replace with a folder that does not exist succeeds")
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("after a failure: %v", err)
	}
	from := filepath.Join(filepath.Dir(dir), "new")
	if err := os.Mkdir(from, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := replace(dir, from); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(before(dir), "ken.yaml")); err != nil {
		t.Errorf("what was there is not kept: %v", err)
	}
}
