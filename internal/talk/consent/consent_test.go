package consent

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/audit"
	"ken/internal/talk/event"
	"ken/internal/testkit/storetest"
)

var ann = capability.Principal{ID: "ann", Tenant: "acme"}

// turns are the turns that run; they keep the last reply.
type turns struct {
	session, ask string
	reply        event.Reply
}

func (t *turns) Reply(_ context.Context, _ capability.Principal, session, ask string, r event.Reply) error {
	t.session, t.ask, t.reply = session, ask, r
	return nil
}

// questions returns Questions with a desk, and a question that waits at it.
func questions(t *testing.T, q approval.Question) (Questions, *turns, approval.Ticket) {
	t.Helper()
	desk, err := approval.New(storetest.Open(t, storetest.SQLite(t)), approval.Config{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key, err := audit.LoadKey(dir + "/key")
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(audit.Config{Dir: dir + "/audit", CheckpointDir: dir + "/heads", Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	q.Call = capability.Call{Target: "tool:git", Action: "push", Arguments: json.RawMessage(`{}`), Principal: ann, Session: "s1", CapabilityHash: "h1"}
	ticket, err := desk.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	running := &turns{}
	return Questions{
		Approvals: approval.Recorded{Desk: func() (*approval.Desk, error) { return desk, nil }, Log: func() (*audit.Log, error) { return log, nil }},
		Turns:     func() (Turns, error) { return running, nil },
	}, running, ticket
}

// TestTicket: a person is told why the call waits, and how wide an answer may be.
func TestTicket(t *testing.T) {
	for _, wide := range []bool{false, true} {
		q := approval.Question{Why: "it changes a remote repository", Rule: "r"}
		if wide {
			q.Widest = approval.Session
		}
		questions, _, ticket := questions(t, q)
		got, err := questions.Ticket(t.Context(), ticket.ID)
		if err != nil || got.Wide != wide || got.Text != q.Why || len(got.Lines) == 0 || len(got.Offers) == 0 {
			t.Errorf("Ticket = %+v, %v; want the reason, lines and offers, and Wide %v", got, err, wide)
		}
		if wide != (len(got.Offers) > 1) {
			t.Errorf("Ticket has %d offers with Wide %v", len(got.Offers), wide)
		}
	}
}

// TestConsent: an answer to a request for approval goes to the desk, for one call
// unless it says more, and those who wait are told.
func TestConsent(t *testing.T) {
	tests := []struct {
		said  Answer
		state approval.State
		scope approval.Scope
	}{
		{Answer{Yes: true}, approval.Granted, approval.Once},
		{Answer{Yes: true, Scope: approval.Session, Covers: approval.CoverTool}, approval.Granted, approval.Session},
		{Answer{Text: "not now"}, approval.Denied, approval.Once},
	}
	for _, tt := range tests {
		questions, running, ticket := questions(t, approval.Question{Widest: approval.Session})
		asked := event.Asked{ID: "q1", What: event.Consent, Ticket: ticket.ID}
		if err := questions.Reply(t.Context(), ann, "s1", asked, tt.said); err != nil {
			t.Fatal(err)
		}
		granted, err := questions.Wait(t.Context(), ticket.ID)
		desk, _ := questions.Approvals.Desk()
		got, _ := desk.Get(t.Context(), ticket.ID)
		if granted != tt.said.Yes || (err == nil) != tt.said.Yes || got.State != tt.state || got.Answer.Scope != tt.scope || got.Answer.Note != tt.said.Text {
			t.Errorf("%+v: granted %v, %v, state %s, answer %+v", tt.said, granted, err, got.State, got.Answer)
		}
		if running.ask != "" {
			t.Errorf("%+v: the turn was told too", tt.said)
		}
	}
}

// TestReply: an answer to any other question goes to the turn itself.
func TestReply(t *testing.T) {
	questions, running, ticket := questions(t, approval.Question{})
	said := Answer{Yes: true, Text: "blue", Answers: map[string]json.RawMessage{"color": json.RawMessage(`"blue"`)}}
	if err := questions.Reply(t.Context(), ann, "s1", event.Asked{ID: "q2", What: event.Ask}, said); err != nil {
		t.Fatal(err)
	}
	want := turns{"s1", "q2", event.Reply{Yes: true, Text: "blue", Answers: said.Answers}}
	if !reflect.DeepEqual(*running, want) {
		t.Errorf("the turn was told %+v, want %+v", *running, want)
	}
	desk, _ := questions.Approvals.Desk()
	if got, err := desk.Get(t.Context(), ticket.ID); err != nil || got.Answer != nil {
		t.Errorf("the desk has %+v, %v; want no answer", got.Answer, err)
	}
}

// TestNoDesk: without a desk nothing is granted.
func TestNoDesk(t *testing.T) {
	broken := errors.New("the store is closed")
	q := Questions{Approvals: approval.Recorded{Desk: func() (*approval.Desk, error) { return nil, broken }}, Turns: func() (Turns, error) { return nil, broken }}
	if granted, err := q.Wait(t.Context(), "x"); granted || !errors.Is(err, broken) {
		t.Errorf("Wait = %v, %v", granted, err)
	}
	if _, err := q.Ticket(t.Context(), "x"); !errors.Is(err, broken) {
		t.Errorf("Ticket = %v", err)
	}
	if err := q.Reply(t.Context(), ann, "s1", event.Asked{What: event.Ask}, Answer{Yes: true}); !errors.Is(err, broken) {
		t.Errorf("Reply = %v", err)
	}
}

// TestChange: an open question shows what its call would change, behind what is
// called; one that is answered does not.
func TestChange(t *testing.T) {
	q, _, ticket := questions(t, approval.Question{})
	q.Change = func(_ string, call capability.Call) string { return "-old\n+new of " + string(call.Target) }
	shown, err := q.Ticket(t.Context(), ticket.ID)
	if err != nil {
		t.Fatal(err)
	}
	if len(shown.Lines) < 2 || shown.Lines[0].Name != "capability" || shown.Lines[1].Name != ChangeLine || shown.Lines[1].Text != "-old\n+new of tool:git" {
		t.Errorf("lines = %v", shown.Lines)
	}
	if lines := q.Lines(ticket); lines[0].Name != ChangeLine {
		t.Errorf("lines = %v", lines)
	}
	ticket.State = approval.Granted
	if lines := q.Lines(ticket); lines[0].Name == ChangeLine {
		t.Errorf("lines of an answered question = %v", lines)
	}
}
