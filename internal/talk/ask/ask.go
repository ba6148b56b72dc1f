// Package ask puts the questions of a turn to a person and waits for the
// replies. A reply may come while the turn waits, or later: then the session
// keeps it until the turn goes on.
package ask

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"

	"ken/capability"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
)

// ID names a question of a call. It is the same when the call is made again
// after a crash and asks the same. It has the kind of the question and, if about
// is not empty, what the question is about, so that a reply to another question
// is not taken for an answer to this one.
func ID(turn, call, round int, what event.Question, about string) string {
	id := fmt.Sprintf("%d.%d.%d.%s", turn, call, round, what)
	if about != "" {
		id += "." + hash(about)
	}
	return id
}

// LimitID names the question whether a turn may go on after some requests, at
// the limit that why describes.
func LimitID(turn, requests int, why string) string {
	return fmt.Sprintf("%d.s%d.%s.%s", turn, requests, event.GoOn, hash(why))
}

// TurnOf returns the turn of a question.
func TurnOf(id string) (turn int, ok bool) {
	_, err := fmt.Sscanf(id, "%d.", &turn)
	return turn, err == nil
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Kept returns the note that keeps a reply. A reply that is used no longer counts.
func Kept(id string, r event.Reply, used bool) session.Entry {
	reply, _ := json.Marshal(r) // a reply always marshals
	return session.Replied{Ask: id, Reply: reply, Used: used}.Entry()
}

// Waiters are the turns of this process that wait for a reply. The zero value is
// none. Waiters are safe for concurrent use.
type Waiters struct {
	mu      sync.Mutex
	waiting map[string]chan event.Reply
}

func key(who capability.Principal, session, id string) string {
	b, _ := json.Marshal([]string{who.Tenant, who.ID, session, id}) // texts always marshal
	return string(b)
}

// Deliver passes a reply to the turn that waits for it, and reports whether one
// does. The first reply counts.
func (w *Waiters) Deliver(who capability.Principal, session, id string, r event.Reply) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	ch, ok := w.waiting[key(who, session, id)]
	if ok {
		select {
		case ch <- r:
		default: // it has one
		}
	}
	return ok
}

// expect returns the channel on which the reply to a question comes.
func (w *Waiters) expect(who capability.Principal, session, id string) (replies <-chan event.Reply, forget func()) {
	ch, k := make(chan event.Reply, 1), key(who, session, id)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == nil {
		w.waiting = map[string]chan event.Reply{}
	}
	w.waiting[k] = ch
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.waiting, k)
	}
}

// Config says whose questions are asked, and how.
type Config struct {
	Waiters   *Waiters
	Principal capability.Principal
	Session   string

	// Alone means that no person can be asked. Leave is closed when no person
	// can be asked any more; nil: never.
	Alone bool
	Leave <-chan struct{}

	Emit  func(event.Event)
	Write func(...session.Entry) error // to the session
}

// Questions are the questions of one turn. They belong to its goroutine.
type Questions struct {
	cfg     Config
	replies map[string]event.Reply // that the session keeps, by question
	tickets map[int]string         // that calls waited for, by number
}

// New returns the questions of a turn that begins.
func New(cfg Config) *Questions {
	return &Questions{cfg: cfg, replies: map[string]event.Reply{}, tickets: map[int]string{}}
}

// Recall takes what the session keeps of an earlier part of a turn.
func (q *Questions) Recall(entries []session.Entry, turn int) {
	for i := range entries {
		if entries[i].Turn != turn {
			continue
		}
		switch n := session.ReadNote(&entries[i]).(type) {
		case session.Waiting:
			q.SetTicket(n.Call, n.Ticket)
		case session.Replied:
			var r event.Reply
			switch err := json.Unmarshal(n.Reply, &r); {
			case err != nil:
			case n.Used:
				delete(q.replies, n.Ask)
			default:
				q.replies[n.Ask] = r
			}
		}
	}
}

// Ticket returns the ticket that a call waited for, or "" if it waited for none.
func (q *Questions) Ticket(call int) string { return q.tickets[call] }

// SetTicket remembers the ticket that a call waits for, unless it is empty.
func (q *Questions) SetTicket(call int, ticket string) {
	if ticket != "" {
		q.tickets[call] = ticket
	}
}

// Alone reports whether no person can be asked.
func (q *Questions) Alone() bool {
	select {
	case <-q.cfg.Leave:
		return true
	default:
		return q.cfg.Alone
	}
}

// UntilAlone returns a context that ends with ctx, and when no person can be
// asked any more.
func (q *Questions) UntilAlone(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	if q.cfg.Leave != nil {
		go func() {
			select {
			case <-q.cfg.Leave:
				stop()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, stop
}

// An Outcome says what came of a question.
type Outcome int

const (
	Stopped Outcome = iota // the turn was aborted, or the reply could not be written
	Pending                // no person can be asked now
	Got                    // there is a reply
)

// Put asks a person and waits for the reply.
//
// A reply is kept, so that a person need not reply twice. A reply that allows
// something once more counts once: it is used up before that happens.
func (q *Questions) Put(ctx context.Context, a event.Asked) (event.Reply, Outcome) {
	once := a.What == event.Again || a.What == event.GoOn
	if r, ok := q.replies[a.ID]; ok {
		if once {
			delete(q.replies, a.ID)
			if err := q.cfg.Write(Kept(a.ID, r, true)); err != nil {
				return r, Stopped
			}
		}
		q.cfg.Emit(a)
		q.cfg.Emit(event.Answered{ID: a.ID, Yes: r.Yes, Text: r.Text})
		return r, Got
	}
	if q.Alone() {
		q.cfg.Emit(a)
		return event.Reply{}, Pending
	}
	// The receiver of the event may reply before the next one.
	replies, forget := q.cfg.Waiters.expect(q.cfg.Principal, q.cfg.Session, a.ID)
	defer forget()
	q.cfg.Emit(a)
	select {
	case r := <-replies:
		q.cfg.Emit(event.Answered{ID: a.ID, Yes: r.Yes, Text: r.Text})
		if once {
			return r, Got
		}
		q.replies[a.ID] = r
		if err := q.cfg.Write(Kept(a.ID, r, false)); err != nil {
			return r, Stopped
		}
		return r, Got
	case <-ctx.Done():
		return event.Reply{}, Stopped
	case <-q.cfg.Leave:
		return event.Reply{}, Pending
	}
}

// Len returns how many questions turns of this process wait for.
func (w *Waiters) Len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.waiting)
}
