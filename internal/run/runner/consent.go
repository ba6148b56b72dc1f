package runner

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
)

// consent looks for a grant that covers a call about which the rules ask, and asks
// where there is none. It returns nil where the call may go on, and else how it
// ends. It never waits: the caller makes the call again.
func (r *Runner) consent(ctx context.Context, inv *invocation) *outcome {
	// What has happened already needs no approval, and the grant that
	// it had may be used up. Where effects and grants are in one store, the batch that
	// asks, and the one that claims the effect, find that out by themselves.
	if err := inv.identify(ctx); err != nil {
		return over(capability.Result{}, err)
	}
	joint := r.joint && inv.effect != nil && !inv.alone
	if !joint {
		if earlier, err := r.effects.recall(ctx, inv.effect); err != nil || earlier != nil {
			return over(earlier.outcome(err))
		}
	}
	if r.cfg.Desk == nil {
		return over(inv.cannotAsk())
	}
	if err := r.records.catchUp(ctx); err != nil {
		return over(capability.Result{}, err) // do not ask about a call that cannot run
	}
	if r.continues(inv) {
		return nil
	}
	// A question may be answered while it is put, and a grant used up by
	// another call; each is worth a second look and no more.
	for try := range 3 {
		if err := r.grant(ctx, inv, joint, try == 0); err == nil {
			return nil
		} else if !errors.Is(err, errNoGrant) {
			return over(capability.Result{}, err)
		}
		if d := &inv.plan.decision; d.Effect != policy.Ask {
			return over(d.Result(), d.Err(inv.call.Target))
		}
		if try == 0 {
			if end := r.doomed(ctx, inv); end != nil {
				return end
			}
		}
		q := inv.question(ctx)
		if joint {
			q.Unless = inv.effect.key
		}
		ticket, err := r.cfg.Desk.Ask(ctx, q)
		if errors.Is(err, approval.ErrHappened) {
			if earlier, err := r.effects.recall(ctx, inv.effect); err != nil || earlier != nil {
				return over(earlier.outcome(err))
			}
			joint = false // it may run again
			continue
		}
		if err != nil {
			return over(capability.Result{}, deskError("ask", inv.call.Target, err))
		}
		inv.ticket = ticket.ID
		inv.notes.add("ticket", ticket.ID)
		if err := ticket.Err(); err != nil {
			return over(inv.unapproved(&ticket, err))
		}
	}
	return over(capability.Result{}, &capability.Error{
		Kind: capability.Conflict, Op: "consent", Target: string(inv.call.Target),
		Err: errors.New("the grant was used up by other calls"), Fix: "call again",
	})
}

// over returns how a call ends.
func over(res capability.Result, err error) *outcome { return &outcome{res: res, err: err} }

// continues reports whether a call answers the question of an earlier one that had
// consent, which covers this one.
func (r *Runner) continues(inv *invocation) bool {
	if len(inv.call.Answers) == 0 && inv.call.State == "" {
		return false
	}
	if !r.consented.take(inv.plan.request.Digest, inv.call.State, r.cfg.Now()) {
		return false
	}
	inv.plan.decision.Effect = policy.Allow
	inv.notes.add("grant", "that of the call whose question it answers")
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

// remember keeps the consent of a call that ended with err, if it asks a question of
// its own: it has not happened, and with the answer it goes on under the same consent.
func (c *consented) remember(digest string, err error, now time.Time) {
	if q, ok := errors.AsType[*capability.Inquiry](err); ok && capability.KindOf(err) == capability.InputNeeded {
		c.keep(digest, q.State, now)
	}
}

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

// errGrantGone says that the grant of a call was used or revoked before the call
// could claim its effect with it.
var errGrantGone = errors.New("the grant is gone")

// errNoGrant is returned by grant if no usable grant covers the call.
var errNoGrant = errors.New("matching grant not found")

// grant looks for a consent that covers the call, and uses it. The first time it takes
// what the desk knows already. A grant for one call is used together with the claim of
// its effect, where that is joint.
func (r *Runner) grant(ctx context.Context, inv *invocation, joint, first bool) (err error) {
	p := &inv.plan
	p.request.Exact = approval.Exact(inv.call)
	var grants []policy.Grant
	known := false
	if first {
		grants, known = r.cfg.Desk.Known(&p.request)
	}
	if !known {
		if grants, err = r.cfg.Desk.Grants(ctx, &p.request); err != nil {
			return deskError("read grants", inv.call.Target, err)
		}
	}
	asked := p.decision
	p.request.Grants = grants
	p.decide(p.rules)
	if p.decision.Effect != policy.Allow {
		return errNoGrant
	}
	if p.decision.Grant == "" {
		return nil
	}
	if joint {
		if spend, ok := r.cfg.Desk.Spend(p.decision.Grant); ok {
			inv.effect.spend = spend
			inv.notes.add("grant", p.decision.Grant)
			return nil
		}
	}
	_, err = r.cfg.Desk.Consume(ctx, p.decision.Grant)
	switch {
	case errors.Is(err, approval.ErrEnded):
		p.decision = asked
		return errNoGrant
	case err != nil:
		return deskError("use grant", inv.call.Target, err)
	}
	inv.notes.add("grant", p.decision.Grant)
	return nil
}

func (inv *invocation) question(ctx context.Context) approval.Question {
	q := approval.About(inv.call, inv.plan.request.Surface, inv.plan.decision)
	q.Argv, q.Command, q.Files, q.Unknown = inv.plan.facts.Argv, inv.plan.facts.Line, inv.plan.request.Files, inv.plan.facts.Unknown
	q.Shown = inv.shown(ctx)
	q.AnyProgram = inv.plan.request.Capability.AnyProgram
	q.Prefix = policy.CommonPrefix(&inv.plan.request.Facts, inv.plan.request.Files)
	// A repeated call may name the ticket, so that a denial is
	// not asked about a second time.
	_ = json.Unmarshal(inv.call.Answers[AnswerConsent], &q.Again)
	return q
}

// unapproved says that a person has not agreed: not yet, or not at all.
func (inv *invocation) unapproved(ticket *approval.Ticket, err error) (capability.Result, error) {
	e := *asError(err, inv.call.Target)
	res := inv.plan.decision.Result()
	if e.Kind == capability.Denied {
		inv.plan.decision.Effect = policy.Deny
		return refusal(&e), &e
	}
	text := "This call needs approval. Ask the user to run: ken approve grant " + ticket.ID +
		". Do not run it yourself. This is not a denial; make the same call again once the request is answered."
	why := inv.plan.decision.Reason.Text
	if len(ticket.Voided) > 0 { // a grant became invalid: say which change ended it
		why += "; an earlier approval is no longer valid: " + ticket.Voided[0].Why
		text = "An earlier approval is no longer valid: " + ticket.Voided[0].Why + ". " + text
	}
	res.Parts = append(res.Parts, capability.Part{Text: text})
	e.Err = &Question{Name: AnswerConsent, Ticket: ticket.ID, Text: why}
	if e.Rule == "" {
		e.Rule = inv.plan.decision.Reason.Rule
	}
	if e.Fix == "" {
		e.Fix = "ask a person to run ken approve grant " + ticket.ID + ", then make the same call again"
	}
	return res, &e
}

// cannotAsk denies a call whose question cannot be asked.
func (inv *invocation) cannotAsk() (capability.Result, error) {
	inv.plan.decision.Effect = policy.Deny
	inv.plan.decision.Reason.Text += "; no person can be asked here"
	return inv.plan.decision.Result(), inv.plan.decision.Err(inv.call.Target)
}

func deskError(op string, target capability.ID, err error) error {
	if e, ok := errors.AsType[*capability.Error](err); ok && e.Kind != capability.Internal {
		return e
	}
	return &capability.Error{
		Kind: capability.Unavailable, Op: op, Target: string(target), Err: err,
		Fix: "no call runs without a stored approval; fix the store and call again",
	}
}
