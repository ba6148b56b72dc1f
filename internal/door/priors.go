package door

import (
	"context"
	"fmt"
	"time"

	"ken/capability"
	"ken/internal/find/outcome"
)

// relearn is how often, in seconds, the log is read for what was learned.
const relearn = 60

// Priors returns what was learned of capabilities for the messages of a session
// without a tenant. A Door asks for its viewer's tenant itself.
func (r *Recorder) Priors(scope capability.Scope) map[capability.ID]float64 {
	return r.priorsOf("", scope)
}

// priorsOf returns what was learned in the sessions of one tenant. The log is
// read beside the turn: what is new in it counts for a later one.
func (r *Recorder) priorsOf(tenant string, scope capability.Scope) map[capability.ID]float64 {
	if r == nil || scope.Session == "" || r.open() == nil {
		return nil
	}
	if now := r.Now().Unix(); now-r.relearned.Load() >= relearn {
		r.beginLearning(now)
	}
	if p := r.priors.Load(); p != nil {
		return (*p)[outcome.TenantKey(tenant)]
	}
	return nil
}

// beginLearning starts learning in the background, unless it is under way already
// or the Recorder is closed.
func (r *Recorder) beginLearning(now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.learning != nil || r.closed {
		return
	}
	r.relearned.Store(now)
	done := make(chan struct{})
	r.learning = done
	go func() {
		defer func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.learning = nil
			close(done)
		}()
		r.learn()
	}()
}

// Close begins no more learning, and waits for what is being learned until ctx
// ends. The log is the caller's to close, after this.
func (r *Recorder) Close(ctx context.Context) error {
	r.mu.Lock()
	r.closed = true
	running := r.learning
	r.mu.Unlock()
	if running == nil {
		return nil
	}
	select {
	case <-running:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close recorder: the outcome log is still read: %w", ctx.Err())
	}
}

func (r *Recorder) learn() {
	now, all := r.Now(), map[string]map[capability.ID]float64{}
	for tenant, learned := range outcome.PriorsByTenant(r.log.Events(now.Add(-90*24*time.Hour)), now) {
		priors := map[capability.ID]float64{}
		for id, p := range learned {
			if p.LogOdds != 0 {
				priors[id] = p.LogOdds
			}
		}
		all[tenant] = priors
	}
	r.priors.Store(&all)
}

// settings returns how to find for a viewer's message. What was learned is that
// of the viewer's tenant, whatever the configuration has.
func (d *Door) settings(v View, scope capability.Scope) Settings {
	s := d.cfg.Find(scope)
	if tenant := v.viewer.Principal.Tenant; tenant != "" && d.cfg.Recorder != nil {
		s.Priors = d.cfg.Recorder.priorsOf(tenant, scope)
	}
	return s
}
