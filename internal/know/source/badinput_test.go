package source

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit"
)

// badUnit is a file of each format by which bad input comes in.
type badUnit struct {
	format, path string
	wrap         func(head string) string // puts YAML where the format has it
	lenient      bool                     // makes the best of what is not valid
}

func badUnits() []badUnit {
	page := func(head string) string { return "---\n" + head + "---\n" + cardText }
	bare := func(head string) string { return head }
	return []badUnit{
		{"skill", "bad/SKILL.md", page, true},
		{"card", "cards/bad.md", page, false},
		{"command", "commands/bad.md", page, true},
		{"manifest", "bad/CAPABILITY.yaml", bare, false},
		{"registry", "capabilities.registry.yaml", bare, false},
	}
}

// survivors are units of every format that must come through whatever stands
// beside them.
func survivors() map[string]string {
	return map[string]string{
		"good/SKILL.md":       "---\nname: good\ndescription: d\n---\nx\n",
		"cards/good.md":       "---\nid: good\ntriggers: {keywords: [a]}\n---\n" + cardText,
		"commands/good.md":    "Good.\n",
		"tool/CAPABILITY.yml": "kind: tool\nname: good\ndescription: d\n",
		"registry.yaml":       "- id: listed\n  filePath: texts/listed.md\n  triggers: {keywords: [a]}\n",
		"texts/listed.md":     cardText,
	}
}

func (p *place) survived() {
	p.t.Helper()
	for _, id := range []capability.ID{"skill:good", "good", "command:good", "tool:good", "listed"} {
		p.find(id)
	}
}

// said returns the problems about one file.
func (p *place) said(path string) []capability.Problem {
	var out []capability.Problem
	for _, problem := range p.Problems {
		if problem.Origin.Path == filepath.Join(p.dir, filepath.FromSlash(path)) {
			out = append(out, problem)
		}
	}
	return out
}

// A badText is YAML that is wrong, and what is said of it.
type badText struct {
	name, head string
	line       int // of the problem within the YAML; 0: the whole file
	words      string
}

func TestLargeBadTextCostsOnlyItself(t *testing.T) {
	testkit.CI(t, "megabytes of YAML")
	var wide strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&wide, "key%d: v\n", i)
	}
	badTextCostsOnlyItself(t, []badText{
		{"100,000 keys", wide.String(), 0, ""},
		{"10,000 keys", wide.String()[:120_000] + "\n", 0, ""},
	})
}

func TestBadTextCostsOnlyItself(t *testing.T) {
	deep := "a:\n"
	for i := range 100 {
		deep += strings.Repeat(" ", i+1) + "a:\n"
	}
	badTextCostsOnlyItself(t, []badText{
		{"YAML bomb", "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", 1, "anchors, aliases"},
		{"not UTF-8", "a: 1\nb: \xff\n", 2, "UTF-8"},
		{"NUL", "a: 1\nb: \x00\n", 2, "NUL"},
		{"key given twice", "a: 1\na: 2\n", 2, ""},
		{"brackets nested 20,000 deep", "a: " + strings.Repeat("[", 20_000) + "\n", 1, "nested deeper"},
		{"maps nested 100 deep", deep, 0, "nested deeper"},
		{"bracket that never closes", "a: [\n", 0, ""},
		{"tag", "a: 1\nb: !x y\n", 2, "YAML tag"},
	})
}

// badTextCostsOnlyItself puts each text into a file of each format, beside
// units of all of them.
func badTextCostsOnlyItself(t *testing.T, tests []badText) {
	for _, tt := range tests {
		for _, unit := range badUnits() {
			t.Run(tt.name+" in a "+unit.format, func(t *testing.T) {
				files := survivors()
				files[unit.path] = unit.wrap(tt.head)
				p := newPlace(t, files)
				p.load()
				p.survived()
				said := p.said(unit.path)
				if len(said) == 0 {
					t.Fatalf("nothing is said about it; problems:\n%s", p.list())
				}
				for _, problem := range said {
					if problem.Code == "" || problem.Message == "" || problem.Fix == "" && problem.Code != "unknown-key" {
						t.Errorf("problem %+v lacks a code, a message or a fix", problem)
					}
				}
				first := said[0]
				lost := len(p.Capabilities) == len(survivors())-1
				if !unit.lenient && (len(said) != 1 || first.Severity != capability.Grave || !lost) {
					t.Errorf("problems:\n%swant one that costs the unit", p.list())
				}
				if unit.lenient && lost != (tt.name == "NUL" || tt.name == "100,000 keys") {
					t.Errorf("lost = %v; problems:\n%s", lost, p.list())
				}
				if unit.lenient && tt.name == "key given twice" {
					return // its words are the mend's own
				}
				if tt.words != "" && !strings.Contains(p.list(), tt.words) {
					t.Errorf("problems:\n%swant %q", p.list(), tt.words)
				}
				if want := tt.line; want > 0 {
					if unit.wrap("") != "" {
						want++ // below the dashes
					}
					if first.Origin.Line != want {
						t.Errorf("%s, want line %d", first, want)
					}
				}
			})
		}
	}
}

func TestHarmlessOdditiesAreReadAsTheyAre(t *testing.T) {
	crlf := func(s string) string { return "\ufeff" + strings.ReplaceAll(s, "\n", "\r\n") }
	files := map[string]string{}
	for name, text := range survivors() {
		files[name] = crlf(text)
	}
	p := loaded(t, files)
	p.survived()
	p.clean()
	for _, c := range p.Capabilities {
		if d := p.detail(c.ID); strings.ContainsAny(d.Body+c.Description, "\r\ufeff") {
			t.Errorf("%s still has the marks of its file: %q", c.ID, d.Body)
		}
	}
}

func TestBadFilesCostOnlyThemselves(t *testing.T) {
	tests := []struct {
		name, code string
		make       func(t *testing.T, at string) error
	}{
		{"empty", "", func(t *testing.T, at string) error { return os.WriteFile(at, nil, 0o644) }},
		{"named pipe", "not-a-file", makeFIFO},
		{"folder", "", func(t *testing.T, at string) error { return os.Mkdir(at, 0o755) }},
		{"10 GB without content", "too-large", func(t *testing.T, at string) error {
			if err := os.WriteFile(at, nil, 0o644); err != nil {
				return err
			}
			return os.Truncate(at, 10<<30)
		}},
		{"links in a circle", "link-loop", func(t *testing.T, at string) error {
			if err := os.Symlink(filepath.Base(at)+".other", at); err != nil {
				return err
			}
			return os.Symlink(filepath.Base(at), at+".other")
		}},
		{"link to nothing", "missing-file", func(t *testing.T, at string) error { return os.Symlink("nothing", at) }},
		{"link to itself", "link-loop", func(t *testing.T, at string) error { return os.Symlink(filepath.Base(at), at) }},
		{"no permission", "no-permission", func(t *testing.T, at string) error {
			if os.Geteuid() == 0 {
				t.Skip("cannot here: the superuser may read everything")
			}
			return os.WriteFile(at, []byte("x"), 0)
		}},
	}
	for _, tt := range tests {
		for _, unit := range badUnits() {
			t.Run(tt.name+" as a "+unit.format, func(t *testing.T) {
				p := newPlace(t, survivors())
				at := filepath.Join(p.dir, filepath.FromSlash(unit.path))
				must(t, os.MkdirAll(filepath.Dir(at), 0o755))
				if err := tt.make(t, at); err != nil {
					t.Skip("cannot here: " + err.Error())
				}
				p.load()
				p.survived()
				if n := len(p.Capabilities); n != len(survivors())-1 {
					t.Errorf("%d capabilities, want only the good ones", n)
				}
				if tt.name == "folder" && !strings.HasPrefix(unit.path, "bad/") {
					return // a folder of any name is a folder
				}
				said := p.said(unit.path)
				if len(said) != 1 || tt.code != "" && said[0].Code != tt.code {
					t.Errorf("problems:\n%swant one about %s, %s", p.list(), unit.path, tt.code)
				}
			})
		}
	}
}

func TestFolderLinksInACircleEnd(t *testing.T) {
	p := newPlace(t, survivors())
	if err := os.Symlink("..", filepath.Join(p.dir, "good", "up")); err != nil {
		t.Skip("cannot here: " + err.Error())
	}
	must(t, os.Symlink(".", filepath.Join(p.dir, "cards", "here")))
	p.load()
	p.survived()
}
