// Package engine runs conversations: it takes a person's message, lets a model
// answer it, runs the calls that the model requests, and reports events as they
// happen.
//
// Read this file first. A turn has everything that it needs in one value, which
// nobody else can see; what must outlive it is in the session, written before
// it counts.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ken/internal/door"
	"ken/internal/talk/account"
	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/llm"
)

// A turn is a person's message on the way to its answer. It belongs to one
// goroutine; only [turn.together] starts others, and waits for them.
type turn struct {
	e     *Engine
	in    event.Input
	terms Terms // as they were when it began

	// Events are told one at a time, also by a model that runs elsewhere.
	telling sync.Mutex
	yield   func(event.Event, error) bool
	gone    bool // whoever listened has left, or has heard the last of it
	heard   bool // whoever listens has the word; a panic now is theirs

	ctx   context.Context // ends with the caller's, the lock's, and when nobody listens
	abort context.CancelCauseFunc

	log    *session.Turn
	head   session.Head
	number int // of this turn
	view   door.View
	model  Model

	// What is live of the session, as it was last read, and what follows from
	// it and from the model. See [turn.read].
	live   []session.Entry
	prefix session.Entry
	known  deliver.Live
	rung   model.Rung

	selection door.Found // what was found for the message
	opened    bool       // there is something to go on with
	closed    bool       // its end is written
	typed     string     // the slash command that goes on

	intents intents
	tickets map[int]string         // that calls of this turn waited for, by number
	replies map[string]event.Reply // that came while nobody waited

	// What is known of the calls of the last answer, by their numbers.
	mine      int          // the entry of the answer, where it is of this run
	started   map[int]bool // in this run
	untouched map[int]bool // not begun when this run began

	refused map[model.Rung]bool // by the provider
	sent    llm.Request         // the last one

	tally
	title string // of a session that begins, where it is not what is said
}

// A tally is what a turn has come to so far.
type tally struct {
	steps, calls int
	usage        llm.Usage
	cost         float64
	text         string // the answer

	mistakes  int    // of the model's, one after another
	same      string // the last call
	repeats   int    // of it
	overflows int    // that the window was too small
	looping   bool   // the last call was one repetition too many
	retried   bool   // this step was tried before
	whole     bool   // the last answer came to its own end
	allowed   Limits // what a person has agreed to
}

// run is a turn from the lock to the last event.
func (e *Engine) run(ctx context.Context, in event.Input, yield func(event.Event, error) bool) {
	began := e.cfg.Now()
	t, err := e.begin(ctx, in, yield)
	if err != nil {
		yield(nil, err)
		return
	}
	defer t.release()
	end, err := t.play()
	if errors.Is(err, session.ErrBusy) { // somebody was quicker, and nothing of this turn was written
		yield(nil, err)
		return
	}
	if err != nil {
		end = t.failed(err)
	}
	done := t.close(end)
	if e.cfg.Ended != nil {
		done.Account = t.account()
		e.cfg.Ended(done, began)
	}
	t.emit(done)
	t.telling.Lock()
	defer t.telling.Unlock()
	t.gone = true
}

// account returns what capabilities took of the prompt. Without a model nobody
// was asked, and it is empty.
func (t *turn) account() event.Account {
	if t.model.Model == nil {
		return event.Account{Tenant: t.in.Principal.Tenant}
	}
	return t.e.account.Of(t.ctx, account.Turn{
		Principal: t.in.Principal, Session: t.in.Session, Number: t.number, Model: t.model.Ref, Live: t.live, Prefix: t.prefix, View: t.view,
	})
}

// errBroke is that something which was asked in a turn panicked.
var errBroke = errors.New("it broke")

// guard makes an error of a panic of whatever was asked, so that a plugin or a
// model takes nothing with it but the turn. It must be deferred. A panic of
// whoever listens is passed on.
func (t *turn) guard(what string, err *error) {
	p := recover()
	if p == nil {
		return
	}
	if t.heard {
		panic(p)
	}
	*err = fmt.Errorf("%s: %w: %s", what, errBroke, untrusted.Line(fmt.Sprint(p), 200))
}

// An ending is how a turn ends.
type ending struct {
	reason event.End
	why    string
}

// play takes the turn to its end.
func (t *turn) play() (end ending, err error) {
	defer t.guard("the turn", &err)
	cmd, is, err := t.command()
	if err != nil || is {
		return cmd, err
	}
	if t.model, err = t.e.cfg.Model(t.ctx, t.head, t.retrying); err != nil {
		return ending{}, err
	}
	t.recallRefusals()
	if err := t.open(); err != nil {
		return ending{}, err
	}
	for {
		if end, over, err := t.carryOut(); over || err != nil {
			return end, err
		}
		if end, over, err := t.mayGoOn(); over || err != nil {
			return end, err
		}
		if end, over, err := t.ask(); over || err != nil {
			return end, err
		}
	}
}

// errAborted is why a turn ended that nobody wanted to go on.
var errAborted = errors.New("aborted")

// failed returns an error as an ending.
func (t *turn) failed(err error) ending {
	if t.ctx.Err() != nil && !errors.Is(err, errBroke) {
		if cause := context.Cause(t.log.Context()); errors.Is(cause, session.ErrLost) {
			return ending{event.EndFailed, cause.Error()}
		}
		return ending{event.EndAborted, "say something, or go on with the same message"}
	}
	return ending{event.EndFailed, err.Error()}
}

// emit tells an event. When nobody listens any more the turn is aborted.
func (t *turn) emit(e event.Event) {
	t.telling.Lock()
	defer t.telling.Unlock()
	if t.gone {
		return
	}
	t.heard = true
	more := t.yield(e, nil)
	t.heard = false
	if !more {
		t.gone = true
		t.abort(errAborted)
	}
}

// retrying tells that the provider is asked again later.
func (t *turn) retrying(after time.Duration, err error) {
	t.notice("retry", fmt.Sprintf("the provider is asked again in %.1f s: %s", after.Seconds(), untrusted.Line(err.Error(), 300)))
}

func (t *turn) notice(name, text string) { t.emit(event.Notice{Name: name, Text: text}) }

// writing is how long the session may take to be written once nobody waits.
const writing = 10 * time.Second

// late returns a context for what must be written although the turn is aborted.
func (t *turn) late() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(t.ctx), writing)
}

// append writes entries of this turn.
func (t *turn) append(entries ...session.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	for i := range entries {
		e := &entries[i]
		e.Turn = t.number
		if e.Tokens == 0 && len(e.Blocks) > 0 {
			e.Tokens = t.tokens(e.Blocks)
		}
	}
	ctx, cancel := t.late()
	defer cancel()
	if err := t.log.Append(ctx, entries...); err != nil {
		return err
	}
	all := t.log.Entries()
	t.take(all[len(all)-len(entries):])
	return nil
}

// take adds what was written to what is live. Only what hides something makes
// it necessary to look at all of it again.
func (t *turn) take(entries []session.Entry) {
	knows := false
	for i := range entries {
		e := &entries[i]
		if e.To > 0 {
			t.read()
			return
		}
		if e.Kind == session.Note {
			continue
		}
		t.live = append(t.live, *e)
		knows = knows || e.Kind == session.Prefix || len(e.Offers) > 0 || len(e.Shown) > 0
		if e.Kind == session.Prefix {
			t.prefix = *e
		}
	}
	if knows {
		t.known = t.knows()
	}
}

// knows is what the model has before it, of what it takes.
func (t *turn) knows() deliver.Live {
	return deliver.LiveFor(t.live, t.takes(model.Inline), t.takes(model.Search))
}

// read takes from the session what is live.
func (t *turn) read() {
	t.live = session.Live(t.log.Entries())
	if t.model.Model != nil {
		t.known = t.knows()
	}
	for i := range t.live {
		if t.live[i].Kind == session.Prefix {
			t.prefix = t.live[i]
		}
	}
}
