package secret_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"ken/internal/secret"
	"ken/internal/testkit"
)

// TestLoadOrCreateKey: a key stays the same, and a broken file is replaced.
func TestLoadOrCreateKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "fence.key")
	key := secret.LoadOrCreateKey(path)
	if len(key) != 32 || !bytes.Equal(secret.LoadOrCreateKey(path), key) {
		t.Errorf("the key is %x, and then another", key)
	}
	testkit.OK(t, os.WriteFile(path, key[:16], 0o600))
	again := secret.LoadOrCreateKey(path)
	if len(again) != 32 || !bytes.Equal(secret.LoadOrCreateKey(path), again) {
		t.Errorf("after half a key: %x, and then another", again)
	}
	if at, err := os.Stat(path); err != nil || at.Mode().Perm() != 0o600 {
		t.Errorf("the file has the mode %v, %v", at.Mode(), err)
	}
	nowhere := filepath.Join(path, "below a file")
	if a, b := secret.LoadOrCreateKey(nowhere), secret.LoadOrCreateKey(nowhere); len(a) != 32 || bytes.Equal(a, b) {
		t.Errorf("a key that cannot be kept is %x twice", a)
	}
}
