package engine

import (
	"math"
	"testing"

	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestTermsHoldForATurn: a turn keeps the terms that it began with, and the next
// has those that are given by then.
func TestTermsHoldForATurn(t *testing.T) {
	terms, asked := Terms{Limits: Limits{Steps: 3}}, 0
	r := open(t, setting{config: func(c *Config) { c.Terms = func() Terms { asked++; return terms } }})
	id := r.begin(func(s llmtest.Seen) llmtest.Reply {
		terms.Limits.Steps = 5 // in the middle of the first turn
		return answers(invoke("tool:greet", `{"name":"`+string(rune('a'+s.Number))+`"}`))
	})
	for i, want := range []int{3, 5} {
		if d := done(t, r.turn(event.Input{Session: id, Text: "go", Alone: true}), event.EndLimit); d.Steps != want {
			t.Errorf("turn %d made %d requests, want %d", i+1, d.Steps, want)
		}
	}
	if asked != 2 {
		t.Errorf("terms were asked for %d times in two turns", asked)
	}
}

// TestLongRequestsCostMore: a request is charged as the table says, which for a
// long one may be more.
func TestLongRequestsCostMore(t *testing.T) {
	price := model.Price{Input: 10, Output: 50, CachedRead: 1, CacheWrite: 12.5, LongAfter: 1000, LongInput: 2, LongOutput: 1.5}
	r := open(t, setting{row: model.Row{Price: price}})
	id := r.begin(llmtest.Replies(
		llmtest.Reply{Text: "Short.", Usage: llm.Usage{Input: 1000, Output: 10}},
		llmtest.Reply{Text: "Long.", Usage: llm.Usage{Input: 2000, CachedRead: 500, Output: 10}}))
	// 1000·10 + 10·50; then 2·(1500·10 + 500·1) + 1.5·10·50, in millionths.
	for i, want := range []float64{0.0105, 0.03175} {
		if d := done(t, r.say(id, "go"), event.EndAnswer); math.Abs(d.Cost-want) > 1e-9 {
			t.Errorf("turn %d cost %v, want %v", i+1, d.Cost, want)
		}
	}
}
