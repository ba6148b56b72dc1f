//lint:file-ignore SA1019 Clients and servers of before 2026-07-28 have what that version gave up.

package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/serve/clearmessage"
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
// request it reports false and has done nothing: that is for the SDK. The body must
// have passed unclear.
func (ep *endpoint) serveCall(w http.ResponseWriter, r *http.Request, body []byte) bool {
	if !bytes.Contains(body, callMark) || !plainPost(r) {
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
	sess := ep.s.lobby.find(ep.who, ep.s.cfg.Settle == nil, about.client, ep.surface(about.client), time.Now())
	if sess.logs() {
		return false
	}
	req := &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Meta: about.meta, Name: c.Name, Arguments: c.Arguments}}
	a, err := ep.call(r.Context(), sess, req)
	if r.Context().Err() == nil { // a client that has gone needs no answer
		writeMessage(w, ep.message(c.ID, true, a, err), err)
	}
	return true
}

// plainPost reports whether a request is one that the SDK would take, by its
// headers.
func plainPost(r *http.Request) bool {
	if r.Method != http.MethodPost || r.Header.Get(headerSession) != "" || len(r.Header.Values("Last-Event-Id")) > 0 || r.Header.Get("Content-Type") != "application/json" {
		return false
	}
	for key := range r.Header {
		if strings.HasPrefix(key, paramHeader) {
			return false
		}
	}
	var whole, stream bool
	for _, list := range r.Header.Values("Accept") {
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
	if len(raw) == 0 || json.Unmarshal(raw, &c.meta) != nil {
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

// writeMessage writes the answer to a request as the SDK does: an error of the
// protocol with a status of its own, and all else as the one event of a stream.
func writeMessage(w http.ResponseWriter, message []byte, err error) {
	h := w.Header()
	h.Set("Cache-Control", "no-cache, no-transform")
	if status := statusOf(err); status != 0 {
		h.Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(message) // a client that has gone needs none
		return
	}
	h.Set("Content-Type", "text/event-stream")
	h.Set("Connection", "keep-alive")
	b := make([]byte, 0, len(message)+32)
	b = append(b, "event: message\ndata: "...)
	b = append(b, message...)
	_, _ = w.Write(append(b, "\n\n"...))
}

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
