package runner

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/duration"
	"ken/internal/govern/policy"
	"ken/internal/run/executor"
)

// A Checker is an [Executor] that can tell beforehand that some calls must
// fail: see [executor.Checker].
type Checker = executor.Checker

// Check asks an executor whether a call must fail, where it can tell.
func Check(ctx context.Context, x Executor, call capability.Call) (capability.Result, error) {
	if c, ok := x.(Checker); ok {
		return c.Check(ctx, call)
	}
	return capability.Result{}, nil
}

const (
	checkTime    = 2 * time.Second // that a check may take; after it the person is asked all the same
	checksAtOnce = 8               // at once, those included that ran out of time
)

// doomed returns how a call ends that a person would be asked about and that must
// fail as things stand: with the result that running it would give. It returns nil
// where it need not fail. The rules have let
// it come as far as a question. What it tells was perhaps never agreed to, so
// that the executor looks only where the caller may read all that the call names
// without asking anybody.
//
// That nothing was found promises nothing: the executor looks again when it
// runs. A check that breaks, or takes too long, found nothing.
func (r *Runner) doomed(ctx context.Context, inv *invocation) *outcome {
	if _, can := inv.target.executor.(Checker); !can || !inv.plan.mayRead() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	select {
	case r.checks <- struct{}{}:
	case <-ctx.Done():
		return nil
	}
	x, call := inv.target.executor, inv.call
	call.Arguments, call.Answers, call.Live = bytes.Clone(call.Arguments), foreignAnswers(call.Answers), nil
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-r.checks }()
		var o outcome
		o.res, o.err = guard("check", func(s string) { o.panic = s }, func() (capability.Result, error) { return Check(ctx, x, call) })
		done <- o
	}()
	var o outcome
	select {
	case o = <-done:
	case <-ctx.Done():
		inv.notes.add("check", "it took longer than "+duration.Text(checkTime)+", so it counts for nothing")
		return nil
	}
	switch {
	case o.panic != "":
		inv.notes.add("panic", o.panic)
		return nil
	case ctx.Err() != nil, o.err == nil && !o.res.Failed, o.err != nil && !nothingHappened(o.err):
		return nil
	}
	inv.notes.add("check", "it would have failed, so no approval was asked for")
	o.res = r.finish(inv, o.res)
	return &o
}

// mayRead reports whether the rules let the caller read, by Ken's own tool and
// without a question, all that a call names. That is also the folder of the
// workspace where it is to run: an absolute one is among the paths, or Ken's.
func (p *plan) mayRead() bool {
	q := p.request
	q.Capability, q.Action, q.Intent, q.Grants = policy.Of(reader()), "", policy.ReadFile.String(), nil
	q.Facts = policy.Facts{Paths: slices.Clone(p.request.Facts.Paths)}
	for i := range q.Facts.Paths {
		q.Facts.Paths[i].Write = false
	}
	if dir := p.facts.WorkDir; dir != "" && dir != "." && !filepath.IsAbs(dir) {
		q.Facts.Paths = append(q.Facts.Paths, policy.Path{Name: dir})
	}
	return p.rules.Decide(&q).Effect == policy.Allow
}

func reader() *capability.Capability {
	return &capability.Capability{
		ID: capability.MakeID(capability.KindTool, "read_file"), Kind: capability.KindTool, Name: "read_file", Trust: capability.TrustBuiltin,
		Permissions: []string{executor.PermRead}, Effects: capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No},
	}
}
