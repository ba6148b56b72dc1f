package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

// wipe is a tool that needs no arguments to do harm.
func wipe(r *rig) {
	r.tool("tool:slowwipe", "Wipe all", anySchema, changing, func(context.Context, capability.Call) (capability.Result, error) { return said("wiped") })
}

// TestHalfACall: no call of which a part may be missing has an effect, by
// whatever name it is called; each has its one result.
func TestHalfACall(t *testing.T) {
	for _, stop := range []llm.StopReason{llm.StopLength, llm.StopRefuse} {
		for _, args := range []string{"", "  ", "null", `{"name":"A"`, "{}"} {
			for _, name := range []string{"tool:slowwipe", "slowwipe", toolInvoke} {
				if stop == llm.StopLength && args == "{}" {
					continue // it is whole, whatever was cut after it
				}
				c := call(name, args)
				if name == toolInvoke && args == "{}" {
					c = invoke("tool:slowwipe", "{}")
				}
				r := open(t, setting{tools: wipe, config: func(c *Config) { c.Terms = Terms{Delivery: model.Bridge}.Always }})
				id := r.begin(llmtest.Replies(llmtest.Reply{Calls: []llm.ToolCall{c}, Stop: stop}, text("Done.")))
				want := event.EndAnswer
				if stop == llm.StopRefuse {
					want = event.EndFailed
				}
				done(t, r.say(id, "hi"), want)
				if n := r.count("tool:slowwipe"); n > 0 {
					t.Errorf("%s %s %q: half a call was made", stop, name, args)
				}
				if got := resultTexts(r.entries(id)); len(got) != 1 {
					t.Errorf("%s %s %q: results = %q, want one", stop, name, args, got)
				}
			}
		}
	}
}

// TestHalfACallAfterACrash: a call that is whole without arguments stays so when
// another process makes it, and one that was cut stays cut.
func TestHalfACallAfterACrash(t *testing.T) {
	for stop, want := range map[llm.StopReason]int{llm.StopCalls: 1, llm.StopLength: 0} {
		r := open(t, setting{tools: wipe})
		id := r.begin(llmtest.Replies(llmtest.Reply{Calls: []llm.ToolCall{call("slowwipe", "")}, Stop: stop}, text("Done.")))
		r.crashAt(event.Input{Session: id, Text: "hi"}, event.Reply{}, func(e event.Event) bool { _, ok := e.(event.Step); return ok })
		done(t, r.turn(event.Input{Session: id, Continue: true}), event.EndAnswer)
		if n := r.count("tool:slowwipe"); n != want {
			t.Errorf("%s: it was called %d times, want %d", stop, n, want)
		}
	}
}

// TestCallIDsCollide: an id that is given to a call is that of no other, also
// not of one that comes later.
func TestCallIDsCollide(t *testing.T) {
	for _, ids := range [][]string{{"call_1_2", "bad id!"}, {"bad id!", "call_1_1"}, {"a", "a", "call_1_2", "call_1_2"}, {"", "call_1_1", "call_1_1x", ""}} {
		r := open(t, setting{})
		var calls []llm.ToolCall
		for i, id := range ids {
			c := invoke("tool:save", fmt.Sprintf(`{"name":"%d"}`, i))
			c.ID = id
			calls = append(calls, c)
		}
		id := r.begin(llmtest.Replies(answers(calls...), text("Done.")))
		done(t, r.say(id, "hi"), event.EndAnswer)
		if n := r.count("tool:save"); n != len(ids) {
			t.Errorf("%q: %d calls were made, want %d", ids, n, len(ids))
		}
		if got := resultTexts(r.entries(id)); len(got) != len(ids) {
			t.Errorf("%q: %d results, want %d", ids, len(got), len(ids))
		}
	}
}

// TestManyCalls: calls above the limit are answered together, whatever their
// number: one entry, one event.
func TestManyCalls(t *testing.T) {
	const limit, n = 3, 1000
	r := open(t, setting{config: func(c *Config) { c.Terms = Terms{Limits: Limits{Calls: limit}}.Always }})
	var calls []llm.ToolCall
	for i := range n {
		calls = append(calls, invoke("tool:save", fmt.Sprintf(`{"name":"%d"}`, i)))
	}
	id := r.begin(llmtest.Replies(answers(calls...), text("Done.")))
	events := r.say(id, "hi")
	done(t, events, event.EndAnswer)
	if got := r.count("tool:save"); got != limit {
		t.Errorf("%d calls were made, want %d", got, limit)
	}
	if len(events) > 30 {
		t.Errorf("%d events, want few", len(events))
	}
	results := 0
	entries := r.entries(id)
	for _, e := range entries {
		if e.Kind == session.Results {
			results++
		}
	}
	if results != limit+1 || len(resultTexts(entries)) != n {
		t.Errorf("%d results in %d entries, want %d in %d", len(resultTexts(entries)), results, n, limit+1)
	}
	contains(t, "the last", resultTexts(entries)[n-1], "the answer has 1000 calls, the limit is 3")
}

// TestGarbageIsNoBrokenStream: if nothing of an answer came, it is not reported
// as broken off in the middle.
func TestGarbageIsNoBrokenStream(t *testing.T) {
	for _, w := range llmtest.Wires() {
		r := open(t, setting{})
		r.model = wired(t, w, llmtest.Replies(llmtest.Reply{Fault: "garbage"}, llmtest.Reply{Fault: "garbage"}, llmtest.Reply{Fault: "garbage"}))
		id := r.session()
		events := r.say(id, "hi")
		done(t, events, event.EndFailed)
		for _, n := range of[event.Notice](events) {
			if strings.Contains(n.Text, "in the middle") {
				t.Errorf("%s: the notice says %q", w, n.Text)
			}
		}
	}
}

// TestRewoundCallsAreNotMade: what was taken back is not gone on with, also not
// after a compaction, and an answered turn is over after one.
func TestRewoundCallsAreNotMade(t *testing.T) {
	r := open(t, setting{})
	var list []llmtest.Reply
	for i := range 12 {
		list = append(list, text(strings.Repeat(fmt.Sprintf("word%d ", i), 400)))
	}
	list = append(list, answers(call(toolAsk, `{"question":"really?"}`), invoke("tool:save", `{"name":"B"}`)), text("Done."), text("Done."))
	id := r.begin(llmtest.Replies(list...))
	for i := range 12 {
		r.say(id, fmt.Sprint("message ", i))
	}
	goOn := func() {
		t.Helper()
		_, err := r.try(context.Background(), event.Input{Session: id, Continue: true, Alone: true})
		if e, ok := errors.AsType[*capability.Error](err); !ok || e.Kind != capability.Conflict {
			t.Errorf("going on = %v, want that no turn is open", err)
		}
	}
	if c, err := r.Compact(context.Background(), ada, id); err != nil || c.How == "" {
		t.Fatalf("Compact = %+v, %v", c, err)
	}
	goOn()
	events := r.turn(event.Input{Session: id, Text: "delete all", Alone: true})
	done(t, events, event.EndWaiting)
	if err := r.Reply(context.Background(), ada, id, of[event.Asked](events)[0].ID, event.Reply{Text: "hm"}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rewind(context.Background(), ada, id, 13); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		r.model = &llmtest.Fake{Script: llmtest.Replies(text("ok"))}
		if i == 2 {
			if _, err := r.Compact(context.Background(), ada, id); err != nil {
				t.Fatal(err)
			}
		}
		goOn()
	}
	if n := r.count("tool:save"); n > 0 {
		t.Errorf("a call of a turn that was taken back was made %d times", n)
	}
	r.entries(id)
}

// TestIntentOfARequest: where an intent holds for one request, going on does not
// bring back that of an earlier one.
func TestIntentOfARequest(t *testing.T) {
	r := open(t, setting{rules: strict, config: func(c *Config) {
		inner := c.Intents
		c.Intents = func(at string) IntentRules {
			rules := inner(at)
			rules.Request = true
			return rules
		}
	}})
	id := r.begin(llmtest.Replies(
		answers(intend("CODE", ""), invoke("tool:greet", `{"name":"A"}`)),
		answers(call(toolAsk, `{"question":"ok?"}`), invoke("tool:save", `{"name":"B"}`)),
		text("Done."),
	))
	events := r.turn(event.Input{Session: id, Text: "hello", Alone: true})
	done(t, events, event.EndWaiting)
	if err := r.Reply(context.Background(), ada, id, of[event.Asked](events)[0].ID, event.Reply{Text: "whatever"}); err != nil {
		t.Fatal(err)
	}
	r.turn(event.Input{Session: id, Continue: true, Alone: true})
	if n := r.count("tool:save"); n > 0 {
		t.Error("tool:save ran under the intent of an earlier request")
	}
}

// TestIntentOfARewoundTurn: what was taken back leaves no intent behind; that of
// the turn before it counts.
func TestIntentOfARewoundTurn(t *testing.T) {
	for first, want := range map[string]int{"": 0, "CODE": 1} {
		r := open(t, setting{rules: strict, config: func(c *Config) {
			inner := c.Intents
			c.Intents = func(at string) IntentRules {
				rules := inner(at)
				rules.Remember = true
				return rules
			}
		}})
		list := []llmtest.Reply{text("hi")}
		if first != "" {
			list = []llmtest.Reply{answers(intend(first, "")), text("hi")}
		}
		list = append(list, answers(intend("CODE", "")), text("Done."), answers(invoke("tool:save", `{"name":"B"}`)), text("Done."))
		id := r.begin(llmtest.Replies(list...))
		r.say(id, "hello")
		r.say(id, "bad message")
		if _, err := r.Rewind(context.Background(), ada, id, 2); err != nil {
			t.Fatal(err)
		}
		r.say(id, "once more")
		if n := r.count("tool:save"); n != want {
			t.Errorf("first intent %q: tool:save ran %d times, want %d", first, n, want)
		}
	}
}
