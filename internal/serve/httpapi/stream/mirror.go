package stream

import (
	"strconv"
	"strings"
	"time"

	"ken/internal/talk/event"
)

// A mirror is what a log knows of turns that run on other replicas, and which replicas
// follow the session here. It is under the lock of its log. The zero value knows of
// nothing.
type mirror struct {
	// What comes in.
	wanted   bool                // the replicas were asked for the events of the session
	since    time.Time           // they were
	told     map[string]bool     // these were asked
	waiting  map[string]inquiry  // and these have not answered yet
	have     map[string]int64    // the newest N of each that is here
	segments []segment           // where their events are in the ring
	owner    string              // the replica on which a turn runs; empty: on none
	turn     remoteTurn          // that one
	record   record              // of it
	again    map[string]struct{} // of these something is missing, and was asked for again
	unused   time.Time           // since when there is no user; zero: there is one

	// What goes out: how far each replica has the events of this one.
	outlets map[string]*outlet
}

// An inquiry is what a replica was asked for and has not answered.
type inquiry struct {
	have  int64 // events after this one
	at    time.Time
	pause time.Duration // until it is asked again
}

// An outlet is how far a replica has the events of this hub.
type outlet struct {
	sent   int64
	answer bool  // it waits for an answer, also where there is nothing new
	from   int64 // the first answer has what came after this; -1: there was none yet
	again  bool  // the replica asked for that answer again
}

// A segment says that a part of the ring has the events of another replica: those from
// n on are at first and the places after it.
type segment struct {
	epoch    string
	n, first int64
	count    int64
	stale    bool // events that came after it may be missing
}

// mostSegments is how many segments are remembered. What is older cannot be resumed.
const mostSegments = 64

// A remoteTurn is a turn that runs on another replica.
type remoteTurn struct {
	Number  int   `json:"number"`
	From    int64 `json:"from"` // N of the event before it
	FromSeq int   `json:"fromSeq"`
	Step    int64 `json:"step,omitempty"`
	StepSeq int   `json:"stepSeq,omitempty"`
}

// parseID splits an id of an event.
func parseID(id string) (epoch string, n int64, ok bool) {
	epoch, digits, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(digits, 10, 64)
	return epoch, n, err == nil && n >= 0
}

// id returns the id of the event at a place of the ring: it is the same on all
// replicas. The lock is held.
func (h *Hub) idAt(l *log, at int64) string {
	if s := l.mirror.segment(at); s != nil {
		return s.epoch + "-" + strconv.FormatInt(s.n+at-s.first, 10)
	}
	return h.id(at)
}

// segment returns the one in which a place is, nil: the event there is this hub's.
func (m *mirror) segment(at int64) *segment {
	for i := len(m.segments) - 1; i >= 0; i-- {
		if s := &m.segments[i]; at >= s.first && at < s.first+s.count {
			return s
		}
	}
	return nil
}

// place returns where in the ring the event of another replica is.
func (m *mirror) place(epoch string, n int64) (int64, bool) {
	for i := len(m.segments) - 1; i >= 0; i-- {
		if s := &m.segments[i]; s.epoch == epoch && !s.stale && n >= s.n-1 && n < s.n+s.count {
			return s.first + n - s.n, true
		}
	}
	return 0, false
}

// find returns the place in the ring from which a client goes on that has seen an
// event. The lock is held.
func (h *Hub) find(l *log, id string) (int64, bool) {
	epoch, n, ok := parseID(id)
	switch {
	case !ok:
		return 0, false
	case epoch == h.epoch:
		return n, true
	}
	return l.mirror.place(epoch, n)
}

// grow makes room for the next event of another replica. last is the newest place of
// the ring.
func (m *mirror) grow(epoch string, n, last int64) {
	if i := len(m.segments) - 1; i >= 0 {
		if s := &m.segments[i]; s.epoch == epoch && !s.stale && s.n+s.count == n && s.first+s.count == last+1 {
			s.count++
			return
		}
	}
	m.begin(epoch, n, last)
	m.segments[len(m.segments)-1].count = 1
}

// begin notes that the events of a replica from n on come after a place.
func (m *mirror) begin(epoch string, n, last int64) {
	if len(m.segments) >= mostSegments {
		m.segments = append(m.segments[:0], m.segments[1:]...)
	}
	m.segments = append(m.segments, segment{epoch: epoch, n: n, first: last + 1})
}

// forget drops what is known of other replicas.
func (m *mirror) forget() {
	*m = mirror{outlets: m.outlets, segments: m.segments}
	for i := range m.segments {
		m.segments[i].stale = true
	}
}

// running reports whether a turn of the session runs, here or elsewhere. The lock is
// held.
func (l *log) running() bool { return l.turn != nil || l.mirror.owner != "" }

// A parcel is an event, or a run of fragments, on its way to another replica.
type parcel struct {
	N    int64  `json:"n"` // of the event, or of the newest fragment
	Name string `json:"name,omitempty"`
	Data []byte `json:"data,omitempty"`

	Kind kind    `json:"kind,omitempty"`
	Text string  `json:"text,omitempty"`
	Ends []int32 `json:"ends,omitempty"` // of the fragments in Text
}

// An update is what a replica says of a session.
type update struct {
	After   int64         `json:"after"` // N of the newest event that it sent before; -1: none
	Last    int64         `json:"last"`  // N of the newest event that it has sent now
	Parcels []parcel      `json:"parcels,omitempty"`
	Lost    bool          `json:"lost,omitempty"` // events between After and the first parcel are gone
	Fresh   bool          `json:"fresh,omitempty"`
	Turn    *remoteTurn   `json:"turn,omitempty"` // that runs after the parcels
	Asked   []event.Asked `json:"asked,omitempty"`
	Known   int           `json:"known,omitempty"` // the newest turn that ended there
}

// parcels returns the events of this hub after a place, and the newest of them.
func (r *ring) parcels(cursor int64, foreign func(int64) bool) (out []parcel, lost bool) {
	if cursor < r.lost || cursor > r.last {
		return nil, true
	}
	for i := range r.items {
		it := &r.items[i]
		switch {
		case it.last <= cursor || foreign(it.last):
		case it.run != nil:
			p := it.after(cursor)
			from := max(0, cursor-it.run.first+1)
			base := int32(len(it.run.text) - len(p.text))
			one := parcel{N: it.last, Kind: it.run.kind, Text: string(p.text)}
			for _, end := range it.run.ends[from:] {
				one.Ends = append(one.Ends, end-base)
			}
			out = append(out, one)
		case it.part.kind != whole:
			out = append(out, parcel{N: it.last, Kind: it.part.kind, Text: it.part.text, Ends: []int32{int32(len(it.part.text))}})
		default:
			out = append(out, parcel{N: it.last, Name: it.frame.Name, Data: it.frame.Data})
		}
	}
	return out, false
}

// update returns what is new for a replica. The lock is held.
func (h *Hub) update(l *log, o *outlet) *update {
	foreign := func(at int64) bool { return l.mirror.segment(at) != nil }
	u := &update{Known: l.known, Fresh: o.sent < 0 || o.again}
	if o.sent < 0 { // it has nothing: it begins with the turn that runs
		o.sent = l.ring.last
		if l.turn != nil {
			o.sent = l.turn.from.n
		}
		o.from = o.sent
	}
	u.After, o.again = o.sent, false
	parcels, lost := l.ring.parcels(o.sent, foreign)
	if lost {
		u.Lost = true
		from := l.ring.last
		if t := l.turn; t != nil && t.from.n >= l.ring.lost {
			from = t.from.n
		} else if t != nil && t.step.n >= l.ring.lost {
			from = t.step.n
		}
		parcels, _ = l.ring.parcels(from, foreign)
		u.After = from
	}
	u.Parcels, o.answer = parcels, false
	o.sent = l.ring.last // what lies between is of other replicas
	u.Last = o.sent
	u.Asked = l.asked.pending()
	if t := l.turn; t != nil {
		u.Turn = &remoteTurn{Number: t.number, From: t.from.n, FromSeq: t.from.seq, Step: t.step.n, StepSeq: t.step.seq}
	} else if l.mirror.owner != "" {
		u.Asked = nil // those are another replica's
	}
	return u
}

// apply takes in what a replica said of a session. It reports false where something is
// missing before it. The lock is held.
func (h *Hub) apply(l *log, from string, u *update) bool {
	m := &l.mirror
	have, known := m.have[from]
	if asked, waits := m.waiting[from]; waits && !known && !u.Fresh && !u.Lost && u.After > asked.have {
		return false // its answer was lost
	}
	fresh := !known || u.Lost // what comes does not go on after what is here
	switch {
	case fresh || u.After <= have:
	case u.Fresh: // it was asked twice, and what lies between its two answers is gone
		fresh, u.Lost = true, true
	default:
		return false
	}
	delete(m.waiting, from)
	delete(m.again, from)
	if l.turn != nil { // the turn there is over, and its end came late
		m.have[from] = u.Last
		l.tell()
		return true
	}
	if u.Lost && known || u.Turn != nil && m.owner != "" && (m.owner != from || m.turn.Number != u.Turn.Number) {
		h.addHere(l, "reset", []byte(`{"type":"reset"}`))
	}
	if fresh {
		m.begin(from, u.After+1, l.ring.last)
		have = u.After
	}
	for i := range u.Parcels {
		if p := &u.Parcels[i]; p.N > have {
			h.unpack(l, from, p, have)
		}
	}
	m.have[from] = max(have, u.Last)
	h.turned(l, from, u)
	l.tell()
	return true
}

// unpack puts the events of a parcel into the ring, but for those that are there.
func (h *Hub) unpack(l *log, from string, p *parcel, have int64) {
	m := &l.mirror
	if p.Kind == whole {
		m.grow(from, p.N, l.ring.last)
		if p.Name == "said" {
			m.record = record{}
		}
		m.record.add(p.Name, memorable(nil, p.Name, p.Data))
		h.addAs(l, h.idAt(l, l.ring.last+1), p.Name, p.Data, fragment{})
		return
	}
	first, begin := p.N-int64(len(p.Ends))+1, int32(0)
	for i, end := range p.Ends {
		text := p.Text[min(begin, int32(len(p.Text))):max(begin, min(end, int32(len(p.Text))))]
		begin = end
		if n := first + int64(i); n > have {
			m.grow(from, n, l.ring.last)
			h.addAs(l, h.idAt(l, l.ring.last+1), "delta", encodeFragment(p.Kind, text), fragment{p.Kind, text})
		}
	}
}

// turned notes whether a turn runs on a replica.
func (h *Hub) turned(l *log, from string, u *update) {
	m := &l.mirror
	set := func() {
		l.asked = questions{}
		for _, a := range u.Asked {
			l.asked.note(a)
		}
	}
	news := len(u.Parcels) > 0
	switch {
	case u.Turn != nil:
		if m.owner != from || m.turn.Number != u.Turn.Number {
			l.gen = h.gens.Add(1)
			l.last = nil
		}
		m.owner, m.turn = from, *u.Turn
		set()
	case m.owner == from || news && m.owner == "": // it is over, or came and went at once
		l.last = nil
		if news && u.Parcels[len(u.Parcels)-1].Name == "done" {
			l.last = &Turn{number: u.Known, record: m.record, done: event.Done{Turn: u.Known}}
		}
		m.owner, m.record = "", record{}
		l.gen = h.gens.Add(1)
		set()
	case m.owner != "":
	case l.known > 0 && u.Known > l.known: // a turn came and went, and its events are gone
		h.addHere(l, "reset", []byte(`{"type":"reset"}`))
	case u.Fresh && len(u.Asked) > 0: // the turn that ended there waits for a person
		set()
	}
	l.known = max(l.known, u.Known)
}

// marked sets the mark of a session whose turn runs elsewhere. The lock is held.
func (h *Hub) marked(l *log, m *Mark) {
	r := &l.mirror
	if r.owner == "" {
		return
	}
	m.Running = true
	for _, p := range []point{{r.turn.From, r.turn.FromSeq}, {r.turn.Step, r.turn.StepSeq}} {
		if at, ok := r.place(r.owner, p.n); ok && at >= l.ring.lost && (p.seq > 0 || p.n == r.turn.From) {
			m.After, m.Base = r.owner+"-"+strconv.FormatInt(p.n, 10), p.seq
			return
		}
	}
}

// lose ends a turn of a replica that is gone. The lock is held.
func (h *Hub) lose(l *log) {
	owner := l.mirror.owner
	if owner == "" {
		return
	}
	l.mirror.owner, l.mirror.record = "", record{}
	delete(l.mirror.have, owner)
	l.gen = h.gens.Add(1)
	l.asked = questions{}
	h.addHere(l, "failed", encodeFailed(replicaLost()))
}

// addHere is add for an event that other replicas do not get: they notice for
// themselves.
func (h *Hub) addHere(l *log, name string, data []byte) {
	at := l.ring.last + 1
	if h.relay != nil {
		l.mirror.grow(h.epoch, at, l.ring.last)
	}
	h.addAs(l, h.id(at), name, data, fragment{})
}

// keyFor is the key of a log as messages have it.
func keyFor(t [3]string) key { return key{t[0], t[1], t[2]} }

func (k key) topic() *[3]string { return &[3]string{k.tenant, k.who, k.session} }
