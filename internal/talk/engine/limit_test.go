package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/store"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

// replying answers every question of a turn with the same reply.
func (r *rig) replying(in event.Input, reply event.Reply) []event.Event {
	r.t.Helper()
	in.Principal = ada
	var events []event.Event
	for e, err := range r.Turn(soon(r.t), in) {
		if err != nil {
			r.t.Fatal(err)
		}
		events = append(events, e)
		if a, ok := e.(event.Asked); ok && a.What != event.Consent {
			if err := r.Reply(context.Background(), ada, in.Session, a.ID, reply); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return events
}

// TestK416Loops: a model that never ends is stopped by each of the limits, the
// turn says which, and a person may let it go on.
func TestK416Loops(t *testing.T) {
	n := 0
	other := func(llmtest.Seen) llmtest.Reply {
		n++
		return answers(invoke("tool:greet", fmt.Sprintf(`{"name":"%d"}`, n)))
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
			r := open(t, setting{config: func(cfg *Config) { cfg.Terms = Terms{Limits: c.limits}.Always }, row: model.Row{Price: model.Price{Input: 1000, Output: 1000}}})
			id := r.begin(c.script)
			d := done(t, r.turn(event.Input{Session: id, Text: "go", Alone: true}), event.EndLimit)
			if !strings.Contains(d.Why, c.why) || d.Steps != c.steps {
				t.Errorf("Done = %+v, want %d steps and %s", d, c.steps, c.why)
			}
			r.entries(id)
			id = r.session()
			events := r.replying(event.Input{Session: id, Text: "go"}, event.Reply{Yes: false})
			done(t, events, event.EndLimit)
			if a := of[event.Asked](events); len(a) != 1 || a[0].What != event.GoOn {
				t.Errorf("Asked = %+v, want whether to go on", a)
			}
		})
	}
	t.Run("go on", func(t *testing.T) {
		r := open(t, setting{config: func(cfg *Config) { cfg.Terms = Terms{Limits: Limits{Steps: 2}}.Always }})
		id := r.begin(llmtest.Replies(other(llmtest.Seen{}), other(llmtest.Seen{}), other(llmtest.Seen{}), text("Done.")))
		events := r.replying(event.Input{Session: id, Text: "go"}, event.Reply{Yes: true})
		if done(t, events, event.EndAnswer); len(of[event.Asked](events)) != 1 {
			t.Errorf("Asked = %+v, want one", of[event.Asked](events))
		}
	})
}

// TestFloods: an answer without end is cut, hundreds of calls are bounded, and a
// huge result is an excerpt.
func TestFloods(t *testing.T) {
	t.Run("text", func(t *testing.T) {
		r := open(t, setting{config: func(c *Config) { c.Terms = Terms{Limits: Limits{AnswerBytes: 10_000}}.Always }})
		id := r.begin(llmtest.Replies(llmtest.Reply{Text: strings.Repeat("Ken и ", 100_000), Fragments: 1000}))
		d := done(t, r.say(id, "go"), event.EndLimit)
		if len(d.Text) > 10_000 {
			t.Errorf("the answer has %d bytes", len(d.Text))
		}
		r.entries(id)
	})
	t.Run("arguments", func(t *testing.T) {
		r := open(t, setting{config: func(c *Config) { c.Terms = Terms{Limits: Limits{AnswerBytes: 10_000}}.Always }})
		id := r.begin(llmtest.Replies(answers(invoke("tool:greet", `{"name":"`+strings.Repeat("x", 100_000)+`"}`)), text("Done.")))
		if d := done(t, r.say(id, "go"), event.EndLimit); !strings.Contains(d.Why, "no call in it was made (chat.answerBytes)") {
			t.Errorf("Done.Why = %q, want that the call was not made", d.Why)
		}
		r.entries(id)
	})
	t.Run("ids", func(t *testing.T) { // a server that numbers the calls of each answer from the start
		r := open(t, setting{})
		again := func() llmtest.Reply {
			c := invoke("tool:greet", `{"name":"Ada"}`)
			c.ID = "call_0"
			return answers(c)
		}
		id := r.begin(llmtest.Replies(again(), again(), text("Done.")))
		done(t, r.replying(event.Input{Session: id, Text: "go"}, event.Reply{Yes: true}), event.EndAnswer)
		seen := map[string]bool{}
		for _, e := range r.entries(id) {
			for _, b := range e.Blocks {
				if b.Call != nil && seen[b.Call.ID] {
					t.Errorf("two calls have the id %s", b.Call.ID)
				} else if b.Call != nil {
					seen[b.Call.ID] = true
				}
			}
		}
		if len(seen) != 2 {
			t.Errorf("the calls have the ids %v, want two", seen)
		}
	})
	t.Run("calls", func(t *testing.T) {
		r := open(t, setting{config: func(c *Config) { c.Terms = Terms{Limits: Limits{Calls: 10}}.Always }})
		var calls []llm.ToolCall
		for i := range 300 {
			calls = append(calls, invoke("tool:greet", fmt.Sprintf(`{"name":"%d"}`, i)))
		}
		id := r.begin(llmtest.Replies(answers(calls...), text("Done.")))
		done(t, r.replying(event.Input{Session: id, Text: "go"}, event.Reply{Yes: true}), event.EndAnswer)
		if n := len(r.made()); n != 10 {
			t.Errorf("%d calls were made, want 10", n)
		}
		if got := resultTexts(r.entries(id)); len(got) != 300 || !strings.Contains(got[299], "the limit is 10") {
			t.Errorf("%d results, the last %q", len(got), got[len(got)-1])
		}
	})
	t.Run("result", func(t *testing.T) {
		r := open(t, setting{tools: func(r *rig) {
			r.tool("tool:flood", "Floods", anySchema, reading, func(context.Context, capability.Call) (capability.Result, error) {
				return said(strings.Repeat("x", 5<<20))
			})
		}})
		id := r.begin(llmtest.Replies(answers(invoke("tool:flood", `{}`)), text("Done.")))
		done(t, r.say(id, "go"), event.EndAnswer)
		if got := resultTexts(r.entries(id))[0]; len(got) > 110_000 || !strings.Contains(got, "read_result") {
			t.Errorf("the result has %d bytes", len(got))
		}
	})
}

// TestAMessageOfTenMegabytes is kept, and the model sees an excerpt and how to
// read the rest.
func TestAMessageOfTenMegabytes(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Replies(text("Long."), text("Still here.")))
	events := r.say(id, strings.Repeat("0123456789", 1<<20))
	done(t, events, event.EndAnswer)
	if size := len(textOf(r.entries(id)[1].Blocks)); size > 100_000 {
		t.Errorf("the message that is sent has %d bytes", size)
	}
	contains(t, "the message", textOf(r.entries(id)[1].Blocks), "read_result, handle ")
	done(t, r.say(id, "and now?"), event.EndAnswer)
	r.cfg.Keep = nil
	r.Engine = New(r.cfg)
	d := done(t, r.say(id, strings.Repeat("0123456789", 1<<20)), event.EndFailed)
	contains(t, "without a place to keep it", d.Why, "chat.messageBytes")
	if _, err := r.try(context.Background(), event.Input{Session: id, Continue: true}); capability.KindOf(err) != capability.Conflict {
		t.Errorf("going on with what was never taken = %v, want Conflict", err)
	}
	if _, err := r.try(context.Background(), event.Input{Session: id, Text: strings.Repeat("x", 65<<20)}); capability.KindOf(err) != capability.Invalid {
		t.Errorf("65 MB = %v, want Invalid", err)
	}
}

// TestAHistoryOfANewerVersion is not touched.
func TestAHistoryOfANewerVersion(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Always(text("Hello.")))
	r.say(id, "hello")
	for item, err := range r.db.Scan(context.Background(), "session/", store.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(item.Key, "/entry/") {
			item.Value = bytes.Replace(item.Value, []byte(`"v":1`), []byte(`"v":99`), 1)
		}
		var b store.Batch
		b.Put(item.Key, item.Value) // the head too, as every writer of an entry does
		if _, err := r.db.Apply(context.Background(), &b); err != nil {
			t.Fatal(err)
		}
	}
	r.cfg.Sessions = session.New(r.db, session.Config{}) // of another process
	r.Engine = New(r.cfg)
	before := len(dump(t, r.db))
	_, err := r.try(context.Background(), event.Input{Session: id, Text: "hello again"})
	if err == nil || !strings.Contains(err.Error(), "99") {
		t.Errorf("Turn = %v, want one about version 99", err)
	}
	if after := len(dump(t, r.db)); after != before {
		t.Errorf("%d keys, want %d as before", after, before)
	}
}

func dump(t *testing.T, db *store.Store) []string {
	t.Helper()
	var out []string
	for item, err := range db.Scan(context.Background(), "session/", store.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, item.Key)
	}
	return out
}

// TestBadInput: what makes no sense is refused before anything is written.
func TestBadInput(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Always(text("Hello.")))
	for name, in := range map[string]event.Input{
		"empty":             {Session: id, Principal: ada},
		"nobody":            {Session: id, Text: "hello", Principal: capability.Principal{}},
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

// TestConsent: a call waits at the desk and is made once it is approved. A denial
// is a result; if no person can be asked, the call stays pending.
func TestConsent(t *testing.T) {
	asking := setting{tools: func(r *rig) {
		r.tool("tool:danger", "Deletes everything", anySchema, capability.Effects{ReadOnly: capability.No, Destructive: capability.Yes}, func(context.Context, capability.Call) (capability.Result, error) {
			return said("deleted")
		})
	}}
	script := func() llmtest.Script {
		return llmtest.Replies(answers(invoke("tool:greet", `{"name":"A"}`), invoke("tool:danger", `{}`), invoke("tool:greet", `{"name":"B"}`)), text("Done."))
	}
	for _, effect := range []approval.Effect{approval.Yes, approval.No} {
		r := open(t, asking)
		id := r.begin(script())
		var events []event.Event
		for e, err := range r.Turn(soon(t), event.Input{Principal: ada, Session: id, Text: "go"}) {
			if err != nil {
				t.Fatal(err)
			}
			events = append(events, e)
			if a, ok := e.(event.Asked); ok {
				if a.What != event.Consent || a.Call.Target != "tool:danger" || a.Ticket == "" || len(a.Lines) == 0 {
					t.Errorf("Asked = %+v", a)
				}
				if _, err := r.desk.Settle(context.Background(), a.Ticket, approval.Answer{By: ada, Effect: effect, Scope: approval.Once}); err != nil {
					t.Fatal(err)
				}
			}
		}
		done(t, events, event.EndAnswer)
		if a := of[event.Answered](events); len(a) != 1 || a[0].Yes != (effect == approval.Yes) {
			t.Errorf("Answered = %+v", a)
		}
		if made := r.count("tool:danger") == 1; made != (effect == approval.Yes) {
			t.Errorf("%s: made %v", effect, made)
		}
		got := resultTexts(r.entries(id))
		if len(got) != 3 || !strings.Contains(got[2], "hello B") {
			t.Fatalf("results = %q", got)
		}
		if effect == approval.No {
			contains(t, "the refusal", got[1], "ada denied request")
		}
	}
	t.Run("alone", func(t *testing.T) {
		r := open(t, asking)
		id := r.begin(script())
		events := r.turn(event.Input{Session: id, Text: "go", Alone: true})
		d := done(t, events, event.EndWaiting)
		contains(t, "why", d.Why, "tool:danger")
		if got := resultTexts(r.entries(id)); len(got) != 1 {
			t.Errorf("results = %q, want only that of the first: what is pending is not denied", got)
		}
		head, err := r.sessions.Head(context.Background(), ada, id)
		if err != nil || !head.Open {
			t.Errorf("head = %+v, %v; want it open", head, err)
		}
		done(t, r.turn(event.Input{Session: id, Continue: true, Alone: true}), event.EndWaiting)
		ticket := of[event.Asked](events)[0].Ticket
		if _, err := r.desk.Settle(context.Background(), ticket, approval.Answer{By: ada, Effect: approval.Yes, Scope: approval.Once}); err != nil {
			t.Fatal(err)
		}
		done(t, r.turn(event.Input{Session: id, Continue: true, Alone: true}), event.EndAnswer)
		if got := r.made(); !slices.Equal(got, []string{"tool:greet", "tool:danger", "tool:greet"}) {
			t.Errorf("calls = %v", got)
		}
		r.entries(id)
	})
	t.Run("the user goes on instead", func(t *testing.T) {
		r := open(t, asking)
		id := r.begin(llmtest.Replies(answers(invoke("tool:danger", `{}`)), text("Fine, I leave it.")))
		done(t, r.turn(event.Input{Session: id, Text: "go", Alone: true}), event.EndWaiting)
		done(t, r.say(id, "never mind"), event.EndAnswer)
		contains(t, "the result", resultTexts(r.entries(id))[0], "Nobody has refused it")
	})
}

// TestAskUser: the model asks, now or when a person comes back.
func TestAskUser(t *testing.T) {
	question := answers(call(toolAsk, `{"question":"Which one?","choices":["red","blue"]}`))
	r := open(t, setting{})
	id := r.begin(llmtest.Replies(question, text("Blue it is.")))
	events := r.replying(event.Input{Session: id, Text: "paint it"}, event.Reply{Text: "blue"})
	done(t, events, event.EndAnswer)
	if a := of[event.Asked](events); len(a) != 1 || a[0].What != event.Ask || a[0].Text != "Which one?" || !slices.Equal(a[0].Choice, []string{"red", "blue"}) {
		t.Errorf("Asked = %+v", a)
	}
	contains(t, "the result", resultTexts(r.entries(id))[0], "The user answered: blue")

	id = r.begin(llmtest.Replies(question, text("Red it is.")))
	events = r.turn(event.Input{Session: id, Text: "paint it", Alone: true})
	done(t, events, event.EndWaiting)
	ask := of[event.Asked](events)[0].ID
	if err := r.Reply(context.Background(), capability.Principal{ID: "eve"}, id, ask, event.Reply{Text: "black"}); err == nil {
		t.Error("somebody else replied")
	}
	if err := r.Reply(context.Background(), ada, id, "9.9.9", event.Reply{Text: "black"}); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Reply to nothing = %v, want NotFound", err)
	}
	if err := r.Reply(context.Background(), ada, id, ask, event.Reply{Text: "red"}); err != nil {
		t.Fatal(err)
	}
	done(t, r.turn(event.Input{Session: id, Continue: true, Alone: true}), event.EndAnswer)
	contains(t, "the result", resultTexts(r.entries(id))[0], "The user answered: red")
}

// TestInquiry: what a capability asks reaches the person, and the answer it.
func TestInquiry(t *testing.T) {
	r := open(t, setting{tools: func(r *rig) {
		r.tool("tool:book", "Books a table", anySchema, changing, func(_ context.Context, c capability.Call) (capability.Result, error) {
			if a := c.Answers["people"]; a != nil {
				return said("booked with " + string(a) + " " + c.State)
			}
			return capability.Result{}, &capability.Error{Kind: capability.InputNeeded, Op: "call", Target: "tool:book", Err: &capability.Inquiry{
				Requests: map[string]json.RawMessage{"people": json.RawMessage(`{"method":"elicitation/create","params":{"message":"How many?"}}`)}, State: "s1",
			}}
		})
	}, rules: func(s *policy.Settings) {
		s.Rules = append(s.Rules, policy.Rule{ID: "book", Effect: policy.Allow, Capabilities: []string{"tool:book"}, Reason: "tests", Where: "test:3"})
	}})
	id := r.begin(llmtest.Replies(answers(invoke("tool:book", `{}`)), text("Done.")))
	events := r.replying(event.Input{Session: id, Text: "book"}, event.Reply{Answers: map[string]json.RawMessage{"people": json.RawMessage(`{"action":"accept","content":{"n":4}}`)}})
	done(t, events, event.EndAnswer)
	if a := of[event.Asked](events); len(a) != 1 || a[0].What != event.Inquiry || !strings.Contains(string(a[0].Requests["people"]), "How many?") {
		t.Errorf("Asked = %+v", a)
	}
	contains(t, "the result", resultTexts(r.entries(id))[0], `booked with {"action":"accept","content":{"n":4}} s1`)
}

// TestStepDown: a provider that does not take tools in the middle of a
// conversation gets them by a lower delivery mode, from then on.
func TestStepDown(t *testing.T) {
	r := open(t, setting{
		row:    model.Row{DeliveryModes: []model.DeliveryMode{model.Inline, model.Search}},
		config: func(c *Config) { c.Terms = Terms{Delivery: model.Inline}.Always },
		tools: func(r *rig) {
			for i := range 60 {
				r.tool(fmt.Sprintf("tool:thing%d", i), fmt.Sprintf("Does thing number %d with colours", i), anySchema, reading, func(context.Context, capability.Call) (capability.Result, error) { return said("did") })
			}
		},
	})
	fake := &llmtest.Fake{Script: func(s llmtest.Seen) llmtest.Reply {
		for _, m := range s.Request.Messages {
			for _, b := range m.Blocks {
				if len(b.Tools) > 0 {
					return llmtest.Reply{Fault: llmtest.UnsupportedInline}
				}
			}
		}
		return text("Hello.")
	}}
	r.model = fake
	id := r.session()
	events := r.say(id, "greet somebody by name, read a greeting")
	done(t, events, event.EndAnswer)
	tried := len(fake.Requests())
	if tried == 2 && !slices.ContainsFunc(of[event.Notice](events), func(n event.Notice) bool { return n.Name == "rung" }) {
		t.Errorf("notices = %v, want one about the rung", of[event.Notice](events))
	}
	if tried < 2 {
		t.Fatalf("%d requests, want the refused one too", tried)
	}
	done(t, r.say(id, "save a note to the notebook"), event.EndAnswer)
	if n := len(fake.Requests()); n != tried+1 {
		t.Errorf("%d requests, want %d: the refusal is remembered", n, tried+1)
	}
}

// TestFitCondenses: a conversation that fills the window is summed up by the
// other model, or cut where that fails, and goes on.
func TestFitCondenses(t *testing.T) {
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
			events := r.say(id, fmt.Sprintf("tell me more, %d", i))
			done(t, events, event.EndAnswer)
			for _, n := range of[event.Notice](events) {
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
		kinds := kindsOf(r.entries(id))
		if slices.Contains(kinds, session.Summary) != works || slices.Contains(kinds, session.Marker) == works {
			t.Errorf("works %v: entries %v", works, kinds)
		}
		if said, err := r.Rewind(context.Background(), ada, id, 2); err != nil || said != "tell me more, 1" {
			t.Errorf("Rewind = %q, %v", said, err)
		}
		_, entries, err := r.sessions.Read(context.Background(), ada, id)
		if err != nil {
			t.Fatal(err)
		}
		if live := kindsOf(session.Live(entries)); len(live) > 5 || slices.Contains(live, session.Summary) {
			t.Errorf("after the rewind %v is live, want the first turn", live)
		}
		done(t, r.say(id, "and now?"), event.EndAnswer)
	}
}

// TestOverflowIsRetried: a provider that finds it too long gets less of it.
func TestOverflowIsRetried(t *testing.T) {
	r := open(t, setting{})
	long := strings.Repeat("A long answer about colours. ", 200)
	fake := &llmtest.Fake{Script: llmtest.Always(text(long))}
	r.model = fake
	id := r.session()
	for range 6 {
		r.say(id, "tell me more")
	}
	fake.Script = llmtest.Replies(llmtest.Reply{Fault: llmtest.TooLong}, llmtest.Reply{Fault: llmtest.TooLong}, text("Short."))
	events := r.say(id, "and now?")
	done(t, events, event.EndAnswer)
	if n := len(of[event.Notice](events)); n != 2 {
		t.Errorf("notices = %v, want two compactions", of[event.Notice](events))
	}
	r.entries(id)
}

// TestCompact shortens on demand.
func TestCompact(t *testing.T) {
	r := open(t, setting{})
	id := r.begin(llmtest.Always(text(strings.Repeat("A long answer about colours. ", 200))))
	for range 6 {
		r.say(id, "tell me more")
	}
	c, err := r.Compact(context.Background(), ada, id)
	if err != nil || c.How != "cut" || c.After >= c.Before {
		t.Errorf("Compact = %+v, %v", c, err)
	}
	done(t, r.say(id, "and now?"), event.EndAnswer)
	r.entries(id)
	if c, err := r.Compact(context.Background(), ada, r.session()); err != nil || c.How != "" {
		t.Errorf("Compact of nothing = %+v, %v", c, err)
	}
}
