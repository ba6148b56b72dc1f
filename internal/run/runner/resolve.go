package runner

import (
	"context"
	"errors"
	"fmt"

	"ken/capability"
)

// resolve finds what a call is about and who carries it out, and returns the call
// with the id and hash of what it found. With an error the target says as much as
// is known, for the record.
func (r *Runner) resolve(ctx context.Context, call capability.Call) (capability.Call, target, error) {
	found, err := r.cfg.Resolve(ctx, call)
	t := target{Resolved: found}
	if err != nil {
		return call, t, err
	}
	c := found.Capability
	if c == nil {
		return call, t, &capability.Error{Kind: capability.NotFound, Op: "call", Target: string(call.Target)}
	}
	if seen := call.CapabilityHash; seen != "" && seen != c.Hash {
		return call, t, &capability.Error{
			Kind: capability.Conflict, Op: "call", Target: string(c.ID),
			Err: errors.New("the capability changed since it was described"), Fix: "describe it and call it again",
		}
	}
	call.Target, call.CapabilityHash = c.ID, c.Hash
	if t.runs = c.RunBy(); t.runs == "" {
		why, fix := "it is a text for a model, so there is nothing to run", "describe it to read the text"
		if call.Origin == capability.ByPerson {
			fix = "ken catalog show " + string(c.ID) + " prints the text"
		}
		if c.Kind == capability.KindExtension {
			why, fix = "it is a package, so there is nothing to run", "call one of its actions"
		}
		return call, t, &capability.Error{
			Kind: capability.Unavailable, Op: "call", Target: string(c.ID), Err: errors.New(why), Fix: fix,
		}
	}
	if t.executor = r.cfg.Executors.find(t.runs); t.executor == nil {
		return call, t, &capability.Error{
			Kind: capability.Unavailable, Op: "call", Target: string(c.ID),
			Err: fmt.Errorf("unknown runner %q", t.runs), Fix: "known runners: " + r.cfg.Executors.names(),
		}
	}
	if c.Unavailable != "" {
		return call, t, &capability.Error{
			Kind: capability.Unavailable, Op: "call", Target: string(c.ID), Err: errors.New(c.Unavailable),
		}
	}
	return call, t, nil
}
