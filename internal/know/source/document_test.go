package source

import (
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

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
