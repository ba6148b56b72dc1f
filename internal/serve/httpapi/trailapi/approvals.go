package trailapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/serve/httpapi/wire"
)

// A ticket is a question at the desk. Who may not answer it is told that it waits, and
// by which rule: what a person sees in order to decide can hold more than the caller
// may read, such as the content of a file that would change.
type ticket struct {
	ID        string           `json:"id"`
	State     approval.State   `json:"state"`
	Asked     time.Time        `json:"asked"`
	Expires   time.Time        `json:"expires"`
	Mine      bool             `json:"mine"`  // the caller made the call itself
	Wide      bool             `json:"wide"`  // answers for more than this one call are allowed
	Title     string           `json:"title"` // what is asked, in one sentence
	Target    string           `json:"target"`
	Action    string           `json:"action,omitempty"`
	Principal string           `json:"principal"`
	Session   string           `json:"session,omitempty"`
	Surface   string           `json:"surface,omitempty"`
	Rule      string           `json:"rule,omitempty"`
	Why       string           `json:"why,omitempty"`
	Risk      any              `json:"risk,omitempty"`
	Offers    []approval.Offer `json:"offers,omitempty"` // what may be granted, the narrowest first
	Lines     []approval.Line  `json:"lines"`            // empty for a caller that may not decide
	Answer    *given           `json:"answer,omitempty"`
}

type given struct {
	Effect approval.Effect `json:"effect"`
	Scope  approval.Scope  `json:"scope"`
	By     string          `json:"by"`
	At     time.Time       `json:"at"`
	Until  time.Time       `json:"until,omitzero"`
	Note   string          `json:"note,omitempty"`
	Covers approval.Cover  `json:"covers,omitempty"`
}

func givenBy(s *approval.Answer) *given {
	return &given{s.Effect, s.Scope, s.By.ID, s.At, s.Until, s.Note, s.Covers}
}

func (a *api) ticketOf(t approval.Ticket, r *wire.Request) ticket {
	who := r.Who.Principal
	q, c := &t.Question, &t.Question.Call
	out := ticket{
		ID: t.ID, State: t.State, Asked: t.Asked, Expires: t.Expires, Wide: q.Widest == approval.Session,
		Mine:   c.Principal.ID == who.ID && c.Principal.Tenant == who.Tenant,
		Title:  t.Title(),
		Target: string(c.Target), Action: c.Action, Principal: c.Principal.ID, Session: c.Session,
		Surface: string(q.Surface), Rule: q.Rule, Why: q.Why, Risk: q.Risk, Lines: []approval.Line{},
	}
	if r.Who.Decides {
		out.Offers, out.Lines = t.Offers, a.Lines(t)
	}
	if s := t.Answer; s != nil {
		out.Answer = givenBy(s)
	}
	return out
}

type tickets struct {
	Tickets  []ticket `json:"tickets"`
	Cut      int      `json:"cut"` // that were left out by limit
	Problems []string `json:"problems,omitempty"`
}

func (a *api) approvals(r *wire.Request) (any, error) {
	desk, err := a.Desk()
	if err != nil {
		return nil, err
	}
	f := approval.Filter{Tenant: r.Who.Principal.Tenant, States: []approval.State{approval.Pending}}
	switch state := r.Text("state"); state {
	case "", "pending":
	case "all":
		f.States = nil
	default:
		f.States = []approval.State{approval.State(state)}
	}
	list, err := desk.List(r.Context(), f)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	out := tickets{Tickets: []ticket{}, Problems: r.Partly(err)}
	for _, t := range slices.Backward(list) {
		switch {
		case !desk.MaySettle(r.Who.Principal, &t):
		case !r.Who.Decides && t.Question.Call.Principal.Agent != r.Who.Principal.Agent: // of another agent
		case len(out.Tickets) == listed(r):
			out.Cut++
		default:
			out.Tickets = append(out.Tickets, a.ticketOf(t, r))
		}
	}
	return out, nil
}

// An answer is a person's word on a ticket.
type answer struct {
	Effect approval.Effect `json:"effect"`
	Scope  approval.Scope  `json:"scope,omitempty"` // once
	Until  time.Time       `json:"until,omitzero"`
	Note   string          `json:"note,omitempty"`

	// Covers is call, prefix or tool, as the ticket's offers say. Without it a
	// grant for a session covers the tool, and one for longer this exact call.
	Covers approval.Cover `json:"covers,omitempty"`
}

func (a *api) settle(r *wire.Request) (any, error) {
	var in answer
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if in.Scope == "" {
		in.Scope = approval.Once
	}
	t, err := a.Settle(r.Context(), r.PathValue("id"), approval.Answer{
		By: r.Who.Principal, Effect: in.Effect, Scope: in.Scope, Until: in.Until, Note: in.Note, Covers: in.Covers,
	})
	switch {
	case err == nil:
		return a.ticketOf(t, r), nil
	case errors.Is(err, approval.ErrNotYours), errors.Is(err, approval.ErrNoTicket):
		return nil, noTicket()
	case errors.Is(err, approval.ErrSettled):
		p := &wire.Problem{Status: http.StatusConflict, Code: "settled", Detail: err.Error(), More: map[string]any{"ticket": t.ID}}
		if s := t.Answer; s != nil {
			p.More["answer"] = givenBy(s)
		}
		return nil, p
	case errors.Is(err, approval.ErrExpired):
		return nil, &wire.Problem{Status: http.StatusConflict, Code: "expired", Detail: err.Error(), More: map[string]any{"ticket": t.ID, "expires": t.Expires}}
	}
	return nil, err
}

func noTicket() error {
	return wire.Missing("approval request not found, or not yours to answer; GET /api/v1/approvals lists yours")
}

// A grant is a consent that holds.
type grant struct {
	ID         string         `json:"id"`
	Scope      approval.Scope `json:"scope"`
	Principal  string         `json:"principal"`
	Mine       bool           `json:"mine"`
	Capability capability.ID  `json:"capability"`
	Action     string         `json:"action,omitempty"`
	Session    string         `json:"session,omitempty"`
	Until      time.Time      `json:"until,omitzero"`
	Ticket     string         `json:"ticket"`
	By         string         `json:"by"`
	At         time.Time      `json:"at"`
	Note       string         `json:"note,omitempty"`
	Covers     approval.Cover `json:"covers,omitempty"`
	Prefix     []string       `json:"prefix,omitempty"`
	Text       string         `json:"text"`               // what the grant covers
	Examples   []string       `json:"examples,omitempty"` // calls that the grant covers
}

type grants struct {
	Grants   []grant  `json:"grants"`
	Cut      int      `json:"cut"` // that were left out by limit
	Problems []string `json:"problems,omitempty"`
}

func (a *api) grants(r *wire.Request) (any, error) {
	desk, err := a.Desk()
	if err != nil {
		return nil, err
	}
	who := r.Who.Principal
	list, err := desk.Held(r.Context(), approval.Filter{Tenant: who.Tenant})
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	out := grants{Grants: []grant{}, Problems: r.Partly(err)}
	for _, g := range slices.Backward(list) {
		var about approval.Ticket // the same people see a grant who may settle
		about.Question.Call.Principal = capability.Principal{ID: g.Principal, Tenant: g.Tenant}
		switch {
		case !desk.MaySettle(who, &about):
		case len(out.Grants) == listed(r):
			out.Cut++
		default:
			out.Grants = append(out.Grants, grant{
				g.ID, g.Scope, g.Principal, g.Principal == who.ID, g.Capability, g.Action, g.Session, g.Until, g.Ticket, g.By, g.At, g.Note,
				g.Covers, g.Prefix, g.Text(), g.Examples(),
			})
		}
	}
	return out, nil
}

const longestWhy = 4096

type revocation struct {
	Why string `json:"why,omitempty"`
}

func (a *api) revoke(r *wire.Request) (any, error) {
	var in revocation
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if len(in.Why) > longestWhy {
		return nil, wire.Bad("why has more than 4096 bytes; make it shorter")
	}
	// What it stops must be stopped though the client has gone.
	err := a.Revoke(context.WithoutCancel(r.Context()), r.PathValue("id"), r.Who.Principal, in.Why)
	switch {
	case errors.Is(err, approval.ErrNotYours), errors.Is(err, approval.ErrNoTicket), errors.Is(err, approval.ErrNoGrant):
		return nil, wire.Missing("grant not found, or not yours to revoke; GET /api/v1/grants lists yours")
	case errors.Is(err, approval.ErrEnded):
		return nil, &wire.Problem{Status: http.StatusConflict, Code: "ended", Detail: err.Error()}
	}
	return nil, err
}
