package engine

import (
	"context"
	"fmt"
	"testing"
	"time"

	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

// TestAccount: what stands in a prompt for capabilities is what the session
// holds for them, and a later turn adds only what is new.
func TestAccount(t *testing.T) {
	for _, rung := range []model.Rung{model.Bridge, model.Whole} {
		var ends []event.Done
		r := open(t, setting{config: func(c *Config) {
			c.Terms, c.Ended = Terms{Delivery: rung}.Always, func(d event.Done, _ time.Time) { ends = append(ends, d) }
		}})
		id := r.begin(llmtest.Replies(
			text("Hello."), answers(llm.ToolCall{ID: "d1", Name: toolDescribe, Arguments: []byte(`{"id":"tool:greet"}`)}), text("Done.")))
		done(t, r.say(id, "greet somebody by name"), event.EndAnswer)
		done(t, r.say(id, "greet somebody by name"), event.EndAnswer)
		if len(ends) != 2 {
			t.Fatalf("%s: %d turns ended, want 2", rung, len(ends))
		}
		_, entries, err := r.sessions.Read(t.Context(), ada, id)
		if err != nil {
			t.Fatal(err)
		}
		var added, looked, catalog int
		for _, e := range session.Live(entries) {
			switch e.Kind {
			case session.Added:
				added += e.Tokens
			case session.Results:
				if rung == model.Bridge { // with all tools listed, what is read counts on neither side
					looked += e.Tokens // the description alone
				}
			case session.Prefix:
				for _, tool := range e.Tools {
					if tool.Name != toolRead && tool.Name != toolAsk && tool.Name != toolFinish {
						catalog += prompt.ToolTokens(r.Engine.cfg.Count, []llm.Tool{tool})
					}
				}
			}
		}
		first, second := ends[0].Account, ends[1].Account
		if second.Shown < added+looked+catalog || second.Shown > added+looked+catalog+300 { // and the map
			t.Errorf("%s: Shown = %d, want %d and the map", rung, second.Shown, added+looked+catalog)
		}
		if first.Added != first.Shown || first.Shown == 0 || second.Added != second.Shown-first.Shown || second.Added < looked {
			t.Errorf("%s: accounts = %+v, %+v; want the first to add all of it, the second the rest", rung, first, second)
		}
	}
}

// TestAccountOfACommand: where no model was asked nothing was shown to one.
func TestAccountOfACommand(t *testing.T) {
	var ends []event.Done
	r := open(t, setting{config: func(c *Config) {
		c.Ended = func(d event.Done, _ time.Time) { ends = append(ends, d) }
		c.Command = func(context.Context, event.Input) (Command, bool, error) { return Command{Text: "help"}, true, nil }
	}})
	id := r.session()
	r.say(id, "/greet")
	if len(ends) != 1 || ends[0].Account != (event.Account{}) || ends[0].Steps != 0 {
		t.Errorf("ends = %+v, want one with no account", ends)
	}
}

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
		{[]llm.Block{result(toolDiscover, "123456789")}, 100},
		{[]llm.Block{result(toolDescribe, "123456789"), result("other", "123456789")}, 50},
	} {
		if got := lookedUp(&session.Entry{Blocks: tt.blocks, Tokens: 100}, false); got != tt.want {
			t.Errorf("lookedUp(%v) = %d, want %d", tt.blocks, got, tt.want)
		}
	}
}

// BenchmarkAccount is what keeping accounts adds to the end of a turn, in a
// session of 20 turns.
func BenchmarkAccount(b *testing.B) {
	r := open(b, setting{tools: many(2000)})
	r.model = &quick{}
	id := r.session()
	for n := range 20 {
		r.say(id, fmt.Sprintf("please do thing number %d with colours", n))
	}
	_, entries, err := r.sessions.Read(b.Context(), ada, id)
	if err != nil {
		b.Fatal(err)
	}
	t := &turn{e: r.Engine, in: event.Input{Principal: ada, Session: id}, view: r.door.View(ada), model: Model{Model: r.model}, number: 20, live: session.Live(entries)}
	t.prefix = t.live[0]
	t.selection.Tokens.Map = 100
	b.ReportAllocs()
	for b.Loop() {
		if t.account().Shown == 0 {
			b.Fatal("nothing is shown")
		}
	}
}
