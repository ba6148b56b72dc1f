package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/llm"
	"ken/llm/llmtest"
)

// A story is what happens in one session: what a model answers, what people do,
// and what comes of it.
type story struct {
	name    string
	setting setting
	script  []llmtest.Reply
	steps   []step   // none: one message that is answered
	made    []string // targets that reached a tool, in order; nil and with results: any
	results []string // what stands in each result, parts with … between them
	notice  string   // name of one that the last turn must have
	check   func(t *testing.T, r *rig, id string)
}

// A step is what somebody does in a session.
type step func(r *rig, id string)

func inMemory(_ *testing.T, s llmtest.Script) llm.Model { return &llmtest.Fake{Script: s} }

// tell plays stories. Each ends with one more message, to see that the session
// takes it.
func tell(t *testing.T, stories []story, model func(*testing.T, llmtest.Script) llm.Model) {
	t.Helper()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			r := open(t, s.setting)
			more, script := false, llmtest.Replies(s.script...)
			r.model = model(t, func(seen llmtest.Seen) llmtest.Reply {
				if more {
					return text("And now?")
				}
				return script(seen)
			})
			id := r.session()
			if s.steps == nil {
				s.steps = []step{says("hello there", event.EndAnswer)}
			}
			for _, do := range s.steps {
				do(r, id)
			}
			if got := r.made(); (s.made != nil || s.results == nil) && !slices.Equal(got, s.made) {
				t.Errorf("calls = %v, want %v", got, s.made)
			}
			got := resultTexts(r.entries(id))
			if len(got) != len(s.results) {
				t.Fatalf("results = %.2000q, want %d", got, len(s.results))
			}
			for i, want := range s.results {
				contains(t, fmt.Sprint("result ", i+1), got[i], strings.Split(want, "…")...)
			}
			if s.notice != "" && !slices.ContainsFunc(of[event.Notice](r.events), func(n event.Notice) bool { return n.Name == s.notice }) {
				t.Errorf("no notice %s among %v", s.notice, of[event.Notice](r.events))
			}
			if s.check != nil {
				s.check(t, r, id)
			}
			more = true
			done(t, r.say(id, "And then?"), event.EndAnswer)
			r.entries(id)
		})
	}
}

// says is a turn with a message.
func says(text string, want event.End) step {
	return func(r *rig, id string) { r.t.Helper(); done(r.t, r.say(id, text), want) }
}

// alone is a turn that nobody can be asked in.
func alone(text string, want event.End) step {
	return func(r *rig, id string) {
		r.t.Helper()
		done(r.t, r.turn(event.Input{Session: id, Text: text, Continue: text == "", Alone: true}), want)
	}
}

// goesOn takes a turn up again.
func goesOn(want event.End) step { return alone("", want) }

// answered is a turn in which the one question is replied to.
func answered(text string, what event.Question, reply event.Reply) step {
	return func(r *rig, id string) {
		r.t.Helper()
		done(r.t, r.replying(event.Input{Session: id, Text: text}, reply), event.EndAnswer)
		if a := of[event.Asked](r.events); len(a) != 1 || a[0].What != what {
			r.t.Errorf("Asked = %+v, want one %s", a, what)
		}
	}
}

// replied answers the last question after its turn.
func replied(reply event.Reply) step {
	return func(r *rig, id string) {
		r.t.Helper()
		if err := r.Reply(context.Background(), ada, id, r.asked.ID, reply); err != nil {
			r.t.Fatal(err)
		}
	}
}

// settled approves or denies what the last question was about.
func settled(effect approval.Effect) step {
	return func(r *rig, _ string) { r.t.Helper(); r.settle(effect) }
}

// rewound takes a turn back, and all after it.
func rewound(turn int) step {
	return func(r *rig, id string) {
		r.t.Helper()
		if _, err := r.Rewind(context.Background(), ada, id, turn); err != nil {
			r.t.Fatal(err)
		}
	}
}

// crashed is a turn whose process dies at an event.
func crashed(text string, at func(event.Event) bool) step {
	return func(r *rig, id string) {
		r.t.Helper()
		r.crashAt(event.Input{Session: id, Text: text, Continue: text == ""}, event.Reply{}, at)
	}
}

// aborted is a turn that is given up at an event.
func aborted(text string, at func(event.Event) bool) step {
	return func(r *rig, id string) {
		r.t.Helper()
		ctx, cancel := context.WithCancel(r.t.Context())
		defer cancel()
		r.watch(ctx, event.Input{Session: id, Text: text}, func(e event.Event) {
			if at(e) {
				cancel()
			}
		})
	}
}

// becomes changes what a tool is and does.
func becomes(id, about, schema string, e capability.Effects, says string) step {
	return func(r *rig, _ string) {
		r.t.Helper()
		r.tool(id, about, schema, e, func(context.Context, capability.Call) (capability.Result, error) { return said(says) })
		if err := r.catalog.Load(context.Background()); err != nil {
			r.t.Fatal(err)
		}
	}
}

// stays checks that the turn is open, and how many results there are so far.
func stays(results int) step {
	return func(r *rig, id string) {
		r.t.Helper()
		if head, err := r.sessions.Head(context.Background(), ada, id); err != nil || !head.Open {
			r.t.Errorf("Head = %+v, %v; want it open", head, err)
		}
		if got := resultTexts(r.entries(id)); len(got) != results {
			r.t.Errorf("results = %q, want %d: what is pending is not denied", got, results)
		}
	}
}

func is[E event.Event](e event.Event) bool { _, ok := e.(E); return ok }

// finishedOf picks the end of a call.
func finishedOf(target capability.ID) func(event.Event) bool {
	return func(e event.Event) bool {
		f, ok := e.(event.Finished)
		return ok && f.Target == target
	}
}

func greet(name string) llm.ToolCall { return invoke("tool:greet", fmt.Sprintf(`{"name":%q}`, name)) }
func save(name string) llm.ToolCall  { return invoke("tool:save", fmt.Sprintf(`{"name":%q}`, name)) }
func asking(question string) llm.ToolCall {
	return call(toolAsk, fmt.Sprintf(`{"question":%q}`, question))
}

// saying is a tool that says something.
func saying(id string, e capability.Effects, text string) func(*rig) {
	return func(r *rig) {
		r.tool(id, "Does something", anySchema, e, func(context.Context, capability.Call) (capability.Result, error) { return said(text) })
	}
}

// terms sets the terms of turns.
func terms(t Terms) func(*Config) { return func(c *Config) { c.Terms = t.Always } }

// notes returns the texts of the notes with a name.
func notes(entries []session.Entry, name string) []string {
	var out []string
	for _, e := range entries {
		if e.Kind == session.Note && e.Name == name {
			out = append(out, e.Text)
		}
	}
	return out
}
