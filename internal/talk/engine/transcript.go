package engine

import (
	"context"
	"errors"
	"time"

	"ken/internal/talk/deliver"
	"ken/internal/talk/event"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

// writeTimeout limits writes to the session after the turn's context has ended.
const writeTimeout = 10 * time.Second

// A transcript is the session of a turn, which it holds the lock of. It is the
// only writer. What it knows of calls is here and not in the progress, because
// it must outlive a panic: a call that was started is never said not to be made.
type transcript struct {
	log    *session.Turn
	ctx    context.Context // of the turn
	count  tokenizer.Counter
	number int  // of this turn
	opened bool // there is something to go on with
	closed bool // its end is written

	current        history
	inline, search bool // whether the model takes tools in messages, and in results
	hasModel       bool

	// What is known of the calls of the last answer, by their numbers.
	answer    int          // the entry of the answer, if this run wrote it
	started   map[int]bool // in this run
	untouched map[int]bool // not begun when this run began
}

// A history is what is live of a session, and what follows from it.
type history struct {
	live   []session.Entry
	prefix session.Entry // the newest; no Seq: there is none yet
	known  deliver.Live  // what the model has before it, of what it takes
}

func newTranscript(ctx context.Context, log *session.Turn, count tokenizer.Counter) *transcript {
	l := &transcript{log: log, ctx: ctx, count: count, started: map[int]bool{}, untouched: map[int]bool{}}
	l.read()
	return l
}

func (l *transcript) head() session.Head       { return l.log.Head() }
func (l *transcript) entries() []session.Entry { return l.log.Entries() }
func (l *transcript) history() history         { return l.current }

// lost returns why the session is no longer this turn's, or nil if it is.
func (l *transcript) lost() error {
	if cause := context.Cause(l.log.Context()); errors.Is(cause, session.ErrLost) {
		return cause
	}
	return nil
}

// deliversBy says how the model takes tools, on which depends what it knows.
func (l *transcript) deliversBy(inline, search bool) {
	l.inline, l.search, l.hasModel = inline, search, true
	l.current.known = l.knows()
}

func (l *transcript) knows() deliver.Live {
	return deliver.LiveFor(l.current.live, l.inline, l.search)
}

// late returns a context for what must be written although the turn is aborted.
func (l *transcript) late() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(l.ctx), writeTimeout)
}

// append writes entries of this turn.
func (l *transcript) append(entries ...session.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	for i := range entries {
		e := &entries[i]
		e.Turn = l.number
		if e.Tokens == 0 && len(e.Blocks) > 0 {
			e.Tokens = prompt.Tokens(l.count, e.Blocks)
		}
	}
	ctx, cancel := l.late()
	defer cancel()
	if err := l.log.Append(ctx, entries...); err != nil {
		return err
	}
	all := l.log.Entries()
	l.take(all[len(all)-len(entries):])
	return nil
}

// appendAnswer writes an answer with calls, and what belongs to it.
func (l *transcript) appendAnswer(entries ...session.Entry) error {
	if err := l.append(entries...); err != nil {
		return err
	}
	all := l.log.Entries()
	l.answer = all[len(all)-len(entries)].Seq
	return nil
}

// take adds what was written to the history. Only an entry that hides others
// makes it necessary to read all of it again.
func (l *transcript) take(entries []session.Entry) {
	h := &l.current
	changed := false
	for i := range entries {
		e := &entries[i]
		if e.To > 0 {
			l.read()
			return
		}
		if e.Kind == session.Note {
			continue
		}
		h.live = append(h.live, *e)
		changed = changed || e.Kind == session.Prefix || len(e.Offers) > 0 || len(e.Shown) > 0
		if e.Kind == session.Prefix {
			h.prefix = *e
		}
	}
	if changed {
		h.known = l.knows()
	}
}

// read reads the history from the session.
func (l *transcript) read() {
	h := &l.current
	h.live = session.Live(l.log.Entries())
	if l.hasModel {
		h.known = l.knows()
	}
	for i := range h.live {
		if h.live[i].Kind == session.Prefix {
			h.prefix = h.live[i]
		}
	}
}

// announce says in the session's head, with what is written next, that a turn is
// on its way.
func (l *transcript) announce(s setup) {
	l.log.SetHead(func(h *session.Head) {
		h.Open, h.Mode, h.Agent = true, s.in.Mode, s.in.Agent
		if h.Title == "" {
			title := s.title
			if title == "" {
				title = s.in.Text
			}
			h.Title = untrusted.Line(title, 80)
		}
	})
}

// end writes entries, and that the turn is over, which the session's head says
// too. Nothing is written after it: it lets the session go.
func (l *transcript) end(end ending, entries ...session.Entry) error {
	l.log.SetHead(func(h *session.Head) {
		h.Open = l.opened && (end.reason == event.EndWaiting || end.reason == event.EndFailed)
	})
	l.log.Closing()
	note := session.Ended{Reason: string(end.reason)}
	if end.why != "" {
		note.Why = untrusted.Line(end.why, 1000)
	}
	return l.append(append(entries, note.Entry())...)
}

// release lets the session go.
func (l *transcript) release() {
	ctx, cancel := l.late()
	defer cancel()
	// What could not be let go of is free when the lock expires.
	_ = l.log.Release(ctx)
}
