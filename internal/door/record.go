package door

import (
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/find/discover"
	"ken/internal/find/outcome"
)

// Found is a selection and what may be done with it.
type Found struct {
	Selection
	Rollout Rollout `json:"rollout"`
}

// Rollout says whether a selection may go into a prompt.
type Rollout struct {
	Inject      bool   `json:"inject"`
	Reason      string `json:"reason,omitempty"`
	Cards       bool   `json:"cards"`
	CardsReason string `json:"cardsReason,omitempty"`
	Experiment  string `json:"experiment,omitempty"`
	Variant     string `json:"variant,omitempty"`
}

// Prompt is the text to put into a prompt: all of the selection, without the
// cards, or nothing, as the rollout allows.
func (f Found) Prompt() string {
	switch {
	case !f.Rollout.Inject:
		return ""
	case !f.Rollout.Cards:
		return strings.TrimSuffix(strings.TrimSuffix(f.Text(), f.CardsText()), "\n\n")
	}
	return f.Text()
}

// A Recorder writes down what was shown and what became of it, and says what
// may be shown. A nil Recorder records nothing and lets everything through.
type Recorder struct {
	// Open gives the log and its kill switch. It is called when the first
	// message of a session comes, so that looking around leaves no traces.
	Open func() (*outcome.Log, *outcome.Switch)

	Mode         outcome.Mode
	SessionTypes []string
	Level        outcome.Level
	Text         io.Writer // takes the lines for people; nil: none
	Now          func() time.Time

	once      sync.Once
	log       *outcome.Log
	gate      outcome.Gate
	telemetry *outcome.Telemetry
	alert     atomic.Pointer[outcome.Alert] // that calls fail, until somebody was told

	priors    atomic.Pointer[map[capability.ID]float64]
	relearned atomic.Int64 // when, in Unix seconds
	learning  atomic.Bool
}

func (r *Recorder) open() *outcome.Log {
	r.once.Do(func() {
		r.gate = outcome.Gate{Mode: r.Mode, SessionTypes: r.SessionTypes}
		r.telemetry = outcome.NewTelemetry(outcome.TelemetryConfig{})
		if r.Open != nil {
			r.log, r.gate.Switch = r.Open()
		}
	})
	return r.log
}

// relearn is how often, in seconds, the log is read for what was learned.
const relearn = 60

// Priors gives what was learned of capabilities for the messages of a session.
// The log is read beside the turn: what is new in it counts for a later one.
func (r *Recorder) Priors(scope capability.Scope) map[capability.ID]float64 {
	if r == nil || scope.Session == "" || r.open() == nil {
		return nil
	}
	if now := r.Now().Unix(); now-r.relearned.Load() >= relearn && r.learning.CompareAndSwap(false, true) {
		r.relearned.Store(now)
		go func() {
			defer r.learning.Store(false)
			r.learn()
		}()
	}
	if p := r.priors.Load(); p != nil {
		return *p
	}
	return nil
}

func (r *Recorder) learn() {
	now, priors := r.Now(), map[capability.ID]float64{}
	for id, p := range outcome.Priors(r.log.Events(now.Add(-90*24*time.Hour)), now) {
		if p.LogOdds != 0 {
			priors[id] = p.LogOdds
		}
	}
	r.priors.Store(&priors)
}

// selected records a selection.
func (r *Recorder) selected(q Query, s Settings, sel Selection) Found {
	f := Found{Selection: sel, Rollout: Rollout{Inject: true, Cards: true, Experiment: s.Experiment, Variant: s.Variant}}
	if r == nil {
		return f
	}
	if q.Scope.Session == "" {
		gate := outcome.Gate{Mode: r.Mode, SessionTypes: r.SessionTypes}
		f.Rollout.Inject, f.Rollout.Reason = gate.Allow(q.Scope)
		f.Rollout.Cards, f.Rollout.CardsReason = gate.AllowCards(q.Scope)
		return f
	}
	log := r.open()
	f.Rollout.Inject, f.Rollout.Reason = r.gate.Allow(q.Scope)
	f.Rollout.Cards, f.Rollout.CardsReason = r.gate.AllowCards(q.Scope)
	if alert := r.alert.Swap(nil); alert != nil {
		f.Degraded = append(f.Degraded, alert.Text)
	}
	e := r.event(q, f)
	if log != nil {
		if err := log.Append(e); err != nil {
			f.Degraded = append(f.Degraded, "the selection was not recorded: "+err.Error())
		}
	}
	if r.Text != nil {
		_, _ = io.WriteString(r.Text, outcome.Text(e, r.Level)) // the log itself says more
	}
	if r.gate.Switch != nil {
		if _, alert, err := r.gate.Switch.Check(r.Now()); alert != nil {
			f.Degraded = append(f.Degraded, alert.Text)
		} else if err != nil {
			f.Degraded = append(f.Degraded, "the kill switch could not read all of its log: "+err.Error())
		}
	}
	return f
}

func (r *Recorder) event(q Query, f Found) outcome.Event {
	e := outcome.Event{
		Time: r.Now(), Kind: outcome.Selected, Session: q.Scope.Session, SessionType: q.Scope.SessionType, Tags: q.RouterTags,
		Mode: r.Mode, Experiment: f.Rollout.Experiment, Variant: f.Rollout.Variant, Injected: f.Rollout.Inject,
		Tokens: outcome.Tokens{Map: f.Tokens.Map, Briefs: f.Tokens.Briefs, Cards: f.Tokens.Cards, Fulls: f.Tokens.Fulls, Total: f.Tokens.Total},
		TookUS: f.TookUS, EmbedUS: f.EmbedUS, GraphUS: f.GraphUS, Candidates: f.Found, Retrieved: len(f.Briefs), Degraded: f.Degraded,
	}
	if r.log != nil {
		e.QueryHash = r.log.Hash(q.Text)
	}
	add := func(tier outcome.Tier, pieces []Piece, held bool) {
		for _, p := range pieces {
			forced := slices.ContainsFunc(p.Why, func(w string) bool { return strings.Contains(w, "capabilities.forceInclude") })
			item := outcome.Item{ID: p.ID, Tier: tier, Score: p.Score, Tokens: p.Tokens, Forced: forced, Held: held}
			for _, s := range f.SeedScores {
				if s.ID == p.ID && tier == outcome.TierCard {
					item.Seed = s.Score
				}
			}
			e.Items = append(e.Items, item)
		}
	}
	add(outcome.TierBrief, f.Briefs, false)
	add(outcome.TierCard, f.Cards, !f.Rollout.Cards)
	add(outcome.TierFull, f.Fulls, false)
	for _, s := range f.Skipped {
		e.Skipped = append(e.Skipped, outcome.Skip{ID: s.ID, Reason: s.Reason})
	}
	return e
}

// called records what a model looked for itself.
func (r *Recorder) called(scope capability.Scope, a ToolAnswer) {
	if r == nil || scope.Session == "" || a.Failed || r.open() == nil {
		return
	}
	e := outcome.Event{Time: r.Now(), Session: scope.Session}
	switch data := a.Data.(type) {
	case discover.Capabilities:
		if !data.Searched { // a list is no search
			return
		}
		e.Kind = outcome.Searched
		if len(data.Capabilities) > 0 {
			e.ID = data.Capabilities[0].ID
		}
	case discover.Reading:
		if data.From > 0 || data.ID == "" { // the rest of it, or of the reference
			return
		}
		e.Kind, e.ID = outcome.Described, data.ID
	default:
		return
	}
	_ = r.log.Append(e) // Health counts what is lost
}

// Used records that a capability was called in a session, and whether that
// worked.
func (d *Door) Used(scope capability.Scope, id capability.ID, worked bool) error {
	if d.cfg.Recorder == nil || scope.Session == "" || d.cfg.Recorder.open() == nil {
		return nil
	}
	kind := outcome.Used
	if !worked {
		kind = outcome.Failed
	}
	e := outcome.Event{Time: d.cfg.Recorder.Now(), Kind: kind, Session: scope.Session, ID: id}
	if alert := d.cfg.Recorder.telemetry.Observe(e); alert != nil {
		d.cfg.Recorder.alert.Store(alert)
	}
	return d.cfg.Recorder.log.Append(e)
}

// Lift makes the kill switch start anew, for a person who has mended the cards
// that triggered too often.
func (d *Door) Lift(p capability.Principal) error {
	r := d.cfg.Recorder
	if r == nil || r.open() == nil || r.gate.Switch == nil {
		return &capability.Error{Kind: capability.NotFound, Op: "lift", Target: "the kill switch", Fix: "set capabilities.killSwitch to warn or disable"}
	}
	return r.gate.Switch.Lift(r.Now(), p.ID)
}

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
	if r.gate.Switch != nil {
		rep.KillSwitch, _, _ = r.gate.Switch.Check(now) // what it could read is what is told
	}
	return rep
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
