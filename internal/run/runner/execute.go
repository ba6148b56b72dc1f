package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/run/executor"
)

type outcome struct {
	res   capability.Result
	err   error
	panic string
}

// execute is the last stage: the effect, and what is made of its result.
func (r *Runner) execute(ctx context.Context, t *trip) (capability.Result, error) {
	err := r.recheck(t)
	if err == nil && ctx.Err() != nil {
		err = gaveUp(ctx) // while it was recorded, or waited
	}
	if err != nil {
		r.release(ctx, t)
		return capability.Result{}, err
	}
	t.enter(Executing)
	res, err := r.run(ctx, t)
	switch status, end := t.statusOf(res, err); {
	case end == TimedOut:
		t.executed = eventTimeout
	case status == audit.Completed:
		t.executed = eventSuccess
	default:
		t.executed = eventError
	}
	t.enter(Processing)
	if changed := res.Meta[executor.MetaChanged]; changed != "" {
		t.note("changed", "while it ran: "+changed)
	}
	res = r.finish(t, res)
	r.settle(ctx, t, res, err)
	return res, err
}

// finish makes of an executor's result what callers are given.
func (r *Runner) finish(t *trip, res capability.Result) capability.Result {
	res = r.keep(t, r.withoutSecrets(res))
	if len(t.facts.Isolation) > 0 && res.Meta[MetaIsolation] == "" {
		res.Meta[MetaIsolation] = string(t.facts.Isolation) // it said what would hold it, and nothing else since
	}
	return res
}

// recheck makes sure that what runs is what was decided on, under rules that
// still hold: the call may have waited long.
func (r *Runner) recheck(t *trip) error {
	if !sameCall(t.call, t.sealed) || !bytes.Equal(t.given, t.sealed.Arguments) {
		return &capability.Error{
			Kind: capability.Conflict, Op: "execute", Target: string(t.call.Target), Rule: "runner.digest",
			Err: errors.New("the call was changed after it was decided on"), Fix: "find the plugin that keeps a call's arguments and changes them",
		}
	}
	rules := r.rules()
	if rules == t.rules {
		return nil
	}
	t.request.Time = r.cfg.Now()
	if r.judge(t, rules); t.decision.Effect == policy.Allow {
		return nil
	}
	t.note("rules", "they changed while the call waited")
	return t.decision.Err(t.call.Target)
}

// sameCall reports whether two calls have one digest: all that the digest is
// made of is equal.
func sameCall(a, b capability.Call) bool {
	return a.Target == b.Target && a.Action == b.Action && bytes.Equal(a.Arguments, b.Arguments) &&
		a.Principal.Tenant == b.Principal.Tenant && a.Principal.ID == b.Principal.ID &&
		a.Session == b.Session && a.Intent == b.Intent && a.Mode == b.Mode && a.CapabilityHash == b.CapabilityHash && a.Code == b.Code
}

// foreignAnswers are those to the executor's own questions: what people told Ken
// belongs to no other call.
func foreignAnswers(all map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(all)
	delete(out, AnswerConsent)
	delete(out, AnswerAgain)
	return out
}

// run lets the executor work, within its time. An executor that does not
// return even then is left behind; it keeps its place at the gate.
func (r *Runner) run(ctx context.Context, t *trip) (capability.Result, error) {
	var recipe time.Duration
	if c := t.target.Capability; c.Run != nil {
		recipe = time.Duration(c.Run.TimeoutSec) * time.Second
	}
	limit := t.limits.timeout(recipe, t.facts.Timeout)
	inner, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	live, call := r.newLive(t.call.Live), t.call
	call.Answers = foreignAnswers(call.Answers)
	if call.Live != nil {
		call.Live = live.as()
	}
	done, gone := make(chan outcome, 1), make(chan struct{})
	go func() {
		defer close(gone)
		var o outcome
		o.res, o.err = guard("execute", func(s string) { o.panic = s }, func() (capability.Result, error) {
			return t.executor.Invoke(inner, call)
		})
		done <- o
	}()
	var o outcome
	select {
	case o = <-done:
	case <-inner.Done():
		o = r.last(inner, t, done, gone)
	}
	live.close()
	if o.panic != "" {
		t.note("panic", o.panic)
	}
	if why := stopReason(inner); why != nil && o.err == nil && o.res.Failed {
		// The executor knows that the program was ended, but not why.
		text := "The call was stopped: " + why.Error()
		if errors.Is(why, errClosing) {
			text = "The call was cancelled because Ken is stopping."
		}
		t.note("stopped", why.Error())
		o.res.Parts = append(o.res.Parts, capability.Part{Text: text})
	}
	return o.res, ended(inner, t.call.Target, limit, knobOf(limit, recipe, t.facts.Timeout), o)
}

// stopReason returns the reason that was passed to [Runner.Stop], or nil if a
// limit or the caller ended the call, or it was not stopped.
func stopReason(ctx context.Context) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, context.Canceled) || errors.Is(cause, context.DeadlineExceeded) || errors.Is(cause, errTimeout) {
		return nil
	}
	return cause
}

// knobOf names what set a limit.
func knobOf(limit, recipe, asked time.Duration) string {
	switch limit {
	case asked:
		return "the time that the call asks for"
	case recipe:
		return "timeout_sec of its manifest"
	}
	return "limits.timeout"
}

// last waits for an executor whose time is over.
func (r *Runner) last(inner context.Context, t *trip, done <-chan outcome, gone <-chan struct{}) outcome {
	grace := time.NewTimer(r.limits.Grace)
	defer grace.Stop()
	select {
	case o := <-done:
		return o
	case <-grace.C:
		t.abandon = gone
		t.note("abandoned", "the executor did not return; it keeps its place until it does")
		return outcome{err: context.Cause(inner)}
	}
}

// ended returns the error of an execution, including that a limit or the caller
// ended it.
func ended(inner context.Context, target capability.ID, limit time.Duration, knob string, o outcome) error {
	cause := context.Cause(inner)
	if cause == nil || o.err == nil && !o.res.Failed {
		return o.err // what came to its end in time stays
	}
	if nothingHappened(o.err) {
		return o.err
	}
	if errors.Is(cause, errTimeout) || errors.Is(cause, context.DeadlineExceeded) {
		return &capability.Error{
			Kind: capability.Timeout, Op: "execute", Target: string(target), Rule: knob,
			Err: fmt.Errorf("stopped after %v", limit), Fix: "ask for less at once, or raise " + knob,
		}
	}
	if o.err == nil {
		return nil // a failure of its own, which it had time to report
	}
	return asError(gaveUp(inner), target)
}

var errTimeout = errors.New("the call took longer than limits.timeout")

// liveWriter takes the secrets that Ken knows out of what a call writes while it
// runs, and stops writing when the call has ended.
type liveWriter struct {
	runner   *Runner
	mu       sync.Mutex
	w        *audit.Stream
	stderr   *liveWriter         // nil: standard error goes the same way
	reporter capability.Reporter // nil: progress is not asked for
	closed   bool
}

func (r *Runner) newLive(w io.Writer) *liveWriter {
	l := &liveWriter{runner: r, w: r.cfg.Redactor.Stream(w)}
	if s, ok := w.(capability.Streams); ok {
		l.stderr = &liveWriter{w: r.cfg.Redactor.Stream(s.Stderr())}
	}
	l.reporter, _ = w.(capability.Reporter)
	return l
}

// as returns the writer with what the caller's has besides.
func (l *liveWriter) as() io.Writer {
	switch {
	case l.stderr != nil && l.reporter != nil:
		return struct {
			liveStreams
			liveReporter
		}{liveStreams{l}, liveReporter{l}}
	case l.stderr != nil:
		return liveStreams{l}
	case l.reporter != nil:
		return struct {
			*liveWriter
			liveReporter
		}{l, liveReporter{l}}
	}
	return l
}

// liveStreams is a liveWriter that has standard error apart.
type liveStreams struct{ *liveWriter }

// Stderr makes it a capability.Streams.
func (l liveStreams) Stderr() io.Writer { return l.stderr }

// liveReporter reports until the call has ended, one thing at a time.
type liveReporter struct{ live *liveWriter }

func (r liveReporter) Progress(done, total float64, message string) {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	if !r.live.closed {
		r.live.reporter.Progress(done, total, r.live.runner.cfg.Redactor.Held(message))
	}
}

func (r liveReporter) Note(level, logger string, data json.RawMessage) {
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	if !r.live.closed {
		if clean, same := r.live.runner.hideBytes(data); !same {
			if data = json.RawMessage(clean); !json.Valid(data) {
				data = json.RawMessage(`"a secret was taken out"`)
			}
		}
		r.live.reporter.Note(level, logger, data)
	}
}

func (l *liveWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, io.ErrClosedPipe
	}
	return l.w.Write(p)
}

func (l *liveWriter) close() {
	if l.stderr != nil {
		l.stderr.close()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		_ = l.w.Close() // the reader has gone; the result has it all
	}
	l.closed = true
}
