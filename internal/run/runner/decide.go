package runner

import (
	"bytes"
	"context"
	"errors"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/jsonvalid"
	"ken/internal/run/executor"
)

// plan finds out what a call comes to, as the rules need it, and returns the call
// bound to the code that it runs. With an error the plan says as much as is known,
// for the record.
func (r *Runner) plan(ctx context.Context, call capability.Call, t target, notes *notes) (capability.Call, plan, error) {
	var p plan
	call.Code = ""
	digest, err := call.Digest()
	if err != nil {
		return call, p, invalidCall(call, err)
	}
	p.sealed = call
	p.sealed.Arguments = bytes.Clone(call.Arguments)
	facts, err := guard("facts", notes.panicked, func() (Facts, error) { return t.executor.Facts(ctx, call, t.Capability) })
	if err != nil {
		return call, p, err
	}
	if len(facts.Isolation) > 0 && !jsonvalid.Valid(facts.Isolation) {
		return call, p, &capability.Error{
			Kind: capability.Internal, Op: "facts", Target: string(call.Target),
			Err: errors.New("the executor's isolation report is not JSON"), Fix: "fix the executor of " + t.runs,
		}
	}
	p.facts = facts
	if call.Code = executor.InState(executor.BoundTo(facts.Files, facts.Arguments.Unseen), facts.State); call.Code != "" {
		if digest, err = call.Digest(); err != nil {
			return call, p, invalidCall(call, err)
		}
		p.sealed.Code = call.Code
	}
	p.facts.Arguments.Secrets = r.secrets.undeclared(call, t.Capability, facts.Secrets)
	p.request = r.requestOf(ctx, call, t, &p.facts, digest)
	return call, p, nil
}

func invalidCall(call capability.Call, err error) error {
	return &capability.Error{
		Kind: capability.Invalid, Op: "call", Target: string(call.Target), Err: err, Fix: "send one JSON object",
	}
}

func (r *Runner) rules() *policy.Rules {
	if r.cfg.Rules == nil {
		return nil
	}
	return r.cfg.Rules()
}

func (r *Runner) rulesFor(arrived time.Time) *policy.Rules {
	if r.cfg.RulesFor == nil {
		return r.rules()
	}
	return r.cfg.RulesFor(arrived)
}

func (r *Runner) recentRules() *policy.Rules {
	if r.cfg.RecentRules == nil {
		return nil
	}
	return r.cfg.RecentRules()
}

func (r *Runner) requestOf(ctx context.Context, call capability.Call, t target, facts *Facts, digest string) policy.Request {
	c := policy.Of(t.Capability)
	if facts.Class != policy.ClassUnknown {
		c.Class = facts.Class
	}
	if facts.Required != (policy.Permissions{}) {
		c.Required = facts.Required
	}
	c.Disabled, c.Fix = t.Disabled, t.Fix
	return policy.Request{
		Principal: call.Principal, Capability: c, Action: call.Action, Facts: facts.Arguments,
		Intent: call.Intent, Mode: call.Mode, Origin: call.Origin, Session: call.Session,
		Digest: digest, Time: r.cfg.Now(), Surface: r.cfg.Surface(ctx, call), Files: filesOf(facts),
	}
}

func filesOf(f *Facts) []policy.File {
	var out []policy.File
	for _, one := range f.Files {
		out = append(out, policy.File(one))
	}
	return out
}
