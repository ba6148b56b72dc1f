package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

// errCrash is how a process ends in these tests: the receiver of the events
// panics, and nothing more of the turn is written.
var errCrash = errors.New("crash")

// crashAt takes a turn up to the first event that at picks, and ends it there as
// a process ends that is killed. It replies to what is asked.
func (r *rig) crashAt(in event.Input, reply event.Reply, at func(event.Event) bool) {
	r.t.Helper()
	in.Principal = ada
	defer func() {
		if p := recover(); p != errCrash {
			r.t.Fatalf("the turn ended with %v, want the crash", p)
		}
	}()
	for e, err := range r.Turn(soon(r.t), in) {
		if err != nil {
			r.t.Fatal(err)
		}
		if at(e) {
			panic(errCrash)
		}
		if a, ok := e.(event.Asked); ok {
			if err := r.Reply(context.Background(), ada, in.Session, a.ID, reply); err != nil && !errors.Is(err, session.ErrBusy) { // it has one that was kept
				r.t.Error(err)
			}
		}
	}
}

// finishedOf picks the end of a call.
func finishedOf(target capability.ID) func(event.Event) bool {
	return func(e event.Event) bool {
		f, ok := e.(event.Finished)
		return ok && f.Target == target
	}
}

// TestNewMessageAfterACrash: of a call that had its effect and whose result was
// not written the model is never told that it was not made, or that it waited
// for a person.
func TestNewMessageAfterACrash(t *testing.T) {
	save := invoke("tool:save", `{"name":"B"}`)
	t.Run("in the first run", func(t *testing.T) {
		r := open(t, setting{})
		id := r.begin(llmtest.Replies(answers(save, invoke("tool:save", `{"name":"C"}`)), text("Done.")))
		r.crashAt(event.Input{Session: id, Text: "save it"}, event.Reply{}, finishedOf("tool:save"))
		if n := r.count("tool:save"); n != 1 {
			t.Fatalf("tool:save ran %d times, want 1", n)
		}
		done(t, r.say(id, "did you do it?"), event.EndAnswer)
		if got := resultTexts(r.entries(id)); len(got) != 2 || got[0] != notKnown {
			t.Errorf("results = %q, want that it is not known", got)
		}
		if n := r.count("tool:save"); n != 1 {
			t.Errorf("tool:save ran %d times, want 1", n)
		}
	})
	t.Run("after a command", func(t *testing.T) {
		r := open(t, setting{config: func(c *Config) {
			c.Command = func(context.Context, event.Input) (event.Command, bool, error) {
				return event.Command{Text: "help"}, true, nil
			}
		}})
		id := r.begin(llmtest.Replies(answers(save)))
		r.crashAt(event.Input{Session: id, Text: "save it"}, event.Reply{}, finishedOf("tool:save"))
		done(t, r.say(id, "/help"), event.EndCommand)
		if got := resultTexts(r.entries(id)); len(got) != 1 || got[0] != notKnown {
			t.Errorf("results = %q, want that it is not known", got)
		}
	})
	t.Run("when it had waited before", func(t *testing.T) {
		r := open(t, setting{})
		id := r.begin(llmtest.Replies(answers(call(toolAsk, `{"question":"ok?"}`), save), text("Done.")))
		events := r.turn(event.Input{Session: id, Text: "save it", Alone: true})
		done(t, events, event.EndWaiting)
		if err := r.Reply(context.Background(), ada, id, of[event.Asked](events)[0].ID, event.Reply{Text: "yes"}); err != nil {
			t.Fatal(err)
		}
		r.crashAt(event.Input{Session: id, Continue: true}, event.Reply{}, finishedOf("tool:save"))
		done(t, r.say(id, "and?"), event.EndAnswer)
		if got := resultTexts(r.entries(id)); len(got) != 2 || got[1] != notKnown {
			t.Errorf("results = %q, want that the second is not known", got)
		}
	})
	t.Run("while it waits", func(t *testing.T) {
		r := open(t, setting{})
		id := r.begin(llmtest.Replies(answers(call(toolAsk, `{"question":"ok?"}`), save), text("Done.")))
		done(t, r.turn(event.Input{Session: id, Text: "save it", Alone: true}), event.EndWaiting)
		done(t, r.say(id, "never mind"), event.EndAnswer)
		got := resultTexts(r.entries(id))
		if len(got) != 2 {
			t.Fatalf("results = %q, want 2", got)
		}
		contains(t, "the first", got[0], "The call was not made: it waited for a person", "Nobody has refused it")
		contains(t, "the second", got[1], "The call was not made: one before it waited for a person")
	})
}

// TestLoweredLimitsAfterACrash: a limit that was lowered since does not make a
// call one that was not made.
func TestLoweredLimitsAfterACrash(t *testing.T) {
	lowered := func(t *testing.T) (*rig, *Limits) {
		limits := &Limits{}
		return open(t, setting{
			config: func(c *Config) { c.Terms = func() Terms { return Terms{Limits: *limits} } },
			tools: func(r *rig) {
				for _, id := range []string{"tool:seea", "tool:seeb"} {
					r.tool(id, "Look at something", anySchema, reading, func(context.Context, capability.Call) (capability.Result, error) { return said("seen") })
				}
			},
		}), limits
	}
	save := func(name string) llm.ToolCall { return invoke("tool:save", `{"name":"`+name+`"}`) }
	t.Run("calls", func(t *testing.T) {
		r, limits := lowered(t)
		id := r.begin(llmtest.Replies(answers(invoke("tool:greet", `{"name":"A"}`), save("B"), save("C")), text("Done.")))
		r.crashAt(event.Input{Session: id, Text: "save it"}, event.Reply{}, finishedOf("tool:save"))
		limits.Calls = 1
		done(t, r.turn(event.Input{Session: id, Continue: true}), event.EndAnswer)
		got := resultTexts(r.entries(id))
		if len(got) != 3 || !strings.Contains(got[1], "saved") || !strings.Contains(got[2], "the limit is 1 (chat.calls)") {
			t.Errorf("results = %q, want that the second saved and the third is refused", got)
		}
		if n := r.count("tool:save"); n != 1 {
			t.Errorf("tool:save ran %d times, want 1", n)
		}
	})
	t.Run("parallel", func(t *testing.T) {
		r, limits := lowered(t)
		id := r.begin(llmtest.Replies(answers(invoke("tool:seea", `{}`), invoke("tool:seeb", `{}`), save("B")), text("Done.")))
		r.crashAt(event.Input{Session: id, Text: "look"}, event.Reply{}, finishedOf("tool:seeb"))
		limits.Parallel = 1
		done(t, r.say(id, "and?"), event.EndAnswer)
		got := resultTexts(r.entries(id))
		if len(got) != 3 || got[0] != resultOfReading || got[1] != resultOfReading || !strings.Contains(got[2], "The call was not made") {
			t.Errorf("results = %q, want that two only read and the third was not made", got)
		}
	})
}

// unlimited lets results be larger than a session takes, and counts them quickly.
func unlimited(c *Config) {
	c.Terms = Terms{Limits: Limits{ResultBytes: -1}}.Always
	c.Count = func(text string) int { return len(text) / 4 }
}

// TestNewMessageAfterAFailedWrite: the same where the result could not be
// written because it is larger than a session takes.
func TestNewMessageAfterAFailedWrite(t *testing.T) {
	huge := strings.Repeat("x", session.MaxAppend+1)
	shot := setting{inline: 2 * len(huge), config: unlimited, tools: func(r *rig) {
		r.tool("tool:slowshot", "Take pictures", anySchema, changing, func(context.Context, capability.Call) (capability.Result, error) { return said(huge) })
	}}
	script := func() llmtest.Script { return llmtest.Replies(answers(invoke("tool:slowshot", `{}`)), text("Done.")) }
	notKnownOf := func(r *rig, id string) {
		t.Helper()
		if got := resultTexts(r.entries(id)); len(got) != 1 || got[0] != notKnown {
			t.Errorf("results = %.200q, want that it is not known", got)
		}
		if n := r.count("tool:slowshot"); n != 1 {
			t.Errorf("it was called %d times, want once", n)
		}
	}
	r := open(t, shot)
	id := r.begin(script())
	done(t, r.say(id, "shoot"), event.EndFailed)
	done(t, r.say(id, "and?"), event.EndAnswer)
	notKnownOf(r, id)

	// The same in a turn that is aborted, which gives all its calls results.
	id = r.begin(script())
	r.mu.Lock()
	r.calls = nil
	r.mu.Unlock()
	r.sayAndAbort(id, "shoot")
	notKnownOf(r, id)
}

// pay is a tool that asks who is to be paid, pays, and then takes so long that
// its process ends before it does.
func pay(r *rig) {
	r.tool("tool:slowpay", "Pay money", anySchema, changing, func(ctx context.Context, c capability.Call) (capability.Result, error) {
		if c.Answers["who"] == nil {
			return capability.Result{}, &capability.Inquiry{Requests: map[string]json.RawMessage{"who": json.RawMessage(`{"method":"elicitation/create","params":{"message":"who?"}}`)}}
		}
		_, _ = c.Live.Write([]byte("paid"))
		<-ctx.Done()
		return capability.Result{}, ctx.Err()
	})
}

// paid counts the calls of tool:slowpay that paid.
func (r *rig) paid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, c := range r.calls {
		if c.Answers["who"] != nil {
			n++
		}
	}
	return n
}

// TestRepliesAreOfAKind: what a person replied to one question is no answer to
// another, and a yes to doing something once more counts once.
func TestRepliesAreOfAKind(t *testing.T) {
	isOutput := func(e event.Event) bool { _, ok := e.(event.Output); return ok }
	yes := event.Reply{Yes: true, Answers: map[string]json.RawMessage{"who": json.RawMessage(`{"action":"accept","content":{}}`)}}
	r := open(t, setting{tools: pay})
	id := r.begin(llmtest.Replies(answers(invoke("tool:slowpay", `{}`)), text("Done.")))
	r.crashAt(event.Input{Session: id, Text: "pay"}, yes, isOutput)
	if n := r.paid(); n != 1 {
		t.Fatalf("it paid %d times, want once", n)
	}
	again := func() event.Asked {
		t.Helper()
		events := r.turn(event.Input{Session: id, Continue: true, Alone: true})
		done(t, events, event.EndWaiting)
		asked := of[event.Asked](events)
		if len(asked) != 1 || asked[0].What != event.Again {
			t.Fatalf("Asked = %+v, want whether to pay again", asked)
		}
		return asked[0]
	}
	ask := again()
	if n := r.paid(); n != 1 {
		t.Fatalf("it paid %d times and nobody had agreed to more than one", n)
	}
	if err := r.Reply(context.Background(), ada, id, ask.ID, yes); err != nil {
		t.Fatal(err)
	}
	r.crashAt(event.Input{Session: id, Continue: true}, yes, isOutput)
	if n := r.paid(); n != 2 {
		t.Fatalf("it paid %d times, want twice", n)
	}
	again()
	if n := r.paid(); n != 2 {
		t.Errorf("it paid %d times, and a person had agreed to two", n)
	}
	// Who goes on now leaves it open whether it happened.
	done(t, r.say(id, "never mind"), event.EndAnswer)
	got := resultTexts(r.entries(id))
	contains(t, "the result", strings.Join(got, "|"), notKnown, "A person was asked whether to make it again")
}

// TestAbortWhileAsked: a call that asks whether to be made again, and one that
// asks something of its own, are not said to have done nothing.
func TestAbortWhileAsked(t *testing.T) {
	r := open(t, setting{tools: pay})
	id := r.begin(llmtest.Replies(answers(invoke("tool:slowpay", `{}`)), text("Done.")))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for e, err := range r.Turn(ctx, event.Input{Principal: ada, Session: id, Text: "pay"}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := e.(event.Asked); ok {
			cancel()
		}
	}
	if got := resultTexts(r.entries(id)); len(got) != 1 || !strings.Contains(got[0], "It is not known whether it did anything") {
		t.Errorf("results = %q", got)
	}
}
