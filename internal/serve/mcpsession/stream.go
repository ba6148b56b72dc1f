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

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/untrusted"
)

// A Stream is the response to a request of a session whose call is made past the SDK.
// What the call reports and asks goes to the client as events before the answer. From
// the first of them on they are kept for a client that asks for them again.
type Stream struct {
	of   *Session
	kept *mcp.MemoryEventStore
	log  *slog.Logger
	left <-chan struct{} // closed when the client has gone

	mu     sync.Mutex
	w      http.ResponseWriter // nil: the response has ended
	name   string              // of the events; empty: there were none
	events int
}

// Stream returns the response to r. Its events are kept in a store, which the SDK reads
// if the client asks for them again.
func (s *Session) Stream(w http.ResponseWriter, r *http.Request, kept *mcp.MemoryEventStore, log *slog.Logger) *Stream {
	return &Stream{of: s, kept: kept, log: log, left: r.Context().Done(), w: w}
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
	s.w = nil
}

// send sends an event, whose data it owns from then on, and reports whether it could be.
// s.mu must be held.
func (s *Stream) send(event string, data []byte) bool {
	if s.w == nil {
		return false
	}
	if s.name == "" {
		s.name = rand.Text()
		s.of.hold(s.name)
		h := s.w.Header()
		h.Set("Cache-Control", "no-cache, no-transform")
		h.Set("Content-Type", "text/event-stream")
		h.Set("Connection", "keep-alive")
	}
	if err := s.of.keep(s.kept, s.name, data); err != nil {
		s.log.Warn("an event is not kept for a client whose stream breaks", "error", err)
	}
	id := s.name + "_" + strconv.Itoa(s.events) // as the SDK reads it
	s.events++
	_, err := s.w.Write(fmt.Appendf(nil, "event: %s\nid: %s\ndata: %s\n\n", event, id, data))
	return err == nil && http.NewResponseController(s.w).Flush() == nil
}

// Send passes on what the SDK has for the client: a notification, or a request, whose
// answer it waits for. What cannot go on this response goes the SDK's way, which is next.
func (s *Stream) Send(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
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
	sent := s.send("message", data)
	s.mu.Unlock()
	switch {
	case !sent:
		return next(ctx, method, req)
	case reply == nil:
		return nil, nil
	}
	select {
	case <-ctx.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		s.send("message", fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%q}}`, m.ID))
		return nil, ctx.Err()
	case <-s.left:
		return nil, errors.New("the client closed the connection before it answered " + method)
	case answer := <-reply:
		return decode(method, answer)
	}
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
