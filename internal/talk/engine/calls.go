package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/internal/talk/toolcall"
	"ken/internal/untrusted"
	"ken/llm"
)

// A pendingCall is one call of the model on its way to its one result.
type pendingCall struct {
	asked  *llm.ToolCall
	number int             // in the turn, from 1
	call   capability.Call // what is really called; no target: one of Ken's own tools
	tool   string          // of Ken's own: its name
	args   json.RawMessage // of it
	shown  event.Call
	reads  bool // it changes nothing
	note   string
	rounds int // questions that it asked

	outcome
}

// An outcome is what a call came to so far.
type outcome struct {
	took    time.Duration
	res     capability.Result
	err     error
	mistake bool            // of the model
	hits    []capability.ID // what a search found
	whole   bool            // all of a capability was asked for
	notes   []session.Entry
	over    bool   // it has its result
	waits   bool   // it waits for a person, and none can be asked
	why     string // it waits
	ends    bool   // the turn is over with it
}

// invoke makes the calls of the last answer that have no result, in its order,
// and writes each result as soon as it is there. Neighbours that only read run
// at once.
func (e *Engine) invoke(ctx context.Context, t turn, p progress) (progress, ending, error) {
	open := t.openCalls()
	if open.entry.Turn == t.log.number {
		p.calls = open.before + len(open.calls)
	}
	calls, above := open.split(t)
	if len(calls) > 0 {
		if err := t.resume(); err != nil {
			return p, ending{}, err
		}
	}
	for at := 0; at < len(calls); {
		if err := ctx.Err(); err != nil {
			return p, ending{}, err
		}
		n := e.prepare(t, p, calls[at:], open.whole())
		group := calls[at : at+n]
		p = e.runGroup(ctx, t, p, group)
		var end ending
		var err error
		if p, end, err = e.writeResults(ctx, t, p, group, slices.Concat(calls[at+n:], above)); err != nil || end.over() {
			return p, end, err
		}
		at += n
	}
	return e.refuseAbove(ctx, t, p, above)
}

// refuseAbove answers the calls above the limit all at once, whatever their
// number.
func (e *Engine) refuseAbove(ctx context.Context, t turn, p progress, above []*pendingCall) (progress, ending, error) {
	if len(above) == 0 {
		return p, ending{}, nil
	}
	results := session.Entry{Kind: session.Results}
	for _, j := range above {
		results.Blocks = append(results.Blocks, resultBlock(j.asked, e.resultBlocks(ctx, t, j, nil), true))
	}
	p.mistakes++
	t.out.notice("limit", fmt.Sprintf("%d calls of the answer were not made: one may have %d (chat.calls)", len(above), t.terms.Limits.Calls))
	return p, ending{}, t.log.append(results)
}

// split returns the calls of the turn that have no result, and those of them that
// are above the limit and have their refusal. Calls of an answer that was taken
// back are none.
func (a lastAnswer) split(t turn) (calls, above []*pendingCall) {
	if a.entry.Turn != t.log.number {
		return nil, nil
	}
	for i, c := range a.calls {
		if a.has[c.ID] {
			continue
		}
		j := &pendingCall{asked: c, number: a.before + i + 1}
		// The first open call of an answer of an earlier run may have begun, with
		// a limit that was higher then. It is made, which gives what is kept of it.
		began := t.log.answer != a.entry.Seq && len(calls)+len(above) == 0
		if over(i+1, t.terms.Limits.Calls) && !began {
			j.shown = event.Call{ID: c.ID, Target: capability.ID(c.Name), Arguments: c.Arguments}
			j.refuse(capability.Invalid, c.Name, fmt.Errorf("the answer has %d calls, the limit is %d (chat.calls)", len(a.calls), t.terms.Limits.Calls), "make fewer calls at once")
			above = append(above, j)
			continue
		}
		calls = append(calls, j)
	}
	return calls, above
}

// prepare reads the calls that may be made next: one, or neighbours that only
// read. It returns how many. Whole reports whether their answer came to its own
// end.
func (e *Engine) prepare(t turn, p progress, calls []*pendingCall, whole bool) int {
	limit := max(t.terms.Limits.Parallel, 1)
	for i, j := range calls[:min(len(calls), limit)] {
		if j.shown.ID == "" {
			e.resolve(t, p, j, whole)
		}
		if !j.reads || j.over {
			return max(i, 1)
		}
	}
	return min(len(calls), limit)
}

// resolve finds out what a call is about.
func (e *Engine) resolve(t turn, p progress, j *pendingCall, whole bool) {
	name := j.asked.Name
	j.shown = event.Call{ID: j.asked.ID, Target: capability.ID(name), Arguments: j.asked.Arguments, Intent: p.intents.active}
	call, err := toolcall.Read(j.asked, whole, t.log.history().known.Resolve)
	j.note = call.Note
	if call.Repaired != "" {
		t.out.notice("repair", untrusted.Line(name+": "+call.Repaired, 300))
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
		Target: call.Target, Action: call.Action, Arguments: call.Arguments, Session: t.in.Session, Intent: p.intents.active, Mode: t.in.Mode,
		Key: callKey(t.in.Session, t.log.number, j.number),
	}
	j.shown.Target, j.shown.Action, j.shown.Arguments = j.call.Target, j.call.Action, j.call.Arguments
	entry, err := t.view.Lookup(string(j.call.Target))
	if err != nil {
		return // the door says so, and records who tried
	}
	j.call.Target, j.shown.Target = entry.ID, entry.ID
	j.reads = e.onlyReads(entry)
}

// onlyReads reports whether calls of a capability change nothing.
func (e *Engine) onlyReads(entry *door.Entry) bool {
	return e.cfg.Reads != nil && e.cfg.Reads(entry) || entry.Name == toolRead
}

// isOwn marks a call of one of Ken's own tools, which is not the door's.
func (j *pendingCall) isOwn(call toolcall.Call) {
	j.tool, j.args = call.Own, call.Arguments
	j.shown.Target, j.shown.Arguments = capability.ID(call.Own), call.Arguments
	switch call.Own {
	case toolDiscover, toolList, toolDescribe:
		j.reads = true
	}
}

// readable returns the arguments of describe_capability with the id for the name
// under which a capability was shown. What cannot be read is passed on.
func readable(known deliver.Live, args json.RawMessage) (json.RawMessage, bool) {
	var in map[string]json.RawMessage
	var name string
	if json.Unmarshal(args, &in) != nil || json.Unmarshal(in["id"], &name) != nil {
		return args, false
	}
	var from int
	_ = json.Unmarshal(in["from"], &from) // zero then
	part := strings.Trim(string(in["part"]), `"`)
	whole := from == 0 && (part == "" || part == "all" || part == "schema")
	o, ok := known.Resolve(name)
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

// refuse sets the result of a call to an error of Ken's without making it.
func (j *pendingCall) refuse(kind capability.ErrorKind, target string, err error, fix string) {
	j.fail(&capability.Error{Kind: kind, Op: "call", Target: untrusted.Line(target, 80), Err: err, Fix: fix})
}

// fail sets the result of a call to err without making it.
func (j *pendingCall) fail(err error) {
	j.err, j.over, j.mistake = err, true, capability.KindOf(err) == capability.Invalid
	j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: err.Error()}}}
}
