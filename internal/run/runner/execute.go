package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/duration"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/run/executor"
)

type outcome struct {
	res   capability.Result
	err   error
	panic string
}

// execute is the last stage: the effect, and what is made of its result.
func (r *Runner) execute(ctx context.Context, inv *invocation) (capability.Result, error) {
	inv.enter(Executing)
	res, err := r.run(ctx, inv)
	switch status, end := inv.statusOf(res, err); {
	case end == TimedOut:
		inv.end.event = eventTimeout
	case status == audit.Completed:
		inv.end.event = eventSuccess
	default:
		inv.end.event = eventError
	}
	inv.enter(Processing)
	if changed := res.Meta[executor.MetaChanged]; changed != "" {
		inv.notes.add("changed", "while it ran: "+changed)
	}
	res = r.finish(inv, res)
	r.effects.settle(ctx, inv.effect, res, err)
	return res, err
}

// finish makes of an executor's result what callers are given.
func (r *Runner) finish(inv *invocation, res capability.Result) capability.Result {
	res, inv.end.bytes = r.results.keep(inv, r.secrets.hide(res))
	if held := inv.plan.facts.Isolation; len(held) > 0 && res.Meta[MetaIsolation] == "" {
		res.Meta[MetaIsolation] = r.isolation.of(held) // it said what would hold it, and nothing else since
	}
	return res
}

// A lastText is the text that was asked for last. Calls of one server have the same
// isolation.
type lastText struct{ text atomic.Pointer[string] }

func (l *lastText) of(raw []byte) string {
	if last := l.text.Load(); last != nil && *last == string(raw) {
		return *last
	}
	text := string(raw)
	l.text.Store(&text)
	return text
}

// recheck makes sure that what runs is what was decided on, under rules that
// still hold, for a caller who still waits: the call may have waited long.
func (r *Runner) recheck(ctx context.Context, inv *invocation) error {
	p := &inv.plan
	if !sameCall(inv.call, p.sealed) || !bytes.Equal(inv.given, p.sealed.Arguments) {
		return &capability.Error{
			Kind: capability.Conflict, Op: "execute", Target: string(inv.call.Target), Rule: "runner.digest",
			Err: errors.New("the call was changed after the decision"), Fix: "find the plugin that changes a call's arguments after the decision",
		}
	}
	if rules := r.recentRules(); rules != p.rules {
		p.request.Time = r.cfg.Now()
		if p.decide(rules); p.decision.Effect != policy.Allow {
			inv.notes.add("rules", "they changed while the call waited")
			return p.decision.Err(inv.call.Target)
		}
	}
	if ctx.Err() != nil {
		return gaveUp(ctx) // while it was recorded, or waited
	}
	return nil
}

// sameCall reports whether two calls have one digest: all that the digest is
// made of is equal.
func sameCall(a, b capability.Call) bool {
	return a.Target == b.Target && a.Action == b.Action && bytes.Equal(a.Arguments, b.Arguments) &&
		a.Principal.Tenant == b.Principal.Tenant && a.Principal.ID == b.Principal.ID &&
		a.Session == b.Session && a.Intent == b.Intent && a.Mode == b.Mode && a.CapabilityHash == b.CapabilityHash && a.Code == b.Code
}

// foreignAnswers are those to the executor's own questions: what people told Ken
// belongs to no other call.
func foreignAnswers(all map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(all)
	delete(out, AnswerConsent)
	delete(out, AnswerAgain)
	return out
}

// run lets the executor work, within its time. An executor that does not
// return even then is left behind; it keeps its place at the limiter.
func (r *Runner) run(ctx context.Context, inv *invocation) (capability.Result, error) {
	var recipe time.Duration
	if c := inv.target.Capability; c.Run != nil {
		recipe = time.Duration(c.Run.TimeoutSec) * time.Second
	}
	limit := inv.limits.timeout(recipe, inv.plan.facts.Timeout)
	inner, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	live, call := r.secrets.newLive(inv.call.Live), inv.call
	call.Answers = foreignAnswers(call.Answers)
	call.Arrived = time.Time{} // calls that this one makes come in later
	if call.Live != nil {
		call.Live = live.as()
	}
	work := func() (o outcome) {
		o.res, o.err = guard("execute", func(s string) { o.panic = s }, func() (capability.Result, error) {
			return inv.target.executor.Invoke(inner, call)
		})
		return o
	}
	var o outcome
	if p, ok := inv.target.executor.(interface{ Punctual() bool }); ok && p.Punctual() {
		o = work()
	} else {
		o = r.beside(inner, inv, work)
	}
	live.close()
	if o.panic != "" {
		inv.notes.panicked(o.panic)
	}
	if why := stopReason(inner); why != nil && o.err == nil && o.res.Failed {
		// The executor knows that the program was ended, but not why.
		text := "The call was stopped: " + why.Error()
		if errors.Is(why, errClosing) {
			text = "The call was cancelled because Ken is stopping."
		}
		inv.notes.add("stopped", why.Error())
		o.res.Parts = append(o.res.Parts, capability.Part{Text: text})
	}
	return o.res, ended(inner, inv.call.Target, limit, knobOf(limit, recipe, inv.plan.facts.Timeout), o)
}

// beside runs an executor on a goroutine of its own and waits for it, as long as its
// time lasts.
func (r *Runner) beside(inner context.Context, inv *invocation, work func() outcome) outcome {
	done, gone := make(chan outcome, 1), make(chan struct{})
	go func() {
		defer close(gone)
		done <- work()
	}()
	select {
	case o := <-done:
		return o
	case <-inner.Done():
		return r.last(inner, inv, done, gone)
	}
}

// stopReason returns the reason that was passed to [Runner.Stop], or nil if a
// limit or the caller ended the call, or it was not stopped.
func stopReason(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, errTimeout) {
		return nil
	}
	return cause
}

// knobOf names what set a limit.
func knobOf(limit, recipe, asked time.Duration) string {
	switch limit {
	case asked:
		return "the time that the call asks for"
	case recipe:
		return "timeout_sec of its manifest"
	}
	return "limits.timeout"
}

// last waits for an executor whose time is over.
func (r *Runner) last(inner context.Context, inv *invocation, done <-chan outcome, gone <-chan struct{}) outcome {
	grace := time.NewTimer(r.limits.Grace)
	defer grace.Stop()
	select {
	case o := <-done:
		return o
	case <-grace.C:
		inv.end.abandoned = gone
		inv.notes.add("abandoned", "the executor did not return; it occupies its slot until it does")
		return outcome{err: context.Cause(inner)}
	}
}

// ended returns the error of an execution, including that a limit or the caller
// ended it.
func ended(inner context.Context, target capability.ID, limit time.Duration, knob string, o outcome) error {
	cause := context.Cause(inner)
	if cause == nil || o.err == nil && !o.res.Failed {
		return o.err // what came to its end in time stays
	}
	if nothingHappened(o.err) {
		return o.err
	}
	if errors.Is(cause, errTimeout) || errors.Is(cause, context.DeadlineExceeded) {
		return &capability.Error{
			Kind: capability.Timeout, Op: "execute", Target: string(target), Rule: knob,
			Err: fmt.Errorf("stopped after %s", duration.Text(limit)), Fix: "ask for less at once, or raise " + knob,
		}
	}
	if o.err == nil {
		return nil // a failure of its own, which it had time to report
	}
	return asError(gaveUp(inner), target)
}

var errTimeout = errors.New("the call took longer than limits.timeout")
