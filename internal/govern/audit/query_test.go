package audit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestKeys: a key is made once, by the first caller, and refused if other users can
// read it.
func TestKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys", "audit.key")
	made := make(chan Key)
	for range 4 {
		go func() {
			k, err := LoadKey(path)
			if err != nil {
				t.Error(err)
			}
			made <- k
		}()
	}
	first := <-made
	for range 3 {
		if k := <-made; k.Public() != first.Public() || k.Digest([]byte("x")) != first.Digest([]byte("x")) {
			t.Errorf("two keys: %s and %s", first.Public(), k.Public())
		}
	}
	if got := strings.TrimSpace(string(mustRead(t, path+".pub"))); got != first.Public() {
		t.Errorf("%s.pub = %q, want %q", path, got, first.Public())
	}
	if first.Digest([]byte("x")) == testKey(t).Digest([]byte("x")) {
		t.Error("digests do not depend on the key")
	}
	testkit.OK(t, os.Chmod(path, 0o644))
	if _, err := LoadKey(path); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("LoadKey of a key that all can read = %v, want the fix", err)
	}
	mustWrite(t, path+"2", []byte("rubbish"))
	if _, err := LoadKey(path + "2"); err == nil {
		t.Error("LoadKey of rubbish = nil error")
	}
	if _, err := NewKey(nil); err == nil {
		t.Error("NewKey(nil) = nil error")
	}
	if _, err := Verify(t.TempDir(), t.TempDir(), ""); err == nil {
		t.Error("Verify without a key = nil error")
	}
}
