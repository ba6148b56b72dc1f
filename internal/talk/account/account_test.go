package account

import (
	"testing"

	"ken/capability"
	"ken/internal/talk/session"
	"ken/llm"
)

// TestLookedUp: results of looking up count by their share of an entry's bytes.
func TestLookedUp(t *testing.T) {
	result := func(name, text string) llm.Block {
		return llm.Block{Result: &llm.ToolResult{Name: name, Blocks: []llm.Block{{Text: text}}}}
	}
	for _, tt := range []struct {
		blocks []llm.Block
		want   int
	}{
		{nil, 0},
		{[]llm.Block{result("other", "123456789")}, 0},
		{[]llm.Block{result(capability.ToolDiscover, "123456789")}, 100},
		{[]llm.Block{result(capability.ToolDescribe, "123456789"), result("other", "123456789")}, 50},
	} {
		if got := lookedUp(&session.Entry{Blocks: tt.blocks, Tokens: 100}, false); got != tt.want {
			t.Errorf("lookedUp(%v) = %d, want %d", tt.blocks, got, tt.want)
		}
	}
}
