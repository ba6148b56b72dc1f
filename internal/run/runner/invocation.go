package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
)

// An invocation is one call on its way through the stages. Each stage sets what
// it finds out, and those after it read it; what a stage does not say here it does
// not keep. One goroutine has an invocation at a time, but for live, which anybody
// may use.
type invocation struct {
	runner *Runner
	live   liveCall
	began  time.Time
	limits Limits

	call   capability.Call // from the plugins on, no other part has its bytes
	given  json.RawMessage // the bytes that call's arguments are a copy of
	target target          // set by resolve, as far as it comes
	args   int             // how many arguments were given; set by validate
	plan   plan            // set by decide; consent and execute may decide again
	ticket string          // of the question that consent asked

	// Set by consent or, at the latest, before the call is queued.
	effectID string
	effect   *claim
	alone    bool // the grant is used before the effect is claimed, not together with that

	intent intent    // set before the call is queued
	end    execution // set by execute
	notes  notes     // for the record
}

// A target is what a call is about, and who carries it out.
type target struct {
	Resolved
	runs     string // the name by which the executor was chosen
	executor Executor
}

// extension returns the package that queues and records go by.
func (t *target) extension() string {
	if t.Extension != "" || t.Capability == nil {
		return t.Extension
	}
	return t.Capability.Origin.Source
}

// A plan is what a call comes to, and what the rules say about it.
type plan struct {
	facts    Facts
	sealed   capability.Call // as it was decided on, in bytes that are not handed out
	request  policy.Request
	rules    *policy.Rules // that decided
	decision policy.Decision
	decided  bool
}

// decide asks the rules about the request.
func (p *plan) decide(rules *policy.Rules) {
	p.rules = rules
	p.decision, p.decided = rules.Decide(&p.request), true
}

// changes reports whether the call must be assumed to change something, so that
// it must not happen twice.
func (p *plan) changes() bool {
	c := p.request.Capability
	return !c.ReadOnly && c.Class != policy.Meta && c.Class != policy.Read
}

// An intent is what the record says of a call that is about to run.
type intent struct {
	line       string // the command, redacted
	argsDigest string
}

// An execution is how the executor's part ended.
type execution struct {
	event     string          // that ended it; see [Transition]
	bytes     int64           // of its result, all parts
	abandoned <-chan struct{} // closed when the executor returns that the call was ended without; nil: it returned
}

// notes are words of the stages for the record, by name.
type notes map[string]string

func (n *notes) add(name, text string) {
	if *n == nil {
		*n = notes{}
	}
	(*n)[name] = text
}

// panicked notes what a panic said, for [guard].
func (n *notes) panicked(text string) { n.add("panic", text) }

// enter changes the state. A change that is none of the listed ones is not
// made: a stage that asks for one is wrong.
func (inv *invocation) enter(s State) {
	from := inv.live.at()
	event, ok := follows(from, s, inv.end.event)
	if !ok {
		inv.notes.add("state", fmt.Sprintf("the state %s cannot follow %s", s, from))
		return
	}
	inv.live.state.Store(uint32(s))
	if l, ok := inv.call.Live.(Stager); ok {
		l.Stage(s.Progress())
	}
	if f := inv.runner.cfg.Observe; f != nil {
		f(Transition{inv.live.asked.Call, inv.call.Target, s, event, inv.runner.cfg.Now()})
	}
}

// identify names the effect of the call, once.
func (inv *invocation) identify(ctx context.Context) (err error) {
	if inv.effectID == "" {
		inv.effectID, inv.effect, err = inv.runner.effects.identify(ctx, inv)
	}
	return err
}

// statusOf returns how a call ended, for the record and as a state.
func (inv *invocation) statusOf(res capability.Result, err error) (audit.Status, State) {
	if inv.effect.isLost() {
		return audit.Lost, Failed
	}
	return statusOf(res, err)
}
