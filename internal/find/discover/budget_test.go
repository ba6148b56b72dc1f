package discover

import (
	"testing"
)

// TestBudgetGrowsWithTheConversation: a long one has room for more, up to the
// ceiling; the map stays as it is.
func TestBudgetGrowsWithTheConversation(t *testing.T) {
	w := starter(t)
	cfg := Defaults()
	cfg.Budget.Briefs, cfg.Budget.Fulls, cfg.Budget.Total, cfg.Budget.Ceiling = 120, 300, 600, 1000
	find := func(conversation int) Selection {
		return w.ask(t, Query{Text: "check the open issues on github", Conversation: conversation}, cfg)
	}
	short, long := find(0), find(64_000)
	if short.Tokens.Total > 600 || long.Tokens.Total <= short.Tokens.Total || long.Tokens.Total > 1000 || long.Map != short.Map {
		t.Errorf("%+v in a short conversation, %+v in a long one; want up to 600, then more, up to 1000, and the same map", short.Tokens, long.Tokens)
	}
}
