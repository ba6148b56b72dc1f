package source

import (
	"fmt"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

// A change of the card or of the registry is seen, whichever it is.
func TestRegistryRefresh(t *testing.T) {
	registry := "- id: x\n  filePath: texts/x.md\n  priority: %d\n  triggers: {keywords: [a]}\n"
	for name, own := range map[string]string{"a plain text": "", "a card by itself": "---\nid: x\ntriggers: {keywords: [a]}\n---\n"} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, map[string]string{"registry.yaml": fmt.Sprintf(registry, 1), "texts/x.md": own + cardText, "cards/y.md": sourcetest.Card})
			p.load()
			if got := p.find("x").Priority; got != 1 {
				t.Fatalf("priority = %d, want 1", got)
			}
			steps := []struct {
				file, text string
				check      func(*capability.Capability) bool
			}{
				{"texts/x.md", own + cardText + "New words.", func(c *capability.Capability) bool {
					return strings.HasSuffix(p.detail("x").Body, "New words.")
				}},
				{"registry.yaml", fmt.Sprintf(registry, 2), func(c *capability.Capability) bool { return c.Priority == 2 }},
				{"texts/x.md", "---\npriority: 3\n---\n" + cardText, func(c *capability.Capability) bool { return c.Priority == 3 }},
			}
			for _, step := range steps {
				changed := sourcetest.Write(t, p.dir, step.file, step.text)
				var err error
				if p.Batch, err = p.tree.Refresh(t.Context(), []string{changed}); err != nil {
					t.Fatal(err)
				}
				if len(p.Capabilities) != 2 || !step.check(p.find("x")) {
					t.Errorf("after %s: %d capabilities, x = %+v; problems:\n%s", step.file, len(p.Capabilities), p.find("x"), p.list())
				}
			}
		})
	}
}
