package engine

import (
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
	for _, delivery := range []model.DeliveryMode{model.Bridge, model.Whole} {
		var ends []event.Done
		r := open(t, setting{config: func(c *Config) {
			c.Terms, c.Ended = Terms{Delivery: delivery}.Always, func(d event.Done, _ time.Time) { ends = append(ends, d) }
		}})
		id := r.begin(llmtest.Replies(
			text("Hello."), answers(llm.ToolCall{ID: "d1", Name: toolDescribe, Arguments: []byte(`{"id":"tool:greet"}`)}), text("Done.")))
		done(t, r.say(id, "greet somebody by name"), event.EndAnswer)
		done(t, r.say(id, "greet somebody by name"), event.EndAnswer)
		if len(ends) != 2 {
			t.Fatalf("%s: %d turns ended, want 2", delivery, len(ends))
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
				if delivery == model.Bridge { // with all tools listed, what is read counts on neither side
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
			t.Errorf("%s: Shown = %d, want %d and the map", delivery, second.Shown, added+looked+catalog)
		}
		if first.Added != first.Shown || first.Shown == 0 || second.Added != second.Shown-first.Shown || second.Added < looked {
			t.Errorf("%s: accounts = %+v, %+v; want the first to add all of it, the second the rest", delivery, first, second)
		}
	}
}
