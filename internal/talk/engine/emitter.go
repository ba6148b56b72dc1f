package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ken/internal/talk/event"
	"ken/internal/untrusted"
)

// An emitter tells the events of a turn, one at a time, also those of a model
// that runs elsewhere. When the caller has left the loop, it aborts the turn.
type emitter struct {
	abort context.CancelCauseFunc // of the turn; set by [Engine.lock]

	mu      sync.Mutex
	yield   func(event.Event, error) bool
	stopped bool // the caller has left the loop, or has the last event
	inYield bool // set while yield runs; its panics are raised again
	retried bool // it was told why the provider is asked again
}

func newEmitter(yield func(event.Event, error) bool) *emitter {
	return &emitter{yield: yield, abort: func(error) {}}
}

// emit tells an event.
func (o *emitter) emit(ev event.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped {
		return
	}
	o.inYield = true
	more := o.yield(ev, nil)
	o.inYield = false
	if !more {
		o.stopped = true
		o.abort(errAborted)
	}
}

// last tells the last event. After it nothing is told.
func (o *emitter) last(ev event.Event) {
	o.emit(ev)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.stopped = true
}

func (o *emitter) notice(name, text string) { o.emit(event.Notice{Name: name, Text: text}) }

func (o *emitter) degraded(text string) { o.notice("degraded", text) }

// retrying tells that the provider is asked again later.
func (o *emitter) retrying(after time.Duration, err error) {
	text := fmt.Sprintf("the provider is asked again in %.1f s", after.Seconds())
	o.mu.Lock()
	told := o.retried
	o.retried = true
	o.mu.Unlock()
	if !told { // the cause is told once, and again at the end
		text += ": " + untrusted.Line(err.Error(), 300)
	}
	o.notice("retry", text)
}

// errPanic is the error for a panic of a model, plugin or tool.
var errPanic = errors.New("panic")

// recoverInto makes an error of a panic of a model, plugin or tool, so that it
// ends nothing but the turn. It must be deferred. A panic of the caller's yield
// is raised again.
func (o *emitter) recoverInto(what string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	if o.inYield {
		panic(p)
	}
	*err = fmt.Errorf("%s: %w: %s", what, errPanic, untrusted.Line(fmt.Sprint(p), 200))
}
