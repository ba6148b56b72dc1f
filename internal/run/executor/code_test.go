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
func place(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFiles(t *testing.T) {
	dir := place(t, map[string]string{
		"bin/python3": "python", "bin/sh": "sh", "bin/bash": "bash", "bin/env": "env", "bin/git": "git", "bin/make": "make", "bin/node": "node", "bin/timeout": "timeout",
		"bin/tool": "#!/usr/bin/env python3\n", "ws/x.py": "x", "ws/data.csv": "1", "ws/hook.js": "h", "ws/main.js": "m", "ws/run.sh": "#!/bin/true\n",
		"ws/sub/y.py": "y", "ws/Makefile": "all:",
	})
	p, ws := NewPrograms(filepath.Join(dir, "bin")), filepath.Join(dir, "ws")
	tests := []struct {
		commands string // one for each line
		want     string
	}{
		{"git status", "git"},
		{"git add x.py", "git"}, // git does not run x.py
		{"python3 x.py data.csv", "python3 ws/x.py"},
		{"python3 -u x.py", "python3 ws/x.py"},
		{"node -r ./hook.js main.js", "node ws/hook.js ws/main.js"},
		{"sh run.sh", "sh ws/run.sh /bin/true"},
		{"./run.sh", "ws/run.sh /bin/true"},
		{"env -- python3 x.py", "env python3 ws/x.py"},
		{"timeout 5 python3 x.py", "timeout python3 ws/x.py"},
		{"bash -c python3|x.py", "bash python3 ws/x.py"},
		{"cd sub\npython3 y.py", "python3 ws/sub/y.py"},
		{"tool", "tool /usr/bin/env python3"},
		{"make all", "make ws/Makefile"},
		{". run.sh", "ws/run.sh /bin/true"},
		{"python3 missing.py", "python3"},
		{"echo hi", ""},
	}
	for _, test := range tests {
		var commands [][]string
		for line := range strings.SplitSeq(test.commands, "\n") {
			argv := strings.Fields(line)
			for i := range argv {
				argv[i] = strings.ReplaceAll(argv[i], "|", " ")
			}
			commands = append(commands, argv)
		}
		var got []string
		for _, f := range p.Files(commands, ws) {
			got = append(got, strings.TrimPrefix(f.Name, dir+"/"))
			if len(f.SHA256) != 64 {
				t.Errorf("%s: the digest of %s is %q", test.commands, f.Name, f.SHA256)
			}
		}
		slices.Sort(got)
		want := strings.Fields(test.want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("Files(%q) = %q, want %q", test.commands, got, want)
		}
	}
}

// TestDigestSeesEveryChange: even a change in place that keeps size and time.
func TestDigestSeesEveryChange(t *testing.T) {
	dir := place(t, map[string]string{"bin/tool": "good", "ws/x.sh": "good"})
	old := time.Now().Add(-time.Hour)
	p := NewPrograms(filepath.Join(dir, "bin"))
	digest := func() string { return Digest(p.Files([][]string{{"tool"}, {"./x.sh"}}, filepath.Join(dir, "ws"))) }
	for _, name := range []string{"bin/tool", "ws/x.sh"} {
		path := filepath.Join(dir, name)
		for _, text := range []string{"evil", "more"} {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
			before := digest()
			if again := digest(); again != before {
				t.Errorf("%s: two digests of the same file: %s, %s", name, before, again)
			}
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString(text); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
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

func BenchmarkFiles(b *testing.B) {
	dir := place(b, map[string]string{"ws/x.py": strings.Repeat("x", 10_000)})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "ws/x.py"), old, old); err != nil {
		b.Fatal(err)
	}
	time.Sleep(1100 * time.Millisecond) // until its digest is kept
	p := NewPrograms("")
	for b.Loop() {
		p.Files([][]string{{"/bin/sh"}, {"sh", "x.py"}}, filepath.Join(dir, "ws"))
	}
}

func BenchmarkFind(b *testing.B) {
	p := NewPrograms("")
	for b.Loop() {
		if _, err := p.Find("sh"); err != nil {
			b.Fatal(err)
		}
	}
}
