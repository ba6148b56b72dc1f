package runner

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
)

// rulesEvery is how often the rules are checked while calls run.
const rulesEvery = time.Second

// An Enforcer stops running calls that the rules no longer allow, and calls of
// extensions that were switched off. All fields are needed.
type Enforcer struct {
	Runner   func() (*Runner, bool) // false: there was no call yet
	Rules    func() *policy.Rules   // looks for changed rules, which it tells to Apply
	Lookup   func(capability.ID) (*capability.Capability, bool)
	Disabled func(context.Context) func(*capability.Capability) bool // nil: no extension is off
	Log      *slog.Logger
}

// Apply stops the calls that new rules no longer allow. err says why there are no
// rules; then all calls are stopped.
func (e *Enforcer) Apply(rules *policy.Rules, err error) {
	if err != nil {
		e.Log.Warn("the rules cannot be loaded, so nothing runs", "error", err)
	}
	r, made := e.Runner()
	if !made {
		return
	}
	n := r.Stop(errors.New("the rules no longer allow it"), func(run Running) bool {
		known, ok := e.Lookup(run.Target)
		if !ok {
			return true
		}
		c := policy.Of(known)
		return !rules.Visible(&policy.Viewer{Principal: run.Principal, Mode: run.Mode, Origin: run.Origin, Surface: policy.Surface(run.Surface)}, &c)
	})
	if n > 0 {
		e.Log.Warn("calls were stopped that the rules no longer allow", "calls", n)
	}
}

// StopDisabled stops the calls of extensions that were switched off.
func (e *Enforcer) StopDisabled(ctx context.Context) {
	r, made := e.Runner()
	if !made || r.Load().Running == 0 {
		return
	}
	disabled := e.Disabled(ctx)
	if disabled == nil {
		return
	}
	n := r.Stop(errors.New("extension was switched off"), func(run Running) bool {
		known, ok := e.Lookup(run.Target)
		return ok && disabled(known)
	})
	if n > 0 {
		e.Log.Warn("calls were stopped whose extension was switched off", "calls", n)
	}
}

// Watch checks the rules and the extensions every second while calls of r run,
// until the function that it returns is called.
func (e *Enforcer) Watch(r *Runner) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(rulesEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if r.Load().Running > 0 {
					e.Rules()
					e.StopDisabled(ctx)
				}
			}
		}
	}()
	return func() error {
		cancel()
		<-done
		return nil
	}
}
