package extensions_test

import (
	"os"
	"path/filepath"
	"testing"
)

// repository makes a git repository with two commits and a change.
func (b *bench) repository(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tool(t, dir, "git", "init", "--quiet", "--initial-branch=main")
	write("README.md", "first line\n")
	tool(t, dir, "git", "add", ".")
	tool(t, dir, "git", "commit", "--quiet", "--message=Begin")
	write("README.md", "first line\nsecond TODO\n")
	tool(t, dir, "git", "commit", "--quiet", "--all", "--message=Say more")
	tool(t, dir, "git", "tag", "v1")
	write("README.md", "first line\nsecond TODO\nthird\n")
	write("new.txt", "new\n")
}

// TestGitGranted looks at a repository outside the work directory.
func TestGitGranted(t *testing.T) {
	b := newBench(t, "tools.git")
	dir := filepath.Join(b.dir, "elsewhere")
	b.repository(t, dir)
	b.try(t, []try{{line: "/git log --repo " + dir, failed: true, not: "Begin"}})
	b.grant.Read = []string{dir}
	b.try(t, []try{
		{line: "/git log --repo " + dir, want: []string{"Begin"}},
		{line: "/git status --repo " + dir, want: []string{" M README.md"}},
	})
}
