//lint:file-ignore SA1019 Servers of the older protocols need what the newest calls deprecated.

package link

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"ken/capability"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// reportRoom is how many reports of a call may wait for its Reporter.
const reportRoom = 256

// A flight is a call on its way. It outlives the Call that made it only while
// it is parked.
type flight struct {
	token  string    // the progress token
	serial uint64    // higher is newer
	who    [2]string // tenant and id of whose call it is
	about  string    // binds a call that is made again to this one; set when parked

	ctx    context.Context
	cancel context.CancelFunc
	asked  chan struct{} // takes one: there are questions
	done   chan struct{} // closed when res and err are set

	// raw is the result as it came, set before the SDK sees one. It may be set
	// after the flight was cancelled, too.
	raw atomic.Pointer[json.RawMessage]
	res capability.Result
	err error

	over atomic.Pointer[oversized] // the answer was too long

	// Guarded by Link.mu.
	reports   chan report // nil: no listener
	dropped   int
	questions map[string]*question
	asks      int
	state     string // under which it is parked
	timer     *time.Timer
}

// A report is progress, or with a level a line for a log.
type report struct {
	done, total   float64
	message       string
	level, logger string
	data          json.RawMessage
}

func (r report) tell(to capability.Reporter) {
	if r.level == "" {
		to.Progress(r.done, r.total, r.message)
	} else {
		to.Note(r.level, r.logger, r.data)
	}
}

// A request is one of the three that are calls to a user.
type request struct {
	op     string // "call tool"
	name   string
	send   func(ctx context.Context, f *flight, meta mcp.Meta, answers mcp.InputResponseMap, state string) (mcp.Result, error)
	decode func(raw json.RawMessage) (answer, error)
}

// Call calls a tool with call.Arguments. A result with Failed is the tool's own
// failure. See the package about questions.
func (l *Link) Call(ctx context.Context, call capability.Call, tool string) (capability.Result, error) {
	return l.do(ctx, call, request{
		op: "call tool", name: tool, decode: decodeCall,
		send: func(ctx context.Context, f *flight, meta mcp.Meta, answers mcp.InputResponseMap, state string) (mcp.Result, error) {
			if len(answers) == 0 && state == "" {
				_, listens := meta[mcp.MetaKeyLogLevel]
				if done, err := l.callTool(ctx, f, tool, call.Arguments, listens); done {
					return nil, err
				}
			}
			p := &mcp.CallToolParams{Meta: meta, Name: tool, InputResponses: answers, RequestState: state}
			if len(call.Arguments) > 0 {
				p.Arguments = call.Arguments
			}
			return orNil(l.session.CallTool(ctx, p))
		},
	})
}

// Read reads a resource.
func (l *Link) Read(ctx context.Context, call capability.Call, uri string) (capability.Result, error) {
	return l.do(ctx, call, request{
		op: "read resource", name: uri, decode: decodeRead,
		send: func(ctx context.Context, _ *flight, meta mcp.Meta, answers mcp.InputResponseMap, state string) (mcp.Result, error) {
			return orNil(l.session.ReadResource(ctx, &mcp.ReadResourceParams{Meta: meta, URI: uri, InputResponses: answers, RequestState: state}))
		},
	})
}

// Prompt gets a prompt with its arguments filled in.
func (l *Link) Prompt(ctx context.Context, call capability.Call, name string, args map[string]string) (capability.Result, error) {
	return l.do(ctx, call, request{
		op: "get prompt", name: name, decode: decodePrompt,
		send: func(ctx context.Context, _ *flight, meta mcp.Meta, answers mcp.InputResponseMap, state string) (mcp.Result, error) {
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

func (l *Link) do(ctx context.Context, call capability.Call, r request) (capability.Result, error) {
	if err := ctx.Err(); err != nil {
		return capability.Result{}, l.failure(ctx, r, nil, err)
	}
	if call.State != "" && !l.modern {
		if call.State != visited {
			return l.resume(ctx, call, r)
		}
		if err := l.declined(call, r); err != nil {
			return capability.Result{}, err
		}
	}
	f, err := l.launch(ctx, call, r)
	if err != nil {
		return capability.Result{}, err
	}
	return l.attend(ctx, call, r, f)
}

// launch sends the request.
func (l *Link) launch(ctx context.Context, call capability.Call, r request) (*flight, error) {
	var answers mcp.InputResponseMap
	var state string
	if l.modern {
		own, given, err := openState(call.State, call.Answers)
		if err != nil {
			return nil, &capability.Error{Kind: capability.Conflict, Op: r.op, Target: l.target(r), Err: err,
				Fix: "make the call again without answers and state"}
		}
		answers, state = rawResponses(given), own
	}
	f := &flight{who: [2]string{call.Principal.Tenant, call.Principal.ID}, asked: make(chan struct{}, 1), done: make(chan struct{})}
	f.ctx, f.cancel = context.WithCancel(context.WithoutCancel(ctx))
	_, listens := call.Live.(capability.Reporter)
	if listens {
		f.reports = make(chan report, reportRoom)
	}
	l.mu.Lock()
	if l.closing {
		l.mu.Unlock()
		f.cancel()
		return nil, l.closed(r)
	}
	l.serial++
	f.serial = l.serial
	f.token = "ken-" + strconv.FormatUint(f.serial, 36)
	l.flights[f.token] = f
	l.mu.Unlock()

	meta := mcp.Meta{"progressToken": f.token}
	if l.modern && listens {
		meta[mcp.MetaKeyLogLevel] = "info"
	}
	go l.fly(f, r, meta, answers, state)
	return f, nil
}

func (l *Link) fly(f *flight, r request, meta mcp.Meta, answers mcp.InputResponseMap, state string) {
	res, err := r.send(f.ctx, f, meta, answers, state)
	l.land(f)
	f.res, f.err = l.outcome(f, r, res, err)
	f.cancel()
	close(f.done)
}

// land takes a flight off the list of those that may still be asked about.
func (l *Link) land(f *flight) {
	l.mu.Lock()
	delete(l.flights, f.token)
	l.mu.Unlock()
}

// keep takes the result as it came, and leaves an empty one for the SDK.
func (f *flight) keep(m *jsonrpc.Response) {
	raw := m.Result
	f.raw.Store(&raw)
	m.Result = emptyResult
}

// outcome is what a request came to. The result as it was sent counts, even
// where the SDK does not know what to make of it.
func (l *Link) outcome(f *flight, r request, res mcp.Result, err error) (capability.Result, error) {
	var raw json.RawMessage
	if p := f.raw.Load(); p != nil {
		raw = *p
	} else if err == nil && res != nil {
		// The answer came by a way that is not tapped: a resumed stream.
		raw, err = json.Marshal(res)
	}
	if raw == nil {
		return capability.Result{}, l.failure(f.ctx, r, f, err)
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

// attend waits for a flight on behalf of a caller.
func (l *Link) attend(ctx context.Context, call capability.Call, r request, f *flight) (capability.Result, error) {
	to, _ := call.Live.(capability.Reporter)
	for {
		select {
		case rep := <-f.reports:
			rep.tell(to)
		case <-f.done:
			l.flush(f, to)
			return f.res, f.err
		case <-f.asked:
			if err := l.park(call, r, f); err != nil {
				return capability.Result{}, err
			}
		case <-ctx.Done():
			// The SDK tells the server. Whatever that does, the call is over.
			f.cancel()
			l.land(f)
			return capability.Result{}, l.failure(ctx, r, f, ctx.Err())
		}
	}
}

// flush hands over what was reported before the end, and how much was not.
func (l *Link) flush(f *flight, to capability.Reporter) {
	if to == nil {
		return
	}
	for {
		select {
		case rep := <-f.reports:
			rep.tell(to)
			continue
		default:
		}
		break
	}
	l.mu.Lock()
	dropped := f.dropped
	f.dropped = 0
	l.mu.Unlock()
	if dropped > 0 {
		to.Note("warning", "ken", json.RawMessage(strconv.Quote(fmt.Sprintf("%d reports came faster than they were taken and are left out", dropped))))
	}
}

// report queues a report. It never waits: a slow listener loses reports, not
// the connection its time. l.mu is held.
func (f *flight) report(r report) {
	if f.reports == nil {
		return
	}
	select {
	case f.reports <- r:
	default:
		f.dropped++
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
