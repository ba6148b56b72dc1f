package app

import (
	"math"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/outcome"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestInsightsOfARealTurn: what a conversation saved is what one reckons by hand
// from its usage, its price and what stood in the prompt; finding for others is
// not counted.
func TestInsightsOfARealTurn(t *testing.T) {
	_, settings := lab(t, llmtest.Replies(
		llmtest.Reply{Calls: []llm.ToolCall{intended("READ_FILE"), called("l", "list_files", `{}`)}, Usage: llm.Usage{Input: 4000, Output: 100}},
		llmtest.Reply{Text: "Done.", Usage: llm.Usage{Input: 5000, CachedRead: 3000, Output: 40}}))
	_, getenv := home(t, map[string]string{".ken/ken.yaml": "model: lab/m\n" + settings})
	a := open(t, Config{Getenv: getenv, environment: func() []string { return []string{"LAB_KEY=k"} }, Dir: t.TempDir()})
	if err := a.Models.SetPrice(outcome.Price{Model: "lab/m", Input: 10, Output: 50, CachedRead: 1, CacheWrite: 10}); err != nil {
		t.Fatal(err)
	}
	var turn outcome.Event
	told := func(e outcome.Event) {
		if e.Kind == outcome.Ended {
			turn = e
		}
	}
	a.counter.Store(&told)
	say(t, a, "which files are there")
	if _, err := a.Door.Find(t.Context(), a.View(), door.Query{Text: "send a message", Scope: capability.Scope{Session: "another client"}}); err != nil {
		t.Fatal(err)
	}
	if turn.Requests != 2 || turn.Model != "lab/m" || turn.Shown <= 0 || turn.AllToolTokens <= 0 || turn.Usage != (outcome.Usage{Input: 9000, Output: 140, CachedRead: 3000}) {
		t.Fatalf("the turn was recorded as %+v", turn)
	}
	// Millionths: 4000·10 and 140·50 out, which is what the turn cost; then the
	// second request, 2000·10 + 3000·1.
	if want := (4000*10 + 2000*10 + 3000*1 + 140*50) / 1e6; math.Abs(turn.Cost-want) > 1e-9 {
		t.Errorf("the turn cost %v, want %v", turn.Cost, want)
	}
	mean := (6000.0*10 + 3000*1) / 9000 // of a token that was sent
	paid := float64(turn.Added)*10 + float64(2*turn.Shown-turn.Added)*mean
	all := float64(turn.AllToolTokens) * (10 + 1) // written once, read once
	now := time.Now()
	got := a.Door.Insights(outcome.InsightsConfig{Since: now.Add(-time.Hour), Until: now.Add(time.Hour), Price: a.Models.Price}).Totals
	if got.Turns != 1 || got.Requests != 2 || got.ShownTokens != 2*turn.Shown || got.AllTokens != 2*turn.AllToolTokens || got.SavedTokens != 2*(turn.AllToolTokens-turn.Shown) {
		t.Errorf("Insights = %+v, want one turn of two requests with %d and %d tokens", got, 2*turn.Shown, 2*turn.AllToolTokens)
	}
	if got.Paid == nil || math.Abs(*got.Paid-paid/1e6) > 1e-6 || math.Abs(*got.AllPaid-all/1e6) > 1e-6 || math.Abs(*got.Saved-(all-paid)/1e6) > 2e-6 {
		t.Errorf("Insights = %v, %v, %v dollars, want %v, %v, %v", got.Paid, got.AllPaid, got.Saved, paid/1e6, all/1e6, (all-paid)/1e6)
	}
}
