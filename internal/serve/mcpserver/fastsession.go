//lint:file-ignore SA1019 Clients and servers of before 2026-07-28 have what that version gave up.

package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/serve/clearmessage"
	"ken/internal/serve/mcpsession"
	"ken/internal/untrusted"
)

var (
	versionMark  = []byte(mcp.MetaKeyProtocolVersion)
	questionMark = []byte(`"` + mcpsession.QuestionPrefix)
)

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
// Of a batch it also takes what is about its calls, in which the SDK then sees nothing.
func (ep *endpoint) serveInSession(w http.ResponseWriter, r *http.Request, body []byte) bool {
	version := r.Header.Get(headerVersion)
	if version >= sessionless || version != "" && !slices.Contains(mcp.SupportedProtocolVersions(), version) || !plainPost(r) {
		return false
	}
	one := ep.s.guests.Find(r.Header.Get(mcpsession.Header), ep.key)
	if one == nil {
		return false
	}
	sess, ok := ep.live.Load(one.SDK)
	if !ok { // it ends
		return false
	}
	// A person may write any of the marks into an answer, and a model into a call.
	if bytes.Contains(body, questionMark) || bytes.Contains(body, cancelMark) {
		if one.Take(body, version < batchless) {
			w.WriteHeader(http.StatusAccepted)
			return true
		}
	}
	return bytes.Contains(body, callMark) && ep.callInSession(w, r, one, sess.(*session), body)
}

// callInSession makes the call of a plain request of tools/call.
func (ep *endpoint) callInSession(w http.ResponseWriter, r *http.Request, one *mcpsession.Session, sess *session, body []byte) bool {
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
	id := clearmessage.SameID(c.ID)
	// A connection that breaks cancels nothing: the client may ask for the answer again.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	switch began, twice := ep.s.guests.Begin(one, id, cancel); {
	case twice:
		ep.writeError(w, http.StatusBadRequest, c.ID, fault(jsonrpc.CodeInvalidRequest, "a call with this id runs already; give each request an id of its own", nil))
		return true
	case !began:
		return false
	}
	finish := sync.OnceFunc(func() { ep.s.guests.Finish(one, id) })
	defer finish()
	stream := one.Stream(w, r, ep.kept, ep.s.log)
	if r.Header.Get(headerVersion) >= primed {
		timer := time.AfterFunc(primeAfter, stream.Prime)
		defer timer.Stop()
	}
	req := &mcp.CallToolRequest{Session: one.SDK, Params: &mcp.CallToolParamsRaw{Meta: meta, Name: c.Name, Arguments: c.Arguments}}
	a, err := ep.call(context.WithValue(ctx, streamKey{}, stream), sess, req)
	finish() // a client that has the answer may use the id again
	stream.End(
		func() []byte { return ep.message(nil, c.ID, false, a, err) },
		func() { ep.writeAnswer(w, c.ID, false, a, err) },
	)
	return true
}

// streamKey is for the [mcpsession.Stream] in the context of a call.
type streamKey struct{}
