package compact

import (
	"context"
	"iter"
	"strings"
	"testing"

	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

// talk is a session of three messages, and plan hides the first two.
func talk() ([]session.Entry, prompt.Plan) {
	say := func(seq int, kind session.Kind, text string) session.Entry {
		return session.Entry{Seq: seq, Kind: kind, Blocks: []llm.Block{{Text: text}}}
	}
	return []session.Entry{
		say(1, session.User, "Which harbours have a pilot?"), say(2, session.Assistant, "Emden and Kiel."), say(3, session.User, "And the tides?"),
	}, prompt.Plan{Do: prompt.Condense, From: 1, To: 2, Hidden: 2, Before: 4000, Room: 600, Why: "the conversation is too long"}
}

// TestRun: what stands for the hidden part is the model's summary or, if the
// model gives none that can be used, a marker and the reason.
func TestRun(t *testing.T) {
	answers := func(r llmtest.Reply) llm.Model {
		return &llmtest.Fake{Script: func(llmtest.Seen) llmtest.Reply { return r }}
	}
	tests := []struct {
		name  string
		do    prompt.Do
		model llm.Model
		most  int
		kind  session.Kind
		err   string
	}{
		{"sums up", prompt.Condense, answers(llmtest.Reply{Text: "They spoke of pilots in Emden and Kiel."}), -1, session.Summary, ""},
		{"without a model", prompt.Truncate, nil, -1, session.Marker, ""},
		{"fails", prompt.Condense, answers(llmtest.Reply{Fault: llmtest.Overloaded}), -1, session.Marker, "overloaded"},
		{"says nothing", prompt.Condense, answers(llmtest.Reply{Text: "  \n"}), -1, session.Marker, "empty"},
		{"does not end", prompt.Condense, answers(llmtest.Reply{Text: strings.Repeat("and on ", 100)}), 100, session.Marker, "would not end"},
		{"panics", prompt.Condense, panics{}, -1, session.Marker, "panic: out of order"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entries, plan := talk()
			plan.Do = tt.do
			row := model.Row{Window: 8000, Price: model.Price{Input: 1, Output: 1}}
			e, err := Run(t.Context(), Plan{plan, entries, tt.most}, Model{tt.model, row})
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Run = %v, want an error with %q", err, tt.err)
			}
			if e.Kind != tt.kind || e.From != 1 || e.To != 2 || e.Text != plan.Why || e.Tokens > plan.Room {
				t.Errorf("Run = %+v, want a %s of entries 1 to 2 in %d tokens", e, tt.kind, plan.Room)
			}
			summed := tt.kind == session.Summary
			if (e.Usage != nil) != summed || (e.Cost > 0) != summed || strings.Contains(e.Blocks[0].Text, "Emden and Kiel.") != summed {
				t.Errorf("Run = %q, usage %v, cost %v; only a summary has the model's words and its cost", e.Blocks[0].Text, e.Usage, e.Cost)
			}
		})
	}
}

// A panics is a model with a bug.
type panics struct{}

func (panics) Generate(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	panic("out of order")
}
