package executor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/capability"
)

// place creates files below a new folder, including programs in bin.
func place(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755))
	}
	return dir
}

// TestCodeOfLines: every file that a line may run counts, however the line names
// it. Where the line hides something, Unknown says so.
func TestCodeOfLines(t *testing.T) {
	dir := place(t, map[string]string{
		"bin/python3": "python", "bin/sh": "sh", "bin/bash": "bash", "bin/env": "env", "bin/git": "git", "bin/make": "make", "bin/node": "node", "bin/npm": "npm",
		"bin/flock": "flock", "bin/setpriv": "setpriv", "bin/nice": "nice", "bin/cat": "cat", "bin/awk": "awk", "bin/find": "find", "bin/ls": "ls",
		"ws/x.sh": "x", "ws/m.py": "m", "ws/m.js": "m", "ws/k/Makefile": "all:", "ws/k/x.sh": "x", "ws/k/package.json": "{}", "ws/k.mk": "all:", "ws/x.awk": "x",
		"ws/y.sh": "#!./interp\n", "ws/interp": "#!/bin/true\n", "ws/bin/ls": "ls", "ws/out.txt": "",
	})
	p, ws := NewPrograms(filepath.Join(dir, "bin")), filepath.Join(dir, "ws")
	tests := []struct {
		line, opaque string
		argv         [][]string
		want         string // a file that counts
		known        bool   // nothing is unknown
	}{
		{line: "cd k; ./x.sh", argv: [][]string{{"cd", "k"}, {"./x.sh"}}, want: "k/x.sh", known: true},
		{line: "timeout 5 python3 m.py", argv: [][]string{{"timeout", "5", "python3", "m.py"}}, want: "m.py", known: true},
		{line: ". x.sh", argv: [][]string{{".", "x.sh"}}, want: "x.sh", known: true},
		{line: "sh < x.sh", opaque: "a redirection", argv: [][]string{{"sh"}}, want: "x.sh"},
		{line: "cat x.sh | sh", argv: [][]string{{"cat", "x.sh"}, {"sh"}}, want: "x.sh"},
		{line: "bash -lc 'sh x.sh'", argv: [][]string{{"bash", "-lc", "sh x.sh"}}, want: "x.sh"},
		{line: "python3 -m m", argv: [][]string{{"python3", "-m", "m"}}, want: "m.py"},
		{line: "python3 -c 'import m'", argv: [][]string{{"python3", "-c", "import m"}}, want: "m.py"},
		{line: `node -e "require('./m.js')"`, argv: [][]string{{"node", "-e", "require('./m.js')"}}, want: "m.js"},
		{line: "make -C k", argv: [][]string{{"make", "-C", "k"}}, want: "k/Makefile", known: true},
		{line: "make -fk.mk", argv: [][]string{{"make", "-fk.mk"}}, want: "k.mk", known: true},
		{line: "npm run t --prefix k", argv: [][]string{{"npm", "run", "t", "--prefix", "k"}}, want: "k/package.json", known: true},
		{line: "npm run t --prefix=k", argv: [][]string{{"npm", "run", "t", "--prefix=k"}}, want: "k/package.json", known: true},
		{line: "awk -fx.awk", argv: [][]string{{"awk", "-fx.awk"}}, want: "x.awk", known: true},
		{line: "env -C k ./x.sh", argv: [][]string{{"env", "-C", "k", "./x.sh"}}, want: "k/x.sh", known: true},
		{line: "./y.sh", argv: [][]string{{"./y.sh"}}, want: "interp", known: true},
		{line: "flock /tmp ./x.sh", argv: [][]string{{"flock", "/tmp", "./x.sh"}}, want: "x.sh", known: true},
		{line: "setpriv --no-new-privs ./x.sh", argv: [][]string{{"setpriv", "--no-new-privs", "./x.sh"}}, want: "x.sh", known: true},
		{line: "nice nice …", argv: [][]string{append(slices.Repeat([]string{"nice"}, 12), "./x.sh")}, want: "x.sh"},
		{line: "env BASH_ENV=./x.sh bash k.mk", argv: [][]string{{"env", "BASH_ENV=./x.sh", "bash", "k.mk"}}, want: "x.sh"},
		{line: "PATH=./bin ls", opaque: "an assignment", argv: [][]string{{"ls"}}, want: "bin/ls"},
		{line: "D=.; $D/x.sh", opaque: "a variable", argv: [][]string{{"$D/x.sh"}}, want: "x.sh"},
		{line: "./x.s?", opaque: "a pattern", argv: [][]string{{"./x.s?"}}, want: "x.sh"},
		{line: `find . -name x.sh -exec {} \;`, opaque: "a brace", argv: [][]string{{"find", ".", "-name", "x.sh", "-exec", "{}", ";"}}, want: "x.sh"},
		{line: "git -c 'alias.z=!sh x.sh' z", opaque: "code", argv: [][]string{{"git", "-c", "alias.z=!sh x.sh", "z"}}, want: "x.sh"},
		{line: `sed -n "1e ./x.sh" m.py`, argv: [][]string{{"sed", "-n", "1e ./x.sh", "m.py"}}, want: "x.sh", known: true},
		{line: `sed --expression="1e sh ./x.sh" m.py`, argv: [][]string{{"sed", "--expression=1e sh ./x.sh", "m.py"}}, want: "x.sh", known: true},
		{line: "git -c core.pager=./x.sh log", argv: [][]string{{"git", "-c", "core.pager=./x.sh", "log"}}, want: "x.sh"},
		{line: "git --exec-path=./bin status", argv: [][]string{{"git", "--exec-path=./bin", "status"}}},
		{line: "sort --compress-program=./x.sh m.py", argv: [][]string{{"sort", "--compress-program=./x.sh", "m.py"}}, want: "x.sh", known: true},
		{line: `vim -c "!./x.sh" m.py`, argv: [][]string{{"vim", "-c", "!./x.sh", "m.py"}}, want: "x.sh"},
		{line: `sqlite3 x.db ".shell ./x.sh"`, argv: [][]string{{"sqlite3", "x.db", ".shell ./x.sh"}}, want: "x.sh", known: true},
		{line: `dc -e "!./x.sh"`, argv: [][]string{{"dc", "-e", "!./x.sh"}}, want: "x.sh"},
		{line: "cargo build", argv: [][]string{{"cargo", "build"}}},
		{line: "pip install .", argv: [][]string{{"pip", "install", "."}}},
		{line: "pytest", argv: [][]string{{"pytest"}}},
		{line: "git commit -m x", argv: [][]string{{"git", "commit", "-m", "x"}}, known: true},
		{line: "git diff --stat x.sh", argv: [][]string{{"git", "diff", "--stat", "x.sh"}}, known: true},
		{line: "curl -o out.txt u", argv: [][]string{{"curl", "-o", "out.txt", "u"}}, want: "out.txt", known: true},
		{line: "git status", argv: [][]string{{"git", "status"}}, known: true},
		{line: "cat x.sh", argv: [][]string{{"cat", "x.sh"}}, known: true},
	}
	for _, test := range tests {
		got := p.Code(Task{Commands: test.argv, Shell: "/bin/sh", Text: test.line, Opaque: test.opaque, Dirs: []string{ws}})
		if test.want != "" && !slices.ContainsFunc(got.Files, func(f File) bool { return f.Path == filepath.Join(ws, test.want) }) {
			t.Errorf("Code(%s) = %+v, want %s in it", test.line, got, test.want)
		}
		if test.want == "" && test.known && slices.ContainsFunc(got.Files, func(f File) bool { return strings.HasPrefix(f.Path, ws) }) {
			t.Errorf("Code(%s) = %+v, want no file of the workspace", test.line, got)
		}
		if (got.Unknown == "") != test.known {
			t.Errorf("Code(%s): unknown is %q, want known: %v", test.line, got.Unknown, test.known)
		}
	}
	written := p.Code(Task{Commands: [][]string{{"ls"}}, Shell: "/bin/sh", Text: "ls > out.txt", Opaque: "a redirection", Written: []string{"out.txt"}, Dirs: []string{ws}})
	if slices.ContainsFunc(written.Files, func(f File) bool { return strings.HasSuffix(f.Path, "out.txt") }) {
		t.Errorf("a file that is written counts as code: %+v", written.Files)
	}
	many := [][]string{}
	for i := range mostFiles + 2 {
		name := filepath.Join(ws, "many", strings.Repeat("a", i+1))
		must(t, os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, nil, 0o755))
		many = append(many, []string{name})
	}
	if got := p.Code(Task{Commands: many, Dirs: []string{ws}}); got.Unknown == "" {
		t.Errorf("Code of %d files has %d and does not say that there are more", len(many), len(got.Files))
	}
}

// TestDigestSeesEveryChange: even a change in place that keeps size and time.
func TestDigestSeesEveryChange(t *testing.T) {
	dir := place(t, map[string]string{"bin/tool": "good", "ws/x.sh": "good"})
	old := time.Now().Add(-time.Hour)
	p := NewPrograms(filepath.Join(dir, "bin"))
	digest := func() string {
		return Digest(p.Code(Task{Commands: [][]string{{"tool"}, {"./x.sh"}}, Dirs: []string{filepath.Join(dir, "ws")}}).Files)
	}
	for _, name := range []string{"bin/tool", "ws/x.sh"} {
		path := filepath.Join(dir, name)
		for _, text := range []string{"evil", "more"} {
			must(t, os.Chtimes(path, old, old))
			before := digest()
			if again := digest(); again != before {
				t.Errorf("%s: two digests of the same file: %s, %s", name, before, again)
			}
			must(t, os.WriteFile(path, []byte(text), 0o755), os.Chtimes(path, old, old))
			if digest() == before {
				t.Errorf("%s: a change to %q was not seen", name, text)
			}
		}
	}
	if Digest(nil) != "" {
		t.Error("no files have a digest")
	}
}

func TestSameCode(t *testing.T) {
	one := []File{{"git", "/usr/bin/git", "aa"}}
	call := capability.Call{Target: "tool:git", Code: Digest(one)}
	if err := SameCode(call, one); err != nil {
		t.Errorf("the same files: %v", err)
	}
	for _, other := range [][]File{nil, {{"git", "/usr/bin/git", "bb"}}, {{"git", "/opt/git", "aa"}}, append(slices.Clone(one), File{"/x", "/x", "cc"})} {
		if err := SameCode(call, other); capability.KindOf(err) != capability.Conflict {
			t.Errorf("SameCode(%v) = %v, want a conflict", other, err)
		}
	}
}
