package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
)

// A Running is a call that has not ended.
type Running struct {
	Call    uint64        `json:"call"`
	Target  capability.ID `json:"target"`
	Session string        `json:"session,omitempty"`

	Principal capability.Principal `json:"principal"`
	Mode      string               `json:"mode,omitempty"`
	Origin    capability.Caller    `json:"origin,omitempty"`
	Surface   string               `json:"surface,omitempty"`

	State State     `json:"state"`
	Began time.Time `json:"began"`
}

// trip is one call on its way. One goroutine has it at a time, but for asked,
// state and stop, which anybody may use once it is live.
type trip struct {
	runner    *Runner
	id        uint64
	call      capability.Call // from the plugins on, no other part has its bytes
	malformed error           // it never became a call
	given     json.RawMessage // the bytes that call's arguments are a copy of
	sealed    capability.Call // as it was decided on, in bytes that are not handed out
	began     time.Time
	limits    Limits
	asked     Running // as it came in
	state     atomic.Uint32
	stop      context.CancelCauseFunc

	target   Resolved
	runs     string // the name by which the executor was chosen
	executor Executor
	facts    Facts

	rules    *policy.Rules
	request  policy.Request
	decision policy.Decision
	decided  bool
	ticket   string
	executed string // the event that ended the execution
	args     int    // how many arguments were given

	line       string // the command, redacted
	argsDigest string

	effect   *claim // nil: nothing to keep
	effectID string
	again    bool // the result is an earlier one
	lost     bool // whether it had its effect is not known
	abandon  <-chan struct{}
	notes    map[string]string
	bytes    int64
}

// enter changes the state. A change that is none of the listed ones is not
// made: a stage that asks for one is wrong.
func (t *trip) enter(s State) {
	from := State(t.state.Load())
	event, ok := follows(from, s, t.executed)
	if !ok {
		t.note("state", fmt.Sprintf("%s cannot follow %s", s, from))
		return
	}
	t.state.Store(uint32(s))
	if f := t.runner.cfg.Observe; f != nil {
		f(Transition{t.id, t.call.Target, s, event, t.runner.cfg.Now()})
	}
}

// note adds to the record.
func (t *trip) note(name, text string) {
	if t.notes == nil {
		t.notes = map[string]string{}
	}
	t.notes[name] = text
}

func (t *trip) extension() string {
	if t.target.Extension != "" || t.target.Capability == nil {
		return t.target.Extension
	}
	return t.target.Capability.Origin.Source
}

// Running lists the calls that have not ended, oldest first.
func (r *Runner) Running() []Running {
	r.mu.Lock()
	out := r.running()
	r.mu.Unlock()
	slices.SortFunc(out, older)
	return out
}

// running is called with r.mu held.
func (r *Runner) running() []Running {
	out := make([]Running, 0, len(r.live))
	for _, t := range r.live {
		out = append(out, t.seen())
	}
	return out
}

func older(a, b Running) int { return cmp.Compare(a.Call, b.Call) }

func (t *trip) seen() Running {
	out := t.asked
	out.State = State(t.state.Load())
	return out
}

// Stop ends the calls that choose picks, as if their callers had given up, and
// says how many. The reason goes into their results and records. A person who
// revokes a tool stops what runs of it with this.
func (r *Runner) Stop(reason error, choose func(Running) bool) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, t := range r.live {
		if choose(t.seen()) {
			t.stop(reason)
			n++
		}
	}
	return n
}
