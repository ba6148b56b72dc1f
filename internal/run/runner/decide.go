package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/run/executor"
)

// decide asks the rules. A question is left to consent.
func (r *Runner) decide(next step) step {
	return func(ctx context.Context, t *trip) (capability.Result, error) {
		t.call.Code = ""
		digest, err := t.call.Digest()
		if err != nil {
			return capability.Result{}, invalidCall(t, err)
		}
		t.sealed = t.call
		t.sealed.Arguments = bytes.Clone(t.call.Arguments)
		facts, err := guard("facts", func(s string) { t.note("panic", s) }, func() (Facts, error) {
			return t.executor.Facts(ctx, t.call, t.target.Capability)
		})
		if err != nil {
			return capability.Result{}, err
		}
		if len(facts.Isolation) > 0 && !json.Valid(facts.Isolation) {
			return capability.Result{}, &capability.Error{
				Kind: capability.Internal, Op: "facts", Target: string(t.call.Target),
				Err: errors.New("the executor says how it would be isolated, and that is not JSON"), Fix: "fix the executor of " + t.runs,
			}
		}
		t.facts = facts
		if t.call.Code = executor.BoundTo(facts.Files, facts.Arguments.Unseen); t.call.Code != "" {
			if digest, err = t.call.Digest(); err != nil {
				return capability.Result{}, invalidCall(t, err)
			}
			t.sealed.Code = t.call.Code
		}
		t.facts.Arguments.Secrets = r.undeclared(t)
		t.request = r.requestOf(ctx, t, digest)
		r.judge(t, r.rules())
		if t.decision.Effect != policy.Allow && t.decision.Effect != policy.Ask {
			return t.decision.Result(), t.decision.Err(t.call.Target)
		}
		return next(ctx, t)
	}
}

func invalidCall(t *trip, err error) error {
	return &capability.Error{
		Kind: capability.Invalid, Op: "call", Target: string(t.call.Target), Err: err, Fix: "send one JSON object",
	}
}

func (r *Runner) rules() *policy.Rules {
	if r.cfg.Rules == nil {
		return nil
	}
	return r.cfg.Rules()
}

func (r *Runner) judge(t *trip, rules *policy.Rules) {
	t.rules = rules
	t.decision, t.decided = rules.Decide(&t.request), true
}

func (r *Runner) requestOf(ctx context.Context, t *trip, digest string) policy.Request {
	c := policy.Of(t.target.Capability)
	if t.facts.Class != policy.ClassUnknown {
		c.Class = t.facts.Class
	}
	if t.facts.Required != (policy.Permissions{}) {
		c.Required = t.facts.Required
	}
	c.Disabled, c.Mend = t.target.Disabled, t.target.Mend
	q := policy.Request{
		Principal: t.call.Principal, Capability: c, Action: t.call.Action, Facts: t.facts.Arguments,
		Intent: t.call.Intent, Mode: t.call.Mode, Origin: t.call.Origin, Session: t.call.Session,
		Digest: digest, Time: r.cfg.Now(), Surface: r.cfg.Surface(ctx, t.call), Files: filesOf(t.facts),
	}
	return q
}

func filesOf(f Facts) []policy.File {
	var out []policy.File
	for _, one := range f.Files {
		out = append(out, policy.File(one))
	}
	return out
}

// changes reports whether the call must be assumed to change something, so that
// it must not happen twice.
func (t *trip) changes() bool {
	c := t.request.Capability
	return !c.ReadOnly && c.Class != policy.Meta && c.Class != policy.Read
}

// consent looks for a grant, and asks where there is none. It never
// waits: the caller makes the call again.
func (r *Runner) consent(next step) step {
	return func(ctx context.Context, t *trip) (capability.Result, error) {
		if t.decision.Effect == policy.Allow {
			return next(ctx, t)
		}
		// What has happened already needs no approval, and the grant that
		// it had may be used up.
		if earlier, err := r.recall(ctx, t); err != nil || earlier != nil {
			return earlier.outcome(err)
		}
		if r.cfg.Desk == nil {
			return r.cannotAsk(t)
		}
		if err := r.catchUp(ctx); err != nil {
			return capability.Result{}, err // do not ask about a call that cannot run
		}
		if r.goesOn(t) {
			return r.underConsent(ctx, t, next)
		}
		// A question may be answered while it is put, and a grant used up by
		// another call; each is worth a second look and no more.
		for try := range 3 {
			if err := r.grant(ctx, t); err == nil {
				return r.underConsent(ctx, t, next)
			} else if !errors.Is(err, errNoGrant) {
				return capability.Result{}, err
			}
			if t.decision.Effect != policy.Ask {
				return t.decision.Result(), t.decision.Err(t.call.Target)
			}
			if try == 0 {
				if o, yes := r.doomed(ctx, t); yes {
					return o.res, o.err
				}
			}
			ticket, err := r.cfg.Desk.Ask(ctx, r.question(t))
			if err != nil {
				return capability.Result{}, deskError("ask", t, err)
			}
			t.ticket = ticket.ID
			t.note("ticket", ticket.ID)
			if err := ticket.Err(); err != nil {
				return r.unapproved(t, &ticket, err)
			}
		}
		return capability.Result{}, &capability.Error{
			Kind: capability.Conflict, Op: "consent", Target: string(t.call.Target),
			Err: errors.New("grant was used up by other calls"), Fix: "call again",
		}
	}
}

// underConsent carries on an approved call. One that asks a
// question of its own has not happened: with the answer it goes on under the
// same consent.
func (r *Runner) underConsent(ctx context.Context, t *trip, next step) (capability.Result, error) {
	res, err := next(ctx, t)
	if q, ok := errors.AsType[*capability.Inquiry](err); ok && capability.KindOf(err) == capability.InputNeeded {
		r.consented.keep(t.request.Digest, q.State, r.cfg.Now())
	}
	return res, err
}

// goesOn reports whether a call answers the question of an earlier one that had
// consent, which covers this one.
func (r *Runner) goesOn(t *trip) bool {
	if t.decision.Effect != policy.Ask || len(t.call.Answers) == 0 && t.call.State == "" {
		return false
	}
	if !r.consented.take(t.request.Digest, t.call.State, r.cfg.Now()) {
		return false
	}
	t.decision.Effect = policy.Allow
	t.note("grant", "that of the call whose question it answers")
	return true
}

// consented are calls that had consent and asked something, each for the one
// that answers. They are of this process, as what is asked mostly is.
type consented struct {
	mu    sync.Mutex
	until map[[2]string]time.Time
}

const (
	mostConsented = 1024
	consentedFor  = 10 * time.Minute
)

func (c *consented) keep(digest, state string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil || len(c.until) >= mostConsented {
		maps.DeleteFunc(c.until, func(_ [2]string, until time.Time) bool { return now.After(until) })
		if len(c.until) >= mostConsented {
			return // they will be asked about again
		}
	}
	if c.until == nil {
		c.until = map[[2]string]time.Time{}
	}
	c.until[[2]string{digest, state}] = now.Add(consentedFor)
}

func (c *consented) take(digest, state string, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := [2]string{digest, state}
	until, ok := c.until[key]
	delete(c.until, key)
	return ok && now.Before(until)
}

// errNoGrant is returned by grant if no usable grant covers the call.
var errNoGrant = errors.New("matching grant not found")

// grant looks for a consent that covers the call, and uses it.
func (r *Runner) grant(ctx context.Context, t *trip) error {
	t.request.Exact = approval.Exact(t.call)
	grants, err := r.cfg.Desk.Grants(ctx, &t.request)
	if err != nil {
		return deskError("read grants", t, err)
	}
	asked := t.decision
	t.request.Grants = grants
	r.judge(t, t.rules)
	if t.decision.Effect != policy.Allow {
		return errNoGrant
	}
	if t.decision.Grant == "" {
		return nil
	}
	_, err = r.cfg.Desk.Consume(ctx, t.decision.Grant)
	switch {
	case errors.Is(err, approval.ErrEnded):
		t.decision = asked
		return errNoGrant
	case err != nil:
		return deskError("use grant", t, err)
	}
	t.note("grant", t.decision.Grant)
	return nil
}

func (r *Runner) question(t *trip) approval.Question {
	q := approval.About(t.call, t.request.Surface, t.decision)
	q.Argv, q.Command, q.Files, q.Unknown = t.facts.Argv, t.facts.Line, t.request.Files, t.facts.Unknown
	q.AnyProgram = t.request.Capability.AnyProgram
	q.Prefix = policy.CommonPrefix(&t.request.Facts, t.request.Files)
	// A repeated call may name the ticket, so that a denial is
	// not asked about a second time.
	_ = json.Unmarshal(t.call.Answers[AnswerConsent], &q.Again)
	return q
}

// unapproved says that a person has not agreed: not yet, or not at all.
func (r *Runner) unapproved(t *trip, ticket *approval.Ticket, err error) (capability.Result, error) {
	e := *asError(err, t.call.Target)
	res := t.decision.Result()
	if e.Kind == capability.Denied {
		t.decision.Effect = policy.Deny
		return refusal(&e), &e
	}
	text := "This call needs approval. Ask the user to run: ken approve grant " + ticket.ID +
		". Do not run it yourself. This is not a denial; make the same call again once the request is answered."
	why := t.decision.Reason.Text
	if len(ticket.Voided) > 0 { // a grant became invalid: say which change ended it
		why += "; an earlier approval no longer holds: " + ticket.Voided[0].Why
		text = "An earlier approval no longer holds: " + ticket.Voided[0].Why + ". " + text
	}
	res.Parts = append(res.Parts, capability.Part{Text: text})
	e.Err = &Question{Name: AnswerConsent, Ticket: ticket.ID, Text: why}
	if e.Rule == "" {
		e.Rule = t.decision.Reason.Rule
	}
	if e.Fix == "" {
		e.Fix = "let a person run ken approve grant " + ticket.ID + ", then make the same call again"
	}
	return res, &e
}

// cannotAsk denies a call whose question cannot be asked.
func (r *Runner) cannotAsk(t *trip) (capability.Result, error) {
	t.decision.Effect = policy.Deny
	t.decision.Reason.Text += "; no person can be asked here"
	return t.decision.Result(), t.decision.Err(t.call.Target)
}

func deskError(op string, t *trip, err error) error {
	if e, ok := errors.AsType[*capability.Error](err); ok && e.Kind != capability.Internal {
		return e
	}
	return &capability.Error{
		Kind: capability.Unavailable, Op: op, Target: string(t.call.Target), Err: err,
		Fix: "nothing runs without consent; fix the store and call again",
	}
}
