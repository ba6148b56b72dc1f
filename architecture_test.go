package ken_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ken/internal/testkit"
)

var update = flag.Bool("update", false, "write the generated parts of docs/architecture.md and docs/decisions/README.md")

// wings are the parts of the table of packages, in the order of the plan in
// layers_test.go. A package belongs to the first prefix that it has.
var wings = []struct{ title, prefixes string }{
	{"Words that every part uses", "capability llm plugin"},
	{"Know: what exists", "internal/know"},
	{"Find and show: what matters now", "internal/find"},
	{"Govern: what may happen, and what did", "internal/govern"},
	{"Run: from a call to its effect", "internal/run"},
	{"Door: what a surface may do", "internal/door"},
	{"Talk: a conversation", "internal/talk"},
	{"Serve: the surfaces", "internal/serve web"},
	{"The program and the library", ". cmd internal/app internal/cli internal/config internal/connect"},
	{"Tests, examples, tools", "internal/testkit examples scripts"},
	{"What all of them stand on", "internal"},
}

// TestArchitecture: the generated parts of the documentation are up to date, and
// the files and packages that docs/architecture.md names exist.
func TestArchitecture(t *testing.T) {
	testkit.CI(t, "it reads the source")
	generated(t, "docs/architecture.md", "packages", packageTable(t))
	generated(t, "docs/decisions/README.md", "index", decisionIndex(t))

	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, prose, _ := strings.Cut(string(page), "<!-- end of packages -->")
	for _, m := range regexp.MustCompile("`([a-z]+/[a-z/_]+(?:\\.go)?)`").FindAllStringSubmatch(prose, -1) {
		if strings.HasPrefix(m[1], "tools/") { // a method of MCP
			continue
		}
		if !exists(m[1]) && !exists("internal/"+m[1]) {
			t.Errorf("docs/architecture.md names %s, which does not exist", m[1])
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(filepath.FromSlash(name))
	return err == nil
}

// generated compares the text between two marks of a file with what it must be,
// or writes it there.
func generated(t *testing.T, file, mark, want string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), "<!-- "+mark+" -->\n")
	got, after, also := strings.Cut(rest, "<!-- end of "+mark+" -->\n")
	if !ok || !also {
		t.Fatalf("%s has no part between the marks of %q", file, mark)
	}
	if got == want {
		return
	}
	if !*update {
		t.Errorf("%s is out of date; go test -run TestArchitecture -update . writes it", file)
		return
	}
	text := before + "<!-- " + mark + " -->\n" + want + "<!-- end of " + mark + " -->\n" + after
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// packageTable returns the packages by wing, each with the first sentence of its
// comment.
func packageTable(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Module.Path}}\t{{.ImportPath}}\t{{.Doc}}", "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	rows := make([][]string, len(wings))
	for line := range strings.Lines(string(out)) {
		fields := strings.SplitN(strings.TrimSpace(line), "\t", 3)
		if len(fields) < 3 || fields[2] == "" {
			continue // only tests
		}
		name := within(fields[0], fields[1])
		i := slices.IndexFunc(wings, func(w struct{ title, prefixes string }) bool {
			return slices.ContainsFunc(strings.Fields(w.prefixes), func(p string) bool {
				return name == p || strings.HasPrefix(name, p+"/")
			})
		})
		if i < 0 {
			t.Errorf("%s belongs to no wing of architecture_test.go", name)
			continue
		}
		rows[i] = append(rows[i], fmt.Sprintf("| `%s` | %s |\n", strings.TrimPrefix(name, "internal/"), summary(fields[2])))
	}
	var b strings.Builder
	for i, w := range wings {
		fmt.Fprintf(&b, "\n**%s**\n\n| package | what it does |\n|---|---|\n%s", w.title, strings.Join(rows[i], ""))
	}
	return b.String() + "\n"
}

// summary returns the first sentence of a package comment without the words
// "Package name".
func summary(doc string) string {
	s := regexp.MustCompile(`^(Package|Command|Program) \S+ `).ReplaceAllString(doc, "")
	return strings.ReplaceAll(s, "|", `\|`)
}

// decisionIndex returns a line for each record in docs/decisions, newest first.
func decisionIndex(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("docs/decisions/2*.md")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	slices.Reverse(files)
	var b strings.Builder
	b.WriteString("\n| date | decision |\n|---|---|\n")
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		title, ok := strings.CutPrefix(strings.SplitN(string(data), "\n", 2)[0], "# ")
		if !ok {
			t.Errorf("%s does not begin with a title", name)
		}
		base := filepath.Base(name)
		fmt.Fprintf(&b, "| %s | [%s](%s) |\n", base[:len("2006-01-02")], title, base)
	}
	return b.String() + "\n"
}
