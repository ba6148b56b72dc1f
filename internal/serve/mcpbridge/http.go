package mcpbridge

import (
	"context"
	"errors"
	"net/http"
	"time"

	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/serve/mcpserver"
	"ken/internal/serve/problem"
)

// MaxBody is the most bytes of a message, as the MCP server has it.
const MaxBody = 4 << 20

// defaultSlowest is how long a message may take to arrive.
const defaultSlowest = 30 * time.Second

// A Handler serves MCP over HTTP. A call may take long, and a client may listen
// for notifications as long as it wants, or until Waiting ends.
type Handler struct {
	People  *mcpserver.Server // for callers whose answers count as a person's
	Agents  *mcpserver.Server // for agents: the agent may be the client that answers
	Waiting context.Context   // ends when the server is about to stop

	// Slowest is how long a message may take to arrive; zero: 30 seconds.
	Slowest time.Duration
}

// ServeAs implements [auth.Handler].
func (h *Handler) ServeAs(w http.ResponseWriter, r *http.Request, who auth.Identity) {
	control := http.NewResponseController(w)
	r.Header.Del("Origin") // [auth.Guard] has judged it, and knows serve.origins; the headers are a copy
	var body []byte
	if r.Method == http.MethodPost {
		var err error
		if body, err = h.message(control, w, r); err != nil {
			p, _ := problem.Of(err)
			p.Write(w)
			return
		}
	}
	if err := errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{})); err != nil {
		http.Error(w, "this connection cannot be kept open", http.StatusInternalServerError)
		return
	}
	if r.Method == http.MethodGet || r.Header.Get("Mcp-Method") == "subscriptions/listen" {
		ctx, cancel := who.While(r.Context())
		defer cancel()
		defer context.AfterFunc(h.Waiting, cancel)()
		r = r.WithContext(ctx)
	}
	server := h.People
	if !who.Decides {
		server = h.Agents
	}
	server.ServeMessage(w, r, who.Principal, body)
}

// message reads a message before its connection may stay open. One that stalls
// ends with the deadline, and soon if the server is about to stop.
func (h *Handler) message(control *http.ResponseController, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	slowest := h.Slowest
	if slowest == 0 {
		slowest = defaultSlowest
	}
	if err := control.SetReadDeadline(time.Now().Add(slowest)); err != nil {
		return nil, err
	}
	hurried := make(chan struct{})
	stop := context.AfterFunc(h.Waiting, func() {
		defer close(hurried)
		_ = control.SetReadDeadline(time.Now().Add(min(slowest, time.Second)))
	})
	body, err := wire.ReadBody(w, r, MaxBody)
	if !stop() {
		<-hurried // else it would hurry what comes after
	}
	return body, err
}
