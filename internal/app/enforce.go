package app

import (
	"context"
	"errors"
	"time"

	"ken/internal/govern/policy"
	"ken/internal/run/runner"
)

// Rules returns the rules in force, or nil where their files cannot be followed.
func (a *App) Rules() *policy.Rules {
	rules, _ := a.loader.Rules()
	return rules
}

// rulesEvery is how often the rules are looked at while calls run.
const rulesEvery = time.Second

// enforce stops the calls that new rules no longer allow.
func (a *App) enforce(rules *policy.Rules, err error) {
	if err != nil {
		a.log.Warn("the rules cannot be followed, so nothing runs", "error", err)
	}
	r, made := a.runner.Peek()
	if !made {
		return
	}
	n := r.Stop(errors.New("the rules no longer allow it"), func(run runner.Running) bool {
		e, err := a.Oversee().Lookup(string(run.Target))
		if err != nil {
			return true
		}
		c := policy.Of(e.Capability)
		return !rules.Visible(&policy.Viewer{Principal: run.Principal, Mode: run.Mode, Origin: run.Origin, Surface: policy.Surface(run.Surface)}, &c)
	})
	if n > 0 {
		a.log.Warn("calls were stopped that the rules no longer allow", "calls", n)
	}
}

// watchRules checks the rules and the disabled extensions repeatedly while
// calls run.
func (a *App) watchRules(r *runner.Runner, every time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				if r.Load().Running > 0 {
					a.Rules()
					a.stopDisabled(ctx)
				}
			}
		}
	}()
	a.closeLater(func() error {
		cancel()
		close(stop)
		<-done
		return nil
	})
}

// stopDisabled stops running calls of extensions that were disabled meanwhile.
func (a *App) stopDisabled(ctx context.Context) {
	r, made := a.runner.Peek()
	if !made || r.Load().Running == 0 {
		return
	}
	disabled := a.Extensions.Disabled(ctx)
	if disabled == nil {
		return
	}
	view := a.Oversee()
	n := r.Stop(errors.New("its extension was switched off"), func(run runner.Running) bool {
		e, err := view.Lookup(string(run.Target))
		return err == nil && disabled(e.Capability)
	})
	if n > 0 {
		a.log.Warn("calls were stopped whose extension was switched off", "calls", n)
	}
}

// visibilityEvery is how often watchVisibility looks.
const visibilityEvery = time.Second

// watchVisibility makes a new version of the catalog when something beside it
// changes what models see of it, until ctx ends: extensions are switched by other
// processes too, and rules are files. So a file that cannot be used is reported
// soon, even without any request.
func (a *App) watchVisibility(ctx context.Context) {
	tick := time.NewTicker(visibilityEvery)
	defer tick.Stop()
	for rules := a.Rules(); ; {
		a.Extensions.RenewIfSwitched(ctx)
		if now := a.Rules(); now != rules {
			rules = now
			a.catalog.Renew()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
