package packagefiles

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
)

// TestDigest: every file, its name and whether it is executable count, and what
// programs write does not.
func TestDigest(t *testing.T) {
	files := func(change func(fstest.MapFS)) fs.FS {
		m := fstest.MapFS{
			"manifest.json": {Data: []byte("{}"), Mode: 0o644}, "bin/run": {Data: []byte("x"), Mode: 0o755}, "work/out": {Data: []byte("1"), Mode: 0o644},
		}
		change(m)
		return m
	}
	sum := func(change func(fstest.MapFS)) string {
		t.Helper()
		got, err := Digest(files(change))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	base := sum(func(fstest.MapFS) {})
	for name, change := range map[string]func(fstest.MapFS){
		"byte":       func(m fstest.MapFS) { m["bin/run"].Data = []byte("y") },
		"mode":       func(m fstest.MapFS) { m["bin/run"].Mode = 0o644 },
		"new file":   func(m fstest.MapFS) { m["bin/more"] = &fstest.MapFile{Mode: 0o644} },
		"gone":       func(m fstest.MapFS) { delete(m, "bin/run") },
		"moved":      func(m fstest.MapFS) { m["bin/run2"] = m["bin/run"]; delete(m, "bin/run") },
		"inner work": func(m fstest.MapFS) { m["bin/work/x"] = &fstest.MapFile{Mode: 0o644} },
	} {
		if sum(change) == base {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	for name, change := range map[string]func(fstest.MapFS){
		"work":        func(m fstest.MapFS) { m["work/out"].Data = []byte("2"); m["work/more"] = &fstest.MapFile{} },
		"git":         func(m fstest.MapFS) { m[".git/HEAD"] = &fstest.MapFile{} },
		"group write": func(m fstest.MapFS) { m["bin/run"].Mode = 0o775 },
	} {
		if sum(change) != base {
			t.Errorf("%s: the digest is another", name)
		}
	}
	if _, err := Digest(files(func(m fstest.MapFS) { m["link"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("bin/run")} })); err == nil {
		t.Error("a link is no error")
	}
	if _, err := Digest(files(func(m fstest.MapFS) { m["large"] = &fstest.MapFile{Data: make([]byte, MostBytes)} })); err == nil || !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("a large package: %v", err)
	}
}
