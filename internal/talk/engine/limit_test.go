package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/testkit"
	"ken/llm"
	"ken/llm/llmtest"
)

// replying answers every question of a turn but those of the desk with the same
// reply.
func (r *rig) replying(in event.Input, reply event.Reply) []event.Event {
	r.t.Helper()
	return r.watch(r.t.Context(), in, func(e event.Event) {
		if a, ok := e.(event.Asked); ok && a.What != event.Consent {
			if err := r.Reply(context.Background(), ada, in.Session, a.ID, reply); err != nil {
				r.t.Fatal(err)
			}
		}
	})
}

// TestK416Loops: a model that never ends is stopped by each of the limits, the
// turn says which, and a person may let it go on.
func TestK416Loops(t *testing.T) {
	n := 0
	other := func(llmtest.Seen) llmtest.Reply {
		n++
		return answers(greet(fmt.Sprint(n)))
	}
	for _, c := range []struct {
		name   string
		limits Limits
		script llmtest.Script
		why    string
		steps  int
	}{
		{"steps", Limits{Steps: 5}, other, "chat.steps", 5},
		{"identical calls", Limits{}, llmtest.Always(answers(invoke("tool:greet", ` {"name" : "same"}`))), "chat.repeats", 4},
		{"mistakes", Limits{}, llmtest.Always(answers(call("nonsense", `{}`), call(toolFinish+"ed", `{}`))), "chat.mistakes", 2},
		{"nothing", Limits{}, llmtest.Always(llmtest.Reply{Stop: llm.StopEnd}), "chat.mistakes", 3},
		{"requests", Limits{Requests: 4}, other, "chat.requests", 4},
		{"tokens", Limits{Tokens: 40}, other, "chat.tokens", 3},
		{"cost", Limits{Cost: 0.05}, other, "chat.cost", 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := open(t, setting{config: terms(Terms{Limits: c.limits}), row: model.Row{Price: model.Price{Input: 1000, Output: 1000}}})
			id := r.begin(c.script)
			d := done(t, r.turn(event.Input{Session: id, Text: "go", Alone: true}), event.EndLimit)
			if !strings.Contains(d.Why, c.why) || d.Steps != c.steps {
				t.Errorf("Done = %+v, want %d steps and %s", d, c.steps, c.why)
			}
			r.entries(id)
			done(t, r.replying(event.Input{Session: r.session(), Text: "go"}, event.Reply{Yes: false}), event.EndLimit)
			if a := of[event.Asked](r.events); len(a) != 1 || a[0].What != event.GoOn {
				t.Errorf("Asked = %+v, want whether to go on", a)
			}
		})
	}
	tell(t, []story{{
		name: "go on", setting: setting{config: terms(Terms{Limits: Limits{Steps: 2}})}, script: []llmtest.Reply{answers(greet("A")), answers(greet("B")), answers(greet("C")), text("Done.")},
		steps: []step{answered("go", event.GoOn, event.Reply{Yes: true})}, results: []string{"hello A", "hello B", "hello C"},
	}}, inMemory)
}

// TestS3U04RepeatsAreCanonical: a call is the same however its arguments are
// spelled, and another one in between resets the count.
func TestS3U04RepeatsAreCanonical(t *testing.T) {
	for _, c := range []struct {
		name    string
		between bool
		end     event.End
		calls   int
	}{{"in a row", false, event.EndLimit, 3}, {"with another between", true, event.EndAnswer, 4}} {
		r := open(t, setting{tools: saying("tool:look", reading, "seen")})
		var replies []llmtest.Reply
		for i, s := range []string{`{"a":1,"b":2}`, `{ "b": 2, "a": 1 }`, `{"b":2,"a":1}`, "{\n\"a\":1,\"b\":2}"} {
			replies = append(replies, answers(invoke("tool:look", s)))
			if c.between {
				replies = append(replies, answers(greet(fmt.Sprint(i))))
			}
		}
		id := r.begin(llmtest.Replies(append(replies, text("Done."))...))
		alone("go", c.end)(r, id)
		if n := r.count("tool:look"); n != c.calls {
			t.Errorf("%s: %d calls, want %d", c.name, n, c.calls)
		}
		r.entries(id)
	}
}

// TestFloods: an answer without end is cut, and a call in it is not made.
func TestFloods(t *testing.T) {
	bounded := setting{config: terms(Terms{Limits: Limits{AnswerBytes: 10_000}})}
	limited := []step{says("go", event.EndLimit)}
	tell(t, []story{
		{
			name: "text", setting: bounded, script: []llmtest.Reply{{Text: strings.Repeat("Ken и ", 10_000), Fragments: 1000}}, steps: limited,
			check: func(t *testing.T, r *rig, _ string) {
				if n := len(done(t, r.events, event.EndLimit).Text); n > 10_000 {
					t.Errorf("the answer has %d bytes", n)
				}
			},
		},
		{
			name: "arguments", setting: bounded, script: []llmtest.Reply{answers(greet(strings.Repeat("x", 100_000))), text("Done.")}, steps: limited,
			check: func(t *testing.T, r *rig, _ string) {
				contains(t, "why", done(t, r.events, event.EndLimit).Why, "no call in it was made (chat.answerBytes)")
			},
		},
	}, inMemory)
}

// TestLargeMessage: a message of ten megabytes is kept, and the model sees an
// excerpt and how to read the rest.
func TestLargeMessage(t *testing.T) {
	testkit.CI(t, "writes megabytes")
	r := open(t, setting{})
	id := r.begin(llmtest.Replies(text("Long."), text("Still here.")))
	ten := strings.Repeat("0123456789", 1<<20)
	done(t, r.say(id, ten), event.EndAnswer)
	sent := textOf(r.entries(id)[1].Blocks)
	if contains(t, "the message", sent, "read_result, handle "); len(sent) > 100_000 {
		t.Errorf("the message that is sent has %d bytes", len(sent))
	}
	done(t, r.say(id, "and now?"), event.EndAnswer)
	r.cfg.Keep = nil
	r.Engine = New(r.cfg)
	contains(t, "without a place to keep it", done(t, r.say(id, ten), event.EndFailed).Why, "chat.messageBytes")
	for want, in := range map[capability.ErrorKind]event.Input{
		capability.Conflict: {Session: id, Continue: true}, // it was never taken
		capability.Invalid:  {Session: id, Text: strings.Repeat("x", 65<<20)},
	} {
		if _, err := r.try(context.Background(), in); capability.KindOf(err) != want {
			t.Errorf("Turn of %.20q = %v, want %v", in.Text, err, want)
		}
	}
}

// TestBadInput: what makes no sense is refused before anything is written.
func TestBadInput(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Always(text("Hello.")))
	for name, in := range map[string]event.Input{
		"empty":             {Session: id, Principal: ada},
		"nobody":            {Session: id, Text: "hello"},
		"no session":        {Session: "nonsense", Text: "hello", Principal: ada},
		"somebody else's":   {Session: id, Text: "hello", Principal: capability.Principal{ID: "eve"}},
		"nothing to go on":  {Session: id, Continue: true, Principal: ada},
		"both":              {Session: id, Continue: true, Text: "hello", Principal: ada},
		"spaces and breaks": {Session: id, Text: " \n\t", Principal: ada},
	} {
		var got error
		for _, err := range r.Turn(context.Background(), in) {
			got = err
		}
		if got == nil {
			t.Errorf("%s: there is no error", name)
		}
	}
	if entries := r.entries(id); len(entries) != 0 {
		t.Errorf("%d entries were written", len(entries))
	}
	done(t, r.say(id, "\xff\xfe hello"), event.EndAnswer)
}

// TestStepDown: a provider that does not take tools in the middle of a
// conversation, or lets none be searched for, gets them by a lower delivery mode,
// from then on.
func TestStepDown(t *testing.T) {
	testkit.CI(t, "takes many turns")
	for fault, mode := range map[llmtest.Fault]model.DeliveryMode{llmtest.UnsupportedInline: model.Inline, llmtest.UnsupportedSearch: model.Search} {
		r := open(t, setting{row: both, config: terms(Terms{Delivery: mode}), tools: many(60)})
		id := r.begin(func(s llmtest.Seen) llmtest.Reply {
			if s.Request.Search != "" || mode == model.Inline && len(given(s.Request.Messages)) > 0 {
				return llmtest.Reply{Fault: fault}
			}
			return text("Hello.")
		})
		done(t, r.say(id, "greet somebody by name, read a greeting"), event.EndAnswer)
		tried := len(r.fake.Requests())
		if n := of[event.Notice](r.events); tried < 2 || tried == 2 && !slices.ContainsFunc(n, func(n event.Notice) bool { return n.Name == "rung" }) {
			t.Fatalf("%s: %d requests and the notices %v, want the refused one and that it was", mode, tried, n)
		}
		done(t, r.say(id, "save a note to the notebook"), event.EndAnswer)
		if n := len(r.fake.Requests()); n != tried+1 {
			t.Errorf("%s: %d requests, want %d: the refusal is remembered", mode, n, tried+1)
		}
	}
}

// TestFitCondenses: a conversation that fills the window is summed up by the
// other model, or cut where that fails, and goes on.
func TestFitCondenses(t *testing.T) {
	testkit.CI(t, "takes many turns")
	for _, works := range []bool{true, false} {
		sum := &llmtest.Fake{Script: llmtest.Always(text("They spoke about colours."))}
		if !works {
			sum.Script = llmtest.Always(llmtest.Reply{Fault: llmtest.Overloaded})
		}
		r := open(t, setting{row: model.Row{Window: 12_000}})
		r.cfg.Model = func(context.Context, session.Head, Retry) (Model, error) {
			price := model.Price{Input: 1e6} // a dollar a token
			return Model{Model: r.model, Condenser: sum, CondenserRow: model.Row{Price: price}, Name: "m", Row: r.row, MaxTokens: 500}, nil
		}
		r.Engine = New(r.cfg)
		id := r.begin(llmtest.Always(text(strings.Repeat("A long answer about colours. ", 100))))
		compacted := 0
		for i := range 20 {
			done(t, r.say(id, fmt.Sprintf("tell me more, %d", i)), event.EndAnswer)
			for _, n := range of[event.Notice](r.events) {
				if n.Name == "compact" {
					compacted++
				}
			}
		}
		if compacted == 0 || compacted > 5 {
			t.Errorf("%d compactions, want a few large ones", compacted)
		}
		for _, e := range r.entries(id) {
			if paid := e.Cost > 0; paid != (e.Kind == session.Summary) {
				t.Errorf("a %s cost %v; only the other model has a price", e.Kind, e.Cost)
			}
		}
		if kinds := kindsOf(r.entries(id)); slices.Contains(kinds, session.Summary) != works || slices.Contains(kinds, session.Marker) == works {
			t.Errorf("works %v: entries %v", works, kinds)
		}
		if said, err := r.Rewind(context.Background(), ada, id, 2); err != nil || said != "tell me more, 1" {
			t.Errorf("Rewind = %q, %v", said, err)
		}
		if live := kindsOf(session.Live(r.entries(id))); len(live) > 5 || slices.Contains(live, session.Summary) {
			t.Errorf("after the rewind %v is live, want the first turn", live)
		}
		done(t, r.say(id, "and now?"), event.EndAnswer)
	}
}

// TestOverflowIsRetried: a provider that finds it too long gets less of it, and a
// person may have it shortened too.
func TestOverflowIsRetried(t *testing.T) {
	testkit.CI(t, "takes many turns")
	r := open(t, setting{})
	id, other := r.begin(llmtest.Always(text(strings.Repeat("A long answer about colours. ", 200)))), r.session()
	for range 6 {
		r.say(id, "tell me more")
		r.say(other, "tell me more")
	}
	r.fake.Script = llmtest.Replies(llmtest.Reply{Fault: llmtest.TooLong}, llmtest.Reply{Fault: llmtest.TooLong}, text("Short."), text("Short."))
	done(t, r.say(id, "and now?"), event.EndAnswer)
	if n := of[event.Notice](r.events); len(n) != 2 {
		t.Errorf("notices = %v, want two compactions", n)
	}
	r.entries(id)
	if c, err := r.Compact(context.Background(), ada, other); err != nil || c.How != "cut" || c.After >= c.Before {
		t.Errorf("Compact = %+v, %v", c, err)
	}
	done(t, r.say(other, "and now?"), event.EndAnswer)
	r.entries(other)
	if c, err := r.Compact(context.Background(), ada, r.session()); err != nil || c.How != "" {
		t.Errorf("Compact of nothing = %+v, %v", c, err)
	}
}

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
