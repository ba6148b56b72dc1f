package link

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"time"

	"ken/capability"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	// questionRoom is how many questions of one call may be open.
	questionRoom = 16

	// visited is the State of an inquiry that sends a person to a page and
	// leaves nothing waiting.
	visited = "visited"
)

// A question is a request of the server that waits for its answer.
type question struct {
	text  json.RawMessage // {"method": …, "params": …}
	reply chan json.RawMessage
}

// ask answers a request of the server: by asking the caller of the call it
// belongs to, and outside of calls from what is configured.
func (l *Link) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	text, err := questionText(method, params)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "parameters are no JSON"}
	}
	if d, no := l.denied(method, params); no {
		return nil, d.wire()
	}
	l.mu.Lock()
	f := l.askable()
	if f == nil || len(f.questions) >= questionRoom {
		l.mu.Unlock()
		if method == "roots/list" {
			return l.roots(), nil // it decides nothing for anybody
		}
		return unanswered(method)
	}
	f.asks++
	name := "q" + strconv.Itoa(f.asks)
	q := &question{text: text, reply: make(chan json.RawMessage, 1)}
	if f.questions == nil {
		f.questions = make(map[string]*question)
	}
	f.questions[name] = q
	f.signal()
	l.mu.Unlock()

	var answer json.RawMessage
	select {
	case answer = <-q.reply:
	case <-ctx.Done():
	case <-f.ctx.Done():
	}
	l.mu.Lock()
	delete(f.questions, name)
	l.mu.Unlock()
	if !json.Valid(answer) {
		return unanswered(method)
	}
	return answer, nil
}

func questionText(method string, params json.RawMessage) (json.RawMessage, error) {
	if !present(params) {
		params = emptyResult // some clients cannot read a request without any
	}
	return json.Marshal(struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}{method, params})
}

// askable returns the call that a request of the server belongs to, as far as
// that can be told: the newest one without an open question. It is nil when
// calls of different people are in flight, since the answer of one must not
// decide for the other. l.mu is held.
func (l *Link) askable() (f *flight) {
	var newest, oldest *flight
	for _, g := range l.flights {
		if oldest != nil && oldest.who != g.who {
			return nil
		}
		oldest = g
		if len(g.questions) == 0 && (newest == nil || g.serial > newest.serial) {
			newest = g
		}
		if f == nil || g.serial > f.serial {
			f = g
		}
	}
	if newest != nil {
		return newest
	}
	return f
}

func (f *flight) signal() {
	select {
	case f.asked <- struct{}{}:
	default:
	}
}

// unanswered is what a server hears when no one can be asked.
func unanswered(method string) (json.RawMessage, error) {
	if method == "elicitation/create" {
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	return nil, &jsonrpc.Error{Code: -1, Message: "no client can answer " + method}
}

func (l *Link) roots() json.RawMessage {
	type root struct {
		URI  string `json:"uri"`
		Name string `json:"name,omitempty"`
	}
	roots := make([]root, 0, len(l.cfg.Roots))
	for _, dir := range l.cfg.Roots {
		u := url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}
		roots = append(roots, root{URI: u.String(), Name: filepath.Base(dir)})
	}
	raw, err := json.Marshal(map[string]any{"roots": roots})
	if err != nil {
		return json.RawMessage(`{"roots":[]}`) // unreachable: strings only
	}
	return raw
}

// park leaves a flight with open questions waiting and gives the inquiry as an
// error, or nil when there is nothing to ask any more.
func (l *Link) park(call capability.Call, r request, f *flight) error {
	about, err := binding(call, r)
	if err != nil {
		return &capability.Error{Kind: capability.Invalid, Op: r.op, Target: r.name, Err: err}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(f.questions) == 0 {
		return nil
	}
	if len(l.parks) >= l.cfg.MaxParks {
		f.cancel()
		return &capability.Error{Kind: capability.Unavailable, Op: r.op, Target: r.name,
			Err: fmt.Errorf("the server asks something, and %d calls wait for answers already, which is the most there may be", len(l.parks)),
			Fix: "answer or drop some of them first"}
	}
	inquiry := &capability.Inquiry{Requests: make(map[string]json.RawMessage, len(f.questions)), State: rand.Text()}
	for name, q := range f.questions {
		inquiry.Requests[name] = q.text
	}
	f.about, f.state = about, inquiry.State
	l.parks[f.state] = f
	f.timer = time.AfterFunc(l.cfg.ParkTime, func() { l.expire(inquiry.State) })
	return &capability.Error{Kind: capability.InputNeeded, Op: r.op, Target: r.name, Err: inquiry}
}

// binding identifies what a call is about, so that an answer resumes no other.
func binding(call capability.Call, r request) (string, error) {
	digest, err := capability.Call{Target: call.Target, Action: r.op + " " + r.name, Arguments: call.Arguments,
		Principal: call.Principal, Session: call.Session}.Digest()
	if err != nil {
		return "", fmt.Errorf("arguments: %w", err)
	}
	return digest, nil
}

// resume hands answers to a parked call and goes on waiting for it.
func (l *Link) resume(ctx context.Context, call capability.Call, r request) (capability.Result, error) {
	about, err := binding(call, r)
	if err != nil {
		return capability.Result{}, &capability.Error{Kind: capability.Invalid, Op: r.op, Target: r.name, Err: err}
	}
	l.mu.Lock()
	f := l.parks[call.State]
	if f == nil || f.about != about {
		l.mu.Unlock()
		return capability.Result{}, &capability.Error{Kind: capability.Conflict, Op: r.op, Target: r.name,
			Err: fmt.Errorf("call not found for these answers; a call waits at most %v", l.cfg.ParkTime),
			Fix: "make the call again without answers and state"}
	}
	l.unpark(f)
	for name, q := range f.questions {
		if answer, ok := call.Answers[name]; ok {
			q.reply <- formOf(q.text).complete(answer)
			delete(f.questions, name)
		}
	}
	if len(f.questions) > 0 {
		f.signal()
	}
	if _, ok := call.Live.(capability.Reporter); ok && f.reports == nil {
		f.reports = make(chan report, reportRoom)
	} else if !ok {
		f.reports = nil
	}
	l.mu.Unlock()
	return l.attend(ctx, call, r, f)
}

// unpark takes a flight out of the parks. l.mu is held.
func (l *Link) unpark(f *flight) {
	delete(l.parks, f.state)
	f.state = ""
	f.timer.Stop()
}

// expire ends a call whose questions were not answered.
func (l *Link) expire(state string) {
	l.mu.Lock()
	f := l.parks[state]
	if f != nil {
		l.unpark(f)
		for name, q := range f.questions {
			q.reply <- nil
			delete(f.questions, name)
		}
	}
	l.mu.Unlock()
	if f != nil {
		f.cancel()
	}
}

// ground ends every call that is on the link.
func (l *Link) ground() {
	l.mu.Lock()
	var all []*flight
	for _, f := range l.flights {
		all = append(all, f)
	}
	for _, f := range l.parks {
		l.unpark(f)
		all = append(all, f)
	}
	l.mu.Unlock()
	for _, f := range all {
		f.cancel()
	}
}

// declined is the error of a call that is made again after its person was sent
// to a page and did not agree.
func (l *Link) declined(call capability.Call, r request) error {
	for _, raw := range call.Answers {
		var answer struct{ Action string }
		if json.Unmarshal(raw, &answer) != nil || answer.Action != "accept" {
			return &capability.Error{Kind: capability.Denied, Op: r.op, Target: r.name,
				Err: errors.New("the page that the server wants visited was not agreed to")}
		}
	}
	return nil
}
