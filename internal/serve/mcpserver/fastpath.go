//lint:file-ignore SA1019 Clients and servers of before 2026-07-28 have what that version gave up.

package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/jsonvalid"
	"ken/internal/serve/clearmessage"
	"ken/internal/serve/refusal"
	"ken/internal/untrusted"
)

// A fastPath carries the calls of a client on a stream past the SDK, which decodes
// every message several times, each time into a buffer of 32 KB. Only plain
// tools/call requests take it; whatever is unusual about a message leaves it to
// the SDK, whose reader is fed with all the rest.
type fastPath struct {
	ep   *endpoint
	rest *io.PipeWriter // to the SDK
	ss   *mcp.ServerSession
	said clientMeta // with the last call; see metaOf

	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	next  chan func()  // to a goroutine that waits for another call
	waits atomic.Int32 // so many do, or are about to

	writing sync.Mutex
	w       io.Writer

	mu      sync.Mutex
	flights map[string]context.CancelFunc // by the id of the request
}

// maxFlights is how many calls may be in the lane at once. More are refused, and
// nothing further is read until the client takes that: one that only writes
// waits for itself.
const maxFlights = 2 * maxRunning

// batchless is the first version of the protocol without batches.
const batchless = "2025-06-18"

// maxIdle is how many goroutines of calls that have ended wait for others.
const maxIdle = 16

func newLane(ctx context.Context, ep *endpoint, rw io.ReadWriter) (l *fastPath, forSDK *mcp.IOTransport) {
	r, w := io.Pipe()
	l = &fastPath{ep: ep, rest: w, w: rw, next: make(chan func()), flights: map[string]context.CancelFunc{}}
	l.ctx, l.stop = context.WithCancel(ctx)
	return l, &mcp.IOTransport{Reader: r, Writer: l, MaxLineLength: int(ep.s.cfg.MaxBody)}
}

// open begins to read, for a session of the SDK.
func (l *fastPath) open(ss *mcp.ServerSession, r io.Reader) {
	l.ss = ss
	l.work.Go(func() { l.feed(r) })
}

// close ends all that is in the lane, and waits for it. The stream must be
// closed before.
func (l *fastPath) close() {
	l.stop()
	l.rest.CloseWithError(io.EOF)
	l.work.Wait()
}

// Write writes one whole message.
func (l *fastPath) Write(p []byte) (int, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.w.Write(p)
}

// Close is there for the SDK; the stream is closed by who opened it.
func (l *fastPath) Close() error { return nil }

// feed reads what the client says, line by line.
func (l *fastPath) feed(r io.Reader) {
	lines := bufio.NewReaderSize(r, 8<<10) // every session holds one
	var long []byte                        // the pieces of a line that is longer than the buffer
	size, most := 0, int(l.ep.s.cfg.MaxBody)
	for {
		line, err := lines.ReadSlice('\n')
		size += len(line)
		if errors.Is(err, bufio.ErrBufferFull) || long != nil || size > most {
			if size <= most {
				long = append(long, line...)
			} else {
				long = []byte{} // it is refused as a whole
			}
			line = long
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 || size > 0 {
			if l.pass(line, size, most) != nil {
				return
			}
		}
		long, size = nil, 0
		if err != nil {
			l.rest.CloseWithError(err)
			return
		}
	}
}

// pass deals with a line, or hands it to the SDK. What is no message is
// answered here: the SDK would end the session without a word.
func (l *fastPath) pass(line []byte, size, most int) error {
	if size > most {
		l.refuse(jsonrpc.CodeInvalidRequest, fmt.Sprintf("the message has %d bytes, and one may have %d", size, most))
		return nil
	}
	if len(bytes.TrimSpace(line)) == 0 || l.take(line) {
		return nil
	}
	if !jsonvalid.Valid(line) {
		l.refuse(jsonrpc.CodeParseError, "the line is not JSON")
		return nil
	}
	messages := []json.RawMessage{line}
	if bytes.TrimSpace(line)[0] == '[' {
		if begun := l.ss.InitializeParams(); begun != nil && begun.ProtocolVersion >= batchless {
			l.refuse(jsonrpc.CodeInvalidRequest, "protocol "+batchless+" and later have no batches; send one message in each line")
			return nil
		}
		if messages = slices.Collect(untrusted.Items(line)); len(messages) == 0 {
			l.refuse(jsonrpc.CodeInvalidRequest, "the batch has no message")
			return nil
		}
	}
	if why := clearmessage.Unclear(line); why != "" {
		l.refuse(jsonrpc.CodeInvalidRequest, why)
		return nil
	}
	for _, one := range messages {
		if clearmessage.IsRequest(one) {
			continue // decoding takes buffers of 64 KB
		}
		if _, err := jsonrpc.DecodeMessage(one); err != nil {
			l.refuse(jsonrpc.CodeInvalidRequest, "the line is no message of JSON-RPC 2.0: "+untrusted.Line(err.Error(), 200))
			return nil
		}
	}
	_, err := l.rest.Write(line)
	return err
}

// refuse answers what has no id that could be told.
func (l *fastPath) refuse(code int64, why string) {
	l.answer(json.RawMessage("null"), false, nil, &jsonrpc.Error{Code: code, Message: why})
}

var (
	callMark   = []byte(`"tools/call"`)
	cancelMark = []byte(`"notifications/cancelled"`)
	answerMark = []byte(`"inputResponses"`)
	stateMark  = []byte(`"requestState"`)
	levelMark  = []byte(mcp.MetaKeyLogLevel)
)

// take reports whether it has dealt with a line, which is the caller's again
// when it returns.
func (l *fastPath) take(line []byte) bool {
	switch {
	case bytes.Contains(line, cancelMark):
		return l.cancel(line)
	case !bytes.Contains(line, callMark), bytes.Contains(line, answerMark), bytes.Contains(line, stateMark), bytes.Contains(line, levelMark):
		return false
	}
	c, plain := clearmessage.ReadToolCall(line)
	if !plain {
		return false
	}
	meta, read := l.metaOf(c.Meta)
	modern, ok := l.understood(meta)
	if _, twice := untrusted.TwiceNamed(line, 0); !read || !ok || twice {
		return false
	}
	ctx, cancel := context.WithCancel(l.ctx)
	c.ID, c.Arguments = bytes.Clone(c.ID), bytes.Clone(c.Arguments) // the line is used again
	id := clearmessage.SameID(c.ID)
	l.mu.Lock()
	_, taken := l.flights[id]
	full := len(l.flights) >= maxFlights
	if !taken && !full {
		l.flights[id] = cancel
	}
	l.mu.Unlock()
	switch {
	case full:
		cancel()
		l.answer(c.ID, modern, said(modern, fmt.Sprintf("%d calls wait already; take their answers first, then call again", maxFlights), true), nil)
		return true
	case taken: // the same id twice is for the SDK to judge
		cancel()
		return false
	}
	req := &mcp.CallToolRequest{Session: l.ss, Params: &mcp.CallToolParamsRaw{Meta: meta, Name: c.Name, Arguments: c.Arguments}}
	l.begin(func() {
		defer cancel()
		a, err := l.ep.callTool(ctx, req)
		gone := ctx.Err() != nil
		if !gone { // a call that was cancelled has no answer
			l.answer(c.ID, modern, a, err)
		}
		l.mu.Lock()
		delete(l.flights, id)
		l.mu.Unlock()
	})
	return true
}

// metaOf decodes what a request says about itself. Clients repeat most of it word by
// word; nothing changes what is returned. Only feed may call it.
func (l *fastPath) metaOf(raw json.RawMessage) (meta mcp.Meta, ok bool) {
	if len(raw) == 0 {
		return nil, true
	}
	if string(raw) == l.said.text {
		return l.said.meta, true
	}
	if json.Unmarshal(raw, &meta) != nil {
		return nil, false
	}
	l.said.text, l.said.meta = string(raw), meta
	return meta, true
}

// begin runs a call beside the others: on the goroutine of one that has ended,
// whose stack has grown to what a call needs, or else on its own.
func (l *fastPath) begin(call func()) {
	select {
	case l.next <- call:
	default:
		l.work.Go(func() { l.carry(call) })
	}
}

// carry runs a call, and then those that come while it waits. At most maxIdle do.
func (l *fastPath) carry(call func()) {
	for {
		call()
		if l.waits.Add(1) > maxIdle {
			l.waits.Add(-1)
			return
		}
		select {
		case call = <-l.next:
			l.waits.Add(-1)
		case <-l.ctx.Done():
			return
		}
	}
}

// understood reports whether a request with this metadata needs nothing more
// that the SDK checks, and whether it is of a protocol without sessions.
func (l *fastPath) understood(meta mcp.Meta) (modern, ok bool) {
	begun := l.ss.InitializeParams()
	if begun == nil {
		return false, false
	}
	said, there := meta[mcp.MetaKeyProtocolVersion]
	if !there {
		return false, begun.ProtocolVersion < sessionless
	}
	version, _ := said.(string)
	if version < sessionless || !slices.Contains(mcp.SupportedProtocolVersions(), version) {
		return true, false
	}
	if _, ok := meta[mcp.MetaKeyClientCapabilities].(map[string]any); !ok {
		return true, false
	}
	info, named := meta[mcp.MetaKeyClientInfo]
	if named {
		about, _ := info.(map[string]any)
		name, _ := about["name"].(string)
		return true, name != "" && begun.ClientInfo != nil && name == begun.ClientInfo.Name
	}
	return true, begun.ClientInfo == nil
}

// cancel ends a call of the lane.
func (l *fastPath) cancel(line []byte) bool {
	if !jsonvalid.Valid(line) || clearmessage.Unclear(line) != "" {
		return false
	}
	id := clearmessage.Cancels(line)
	l.mu.Lock()
	defer l.mu.Unlock()
	end, ok := l.flights[id]
	if ok {
		end()
	}
	return ok
}

// answer writes what came of a call.
func (l *fastPath) answer(id json.RawMessage, modern bool, a *answer, err error) {
	_, _ = l.Write(append(l.ep.message(nil, id, modern, a, err), '\n')) // a client that has gone needs none
}

// message appends the response to a request with this id, in one line.
func (ep *endpoint) message(b []byte, id json.RawMessage, modern bool, a *answer, err error) []byte {
	if err == nil {
		b = slices.Grow(b, len(id)+len(a.body)+len(ep.s.about)+64)
	}
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	if err == nil {
		var whole []byte
		if whole, err = ep.appendResult(append(b, `,"result":`...), modern, a); err == nil {
			return append(whole, '}')
		}
	}
	b = append(b, `,"error":`...)
	b = append(b, refusal.Object(err)...)
	return append(b, '}')
}

// appendResult appends an answer in one line. One of the newer protocol says which
// server it is from.
func (ep *endpoint) appendResult(b []byte, modern bool, a *answer) ([]byte, error) {
	begin := len(b)
	if modern {
		delete(a.Meta, mcp.MetaKeyServerInfo) // of the server that answered
	}
	if modern && len(a.Meta) == 0 {
		b = a.appendWith(b, ep.s.about)
	} else {
		if modern {
			a.Meta[mcp.MetaKeyServerInfo] = ep.s.implementation()
		}
		body, err := a.MarshalJSON()
		if err != nil {
			return nil, err
		}
		b = append(b, body...)
	}
	if bytes.IndexByte(b[begin:], '\n') < 0 && bytes.IndexByte(b[begin:], '\r') < 0 {
		return b, nil
	}
	// What came from a server may have lines; a message is one, and so is an event.
	var one bytes.Buffer
	err := json.Compact(&one, b[begin:])
	return append(b[:begin], one.Bytes()...), err
}
