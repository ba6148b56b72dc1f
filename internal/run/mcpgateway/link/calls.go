//lint:file-ignore SA1019 Servers of the older protocols need what the newest calls deprecated.

package link

import (
	"context"
	"encoding/json"

	"ken/capability"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A request is one of the three that are calls to a user.
type request struct {
	op     string // "call tool"
	name   string
	send   func(ctx context.Context, p *pendingCall, meta mcp.Meta, answers mcp.InputResponseMap, state string) (mcp.Result, error)
	decode func(raw json.RawMessage) (answer, error)

	// post sends a request without answers past the SDK, or reports false. It may be
	// nil.
	post func(ctx context.Context, p *pendingCall, listens bool) (w *posted, can bool)
}

// Call calls a tool with call.Arguments. A result with Failed is the tool's own
// failure. See the package about questions.
func (l *Link) Call(ctx context.Context, call capability.Call, tool string) (capability.Result, error) {
	return l.do(ctx, &call, request{
		op: "call tool", name: tool, decode: decodeCall,
		send: func(ctx context.Context, p *pendingCall, meta mcp.Meta, answers mcp.InputResponseMap, state string) (mcp.Result, error) {
			if done, err := l.resumeTask(p, answers, state); done {
				return nil, err
			}
			params := &mcp.CallToolParams{Meta: meta, Name: tool, InputResponses: answers, RequestState: state}
			if len(call.Arguments) > 0 {
				params.Arguments = call.Arguments
			}
			return orNil(l.session.CallTool(ctx, params))
		},
		post: func(ctx context.Context, p *pendingCall, listens bool) (*posted, bool) {
			return l.postTool(ctx, p, tool, &call, listens)
		},
	})
}

// Read reads a resource.
func (l *Link) Read(ctx context.Context, call capability.Call, uri string) (capability.Result, error) {
	return l.do(ctx, &call, request{
		op: "read resource", name: uri, decode: decodeRead,
		send: func(ctx context.Context, _ *pendingCall, meta mcp.Meta, answers mcp.InputResponseMap, state string) (mcp.Result, error) {
			return orNil(l.session.ReadResource(ctx, &mcp.ReadResourceParams{Meta: meta, URI: uri, InputResponses: answers, RequestState: state}))
		},
	})
}

// Prompt gets a prompt with its arguments filled in.
func (l *Link) Prompt(ctx context.Context, call capability.Call, name string, args map[string]string) (capability.Result, error) {
	return l.do(ctx, &call, request{
		op: "get prompt", name: name, decode: decodePrompt,
		send: func(ctx context.Context, _ *pendingCall, meta mcp.Meta, answers mcp.InputResponseMap, state string) (mcp.Result, error) {
			return orNil(l.session.GetPrompt(ctx, &mcp.GetPromptParams{Meta: meta, Name: name, Arguments: args, InputResponses: answers, RequestState: state}))
		},
	})
}

// orNil keeps a nil pointer from becoming a result.
func orNil[R interface {
	comparable
	mcp.Result
}](res R, err error) (mcp.Result, error) {
	var none R
	if res == none {
		return nil, err
	}
	return res, err
}

func (l *Link) do(ctx context.Context, call *capability.Call, r request) (capability.Result, error) {
	if err := ctx.Err(); err != nil {
		return capability.Result{}, l.failure(ctx, r, nil, err)
	}
	if call.State != "" && !l.modern {
		if call.State != visited {
			p, err := l.pending.resume(call, r)
			if err != nil {
				return capability.Result{}, err
			}
			return l.await(ctx, call, r, p)
		}
		if err := declined(call, r); err != nil {
			return capability.Result{}, err
		}
	}
	p, w, err := l.start(ctx, call, r)
	if err != nil {
		return capability.Result{}, err
	}
	if w != nil {
		return l.awaitPosted(ctx, call, r, p, w)
	}
	return l.await(ctx, call, r, p)
}

// start sends the request. What it posted is waited for by awaitPosted.
func (l *Link) start(ctx context.Context, call *capability.Call, r request) (*pendingCall, *posted, error) {
	var answers mcp.InputResponseMap
	var state string
	if l.modern {
		own, given, err := openState(call.State, call.Answers)
		if err != nil {
			return nil, nil, &capability.Error{Kind: capability.Conflict, Op: r.op, Target: l.target(r), Err: err,
				Fix: "make the call again without answers and state"}
		}
		answers, state = rawResponses(given), own
	}
	p := &pendingCall{who: [2]string{call.Principal.Tenant, call.Principal.ID}, asked: make(chan struct{}, 1), done: make(chan struct{})}
	p.bind = func() (string, error) { return binding(call, r) }
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	_, listens := call.Live.(capability.Reporter)
	if listens {
		p.reports = make(chan report, reportRoom)
	}
	if !l.pending.add(p) {
		p.cancel()
		return nil, nil, l.closed(r)
	}
	if r.post != nil && len(answers) == 0 && state == "" {
		if w, can := r.post(ctx, p, listens); can {
			return p, w, nil
		}
	}

	meta := mcp.Meta{}
	if len(call.Meta) > 0 {
		_ = json.Unmarshal(call.Meta, &meta) // a surface made it
	}
	meta["progressToken"] = p.token
	if l.modern && listens {
		meta[mcp.MetaKeyLogLevel] = "info"
	}
	go l.send(p, r, meta, answers, state)
	return p, nil, nil
}

// send waits for the answer to a request, and for what it comes to.
func (l *Link) send(p *pendingCall, r request, meta mcp.Meta, answers mcp.InputResponseMap, state string) {
	res, err := r.send(p.ctx, p, meta, answers, state)
	l.conclude(p, r, res, err)
}

// conclude ends a call that was answered, after the task that the answer may be.
func (l *Link) conclude(p *pendingCall, r request, res mcp.Result, err error) {
	if t := asTask(p.raw.Load()); t != nil && err == nil {
		p.raw.Store(nil)
		res, err = nil, l.follow(p, t, nil)
	}
	l.pending.remove(p)
	p.res, p.err = l.outcome(p, r, res, err)
	p.cancel()
	close(p.done)
}

// outcome is what a request came to. The result as it was sent counts, even
// where the SDK does not know what to make of it.
func (l *Link) outcome(p *pendingCall, r request, res mcp.Result, err error) (capability.Result, error) {
	var raw json.RawMessage
	if came := p.raw.Load(); came != nil {
		raw = *came
	} else if err == nil && res != nil {
		// The answer came by a way that is not tapped: a resumed stream.
		raw, err = json.Marshal(res)
	}
	if raw == nil {
		return capability.Result{}, l.failure(p.ctx, r, p, err)
	}
	a, err := r.decode(raw)
	if err != nil {
		return capability.Result{}, l.garbled(r, err)
	}
	if a.asks {
		return capability.Result{}, l.inquiry(r, a)
	}
	return a.result, nil
}

// await waits for a call on behalf of a caller.
func (l *Link) await(ctx context.Context, call *capability.Call, r request, p *pendingCall) (capability.Result, error) {
	to, _ := call.Live.(capability.Reporter)
	for {
		select {
		case rep := <-p.reports:
			rep.tell(to)
		case <-p.done:
			l.pending.flush(p, to)
			return p.res, p.err
		case <-p.asked:
			if err := l.pending.park(call, r, p); err != nil {
				return capability.Result{}, err
			}
		case <-ctx.Done():
			// The SDK tells the server. Whatever that does, the call is over.
			p.cancel()
			l.pending.remove(p)
			return capability.Result{}, l.failure(ctx, r, p, ctx.Err())
		}
	}
}

// rawResponses passes answers on as they are.
func rawResponses(answers map[string]json.RawMessage) mcp.InputResponseMap {
	if len(answers) == 0 {
		return nil
	}
	m := make(mcp.InputResponseMap, len(answers))
	for name, raw := range answers {
		m[name] = &rawResponse{raw: raw}
	}
	return m
}

type rawResponse struct {
	mcp.InputResponse // nil: it lends its mark
	raw               json.RawMessage
}

// MarshalJSON returns the answer as it is.
func (r *rawResponse) MarshalJSON() ([]byte, error) { return r.raw, nil }
