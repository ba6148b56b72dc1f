package door

import (
	"iter"
	"maps"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/find/outcome"
)

// Report is what came of what was shown.
type Report struct {
	Since       time.Time                       `json:"since"`
	Metrics     outcome.Metrics                 `json:"metrics"`
	KillSwitch  outcome.State                   `json:"killSwitch"`
	Priors      map[capability.ID]outcome.Prior `json:"priors"`
	Experiments map[string]outcome.Comparison   `json:"experiments"`
	Log         outcome.Health                  `json:"log"`
	Calls       outcome.Suggestion              `json:"calls"` // how the latest calls of this process went
}

// Report sums up what came of what was shown since a time.
func (d *Door) Report(since time.Time) Report {
	r := d.cfg.Recorder
	rep := Report{Since: since, Priors: map[capability.ID]outcome.Prior{}, Experiments: map[string]outcome.Comparison{}}
	if r == nil || r.open() == nil {
		return rep
	}
	now := r.Now()
	events := replayed(r.log.Events(since)) // the log may be long: it is read once
	rep.Metrics = outcome.Summarise(events, since)
	rep.Priors = outcome.Priors(events, now)
	rep.Log = r.log.Health()
	rep.Calls = r.telemetry.Suggest()
	names := map[string]bool{}
	for e := range events {
		if e.Experiment != "" {
			names[e.Experiment] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		rep.Experiments[name] = outcome.Compare(events, name)
	}
	if r.kill != nil {
		rep.KillSwitch, _, _ = r.kill.Check(now) // what it could read is what is told
	}
	return rep
}

// Insights sums up what was saved in all tenants, for the operator.
// Times that are zero are filled in: now, and thirty days before.
func (d *Door) Insights(cfg outcome.InsightsConfig) outcome.Overview {
	r := d.cfg.Recorder
	if r == nil || r.open() == nil {
		o := outcome.Insights(func(func(outcome.Event, error) bool) {}, cfg)
		o.Notes = append(o.Notes, "nothing is recorded here, so there is nothing to sum up")
		return o
	}
	if cfg.Until.IsZero() {
		cfg.Until = r.Now()
	}
	if cfg.Since.IsZero() {
		cfg.Since = cfg.Until.AddDate(0, 0, -30)
	}
	return outcome.Insights(r.log.Events(cfg.Since.Add(-time.Hour)), cfg)
}

// Mistaken returns the tools that were shown first since a time while others were
// called instead.
func (d *Door) Mistaken(since time.Time) []outcome.Mistaken {
	r := d.cfg.Recorder
	if r == nil || r.open() == nil {
		return nil
	}
	return outcome.MistakenFor(r.log.Events(since))
}

// replayed reads events once, to be gone through several times.
func replayed(events iter.Seq2[outcome.Event, error]) iter.Seq2[outcome.Event, error] {
	type read struct {
		event outcome.Event
		err   error
	}
	var all []read
	for e, err := range events {
		all = append(all, read{e, err})
	}
	return func(yield func(outcome.Event, error) bool) {
		for _, r := range all {
			if !yield(r.event, r.err) {
				return
			}
		}
	}
}
