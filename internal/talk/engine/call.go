package engine

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/talk/toolcall"
	"ken/internal/untrusted"
	"ken/llm"
)

// A job is one call of the model's on its way to its one result.
type job struct {
	asked  *llm.ToolCall
	number int             // in the turn, from 1
	call   capability.Call // what is really called; no target: one of Ken's own tools
	tool   string          // of Ken's own: its name
	args   json.RawMessage // of it
	shown  event.Call
	reads  bool // it changes nothing
	note   string

	took    time.Duration
	res     capability.Result
	err     error
	mistake bool            // of the model's
	hits    []capability.ID // what a search found
	whole   bool            // all of a capability was asked for
	within  []llm.Block     // that stand in the result beside what was said
	beside  []llm.Block     // that stand after the results
	offers  []session.Offer // that these are
	notes   []session.Entry
	over    bool   // it has its result
	waits   bool   // it waits for a person, and nobody is there
	why     string // it waits
	ends    bool   // the turn is over with it
	rounds  int    // questions that it asked
}

// carryOut makes the calls of the last answer that have no result, in its
// order, and writes down each result as soon as it is there. Neighbours that
// only read run at once.
func (t *turn) carryOut() (ending, bool, error) {
	jobs, above := t.jobs()
	if len(jobs) > 0 {
		if err := t.resume(); err != nil {
			return ending{}, true, err
		}
	}
	for at := 0; at < len(jobs); {
		if err := t.ctx.Err(); err != nil {
			return ending{}, true, err
		}
		n := t.prepare(jobs[at:])
		group := jobs[at : at+n]
		t.make(group)
		if end, over, err := t.settle(group, slices.Concat(jobs[at+n:], above)); over || err != nil {
			return end, true, err
		}
		at += n
	}
	return ending{}, false, t.tooMany(above)
}

// tooMany answers the calls above the limit all at once, whatever their number.
func (t *turn) tooMany(above []*job) error {
	if len(above) == 0 {
		return nil
	}
	e := session.Entry{Kind: session.Results}
	for _, j := range above {
		e.Blocks = append(e.Blocks, resultBlock(j.asked, t.told(j), true))
	}
	t.mistakes++
	t.notice("limit", fmt.Sprintf("%d calls of the answer were not made: one may have %d (chat.calls)", len(above), t.terms.Limits.Calls))
	return t.append(e)
}

// jobs returns the calls of the turn that have no result, and those of them that
// are above the limit and have their refusal. Calls of an answer that was taken
// back are none.
func (t *turn) jobs() (jobs, above []*job) {
	a := t.last()
	if a.entry.Turn != t.number {
		return nil, nil
	}
	t.calls, t.whole = a.before+len(a.calls), a.whole()
	for i, c := range a.calls {
		if a.has[c.ID] {
			continue
		}
		j := &job{asked: c, number: a.before + i + 1}
		// The first open call of an answer of an earlier run may have begun, with
		// a limit that was higher then. It is made, which gives what is kept of it.
		began := t.mine != a.entry.Seq && len(jobs)+len(above) == 0
		if over(i+1, t.terms.Limits.Calls) && !began {
			j.shown = event.Call{ID: c.ID, Target: capability.ID(c.Name), Arguments: c.Arguments}
			j.refuse(capability.Invalid, c.Name, fmt.Errorf("the answer has %d calls, the limit is %d (chat.calls)", len(a.calls), t.terms.Limits.Calls), "make fewer calls at once")
			above = append(above, j)
			continue
		}
		jobs = append(jobs, j)
	}
	return jobs, above
}

// prepare reads the calls that may be made next: one, or neighbours that only
// read. It gives how many.
func (t *turn) prepare(jobs []*job) int {
	limit := max(t.terms.Limits.Parallel, 1)
	for i, j := range jobs[:min(len(jobs), limit)] {
		if j.shown.ID == "" {
			t.resolve(j)
		}
		if !j.reads || j.over {
			return max(i, 1)
		}
	}
	return min(len(jobs), limit)
}

// resolve finds out what a call is about.
func (t *turn) resolve(j *job) {
	name := j.asked.Name
	j.shown = event.Call{ID: j.asked.ID, Target: capability.ID(name), Arguments: j.asked.Arguments, Intent: t.intents.active}
	call, err := toolcall.Read(j.asked, t.whole, t.known.Resolve)
	j.note = call.Note
	if call.Repaired != "" {
		t.notice("repair", untrusted.Line(name+": "+call.Repaired, 300))
	}
	if err != nil {
		j.fail(err)
		return
	}
	if call.Own != "" {
		j.isOwn(call)
		return
	}
	j.call = capability.Call{
		Target: call.Target, Action: call.Action, Arguments: call.Arguments, Session: t.in.Session, Intent: t.intents.active, Mode: t.in.Mode,
		Key: callKey(t.in.Session, t.number, j.number),
	}
	j.shown.Target, j.shown.Action, j.shown.Arguments = j.call.Target, j.call.Action, j.call.Arguments
	e, err := t.view.Lookup(string(j.call.Target))
	if err != nil {
		return // the door says so, and records who tried
	}
	j.call.Target, j.shown.Target = e.ID, e.ID
	j.reads = t.e.cfg.Reads != nil && t.e.cfg.Reads(e) || e.Name == toolRead
}

// isOwn marks a call of one of Ken's own tools, which is not the door's.
func (j *job) isOwn(call toolcall.Call) {
	j.tool, j.args = call.Own, call.Arguments
	j.shown.Target, j.shown.Arguments = capability.ID(call.Own), call.Arguments
	switch call.Own {
	case toolDiscover, toolList, toolDescribe:
		j.reads = true
	}
}

// readable returns the arguments of describe_capability with the id for the name
// under which a capability was shown. What cannot be read is passed on.
func (t *turn) readable(args json.RawMessage) (json.RawMessage, bool) {
	var in map[string]json.RawMessage
	var name string
	if json.Unmarshal(args, &in) != nil || json.Unmarshal(in["id"], &name) != nil {
		return args, false
	}
	var from int
	_ = json.Unmarshal(in["from"], &from) // zero then
	part := strings.Trim(string(in["part"]), `"`)
	whole := from == 0 && (part == "" || part == "all" || part == "schema")
	o, ok := t.known.Resolve(name)
	if !ok {
		return args, whole
	}
	in["id"], _ = json.Marshal(o.ID) // a text always marshals
	out, err := json.Marshal(in)
	if err != nil {
		return args, whole
	}
	return out, whole
}

// refuse gives a call its result without making it.
func (j *job) refuse(kind capability.ErrorKind, target string, err error, fix string) {
	j.fail(&capability.Error{Kind: kind, Op: "call", Target: untrusted.Line(target, 80), Err: err, Fix: fix})
}

// fail gives a call an error for its result without making it.
func (j *job) fail(err error) {
	j.err, j.over, j.mistake = err, true, capability.KindOf(err) == capability.Invalid
	j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: err.Error()}}}
}
