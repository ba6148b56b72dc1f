package engine

import (
	"context"
	"fmt"
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

// TestHalfACall: no call of which a part may be missing has an effect, by
// whatever name it is called; each has its one result.
func TestHalfACall(t *testing.T) {
	testkit.CI(t, "takes many turns")
	r := open(t, setting{tools: wipe, config: terms(Terms{Delivery: model.Bridge})})
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
				id := r.begin(llmtest.Replies(llmtest.Reply{Calls: []llm.ToolCall{c}, Stop: stop}, text("Done.")))
				want := event.EndAnswer
				if stop == llm.StopRefuse {
					want = event.EndFailed
				}
				done(t, r.say(id, "hi"), want)
				if n := r.count("tool:slowwipe"); n > 0 {
					t.Fatalf("%s %s %q: half a call was made", stop, name, args)
				}
				if got := resultTexts(r.entries(id)); len(got) != 1 {
					t.Errorf("%s %s %q: results = %q, want one", stop, name, args, got)
				}
			}
		}
	}
}

// TestCallIDsCollide: an id that is given to a call is that of no other, also
// not of one that comes later, in the same answer or another.
func TestCallIDsCollide(t *testing.T) {
	testkit.CI(t, "takes many turns")
	for _, ids := range [][][]string{
		{{"call_1_2", "bad id!"}}, {{"bad id!", "call_1_1"}}, {{"a", "a", "call_1_2", "call_1_2"}}, {{"", "call_1_1", "call_1_1x", ""}}, {{"call_0"}, {"call_0"}},
	} {
		r := open(t, setting{})
		var replies []llmtest.Reply
		n := 0
		for _, ids := range ids {
			var calls []llm.ToolCall
			for _, id := range ids {
				c := save(fmt.Sprint(n))
				c.ID = id
				calls = append(calls, c)
				n++
			}
			replies = append(replies, answers(calls...))
		}
		id := r.begin(llmtest.Replies(append(replies, text("Done."))...))
		done(t, r.say(id, "hi"), event.EndAnswer)
		seen := map[string]bool{}
		for _, e := range r.entries(id) {
			for _, c := range callsOf(e.Blocks) {
				seen[c.ID] = true
			}
		}
		if made, got := r.count("tool:save"), resultTexts(r.entries(id)); made != n || len(got) != n || len(seen) != n {
			t.Errorf("%q: %d calls were made with %d ids and %d results, want %d", ids, made, len(seen), len(got), n)
		}
	}
}

// TestManyCalls: calls above the limit are answered together, whatever their
// number: one entry, one event.
func TestManyCalls(t *testing.T) {
	const limit, n = 3, 1000
	r := open(t, setting{config: terms(Terms{Limits: Limits{Calls: limit}})})
	var calls []llm.ToolCall
	for i := range n {
		calls = append(calls, save(fmt.Sprint(i)))
	}
	id := r.begin(llmtest.Replies(answers(calls...), text("Done.")))
	events := r.say(id, "hi")
	done(t, events, event.EndAnswer)
	entries := r.entries(id)
	written := 0
	for _, e := range entries {
		if e.Kind == session.Results {
			written++
		}
	}
	if made, got := r.count("tool:save"), resultTexts(entries); made != limit || len(events) > 30 || written != limit+1 || len(got) != n {
		t.Errorf("%d calls were made, %d events, %d results in %d entries, want %d, few, %d in %d", made, len(events), len(got), written, limit, n, limit+1)
	}
	contains(t, "the last", resultTexts(entries)[n-1], "the answer has 1000 calls, the limit is 3")
}

// TestRewoundCallsAreNotMade: what was taken back is not gone on with, also not
// after a compaction, and an answered turn is over after one.
func TestRewoundCallsAreNotMade(t *testing.T) {
	testkit.CI(t, "takes many turns")
	r := open(t, setting{})
	var list []llmtest.Reply
	for i := range 12 {
		list = append(list, text(strings.Repeat(fmt.Sprintf("word%d ", i), 400)))
	}
	list = append(list, answers(asking("really?"), save("B")), text("Done."), text("Done."))
	id := r.begin(llmtest.Replies(list...))
	for i := range 12 {
		r.say(id, fmt.Sprint("message ", i))
	}
	goOn := func() {
		t.Helper()
		if _, err := r.try(context.Background(), event.Input{Session: id, Continue: true, Alone: true}); capability.KindOf(err) != capability.Conflict {
			t.Errorf("going on = %v, want that no turn is open", err)
		}
	}
	compact := func() {
		t.Helper()
		if _, err := r.Compact(context.Background(), ada, id); err != nil {
			t.Fatal(err)
		}
	}
	compact()
	goOn()
	alone("delete all", event.EndWaiting)(r, id)
	replied(event.Reply{Text: "hm"})(r, id)
	rewound(13)(r, id)
	for i := range 4 {
		r.model = &llmtest.Fake{Script: llmtest.Replies(text("ok"))}
		if i == 2 {
			compact()
		}
		goOn()
	}
	if n := r.count("tool:save"); n > 0 {
		t.Errorf("a call of a turn that was taken back was made %d times", n)
	}
	r.entries(id)
}
