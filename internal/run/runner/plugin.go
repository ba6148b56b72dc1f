package runner

import (
	"bytes"
	"context"
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

func (r *Runner) plugins(next step) step {
	return func(ctx context.Context, t *trip) (capability.Result, error) {
		if t.malformed != nil {
			return capability.Result{}, t.malformed
		}
		t.enter(Validating)
		passed := 0
		for _, p := range r.cfg.Plugins {
			if b, ok := p.(Before); ok {
				if err := t.before(ctx, b); err != nil {
					return r.afterwards(ctx, t, passed, capability.Result{}, err)
				}
			}
			passed++
		}
		// From here on the call's bytes are ours: code that kept those that it
		// came with changes nothing.
		t.given = t.call.Arguments
		t.call.Arguments = bytes.Clone(t.given)
		t.call.Answers = maps.Clone(t.call.Answers)
		res, err := next(ctx, t)
		return r.afterwards(ctx, t, passed, res, err)
	}
}

func (t *trip) before(ctx context.Context, p Before) error {
	got, err := guard("plugin "+p.Name(), func(s string) { t.note("panic", s) }, func() (capability.Call, error) {
		return p.Before(ctx, t.call)
	})
	if err != nil {
		return pluginError(p, t.call.Target, err)
	}
	arguments := got.Arguments
	got.Arguments = t.call.Arguments
	if !reflect.DeepEqual(got, t.call) {
		return pluginError(p, t.call.Target, errors.New("changed more of the call than its arguments"))
	}
	if !bytes.Equal(arguments, t.call.Arguments) {
		t.call.Arguments = arguments
		t.note("arguments_by", p.Name())
	}
	return nil
}

func pluginError(p Plugin, target capability.ID, err error) error {
	if e, ok := errors.AsType[*capability.Error](err); ok && e.Kind != capability.Internal {
		return e
	}
	return &capability.Error{
		Kind: capability.Denied, Op: "plugin " + p.Name(), Target: string(target), Rule: "plugins." + p.Name(), Err: err,
		Fix: "do it another way, or leave the plugin out",
	}
}

// afterwards hands the result back through the plugins that let the call pass,
// the last first.
func (r *Runner) afterwards(ctx context.Context, t *trip, passed int, res capability.Result, err error) (capability.Result, error) {
	for i := passed - 1; i >= 0; i-- {
		a, ok := r.cfg.Plugins[i].(After)
		if !ok {
			continue
		}
		if err != nil && len(res.Parts) == 0 {
			res = refusal(asError(err, t.call.Target))
		}
		// A caller that gave up does not keep a plugin from its duty.
		call := t.call
		call.Arguments = bytes.Clone(call.Arguments)
		got, bad := guard("plugin "+a.Name(), func(s string) { t.note("panic", s) }, func() (capability.Result, error) {
			return a.After(context.WithoutCancel(ctx), call, res)
		})
		if bad != nil {
			res.Parts = []capability.Part{{Text: fmt.Sprintf("The call was made. The plugin %s withheld its result.", a.Name())}}
			res.Failed, res.Handle = true, ""
			t.note("withheld_by", a.Name())
			continue
		}
		res.Parts, res.Failed = got.Parts, res.Failed || got.Failed
		if got.Handle == "" {
			res.Handle = "" // so that what it took away is not read from the store
		}
	}
	return res, err
}
