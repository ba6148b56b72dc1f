// Package stream runs turns for clients that come and go. A turn belongs to this
// process and not to a request: it goes on when the client that began it is gone, and
// anybody it belongs to may follow its events, from wherever they left off.
//
// The events of a session are kept in a ring, each encoded once and shared by
// all who follow. A follower reads the ring by its own cursor, so a slow one
// holds up neither the turn nor others; one that falls out of the ring is told
// to read the session again.
//
// Event ids are EPOCH-N. The epoch is that of the [Hub], N rises over all turns
// of a session.
package stream

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/talk/event"
)

// Config says how turns run. Turn is needed.
type Config struct {
	Turn func(ctx context.Context, in event.Input) iter.Seq2[event.Event, error]

	// Keep is given the record of a turn that is over (see [Hub.Record]), beside
	// whatever the session does next. Nil: nothing is kept.
	Keep func(ctx context.Context, who capability.Principal, session string, turn int, record []byte) error

	// Last returns the newest entry of a session. It is asked in the middle of
	// turns that have said very much, so that those who come late can begin
	// there. Nil: they may miss a part of such a turn.
	Last func(ctx context.Context, who capability.Principal, session string) (int, error)

	// Relay passes on events to and from other replicas, while [Hub.Run] runs. Nil:
	// there are none.
	Relay *Relay

	Log *slog.Logger // nil: nothing is logged

	// MostBytes are those of the events of one session; 0: 4 MiB. What is older
	// is let go of. At least 64 KiB.
	MostBytes int

	// MostSessions is how many turns run at once, and of how many sessions in
	// which none does the events are kept; 0: 1024.
	MostSessions int

	// MostOwn is how many turns of one principal run at once; 0: 64.
	MostOwn int

	// Linger is how long the events of a session are kept in which no turn runs
	// and which has no follower; 0: 5 minutes.
	Linger time.Duration

	// Beat is after how much silence a follower gets a Frame without anything in
	// it, to keep its connection alive; 0: 20 seconds.
	Beat time.Duration
}

// A Frame is an event as followers get it. Data is one line of JSON, shared by
// all followers: it must not be changed. A Frame without a Name is a beat.
type Frame struct {
	ID   string
	Name string
	Data []byte
}

// A Hub has the turns that run in this process. It is safe for any number of
// goroutines.
type Hub struct {
	cfg     Config
	epoch   string
	relay   *relay // nil: there are no other replicas
	gens    atomic.Uint64
	turns   sync.WaitGroup // that run, or whose sessions are held
	leaving chan struct{}  // closed by Drain: questions are not answered any more

	mu       sync.Mutex
	logs     map[key]*log
	high     int64 // no log that is gone had a higher N
	uses     uint64
	busy     int
	own      map[owner]int // of busy, by whose they are
	draining bool
}

type owner struct{ tenant, who string }

type key struct{ tenant, who, session string }

func keyOf(who capability.Principal, session string) key { return key{who.Tenant, who.ID, session} }

// A log has what is known of a session here.
type log struct {
	key key

	// Under the hub's lock.
	users int // followers, and the turn
	used  uint64
	timer *time.Timer // until it is let go of, while it has no users

	mu      sync.Mutex
	ring    ring
	wake    chan struct{} // closed with the next event; nil: no one waits
	gen     uint64        // another one after each begin and end of a turn or of a hold
	turn    *Turn         // that runs
	held    bool
	closing bool // no more turns will come
	asked   questions
	mirror  mirror
	last    *Turn // the last one that is over, for its record
	known   int   // the number of the last turn that followers can know of; 0: it is not known
}

// New makes a Hub.
func New(cfg Config) *Hub {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	or := func(v *int, zero int) {
		if *v <= 0 {
			*v = zero
		}
	}
	or(&cfg.MostBytes, 4<<20)
	or(&cfg.MostSessions, 1024)
	or(&cfg.MostOwn, 64)
	cfg.MostBytes = max(cfg.MostBytes, 64<<10)
	if cfg.Linger <= 0 {
		cfg.Linger = 5 * time.Minute
	}
	if cfg.Beat <= 0 {
		cfg.Beat = 20 * time.Second
	}
	var epoch [6]byte
	_, _ = rand.Read(epoch[:]) // never fails
	h := &Hub{cfg: cfg, epoch: hex.EncodeToString(epoch[:]), logs: map[key]*log{}, own: map[owner]int{}, leaving: make(chan struct{})}
	if cfg.Relay != nil {
		h.epoch, h.relay = cfg.Relay.Name, newRelay(h, *cfg.Relay)
	}
	return h
}

func (h *Hub) id(n int64) string { return h.epoch + "-" + strconv.FormatInt(n, 10) }

// use returns the log of a session. Its user must leave it.
func (h *Hub) use(k key) *log {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.useLocked(k)
}

func (h *Hub) useLocked(k key) *log {
	l := h.logs[k]
	if l == nil {
		// It goes on after all that were let go of: an id is never given twice.
		l = &log{key: k, ring: newRing(h.high, h.cfg.MostBytes), closing: h.draining}
		h.logs[k] = l
	}
	l.users++
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	return l
}

// leave is use's other end.
func (h *Hub) leave(l *log) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l.users--; l.users > 0 {
		return
	}
	h.uses++
	l.used = h.uses
	at := l.used
	l.timer = time.AfterFunc(h.cfg.Linger, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if l.users == 0 && l.used == at {
			h.forgetLocked(l)
		}
	})
	h.crowdedLocked()
}

// crowdedLocked lets go of what has been idle for longest, when there is too
// much of it.
func (h *Hub) crowdedLocked() {
	idle := 0
	var oldest *log
	for _, l := range h.logs {
		if l.users == 0 {
			idle++
			if oldest == nil || l.used < oldest.used {
				oldest = l
			}
		}
	}
	if idle > h.cfg.MostSessions {
		h.forgetLocked(oldest)
	}
}

func (h *Hub) forgetLocked(l *log) {
	if h.logs[l.key] != l {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.mu.Lock()
	h.high = max(h.high, l.ring.last)
	for peer := range l.mirror.told {
		h.relay.queue(peer, message{Kind: "leave", Topic: l.key.topic()})
	}
	l.mirror = mirror{}
	l.mu.Unlock()
	delete(h.logs, l.key)
}

// look returns the log of a session, nil where there is none, and how far ids have
// come then.
func (h *Hub) look(who capability.Principal, session string) (*log, int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.logs[keyOf(who, session)], h.high
}

// Running reports whether a turn of a session runs here, or is known to run on another
// replica.
func (h *Hub) Running(who capability.Principal, session string) bool {
	l, _ := h.look(who, session)
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running()
}

// Abort ends the turn of a session that runs here. It reports whether there was
// one; followers see how it ends. Left, where it is not nil, is given what the
// turn still asked when it had ended, once and before followers hear of the end.
// A turn that ends otherwise, or that [Hub.Drain] ends, leaves what it asked.
func (h *Hub) Abort(who capability.Principal, session string, left func(context.Context, []event.Asked)) bool {
	l, _ := h.look(who, session)
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn == nil {
		return false
	}
	if l.turn.left == nil {
		l.turn.left = left
	}
	l.turn.cancel()
	return true
}

// Saw takes note of how many turns a session had when it was read while nothing
// was done to it here. Where there are more than ran here, another process was
// at it: followers read it again.
func (h *Hub) Saw(who capability.Principal, session string, turns int) {
	l := h.use(keyOf(who, session))
	defer h.leave(l)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.running() && !l.held {
		h.saw(l, turns)
	}
}

// saw is Saw under the lock.
func (h *Hub) saw(l *log, turns int) {
	if l.known > 0 && turns > l.known {
		h.addHere(l, "reset", []byte(`{"type":"reset"}`))
	}
	l.known = max(l.known, turns)
}

// A Mark is where a session stands.
type Mark struct {
	// Gen is another one after each begin and end of a turn, and after all else
	// that is done to a session through the hub. Two Marks with the same Gen, one
	// from before the session was read and one from after, say that what was read
	// belongs to them.
	Gen uint64

	Running bool
	Asked   []event.Asked // what waits for an answer

	// After is the id to follow from for a client that has read the session's
	// entries up to Base; less than zero: all of them.
	After string
	Base  int
}

// Mark says where a session stands. A client that has read the entries up to Base and
// follows from After sees everything once.
//
// A turn that has said more than the hub keeps is the exception: with
// [Config.Last] those who come late begin after one of its steps; and where even
// that is gone, they miss what its present step has said so far.
func (h *Hub) Mark(who capability.Principal, session string) Mark {
	l, high := h.look(who, session)
	if l == nil {
		return Mark{After: h.id(high), Base: -1}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m := Mark{Gen: l.gen, Running: l.turn != nil, Asked: l.asked.pending(), After: h.idAt(l, l.ring.last), Base: -1}
	h.marked(l, &m)
	if t := l.turn; t != nil {
		switch {
		case t.from.n >= l.ring.lost:
			m.After, m.Base = h.id(t.from.n), t.from.seq
		case t.step.n >= l.ring.lost && t.step.seq > 0:
			m.After, m.Base = h.id(t.step.n), t.step.seq
		}
	}
	return m
}

// stopping is the problem for requests after [Hub.Drain].
func stopping() error {
	return &wire.Problem{Status: http.StatusServiceUnavailable, Code: "stopping", Detail: "this Ken is about to stop and begins nothing new; ask again when it runs again"}
}

// Drain begins no more turns and waits until those that run have ended. Those
// that wait for a person, or come to, end at once: they stay open, and go on when
// they are answered. When ctx ends it aborts the rest, waits for them too and
// says how many there were. Followers get the last frames and end.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	if !h.draining {
		close(h.leaving)
	}
	h.draining = true
	for _, l := range h.logs {
		l.mu.Lock()
		l.closing = true
		l.tell()
		l.mu.Unlock()
	}
	h.mu.Unlock()
	over := make(chan struct{})
	go func() {
		h.turns.Wait()
		close(over)
	}()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
	}
	n := h.abortAll()
	<-over
	if n == 0 {
		return nil
	}
	return &capability.Error{
		Kind: capability.Timeout, Op: "wait for", Target: fmt.Sprintf("%d turns", n),
		Err: errors.Join(errors.New("aborted, because they took longer than stopping may"), ctx.Err()), Fix: "go on with them when Ken runs again",
	}
}

func (h *Hub) abortAll() (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.logs {
		l.mu.Lock()
		if l.turn != nil {
			l.turn.cancel()
			n++
		}
		l.mu.Unlock()
	}
	return n
}
