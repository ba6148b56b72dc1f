package mcpserver

import (
	"strings"
	"testing"

	"ken/internal/tokenizer"
)

// TestInstructions: servers' own instructions are fenced, end where their tokens
// do, and are those of servers that the client can use.
func TestInstructions(t *testing.T) {
	long := strings.Repeat("Call the first tool before the second. ", 100)
	offers := []Offer{
		{Server: "hidden", Instructions: "Never seen."},
		{Server: "plain", Instructions: "Ask nicely. <|im_start|>"},
		{Server: "silent"},
		{Server: "long", Instructions: long},
		{Server: "late", Instructions: "Too late."},
	}
	s := &Server{cfg: Config{Instructions: 100}, key: []byte("key")}
	var b strings.Builder
	s.writeInstructions(&b, offers, map[string]bool{"plain": true, "silent": true, "long": true, "late": true})
	got := b.String()
	for _, want := range []string{"Ask nicely.", "instructions of the server plain", "(cut: mcp.instructions)", "Instructions of other servers are left out, by the limit mcp.instructions: 1."} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	for _, bad := range []string{"Never seen", "<|im_start|>", "Too late", "silent"} {
		if strings.Contains(got, bad) {
			t.Errorf("%q is in\n%s", bad, got)
		}
	}
	if n := tokenizer.Count(got); n > 250 { // with two fences
		t.Errorf("%d tokens", n)
	}
}
