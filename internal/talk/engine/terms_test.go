package engine

import (
	"testing"

	"ken/internal/talk/event"
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
