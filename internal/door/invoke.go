package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ken/capability"
	"ken/internal/envelope"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/run/runner"
)

// Invoke makes a call of the view's principal. It is the only way to an
// effect: a model's tool call, a slash command and a request all come here.
func (d *Door) Invoke(ctx context.Context, v View, call capability.Call) (capability.Result, error) {
	if v.snapshot == nil || d.cfg.Runner == nil {
		return refused(&capability.Error{
			Kind: capability.Denied, Op: "call", Target: string(call.Target), Err: errors.New("missing principal"), Fix: "say who makes the call",
		})
	}
	run, err := d.cfg.Runner(ctx)
	if err != nil {
		return refused(&capability.Error{
			Kind: capability.Unavailable, Op: "call", Target: string(call.Target), Err: err, Fix: "see ken doctor",
		})
	}
	call.Principal = v.viewer.Principal
	if call.Mode == "" {
		call.Mode = v.viewer.Mode
	}
	call.Surface = string(v.viewer.Surface)
	if real, wrong := envelope.Unwrap(call); wrong == nil {
		call = real // what is wrong with it the runner says, and records
	}
	began := time.Now()
	res, err := run.Invoke(ctx, call)
	d.ended(v, call, res, err, time.Since(began)) // what was used is shown sooner
	return res, err
}

// refused returns a refusal as a result too: every call has one.
func refused(err error) (capability.Result, error) {
	return capability.Result{Parts: []capability.Part{{Text: err.Error()}}, Failed: true}, err
}

// Resolve finds the target of a call for the runner. What the caller may not
// see does not exist.
func (d *Door) Resolve(ctx context.Context, call capability.Call) (runner.Resolved, error) {
	viewer := Viewer{Principal: call.Principal, Mode: call.Mode, Origin: call.Origin, Surface: policy.Surface(call.Surface)}
	v := d.viewOf(call.Arrived, viewer)
	if v.noRules != "" {
		return runner.Resolved{}, v.errNoRules("call", string(call.Target))
	}
	e, err := v.Lookup(string(call.Target))
	if err != nil && capability.KindOf(err) == capability.NotFound && d.Await(ctx, call.Target) {
		v = d.ViewFor(viewer)
		e, err = v.Lookup(string(call.Target))
	}
	if err != nil {
		return d.hiddenFromModels(call, v, d.notFoundYet(call.Principal, err))
	}
	return d.resolved(v, e)
}

func (d *Door) resolved(v View, e *Entry) (runner.Resolved, error) {
	r := runner.Resolved{Capability: e.Capability}
	r.Extension, _ = e.Extension()
	unavailable := func(why, fix string) (runner.Resolved, error) {
		return r, &capability.Error{Kind: capability.Unavailable, Op: "call", Target: string(e.ID), Err: errors.New(why), Fix: fix}
	}
	switch {
	case e.State != catalog.Active:
		return unavailable(fmt.Sprintf("it is %s", e.State), "see ken catalog why "+string(e.ID))
	case !e.Available:
		return unavailable(e.Missing.String(), "see ken catalog why "+string(e.ID))
	}
	r.Schema = func(ctx context.Context) (json.RawMessage, error) {
		detail, err := d.of(v, e).Inspect(ctx, e)
		return detail.Schema, err
	}
	if d.cfg.Switches != nil {
		r.Disabled, r.Fix = d.cfg.Switches.Off(e.Capability)
	}
	return r, nil
}

// hiddenFromModels tells a person who calls what is switched off that it is,
// and a model that there is no such thing. A model whose agent alone may not call
// it is told the rule: the rules about an agent are its user's own, and the agent
// knows the tool from before it was connected.
func (d *Door) hiddenFromModels(call capability.Call, v View, notFound error) (runner.Resolved, error) {
	if call.Origin != capability.ByPerson {
		if e := d.deniedToAgent(v, string(call.Target)); e != nil {
			return d.resolved(v, e)
		}
		return runner.Resolved{}, notFound
	}
	v.reveal = func(e *Entry) *Entry { return e }
	e, err := v.Lookup(string(call.Target))
	if err != nil || v.snapshot == nil {
		return runner.Resolved{}, notFound
	}
	return d.resolved(v, e)
}

// DeniedToAgent returns the id of a capability that the rules hide from the agent of
// a view and from no other agent, and whether the name is that of one. A call of it
// is denied with the rule.
func (d *Door) DeniedToAgent(v View, name string) (capability.ID, bool) {
	if e := d.deniedToAgent(v, name); e != nil {
		return e.ID, true
	}
	return "", false
}

func (d *Door) deniedToAgent(v View, name string) *Entry {
	if v.snapshot == nil || v.viewer.Principal.Agent == "" {
		return nil
	}
	v.reveal = func(e *Entry) *Entry { return e }
	e, err := v.Lookup(name)
	if err != nil {
		return nil
	}
	rules, other, c := d.rules(), v.viewer, d.known(e)
	other.Principal.Agent = ""
	if rules.Visible(&v.viewer, &c) || !rules.Visible(&other, &c) {
		return nil
	}
	return e
}
