package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"

	"ken/capability"
)

// A Plugin adds to what happens around a call by being a [Before], an [After]
// or both. A plugin that fails or breaks refuses: authority fails closed.
type Plugin interface {
	Name() string
}

// Before sees a call before anything is known of its target. It may refuse it,
// or give it other arguments, which are then validated and decided on; to
// change anything else of it is a refusal. What it was given it must not
// change in place.
type Before interface {
	Plugin
	Before(ctx context.Context, call capability.Call) (capability.Call, error)
}

// After sees the result of every call that its Before let through, refused ones
// too. It may take away from the parts or replace them; it cannot turn a
// failure into a success.
type After interface {
	Plugin
	After(ctx context.Context, call capability.Call, res capability.Result) (capability.Result, error)
}

// plugins lets the plugins see a call before it is performed, and its result after.
func (r *Runner) plugins(ctx context.Context, inv *invocation) (capability.Result, error) {
	passed := 0
	for _, p := range r.cfg.Plugins {
		if b, ok := p.(Before); ok {
			arguments, err := argumentsBy(ctx, b, inv.call, &inv.notes)
			if err != nil {
				return r.afterwards(ctx, inv, passed, capability.Result{}, err)
			}
			inv.call.Arguments = arguments
		}
		passed++
	}
	// From here on the call's bytes are ours: code that kept those that it
	// came with changes nothing.
	inv.given = inv.call.Arguments
	inv.call.Arguments = bytes.Clone(inv.given)
	inv.call.Answers = maps.Clone(inv.call.Answers)
	res, err := r.perform(ctx, inv)
	return r.afterwards(ctx, inv, passed, res, err)
}

// argumentsBy returns the arguments of a call as a plugin wants them.
func argumentsBy(ctx context.Context, p Before, call capability.Call, notes *notes) (json.RawMessage, error) {
	got, err := guard("plugin "+p.Name(), notes.panicked, func() (capability.Call, error) { return p.Before(ctx, call) })
	if err != nil {
		return nil, pluginError(p, call.Target, err)
	}
	arguments := got.Arguments
	got.Arguments = call.Arguments
	if !reflect.DeepEqual(got, call) {
		return nil, pluginError(p, call.Target, errors.New("changed other parts of the call than its arguments"))
	}
	if bytes.Equal(arguments, call.Arguments) {
		return call.Arguments, nil
	}
	notes.add("arguments_by", p.Name())
	return arguments, nil
}

func pluginError(p Plugin, target capability.ID, err error) error {
	if e, ok := errors.AsType[*capability.Error](err); ok && e.Kind != capability.Internal {
		return e
	}
	return &capability.Error{
		Kind: capability.Denied, Op: "plugin " + p.Name(), Target: string(target), Rule: "plugins." + p.Name(), Err: err,
		Fix: "make a different call, or remove the plugin",
	}
}

// afterwards hands the result back through the plugins that let the call pass,
// the last first.
func (r *Runner) afterwards(ctx context.Context, inv *invocation, passed int, res capability.Result, err error) (capability.Result, error) {
	for i := passed - 1; i >= 0; i-- {
		a, ok := r.cfg.Plugins[i].(After)
		if !ok {
			continue
		}
		if err != nil && len(res.Parts) == 0 {
			res = refusal(asError(err, inv.call.Target))
		}
		// A caller that gave up does not keep a plugin from its duty.
		call := inv.call
		call.Arguments = bytes.Clone(call.Arguments)
		got, bad := guard("plugin "+a.Name(), inv.notes.panicked, func() (capability.Result, error) {
			return a.After(context.WithoutCancel(ctx), call, res)
		})
		if bad != nil {
			res.Parts = []capability.Part{{Text: fmt.Sprintf("The call was made. The plugin %s withheld its result.", a.Name())}}
			res.Failed, res.Handle = true, ""
			inv.notes.add("withheld_by", a.Name())
			continue
		}
		res.Parts, res.Failed = got.Parts, res.Failed || got.Failed
		if got.Handle == "" {
			res.Handle = "" // so that what it took away is not read from the store
		}
	}
	return res, err
}
