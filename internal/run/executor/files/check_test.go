package files

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/executortest"
)

// tree returns everything in a folder, files with their content.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	executortest.Must(t, filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		data, _ := os.ReadFile(name)
		out[name] = string(data)
		return err
	}))
	return out
}

// TestCheck: what must fail is known beforehand, in the words in which it would
// fail, and looking changes nothing.
func TestCheck(t *testing.T) {
	e, ws := open(t, map[string]string{"a.txt": "alpha\n", "b.txt": "beta\n", "two/x": "x", "bin": "\x00\x01", "large": strings.Repeat("x", 600)},
		func(c *Config) { c.MaxFile = 500 })
	if err := os.Symlink("a.txt", filepath.Join(ws, "link")); err != nil {
		t.Skip("cannot here: make a link: ", err)
	}
	if err := os.Link(filepath.Join(ws, "two/x"), filepath.Join(ws, "two/y")); err != nil {
		t.Skip("cannot here: make a second name: ", err)
	}
	write := func(name string, more ...any) capability.Call {
		return call("write_to_file", append([]any{"path", name, "content", "new\n"}, more...)...)
	}
	block := func(old string) string { return "<<<<<<< SEARCH\n" + old + "\n=======\nnew\n>>>>>>> REPLACE\n" }
	patch := func(name, old string, more ...any) capability.Call {
		return call("apply_diff", append([]any{"path", name, "diff", block(old)}, more...)...)
	}
	was := tree(t, ws)
	for name, tt := range map[string]struct {
		call capability.Call
		want string
	}{
		"it exists":              {write("a.txt"), "the file already exists"},
		"it is another":          {write("a.txt", "expect", "0000"), "files.stale"},
		"it is gone":             {write("none.txt", "expect", "0000"), "the file no longer exists"},
		"it is a folder":         {write("two"), "is a folder"},
		"a file is on the way":   {write("a.txt/b"), "not a folder"},
		"a link":                 {write("link"), "files.links"},
		"a second name":          {write("two/x", "expect", hashOf([]byte("x"))), "hard links"},
		"too large to be read":   {write("large", "expect", "0000"), "large"},
		"text that is not there": {patch("a.txt", "gamma"), `line 1 of the file is "alpha"`},
		"no such file":           {patch("none.txt", "alpha"), "not found"},
		"a stale diff":           {patch("a.txt", "alpha", "expect", "0000"), "files.stale"},
		"no text":                {patch("bin", "alpha"), "not UTF-8 text"},
		"a diff of a link":       {patch("link", "alpha"), "files.links"},
		"a new file that is there": {call("apply_diff", "diff", "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n"),
			"the file already exists"},
		"the second of two": {call("apply_diff", "diff", "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-alpha\n+x\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-gamma\n+x\n"),
			`expects "gamma"`},
	} {
		t.Run(name, func(t *testing.T) { executortest.Doomed(t, e, tt.call, tt.want) })
	}
	for _, c := range []capability.Call{
		write("new.txt"), write("deep/er/new.txt"), write("a.txt", "expect", hashOf([]byte("alpha\n"))), patch("a.txt", "alpha"),
		call("read_file", "path", "none.txt"), call("search_files", "path", "none", "regex", "x"),
	} {
		executortest.Unhindered(t, e, c)
	}
	if is := tree(t, ws); !maps.Equal(was, is) {
		t.Errorf("after checks the workspace is %q, want %q", is, was)
	}
	// What a check found good is looked at again.
	good := write("late.txt")
	executortest.Unhindered(t, e, good)
	put(t, ws, map[string]string{"late.txt": "somebody was faster\n"})
	executortest.Doomed(t, e, good, "the file already exists")
}

// TestCheckWaitsForNobody: another call that writes does not hold up a check.
func TestCheckWaitsForNobody(t *testing.T) {
	e, _ := open(t, map[string]string{"a.txt": "alpha\n"}, nil)
	e.writing.Lock()
	defer e.writing.Unlock()
	if _, err := e.Check(t.Context(), call("write_to_file", "path", "a.txt", "content", "x")); capability.KindOf(err) != capability.Conflict || err == nil {
		t.Errorf("Check() = %v, want that it exists", err)
	}
}
