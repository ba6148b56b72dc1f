package engine

import (
	"context"
	"iter"
	"strings"
	"testing"

	"ken/internal/door"
	"ken/internal/talk/event"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
	"ken/plugin"
)

// breaks is a model that panics, after it has said something or not.
type breaks struct{ said string }

func (b breaks) Generate(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if b.said == "" || yield(llm.Chunk{Text: b.said}, nil) {
			panic("ouch")
		}
	}
}

type badFilter struct{}

func (badFilter) Name() string { return "bad" }

func (badFilter) FilterContext(context.Context, []plugin.File) ([]plugin.File, error) { panic("ouch") }

// TestPanicsEndTheTurn: a model, a layer, a filter, a trace or a rule that
// panics ends the turn as failed. The session is whole, the next turn runs, and
// what was shown of an answer is kept.
func TestPanicsEndTheTurn(t *testing.T) {
	fine := llmtest.Always(text("Hello."))
	for _, tt := range []struct {
		name   string
		model  llm.Model
		config func(*Config)
	}{
		{"model", breaks{}, nil},
		{"model in the middle", breaks{"Once upon a time"}, nil},
		{"opening the model", nil, func(c *Config) {
			c.Model = func(context.Context, session.Head, Retry) (Model, error) { panic("ouch") }
		}},
		{"layer", nil, func(c *Config) {
			c.Layers = func(context.Context, LayerInput) ([]prompt.Layer, []event.Notice, error) { panic("ouch") }
		}},
		{"filter", nil, func(c *Config) { c.Filters = []plugin.ContextFilter{badFilter{}} }},
		{"rule", nil, func(c *Config) { c.Reads = func(*door.Entry) bool { panic("ouch") } }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := open(t, setting{})
			good := r.cfg
			if tt.config != nil {
				tt.config(&r.cfg)
				r.Engine = New(r.cfg)
			}
			r.model = tt.model
			if tt.model == nil {
				r.model = &llmtest.Fake{Script: llmtest.Replies(answers(greet("A"), greet("B")), text("Done."))}
			}
			id := r.session()
			d := done(t, r.say(id, "hello"), event.EndFailed)
			contains(t, "Why", d.Why, "panic: ouch")
			if b, ok := tt.model.(breaks); ok && b.said != d.Text {
				t.Errorf("Text = %q, want %q", d.Text, b.said)
			}
			r.Engine, r.model = New(good), &llmtest.Fake{Script: fine}
			done(t, r.say(id, "once more"), event.EndAnswer)
			kept := ""
			for _, e := range r.entries(id) {
				kept += textOf(e.Blocks)
			}
			if b, ok := tt.model.(breaks); ok && !strings.Contains(kept, b.said) {
				t.Errorf("%q was shown and is not kept", b.said)
			}
		})
	}
}

// TestAPanicBesideTheTurn: what breaks while calls run at once is the result of
// its call.
func TestAPanicBesideTheTurn(t *testing.T) {
	broken := false
	r := open(t, setting{find: func() {
		if broken {
			panic("ouch")
		}
	}})
	id := r.begin(func(s llmtest.Seen) llmtest.Reply {
		if broken = s.Number == 1; broken {
			return answers(call(toolDiscover, `{"query":"greet"}`), invoke("tool:greet", `{"name":"A"}`))
		}
		return text("Done.")
	})
	done(t, r.say(id, "hello"), event.EndAnswer)
	got := resultTexts(r.entries(id))
	contains(t, "the result", got[0], "panic: ouch")
	contains(t, "the other", got[1], "hello A")
}

// TestAListenersPanicIsTheirs: it is not swallowed, and the session is free.
func TestAListenersPanicIsTheirs(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Always(text("Hello.")))
	func() {
		defer func() {
			if p := recover(); p != "mine" {
				t.Errorf("recovered %v, want the listener's own", p)
			}
		}()
		for range r.Turn(context.Background(), event.Input{Principal: ada, Session: id, Text: "hello"}) {
			panic("mine")
		}
	}()
	done(t, r.say(id, "once more"), event.EndAnswer)
}
