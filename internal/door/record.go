package door

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/find/discover"
	"ken/internal/find/outcome"
	"ken/internal/find/show"
	"ken/internal/run/runner"
	"ken/internal/tokenizer"
)

// A Recorder writes down what was shown and what became of it, and says what
// may be shown. A nil Recorder records nothing and lets everything through.
type Recorder struct {
	// Open returns the log and its kill switch. It is called when the first
	// message of a session comes, so that looking around leaves no traces.
	Open func() (*outcome.Log, *outcome.Switch)

	Mode         outcome.Mode
	SessionTypes []string
	Level        outcome.Level
	Text         io.Writer // takes the lines for people; nil: none
	Now          func() time.Time
	Count        tokenizer.Counter // of all schemas; nil: exact

	// Recording, when not nil, is asked for with every selection, and holds
	// instead of Mode, SessionTypes and Level.
	Recording func() Recording

	// OnEvent, when not nil, is called for each selection, call and turn, also if
	// it is not recorded because it belongs to no session. It must be quick and
	// safe for concurrent use.
	OnEvent func(outcome.Event)

	once      sync.Once
	log       *outcome.Log
	kill      *outcome.Switch
	telemetry *outcome.Telemetry
	alert     atomic.Pointer[outcome.Alert] // that calls fail, until it was shown

	priors    atomic.Pointer[map[string]map[capability.ID]float64] // by tenant
	relearned atomic.Int64                                         // when, in Unix seconds

	mu       sync.Mutex
	learning chan struct{} // closed when the learning that runs has ended; nil: none runs
	closed   bool
}

// A Recording is where what was found goes into prompts, and how much of it is
// told to people. The fields are those of [Recorder].
type Recording struct {
	Mode         outcome.Mode
	SessionTypes []string
	Level        outcome.Level
}

func (r *Recorder) recording() Recording {
	if r.Recording != nil {
		return r.Recording()
	}
	return Recording{r.Mode, r.SessionTypes, r.Level}
}

func (r *Recorder) open() *outcome.Log {
	r.once.Do(func() {
		r.telemetry = outcome.NewTelemetry(outcome.TelemetryConfig{})
		if r.Open != nil {
			r.log, r.kill = r.Open()
		}
	})
	return r.log
}

// A Pending is a selection that is not recorded yet. The zero value records
// nothing.
type Pending struct {
	door  *Door
	view  View
	query Query
}

// Tier is how much of a capability went into a prompt.
type Tier = outcome.Tier

// The tiers of what is sent for a message.
const (
	TierBrief = outcome.TierBrief
	TierCard  = outcome.TierCard
	TierFull  = outcome.TierFull
)

// Sent is a capability of a selection that went into a prompt.
type Sent struct {
	ID     capability.ID
	Tier   Tier
	Tokens int
}

// whole returns everything that [Found.Prompt] contains.
func whole(f Found) (out []Sent) {
	if !f.Rollout.Inject {
		return nil
	}
	add := func(tier outcome.Tier, list []Piece) {
		for _, p := range list {
			out = append(out, Sent{p.ID, tier, p.Tokens})
		}
	}
	add(outcome.TierBrief, f.Briefs)
	add(outcome.TierFull, f.Fulls)
	if f.Rollout.Cards {
		add(outcome.TierCard, f.Cards)
	}
	return out
}

// Sent records the selection. sent is the part of it that went into the prompt
// now, and about counts the tokens of the map or of its replacement. It returns
// any error of recording.
func (p Pending) Sent(f Found, sent []Sent, about int) (degraded []string) {
	if p.door == nil || p.door.cfg.Recorder == nil {
		return nil
	}
	return p.door.cfg.Recorder.selected(p.view, p.query, f, sent, about, p.door.AllToolTokens)
}

// Looked records a selection that was shown to a person. Nothing of it was sent, so
// nothing is learned from what is not used.
func (p Pending) Looked(f Found) (degraded []string) {
	f.Rollout.Inject = false
	return p.Sent(f, nil, 0)
}

// judged returns what may be done with a selection.
func (r *Recorder) judged(q Query, s Settings, sel Selection) Found {
	f := r.gated(q, s, sel)
	if r == nil || q.Scope.Session == "" {
		return f
	}
	r.open()
	how := r.recording()
	gate := outcome.Gate{Mode: how.Mode, SessionTypes: how.SessionTypes, Switch: r.kill}
	f.Rollout.Inject, f.Rollout.Reason = gate.Allow(q.Scope)
	f.Rollout.Cards, f.Rollout.CardsReason = gate.AllowCards(q.Scope)
	if alert := r.alert.Swap(nil); alert != nil {
		f.Degraded = append(f.Degraded, alert.Text)
	}
	return f
}

// selected records a selection. dump returns what a prompt without Ken would
// cost.
func (r *Recorder) selected(v View, q Query, f Found, sent []Sent, about int, dump func(View) int) (degraded []string) {
	if q.Scope.Session == "" {
		r.report(outcome.Event{Time: r.Now(), Kind: outcome.Selected, TookUS: f.TookUS, EmbedUS: f.EmbedUS, GraphUS: f.GraphUS})
		return nil
	}
	log, how := r.open(), r.recording()
	e := r.event(v, q, f, sent, about)
	e.Mode, e.Tenant = how.Mode, v.viewer.Principal.Tenant
	r.report(e)
	if log != nil {
		e.AllToolTokens = dump(v)
		if err := log.Append(e); err != nil {
			degraded = append(degraded, "the selection was not recorded: "+err.Error())
		}
	}
	if r.Text != nil {
		_, _ = io.WriteString(r.Text, outcome.Text(e, how.Level)) // the log itself says more
	}
	if r.kill != nil {
		if _, alert, err := r.kill.Check(r.Now()); alert != nil {
			degraded = append(degraded, alert.Text)
		} else if err != nil {
			degraded = append(degraded, "the kill switch could not read all of its log: "+err.Error())
		}
	}
	return degraded
}

func (r *Recorder) report(e outcome.Event) {
	if r.OnEvent != nil {
		r.OnEvent(e)
	}
}

func (r *Recorder) event(v View, q Query, f Found, sent []Sent, about int) outcome.Event {
	e := outcome.Event{
		Time: r.Now(), Kind: outcome.Selected, Session: q.Scope.Session, SessionType: q.Scope.SessionType, Tags: q.RouterTags,
		Experiment: f.Rollout.Experiment, Variant: f.Rollout.Variant, Injected: f.Rollout.Inject || len(sent) > 0,
		TookUS: f.TookUS, EmbedUS: f.EmbedUS, GraphUS: f.GraphUS, Candidates: f.Found, Retrieved: len(f.Briefs), Degraded: f.Degraded,
	}
	if r.log != nil {
		e.QueryHash = r.log.Hash(q.Text)
	}
	e.Items = items(f, sent)
	for i := range e.Items {
		v.read(f, &e.Items[i])
	}
	e.Tokens = tokens(e.Items, f, about)
	for _, s := range f.Skipped {
		skip := outcome.Skip{ID: s.ID, Reason: s.Reason, Score: s.Score, Tokens: s.Wanted}
		if s.Tier == show.TierCards {
			skip.Seed = seedScore(f, s.ID)
		}
		e.Skipped = append(e.Skipped, skip)
	}
	return e
}

// items returns the capabilities of a selection and what became of each: sent,
// held back by the rollout, or already in the prompt. A capability that was
// sent in one tier is not listed in another.
func items(f Found, sent []Sent) (out []outcome.Item) {
	any := map[capability.ID]bool{}
	for _, s := range sent {
		any[s.ID] = true
	}
	add := func(tier outcome.Tier, pieces []Piece, held bool) {
		for _, p := range pieces {
			item := outcome.Item{ID: p.ID, Tier: tier, Score: p.Score, Tokens: p.Tokens, Forced: p.Forced}
			if tier == outcome.TierCard {
				item.Seed = seedScore(f, p.ID)
			}
			i := slices.IndexFunc(sent, func(s Sent) bool { return s.ID == p.ID && s.Tier == tier })
			switch {
			case i >= 0:
				item.Tokens = sent[i].Tokens
			case any[p.ID]:
				continue
			case held:
				item.Held = true
			default:
				item.There = true
			}
			out = append(out, item)
		}
	}
	add(outcome.TierBrief, f.Briefs, !f.Rollout.Inject)
	add(outcome.TierCard, f.Cards, !f.Rollout.Inject || !f.Rollout.Cards)
	add(outcome.TierFull, f.Fulls, !f.Rollout.Inject)
	return out
}

// tokens sums items by tier, held back or not, including the heading of each
// tier.
func tokens(items []outcome.Item, f Found, about int) outcome.Tokens {
	sum := func(tier outcome.Tier, pieces []Piece, all int) (n int) {
		for _, p := range pieces {
			all -= p.Tokens
		}
		for _, it := range items {
			if it.Tier == tier {
				n += it.Tokens
			}
		}
		if !slices.ContainsFunc(items, func(it outcome.Item) bool { return it.Tier == tier && !it.There }) {
			return n
		}
		return n + max(0, all)
	}
	t := outcome.Tokens{
		Map: about, Briefs: sum(outcome.TierBrief, f.Briefs, f.Tokens.Briefs), Cards: sum(outcome.TierCard, f.Cards, f.Tokens.Cards),
		Fulls: sum(outcome.TierFull, f.Fulls, f.Tokens.Fulls),
	}
	t.Total = t.Map + t.Briefs + t.Cards + t.Fulls
	return t
}

// seedScore is the score of a card by the seed's formula.
func seedScore(f Found, id capability.ID) float64 {
	for _, s := range f.SeedScores {
		if s.ID == id {
			return s.Score
		}
	}
	return 0
}

// called records what a model looked for itself.
func (r *Recorder) called(v View, scope capability.Scope, a ToolAnswer) {
	if r == nil || scope.Session == "" || a.Failed || r.open() == nil {
		return
	}
	e := outcome.Event{Time: r.Now(), Session: scope.Session, Tenant: v.viewer.Principal.Tenant}
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
		if entry, err := v.Lookup(string(data.ID)); err == nil && !v.tools()[entry.ID] {
			e.Detail = outcome.ReadText
		}
	default:
		return
	}
	r.log.Add(e) // Health counts what is lost
}

// Used records that a capability was called in a session, and whether that
// worked. It is for callers that run capabilities without [Door.Invoke].
func (d *Door) Used(scope capability.Scope, id capability.ID, worked bool) error {
	return d.record(usedEvent("", scope.Session, id, worked))
}

func usedEvent(tenant, session string, id capability.ID, worked bool) outcome.Event {
	e := outcome.Event{Kind: outcome.Used, Tenant: tenant, Session: session, ID: id}
	if !worked {
		e.Kind = outcome.Failed
	}
	return e
}

// ended records what became of a call. That it could not be is told by the
// log's own health.
func (d *Door) ended(v View, call capability.Call, res capability.Result, err error, took time.Duration) {
	if d.cfg.Recorder == nil {
		return
	}
	tenant, id := v.viewer.Principal.Tenant, capability.ID("")
	if e, err := v.Lookup(string(call.Target)); err == nil {
		id = e.ID
	}
	e := usedEvent(tenant, call.Session, id, !res.Failed)
	switch {
	case err != nil && capability.KindOf(err) == capability.Denied:
		e.Kind, e.Rule = outcome.Refused, ruleOf(err)
	case err != nil || id == "":
		return // it was not made, or waits, or is nothing that a viewer has
	default:
		e.TookUS = max(1, running(res, took).Microseconds())
	}
	if d.observe(&e) {
		d.cfg.Recorder.log.Add(e)
	}
}

func ruleOf(err error) string {
	if e, ok := errors.AsType[*capability.Error](err); ok {
		return e.Rule
	}
	return ""
}

// running is how long a call ran, without the time that a person took to agree
// to it.
func running(res capability.Result, took time.Duration) time.Duration {
	if ms, err := strconv.ParseInt(res.Meta[runner.MetaDuration], 10, 64); err == nil && ms > 0 {
		return min(took, time.Duration(ms)*time.Millisecond)
	}
	return took
}

// Turned records that a turn of a conversation is over. Its kind and time are
// filled in.
func (d *Door) Turned(e outcome.Event) error {
	e.Kind = outcome.Ended
	return d.record(e)
}

// record writes an event of a session, now.
func (d *Door) record(e outcome.Event) error {
	if d.cfg.Recorder == nil || !d.observe(&e) {
		return nil
	}
	return d.cfg.Recorder.log.Append(e)
}

// observe sets the time of an event and reports it. It returns whether the event
// belongs into the log.
func (d *Door) observe(e *outcome.Event) bool {
	r := d.cfg.Recorder
	e.Time = r.Now()
	r.report(*e)
	if e.Session == "" || r.open() == nil {
		return false
	}
	if alert := r.telemetry.Observe(*e); alert != nil {
		r.alert.Store(alert)
	}
	return true
}

// Lift resets the kill switch, for a person who has corrected the cards that
// triggered too often.
func (d *Door) Lift(p capability.Principal) error {
	r := d.cfg.Recorder
	if r == nil || r.open() == nil || r.kill == nil {
		return &capability.Error{Kind: capability.NotFound, Op: "lift", Target: "the kill switch", Fix: "set capabilities.killSwitch to warn or disable"}
	}
	return r.kill.Lift(r.Now(), p.ID)
}
