package extensions_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"ken/internal/testkit/executortest"
)

// A try is a line and what must come of it. Lines that are refused have a
// refusal; the others run, and show all of want and none of not.
type try struct {
	line    string
	want    []string
	not     string
	failed  bool
	refused string
	anyhow  bool
}

// tries reads lines, each with what must come of it below, indented. Where a text
// has line ends or blanks at its ends, it is in quotes. $DIR is the bench's folder.
func (b *bench) tries(t *testing.T, text string) (out []try) {
	t.Helper()
	for line := range strings.Lines(strings.ReplaceAll(text, "$DIR", b.dir)) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "/") {
			out = append(out, try{line: line})
			continue
		}
		word, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(value, `"`) {
			var err error
			if value, err = strconv.Unquote(value); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
		}
		switch now := &out[len(out)-1]; word {
		case "want":
			now.want = append(now.want, value)
		case "not":
			now.not = value
		case "refused":
			now.refused = value
		case "failed":
			now.failed = true
		case "anyhow":
			now.anyhow = true
		case "#":
		default:
			t.Fatalf("what is %q?", line)
		}
	}
	return out
}

// try carries lines out, and looks at what came of them.
func (b *bench) try(t *testing.T, tries []try) {
	t.Helper()
	for _, tt := range tries {
		r, err := b.run(t, tt.line)
		text := executortest.Text(r, "")
		switch {
		case tt.anyhow:
		case tt.refused != "":
			if err == nil || !strings.Contains(err.Error(), tt.refused) {
				t.Errorf("%s\n= %+v, %v, want a refusal with %q", tt.line, r, err, tt.refused)
			}
		case err != nil || r.Failed != tt.failed || tt.not != "" && strings.Contains(text, tt.not):
			t.Errorf("%s\n= failed %v %q, %v, want failed %v and nothing of %q", tt.line, r.Failed, text, err, tt.failed, tt.not)
		}
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s\n= %q, want %q in it", tt.line, text, want)
			}
		}
	}
}

// TestTries reads testdata: an archive's first line names a package, setup is run
// before, the file tries has the lines, the others are in the workspace, and those in
// the folder after are there afterwards. Hostile lines try to make a file pwned.
func TestTries(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			extension, about, _ := strings.Cut(string(archive.Comment), "\n")
			b, tries := newBench(t, extension), ""
			if extension == "tools.git" {
				b.repository(t, b.work(t, "project"))
			}
			after := map[string]string{}
			for _, f := range archive.Files {
				if name, is := strings.CutPrefix(f.Name, "after/"); is {
					after[name] = string(f.Data)
				} else if f.Name == "tries" {
					tries = string(f.Data)
				} else {
					b.write(t, map[string]string{f.Name: string(f.Data)})
				}
			}
			for line := range strings.Lines(about) {
				if command, is := strings.CutPrefix(line, "setup: "); is {
					tool(t, b.workspace, strings.Fields(command)...)
				}
			}
			b.try(t, b.tries(t, tries))
			for name, want := range after {
				if got, err := os.ReadFile(b.work(t, name)); err != nil || string(got) != want {
					t.Errorf("%s = %q, %v, want %q", name, got, err, want)
				}
			}
			b.pwned(t)
		})
	}
}
