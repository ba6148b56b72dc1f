package preview

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
)

func call(t *testing.T, target string, arguments map[string]string) capability.Call {
	t.Helper()
	text, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return capability.Call{Target: capability.ID(target), Arguments: text}
}

// TestChange: a person sees what a call would change in a file.
func TestChange(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("list.txt", "milk\nbread\ntea\napples\n")
	write("long.txt", strings.Repeat("same\n", 20)+"old\n"+strings.Repeat("same\n", 20))
	write("binary", "a\x00b")
	write("large.txt", strings.Repeat("x", mostFile+1))
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Skip("no symbolic links here")
	}
	const search = "<<<<<<< SEARCH\ntea\n=======\ncoffee\n>>>>>>> REPLACE\n"
	for _, c := range []struct {
		name, target string
		arguments    map[string]string
		want         string
	}{
		{"a line of a file", "tool:write_to_file", map[string]string{"path": "list.txt", "content": "milk\nbread\ncoffee\napples\n"},
			"--- list.txt\n+++ list.txt\n@@ -1,4 +1,4 @@\n milk\n bread\n-tea\n+coffee\n apples\n"},
		{"only what is near", "tool:write_to_file", map[string]string{"path": filepath.Join(dir, "long.txt"), "content": strings.Repeat("same\n", 20) + "new\n" + strings.Repeat("same\n", 20)},
			"--- " + filepath.Join(dir, "long.txt") + "\n+++ " + filepath.Join(dir, "long.txt") + "\n@@ -18,7 +18,7 @@\n same\n same\n same\n-old\n+new\n same\n same\n same\n"},
		{"a new file", "tool:write_to_file", map[string]string{"path": "new.txt", "content": "one\ntwo"},
			"--- /dev/null\n+++ new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n"},
		{"nothing", "tool:write_to_file", map[string]string{"path": "list.txt", "content": "milk\nbread\ntea\napples\n"}, "--- list.txt\n+++ list.txt\nNo change\n"},
		{"search and replace", "tool:apply_diff", map[string]string{"path": "list.txt", "diff": search}, search},
		{"a unified diff", "tool:apply_diff", map[string]string{"diff": "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"}, "--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n"},
		{"a link out of the workspace", "tool:write_to_file", map[string]string{"path": "link", "content": "x"}, ""},
		{"outside", "tool:write_to_file", map[string]string{"path": outside, "content": "x"}, ""},
		{"binary", "tool:write_to_file", map[string]string{"path": "binary", "content": "x"}, ""},
		{"too large", "tool:write_to_file", map[string]string{"path": "large.txt", "content": "x"}, ""},
		{"another tool", "tool:shell", map[string]string{"path": "list.txt", "content": "x"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Change(dir, call(t, c.target, c.arguments)); got != c.want {
				t.Errorf("Change =\n%q\nwant\n%q", got, c.want)
			}
		})
	}
	if got := Change(dir, capability.Call{Target: "tool:write_to_file", Arguments: json.RawMessage(`[1]`)}); got != "" {
		t.Errorf("Change of arguments that are no object = %q", got)
	}
}

// FuzzDiff: the lines of a diff of whole texts give back both texts.
func FuzzDiff(f *testing.F) {
	f.Add("a\nb\nc\n", "a\nx\nc\n")
	f.Add("", "a")
	f.Add("a\n\na", "a\n")
	f.Fuzz(func(t *testing.T, old, now string) {
		if !text(old) || !text(now) || len(old)+len(now) > 4000 {
			t.Skip()
		}
		var was, is strings.Builder
		for _, e := range compare(split(old), split(now)) {
			if e.sign != "+" {
				was.WriteString(e.line)
			}
			if e.sign != "-" {
				is.WriteString(e.line)
			}
		}
		if was.String() != old || is.String() != now {
			t.Errorf("compare(%q, %q) gives %q and %q", old, now, was.String(), is.String())
		}
		Diff("f", old, now, true)
	})
}
