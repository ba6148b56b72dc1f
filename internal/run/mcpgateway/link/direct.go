//lint:file-ignore SA1019 Clients and servers of before 2026-07-28 have what that version gave up.

package link

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
)

// direct sends a request past the SDK, which decodes each answer several times
// into buffers of 32 KB and remembers the tools that were listed. Params are
// what comes behind the first brace of the parameters' object. It reports false
// where the SDK has to be asked: over HTTP, and before the server has been told
// who asks.
func (t *tap) direct(ctx context.Context, method string, meta requestMeta, params string) (result json.RawMessage, can bool, err error) {
	if t == nil || t.l.wire == nil {
		return nil, false, nil
	}
	t.mu.Lock()
	asker := t.triple // another request may replace it meanwhile
	ready := !t.l.modern || asker != ""
	t.serial++
	id, _ := jsonrpc.MakeID("ken-" + strconv.FormatUint(t.serial, 36)) // a text is an id
	answer := make(chan *jsonrpc.Response, 1)
	if ready {
		t.waits[id] = answer
	}
	t.mu.Unlock()
	if !ready {
		return nil, false, nil
	}
	defer func() {
		t.mu.Lock()
		delete(t.waits, id)
		t.mu.Unlock()
	}()
	if err := t.Connection.Write(ctx, &jsonrpc.Request{ID: id, Method: method, Params: t.params(asker, meta, params)}); err != nil {
		if ctx.Err() == nil {
			// As the SDK says of what was never sent.
			err = fmt.Errorf("%w: %w", &jsonrpc.Error{Code: rejectedCode, Message: "the connection is closing"}, err)
		}
		return nil, true, err
	}
	select {
	case m := <-answer:
		return m.Result, true, m.Error
	case <-t.over:
		select { // it may have come with the last breath
		case m := <-answer:
			return m.Result, true, m.Error
		default:
		}
		return nil, true, mcp.ErrConnectionClosed
	case <-ctx.Done():
		t.withdraw(ctx, id)
		return nil, true, ctx.Err()
	}
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

// callTool sends tools/call past the SDK, and keeps the answer as it came.
func (l *Link) callTool(ctx context.Context, p *pendingCall, tool string, call *capability.Call, listens bool) (can bool, err error) {
	name, err := json.Marshal(tool)
	if err != nil {
		return false, nil
	}
	rest := `"name":` + string(name)
	if len(call.Arguments) > 0 {
		rest += `,"arguments":` + string(call.Arguments)
	}
	meta := requestMeta{token: p.token, members: call.Meta}
	if listens {
		meta.level = "info"
	}
	raw, can, err := l.tap.direct(ctx, "tools/call", meta, rest)
	if can && err == nil {
		if len(raw) == 0 {
			raw = emptyResult
		}
		p.raw.Store(&raw)
	}
	return can, err
}

// A page is one of a list of tools.
type page struct {
	Tools []json.RawMessage `json:"tools"`
	Next  string            `json:"nextCursor"`
}

// toolPage lists a page past the SDK. Schemas stay as they were written. Those
// that make no sense are told to say.
func (l *Link) toolPage(ctx context.Context, cursor string, say func(format string, args ...any)) (tools []*mcp.Tool, next string, can bool, err error) {
	rest := ""
	if cursor != "" {
		text, err := json.Marshal(cursor)
		if err != nil {
			return nil, "", true, err
		}
		rest = `"cursor":` + string(text)
	}
	raw, can, err := l.tap.direct(ctx, "tools/list", requestMeta{}, rest)
	if !can || err != nil {
		return nil, "", can, err
	}
	var p page
	if err := json.Unmarshal(raw, &p); err != nil {
		return nil, "", true, fmt.Errorf("the list of tools cannot be parsed: %w", err)
	}
	for i, one := range p.Tools {
		t, err := readTool(one)
		if err != nil {
			say("tool %d of the list is left out: it cannot be read", i+1)
			continue
		}
		tools = append(tools, t)
	}
	return tools, p.Next, true, nil
}

// readTool reads a tool.
func readTool(raw json.RawMessage) (*mcp.Tool, error) {
	if string(raw) == "null" {
		return nil, fmt.Errorf("value is null")
	}
	t := &mcp.Tool{}
	if err := json.Unmarshal(raw, t); err != nil {
		return nil, err
	}
	var schemas struct {
		Input  json.RawMessage `json:"inputSchema"`
		Output json.RawMessage `json:"outputSchema"`
	}
	if err := json.Unmarshal(raw, &schemas); err != nil {
		return nil, err
	}
	t.InputSchema, t.OutputSchema = nil, nil
	if len(schemas.Input) > 0 && string(schemas.Input) != "null" {
		t.InputSchema = schemas.Input
	}
	if len(schemas.Output) > 0 && string(schemas.Output) != "null" {
		t.OutputSchema = schemas.Output
	}
	return t, nil
}
