package door

import (
	"context"

	"ken/capability"
	"ken/internal/find/discover"
	"ken/internal/find/outcome"
)

// Settings returns how to find for a message of a viewer from somewhere, as
// ken.yaml and what was learned say. Without a session it has what one of
// theirs would have learned.
func (d *Door) Settings(v View, scope capability.Scope) Settings {
	s := d.settings(v, scope)
	if scope.Session == "" && s.Priors == nil {
		s.Priors = d.cfg.Recorder.priorsOf(v.viewer.Principal.Tenant, capability.Scope{Session: "none"})
	}
	return s
}

// Preview is [Door.Find] for a user who wants to see what would be found, with
// [Door.Settings]. It records nothing, whatever the session.
func (d *Door) Preview(ctx context.Context, v View, q Query) (Found, error) {
	if v.seen == nil {
		return Found{Selection: discover.Empty(q.Text)}, ctx.Err()
	}
	settings := d.Settings(v, q.Scope)
	sel, err := d.finder.Find(ctx, v.seen, q, settings.Config)
	if err != nil {
		return Found{}, err
	}
	return d.cfg.Recorder.gated(q, settings, sel), nil
}

// gated says what may be done with a selection, and leaves no trace of it.
func (r *Recorder) gated(q Query, s Settings, sel Selection) Found {
	f := Found{Selection: sel, Rollout: Rollout{Inject: true, Cards: true, Experiment: s.Experiment, Variant: s.Variant}}
	if r != nil {
		how := r.recording()
		gate := outcome.Gate{Mode: how.Mode, SessionTypes: how.SessionTypes}
		f.Rollout.Inject, f.Rollout.Reason = gate.Allow(q.Scope)
		f.Rollout.Cards, f.Rollout.CardsReason = gate.AllowCards(q.Scope)
	}
	return f
}
