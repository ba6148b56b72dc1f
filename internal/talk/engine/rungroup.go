package engine

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/untrusted"
)

// runGroup makes a group of calls: those at once that can be, and then, one after
// the other, those that a person must answer something for first.
func (e *Engine) runGroup(ctx context.Context, t turn, p progress, group []*pendingCall) progress {
	for _, j := range group {
		if !j.over {
			p = checkRepeats(t.terms.Limits, p, j)
			askedBefore(t.ask, j)
		}
		t.out.emit(event.Started{Call: j.shown})
		if j.over {
			t.finished(j)
		}
	}
	p = e.runTogether(ctx, t, p, group)
	for _, j := range group {
		for !j.over && !j.waits && ctx.Err() == nil {
			if e.question(ctx, t, j) {
				p = e.runTogether(ctx, t, p, []*pendingCall{j})
			}
		}
		if j.waits {
			return p // those after it are made when it is
		}
		if !j.over {
			j.stopped(ctx)
			t.finished(j)
		}
	}
	return p
}

// runTogether makes calls at once and waits for all of them. What they write on
// the way is told as it comes.
func (e *Engine) runTogether(ctx context.Context, t turn, p progress, group []*pendingCall) progress {
	said, done := make(chan event.Event), make(chan *pendingCall)
	s, h, delivery := t.setup, t.log.history(), p.delivery
	running := 0
	defer func() { // a panic here leaves none of them behind
		for running > 0 {
			t.out.abort(errAborted)
			select {
			case <-said:
			case <-done:
				running--
			}
		}
	}()
	for _, j := range group {
		switch {
		case j.over || ctx.Err() != nil:
		case j.tool != "" && !j.reads:
			p = e.ownTool(ctx, t, p, j)
			if j.over {
				t.finished(j)
			}
		default:
			running++
			t.log.started[j.number] = true
			go func() {
				defer func() { done <- j }()
				defer j.broke()
				e.perform(ctx, s, h, delivery, j, said)
			}()
		}
	}
	for running > 0 {
		select {
		case ev := <-said:
			t.out.emit(ev)
		case j := <-done:
			running--
			if j.over {
				t.finished(j)
			}
		}
	}
	return p
}

// perform makes one call once, and decides whether that was its end. It is the
// one thing in a turn that runs beside it, and changes nothing but its call.
func (e *Engine) perform(ctx context.Context, s setup, h history, delivery model.DeliveryMode, j *pendingCall, said chan<- event.Event) {
	if j.tool != "" {
		e.lookUp(ctx, s, h, delivery, j)
		return
	}
	live := &output{id: j.asked.ID, said: said}
	call := j.call
	call.Live = live
	view := s.view
	if call.Origin == capability.ByPerson {
		view = e.viewOf(s, call.Origin)
	}
	began := e.cfg.Now()
	res, err := e.cfg.Door.Invoke(ctx, view, call)
	j.took += e.cfg.Now().Sub(began)
	live.flush()
	j.res, j.err = res, err
	if err != nil && len(res.Parts) == 0 {
		j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: err.Error()}}}
	}
	if err != nil && asks(err) && ctx.Err() == nil {
		return
	}
	j.over = true
	switch capability.KindOf(err) {
	case capability.NotFound:
		j.unknown(s.view, h.prefix)
	case capability.Invalid:
		j.mistake = true
		e.explain(ctx, s.view, j)
	}
}

// broke makes a result of a panic. It must be deferred.
func (j *pendingCall) broke() {
	if p := recover(); p != nil {
		j.over, j.mistake = true, false
		j.err = fmt.Errorf("%w: %s", errPanic, untrusted.Line(fmt.Sprint(p), 200))
		j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: "It is not known whether the call had its effect: " + j.err.Error()}}}
	}
}

// asks reports whether a call failed because a person must answer first.
func asks(err error) bool { return whatOf(err) != "" }

// whatOf returns what must be answered first, or "" if nothing must.
func whatOf(err error) event.Question {
	if _, ok := errors.AsType[*capability.Inquiry](err); ok {
		return event.Inquiry
	}
	q, ok := errors.AsType[*door.Question](err)
	switch {
	case !ok:
		return ""
	case q.Name == door.AnswerAgain:
		return event.Again
	}
	return event.Consent
}

// stopped is the result of a call that was not made.
func (j *pendingCall) stopped(ctx context.Context) {
	j.over = true
	if j.err == nil {
		j.err = context.Cause(ctx)
	}
	text := "The call was not made: the turn was aborted."
	switch whatOf(j.err) {
	case event.Again:
		text = notKnown
	case event.Inquiry:
		text = "The call asked a person something, and the turn was aborted. It is not known whether it did anything before it asked; look before you make it again."
	case "":
		if len(j.res.Parts) > 0 {
			return
		}
	}
	j.res = capability.Result{Failed: true, Parts: []capability.Part{{Text: text}}}
}

// finished emits the result of a call.
func (t turn) finished(j *pendingCall) {
	f := event.Finished{ID: j.asked.ID, Target: j.shown.Target, Result: j.res, Took: j.took}
	if j.err != nil {
		f.Error, f.Kind = j.err.Error(), capability.KindOf(j.err).String()
	}
	t.out.emit(f)
}

// output passes on what a running call writes, in whole characters.
type output struct {
	id   string
	said chan<- event.Event
	rest []byte
}

func (o *output) Write(p []byte) (int, error) {
	b := append(o.rest, p...)
	end := len(b)
	for back := 1; back <= min(utf8.UTFMax-1, len(b)); back++ {
		if c := b[len(b)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-back:]) {
				end = len(b) - back
			}
			break
		}
	}
	if end > 0 {
		o.said <- event.Output{ID: o.id, Text: string(b[:end])}
	}
	o.rest = append(o.rest[:0:0], b[end:]...)
	return len(p), nil
}

func (o *output) flush() {
	if len(o.rest) > 0 {
		o.said <- event.Output{ID: o.id, Text: string(o.rest)}
		o.rest = nil
	}
}
