package approval_test

import (
	"errors"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
)

// TestWithPolicy walks the course of a call as a runner does, under the profile
// that people have: what is asked once a session, and what is asked each time.
func TestWithPolicy(t *testing.T) {
	settings := policy.Defaults(policy.Personal)
	settings.Deployment, settings.Intents = policy.LocalOpen, policy.Off
	rules, err := policy.Compile(settings)
	if err != nil {
		t.Fatal(err)
	}
	d, c := fresh(t)
	decide := func(call capability.Call, destructive bool) policy.Decision {
		t.Helper()
		q := requestOf(t, call)
		q.Capability = policy.Capability{
			ID: call.Target, Name: "git", Kind: capability.KindTool, Trust: capability.TrustUser, Class: policy.Exec, Hash: call.CapabilityHash,
			Declared: policy.Permit(policy.PermExec), Required: policy.Permit(policy.PermExec),
		}
		q.Facts = policy.Facts{Commands: [][]string{{"git", "push"}}, Destructive: destructive}
		q.Surface, q.Time = policy.SurfaceChat, c.Now()
		if q.Grants, err = d.Grants(ctx, q); err != nil {
			t.Fatal(err)
		}
		return rules.Decide(q)
	}
	want := func(what string, got policy.Decision, effect policy.Effect) {
		t.Helper()
		if got.Effect != effect {
			t.Fatalf("%s: Decide = %v: %s; want %v", what, got.Effect, got.Message(), effect)
		}
	}
	first, second := callOf(`{"n":1}`), callOf(`{"n":2}`)

	// Once a session.
	asked := decide(first, false)
	want("before", asked, policy.Ask)
	ticket := ask(t, d, approval.About(first, policy.SurfaceChat, asked))
	want("while pending", decide(first, false), policy.Ask)
	settle(t, d, ticket.ID, yes(approval.Session))
	for _, call := range []capability.Call{first, second} {
		got := decide(call, false)
		want("in the session", got, policy.Allow)
		if _, err := d.Consume(ctx, got.Grant); err != nil {
			t.Errorf("Consume(%s) = %v", got.Grant, err)
		}
	}
	elsewhere := first
	elsewhere.Session = "s2"
	want("another session", decide(elsewhere, false), policy.Ask)

	// Each time: the consent for the session does not answer, nor can one be given.
	asked = decide(first, true)
	want("destructive", asked, policy.Ask)
	ticket = ask(t, d, approval.About(first, policy.SurfaceChat, asked))
	if ticket.State != approval.Pending {
		t.Fatalf("Ask = %s, want pending: the consent for the session does not count", ticket.State)
	}
	if _, err := d.Settle(ctx, ticket.ID, yes(approval.Session)); !errors.Is(err, approval.ErrScope) {
		t.Errorf("Settle for the session = %v", err)
	}
	settle(t, d, ticket.ID, yes(approval.Once))
	want("another call", decide(second, true), policy.Ask)
	got := decide(first, true)
	want("the call", got, policy.Allow)
	if _, err := d.Consume(ctx, got.Grant); err != nil {
		t.Errorf("Consume(%s) = %v", got.Grant, err)
	}
	want("the same call once more", decide(first, true), policy.Ask)

	// A once-grant is not used up where the session's would do.
	ticket = ask(t, d, approval.About(first, policy.SurfaceChat, decide(first, true)))
	once := settle(t, d, ticket.ID, yes(approval.Once))
	if got := decide(first, false); got.Grant == once.Grant || got.Grant == "" {
		t.Errorf("Decide uses grant %q, want the one for the session", got.Grant)
	}

	// In time.
	until := yes(approval.Until)
	until.Until = c.Now().Add(time.Hour)
	ticket = ask(t, d, approval.About(elsewhere, policy.SurfaceChat, decide(elsewhere, false)))
	settle(t, d, ticket.ID, until)
	want("until", decide(elsewhere, false), policy.Allow)
	c.advance(time.Hour)
	want("after that", decide(elsewhere, false), policy.Ask)
}
