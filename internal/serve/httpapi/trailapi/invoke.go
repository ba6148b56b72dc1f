package trailapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/policy"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/serve/problem"
)

// usualSession is the session of calls that name none: consents and kept results
// belong to it, and to the caller.
const usualSession = "api"

// agentSession begins the names of sessions in which agents call. What a person
// agreed to for a session of their own, a conversation for one, does not count
// for an agent that knows its name.
const agentSession = "agent:"

// sessionsOf returns how the names of an agent's sessions begin. An agent with a token
// of its own has sessions of its own: a grant for one of them is no other agent's.
func sessionsOf(who auth.Identity) string {
	if name := who.Principal.Agent; name != "" {
		return "agent." + name + ":"
	}
	return agentSession
}

// givenKey begins the keys that callers give: those that the program makes for
// the calls of conversations are others.
const givenKey = "api:"

const longestName = 256 // bytes of a session's name, a key, a mode or an intent

// An invocation is a call as it is asked for: a slash line, or a capability with
// its arguments.
type invocation struct {
	Line      string          `json:"line,omitempty"`
	Target    capability.ID   `json:"target,omitempty"`
	Action    string          `json:"action,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`

	Session string `json:"session,omitempty"` // "api" where it is missing
	Key     string `json:"key,omitempty"`     // under one key a call has its effect once
	Mode    string `json:"mode,omitempty"`
	Intent  string `json:"intent,omitempty"` // needed where the rules ask for one

	// AsPerson says that a person makes the call, and not a program for a model.
	// No intent is asked for then, and rules that name who calls go by it: what
	// asks for consent of a model's calls alone does not ask. So it is refused
	// unless a person's browser asks.
	AsPerson bool `json:"asPerson,omitempty"`

	// Answers and State answer what an earlier try asked. That a call is to run
	// again whose outcome is unknown only a person decides.
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
	State   string                     `json:"state,omitempty"`
}

// invoked is what a call gave back.
type invoked struct {
	Target  capability.ID     `json:"target"`
	Action  string            `json:"action,omitempty"`
	Session string            `json:"session"`
	Result  capability.Result `json:"result"`
	Cut     int               `json:"cut,omitempty"` // bytes that were left out here
	TookMS  int64             `json:"took_ms"`
}

// invoke answers with one document, or with events where the client wants them.
func (a *api) invoke(w http.ResponseWriter, r *wire.Request) error {
	var in invocation
	if err := r.Decode(&in); err != nil {
		return err
	}
	call, err := a.callOf(r, &in)
	if err != nil {
		return err
	}
	view := a.Door.ViewFor(door.Viewer{Principal: r.Who.Principal, Mode: call.Mode, Origin: call.Origin, Surface: policy.SurfaceAPI})
	run := func(ctx context.Context, live *live) (invoked, error) {
		if live != nil { // a nil *live in an interface is not nil
			call.Live = live
		}
		began := time.Now()
		res, err := a.Door.Invoke(ctx, view, call)
		if err == nil && res.Meta["state"] == "TIMEOUT" {
			err = &capability.Error{
				Kind: capability.Timeout, Op: "call", Target: string(call.Target), Rule: "limits.timeout",
				Err: errors.New("stopped, because it took too long"), Fix: "ask for less at once, or raise the limit",
			}
			err = a.refusal(ctx, r.Who, err, &res)
		} else if err != nil {
			err = a.refusal(ctx, r.Who, err, nil)
		}
		out := invoked{Target: call.Target, Action: call.Action, Session: call.Session, TookMS: time.Since(began).Milliseconds()}
		out.Result, out.Cut = fit(res)
		return out, err
	}
	if r.WantsEvents() {
		return a.stream(w, r, run)
	}
	out, err := run(r.Context(), nil)
	if err != nil {
		return err
	}
	wire.JSON(w, http.StatusOK, out)
	return nil
}

// callOf makes the call that is asked for.
func (a *api) callOf(r *wire.Request, in *invocation) (capability.Call, error) {
	var call capability.Call
	if in.AsPerson && !r.Who.Person {
		return call, &wire.Problem{
			Status: http.StatusForbidden, Code: "not-a-person",
			Detail: "asPerson is for calls from a browser that is signed in here; leave it out and send the call's intent, or make the call from the page",
		}
	}
	if len(in.Answers) > 0 && !r.Who.Decides {
		return call, wire.ForPerson("what a call asks is for a person to answer", "open the page and make the call there")
	}
	switch {
	case (in.Line == "") == (in.Target == ""):
		return call, wire.Bad(`give either line, as in "/git log", or target with its arguments`)
	case in.Line != "" && (in.Action != "" || in.Arguments != nil):
		return call, wire.Bad("action and arguments go with target; line holds its own")
	case in.Line != "":
		var err error
		if call, err = a.Route(r.Context(), r.Who, in.Line); err != nil {
			return call, err
		}
	default:
		call = capability.Call{Target: in.Target, Action: in.Action, Arguments: in.Arguments}
	}
	for name, text := range map[string]string{"session": in.Session, "key": in.Key, "mode": in.Mode, "intent": in.Intent} {
		if len(text) > longestName {
			return call, wire.Bad(fmt.Sprintf("%s has more than %d bytes", name, longestName))
		}
	}
	call.Principal, call.Mode, call.Intent = r.Who.Principal, in.Mode, in.Intent
	call.Session = sessionOf(r, in.Session)
	if call.Key = givenKey + in.Key; in.Key == "" {
		call.Key = rand.Text()
	}
	call.Origin = capability.ByModel
	if in.AsPerson {
		call.Origin = capability.ByPerson
	}
	call.Answers, call.State = maps.Clone(in.Answers), in.State
	if _, again := call.Answers[door.AnswerAgain]; again && !in.AsPerson {
		return call, wire.Bad(door.AnswerAgain + " is a person's answer: say asPerson")
	}
	return call, nil
}

// sessionOf returns the session that is meant by a name.
func sessionOf(r *wire.Request, name string) string {
	if name == "" {
		name = usualSession
	}
	if own := sessionsOf(r.Who); !r.Who.Decides && !strings.HasPrefix(name, own) {
		name = own + name
	}
	return name
}

// refusal returns why there is no result as a problem, with what is needed to
// continue.
func (a *api) refusal(ctx context.Context, who auth.Identity, err error, partial *capability.Result) error {
	err = here(err)
	p, internal := problem.Of(err)
	if internal {
		return err
	}
	p = &wire.Problem{Status: p.Status, Code: p.Code, Detail: p.Detail, More: maps.Clone(p.More)}
	if p.More == nil {
		p.More = map[string]any{}
	}
	if partial != nil {
		p.More["result"], _ = fit(*partial)
	}
	if asks, ok := errors.AsType[*capability.Inquiry](err); ok {
		p.More["requests"], p.More["state"] = asks.Requests, asks.State
	}
	q, ok := errors.AsType[*door.Question](err)
	if !ok {
		return p
	}
	p.More["question"] = q
	if q.Ticket == "" {
		return p
	}
	p.More["ticket"] = q.Ticket
	// Without its lines the ticket is at the desk all the same.
	if desk, err := a.Desk(); err == nil {
		if t, err := desk.Opened(ctx, q.Ticket); err == nil {
			p.More["expires"], p.More["rule"] = t.Expires, t.Question.Rule
			if why := t.Question.Why; why != "" {
				p.More["why"] = why
			}
			if who.Decides {
				p.More["lines"] = a.Lines(t)
			}
		}
	}
	return p
}

// here has a refusal for want of an intent name the field that says it: the
// rules speak to models, who have a tool for it.
func here(err error) error {
	e, ok := errors.AsType[*capability.Error](err)
	if !ok || e.Kind != capability.Denied {
		return err
	}
	refusal, ok := errors.AsType[*policy.Refusal](err)
	if !ok || refusal.Reason.Intents == "" {
		return err
	}
	out, why := *e, refusal.Reason
	why.Instead = "Send the member intent with the call: " + why.Intents
	out.Fix = why.Fix()
	return &out
}

const largest = 1 << 20 // bytes of a result in an answer

// fit shortens a result that is too large for an answer, and says by how much.
// What was kept of it can be read by its handle.
func fit(res capability.Result) (capability.Result, int) {
	size := 0
	for _, p := range res.Parts {
		size += partSize(&p)
	}
	if size <= largest {
		return res, 0
	}
	where := "nothing keeps the rest"
	if res.Handle != "" {
		where = "GET /api/v1/results/" + res.Handle + " reads all that was kept"
	}
	left, cut := largest, 0
	parts := make([]capability.Part, 0, len(res.Parts))
	for _, p := range res.Parts {
		n := partSize(&p)
		switch {
		case n <= left:
			left -= n
		case p.Text != "" && p.JSON == nil && p.Data == nil && p.Extra == nil && left > 0:
			text := strings.ToValidUTF8(p.Text[:left], "")
			cut += len(p.Text) - len(text)
			p.Text, left = fmt.Sprintf("%s\n[… %d bytes left out; %s …]", text, len(p.Text)-len(text), where), 0
		default:
			cut += n
			p = capability.Part{Text: fmt.Sprintf("[%d bytes %s left out; %s]", n, p.MIME, where)}
		}
		parts = append(parts, p)
	}
	res.Parts = parts
	return res, cut
}

func partSize(p *capability.Part) int {
	return len(p.Text) + len(p.JSON) + len(p.Data)*4/3 + len(p.Link) + len(p.Extra)
}
