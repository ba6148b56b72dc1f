package stream

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/serve/problem"
	"ken/internal/store"
	"ken/internal/talk/event"
)

// A Relay says how the hubs of several replicas pass on the events of turns. All of it
// is needed.
type Relay struct {
	Name  string // of this hub: the epoch of its ids, and the name by which it receives
	Store func() (*store.Store, error)
	Peers func() []string // the names of the other hubs that run

	// Answer answers what a turn asks that runs here, for a caller of another
	// replica.
	Answer func(ctx context.Context, who capability.Principal, session string, asked event.Asked, answer json.RawMessage) error

	// Left receives the open questions of a turn that a caller of another replica
	// aborted.
	Left func(ctx context.Context, who capability.Principal, session string, left []event.Asked)
}

const (
	// pace is the least time between two queries that send, so that the tokens of all
	// turns of a replica share one.
	pace = 15 * time.Millisecond

	// answerWithin is how long a replica may take to say what it knows of a session,
	// and doneWithin how long to do something.
	answerWithin = 3 * time.Second
	doneWithin   = 10 * time.Second

	lookEvery    = time.Second
	longestPause = 8 * time.Second  // before a question that was not answered is repeated
	askAgain     = 5 * time.Second  // whether something of a turn that runs was missed
	idleAfter    = 10 * time.Second // without a follower, events are no longer wanted
	sendTime     = 5 * time.Second
)

// A relay passes events between this hub and those of other replicas, through messages
// of the store.
//
// Nothing is sent of a session that no other replica follows. A replica on which a client
// follows a session asks all others for it (follow), and each answers with what it has
// (update): the turn that runs there from its beginning, or what comes after the
// event that the replica has already. From then on each new event is sent, together
// with those of all other sessions, at most once every pace. Events of a replica are
// numbered, so one that is missing is noticed and asked for again. What is no longer
// kept is answered with lost: followers read the session again.
type relay struct {
	h   *Hub
	cfg Relay

	sent, received atomic.Uint64 // queries that sent, and messages that came

	mu    sync.Mutex
	out   map[string][]message // by receiver
	dirty map[*log]bool
	calls map[string]chan *problem.Problem
	kick  chan struct{}
}

// A message is one of several in a mail.
type message struct {
	Kind   string           `json:"kind"` // follow, leave, update, abort, answer or reply
	Topic  *[3]string       `json:"topic,omitempty"`
	Have   int64            `json:"have,omitempty"`   // of follow: the newest event that is there; -1: none
	Client bool             `json:"client,omitempty"` // of follow: a client has it, and not the replica
	Again  bool             `json:"again,omitempty"`  // of follow: it was asked before, and the answer did not come
	Update *update          `json:"update,omitempty"`
	Call   string           `json:"call,omitempty"` // of abort, answer and reply: which one
	Do     *action          `json:"do,omitempty"`
	Failed *problem.Problem `json:"failed,omitempty"` // of reply: why it was not done
}

// An action is what a caller of another replica wants.
type action struct {
	Who    capability.Principal `json:"who"`
	Asked  string               `json:"asked,omitempty"`
	Answer json.RawMessage      `json:"answer,omitempty"`
}

type mail struct {
	From     string    `json:"from"`
	Messages []message `json:"messages"`
}

// replicaLost is the problem of a turn whose replica is gone.
func replicaLost() *wire.Problem {
	return &wire.Problem{
		Status: http.StatusServiceUnavailable, Code: "replica-lost",
		Detail: "the replica that ran this turn has stopped or cannot be reached; what the turn did until then is in the session; continue it, or send another message",
	}
}

// replicaSilent is the problem of a request that another replica does not answer.
func replicaSilent() error {
	return &wire.Problem{
		Status: http.StatusServiceUnavailable, Code: "replica-silent",
		Detail: "the turn runs on another replica, which does not answer; try again; if it is gone, the session is free within seconds",
	}
}

func newRelay(h *Hub, cfg Relay) *relay {
	return &relay{h: h, cfg: cfg, out: map[string][]message{}, dirty: map[*log]bool{}, calls: map[string]chan *problem.Problem{}, kick: make(chan struct{}, 1)}
}

// Run passes on events between replicas until ctx ends. It must be called where the hub
// has a [Relay].
func (h *Hub) Run(ctx context.Context) {
	r := h.relay
	if r == nil {
		return
	}
	var beside sync.WaitGroup
	beside.Go(func() { r.send(ctx) })
	beside.Go(func() { r.watch(ctx) })
	defer beside.Wait()
	for ctx.Err() == nil {
		db, err := r.cfg.Store()
		if err == nil {
			err = db.Receive(ctx, r.cfg.Name, r.receive, r.resync)
		}
		if err != nil && ctx.Err() == nil {
			h.cfg.Log.Warn("events of turns on other replicas are not received", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// Relayed returns how many queries sent events to other replicas, and how many
// messages came from them.
func (h *Hub) Relayed() (sent, received uint64) {
	if h.relay == nil {
		return 0, 0
	}
	return h.relay.sent.Load(), h.relay.received.Load()
}

// wake makes the sender look. The lock is held.
func (r *relay) wakeLocked() {
	select {
	case r.kick <- struct{}{}:
	default:
	}
}

// queue sends a message soon.
func (r *relay) queue(to string, m message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out[to] = append(r.out[to], m)
	r.wakeLocked()
}

// changed notes that a log has something new. The log's lock is held.
func (r *relay) changed(l *log) {
	if r == nil || len(l.mirror.outlets) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dirty[l] = true
	r.wakeLocked()
}

// send sends what is new, until ctx ends, and then once more.
func (r *relay) send(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			r.flush(bye)
			return
		case <-r.kick:
		}
		r.flush(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(pace):
		}
	}
}

func (r *relay) flush(ctx context.Context) {
	r.mu.Lock()
	out, dirty := r.out, r.dirty
	r.out, r.dirty = map[string][]message{}, map[*log]bool{}
	r.mu.Unlock()
	for l := range dirty {
		l.mu.Lock()
		for to, o := range l.mirror.outlets {
			if o.answer || o.sent < l.ring.last {
				out[to] = append(out[to], message{Kind: "update", Topic: l.key.topic(), Update: r.h.update(l, o)})
			}
		}
		l.mu.Unlock()
	}
	if len(out) == 0 {
		return
	}
	var mails []store.Mail
	for to, list := range out {
		body, err := json.Marshal(mail{r.cfg.Name, list})
		if err != nil {
			r.h.cfg.Log.Error("events of turns cannot be written for other replicas", "err", err)
			continue
		}
		mails = append(mails, store.Mail{To: to, Body: body})
	}
	db, err := r.cfg.Store()
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, sendTime)
		err = db.Send(limited, mails...)
		cancel()
	}
	r.sent.Add(1)
	if err != nil { // receivers notice by the numbers, or ask again soon
		r.h.cfg.Log.Warn("events of turns do not reach other replicas", "err", err)
	}
}

// receive takes a mail.
func (r *relay) receive(body []byte) {
	r.received.Add(1)
	var m mail
	if err := json.Unmarshal(body, &m); err != nil {
		r.h.cfg.Log.Warn("a message of another replica cannot be read", "err", err)
		return
	}
	for i := range m.Messages {
		r.take(m.From, &m.Messages[i])
	}
}

func (r *relay) take(from string, m *message) {
	if m.Topic == nil && m.Kind != "reply" {
		return
	}
	switch m.Kind {
	case "follow":
		r.follow(from, m)
	case "leave":
		if l := r.existing(m); l != nil {
			l.mu.Lock()
			unused := l.mirror.closeOutlet(from)
			l.mu.Unlock()
			if unused {
				r.h.leave(l)
			}
		}
	case "update":
		r.updated(from, m)
	case "abort", "answer":
		go r.do(from, m)
	case "reply":
		r.mu.Lock()
		done := r.calls[m.Call]
		delete(r.calls, m.Call)
		r.mu.Unlock()
		if done != nil {
			done <- m.Failed
		}
	}
}

// existing returns the log of a message, nil where there is none.
func (r *relay) existing(m *message) *log {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	return r.h.logs[keyFor(*m.Topic)]
}

// follow answers a replica that wants the events of a session.
func (r *relay) follow(from string, m *message) {
	l := r.h.use(keyFor(*m.Topic))
	l.mu.Lock()
	first := len(l.mirror.outlets) == 0 // the outlets together are a user of the log
	if l.mirror.outlets == nil {
		l.mirror.outlets = map[string]*outlet{}
	}
	o := &outlet{sent: m.Have, from: m.Have, answer: true}
	if old := l.mirror.outlets[from]; old != nil && old.from >= 0 && (m.Again || m.Have >= 0) {
		o.from = old.from
		if m.Have < 0 { // the first answer is lost, or on its way
			o.sent, o.again = old.from, true
		}
	}
	if t := l.turn; m.Client && t != nil && t.from.n >= l.ring.lost {
		o.sent = min(o.sent, t.from.n) // others there will want the turn from its beginning
	}
	l.mirror.outlets[from] = o
	r.changed(l)
	l.mu.Unlock()
	if !first {
		r.h.leave(l)
	}
}

// closeOutlet stops sending to a replica. It reports whether that was the last one.
func (m *mirror) closeOutlet(to string) bool {
	_, there := m.outlets[to]
	delete(m.outlets, to)
	return there && len(m.outlets) == 0
}

// updated takes in what another replica says of a session.
func (r *relay) updated(from string, m *message) {
	l := r.existing(m)
	if l != nil && m.Update != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.mirror.wanted {
			if !r.h.apply(l, from, m.Update) {
				if _, asked := l.mirror.again[from]; !asked {
					l.mirror.again[from] = struct{}{}
					r.askMissed(l, from)
				}
			}
			return
		}
	}
	r.queue(from, message{Kind: "leave", Topic: m.Topic})
}

// do does what a caller of another replica wants, and says how that went.
func (r *relay) do(from string, m *message) {
	ctx, cancel := context.WithTimeout(context.Background(), doneWithin)
	defer cancel()
	err := errors.New("the message names no action")
	if m.Do != nil {
		who, id := m.Do.Who, m.Topic[2]
		if m.Kind == "abort" {
			err = nil
			if !r.h.Abort(who, id, func(ctx context.Context, left []event.Asked) { r.cfg.Left(ctx, who, id, left) }) {
				err = &wire.Problem{Status: http.StatusNotFound, Code: "not-running", Detail: "the turn is over"}
			}
		} else {
			err = r.answer(ctx, who, id, m.Do)
		}
	}
	reply := message{Kind: "reply", Call: m.Call}
	if err != nil {
		reply.Failed, _ = problem.Of(err)
	}
	r.queue(from, reply)
}

func (r *relay) answer(ctx context.Context, who capability.Principal, id string, do *action) error {
	asked, settle, err := r.h.Claim(who, id, do.Asked)
	if err != nil {
		return err
	}
	err = r.cfg.Answer(ctx, who, id, asked, do.Answer)
	settle(err == nil)
	return err
}

// call asks a replica to do something, and waits until it has.
func (r *relay) call(ctx context.Context, to, kind string, k key, do *action) error {
	id, done := rand.Text(), make(chan *problem.Problem, 1)
	r.mu.Lock()
	r.calls[id] = done
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.calls, id)
		r.mu.Unlock()
	}()
	r.queue(to, message{Kind: kind, Topic: k.topic(), Call: id, Do: do})
	late := time.NewTimer(doneWithin)
	defer late.Stop()
	select {
	case p := <-done:
		if p != nil {
			return p
		}
		return nil
	case <-late.C:
		return replicaSilent()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attach asks the other replicas for the events of a session, unless that was done, and
// waits until they have said what they know: whether a turn runs there. after is the
// last event that a client saw.
func (r *relay) attach(ctx context.Context, l *log, after string) {
	if r == nil {
		return
	}
	l.mu.Lock()
	r.wantLocked(l, after)
	late := time.NewTimer(answerWithin)
	defer late.Stop()
	for !l.running() && len(l.mirror.waiting) > 0 && !l.closing {
		if l.wake == nil {
			l.wake = make(chan struct{})
		}
		wake := l.wake
		l.mu.Unlock()
		over := false
		select {
		case <-wake:
		case <-late.C:
			over = true
		case <-ctx.Done():
			over = true
		}
		l.mu.Lock()
		if over {
			break
		}
	}
	l.mu.Unlock()
}

// wantLocked asks for the events of a session. The log's lock is held.
func (r *relay) wantLocked(l *log, after string) {
	m := &l.mirror
	m.unused = time.Time{}
	if m.wanted {
		return
	}
	m.forget()
	m.wanted, m.since = true, time.Now()
	m.told, m.waiting, m.have, m.again = map[string]bool{}, map[string]inquiry{}, map[string]int64{}, map[string]struct{}{}
	epoch, n, ok := parseID(after)
	for _, peer := range r.cfg.Peers() {
		if ok && epoch == peer {
			r.askLocked(l, peer, n)
		} else {
			r.askLocked(l, peer, -1)
		}
	}
}

// askLocked asks a replica for the events of a session: those after have, which is of a
// client, or of the turn that runs.
func (r *relay) askLocked(l *log, peer string, have int64) {
	l.mirror.told[peer], l.mirror.waiting[peer] = true, inquiry{have, time.Now(), lookEvery}
	r.queue(peer, message{Kind: "follow", Topic: l.key.topic(), Have: have, Client: have >= 0})
}

// askAgainLocked repeats a question that was not answered: the replica did not listen, or
// its answer was lost. The log's lock is held.
func (r *relay) askAgainLocked(l *log, peer string, q inquiry) {
	l.mirror.waiting[peer] = inquiry{q.have, time.Now(), min(2*q.pause, longestPause)}
	r.queue(peer, message{Kind: "follow", Topic: l.key.topic(), Have: q.have, Client: q.have >= 0, Again: true})
}

// all returns the logs there are.
func (r *relay) all() []*log {
	r.h.mu.Lock()
	defer r.h.mu.Unlock()
	out := make([]*log, 0, len(r.h.logs))
	for _, l := range r.h.logs {
		out = append(out, l)
	}
	return out
}

// resync asks for everything again: messages may have been lost.
func (r *relay) resync() {
	for _, l := range r.all() {
		l.mu.Lock()
		r.askForMore(l)
		l.mu.Unlock()
	}
}

// askForMore asks for what may have been missed. The log's lock is held.
func (r *relay) askForMore(l *log) {
	for peer := range l.mirror.told {
		r.askMissed(l, peer)
	}
}

// askMissed asks a replica for what may have been missed. The log's lock is held.
func (r *relay) askMissed(l *log, peer string) {
	if have, known := l.mirror.have[peer]; known {
		r.queue(peer, message{Kind: "follow", Topic: l.key.topic(), Have: have})
		return
	}
	have := int64(-1)
	if q, waits := l.mirror.waiting[peer]; waits {
		have = q.have
	}
	r.queue(peer, message{Kind: "follow", Topic: l.key.topic(), Have: have, Client: have >= 0, Again: true})
}

// watch notices replicas that come and go, sessions that are no longer followed, and
// answers that do not come.
func (r *relay) watch(ctx context.Context) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for asked := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		peers := map[string]bool{}
		for _, p := range r.cfg.Peers() {
			peers[p] = true
		}
		again := time.Since(asked) >= askAgain
		if again {
			asked = time.Now()
		}
		for _, l := range r.all() {
			r.h.mu.Lock()
			users := l.users
			r.h.mu.Unlock()
			l.mu.Lock()
			unused := r.look(l, peers, users)
			if again && l.mirror.owner != "" {
				r.askForMore(l)
			}
			l.mu.Unlock()
			if unused {
				r.h.leave(l)
			}
		}
	}
}

// look brings a log up to date with the replicas that run. It reports whether the last
// outlet was closed. The log's lock is held.
func (r *relay) look(l *log, peers map[string]bool, users int) (unused bool) {
	m := &l.mirror
	if len(m.outlets) > 0 {
		users--
	}
	for peer := range m.outlets {
		if !peers[peer] && m.closeOutlet(peer) {
			unused = true
		}
	}
	if !m.wanted {
		return unused
	}
	if m.owner != "" && !peers[m.owner] {
		r.h.lose(l)
	}
	for peer := range m.told {
		if !peers[peer] {
			delete(m.told, peer)
			delete(m.waiting, peer)
			delete(m.have, peer)
			delete(m.again, peer)
			l.tell()
		}
	}
	for peer, q := range m.waiting {
		if time.Since(q.at) >= q.pause {
			r.askAgainLocked(l, peer, q)
		}
	}
	for peer := range peers {
		if !m.told[peer] {
			r.askLocked(l, peer, -1)
		}
	}
	switch {
	case users > 0:
		m.unused = time.Time{}
	case m.unused.IsZero():
		m.unused = time.Now()
	case time.Since(m.unused) >= idleAfter && m.owner == "":
		for peer := range m.told {
			r.queue(peer, message{Kind: "leave", Topic: l.key.topic()})
		}
		m.forget()
	}
	return unused
}

// Locate looks on which replica a turn of a session runs; empty: on none but this one.
// It is for a session of which a turn is known to run.
func (h *Hub) Locate(ctx context.Context, who capability.Principal, session string) string {
	if h.relay == nil {
		return ""
	}
	l := h.use(keyOf(who, session))
	defer h.leave(l)
	h.relay.attach(ctx, l, "")
	const moment = 500 * time.Millisecond // for an event that is on its way
	late := time.NewTimer(moment)
	defer late.Stop()
	for {
		l.mu.Lock()
		owner, here := l.mirror.owner, l.turn != nil
		if l.wake == nil {
			l.wake = make(chan struct{})
		}
		wake := l.wake
		l.mu.Unlock()
		if owner != "" || here {
			return owner
		}
		select {
		case <-wake:
		case <-late.C:
			return ""
		case <-ctx.Done():
			return ""
		}
	}
}

// owner returns the replica on which a turn of a session runs, as far as that is known.
func (h *Hub) owner(who capability.Principal, session string) string {
	l, _ := h.look(who, session)
	if l == nil {
		return ""
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.turn != nil {
		return ""
	}
	return l.mirror.owner
}

// AbortElsewhere ends the turn of a session that runs on another replica. It reports
// whether there was one.
func (h *Hub) AbortElsewhere(ctx context.Context, who capability.Principal, session string) (bool, error) {
	owner := h.owner(who, session)
	if owner == "" {
		return false, nil
	}
	err := h.relay.call(ctx, owner, "abort", keyOf(who, session), &action{Who: who})
	var p *problem.Problem
	if errors.As(err, &p) && p.Code == "not-running" {
		return false, nil
	}
	return err == nil, err
}

// AnswerElsewhere answers what a turn asks that runs on another replica. It reports
// false where none is known to.
func (h *Hub) AnswerElsewhere(ctx context.Context, who capability.Principal, session, asked string, answer any) (bool, error) {
	owner := h.owner(who, session)
	if owner == "" {
		return false, nil
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return true, err
	}
	return true, h.relay.call(ctx, owner, "answer", keyOf(who, session), &action{Who: who, Asked: asked, Answer: data})
}

// Settle waits a moment for the last events of a turn on another replica that has ended,
// as the store says. They are on their way, and come before what happens next.
func (hold *Hold) Settle(ctx context.Context) {
	l := hold.l
	late := time.NewTimer(answerWithin)
	defer late.Stop()
	for {
		l.mu.Lock()
		if l.mirror.owner == "" {
			l.mu.Unlock()
			return
		}
		if l.wake == nil {
			l.wake = make(chan struct{})
		}
		wake := l.wake
		l.mu.Unlock()
		select {
		case <-wake:
			continue
		case <-late.C:
		case <-ctx.Done():
		}
		l.mu.Lock()
		if l.mirror.owner != "" {
			l.mirror.owner = ""
			hold.h.addHere(l, "reset", []byte(`{"type":"reset"}`))
		}
		l.mu.Unlock()
		return
	}
}

// Shared reports whether other replicas pass on the events of turns.
func (h *Hub) Shared() bool { return h.relay != nil }
