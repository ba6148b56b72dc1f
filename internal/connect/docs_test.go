package connect

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestDocs: the examples and the table in docs/clients.md are what connecting writes
// and what was measured, and every client has a section.
func TestDocs(t *testing.T) {
	text := testkit.Must(os.ReadFile("../../docs/clients.md"))(t)
	sections := map[string]string{}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		title, body, _ := strings.Cut(section, "\n")
		sections[title] = body
	}
	want := func(title, part string) {
		t.Helper()
		if !strings.Contains(sections[title], part) {
			t.Errorf("docs/clients.md has a section %q with:\n%s\nwant in it:\n%s", title, sections[title], part)
		}
	}
	servers, _, err := Merge(nil, []Server{
		{Name: "github", URL: "https://api.githubcopilot.com/mcp/", Headers: map[string]string{"Authorization": "Bearer ${secret:mcp.github.Authorization}"}},
		{Name: "files", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/home/me/work"}},
	}, "claude")
	if err != nil {
		t.Fatal(err)
	}
	want("mcp.json", fmt.Sprintf("```json\n%s```\n", servers))
	table := testkit.Must(os.ReadFile("testdata/tokens.md"))(t)
	want("Tokens", string(table))
	for _, c := range Clients() {
		lang := "json"
		switch c.format.(type) {
		case tomlFormat:
			lang = "toml"
		case yamlFormat:
			lang = "yaml"
		}
		for _, e := range []Entry{{Command: "/usr/local/bin/ken", Args: []string{"mcp", "--client", c.Name}}, {URL: "http://127.0.0.1:7777/mcp", Token: "YOUR-TOKEN"}} {
			over := "Over standard input and output:"
			if e.URL != "" {
				over = "Over HTTP, with `ken serve` running:"
			}
			edits := testkit.Must(c.format.edits(nil, []change{{at: c.at, put: []put{{name: "ken", value: c.entry(e)}}}}))(t)
			want(c.Title, fmt.Sprintf("\n%s\n\n```%s\n%s```\n", over, lang, apply(nil, edits)))
		}
	}
}
