package link

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"ken/internal/untrusted"
)

// A carrier is the round tripper of a remote server. It adds the configured
// headers for the server's own host, bounds what comes back, and takes the
// answers to calls as they are.
type carrier struct {
	l      *Link
	next   http.RoundTripper
	origin *url.URL
}

func newCarrier(l *Link, next http.RoundTripper) (*carrier, error) {
	u, err := url.Parse(l.cfg.URL)
	if err != nil {
		return nil, err
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("url %q must be http or https", l.cfg.URL)
	}
	if next == nil {
		next = http.DefaultTransport
	}
	return &carrier{l: l, next: next, origin: u}, nil
}

// RoundTrip implements [http.RoundTripper].
func (c *carrier) RoundTrip(req *http.Request) (*http.Response, error) {
	// A redirect, or a server that names another address for its messages, must
	// not lead elsewhere: what was configured is who is trusted.
	if req.URL.Scheme != c.origin.Scheme || req.URL.Host != c.origin.Host {
		return nil, fmt.Errorf("the server redirects to %s, which is a different server; if you trust it, use that address", untrusted.Line(req.URL.Scheme+"://"+req.URL.Host, 200))
	}
	if len(c.l.cfg.Header) > 0 {
		req = req.Clone(req.Context())
		for name, values := range c.l.cfg.Header {
			if req.Header.Get(name) == "" {
				req.Header[http.CanonicalHeaderKey(name)] = values
			}
		}
	}
	if c.l.cfg.SSE {
		return c.next.RoundTrip(req) // it is tapped elsewhere
	}
	var body []byte
	if req.Method == http.MethodPost {
		req = named(req)
		body = head(req)
		req = traced(req, body)
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case "application/json":
		return resp, c.takeJSON(resp, body)
	case "text/event-stream":
		resp.Body = &eventTap{ReadCloser: resp.Body, l: c.l, f: c.l.pending.of(body)}
	}
	return resp, nil
}

// head returns the first of a request's body, where the number and the progress
// token of a call are.
func head(req *http.Request) []byte {
	if req.GetBody == nil {
		return nil
	}
	r, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer r.Close()
	b := make([]byte, 4096)
	n, _ := io.ReadFull(r, b)
	return b[:n]
}

// takeJSON reads an answer that is one message. The SDK gets an empty one for a
// call, and an error in the place of one that is too long: its own reading
// would have no bound, and would end the session where it breaks off.
func (c *carrier) takeJSON(resp *http.Response, request []byte) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, c.l.cfg.MaxMessage+1))
	_ = resp.Body.Close()
	if err != nil {
		return err
	}
	f := c.l.pending.of(request)
	if int64(len(data)) > c.l.cfg.MaxMessage {
		over := &oversized{limit: c.l.cfg.MaxMessage, size: int64(len(data))}
		over.add(request[:min(len(request), edgeRoom)])
		if f != nil {
			f.over.Store(over)
		}
		data = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%q}}`, requestID(request), over.Error())
	} else if f != nil {
		if msg, err := decodeMessage(data); err == nil {
			if m, ok := msg.(*jsonrpc.Response); ok && m.Error == nil && len(m.Result) > 0 {
				f.keep(m)
				if data, err = jsonrpc.EncodeMessage(m); err != nil {
					return err
				}
			}
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	resp.ContentLength = int64(len(data))
	return nil
}

// requestID returns the number of a request as JSON, from how the SDK writes it.
func requestID(request []byte) string {
	_, after, ok := strings.Cut(string(request), `"id":`)
	if !ok {
		return "null"
	}
	id, _, _ := strings.Cut(after, ",")
	if !json.Valid([]byte(id)) {
		return "null"
	}
	return id
}

// An eventTap stands between the SDK and a stream of events. It takes the
// answer to the stream's call and the notifications, in their order: behind it
// the SDK would handle them beside each other.
type eventTap struct {
	io.ReadCloser
	l     *Link
	f     *pendingCall // nil: the stream belongs to no call
	chunk []byte
	line  []byte // so far
	event []byte // its lines so far, as they came
	data  []byte // what they say
	out   []byte // for the SDK
	err   error
}

func (t *eventTap) Read(p []byte) (int, error) {
	for len(t.out) == 0 && t.err == nil {
		if t.chunk == nil {
			t.chunk = make([]byte, readRoom)
		}
		var n int
		n, t.err = t.ReadCloser.Read(t.chunk)
		for rest := t.chunk[:n]; len(rest) > 0; {
			i := bytes.IndexByte(rest, '\n') + 1
			if i == 0 {
				t.line = append(t.line, rest...)
				break
			}
			t.line = append(t.line, rest[:i]...)
			t.endLine()
			rest = rest[i:]
		}
		t.bound()
		if t.err != nil {
			t.out = append(append(t.out, t.event...), t.line...)
			t.event, t.line = nil, nil
		}
	}
	if len(t.out) == 0 {
		return 0, t.err
	}
	n := copy(p, t.out)
	if t.out = t.out[n:]; len(t.out) == 0 {
		t.out = nil
	}
	return n, nil
}

// bound lets an event that is too long through to the SDK, which stops at the
// same bound.
func (t *eventTap) bound() {
	size := int64(len(t.event) + len(t.line))
	if size <= t.l.cfg.MaxMessage {
		return
	}
	if t.f != nil {
		t.f.over.Store(&oversized{limit: t.l.cfg.MaxMessage, size: size})
	}
	t.out = append(append(t.out, t.event...), t.line...)
	t.event, t.line, t.data = nil, nil, nil
}

func (t *eventTap) endLine() {
	line := bytes.TrimRight(t.line, "\r\n")
	t.event = append(t.event, t.line...)
	switch {
	case len(line) == 0:
		t.endEvent()
	case bytes.HasPrefix(line, []byte("data:")):
		if len(t.data) > 0 {
			t.data = append(t.data, '\n')
		}
		t.data = append(t.data, bytes.TrimPrefix(line[len("data:"):], []byte(" "))...)
	}
	t.line = t.line[:0]
}

// endEvent passes an event on, or what is left of it.
func (t *eventTap) endEvent() {
	msg, taken := t.take()
	if !taken {
		t.out = append(t.out, t.event...)
	} else {
		// The numbers of events are kept: a stream that breaks off is resumed
		// after the last one.
		for line := range bytes.Lines(t.event) {
			if !bytes.HasPrefix(line, []byte("data:")) && len(bytes.TrimSpace(line)) > 0 {
				t.out = append(t.out, line...)
			}
		}
		if msg != nil {
			t.out = append(append(append(t.out, "data: "...), msg...), '\n')
		}
		t.out = append(t.out, '\n')
	}
	t.event, t.data = t.event[:0], t.data[:0]
}

// take handles the message of an event, where that is to be done here, and
// gives what the SDK shall see in its place.
func (t *eventTap) take() (instead []byte, taken bool) {
	if len(t.data) == 0 {
		return nil, false
	}
	msg, err := decodeMessage(t.data)
	if err != nil {
		// The SDK handles input that is not a message. A message whose answer
		// would get a wrong id does not reach it.
		return nil, json.Valid(t.data)
	}
	var next jsonrpc.Message
	switch m := msg.(type) {
	case *jsonrpc.Request:
		if m.IsCall() || m.Method == "notifications/cancelled" {
			return nil, false
		}
		if m = t.l.notified(m); m == nil {
			return nil, true
		}
		next = m
	case *jsonrpc.Response:
		if t.f == nil || m.Error != nil || len(m.Result) == 0 {
			return nil, false
		}
		t.f.keep(m)
		next = m
	}
	data, err := jsonrpc.EncodeMessage(next)
	return data, err == nil
}
