package ranking

import (
	"strings"
	"testing"
	"unicode/utf8"

	"ken/capability"
)

// TestS233EmbeddingText: what an embedder reads of a capability, in the seed's
// lines, and what it never does.
func TestS233EmbeddingText(t *testing.T) {
	c := &capability.Capability{
		ID: "tool:web-search", Kind: capability.KindTool, Name: "web-search", DisplayName: "Web Search", Description: " Search the web. ",
		Category: "information", Tags: []string{"search", "web"}, Triggers: &capability.Triggers{Keywords: []string{"look up"}},
		Parameters:    []capability.Parameter{{Name: "query", Description: "not this"}, {Name: "max_results"}},
		RequiredTools: []string{"tool:http"}, RequiredBins: []string{"curl"}, RequiredSecrets: []string{"SERPER_API_KEY"},
	}
	want := "Web Search (web-search). Search the web.\nCategory: information\nUse cases: search, web, look up\n" +
		"Parameters: query, max_results\nRequires: tool:http, curl"
	if got := EmbeddingText(c); got != want {
		t.Errorf("EmbeddingText = %q, want %q", got, want)
	}
	if got := EmbeddingText(&capability.Capability{Name: "bare"}); got != "Bare (bare). " {
		t.Errorf("EmbeddingText of a bare one = %q", got)
	}
	c.Description = strings.Repeat("漢字です", 1000)
	if got := EmbeddingText(c); len(got) > 1200 || !utf8.ValidString(got) || !strings.HasPrefix(got, "Web Search (web-search). 漢字") {
		t.Errorf("EmbeddingText of a long one = %d bytes, %.60q", len(got), got)
	}
	if len(c.Tags) != 2 || len(c.RequiredTools) != 1 {
		t.Errorf("EmbeddingText changed its capability: %+v", c)
	}
}
