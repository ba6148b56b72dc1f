package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ken/internal/serve/auth"
	"ken/internal/serve/problem"
)

const (
	usualLimit    = 1 << 20
	usualPatience = 30 * time.Second
	slowestRead   = time.Minute // as the server has it

	// mostHeld is how many bytes of large bodies all requests hold together.
	mostHeld = 256 << 20
)

// A Mux serves routes.
type Mux struct {
	mux   http.ServeMux
	other auth.Handler
	log   *slog.Logger
	now   func() time.Time
	held  atomic.Int64 // bytes of large bodies

	// Answered, when not nil, is told of every request that was answered.
	Answered func(route *Route, status int, took time.Duration)
}

// NewMux makes a Mux of routes. A path that is served by none of them goes to
// other. It panics on routes that contradict each other: they are the program's.
func NewMux(log *slog.Logger, other auth.Handler, routes ...Route) *Mux {
	m := &Mux{other: other, log: log, now: time.Now}
	for i := range routes {
		r := &routes[i]
		m.mux.Handle(r.Method+" "+r.Path, serving{m, r})
	}
	return m
}

// An asker carries who asks through the standard mux, which knows only plain
// handlers.
type asker struct {
	http.ResponseWriter
	who auth.Identity
}

// ServeAs answers a request.
func (m *Mux) ServeAs(w http.ResponseWriter, r *http.Request, who auth.Identity) {
	if _, pattern := m.mux.Handler(r); pattern != "" {
		m.mux.ServeHTTP(&asker{w, who}, r)
		return
	}
	if allowed := m.methods(r); len(allowed) > 0 {
		list := strings.Join(allowed, ", ")
		w.Header().Set("Allow", list)
		(&Problem{Status: http.StatusMethodNotAllowed, Code: "method-not-allowed", Detail: fmt.Sprintf("%s is asked with %s", r.URL.Path, list)}).Write(w)
		return
	}
	m.other.ServeAs(w, r, who)
}

// methods returns those that a path has.
func (m *Mux) methods(r *http.Request) []string {
	var out []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		try := &http.Request{Method: method, URL: r.URL, Host: r.Host}
		if _, pattern := m.mux.Handler(try); pattern != "" {
			out = append(out, method)
		}
	}
	return out
}

type serving struct {
	m     *Mux
	route *Route
}

func (s serving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := w.(*asker) // as ServeAs has it
	began := s.m.now()
	counted := &counted{ResponseWriter: a.ResponseWriter}
	defer func() {
		if broke := recover(); broke != nil {
			if broke == http.ErrAbortHandler {
				panic(broke)
			}
			s.m.log.Error("a request broke", "route", s.route.Name, "cause", broke, "stack", string(debug.Stack()))
			if counted.status == 0 {
				p, _ := problem.Of(errors.New("internal error"))
				p.Write(counted)
			}
		}
		if s.m.Answered != nil {
			s.m.Answered(s.route, counted.status, s.m.now().Sub(began))
		}
	}()
	if err := s.serve(counted, r, a.who); err != nil {
		s.m.fail(counted, s.route, err)
	}
}

func (s serving) serve(w *counted, r *http.Request, who auth.Identity) error {
	if s.route.Decision != "" && !who.Decides {
		return ForPerson("a person decides this", s.route.Decision)
	}
	if s.route.Operator && !who.Operator {
		return &Problem{Status: http.StatusForbidden, Code: "operator-only", Detail: "this is for those who run Ken, and not for their agents; serve.oidc.operators says who else they are"}
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // what cannot be read would be as if it were not there
		return Bad("the query cannot be read: " + err.Error())
	}
	req := &Request{Request: r, Who: who, route: s.route, query: query, now: s.m.now}
	if err := req.check(); err != nil {
		return err
	}
	defer req.done()
	if err := req.read(w, &s.m.held); err != nil {
		return err
	}
	if s.route.Stream != nil && r.Method == http.MethodHead { // the client would wait for an end
		w.Header().Set("Allow", s.route.Method)
		return &Problem{Status: http.StatusMethodNotAllowed, Code: "method-not-allowed", Detail: fmt.Sprintf("%s is asked with %s", r.URL.Path, s.route.Method)}
	}
	if s.route.Stream != nil {
		if err := unhurried(w); err != nil {
			return fmt.Errorf("keep the connection open: %w", err)
		}
		if r.Method == http.MethodGet || req.WantsEvents() { // else it is one answer, which is theirs still
			ctx, cancel := who.While(r.Context())
			defer cancel()
			req.Request = r.WithContext(ctx)
		}
		return s.route.Stream(w, req)
	}
	patience := s.route.Patience
	if patience == 0 {
		patience = usualPatience
	}
	if patience > 0 {
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		req.Request = r.WithContext(ctx)
	}
	if patience < 0 || patience > usualPatience {
		_ = unhurried(w) // where that is not possible the server's own limits hold
	}
	v, err := s.route.Serve(req)
	if err != nil {
		return err
	}
	return s.answer(w, v)
}

// unhurried takes the server's own limits off a connection.
func unhurried(w http.ResponseWriter) error {
	control := http.NewResponseController(w)
	return errors.Join(control.SetReadDeadline(time.Time{}), control.SetWriteDeadline(time.Time{}))
}

// hurried bounds how long a client may take to read one document, where
// unhurried took the server's limit off.
func hurried(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(slowestRead)) // else the server's own limit holds
}

func (s serving) answer(w http.ResponseWriter, v any) error {
	hurried(w)
	a, ok := v.(Answered)
	if !ok {
		a = Answered{Value: v}
	}
	if a.Status == 0 {
		a.Status = s.route.Status
	}
	for name, values := range a.Header {
		w.Header()[name] = values
	}
	if a.Value == nil {
		w.WriteHeader(orElse(a.Status, http.StatusNoContent))
		return nil
	}
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-store")
	}
	if raw, ok := a.Value.(Raw); ok {
		w.Header().Set("Content-Type", raw.Type)
		w.WriteHeader(orElse(a.Status, http.StatusOK))
		_, _ = w.Write(raw.Body) // the client is gone
		return nil
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(a.Value); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(orElse(a.Status, http.StatusOK))
	_, _ = w.Write(b.Bytes())
	return nil
}

func orElse(status, other int) int {
	if status == 0 {
		return other
	}
	return status
}

func (m *Mux) fail(w *counted, route *Route, err error) {
	p, internal := problem.Of(err)
	if internal {
		m.log.Error("a request failed", "route", route.Name, "err", err)
	}
	if w.status == 0 {
		p.Write(w)
	}
}

// hold counts a body that may be large among those that are held, and refuses
// it where they are too many. What says nothing of its size counts as the most.
func (r *Request) hold(w http.ResponseWriter, held *atomic.Int64, limit int64) error {
	if limit <= usualLimit {
		return nil
	}
	size := r.ContentLength
	if size < 0 || size > limit {
		size = limit
	}
	if held.Add(size) > mostHeld {
		held.Add(-size)
		w.Header().Set("Retry-After", "1")
		return &Problem{Status: http.StatusServiceUnavailable, Code: "busy", Detail: fmt.Sprintf("other requests hold %d MiB already; ask again in a moment, or send less", mostHeld>>20)}
	}
	r.release = sync.OnceFunc(func() { held.Add(-size) })
	return nil
}

// done releases the room that hold counted for the body.
func (r *Request) done() {
	if r.release != nil {
		r.release()
	}
}

// read takes the body in, up to the route's limit.
func (r *Request) read(w http.ResponseWriter, held *atomic.Int64) error {
	limit := r.route.Limit
	if limit == 0 {
		limit = usualLimit
	}
	if err := r.hold(w, held, limit); err != nil {
		return err
	}
	body, err := ReadBody(w, r.Request, limit)
	if err != nil {
		return err
	}
	switch {
	case r.route.Body == nil && len(bytes.TrimSpace(body)) > 0:
		return Bad(r.route.Method + " " + r.URL.Path + " takes no body")
	case r.route.Body != nil && !isJSON(r.Header.Get("Content-Type")):
		// A page of another site can send anything but this without asking.
		return &Problem{Status: http.StatusUnsupportedMediaType, Code: "not-json", Detail: "send the body as Content-Type: application/json"}
	}
	r.body = body
	return nil
}

// ReadBody takes a body of up to limit bytes in, within the connection's read
// deadline. The error is a [*Problem].
func ReadBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if err == nil {
		return body, nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, &Problem{Status: http.StatusRequestEntityTooLarge, Code: "too-large", Detail: fmt.Sprintf("the body has more than %d bytes", limit)}
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.Header().Set("Connection", "close") // the rest is not waited for
		return nil, &Problem{Status: http.StatusRequestTimeout, Code: "too-slow", Detail: "the body did not come in time; send it again, without a pause"}
	}
	return nil, Bad("the body could not be read: " + err.Error())
}

func isJSON(contentType string) bool {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}

// counted remembers the status.
type counted struct {
	http.ResponseWriter
	status int
}

func (c *counted) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

func (c *counted) Write(b []byte) (int, error) {
	if c.status == 0 {
		c.status = http.StatusOK
	}
	return c.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (c *counted) Unwrap() http.ResponseWriter { return c.ResponseWriter }
