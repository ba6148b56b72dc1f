package link

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/duration"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// reportRoom is how many reports of a call may wait for its Reporter.
const reportRoom = 256

// A pendingCall is a call that waits for the server's answer. It outlives the Call
// that made it only while it is parked.
type pendingCall struct {
	token  string    // the progress token
	serial uint64    // higher is newer
	who    [2]string // tenant and id of whose call it is
	about  string    // binds a call that is made again to this one; set when parked

	bind func() (string, error) // returns what about would be

	ctx    context.Context
	cancel context.CancelFunc
	asked  chan struct{} // takes one: there are questions
	done   chan struct{} // closed when res and err are set

	// raw is the result as it came, set before the SDK sees one. It may be set
	// after the call was cancelled, too.
	raw atomic.Pointer[json.RawMessage]
	res capability.Result
	err error

	over atomic.Pointer[oversized] // the answer was too long

	// Guarded by pendingCalls.mu.
	reports   chan report // nil: no listener
	dropped   int
	questions map[string]*question
	asks      int
	state     string // under which it is parked
	timer     *time.Timer
}

// keep takes the result as it came, and leaves an empty one for the SDK.
func (p *pendingCall) keep(m *jsonrpc.Response) {
	raw := m.Result
	p.raw.Store(&raw)
	m.Result = emptyResult
}

// report queues a report. It never waits: a slow listener loses reports, not
// the connection its time. pendingCalls.mu is held.
func (p *pendingCall) report(r report) {
	if p.reports == nil {
		return
	}
	select {
	case p.reports <- r:
	default:
		p.dropped++
	}
}

// signal says that there are questions.
func (p *pendingCall) signal() {
	select {
	case p.asked <- struct{}{}:
	default:
	}
}

// A report is progress, or with a level a line for a log.
type report struct {
	done, total   float64
	message       string
	level, logger string
	data          json.RawMessage
}

func (r report) tell(to capability.Reporter) {
	if r.level == "" {
		to.Progress(r.done, r.total, r.message)
	} else {
		to.Note(r.level, r.logger, r.data)
	}
}

// pendingCalls are the calls of a connection that wait for the server, and those
// that are parked: they wait for the answers to questions of the server.
type pendingCalls struct {
	parkTime time.Duration // how long a call may be parked
	maxParks int

	mu      sync.Mutex
	byToken map[string]*pendingCall // by progress token
	parked  map[string]*pendingCall // by state
	serial  uint64                  // of the last call
	closed  bool                    // no more are added
}

func newPendingCalls(cfg Config) *pendingCalls {
	return &pendingCalls{parkTime: cfg.ParkTime, maxParks: cfg.MaxParks, byToken: make(map[string]*pendingCall), parked: make(map[string]*pendingCall)}
}

// add gives a call its number and its token. It reports false once the connection
// is closed.
func (c *pendingCalls) add(p *pendingCall) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.serial++
	p.serial = c.serial
	p.token = "ken-" + strconv.FormatUint(p.serial, 36)
	c.byToken[p.token] = p
	return true
}

// remove takes a call off the list of those that may still be asked about.
func (c *pendingCalls) remove(p *pendingCall) {
	c.mu.Lock()
	delete(c.byToken, p.token)
	c.mu.Unlock()
}

// close lets no more calls be added.
func (c *pendingCalls) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
}

func (c *pendingCalls) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// cancelAll ends every call that is on the connection.
func (c *pendingCalls) cancelAll() {
	c.mu.Lock()
	var all []*pendingCall
	for _, p := range c.byToken {
		all = append(all, p)
	}
	for _, p := range c.parked {
		c.unpark(p)
		all = append(all, p)
	}
	c.mu.Unlock()
	for _, p := range all {
		p.cancel()
	}
}

// tokenKey begins the progress token in the parameters of a call. They are the
// first member of the object, since "_meta" is, and this program wrote them.
var tokenKey = []byte(`"progressToken":"`)

// of returns the call whose request has the given parameters, or nil.
func (c *pendingCalls) of(params json.RawMessage) *pendingCall {
	head := params[:min(len(params), 4096)]
	i := bytes.Index(head, tokenKey)
	if i < 0 {
		return nil
	}
	head = head[i+len(tokenKey):]
	end := bytes.IndexByte(head, '"')
	if end < 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byToken[string(head[:end])]
}

// progress passes a report to the call with a token.
func (c *pendingCalls) progress(token string, r report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.byToken[token]; p != nil {
		p.report(r)
	}
}

// logged passes a line for the log to the call it belongs to, and reports whether
// there is one that listens. The protocol does not say which call that is, and if
// calls of several people are pending, none of them may read another's lines.
func (c *pendingCalls) logged(r report) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.askable()
	if p == nil || p.reports == nil {
		return false
	}
	p.report(r)
	return true
}

// flush hands over what was reported before the end of a call, and how much was
// not.
func (c *pendingCalls) flush(p *pendingCall, to capability.Reporter) {
	if to == nil {
		return
	}
	for {
		select {
		case rep := <-p.reports:
			rep.tell(to)
			continue
		default:
		}
		break
	}
	c.mu.Lock()
	dropped := p.dropped
	p.dropped = 0
	c.mu.Unlock()
	if dropped > 0 {
		to.Note("warning", "ken", json.RawMessage(strconv.Quote(fmt.Sprintf("%d progress reports arrived too fast and were dropped", dropped))))
	}
}

// askable returns the call that a request of the server belongs to, as far as
// that can be told: the newest one without an open question. It is nil when
// calls of different people are pending, since the answer of one must not
// decide for the other. c.mu is held.
func (c *pendingCalls) askable() (p *pendingCall) {
	var newest, oldest *pendingCall
	for _, one := range c.byToken {
		if oldest != nil && oldest.who != one.who {
			return nil
		}
		oldest = one
		if len(one.questions) == 0 && (newest == nil || one.serial > newest.serial) {
			newest = one
		}
		if p == nil || one.serial > p.serial {
			p = one
		}
	}
	if newest != nil {
		return newest
	}
	return p
}

// ask puts a question to the caller of the call that it belongs to, and waits for
// the answer, which is nil where none comes. It reports false where no call can be
// asked.
func (c *pendingCalls) ask(ctx context.Context, text json.RawMessage) (answer json.RawMessage, asked bool) {
	c.mu.Lock()
	p := c.askable()
	if p == nil || len(p.questions) >= questionRoom {
		c.mu.Unlock()
		return nil, false
	}
	p.asks++
	name := "q" + strconv.Itoa(p.asks)
	q := &question{text: text, reply: make(chan json.RawMessage, 1)}
	if p.questions == nil {
		p.questions = make(map[string]*question)
	}
	p.questions[name] = q
	p.signal()
	c.mu.Unlock()

	select {
	case answer = <-q.reply:
	case <-ctx.Done():
	case <-p.ctx.Done():
	}
	c.mu.Lock()
	delete(p.questions, name)
	c.mu.Unlock()
	return answer, true
}

// park leaves a call with open questions waiting and returns the inquiry as an
// error, or nil when there is nothing to ask any more.
func (c *pendingCalls) park(call *capability.Call, r request, p *pendingCall) error {
	about, err := binding(call, r)
	if err != nil {
		return &capability.Error{Kind: capability.Invalid, Op: r.op, Target: r.name, Err: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(p.questions) == 0 {
		return nil
	}
	if len(c.parked) >= c.maxParks {
		p.cancel()
		return &capability.Error{Kind: capability.Unavailable, Op: r.op, Target: r.name,
			Err: fmt.Errorf("the server asks a question, but the limit of %d calls waiting for answers is reached", len(c.parked)),
			Fix: "answer or cancel some of them first"}
	}
	inquiry := &capability.Inquiry{Requests: make(map[string]json.RawMessage, len(p.questions)), State: rand.Text()}
	for name, q := range p.questions {
		inquiry.Requests[name] = q.text
	}
	p.about, p.state = about, inquiry.State
	c.parked[p.state] = p
	p.timer = time.AfterFunc(c.parkTime, func() { c.expire(inquiry.State) })
	return &capability.Error{Kind: capability.InputNeeded, Op: r.op, Target: r.name, Err: inquiry}
}

// resume hands the answers of a call that is made again to the one that is parked
// under its state, and returns that one.
func (c *pendingCalls) resume(call *capability.Call, r request) (*pendingCall, error) {
	about, err := binding(call, r)
	if err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: r.op, Target: r.name, Err: err}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.parked[call.State]
	if p == nil || p.about != about {
		return nil, &capability.Error{Kind: capability.Conflict, Op: r.op, Target: r.name,
			Err: fmt.Errorf("no call is waiting for these answers; a call waits at most %s", duration.Text(c.parkTime)),
			Fix: "make the call again without answers and state"}
	}
	c.unpark(p)
	for name, q := range p.questions {
		if answer, ok := call.Answers[name]; ok {
			q.reply <- formOf(q.text).complete(answer)
			delete(p.questions, name)
		}
	}
	if len(p.questions) > 0 {
		p.signal()
	}
	if _, ok := call.Live.(capability.Reporter); ok && p.reports == nil {
		p.reports = make(chan report, reportRoom)
	} else if !ok {
		p.reports = nil
	}
	return p, nil
}

// unpark takes a call out of the parked ones. c.mu is held.
func (c *pendingCalls) unpark(p *pendingCall) {
	delete(c.parked, p.state)
	p.state = ""
	p.timer.Stop()
}

// expire ends a call whose questions were not answered.
func (c *pendingCalls) expire(state string) {
	c.mu.Lock()
	p := c.parked[state]
	if p != nil {
		c.unpark(p)
		for name, q := range p.questions {
			q.reply <- nil
			delete(p.questions, name)
		}
	}
	c.mu.Unlock()
	if p != nil {
		p.cancel()
	}
}
