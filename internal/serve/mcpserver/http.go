package mcpserver

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/address"
	"ken/internal/jsonvalid"
	"ken/internal/serve/clearmessage"
	"ken/internal/serve/mcpsession"
	"ken/internal/serve/refusal"
	"ken/internal/tracecontext"
)

const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = mcpsession.Header
)

// eventBytes is how much of what was sent is kept for clients whose stream
// broke, for each principal.
const eventBytes = 1 << 20

// Handler serves the streamable HTTP transport. Who says whose a request is;
// what it does not know is refused. A session belongs to the principal who
// began it: for all others it does not exist. Requests from pages of other
// sites, and those that reached this machine under a name that is not its own,
// are refused.
//
// The token of a request goes nowhere: no back end ever sees it.
func (s *Server) Handler(who func(*http.Request) (capability.Principal, bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if why := s.foreign(r); why != "" {
			refusal.Write(w, http.StatusForbidden, why)
			return
		}
		p, ok := who(r)
		if !ok || p.ID == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			refusal.Write(w, http.StatusUnauthorized, "missing token; send Authorization: Bearer TOKEN with a token of this server, as ken token add NAME prints one")
			return
		}
		var body []byte
		if r.Method == http.MethodPost {
			var err error
			if body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, s.cfg.MaxBody)); err != nil {
				status := http.StatusBadRequest
				if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
					status = http.StatusRequestEntityTooLarge
				}
				refusal.Write(w, status, "the body cannot be read: "+err.Error())
				return
			}
		}
		s.serveMessage(w, r, p, body)
	})
}

// ServeMessage serves a request of a principal as [Server.Handler] does. body is what was
// read of a POST, at most [Config.MaxBody].
func (s *Server) ServeMessage(w http.ResponseWriter, r *http.Request, p capability.Principal, body []byte) {
	if why := s.foreign(r); why != "" {
		refusal.Write(w, http.StatusForbidden, why)
		return
	}
	s.serveMessage(w, r, p, body)
}

func (s *Server) serveMessage(w http.ResponseWriter, r *http.Request, p capability.Principal, body []byte) {
	a := s.audience(p)
	a.web.Do(a.open)
	a.stateless.knowHeaders()
	traced := len(r.Header["Traceparent"]) > 0
	if !traced && a.serveCall(w, r, body) {
		return
	}
	if len(bytes.TrimSpace(body)) > 0 && !jsonvalid.Valid(body) {
		refusal.Write(w, http.StatusBadRequest, "the body is not one JSON value")
		return
	}
	if why := clearmessage.Unclear(body); why != "" {
		refusal.Write(w, http.StatusBadRequest, why)
		return
	}
	if traced {
		if body = tracecontext.IntoBody(r.Header, body); a.serveCall(w, r, body) {
			return
		}
	}
	if r.Method == http.MethodPost {
		r = r.WithContext(r.Context()) // a copy: the body is not the caller's
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	if isModernHTTP(r, body) {
		refusal.Serve(w, r, a.stateless.handler)
		return
	}
	s.guests.Serve(w, r, a.key, a.stateful.handler)
}

// serveCall serves a usual request past the SDK; it reports false for others, with
// which it has done nothing.
func (a *audience) serveCall(w http.ResponseWriter, r *http.Request, body []byte) bool {
	return a.stateless.serveCall(w, r, body) || a.stateful.serveInSession(w, r, body)
}

// open makes what serves a principal over HTTP.
func (a *audience) open() {
	events := mcp.NewMemoryEventStore(nil)
	events.SetMaxBytes(eventBytes)
	a.stateful, a.stateless = a.s.endpoint(a, nil, false), a.s.endpoint(a, nil, true)
	for _, ep := range []*endpoint{a.stateful, a.stateless} {
		opts := &mcp.StreamableHTTPOptions{Stateless: ep.stateless, MaxRequestBodyBytes: a.s.cfg.MaxBody, PropagateRequestCancellation: true, DisableLocalhostProtection: true}
		if !ep.stateless {
			opts.EventStore, ep.kept = events, events
		}
		ep.handler = mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return ep.sdk }, opts)
		a.s.enlist(ep)
	}
}

// isModernHTTP reports whether a request is of the protocol without sessions:
// by its header or, where that is missing, by its body.
func isModernHTTP(r *http.Request, body []byte) bool {
	switch {
	case r.Header.Get(headerVersion) >= sessionless:
		return true
	case r.Method != http.MethodPost || r.Header.Get(headerSession) != "":
		return false
	}
	return bytes.Contains(body, []byte(mcp.MetaKeyProtocolVersion))
}

// foreign says why a request is not from where clients are.
func (s *Server) foreign(r *http.Request) string {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && isLoopback(local.String()) && !s.ours(r.Host) {
		return "the host of the request is not this machine; name it in serve.hosts"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return ""
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" || !(strings.EqualFold(u.Host, r.Host) || s.ours(u.Host)) {
		return "the request is from a page of another site"
	}
	return ""
}

// ours reports whether a host is this machine, or one that was named.
func (s *Server) ours(host string) bool {
	if isLoopback(host) {
		return true
	}
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	return slices.ContainsFunc(s.cfg.Hosts, func(h string) bool { return strings.EqualFold(h, host) || strings.EqualFold(h, name) })
}

func isLoopback(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	return address.Loopback(name)
}
