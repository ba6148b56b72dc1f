//lint:file-ignore SA1019 Clients and servers of before 2026-07-28 have what that version gave up.

package mcpserver

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/jsonvalid"
	"ken/internal/serve/clearmessage"
	"ken/internal/untrusted"
)

var (
	versionMark  = []byte(mcp.MetaKeyProtocolVersion)
	questionMark = []byte(`"` + questionPrefix)
)

// questionPrefix begins the ids of requests to the client that a [callStream] makes. Those of
// the SDK are numbers.
const questionPrefix = "ken-question-"

// primed is the first version of the protocol in which a stream begins with an event
// that has only an id: the client can ask for the rest with it. primeAfter is how long a
// call runs before that is sent. The answer of a shorter one needs no second try.
const (
	primed     = "2025-11-25"
	primeAfter = time.Second
)

// serveInSession serves what a client with a session sends about calls, past the SDK,
// which decodes each request several times into buffers of 32 KB. For everything that
// is unusual about a request it reports false and has done nothing: that is for the SDK.
func (ep *endpoint) serveInSession(w http.ResponseWriter, r *http.Request, body []byte) bool {
	version := r.Header.Get(headerVersion)
	if version >= sessionless || version != "" && !slices.Contains(mcp.SupportedProtocolVersions(), version) || !plainPost(r) {
		return false
	}
	id := r.Header.Get(headerSession)
	g := ep.s.guests.find(id, ep.key)
	if g == nil {
		return false
	}
	switch {
	case bytes.Contains(body, callMark):
		return ep.callInSession(w, r, g, version, body)
	case bytes.Contains(body, cancelMark):
		return g.cancelled(w, body)
	case bytes.Contains(body, questionMark):
		return g.answered(w, body)
	}
	return false
}

// callInSession makes the call of a plain request of tools/call.
func (ep *endpoint) callInSession(w http.ResponseWriter, r *http.Request, g *guest, version string, body []byte) bool {
	for _, mark := range [...][]byte{answerMark, stateMark, levelMark, versionMark} {
		if bytes.Contains(body, mark) {
			return false
		}
	}
	c, plain := clearmessage.ReadToolCall(body)
	if !plain {
		return false
	}
	if _, twice := untrusted.TwiceNamed(body, 0); twice {
		return false
	}
	var meta mcp.Meta
	if len(c.Meta) > 0 && json.Unmarshal(c.Meta, &meta) != nil {
		return false
	}
	// A connection that breaks cancels nothing: the client may ask for the answer again.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	switch began, twice := g.take(string(c.ID), cancel); {
	case twice:
		ep.writeError(w, http.StatusBadRequest, c.ID, fault(jsonrpc.CodeInvalidRequest, "a call with this id runs already; give each request an id of its own", nil))
		return true
	case !began:
		return false
	}
	defer g.drop(string(c.ID))
	if !ep.s.guests.begin(g.sess.id) {
		return false
	}
	defer ep.s.guests.finish(g.sess.id)
	p := &callStream{ep: ep, of: g, left: r.Context().Done(), w: w}
	if version >= primed {
		timer := time.AfterFunc(primeAfter, p.prime)
		defer timer.Stop()
	}
	req := &mcp.CallToolRequest{Session: g.ss, Params: &mcp.CallToolParamsRaw{Meta: meta, Name: c.Name, Arguments: c.Arguments}}
	a, err := ep.call(context.WithValue(ctx, callStreamKey{}, p), g.sess, req)
	p.end(c.ID, a, err)
	return true
}

// A callStream is the response to a request of a session whose call is made past the SDK.
// What the call reports and asks goes to the client as events before the answer. From
// the first of them on they are kept for a client that asks for them again.
type callStream struct {
	ep   *endpoint
	of   *guest
	left <-chan struct{} // closed when the client has gone

	mu     sync.Mutex
	w      http.ResponseWriter // nil: the response has ended
	stream string              // the name of the events; empty: there were none
	events int
}

// callStreamKey is for the callStream in the context of a call.
type callStreamKey struct{}

// prime tells the client how to ask for the events of a call that takes long.
func (p *callStream) prime() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events == 0 {
		p.event("prime", nil)
	}
}

// event sends one, and reports whether it could be. p.mu must be held.
func (p *callStream) event(name string, data []byte) bool {
	if p.w == nil {
		return false
	}
	if p.stream == "" {
		p.stream = rand.Text()
		p.of.hold(p.stream)
		h := p.w.Header()
		h["Cache-Control"], h["Content-Type"], h["Connection"] = uncached, eventType, keptAlive
	}
	_, err := p.w.Write(fmt.Appendf(nil, "event: %s\nid: %s\ndata: %s\n\n", name, p.keep(data), data))
	return err == nil && http.NewResponseController(p.w).Flush() == nil
}

// keep keeps an event, whose data it owns from then on, and returns its id, of the form
// that the SDK reads when a client asks for what follows. p.mu must be held.
func (p *callStream) keep(data []byte) string {
	if err := p.ep.kept.Append(context.Background(), p.of.sess.id, p.stream, data); err != nil {
		p.ep.s.log.Warn("an event is not kept for a client whose stream breaks", "error", err)
	}
	p.events++
	return p.stream + "_" + strconv.Itoa(p.events-1)
}

// end sends the answer. It may be sent again if anything was sent before it.
func (p *callStream) end(id json.RawMessage, a *answer, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stream == "" {
		p.ep.writeAnswer(p.w, id, false, a, err)
	} else {
		p.event("message", p.ep.message(nil, id, false, a, err))
		p.of.release(p.stream)
	}
	p.w = nil
}

// send passes on what the SDK has for the client: a notification, or a request, whose
// answer it waits for. What cannot go on this response goes the SDK's way.
func (p *callStream) send(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	m := struct {
		Version string     `json:"jsonrpc"`
		ID      string     `json:"id,omitempty"`
		Method  string     `json:"method"`
		Params  mcp.Params `json:"params,omitempty"`
	}{Version: "2.0", Method: method, Params: req.GetParams()}
	var reply chan *jsonrpc.Response
	if !strings.HasPrefix(method, "notifications/") {
		m.ID, reply = p.of.expect()
		defer p.of.forget(m.ID)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	sent := p.event("message", data)
	p.mu.Unlock()
	switch {
	case !sent:
		return next(ctx, method, req)
	case reply == nil:
		return nil, nil
	}
	select {
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		p.event("message", fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q}}`, m.ID))
		return nil, ctx.Err()
	case <-p.left:
		return nil, errors.New("the client closed the connection before it answered " + method)
	case m := <-reply:
		return replyTo(method, m)
	}
}

// replyTo decodes the answer of a client.
func replyTo(method string, m *jsonrpc.Response) (res mcp.Result, err error) {
	if m.Error != nil {
		return nil, m.Error
	}
	switch method {
	case "elicitation/create":
		// A person's word is read in one way only.
		for name := range untrusted.Members(m.Result) {
			if lower := strings.ToLower(name); lower != name && (lower == "action" || lower == "content") {
				return nil, fmt.Errorf("the member %q of the answer must be written %s", untrusted.Line(name, 40), lower)
			}
		}
		res = new(mcp.ElicitResult)
	case "sampling/createMessage":
		res = new(mcp.CreateMessageWithToolsResult)
	case "roots/list":
		res = new(mcp.ListRootsResult)
	default:
		return nil, fmt.Errorf("%s is nothing that Ken asks a client", method)
	}
	return res, json.Unmarshal(m.Result, res)
}

// take notes a call that begins, unless the session is over, or a call with the same
// id runs.
func (g *guest) take(id string, cancel context.CancelFunc) (began, twice bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls[id] != nil || g.gone {
		return false, !g.gone
	}
	if g.calls == nil {
		g.calls = map[string]context.CancelFunc{}
	}
	g.calls[id] = cancel
	return true, false
}

func (g *guest) drop(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.calls, id)
}

// leave ends the calls of a session that is over.
func (g *guest) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gone = true
	for _, cancel := range g.calls {
		cancel()
	}
}

// cancelled ends a call that is made past the SDK.
func (g *guest) cancelled(w http.ResponseWriter, body []byte) bool {
	id := cancelledID(body)
	if _, twice := untrusted.TwiceNamed(body, 0); id == "" || twice {
		return false
	}
	g.mu.Lock()
	cancel := g.calls[id]
	g.mu.Unlock()
	if cancel == nil {
		return false
	}
	cancel()
	w.WriteHeader(http.StatusAccepted)
	return true
}

// expect returns the id of a new request to the client, and where its answer comes.
func (g *guest) expect() (string, chan *jsonrpc.Response) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.questions == nil {
		g.questions = map[string]chan *jsonrpc.Response{}
	}
	id, reply := questionPrefix+rand.Text(), make(chan *jsonrpc.Response, 1)
	g.questions[id] = reply
	return id, reply
}

func (g *guest) forget(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.questions, id)
}

// answered takes the answer to a request of a callStream. Only the first counts.
func (g *guest) answered(w http.ResponseWriter, body []byte) bool {
	if !jsonvalid.Valid(body) || clearmessage.Unclear(body) != "" {
		return false
	}
	m, err := jsonrpc.DecodeMessage(body)
	res, ok := m.(*jsonrpc.Response)
	if err != nil || !ok {
		return false
	}
	id, _ := res.ID.Raw().(string)
	g.mu.Lock()
	reply := g.questions[id]
	delete(g.questions, id)
	g.mu.Unlock()
	if reply == nil {
		return false
	}
	reply <- res
	w.WriteHeader(http.StatusAccepted)
	return true
}

// hold notes that a stream of events goes on; release, that it has ended.
func (g *guest) hold(stream string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.streams == nil {
		g.streams = map[string]chan struct{}{}
	}
	g.streams[stream] = make(chan struct{})
}

func (g *guest) release(stream string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.streams[stream])
	delete(g.streams, stream)
}

// settled waits until the stream of which a client asks for the rest has all its
// events. It reports whether the client has waited, too.
func (g *guest) settled(r *http.Request) bool {
	stream, _, _ := strings.Cut(r.Header.Get("Last-Event-Id"), "_")
	g.mu.Lock()
	goes := g.streams[stream]
	g.mu.Unlock()
	if goes == nil {
		return true
	}
	select {
	case <-goes:
		return true
	case <-r.Context().Done():
		return false
	}
}
