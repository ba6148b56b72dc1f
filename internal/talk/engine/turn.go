// Package engine runs conversations: it takes a person's message, lets a model
// answer it, runs the calls that the model requests, and reports events as they
// happen.
//
// Read this file first. Its function steps has the steps of a turn from top to
// bottom. Each step takes values and returns values: what a turn has come to is a
// [progress], which each step replaces. What must outlive the turn is in the
// session, written by the [transcript] before it counts.
package engine

import (
	"context"
	"errors"

	"ken/internal/talk/account"
	"ken/internal/talk/ask"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
)

// A turn is a person's message on the way to its answer. It does not change once
// its model is known; what changes is the progress and the transcript. A turn
// belongs to one goroutine. Only [Engine.runTogether] starts others, and waits
// for them.
type turn struct {
	setup                // input, terms, view, model, intent rules
	log   *transcript    // the locked session
	out   *emitter       // events, one at a time
	ask   *ask.Questions // to the person
}

// run takes one message from the session lock to its last event.
func (e *Engine) run(ctx context.Context, in event.Input, yield func(event.Event, error) bool) {
	began := e.cfg.Now()
	ctx, t, p, err := e.lock(ctx, in, newEmitter(yield)) // and 1: what exists for the model
	if err != nil {
		yield(nil, err)
		return
	}
	defer t.release()
	t, p, end, err := e.steps(ctx, t, p)
	if errors.Is(err, session.ErrBusy) { // another process was first, and nothing of this turn was written
		yield(nil, err)
		return
	}
	if err != nil {
		end = failed(ctx, t.log, err)
	}
	done := e.close(ctx, t, p, end)
	if e.cfg.Ended != nil {
		done.Account = e.accountOf(ctx, t)
		e.cfg.Ended(done, began)
	}
	t.out.last(done)
}

// steps takes a turn through its steps, which docs/architecture.md explains. It returns the
// turn with its model, what the turn came to, and how it ended.
func (e *Engine) steps(ctx context.Context, begun turn, before progress) (t turn, p progress, end ending, err error) {
	t, p = begun, before
	defer t.out.recoverInto("the turn", &err) // a panic of a model, plugin or tool
	cmd, err := e.readCommand(ctx, t)         // 2: a slash command, or a message
	if err != nil {
		return t, p, ending{event.EndFailed, err.Error()}, nil
	}
	if cmd.runs() {
		p, end, err = e.runCommand(ctx, t, p, cmd) // 7, without a model
		return t, p, end, err
	}
	t.in.Text, t.title = cmd.text, cmd.title
	if t.model, err = e.cfg.Model(ctx, t.log.head(), t.out.retrying); err != nil {
		return t, p, end, err
	}
	p.refused = refusedModes(t.log.entries(), t.model.Name)
	t.log.deliversBy(t.takes(p, model.Inline), t.takes(p, model.Search))
	if p, err = e.open(ctx, t, p); err != nil { // 3, 4, 5: find, prefix, message; nothing if the turn goes on
		return t, p, end, err
	}
	for {
		if p, end, err = e.invoke(ctx, t, p); err != nil || end.over() { // 7: the open calls; writes their results (8)
			return t, p, end, err
		}
		if p, end, err = t.checkLimits(ctx, p); err != nil || end.over() {
			return t, p, end, err
		}
		if p, err = t.fit(ctx, p); err != nil { // 5: make room
			return t, p, end, err
		}
		req := newRequest(t.setup, t.log.history(), p)
		p = p.beforeRequest(t, req)
		got, failure := t.generate(ctx, req)                                     // 6: the answer
		v := judge(ctx, t.setup, t.log.history(), t.log.number, p, got, failure) // what it comes to
		if p, end, err = e.settle(ctx, t, v); err != nil || end.over() {         // 8: write it
			return t, p, end, err
		}
	}
}

// An ending is how a turn ends. The zero value means that it goes on.
type ending struct {
	reason event.End
	why    string
}

func (e ending) over() bool { return e.reason != "" }

// errAborted is the error of a turn that was aborted.
var errAborted = errors.New("aborted")

// failed returns an error as an ending.
func failed(ctx context.Context, log *transcript, err error) ending {
	if ctx.Err() != nil && !errors.Is(err, errPanic) {
		if cause := log.lost(); cause != nil {
			return ending{event.EndFailed, cause.Error()}
		}
		return ending{event.EndAborted, "say something, or go on with the same message"}
	}
	return ending{event.EndFailed, err.Error()}
}

// close writes how the turn ended. Calls without a result get one, unless they
// wait for a person.
func (e *Engine) close(ctx context.Context, t turn, p progress, end ending) event.Done {
	done := event.Done{
		Session: t.in.Session, Turn: t.log.number, Reason: end.reason, Text: p.text,
		Usage: p.usage, Cost: p.cost, Steps: p.steps, Calls: p.calls, Why: end.why,
	}
	if t.log.closed {
		return done
	}
	var rest []session.Entry
	if end.reason != event.EndWaiting && end.reason != event.EndFailed {
		rest = e.closeOpenCalls(ctx, t, "the turn was "+string(end.reason))
	}
	if err := t.log.end(end, rest...); err != nil && done.Reason != event.EndFailed {
		done.Reason, done.Why = event.EndFailed, "the end of the turn was not written: "+err.Error()
	}
	return done
}

// accountOf returns what capabilities took of the prompt. If no model was asked
// it is empty.
func (e *Engine) accountOf(ctx context.Context, t turn) event.Account {
	if t.model.Model == nil {
		return event.Account{Tenant: t.in.Principal.Tenant}
	}
	h := t.log.history()
	return e.account.Of(ctx, account.Turn{
		Principal: t.in.Principal, Session: t.in.Session, Number: t.log.number, Model: t.model.Ref, Live: h.live, Prefix: h.prefix, View: t.view,
	})
}
