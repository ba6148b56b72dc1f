package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/internal/dirs"
)

// TestAdopt: the keys that are asked for come with where they were said, the
// others stay, and neither configuration is changed.
func TestAdopt(t *testing.T) {
	read := func(text string) Config {
		t.Helper()
		file := filepath.Join(t.TempDir(), "ken.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(dirs.Places{Home: filepath.Dir(file), Workspace: t.TempDir()}, file)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := read("model: openai/a\nstore: postgres://u@h/one\nlimits:\n  queue: 7\n")
	after := read("discovery:\n  tier1TopK: 9\n\nmodel: openai/b\nstore: postgres://u@h/two\npolicy:\n  askAbove: 3\n")
	got := before.Adopt(after, func(key string) bool { return key != "store" })

	for key, want := range map[string]string{"model": "openai/b", "store": "postgres://u@h/one", "discovery.tier1TopK": "9", "limits.queue": "4096", "policy.askAbove": "3"} {
		if value, _, err := got.Explain(key); value != want || err != nil {
			t.Errorf("Explain(%q) = %q, %v, want %q", key, value, err, want)
		}
	}
	for key, want := range map[string]string{"model": after.Files()[0] + ":4", "store": before.Files()[0] + ":2", "limits.queue": "default"} {
		if _, origin, _ := got.Explain(key); origin != want {
			t.Errorf("Explain(%q) says it comes from %q, want %q", key, origin, want)
		}
	}
	if value, origin, _ := before.Explain("model"); value != "openai/a" || !strings.HasSuffix(origin, ":1") {
		t.Errorf("the configuration before has the model %s from %s, want what its file says", value, origin)
	}
}
