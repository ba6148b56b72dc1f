//lint:file-ignore SA1019 Clients and servers of before 2026-07-28 have what that version gave up.

package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/serve/clearmessage"
	"ken/internal/untrusted"
)

// A clientMeta is what a client says of itself with each request of the protocol
// without sessions, once it was found to be right. Clients repeat it word by word.
type clientMeta struct {
	text    string
	meta    mcp.Meta // shared by all requests that say the same; nobody changes it
	version string
	client  string // its name
}

var (
	progressMark = []byte(`"progressToken"`)
	paramHeader  = "Mcp-Param-"
)

// serveCall makes the call of a request of the protocol without sessions, past the
// SDK, which decodes such a request eight times into buffers of 32 KB. Only plain
// tools/call requests are served here. For everything that is unusual about a
// request it reports false and has done nothing: that is for the SDK. It lets through
// only what [clearmessage.Unclear] does.
func (ep *endpoint) serveCall(w http.ResponseWriter, r *http.Request, body []byte) bool {
	if !bytes.Contains(body, callMark) || r.Header.Get(headerSession) != "" || !plainPost(r) {
		return false
	}
	for _, mark := range [...][]byte{answerMark, stateMark, levelMark, progressMark} {
		if bytes.Contains(body, mark) {
			return false
		}
	}
	c, plain := clearmessage.ReadToolCall(body)
	if !plain || r.Header.Get("Mcp-Method") != "tools/call" || r.Header.Get("Mcp-Name") != c.Name || ep.inHeaders(c.Name) {
		return false
	}
	about := ep.metaOf(c.Meta)
	if about == nil || r.Header.Get(headerVersion) != about.version {
		return false
	}
	if _, twice := untrusted.TwiceNamed(c.Arguments, 0); twice {
		return false
	}
	sess := ep.s.lobby.find(ep.who, ep.s.cfg.Settle == nil, about.client, ep.surface(about.client), time.Now())
	if sess.logs() {
		return false
	}
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Meta: about.meta, Name: c.Name, Arguments: c.Arguments}}
	a, err := ep.call(r.Context(), sess, req)
	if r.Context().Err() == nil { // a client that has gone needs no answer
		ep.writeMessage(w, c.ID, a, err)
	}
	return true
}

// plainPost reports whether a request is one that the SDK would take, by its
// headers.
func plainPost(r *http.Request) bool {
	if r.Method != http.MethodPost || len(r.Header["Last-Event-Id"]) > 0 || r.Header.Get("Content-Type") != "application/json" {
		return false
	}
	for key := range r.Header {
		if strings.HasPrefix(key, paramHeader) {
			return false
		}
	}
	var whole, stream bool
	for _, list := range r.Header["Accept"] {
		for kind := range strings.SplitSeq(list, ",") {
			switch strings.TrimSpace(kind) {
			case "application/json":
				whole = true
			case "text/event-stream":
				stream = true
			}
		}
	}
	return whole && stream
}

// inHeaders reports whether arguments of a tool are in headers too, which the SDK
// compares.
func (ep *endpoint) inHeaders(name string) bool {
	ep.mu.Lock()
	m := ep.headers
	ep.mu.Unlock()
	return m != nil && slices.ContainsFunc(m.headers, func(t *mcp.Tool) bool { return t.Name == name })
}

// metaOf returns what a client says of itself, or nil where the SDK has to judge it.
func (ep *endpoint) metaOf(raw json.RawMessage) *clientMeta {
	if last := ep.lastMeta.Load(); last != nil && last.text == string(raw) {
		return last
	}
	c := &clientMeta{text: string(raw)}
	if _, twice := untrusted.TwiceNamed(raw, 0); twice || len(raw) == 0 || json.Unmarshal(raw, &c.meta) != nil {
		return nil
	}
	c.version, _ = c.meta[mcp.MetaKeyProtocolVersion].(string)
	if c.version < sessionless || !slices.Contains(mcp.SupportedProtocolVersions(), c.version) {
		return nil
	}
	if info, named := c.meta[mcp.MetaKeyClientInfo]; named {
		about, ok := info.(map[string]any)
		if !ok {
			return nil
		}
		for _, value := range about {
			if _, ok := value.(string); !ok {
				return nil
			}
		}
		name, _ := about["name"].(string)
		c.client = name[:min(len(name), 128)]
	}
	if _, ok := c.meta[mcp.MetaKeyClientCapabilities].(map[string]any); !ok {
		return nil
	}
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Meta: c.meta}}
	if req.ClientCapabilities() == nil {
		return nil
	}
	ep.lastMeta.Store(c)
	return c
}

// The headers of an answer. All answers share these lists, which must not be changed.
var (
	uncached  = []string{"no-cache, no-transform"}
	wholeType = []string{"application/json"}
	eventType = []string{"text/event-stream"}
	keptAlive = []string{"keep-alive"}
)

// events are buffers that answers were written from.
var events = sync.Pool{New: func() any { return new([]byte) }}

// mostKept is the largest buffer that is used again.
const mostKept = 64 << 10

// writeMessage writes the answer to a request as the SDK does: an error of the
// protocol with a status of its own, and all else as the one event of a stream.
func (ep *endpoint) writeMessage(w http.ResponseWriter, id json.RawMessage, a *answer, err error) {
	if status := statusOf(err); status != 0 {
		ep.writeError(w, status, id, err)
		return
	}
	ep.writeAnswer(w, id, true, a, err)
}

// writeError writes an error of the protocol with a status.
func (ep *endpoint) writeError(w http.ResponseWriter, status int, id json.RawMessage, err error) {
	h := w.Header()
	h["Cache-Control"], h["Content-Type"] = uncached, wholeType
	w.WriteHeader(status)
	_, _ = w.Write(ep.message(nil, id, true, nil, err)) // a client that has gone needs none
}

// writeAnswer writes the answer to a request as the one event of a stream.
func (ep *endpoint) writeAnswer(w http.ResponseWriter, id json.RawMessage, modern bool, a *answer, err error) {
	h := w.Header()
	h["Cache-Control"], h["Content-Type"], h["Connection"] = uncached, eventType, keptAlive
	kept := events.Get().(*[]byte)
	defer events.Put(kept)
	b := append((*kept)[:0], "event: message\ndata: "...)
	b = append(ep.message(b, id, modern, a, err), "\n\n"...)
	if len(b) > chunkedFrom {
		h["Content-Length"] = []string{strconv.Itoa(len(b))}
	}
	_, _ = w.Write(b)
	if cap(b) <= mostKept {
		*kept = b
	}
}

// chunkedFrom is the most bytes of an answer whose length net/http finds itself. It
// sends more in chunks, in several writes.
const chunkedFrom = 2 << 10

// statusOf returns the HTTP status of an error that has one, or 0.
func statusOf(err error) int {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return 0
	}
	switch wire.Code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, mcp.CodeUnsupportedProtocolVersion, mcp.CodeMissingRequiredClientCapabilities:
		return http.StatusBadRequest
	}
	return 0
}
