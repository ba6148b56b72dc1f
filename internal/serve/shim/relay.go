package shim

import (
	"bytes"
	"errors"
	"strconv"
)

// A relay is what passes between one client and the daemons that serve it, one
// after another. It knows what the client has asked and not been answered, and
// what it said to begin its session, so that a new daemon can go on where a dead
// one ended. It waits for nothing and is for one goroutine.
//
// A request that went to a daemon which died is never made again: the client is
// told that its outcome is unknown. What had not been written yet goes to
// the next daemon.
//
// See docs/decisions/2026-11-16-windows-outlive-the-daemon.md.
type relay struct {
	pid   int  // of the daemon
	turn  int  // how many daemons there were before it
	heard bool // its first line, which says whether we are served

	up upstream // to the daemon

	// To the client.
	from []byte // what the daemon said, no whole line yet
	to   []byte // not written yet

	flights []pendingRequest
	asked   []question

	session clientSession

	mine     int    // how many requests of our own there were
	awaiting string // the key of our initialize: nothing else is said before its answer
	replies  []reply
}

// A clientSession is what the client said to begin its session and what it
// follows, in its words: a new daemon is told it again.
type clientSession struct {
	begin   []byte // initialize; nil: the client has no sessions
	version []byte // that was agreed on; nil: not answered yet
	ready   []byte // notifications/initialized
	level   []byte // logging/setLevel
	subs    []subscription
	listed  [3]bool // the lists that it has asked for, as in lists
}

// An upstream is what is written to the daemon.
type upstream struct {
	in     []byte   // what the client said, not taken yet
	closed bool     // the client says no more
	own    [][]byte // what we say in the client's name, before what it says
	now    []byte   // the line that is being written
	raw    []byte   // as the client said it; nil: it is ours
	wrote  int      // of now
	added  int      // how many requests it began
	long   bool     // what is taken next belongs to a line that is too long to keep
	skip   bool     // and the daemon that had its beginning is gone
}

// A pendingRequest is a request of the client's that has no answer.
type pendingRequest struct {
	key    string
	id     []byte
	method string
	line   []byte // of what is made again: initialize and subscriptions/listen
	acked  bool   // the subscription was confirmed
	again  bool   // it is being made again, and confirmed once more
}

// A question is a request of the daemon's that has no answer.
type question struct {
	key string // as the client has it
	id  []byte // as the client has it
	was []byte // as the daemon has it
}

type subscription struct {
	uri  string
	line []byte
	lost bool // the new daemon did not know the resource when it was asked
}

// A reply is one to a request of our own.
type reply struct {
	key string
	sub string // the resource, of a subscription
}

// lists are what is listed, with the notifications of changes.
var lists = [...]struct{ method, changed, wanted string }{
	{"tools/list", "notifications/tools/list_changed", "toolslistchanged"},
	{"prompts/list", "notifications/prompts/list_changed", "promptslistchanged"},
	{"resources/list", "notifications/resources/list_changed", "resourceslistchanged"},
}

const (
	listen         = "subscriptions/listen"
	resourceList   = 2 // in lists
	subscriptionID = "io.modelcontextprotocol/subscriptionId"

	// longest is how much of a line is kept; the daemon refuses shorter ones.
	longest = 8 << 20
)

// full reports whether nothing more is to be read of the client for now.
func (r *relay) full() bool {
	return r.up.closed || r.awaiting != "" || r.up.now != nil || len(r.up.own) > 0 || bytes.IndexByte(r.up.in, '\n') >= 0
}

// says takes what the client said.
func (r *relay) says(b []byte) { r.up.in = append(r.up.in, b...) }

// next returns what is to be written to the daemon.
func (r *relay) next() []byte {
	for r.up.now == nil && r.take() {
	}
	return r.up.now[min(r.up.wrote, len(r.up.now)):]
}

// written notes how much of it was.
func (r *relay) written(n int) {
	if r.up.wrote += n; r.up.wrote >= len(r.up.now) {
		r.up.now, r.up.raw, r.up.wrote, r.up.added = nil, nil, 0, 0
	}
}

// done reports whether the client says no more and all of it was written.
func (r *relay) done() bool { return r.up.closed && len(r.next()) == 0 && r.awaiting == "" }

// take makes the next line the one that is written, if there is one; it may be
// one that is left out.
func (r *relay) take() bool {
	r.up.raw, r.up.wrote, r.up.added = nil, 0, 0
	if len(r.up.own) > 0 {
		r.up.now, r.up.own = r.up.own[0], r.up.own[1:]
		return true
	}
	if r.awaiting != "" {
		return false
	}
	if r.up.skip {
		end := bytes.IndexByte(r.up.in, '\n') + 1
		if r.up.in = r.up.in[end:]; end == 0 {
			r.up.in = nil
			return false
		}
		r.up.skip = false
	}
	end := bytes.IndexByte(r.up.in, '\n') + 1
	if end == 0 && len(r.up.in) > 0 && (r.up.closed || r.up.long || len(r.up.in) > longest) {
		end = len(r.up.in)
	}
	if end == 0 {
		return false
	}
	line := r.up.in[:end:end]
	if r.up.in = r.up.in[end:]; len(r.up.in) == 0 {
		r.up.in = nil
	}
	whole := line[end-1] == '\n'
	if r.up.long || !whole && !r.up.closed {
		// Of such a line nothing is known; the daemon refuses it.
		r.up.long = !whole
		r.up.now = line
		return true
	}
	r.up.now, r.up.raw = r.outgoing(line), line
	return true
}

// outgoing notes what a line of the client's asks for and returns it as the
// daemon is to have it: nil where it is not.
func (r *relay) outgoing(line []byte) []byte {
	if batch := elements(line); batch != nil {
		kept := [][]byte{}
		for _, one := range batch {
			if out := r.outgoingOne(one, false); out != nil {
				kept = append(kept, out)
			}
		}
		switch {
		case r.turn == 0:
			return line
		case len(kept) == 0:
			return nil
		}
		return append(append([]byte("["), bytes.Join(kept, []byte(","))...), "]\n"...)
	}
	return r.outgoingOne(line, true)
}

func (r *relay) outgoingOne(text []byte, alone bool) []byte {
	m, ok := readMessage(text, false)
	switch {
	case !ok:
	case m.response:
		return r.answered(text, m)
	case m.request():
		r.fly(text, m, alone)
	case m.method == "notifications/initialized":
		r.session.ready = bytes.Clone(text)
	case m.method == "notifications/cancelled":
		r.forget(key(member(m.params, "requestid")))
	}
	return text
}

// answered returns an answer to what the daemon asked. One to what a dead one
// asked is left out: the next daemon's questions have the same ids.
func (r *relay) answered(text []byte, m message) []byte {
	k := key(m.id)
	for i, q := range r.asked {
		if q.key == k {
			r.asked = append(r.asked[:i], r.asked[i+1:]...)
			return replace(text, m.idAt, len(m.id), q.was)
		}
	}
	if r.turn == 0 {
		return text
	}
	return nil
}

// replace returns text with n bytes of it exchanged.
func replace(text []byte, at, n int, by []byte) []byte {
	if bytes.Equal(text[at:at+n], by) {
		return text
	}
	out := make([]byte, 0, len(text)-n+len(by))
	return append(append(append(out, text[:at]...), by...), text[at+n:]...)
}

// fly notes a request of the client's.
func (r *relay) fly(text []byte, m message, alone bool) {
	f := pendingRequest{key: key(m.id), id: bytes.Clone(m.id), method: m.method}
	switch {
	case !alone: // what is in a batch is not made again
	case m.method == "initialize":
		f.line = bytes.Clone(text)
		r.session.begin, r.session.version, r.session.ready = f.line, nil, nil
	case m.method == listen:
		f.line = bytes.Clone(text)
	case m.method == "logging/setLevel":
		r.session.level = bytes.Clone(text)
	case m.method == "resources/subscribe":
		uri := key(member(m.params, "uri"))
		r.unsubscribe(uri)
		r.session.subs = append(r.session.subs, subscription{uri: uri, line: bytes.Clone(text)})
	case m.method == "resources/unsubscribe":
		r.unsubscribe(key(member(m.params, "uri")))
	}
	for i := range lists {
		r.session.listed[i] = r.session.listed[i] || lists[i].method == m.method
	}
	r.flights = append(r.flights, f)
	r.up.added++
}

func (r *relay) unsubscribe(uri string) {
	for i := range r.session.subs {
		if r.session.subs[i].uri == uri {
			r.session.subs = append(r.session.subs[:i], r.session.subs[i+1:]...)
			return
		}
	}
}

// forget drops a request that was answered, or that is not waited for.
func (r *relay) forget(k string) (f pendingRequest, ok bool) {
	for i := range r.flights {
		if f = r.flights[i]; f.key == k {
			r.flights = append(r.flights[:i], r.flights[i+1:]...)
			return f, true
		}
	}
	return pendingRequest{}, false
}

// hears takes what the daemon said. The error is why it does not serve us, or
// cannot go on with our session.
func (r *relay) hears(b []byte) error {
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n') + 1
		if end == 0 {
			r.from = append(r.from, b...)
			if !r.heard && len(r.from) > MaxReply {
				return errors.New("the daemon's answer is too long; it may be of another version")
			}
			return nil
		}
		line := b[:end]
		if len(r.from) > 0 {
			line = append(r.from, line...)
			r.from = nil
		}
		b = b[end:]
		if !r.heard {
			r.heard = true
			reply, err := parseReply(line)
			if err == nil && !reply.OK {
				err = errors.New(reply.Error)
			}
			if err != nil {
				return err
			}
			continue
		}
		out, err := r.incoming(line)
		if err != nil {
			return err
		}
		r.to = append(r.to, out...)
	}
	return nil
}

// incoming notes what a line of the daemon's says and returns it as the client is
// to have it: nil where it is not.
func (r *relay) incoming(line []byte) ([]byte, error) {
	if batch := elements(line); batch != nil {
		for _, one := range batch {
			if m, ok := readMessage(one, false); ok && m.response {
				r.forget(key(m.id))
			}
		}
		return line, nil
	}
	m, ok := readMessage(line, false)
	switch {
	case !ok:
	case m.response:
		return r.response(line, m)
	case m.request():
		return r.question(line, m), nil
	default:
		return r.notification(line, m), nil
	}
	return line, nil
}

func (r *relay) response(line []byte, m message) ([]byte, error) {
	k := key(m.id)
	for i, p := range r.replies {
		if p.key == k {
			r.replies = append(r.replies[:i], r.replies[i+1:]...)
			return nil, r.replied(line, p)
		}
	}
	f, ok := r.forget(k)
	if ok && f.method == "initialize" {
		m, _ = readMessage(line, true)
		if r.session.version = append([]byte{}, member(m.result, "protocolversion")...); m.failed {
			r.session.begin = nil // no session has begun
		}
	}
	return line, nil
}

// replied takes the answer to a request of our own.
func (r *relay) replied(line []byte, p reply) error {
	m, _ := readMessage(line, true)
	if p.key == r.awaiting {
		r.awaiting = ""
		switch version := member(m.result, "protocolversion"); {
		case m.failed:
			return errors.New("go on with the client's session: the daemon refuses its initialize; start this server again")
		case !bytes.Equal(version, r.session.version):
			return errors.New("go on with the client's session: the daemon speaks version " + string(version) + " of MCP, and the client " + string(r.session.version) + "; start this server again")
		}
		r.goOn()
		return nil
	}
	for i := range r.session.subs {
		if p.sub != "" && r.session.subs[i].uri == p.sub {
			r.session.subs[i].lost = m.failed
		}
	}
	return nil
}

// question notes what the daemon asks. After a restart it has another id, by
// which an answer is known to be to this daemon.
func (r *relay) question(line []byte, m message) []byte {
	q := question{id: bytes.Clone(m.id), was: bytes.Clone(m.id)}
	if r.turn > 0 {
		q.id = quote(nil, "ken"+strconv.Itoa(r.turn)+":"+key(m.id))
	}
	q.key = key(q.id)
	r.asked = append(r.asked, q)
	return replace(line, m.idAt, len(m.id), q.id)
}

func (r *relay) notification(line []byte, m message) []byte {
	switch m.method {
	case "notifications/cancelled":
		of := member(m.params, "requestid")
		for i, q := range r.asked {
			if key(q.was) == key(of) && of != nil {
				r.asked = append(r.asked[:i], r.asked[i+1:]...)
				return replace(line, cap(line)-cap(of), len(of), q.id) // of is a part of line
			}
		}
	case "notifications/subscriptions/acknowledged":
		k := key(member(member(m.params, "_meta"), lower(subscriptionID)))
		for i := range r.flights {
			if f := &r.flights[i]; f.key == k && f.method == listen {
				again := f.again
				f.acked, f.again = true, false
				if again {
					return nil
				}
			}
		}
	case lists[resourceList].changed:
		for i := range r.session.subs {
			if s := &r.session.subs[i]; s.lost {
				s.lost = false
				r.askMyself(s.line, s.uri)
			}
		}
	}
	return line
}

// askMyself makes a request of the client's once more, under an id of our own.
// Its answer is not the client's.
func (r *relay) askMyself(line []byte, sub string) (k string) {
	m, _ := readMessage(line, false)
	r.mine++
	id := quote(nil, "ken-again-"+strconv.Itoa(r.mine))
	r.replies = append(r.replies, reply{key(id), sub})
	r.up.own = append(r.up.own, replace(line, m.idAt, len(m.id), id))
	return key(id)
}

// lost notes that the daemon is gone: what it did not answer is answered here,
// and what it did not read is kept for the next.
func (r *relay) lost() {
	if r.up.raw != nil && r.up.wrote < len(r.up.now)-1 { // it did not get enough of it to understand it
		r.up.in = append(bytes.Clone(r.up.raw), r.up.in...)
		r.flights = r.flights[:len(r.flights)-r.up.added]
	}
	r.up.skip, r.up.long = r.up.skip || r.up.long, false
	r.up.now, r.up.raw, r.up.wrote, r.up.added, r.up.own = nil, nil, 0, 0, nil
	r.from, r.heard, r.awaiting, r.replies = nil, false, "", nil
	kept := r.flights[:0]
	for _, f := range r.flights {
		if f.line != nil {
			kept = append(kept, f)
			continue
		}
		r.to = append(r.to, r.unanswered(f)...)
	}
	r.flights = kept
	for _, q := range r.asked {
		r.to = append(r.to, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`...)
		r.to = append(append(r.to, q.id...), `,"reason":"the daemon that asked has ended"}}`+"\n"...)
	}
	r.asked = nil
	r.turn++
}

// unanswered is the answer to a request that was lost with its daemon.
func (r *relay) unanswered(f pendingRequest) []byte {
	text := f.method + " with id " + string(f.id) + ": the daemon (process " + strconv.Itoa(r.pid) + ") ended before it answered. "
	outcome := "unanswered"
	switch f.method {
	case "ping", "tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		text += "Ask again."
	default:
		outcome = "unknown"
		text += "Whether it ran is unknown, and Ken does not run it again. If it had begun, ken audit query shows it as unknown. Check what it changed before you repeat it."
	}
	return fault(f.id, text, outcome, f.method)
}

// fault is an answer with an error.
func fault(id []byte, text, outcome, method string) []byte {
	const code = "-32000" // of the server's own errors
	b := append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"error":{"code":`+code+`,"message":`...)
	b = quote(b, text)
	b = quote(append(b, `,"data":{"outcome":`...), outcome)
	b = quote(append(b, `,"method":`...), method)
	b = append(append(b, `,"requestId":`...), id...)
	return append(b, "}}}\n"...)
}

// joined begins with a new daemon.
func (r *relay) joined(pid int) {
	r.pid = pid
	if r.turn == 0 {
		return
	}
	switch {
	case r.session.begin == nil:
	case r.session.version != nil:
		r.awaiting = r.askMyself(r.session.begin, "")
		return
	default:
		for _, f := range r.flights {
			if f.method == "initialize" {
				r.up.own = append(r.up.own, f.line) // its answer is the client's
			}
		}
	}
	r.goOn()
}

// goOn says to a new daemon what the session had come to, and tells the client
// which lists it may find changed.
func (r *relay) goOn() {
	if r.session.ready != nil {
		r.up.own = append(r.up.own, r.session.ready)
	}
	if r.session.level != nil {
		r.askMyself(r.session.level, "")
	}
	if len(r.session.subs) > 0 {
		// Who has listed resources is told when others come, and can subscribe
		// to those then.
		r.mine++
		id := quote(nil, "ken-again-"+strconv.Itoa(r.mine))
		r.replies = append(r.replies, reply{key: key(id)})
		r.up.own = append(r.up.own, append(append([]byte(`{"jsonrpc":"2.0","id":`), id...), `,"method":"resources/list","params":{}}`+"\n"...))
	}
	for _, s := range r.session.subs {
		r.askMyself(s.line, s.uri)
	}
	for i := range r.flights {
		f := &r.flights[i]
		if f.method != listen {
			continue
		}
		f.again = f.acked
		r.up.own = append(r.up.own, f.line)
		m, _ := readMessage(f.line, false)
		wants := member(m.params, "notifications")
		for _, l := range lists {
			if f.acked && string(member(wants, l.wanted)) == "true" {
				b := append([]byte(`{"jsonrpc":"2.0","method":"`+l.changed+`","params":{"_meta":{"`+subscriptionID+`":`), f.id...)
				r.to = append(append(r.to, b...), "}}}\n"...)
			}
		}
	}
	for i, l := range lists {
		if r.session.listed[i] && r.session.ready != nil {
			r.to = append(r.to, `{"jsonrpc":"2.0","method":"`+l.changed+`"}`+"\n"...)
		}
	}
}

// giveUp answers all that waits: no daemon will.
func (r *relay) giveUp(why string) {
	r.lost()
	for _, f := range r.flights {
		r.to = append(r.to, fault(f.id, f.method+" with id "+string(f.id)+": "+why, "unanswered", f.method)...)
	}
	r.flights = nil
	for r.up.in != nil {
		end := bytes.IndexByte(r.up.in, '\n') + 1
		if end == 0 {
			end = len(r.up.in)
		}
		line := r.up.in[:end]
		if r.up.in = r.up.in[end:]; len(r.up.in) == 0 {
			r.up.in = nil
		}
		if m, ok := readMessage(line, false); ok && m.request() {
			r.to = append(r.to, fault(m.id, m.method+" with id "+string(m.id)+": it was not sent: "+why, "unsent", m.method)...)
		}
	}
}
