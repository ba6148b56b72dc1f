package engine

import (
	"context"
	"slices"
	"strings"
	"testing"

	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/llm"
	"ken/llm/llmtest"
)

// given are the tools that a conversation was given in its middle.
func given(messages []llm.Message) []string {
	var out []string
	add := func(blocks []llm.Block) {
		for _, b := range blocks {
			for _, tool := range b.Tools {
				out = append(out, tool.Name)
			}
		}
	}
	for _, m := range messages {
		add(m.Blocks)
		for _, b := range m.Blocks {
			if b.Result != nil {
				add(b.Result.Blocks)
			}
		}
	}
	return out
}

// TestRungsOverTheWires: a found tool is called by its own name, by every delivery mode
// of every wire that has it, and the prefix stays.
func TestRungsOverTheWires(t *testing.T) {
	for _, w := range []llmtest.Wire{llmtest.Messages, llmtest.Responses} {
		for _, delivery := range []model.DeliveryMode{model.Inline, model.Search} {
			t.Run(string(w)+"/"+string(delivery), func(t *testing.T) {
				r := open(t, setting{
					row: model.Row{DeliveryModes: []model.DeliveryMode{model.Inline, model.Search}}, tools: many(300),
					config: func(c *Config) { c.Terms = Terms{Delivery: delivery}.Always },
				})
				var seen []llm.Request
				turn := 0
				r.model = wired(t, w, func(s llmtest.Seen) llmtest.Reply {
					seen = append(seen, s.Request)
					has := given(s.Request.Messages)
					if slices.ContainsFunc(s.Request.Messages[len(s.Request.Messages)-1].Blocks, func(b llm.Block) bool {
						return b.Result != nil && strings.Contains(textOf(b.Result.Blocks), "did")
					}) {
						turn++
						return text("Done.")
					}
					name := []string{"thing7", "thing11"}[min(turn, 1)]
					if slices.Contains(has, name) {
						return answers(call(name, `{}`))
					}
					return answers(call(toolDiscover, `{"query":"thing number `+name[5:]+` with colours"}`))
				})
				id := r.session()
				for _, text := range []string{"please do thing number 7 with colours", "and now thing number 11 with colours"} {
					events := r.say(id, text)
					done(t, events, event.EndAnswer)
					for _, n := range of[event.Notice](events) {
						t.Errorf("notice %+v", n)
					}
				}
				if got := r.made(); !slices.Equal(got, []string{"tool:thing7", "tool:thing11"}) {
					t.Errorf("calls = %v", got)
				}
				for i := 1; i < len(seen); i++ {
					if why := prompt.Broke(seen[i-1], seen[i]); why != "" && !strings.HasPrefix(why, "tools: ") {
						t.Errorf("request %d broke the prefix: %s", i+1, why)
					}
				}
				r.entries(id)
			})
		}
	}
}

// TestPerTurnIsLiteral: by choice what was found stands in the system prompt,
// after AGENTS.md, and the tools are those of the turn (S1.31).
func TestPerTurnIsLiteral(t *testing.T) {
	r := open(t, setting{tools: many(300), config: func(c *Config) {
		c.Terms = Terms{Delivery: model.PerTurn}.Always
		c.Layers = func(context.Context, LayerInput) ([]prompt.Layer, []event.Notice, error) {
			return []prompt.Layer{{Name: prompt.Base, Text: "You are Ken."}, {Name: prompt.Agents, Text: "Be kind."}, {Name: prompt.Soul, Text: "You are calm."}}, nil, nil
		}
	}})
	fake := &llmtest.Fake{Script: llmtest.Always(text("Hello."))}
	r.model = fake
	id := r.session()
	r.say(id, "please do thing number 7 with colours")
	events := r.say(id, "and now thing number 11 with colours")
	seen := fake.Requests()
	for i, name := range []string{"thing7", "thing11"} {
		req := seen[i].Request
		order := []int{strings.Index(req.System, "Be kind."), strings.Index(req.System, "# Capability Context (auto-injected)"), strings.Index(req.System, "You are calm.")}
		if order[0] < 0 || !slices.IsSorted(order) {
			t.Errorf("turn %d: the system prompt is %q", i+1, req.System)
		}
		if !slices.ContainsFunc(req.Tools, func(x llm.Tool) bool { return x.Name == name }) {
			t.Errorf("turn %d: %s is not among the tools", i+1, name)
		}
	}
	if n := of[event.Notice](events); len(n) != 1 || n[0].Name != "prefix" {
		t.Errorf("notices = %v, want that the prefix is another one", n)
	}
	r.entries(id)
}
