//lint:file-ignore SA1019 Clients of before 2026-07-28 have what that version gave up.

package mcpsession

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/serve/refusal"
	"ken/internal/untrusted"
)

// away is how long a question waits for a client whose connection broke. Clients come
// back within seconds, and a server that stops waits half a minute for its calls.
const away = 20 * time.Second

// A Stream is the response to a request of a session whose call is made past the SDK.
// What the call reports and asks goes to the client as events before the answer. From
// the first of them on they are kept for a client whose connection breaks: it gets what
// it has missed, and then what follows, when it asks with the id of an event.
type Stream struct {
	of   *Session
	kept *mcp.MemoryEventStore
	log  *slog.Logger
	over chan struct{} // closed after the answer

	mu     sync.Mutex
	to     *connection
	name   string // of the events; empty: there were none
	events int
}

// A connection is one on which a client reads a stream.
type connection struct {
	w        http.ResponseWriter // nil: it has ended
	left     <-chan struct{}     // closed when the client has gone
	replaced chan struct{}       // closed when the client reads on another one
}

// Stream returns the response to r. Its events are kept in a store, which the SDK reads
// if the client asks for them after the call.
func (s *Session) Stream(w http.ResponseWriter, r *http.Request, kept *mcp.MemoryEventStore, log *slog.Logger) *Stream {
	return &Stream{of: s, kept: kept, log: log, over: make(chan struct{}), to: connect(w, r)}
}

func connect(w http.ResponseWriter, r *http.Request) *connection {
	return &connection{w: w, left: r.Context().Done(), replaced: make(chan struct{})}
}

// Prime tells the client how to ask for the events of a call that takes long.
func (s *Stream) Prime() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.events == 0 {
		s.send("prime", nil)
	}
}

// End ends the response with the answer. It may be sent again if anything was sent
// before it; otherwise whole writes all of the response.
func (s *Stream) End(message func() []byte, whole func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.name == "" {
		whole()
	} else {
		s.send("message", message())
		s.of.release(s.name)
	}
	close(s.over)
}

// send sends an event, whose data it owns from then on. It reports false after the
// answer. s.mu must be held.
func (s *Stream) send(event string, data []byte) bool {
	select {
	case <-s.over:
		return false
	default:
	}
	if s.name == "" {
		s.name = rand.Text()
		s.of.hold(s.name, s)
		s.to.begin()
	}
	if err := s.of.keep(s.kept, s.name, data); err != nil {
		s.log.Warn("an event is not kept for a client whose stream breaks", "error", err)
	}
	s.to.write(event, s.name, s.events, data)
	s.events++
	return true
}

func (c *connection) begin() {
	h := c.w.Header()
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Content-Type", "text/event-stream")
	h.Set("Connection", "keep-alive")
}

// write writes an event, whose id is as the SDK reads it. A client that has gone asks
// for it again.
func (c *connection) write(event, stream string, number int, data []byte) {
	if c.w == nil {
		return
	}
	id := stream + "_" + strconv.Itoa(number)
	if _, err := c.w.Write(fmt.Appendf(nil, "event: %s\nid: %s\ndata: %s\n\n", event, id, data)); err == nil {
		_ = http.NewResponseController(c.w).Flush()
	}
}

// resume has the client read on another connection what followed an event, until the call
// ends or the client goes. It reports false after the end: then the SDK sends what is kept.
func (s *Stream) resume(w http.ResponseWriter, r *http.Request, seen int) bool {
	to := connect(w, r)
	if again, err := s.replay(to, seen); err != nil {
		refusal.Write(w, http.StatusBadRequest, "the events after this one are no longer kept")
		return true
	} else if !again {
		return false
	}
	select {
	case <-s.over:
	case <-to.left:
	case <-to.replaced:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	to.w = nil
	return true
}

func (s *Stream) replay(to *connection, seen int) (again bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.over:
		return false, nil
	default:
	}
	var missed [][]byte
	for data, err := range s.kept.After(context.Background(), s.of.id, s.name, seen) {
		if err != nil {
			return false, err
		}
		missed = append(missed, data)
	}
	to.begin()
	to.w.WriteHeader(http.StatusOK)
	_ = http.NewResponseController(to.w).Flush() // the client knows that it may wait
	for i, data := range missed {
		to.write("message", s.name, seen+1+i, data)
	}
	close(s.to.replaced)
	s.to = to
	return true, nil
}

// Send passes on what the SDK has for the client: a notification, or a request, whose
// answer it waits for.
func (s *Stream) Send(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
	m := struct {
		Version string     `json:"jsonrpc"`
		ID      string     `json:"id,omitempty"`
		Method  string     `json:"method"`
		Params  mcp.Params `json:"params,omitempty"`
	}{Version: "2.0", Method: method, Params: req.GetParams()}
	var reply chan *jsonrpc.Response
	if !strings.HasPrefix(method, "notifications/") {
		m.ID, reply = s.of.expect()
		defer s.of.forget(m.ID)
	}
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	sent, to := s.send("message", data), s.to
	s.mu.Unlock()
	switch {
	case !sent:
		return nil, errors.New("the call has ended")
	case reply == nil:
		return nil, nil
	}
	left, late := to.left, (<-chan time.Time)(nil)
	for {
		select {
		case answer := <-reply:
			return decode(method, answer)
		case <-ctx.Done():
			s.withdraw(m.ID)
			return nil, ctx.Err()
		case <-left:
			left, late = nil, time.After(away)
		case <-to.replaced:
			s.mu.Lock()
			to = s.to
			s.mu.Unlock()
			left, late = to.left, nil
		case <-late:
			s.withdraw(m.ID)
			return nil, errors.New("the client closed the connection before it answered " + method)
		}
	}
}

// withdraw tells the client that a request needs no answer any more.
func (s *Stream) withdraw(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.send("message", fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q}}`, id))
}

// decode reads the answer of a client to a request.
func decode(method string, m *jsonrpc.Response) (res mcp.Result, err error) {
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
