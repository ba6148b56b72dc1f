//lint:file-ignore SA1019 Clients and servers of before 2026-07-28 have what that version gave up.

package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/untrusted"
)

// direct sends a request past the SDK, which decodes each answer several times
// into buffers of 32 KB and remembers the tools that were listed. Params are
// what comes behind the first brace of the parameters' object. It reports false
// where the SDK has to be asked: over HTTP, and before the server has been told
// who asks.
func (t *tap) direct(ctx context.Context, method string, meta requestMeta, params string) (result json.RawMessage, can bool, err error) {
	w, can := t.post(ctx, method, meta, params)
	if !can {
		return nil, false, nil
	}
	result, err = w.wait(ctx)
	return result, true, err
}

// A posted is a request that was sent past the SDK. One of its methods wait, forget
// and withdraw must be called.
type posted struct {
	t      *tap
	id     jsonrpc.ID
	answer <-chan *jsonrpc.Response // gets one
	err    error                    // why it was not sent
}

// post is the first half of direct: it sends the request.
func (t *tap) post(ctx context.Context, method string, meta requestMeta, params string) (w *posted, can bool) {
	if t == nil || t.l.wire == nil {
		return nil, false
	}
	t.mu.Lock()
	asker := t.triple // another request may replace it meanwhile
	ready := !t.l.modern || asker != ""
	t.serial++
	id, _ := jsonrpc.MakeID(ownID + strconv.FormatUint(t.serial, 36)) // a text is an id
	answer := make(chan *jsonrpc.Response, 1)
	if ready {
		t.waits[id] = answer
	}
	t.mu.Unlock()
	if !ready {
		return nil, false
	}
	w = &posted{t: t, id: id, answer: answer}
	if err := t.Connection.Write(ctx, &jsonrpc.Request{ID: id, Method: method, Params: t.params(asker, meta, params)}); err != nil {
		if ctx.Err() == nil {
			// As the SDK says of what was never sent.
			err = fmt.Errorf("%w: %w", &jsonrpc.Error{Code: rejectedCode, Message: "the connection is closing"}, err)
		}
		w.err = err
	}
	return w, true
}

// wait is the second half of direct: it waits for the answer.
func (w *posted) wait(ctx context.Context) (json.RawMessage, error) {
	if w.err != nil {
		w.forget()
		return nil, w.err
	}
	select {
	case m := <-w.answer:
		w.forget()
		return m.Result, m.Error
	case <-w.t.over:
		return w.last()
	case <-ctx.Done():
		w.withdraw(ctx)
		return nil, ctx.Err()
	}
}

// last is the answer of a server that says nothing more.
func (w *posted) last() (json.RawMessage, error) {
	w.forget()
	select { // it may have come with the last breath
	case m := <-w.answer:
		return m.Result, m.Error
	default:
		return nil, mcp.ErrConnectionClosed
	}
}

// forget takes the request off the list of those that wait.
func (w *posted) forget() {
	w.t.mu.Lock()
	delete(w.t.waits, w.id)
	w.t.mu.Unlock()
}

// withdraw forgets the request and tells the server so.
func (w *posted) withdraw(ctx context.Context) {
	w.forget()
	w.t.withdraw(ctx, w.id)
}

// A requestMeta is what the metadata of a request says besides who asks.
type requestMeta struct {
	token   string          // of its progress, or empty
	level   string          // of the log lines that are wanted, or empty
	members json.RawMessage // an object that a client sent, or nil
}

// params makes the parameters of a request: who asks, then what. The token is
// the first member, by which the request is found again.
func (t *tap) params(asker string, meta requestMeta, rest string) json.RawMessage {
	b := make([]byte, 0, 64+len(asker)+len(meta.members)+len(rest))
	b = append(b, `{"_meta":{`...)
	if meta.token != "" {
		b = strconv.AppendQuote(append(b, `"progressToken":`...), meta.token)
	}
	if t.l.modern {
		if meta.token != "" {
			b = append(b, ',')
		}
		b = append(b, asker...)
		if meta.level != "" {
			b = append(b, `,"`+mcp.MetaKeyLogLevel+`":`...)
			b = strconv.AppendQuote(b, meta.level)
		}
	}
	if len(meta.members) > len("{}") {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(b, meta.members[1:len(meta.members)-1]...)
	}
	b = append(b, '}')
	if rest != "" {
		b = append(b, ',')
		b = append(b, rest...)
	}
	return append(b, '}')
}

// withdraw tells the server that the call is not waited for any more.
func (t *tap) withdraw(ctx context.Context, id jsonrpc.ID) {
	params, err := json.Marshal(map[string]any{"requestId": id.Raw(), "reason": context.Cause(ctx).Error()})
	if err != nil {
		return
	}
	sending, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	_ = t.Connection.Write(sending, &jsonrpc.Request{Method: "notifications/cancelled", Params: params})
}

// introduced remembers how the SDK says who asks, which every request of the
// protocol without handshakes does.
func (t *tap) introduced(params json.RawMessage) {
	var p struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	if json.Unmarshal(params, &p) != nil || p.Meta[mcp.MetaKeyProtocolVersion] == nil || p.Meta[mcp.MetaKeyClientCapabilities] == nil {
		return
	}
	text := ""
	for _, key := range []string{mcp.MetaKeyProtocolVersion, mcp.MetaKeyClientInfo, mcp.MetaKeyClientCapabilities} {
		if value := p.Meta[key]; value != nil {
			if text != "" {
				text += ","
			}
			text += strconv.Quote(key) + ":" + string(value)
		}
	}
	t.mu.Lock()
	t.triple = text
	t.mu.Unlock()
}

// postTool sends tools/call past the SDK.
func (l *Link) postTool(ctx context.Context, p *pendingCall, tool string, call *capability.Call, listens bool) (w *posted, can bool) {
	name, err := json.Marshal(tool)
	if err != nil {
		return nil, false
	}
	rest := `"name":` + string(name)
	if len(call.Arguments) > 0 {
		rest += `,"arguments":` + string(call.Arguments)
	}
	meta := requestMeta{token: p.token, members: call.Meta}
	if listens {
		meta.level = "info"
	}
	return l.tap.post(ctx, "tools/call", meta, rest)
}

// awaitPosted waits for the answer to a posted request on behalf of a caller. The
// caller's goroutine does all that is usual. A call that asks something, or that is
// answered with a task, goes on by itself and is waited for like any other.
func (l *Link) awaitPosted(ctx context.Context, call *capability.Call, r request, p *pendingCall, w *posted) (capability.Result, error) {
	to, _ := call.Live.(capability.Reporter)
	if w.err != nil && ctx.Err() == nil {
		w.forget()
		l.conclude(p, r, nil, w.err)
		return p.res, p.err
	}
	for {
		var raw json.RawMessage
		var err error
		select {
		case rep := <-p.reports:
			rep.tell(to)
			continue
		case <-p.asked:
			p.signal()
			go func() {
				raw, err := w.wait(p.ctx)
				p.came(raw, err)
				l.conclude(p, r, nil, err)
			}()
			return l.await(ctx, call, r, p)
		case <-ctx.Done():
			p.cancel()
			l.pending.remove(p)
			go w.withdraw(p.ctx)
			return capability.Result{}, l.failure(ctx, r, p, ctx.Err())
		case m := <-w.answer:
			w.forget()
			raw, err = m.Result, m.Error
		case <-w.t.over:
			raw, err = w.last()
		case <-p.ctx.Done(): // the connection is being closed
			go w.withdraw(p.ctx)
			err = p.ctx.Err()
		}
		p.came(raw, err)
		if err == nil && asTask(p.raw.Load()) != nil {
			go l.conclude(p, r, nil, nil)
			return l.await(ctx, call, r, p)
		}
		l.conclude(p, r, nil, err)
		l.pending.flush(p, to)
		return p.res, p.err
	}
}

// came keeps the answer to a posted request as it came.
func (p *pendingCall) came(raw json.RawMessage, err error) {
	if err != nil {
		return
	}
	if len(raw) == 0 {
		raw = emptyResult
	}
	p.raw.Store(&raw)
}

// A page is one of a list of tools.
type page struct {
	Tools []json.RawMessage `json:"tools"`
	Next  string            `json:"nextCursor"`

	text []byte // the tools as they were written
	sent bool   // false: the SDK has to be asked
	err  error
}

// readPage reads the answer to tools/list. Members that differ from these only in
// their case, or come twice, are for encoding/json to choose from.
func readPage(raw json.RawMessage) (p page, err error) {
	p.text = raw
	var tools, next json.RawMessage
	for name, value := range untrusted.Members(raw) {
		switch {
		case name == "tools" && tools == nil:
			tools = value
		case name == "nextCursor" && next == nil:
			next = value
		case strings.EqualFold(name, "tools") || strings.EqualFold(name, "nextCursor"):
			return p, json.Unmarshal(raw, &p)
		}
	}
	if len(tools) == 0 || tools[0] != '[' {
		return p, json.Unmarshal(raw, &p)
	}
	if next != nil {
		if err := json.Unmarshal(next, &p.Next); err != nil {
			return p, err
		}
	}
	p.text = tools
	for one := range untrusted.Items(tools) {
		p.Tools = append(p.Tools, one)
	}
	return p, nil
}

// toolPage lists a page past the SDK.
func (t *tap) toolPage(ctx context.Context, cursor string) page {
	rest := ""
	if cursor != "" {
		text, err := json.Marshal(cursor)
		if err != nil {
			return page{sent: true, err: err}
		}
		rest = `"cursor":` + string(text)
	}
	raw, can, err := t.direct(ctx, "tools/list", requestMeta{}, rest)
	if !can || err != nil {
		return page{sent: can, err: err}
	}
	p, err := readPage(raw)
	if p.sent = true; err != nil {
		p.err = fmt.Errorf("the list of tools cannot be parsed: %w", err)
	}
	return p
}

// tools decodes the tools of a page. Schemas stay as they were written. Those that
// make no sense are told to say.
func (p page) tools(say func(format string, args ...any)) (out []*mcp.Tool) {
	for i, one := range p.Tools {
		t, err := readTool(one)
		if err != nil {
			say("tool %d of the list is left out: it cannot be read", i+1)
			continue
		}
		out = append(out, t)
	}
	return out
}

// readTool reads a tool. Its schemas stay as they were written.
func readTool(raw json.RawMessage) (*mcp.Tool, error) {
	if string(raw) == "null" {
		return nil, fmt.Errorf("value is null")
	}
	var input, output json.RawMessage
	t := &mcp.Tool{InputSchema: &input, OutputSchema: &output} // where a value is decoded into, unless it is null
	if err := json.Unmarshal(raw, t); err != nil {
		return nil, err
	}
	_, plainInput := t.InputSchema.(*json.RawMessage)
	_, plainOutput := t.OutputSchema.(*json.RawMessage)
	if !plainInput && t.InputSchema != nil || !plainOutput && t.OutputSchema != nil {
		return nil, errors.New("a schema is given twice, once as null")
	}
	t.InputSchema, t.OutputSchema = nil, nil
	if plainInput && len(input) > 0 {
		t.InputSchema = input
	}
	if plainOutput && len(output) > 0 {
		t.OutputSchema = output
	}
	return t, nil
}
