package engine

import (
	"context"
	"errors"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/llm/llmtest"
)

// TestLeave: the person who could be asked leaves. A question to them ends the
// turn at once and stays open; a turn that asks nothing goes on.
func TestLeave(t *testing.T) {
	dangerous := setting{tools: func(r *rig) {
		r.tool("tool:danger", "Deletes everything", anySchema, capability.Effects{ReadOnly: capability.No, Destructive: capability.Yes}, func(context.Context, capability.Call) (capability.Result, error) {
			return said("deleted")
		})
	}}
	// leaving plays a turn and leaves with its first question.
	leaving := func(r *rig, id string) []event.Event {
		leave := make(chan struct{})
		var events []event.Event
		for e, err := range r.Turn(soon(t), event.Input{Principal: ada, Session: id, Text: "go", Leave: leave}) {
			if err != nil {
				t.Fatal(err)
			}
			if events = append(events, e); len(of[event.Asked](events)) == 1 && len(of[event.Done](events)) == 0 {
				close(leave)
			}
		}
		return events
	}
	open1 := func(r *rig, id string) {
		t.Helper()
		if head, err := r.sessions.Head(context.Background(), ada, id); err != nil || !head.Open {
			t.Errorf("Head = %+v, %v; want it open", head, err)
		}
	}
	t.Run("consent", func(t *testing.T) {
		r := open(t, dangerous)
		id := r.begin(llmtest.Replies(answers(invoke("tool:danger", `{}`)), text("Done.")))
		events := leaving(r, id)
		done(t, events, event.EndWaiting)
		open1(r, id)
		if got := resultTexts(r.entries(id)); len(got) != 0 {
			t.Errorf("results = %q, want none: it is pending", got)
		}
		if _, err := r.desk.Settle(context.Background(), of[event.Asked](events)[0].Ticket, approval.Answer{By: ada, Effect: approval.Yes, Scope: approval.Once}); err != nil {
			t.Fatal(err)
		}
		done(t, r.turn(event.Input{Session: id, Continue: true, Alone: true}), event.EndAnswer)
		if n := r.count("tool:danger"); n != 1 {
			t.Errorf("tool:danger ran %d times, want once", n)
		}
	})
	t.Run("a question", func(t *testing.T) {
		r := open(t, setting{})
		id := r.begin(llmtest.Replies(answers(call(toolAsk, `{"question":"Which one?"}`)), text("Blue it is.")))
		events := leaving(r, id)
		done(t, events, event.EndWaiting)
		open1(r, id)
		if err := r.Reply(context.Background(), ada, id, of[event.Asked](events)[0].ID, event.Reply{Text: "blue"}); err != nil {
			t.Fatal(err)
		}
		done(t, r.turn(event.Input{Session: id, Continue: true, Alone: true}), event.EndAnswer)
		contains(t, "the result", resultTexts(r.entries(id))[0], "The user answered: blue")
	})
	t.Run("a limit", func(t *testing.T) {
		r := open(t, setting{config: func(c *Config) { c.Terms = Terms{Limits: Limits{Steps: 1}}.Always }})
		id := r.begin(llmtest.Replies(answers(invoke("tool:greet", `{"name":"A"}`)), text("Done.")))
		done(t, leaving(r, id), event.EndLimit)
	})
	t.Run("nothing is asked", func(t *testing.T) {
		r := open(t, setting{})
		id := r.begin(llmtest.Replies(answers(invoke("tool:greet", `{"name":"A"}`)), text("Done.")))
		gone := make(chan struct{})
		close(gone)
		done(t, r.turn(event.Input{Session: id, Text: "go", Leave: gone}), event.EndAnswer)
	})
}

// TestRefusedIsNoted: that a call was refused is in the session for people, in
// words that no tool can write.
func TestRefusedIsNoted(t *testing.T) {
	r := open(t, setting{tools: func(r *rig) {
		r.tool("tool:closed", "Is forbidden", anySchema, capability.Effects{ReadOnly: capability.Yes}, func(context.Context, capability.Call) (capability.Result, error) {
			return capability.Result{}, &capability.Error{Kind: capability.Denied, Op: "call", Target: "tool:closed", Err: errors.New("a rule forbids it")}
		})
	}})
	id := r.begin(llmtest.Replies(answers(invoke("tool:closed", `{}`), invoke("tool:greet", `{"name":"A"}`)), text("Done.")))
	events := r.turn(event.Input{Session: id, Text: "go", Alone: true})
	done(t, events, event.EndAnswer)
	var notes []string
	for _, e := range r.entries(id) {
		if e.Kind == session.Note && e.Name == "refused" {
			notes = append(notes, e.Text)
		}
	}
	var want []string // the two run at once and end in any order
	for _, f := range of[event.Finished](events) {
		if f.Kind == "denied" {
			want = append(want, f.ID+" denied")
		}
	}
	if len(want) != 1 || !slices.Equal(notes, want) {
		t.Errorf("notes = %q, want %q, and one of them", notes, want)
	}
}
