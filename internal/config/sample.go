package config

import (
	"fmt"
	"strings"

	"ken/internal/yamledit"
)

// SchemaName is the file beside ken.yaml that says to editors what it may hold.
const SchemaName = "ken.schema.json"

// Sample returns a ken.yaml with every key, commented out, with its default and a
// line about it.
func Sample() []byte {
	var b strings.Builder
	b.WriteString("# yaml-language-server: $schema=" + SchemaName + "\n" + `# Settings of Ken. Every key is here with its default, commented out: take the
# "# " before one away to change it, or run, for example,
#     ken config set capabilities.maxTokens 900
# which keeps these comments. A key that Ken does not know is an error.
# "ken config get" says what is in force and where that was said.
`)
	standard := Default()
	section := ""
	for _, s := range settings() {
		name, key, inSection := strings.Cut(s.name, ".")
		if !inSection {
			fmt.Fprintf(&b, "\n# %s\n# %s: %s\n", s.doc, name, yamledit.Flow(s.show(&standard)))
			continue
		}
		if name != section {
			section = name
			b.WriteString("\n" + name + ":\n")
		} else {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "  # %s\n  # %s: %s\n", s.doc, key, yamledit.Flow(s.show(&standard)))
	}
	return []byte(b.String())
}
