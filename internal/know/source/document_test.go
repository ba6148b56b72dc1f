package source

import (
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

func TestMapIsAtMost500Characters(t *testing.T) {
	tests := []struct {
		name, text string
		over       string // words of the problem; "" means that the map is used
	}{
		{"short", "# Map\n\nLook in cards.\n", ""},
		{"exactly 500, with an end of line", strings.Repeat("ä", 500) + "\n", ""},
		{"CRLF counts once", strings.Repeat("a\r\n", 250), ""},
		{"501", strings.Repeat("ä", 501), "the map has 501 characters, 1 more than the 500"},
		{"a whole manual", strings.Repeat("word ", 2000), "the map has 9999 characters, 9499 more"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := loaded(t, map[string]string{"AGENTS.md": tt.text})
			if tt.over != "" {
				p.wants("AGENTS.md error map-too-long: ", tt.over, "it is not used")
				if len(p.Documents) != 0 || len(p.Problems) != 1 {
					t.Errorf("documents %v, problems\n%swant none and one", p.Documents, p.list())
				}
				return
			}
			p.clean()
			if len(p.Documents) != 1 {
				t.Fatalf("%d documents, want the map", len(p.Documents))
			}
			d := p.Documents[0]
			want := strings.TrimSpace(strings.ReplaceAll(tt.text, "\r\n", "\n"))
			if d.Role != capability.Map || d.Text != want || d.Trust != capability.TrustUser || d.Hash == "" {
				t.Errorf("document = %+v, want the map with its text", d)
			}
		})
	}
}

func TestReferenceIsReadOnDemand(t *testing.T) {
	text := "\ufeff# Architecture\r\n" + strings.Repeat("Long. ", 2000)
	for _, name := range []string{"SYSTEM_ARCHITECTURE.md", "docs/SYSTEM_ARCHITECTURE.md"} {
		p := loaded(t, map[string]string{name: text})
		p.clean()
		if len(p.Documents) != 1 {
			t.Fatalf("%s: %d documents, want one", name, len(p.Documents))
		}
		d := p.Documents[0]
		if d.Role != capability.Reference || d.Text != "" {
			t.Errorf("%s: document = %+v, want a reference without its text", name, d)
		}
		got, err := p.tree.Reference(d)
		if err != nil || !strings.HasPrefix(got, "# Architecture\nLong.") {
			t.Errorf("%s: Reference = %.30q, %v", name, got, err)
		}
		sourcetest.Write(t, p.dir, name, text+"changed")
		if _, err := p.tree.Reference(d); capability.KindOf(err) != capability.Conflict {
			t.Errorf("%s: Reference of a changed text: %v, want a conflict", name, err)
		}
	}
}

func TestOnlyTheTopHoldsTheMap(t *testing.T) {
	p := loaded(t, map[string]string{
		"sub/AGENTS.md":                strings.Repeat("a project's own notes ", 100),
		"other/SYSTEM_ARCHITECTURE.md": "x",
		"skill/SKILL.md":               "---\nname: skill\ndescription: d\n---\nx\n",
		"skill/AGENTS.md":              "x",
	})
	p.clean()
	if len(p.Documents) != 0 {
		t.Errorf("documents = %v, want none", p.Documents)
	}
}

func TestDocumentProblems(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"empty", " \n", "AGENTS.md warning empty-file"},
		{"NUL", "a\x00", "AGENTS.md:1 error not-text"},
		{"not UTF-8", "a\n\xff", "AGENTS.md:2 error not-utf8"},
		{"suspicious", "# Map\n" + override, "AGENTS.md:2 error suspicious-text"},
	}
	for _, tt := range tests {
		p := loaded(t, map[string]string{"AGENTS.md": tt.text, "SYSTEM_ARCHITECTURE.md": "Fine.\n"})
		p.wants(tt.want)
		if len(p.Documents) != 1 || p.Documents[0].Role != capability.Reference {
			t.Errorf("%s: documents = %v, want only the reference", tt.name, p.Documents)
		}
	}
}
