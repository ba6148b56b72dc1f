package source

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ken/internal/know/source/safefs"
	"ken/internal/testkit/sourcetest"
)

// TestLookDistrustsFreshFiles: a file that was written a moment ago can be
// written again without its time moving.
func TestLookDistrustsFreshFiles(t *testing.T) {
	now := time.Now()
	tests := []struct {
		name    string
		changed time.Time
		want    bool
	}{
		{"just now", now, true},
		{"a moment ago", now.Add(-10 * time.Millisecond), true},
		{"a while ago", now.Add(-30 * time.Millisecond), false},
		{"in this second, without finer times", now.Truncate(time.Second), true},
		{"some seconds ago, without finer times", now.Truncate(time.Second).Add(-3 * time.Second), false},
		{"in the future", now.Add(time.Hour), false},
	}
	for _, tt := range tests {
		if got := isRecent(tt.changed, now); got != tt.want {
			t.Errorf("%s: isRecent(%v, %v) = %t, want %t", tt.name, tt.changed, now, got, tt.want)
		}
	}
}

func TestLookTellsChanges(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	put := func(name, text string) {
		t.Helper()
		must(t, os.Chtimes(sourcetest.Write(t, dir, name, text), old, old))
	}
	put("s/SKILL.md", "text")
	put("s/a/b/c.py", "print()")
	put("s/a/empty.md", "")
	r, err := safefs.Open(dir, "", false)
	must(t, err)
	defer r.Close()
	before := lookAt(r, "s", nil)
	if !before.sameAs(lookAt(r, "s", nil)) || !slices.Equal(before.empty, []string{"s/a/empty.md"}) || len(before.files) != 1 {
		t.Fatalf("look = %+v, want one full and one empty document, and the same again", before)
	}
	changes := map[string]func(){
		"a file of the same size and time, exchanged": func() {
			put("s/x", "PRINT()")
			must(t, os.Rename(filepath.Join(dir, "s/x"), filepath.Join(dir, "s/a/b/c.py")))
		},
		"another file":        func() { put("s/a/b/d.py", "") },
		"permissions":         func() { must(t, os.Chmod(filepath.Join(dir, "s/SKILL.md"), 0o600)) },
		"a file taken out":    func() { must(t, os.Remove(filepath.Join(dir, "s/SKILL.md"))) },
		"a file that emptied": func() { put("s/SKILL.md", "") },
	}
	for name, change := range changes {
		put("s/SKILL.md", "text")
		before := lookAt(r, "s", nil)
		change()
		if before.sameAs(lookAt(r, "s", nil)) {
			t.Errorf("%s: the look is the same", name)
		}
	}
	put("s/SKILL.md", "text")
	before = lookAt(r, "s", nil)
	put("s/SKILL.md", "")
	if emptied, gone := lookAt(r, "s", nil).lost(before); emptied != "s/SKILL.md" || gone {
		t.Errorf("lost = %q, %t, want the emptied file", emptied, gone)
	}
	must(t, os.Remove(filepath.Join(dir, "s/SKILL.md")))
	if emptied, gone := lookAt(r, "s", nil).lost(before); emptied != "" || !gone {
		t.Errorf("lost = %q, %t, want a file that is gone", emptied, gone)
	}
}

// TestTrail follows links through a tree.
func TestTrail(t *testing.T) {
	dir := t.TempDir()
	sourcetest.Write(t, dir, "v1/text", "")
	for name, target := range map[string]string{
		"current": "v1", "cards": "v1", "a": "current/text", "b": "./a", "c": "v1/../current/./text",
		"loop": "loop2", "loop2": "loop", "out": "../elsewhere", "abs": "/etc/hostname", "none": "v1/none",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	r, err := safefs.Open(dir, "", false)
	must(t, err)
	defer r.Close()
	tests := []struct {
		p    string
		want []string
	}{
		{"a", []string{"current", "v1/text"}},
		{"b", []string{"a", "current", "v1/text"}},
		{"c", []string{"current", "v1/text"}},
		{"none", []string{"v1/none"}},
		{"abs", nil},
		{"out", nil},
	}
	for _, tt := range tests {
		if got := r.Trail(tt.p); !slices.Equal(got, tt.want) {
			t.Errorf("trail(%s) = %v, want %v", tt.p, got, tt.want)
		}
	}
	if got := r.Trail("loop"); len(got) > 50 {
		t.Errorf("trail(loop) has %d paths, want an end", len(got))
	}
}
