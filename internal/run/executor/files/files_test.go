package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/sandbox"
	"ken/internal/testkit/executortest"
)

func TestMain(m *testing.M) {
	sandbox.Helper()
	os.Exit(m.Run())
}

func TestAsNobody(t *testing.T) { executortest.AsNobody(t, 20) }

// open makes an executor over a workspace with some files; a name that ends
// with a slash is a folder.
func open(t *testing.T, content map[string]string, change func(*Config)) (*Executor, string) {
	t.Helper()
	ws := filepath.Join(executortest.Dir(t), "workspace")
	executortest.Must(t, os.Mkdir(ws, 0o755))
	put(t, ws, content)
	cfg := Config{Workspace: ws}
	if change != nil {
		change(&cfg)
	}
	e, err := New(cfg)
	executortest.Must(t, err)
	t.Cleanup(func() { e.Close() })
	return e, ws
}

func put(t *testing.T, dir string, content map[string]string) {
	t.Helper()
	for name, text := range content {
		p := filepath.Join(dir, name)
		executortest.Must(t, os.MkdirAll(filepath.Dir(p), 0o755))
		if strings.HasSuffix(name, "/") {
			continue
		}
		executortest.Must(t, os.WriteFile(p, []byte(text), 0o644))
	}
}

func call(tool string, more ...any) capability.Call {
	args := map[string]any{}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i].(string)] = more[i+1]
	}
	return executortest.Call("tool:"+tool, args)
}

func invoke(t *testing.T, e *Executor, c capability.Call) (map[string]any, string, capability.Result) {
	t.Helper()
	r, err := e.Invoke(t.Context(), c)
	if err != nil {
		t.Fatalf("Invoke(%s %.200s) = %v, want a result", c.Target, c.Arguments, err)
	}
	var about map[string]any
	for _, p := range r.Parts {
		if p.JSON != nil {
			executortest.Must(t, json.Unmarshal(p.JSON, &about))
		}
	}
	return about, executortest.Text(r, ""), r
}

// gives wants a call to give a text.
func gives(t *testing.T, e *Executor, c capability.Call, want string) {
	t.Helper()
	if _, text, _ := invoke(t, e, c); text != want {
		t.Errorf("Invoke(%s %s) = %q, want %q", c.Target, c.Arguments, text, want)
	}
}

func wantFile(t *testing.T, dir, name, want string) {
	t.Helper()
	executortest.File(t, filepath.Join(dir, name), want)
}

// TestChecklist is S5.54 for the file tools.
func TestChecklist(t *testing.T) {
	executortest.Nine{
		ValidateInputs: func(t *testing.T) {
			e, ws := open(t, map[string]string{"a": "text"}, nil)
			for _, tt := range []struct{ tool, args, want string }{
				{"read_file", `{}`, "path is empty"}, {"read_file", `{"path":1}`, "argument path is number, want a string"}, {"read_file", `{"Path":"a"}`, `unknown argument "Path"`},
				{"read_file", `{"path":"a","path":"b"}`, "duplicate"}, {"read_file", `{"path":"a","offset":0}`, "at least 1"}, {"read_file", `{"path":"a","byte":1,"offset":1}`, "one of them"},
				{"read_file", `{"path":"a\u0000"}`, "control character"}, {"read_file", `{"path":"a\\b"}`, "backslash"}, {"read_file", "{\"path\":\"\xff\"}", "UTF-8"},
				{"write_to_file", `{"path":"b"}`, "content is missing"}, {"write_to_file", `{"path":".","content":""}`, "folder"}, {"write_to_file", `{"path":"x/","content":""}`, "folder"},
				{"write_to_file", `{"path":".ken-write-a","content":""}`, "another name"},
				{"apply_diff", `{"path":"a","diff":"nonsense"}`, "line 1 of the diff"}, {"apply_diff", `{"diff":"@@ -1 +1 @@\n-text\n+b"}`, "missing path"},
				{"list_files", `{"limit":0}`, "at least 1"}, {"search_files", `{"regex":"("}`, "RE2"}, {"search_files", `{"regex":""}`, "empty"},
				{"search_files", `{"regex":"a","after":"x"}`, "invalid value of after"}, {"search_files", `{"regex":"a","file_pattern":"[a"}`, "file_pattern"},
			} {
				executortest.Refused(t, e, executortest.Call("tool:"+tt.tool, tt.args), capability.Invalid, tt.want)
			}
			if entries, err := os.ReadDir(ws); err != nil || len(entries) != 1 {
				t.Errorf("refused calls left %v, %v", entries, err)
			}
			executortest.Refused(t, e, executortest.Call("tool:remove_file", `{}`), capability.NotFound, "not one of the file tools")
		},
		WorkDirBounds: testBounds,
		EnvFilter: func(t *testing.T) {
			// In-process: nothing of the environment is put into a name.
			t.Setenv("SECRET_DIR", "/etc")
			e, ws := open(t, map[string]string{"$SECRET_DIR/passwd": "literal", "~/x": "home"}, nil)
			for name, want := range map[string]string{"$SECRET_DIR/passwd": "literal", "./~/x": "home"} {
				gives(t, e, call("read_file", "path", name), want)
			}
			// Rules read ~ as the home directory, so it is not taken literally either.
			executortest.Refused(t, e, call("read_file", "path", "~/x"), capability.Invalid, "~ is not expanded to the home directory")
			invoke(t, e, call("write_to_file", "path", "${HOME}", "content", "x"))
			wantFile(t, ws, "${HOME}", "x")
		},
		Timeout: func(t *testing.T) {
			e, ws := open(t, map[string]string{"a": "text\n", "b/c": "text\n"}, nil)
			ctx, cancel := context.WithTimeout(t.Context(), -time.Second)
			defer cancel()
			for _, c := range []capability.Call{
				call("read_file", "path", "a"), call("list_files"), call("search_files", "regex", "t"),
				call("write_to_file", "path", "new", "content", "x"), call("apply_diff", "path", "a", "diff", "@@\n-text\n+x\n"),
			} {
				if _, err := e.Invoke(ctx, c); capability.KindOf(err) != capability.Timeout {
					t.Errorf("Invoke(%s) after its time = %v, want timeout", c.Target, err)
				}
			}
			wantFile(t, ws, "a", "text\n")
		},
		OutputLimit: testLimits,
		Log: func(t *testing.T) {
			e, _ := open(t, map[string]string{"a": "text\n"}, nil)
			_, _, r := invoke(t, e, call("read_file", "path", "a"))
			if r.Meta["tool"] != "read_file" || r.Meta["truncated"] != "false" || !strings.Contains(r.Meta["isolation"], "in-process") {
				t.Errorf("Meta = %v", r.Meta)
			}
		},
		SecureErrors: func(t *testing.T) {
			e, ws := open(t, map[string]string{"a": "hunter2secret\n", "d/": ""}, nil)
			executortest.Must(t, os.Symlink("/etc", filepath.Join(ws, "out")))
			for _, c := range []capability.Call{
				call("read_file", "path", "none"), call("read_file", "path", "d"), call("read_file", "path", "out/passwd"), call("read_file", "path", "/etc/hunter2secret"),
				call("write_to_file", "path", "a", "content", "hunter2secret"), call("write_to_file", "path", "a/b", "content", "hunter2secret"), call("apply_diff", "diff", "hunter2secret"),
			} {
				r, err := e.Invoke(t.Context(), c)
				said := fmt.Sprint(err, executortest.Text(r, ""))
				if err == nil && !r.Failed || strings.Contains(said, filepath.Dir(ws)) || strings.Contains(said, "hunter2secret") {
					t.Errorf("Invoke(%s %s) said %q, want a failure without folders above and contents", c.Target, c.Arguments, said)
				}
			}
		},
		MaliciousInputs: testSpecialFiles,
		PermissionReview: func(t *testing.T) {
			e, _ := open(t, map[string]string{"AGENTS.md": "x\n"}, nil)
			for _, tt := range []struct {
				c        capability.Call
				paths    []executor.Path
				required []string
				destroys bool
			}{
				{call("read_file", "path", "./a//b"), []executor.Path{{Name: "a/b"}}, []string{"filesystem.read"}, false},
				{call("write_to_file", "path", "AGENTS.md", "content", ""), []executor.Path{{Name: "AGENTS.md", Write: true}}, []string{"filesystem.read", "filesystem.write"}, false},
				{call("list_files"), []executor.Path{{Name: "."}}, []string{"filesystem.read"}, false},
				{call("search_files", "regex", "x", "path", "src"), []executor.Path{{Name: "src"}}, []string{"filesystem.read"}, false},
				{call("apply_diff", "diff", "--- a/x\n+++ b/x\n@@\n-a\n+b\n--- a/.git/hooks/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n"), // every file of a patch (S3.U05)
					[]executor.Path{{Name: "x", Write: true}, {Name: ".git/hooks/y", Write: true}}, []string{"filesystem.read", "filesystem.write"}, true},
			} {
				f, err := e.Facts(t.Context(), tt.c, nil)
				if err != nil || !slices.Equal(f.Paths, tt.paths) || !slices.Equal(f.Required, tt.required) || f.Destructive != tt.destroys {
					t.Errorf("Facts(%s %s) = %+v, %v, want %v, %v, %v", tt.c.Target, tt.c.Arguments, f, err, tt.paths, tt.required, tt.destroys)
				}
			}
			for _, tool := range Tools() {
				if len(tool.Capability.Permissions) == 0 || !json.Valid(tool.Detail.Schema) {
					t.Errorf("%s declares %v and the schema %s", tool.Capability.Name, tool.Capability.Permissions, tool.Detail.Schema)
				}
			}
		},
	}.Run(t)
}

// testBounds: nothing outside the scopes is read or written, whatever the name
// (S5.32–36); reading and writing are scopes of their own.
func testBounds(t *testing.T) {
	var extra, lib string
	e, ws := open(t, map[string]string{"a..b": "dots", "in/x": "inside", "ro/y": "read"}, func(c *Config) {
		extra, lib = executortest.Dir(t), executortest.Dir(t)
		c.Write, c.Read = []string{extra}, []string{lib, filepath.Join(c.Workspace, "ro")}
	})
	put(t, filepath.Dir(ws), map[string]string{"secret": "TOPSECRET", "workspace-other/s": "TOPSECRET"})
	put(t, lib, map[string]string{"l": "lib"})
	for link, to := range map[string]string{"up": "..", "abs": "/etc/passwd", "f": "in/x", "dir": "in", "dead": "nowhere"} {
		executortest.Must(t, os.Symlink(to, filepath.Join(ws, link)))
	}
	for _, name := range []string{"../secret", "in/../../secret", "..", ws + "/../secret"} {
		executortest.Refused(t, e, call("read_file", "path", name), capability.Denied, "Path traversal detected")
		executortest.Refused(t, e, call("write_to_file", "path", name, "content", "x"), capability.Denied, "Path traversal detected")
	}
	for _, name := range []string{"/etc/passwd", ws + "-other/s", filepath.Dir(ws) + "/secret", "/"} {
		executortest.Refused(t, e, call("read_file", "path", name), capability.Denied, "outside the workspace")
		executortest.Refused(t, e, call("list_files", "path", name), capability.Denied, "outside the workspace")
	}
	for name, fix := range map[string]string{"up/secret": "outside", "abs": "outside", "f": "name in/x itself", "dir/x": "name in itself", "dead": "name nowhere itself"} {
		for _, c := range []capability.Call{call("read_file", "path", name), call("write_to_file", "path", name, "content", "x"), call("apply_diff", "path", name, "diff", "@@\n-a\n+b\n")} {
			if r, err := e.Invoke(t.Context(), c); capability.KindOf(err) != capability.Denied || err == nil || !strings.Contains(err.Error(), fix) {
				t.Errorf("Invoke(%s %s) = %+v, %v, want denied with %q", c.Target, name, r, err, fix)
			}
		}
	}
	wantFile(t, filepath.Dir(ws), "secret", "TOPSECRET")
	wantFile(t, ws, "in/x", "inside")

	// The positive controls, and the two scopes.
	for name, want := range map[string]string{"a..b": "dots", "in/x": "inside", ws + "/in/x": "inside", lib + "/l": "lib", "ro/y": "read"} {
		gives(t, e, call("read_file", "path", name), want)
	}
	invoke(t, e, call("write_to_file", "path", extra+"/new/w", "content", "w"))
	wantFile(t, extra, "new/w", "w")
	for _, name := range []string{lib + "/new", "ro/new", ws + "/ro/new"} {
		executortest.Refused(t, e, call("write_to_file", "path", name, "content", "x"), capability.Denied, "read-only")
	}
	e, _ = open(t, nil, func(c *Config) { c.ReadOnly = true })
	executortest.Refused(t, e, call("write_to_file", "path", "x", "content", "x"), capability.Denied, "read-only")
}

// TestRace: a folder that turns into a link and back never lets a call out.
func TestRace(t *testing.T) {
	e, ws := open(t, map[string]string{"real/f": "inside"}, nil)
	outside := executortest.Dir(t)
	put(t, outside, map[string]string{"f": "TOPSECRET"})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			os.Symlink(outside, filepath.Join(ws, "d"))
			os.Remove(filepath.Join(ws, "d"))
			os.Rename(filepath.Join(ws, "real"), filepath.Join(ws, "d"))
			os.Rename(filepath.Join(ws, "d"), filepath.Join(ws, "real"))
		}
	})
	for i := range 200 {
		if r, err := e.Invoke(t.Context(), call("read_file", "path", "d/f")); err == nil && strings.Contains(executortest.Text(r, ""), "TOPSECRET") {
			t.Fatal("a file outside was read")
		}
		e.Invoke(t.Context(), call("write_to_file", "path", fmt.Sprintf("d/new%d", i), "content", "x"))
	}
	close(stop)
	wg.Wait()
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside there are %v, %v, want f alone", entries, err)
	}
}

// testLimits: results are bounded, say so, and can be gone on with.
func testLimits(t *testing.T) {
	var long strings.Builder
	for i := range 300 {
		fmt.Fprintf(&long, "line %d äöü\n", i+1)
	}
	e, ws := open(t, map[string]string{"long": long.String(), "wide": strings.Repeat("ä", 2500), "no-end": "a\nb", "empty": ""}, func(c *Config) { c.MaxChars, c.MaxFile = 1000, 64<<10 })
	for _, name := range []string{"long", "wide", "no-end", "empty"} {
		var all strings.Builder
		next := any(nil)
		for range 20 {
			c := call("read_file", "path", name)
			if next != nil {
				c = call("read_file", "path", name, "byte", next)
			}
			about, text, r := invoke(t, e, c)
			all.WriteString(text)
			if n := len([]rune(text)); n > 1000 || (about["nextByte"] != nil) != (r.Meta["truncated"] == "true") {
				t.Fatalf("read_file(%s) gave %d characters and %v", name, n, about)
			}
			if next = about["nextByte"]; next == nil {
				break
			}
		}
		wantFile(t, ws, name, all.String())
	}
	about, text, _ := invoke(t, e, call("read_file", "path", "long", "offset", 100, "limit", 2))
	if text != "line 100 äöü\nline 101 äöü\n" || about["from"] != 100.0 || about["to"] != 101.0 || about["lines"] != 300.0 {
		t.Errorf("lines 100 and 101 are %q, %v", text, about)
	}
	if _, text, r := invoke(t, e, call("read_file", "path", "long", "offset", 301)); !r.Failed || !strings.Contains(text, "only 300 lines") {
		t.Errorf("line 301 is %q", text)
	}
	// A large file can be read in part, and not be changed.
	put(t, ws, map[string]string{"big": strings.Repeat("0123456789abcde\n", 10_000)})
	about, text, _ = invoke(t, e, call("read_file", "path", "big", "offset", 9999, "limit", 1))
	if text != "0123456789abcde\n" || about["hash"] != nil || about["nextByte"] != 159984.0 {
		t.Errorf("a line of a big file is %q, %v", text, about)
	}
	if _, text, r := invoke(t, e, call("apply_diff", "path", "big", "diff", "@@\n-a\n+b\n")); !r.Failed || !strings.Contains(text, "larger than") {
		t.Errorf("a change to a big file gave %q", text)
	}

	// Lists and searches.
	many := map[string]string{}
	for i := range 60 {
		many[fmt.Sprintf("m/d%02d/f.txt", i)] = "needle\nhay\nneedle\n"
	}
	put(t, ws, many)
	for _, tt := range []struct {
		tool string
		args []any
		want int
	}{{"list_files", []any{"path", "m", "recursive", true, "limit", 7}, 120}, {"search_files", []any{"path", "m", "regex", "^needle$", "limit", 7}, 120}} {
		lines, next, calls := []string{}, any(nil), 0
		for calls < 40 {
			args := tt.args
			if next != nil {
				args = append(slices.Clone(args), "after", next)
			}
			about, text, _ := invoke(t, e, call(tt.tool, args...))
			lines = append(lines, slices.Collect(strings.Lines(text))...)
			calls++
			if next = about["next"]; next == nil {
				break
			}
		}
		sorted := slices.Compact(slices.Sorted(slices.Values(lines)))
		if len(lines) != tt.want || len(sorted) != tt.want || calls < 17 {
			t.Errorf("%s in parts gave %d lines, %d of them different, in %d calls, want %d", tt.tool, len(lines), len(sorted), calls, tt.want)
		}
	}
}

// testSpecialFiles: pipes, devices, hard links, binary files and odd names
// block no call and reveal nothing.
func testSpecialFiles(t *testing.T) {
	e, ws := open(t, map[string]string{"bin": "a\x00b", "utf16": "\xff\xfea\x00", "latin": "caf\xe9\n", "ok": "fine\n", "new\nline\x1b[31m": "odd\n"}, nil)
	fifo(t, filepath.Join(ws, "pipe"))
	outside := filepath.Join(filepath.Dir(ws), "outside")
	put(t, filepath.Dir(ws), map[string]string{"outside": "TOPSECRET\n"})
	executortest.Must(t, os.Link(outside, filepath.Join(ws, "hard")))
	for name, want := range map[string]string{"pipe": "is a pipe", "hard": "hard links", "bin": "a binary file of 3 bytes", "utf16": "UTF-16", "none": "not found", ".": "folder"} {
		if _, text, r := invoke(t, e, call("read_file", "path", name)); !r.Failed || !strings.Contains(text, want) {
			t.Errorf("read_file(%s) = %q, want a failure with %q", name, text, want)
		}
	}
	for _, name := range []string{"pipe", "hard", "bin", "latin"} {
		r, err := e.Invoke(t.Context(), call("apply_diff", "path", name, "diff", "@@\n-a\n+b\n"))
		if err == nil && !r.Failed {
			t.Errorf("apply_diff(%s) changed something", name)
		}
		if _, err := e.Invoke(t.Context(), call("write_to_file", "path", name, "content", "pwned")); name == "latin" && capability.KindOf(err) != capability.Conflict {
			t.Errorf("write_to_file(%s) = %v, want conflict", name, err)
		}
	}
	wantFile(t, filepath.Dir(ws), "outside", "TOPSECRET\n")
	about, text, _ := invoke(t, e, call("read_file", "path", "latin"))
	if text != "caf\uFFFD\n" || about["lossy"] != true {
		t.Errorf("a Latin-1 file is %q, %v", text, about)
	}
	about, text, _ = invoke(t, e, call("search_files", "regex", "TOPSECRET|fine|odd"))
	if strings.Contains(text, "TOPSECRET") || !strings.Contains(text, "ok:1: fine\n") || strings.Contains(text, "\x1b") || about["special"] != 2.0 || about["binary"] != 2.0 {
		t.Errorf("search_files = %q, %v", text, about)
	}
	if _, text, _ = invoke(t, e, call("list_files")); strings.Contains(text, "\x1b") || !strings.Contains(text, "pipe (a pipe)\n") || !strings.Contains(text, `"new\nline\x1b[31m"`) {
		t.Errorf("list_files = %q", text)
	}
	e, _ = open(t, nil, func(c *Config) { c.HardLinks = true; c.Workspace = ws })
	gives(t, e, call("read_file", "path", "hard"), "TOPSECRET\n")
}

// TestStale: a file that changed since it was read is not overwritten. TestCheck has
// the refusals.
func TestStale(t *testing.T) {
	e, ws := open(t, map[string]string{"a": "one\n"}, nil)
	executortest.Must(t, os.Chmod(filepath.Join(ws, "a"), 0o750))
	about, _, _ := invoke(t, e, call("read_file", "path", "a"))
	for _, text := range []string{"two\n", "three\n"} { // what writing gave is good too
		about, _, _ = invoke(t, e, call("write_to_file", "path", "a", "content", text, "expect", about["hash"]))
		wantFile(t, ws, "a", text)
	}
	if info, err := os.Stat(filepath.Join(ws, "a")); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("after writing the mode is %v, %v, want 0750", info.Mode(), err)
	}

	// Of many that saw the same file, one wins.
	wins, mu := 0, sync.Mutex{}
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			_, err := e.Invoke(context.Background(), call("write_to_file", "path", "a", "content", fmt.Sprint(i), "expect", about["hash"]))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				wins++
			} else if capability.KindOf(err) != capability.Conflict {
				t.Errorf("a write that lost: %v, want conflict", err)
			}
		})
	}
	wg.Wait()
	if wins != 1 {
		t.Errorf("%d of 16 writes went through, want 1", wins)
	}
	if entries, err := os.ReadDir(ws); err != nil || len(entries) != 1 {
		t.Errorf("the workspace holds %v, %v, want a alone", entries, err)
	}
}

// guarded is a rule that one file holds secrets.
type guarded struct{ name string }

func (g guarded) Secret(name string) bool                { return filepath.Base(name) == g.name }
func (guarded) Protected(string) bool                    { return false }
func (guarded) SecretWhole(string) bool                  { return false }
func (guarded) ProtectedWhole(string) bool               { return false }
func (guarded) Named(string, [][]string) []executor.Path { return nil }

// TestIgnored: what .kenignore lists does not exist for any tool (S3.U07).
func TestIgnored(t *testing.T) {
	e, ws := open(t, map[string]string{".kenignore": "# mine\nprivate/\n*.log\n!keep.log\n", "private/x": "needle", "a.log": "needle", "keep.log": "needle", "A.LOG": "needle", "b": "needle", ".env": "needle", ".git/config": "needle"}, func(c *Config) {
		c.Guards = func() executor.Guards { return guarded{".env"} }
	})
	for name, rule := range map[string]string{"private/x": ".kenignore:2", "a.log": ".kenignore:3", "A.LOG": ".kenignore:3", "private/new": ".kenignore:2"} {
		executortest.Refused(t, e, call("read_file", "path", name), capability.Denied, rule)
		executortest.Refused(t, e, call("write_to_file", "path", name, "content", "x"), capability.Denied, rule)
		executortest.Refused(t, e, call("search_files", "regex", "x", "path", name), capability.Denied, rule)
		executortest.Refused(t, e, call("apply_diff", "diff", "--- a/"+name+"\n+++ b/"+name+"\n@@\n-a\n+b\n"), capability.Denied, rule)
	}
	executortest.Refused(t, e, call("list_files", "path", "private"), capability.Denied, ".kenignore:2")
	about, text, _ := invoke(t, e, call("list_files", "recursive", true))
	if text != ".env\n.git/\n.git/config\n.kenignore\nb\nkeep.log\n" || about["ignored"] != 3.0 {
		t.Errorf("list_files = %q, %v", text, about)
	}
	about, text, _ = invoke(t, e, call("search_files", "regex", "needle"))
	if text != "b:1: needle\nkeep.log:1: needle\n" || about["ignored"] != 3.0 || about["secret"] != 2.0 {
		t.Errorf("search_files = %q, %v", text, about)
	}
	// A change holds at once; a file that cannot be understood opens nothing.
	put(t, ws, map[string]string{".kenignore": "b\nand more\n"})
	executortest.Refused(t, e, call("read_file", "path", "b"), capability.Denied, ".kenignore:1")
	gives(t, e, call("read_file", "path", "a.log"), "needle")
	put(t, ws, map[string]string{".kenignore": "x\n[a\n"})
	executortest.Refused(t, e, call("read_file", "path", "a.log"), capability.Denied, "line 2")
	executortest.Must(t, os.Remove(filepath.Join(ws, ".kenignore")))
	fifo(t, filepath.Join(ws, ".kenignore"))
	executortest.Refused(t, e, call("read_file", "path", "a.log"), capability.Denied, "not a readable file")
}

// TestSearchStops: a search ends with its call, however long its pattern takes for
// a file of one long line or of many short ones.
func TestSearchStops(t *testing.T) {
	e, _ := open(t, map[string]string{"long.txt": strings.Repeat("a", 4<<20), "many.txt": strings.Repeat("aaaaaaaaaaaaaaa\n", 1<<16)}, nil)
	for _, name := range []string{"long.txt", "many.txt"} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := e.Invoke(ctx, call("search_files", "regex", "((a?){30}){30}b$", "path", name))
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("search in %s: %v, want the deadline", name, err)
		}
	}
}
