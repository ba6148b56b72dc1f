package runner

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"ken/capability"
	"ken/internal/govern/approval"
)

// TestInquiryUnderConsent: a call that was agreed to once and then asks
// something goes on under that consent, once, and only as the very call it was.
func TestInquiryUnderConsent(t *testing.T) {
	desk := openDesk(t, openStore(t))
	ran := 0
	ask := func(_ context.Context, call capability.Call) (capability.Result, error) {
		if call.State == "" {
			return capability.Result{}, &capability.Error{
				Kind: capability.InputNeeded, Op: "call", Target: string(call.Target),
				Err: &capability.Inquiry{Requests: map[string]json.RawMessage{"q": json.RawMessage(`{}`)}, State: "token"},
			}
		}
		ran++
		return capability.Result{Parts: []capability.Part{{Text: string(call.Answers["q"])}}}, nil
	}
	r := newRig(t, tool{invoke: ask}, func(c *Config) { c.Desk = desk })
	call := callOf("destroy", `{"text":"a"}`)
	call.Origin = capability.ByModel
	res, err := r.Invoke(t.Context(), call)
	wantKind(t, err, capability.Unapproved)
	settle(t, desk, res.Meta[MetaTicket], approval.Answer{By: call.Principal, Effect: approval.Yes, Scope: approval.Once})

	refused(t, r, call, capability.InputNeeded)

	answered := call
	answered.State, answered.Answers = "token", map[string]json.RawMessage{"q": json.RawMessage(`"yes"`)}
	for _, other := range []func(*capability.Call){
		func(c *capability.Call) { c.Arguments = json.RawMessage(`{"text":"b"}`) },
		func(c *capability.Call) { c.Session = "s2" },
		func(c *capability.Call) { c.Principal.ID = "eve" },
		func(c *capability.Call) { c.State = "guess" },
	} {
		another := answered
		other(&another)
		refused(t, r, another, capability.Unapproved)
	}
	if res, err = r.Invoke(t.Context(), answered); err != nil || ran != 1 || res.Parts[0].Text != `"yes"` {
		t.Fatalf("the call with its answer gave %+v, %v after %d runs", res, err, ran)
	}
	if _, err = r.Invoke(t.Context(), answered); err == nil || ran != 1 {
		t.Errorf("a second answer gave %v after %d runs, want to be asked again", err, ran)
	}
}

// reports is a Live that takes reports.
type reports struct {
	io.Writer
	got []string
}

func (r *reports) Progress(_, _ float64, message string) { r.got = append(r.got, message) }
func (r *reports) Note(level, _ string, _ json.RawMessage) {
	r.got = append(r.got, level)
}

// split is one that has standard error apart too.
type split struct{ *reports }

func (split) Stderr() io.Writer { return io.Discard }

// TestReportsPass: what a call says of itself reaches the caller while it runs,
// and no longer.
func TestReportsPass(t *testing.T) {
	var kept capability.Reporter
	x := tool{invoke: func(_ context.Context, call capability.Call) (capability.Result, error) {
		kept = call.Live.(capability.Reporter)
		kept.Progress(1, 2, "half")
		kept.Note("info", "x", json.RawMessage(`1`))
		return capability.Result{}, nil
	}}
	for _, apart := range []bool{false, true} {
		r := newRig(t, x, nil)
		heard := &reports{Writer: io.Discard}
		call := callOf("look", `{"text":"a"}`)
		if call.Live = heard; apart {
			call.Live = split{heard}
		}
		succeeds(t, r, call)
		kept.Progress(2, 2, "too late")
		kept.Note("error", "x", nil)
		if len(heard.got) != 2 || heard.got[0] != "half" || heard.got[1] != "info" {
			t.Errorf("apart %v: heard %v, want half and info", apart, heard.got)
		}
	}
}

// TestOwnAnswersStay: what people told Ken is not passed on to the executor of a
// call; answers to the executor's own questions are.
func TestOwnAnswersStay(t *testing.T) {
	var got map[string]json.RawMessage
	r := newRig(t, tool{invoke: func(_ context.Context, call capability.Call) (capability.Result, error) {
		got = call.Answers
		return capability.Result{}, nil
	}}, nil)
	call := callOf("look", `{"text":"a"}`)
	call.Answers = map[string]json.RawMessage{
		AnswerConsent: json.RawMessage(`"ticket"`), AnswerAgain: json.RawMessage(`"effect"`), "q": json.RawMessage(`"yes"`),
	}
	succeeds(t, r, call)
	if len(got) != 1 || string(got["q"]) != `"yes"` || len(call.Answers) != 3 {
		t.Errorf("the executor was given %s, want the answer to q alone, and the caller's kept", got)
	}
}
