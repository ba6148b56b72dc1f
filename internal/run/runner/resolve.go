package runner

import (
	"context"
	"errors"
	"fmt"

	"ken/capability"
)

// resolve finds what the call is about and who carries it out.
func (r *Runner) resolve(next step) step {
	return func(ctx context.Context, t *trip) (capability.Result, error) {
		target := t.call.Target
		found, err := r.cfg.Resolve(ctx, t.call)
		t.target = found // so that the record says what was refused
		if err != nil {
			return capability.Result{}, err
		}
		c := found.Capability
		if c == nil {
			return capability.Result{}, &capability.Error{Kind: capability.NotFound, Op: "call", Target: string(target)}
		}
		if seen := t.call.CapabilityHash; seen != "" && seen != c.Hash {
			return capability.Result{}, &capability.Error{
				Kind: capability.Conflict, Op: "call", Target: string(c.ID),
				Err: errors.New("changed since it was looked at"), Fix: "describe it and call it again",
			}
		}
		t.call.Target, t.call.CapabilityHash = c.ID, c.Hash
		if t.runs = c.RunBy(); t.runs == "" {
			why, fix := "it is a text for a model, and there is nothing to run", "describe it to read the text"
			if t.call.Origin == capability.ByPerson {
				fix = "ken catalog show " + string(c.ID) + " prints the text"
			}
			if c.Kind == capability.KindExtension {
				why, fix = "it is a package, and there is nothing to run", "call one of its actions"
			}
			return capability.Result{}, &capability.Error{
				Kind: capability.Unavailable, Op: "call", Target: string(c.ID), Err: errors.New(why), Fix: fix,
			}
		}
		if t.executor = r.cfg.Executors.find(t.runs); t.executor == nil {
			return capability.Result{}, &capability.Error{
				Kind: capability.Unavailable, Op: "call", Target: string(c.ID),
				Err: fmt.Errorf("nothing here runs %q", t.runs), Fix: "what runs here: " + r.cfg.Executors.names(),
			}
		}
		if c.Unavailable != "" {
			return capability.Result{}, &capability.Error{
				Kind: capability.Unavailable, Op: "call", Target: string(c.ID), Err: errors.New(c.Unavailable),
			}
		}
		return next(ctx, t)
	}
}
