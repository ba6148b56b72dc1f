package link

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"ken/capability"
	"ken/internal/untrusted"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	messageRunes = 400 // of what a server says in an error
	stderrRunes  = 600 // of what it printed

	rejectedCode = -32005 // the SDK's own: the message did not leave
	oldNotFound  = -32002 // no such resource, before 2026-07-28
)

// errEnded is in the tree of every error that says that the server ended.
var errEnded = errors.New("the server process ended")

// A told error is one whose text is safe to show, with its cause behind it.
type told struct {
	text  string
	cause error
}

func (e *told) Error() string { return e.text }
func (e *told) Unwrap() error { return e.cause }

// knob names a setting of this server.
func (l *Link) knob(name string) string { return "mcp.servers." + l.cfg.Name + "." + name }

// failure makes an error of the SDK one of Ken's.
func (l *Link) failure(ctx context.Context, r request, p *pendingCall, err error) error {
	e := &capability.Error{Op: r.op, Target: l.target(r), Err: err}
	over, tooLong := errors.AsType[*oversized](err)
	if p != nil && !tooLong {
		over = p.over.Load()
		tooLong = over != nil
	}
	bad, unread := errors.AsType[*unreadable](err)
	wire, spoke := errors.AsType[*jsonrpc.Error](err)
	switch {
	case unread:
		e.Kind, e.Err, e.Fix = capability.Upstream, bad, "report it to the maker of the server"
	case tooLong:
		e.Kind, e.Err, e.Fix = capability.Unavailable, over, "ask for less at once"
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		e.Kind, e.Rule = capability.Timeout, l.knob("timeout")
		e.Err = &told{"the server did not answer in time", err}
	case l.over():
		e.Kind = capability.Unavailable
		e.Fix, e.Err = l.why()
	case errors.Is(err, context.Canceled):
		e.Kind = capability.Unavailable
		e.Err = &told{"the call was cancelled", err}
	case own(err) != nil:
		toldOf(e, own(err))
	case spoke && wire.Code != rejectedCode && !errors.Is(err, mcp.ErrConnectionClosed):
		l.said(e, r, wire)
	default:
		// Whatever else is wrong, the server was not reached or broke off.
		e.Kind, e.Fix = capability.Unavailable, l.fix()
		e.Err = WithRemedy(&told{l.tale(err), fmt.Errorf("%w: %w", errEnded, err)}, remedy(l.cfg))
	}
	return e
}

// own returns Ken's own error that kept a request from being sent, such as a
// missing login. The SDK wraps it as rejected by the transport.
func own(err error) *capability.Error {
	e, ok := errors.AsType[*capability.Error](err)
	if !ok || e.Err == nil {
		return nil
	}
	return e
}

// toldOf sets e to the error of a request that was never sent. The text wraps
// no other error, which shows that nothing has happened.
func toldOf(e, said *capability.Error) {
	e.Kind, e.Rule, e.Fix = said.Kind, said.Rule, said.Fix
	e.Err = WithRemedy(&told{text: said.Op + " " + said.Target + ": " + said.Err.Error()}, Complete)
}

func (l *Link) target(r request) string {
	if r.name == "" {
		return l.cfg.Name
	}
	return l.cfg.Name + "/" + untrusted.Line(r.name, 120)
}

// said classes an error that the server answered with.
func (l *Link) said(e *capability.Error, r request, wire *jsonrpc.Error) {
	text := untrusted.Line(wire.Message, messageRunes)
	e.Err = &told{fmt.Sprintf("the server says: %s (code %d)", text, wire.Code), wire}
	low := strings.ToLower(wire.Message)
	unknown := strings.Contains(low, "not found") || strings.Contains(low, "unknown tool") ||
		strings.Contains(low, "unknown prompt") || strings.Contains(low, "unknown resource")
	switch {
	case wire.Code == mcp.CodeURLElicitationRequired:
		if q := pages(wire); q != nil {
			e.Kind, e.Err = capability.InputNeeded, q
		}
	case wire.Code == jsonrpc.CodeMethodNotFound, wire.Code == oldNotFound,
		wire.Code == jsonrpc.CodeInvalidParams && unknown:
		e.Kind = capability.NotFound
	case wire.Code == jsonrpc.CodeInvalidParams:
		e.Kind = capability.Invalid
	default:
		e.Kind = capability.Upstream
	}
}

// pages turns the demand that a person visit pages first into an inquiry.
func pages(wire *jsonrpc.Error) *capability.Inquiry {
	var data struct {
		Elicitations []json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(wire.Data, &data) != nil || len(data.Elicitations) == 0 || len(data.Elicitations) > questionRoom {
		return nil
	}
	q := &capability.Inquiry{Requests: make(map[string]json.RawMessage), State: visited}
	for i, params := range data.Elicitations {
		text, err := questionText("elicitation/create", params)
		if err != nil {
			return nil
		}
		q.Requests["page"+strconv.Itoa(i+1)] = text
	}
	return q
}

// inquiry is the error of a call whose server wants to know more first.
func (l *Link) inquiry(r request, a answer) error {
	if len(a.requests) == 0 {
		return &capability.Error{Kind: capability.Unavailable, Op: r.op, Target: l.target(r),
			Err: errors.New("the server is busy"), Fix: "make the call again later"}
	}
	requests := make(map[string]json.RawMessage, len(a.requests))
	for name, q := range a.requests {
		var asked struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(q, &asked) == nil {
			if d, no := l.denied(asked.Method, asked.Params); no {
				return d.call(l, r)
			}
		}
		requests[name] = withParams(q)
	}
	state, err := holdState(a.state, requests)
	if err != nil {
		return l.garbled(r, err)
	}
	return &capability.Error{Kind: capability.InputNeeded, Op: r.op, Target: l.target(r),
		Err: &capability.Inquiry{Requests: requests, State: state}}
}

// garbled is the error of an answer that is no result of its request.
func (l *Link) garbled(r request, err error) error {
	return &capability.Error{Kind: capability.Upstream, Op: r.op, Target: l.target(r),
		Err: &told{"the server's answer violates the protocol: " + untrusted.Line(err.Error(), messageRunes), err},
		Fix: "report it to the maker of the server"}
}

func (l *Link) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// why says why a connection that is over cannot be used.
func (l *Link) why() (fix string, err error) {
	if l.err != nil {
		if e, ok := errors.AsType[*capability.Error](l.err); ok {
			return e.Fix, e.Err
		}
		return l.fix(), WithRemedy(l.err, remedy(l.cfg))
	}
	return "", fmt.Errorf("%w: the connection was closed", errEnded)
}

func (l *Link) closed(r request) error {
	return &capability.Error{Kind: capability.Unavailable, Op: r.op, Target: l.target(r),
		Err: fmt.Errorf("%w: the connection was closed", errEnded)}
}

// unreachable is the error of [Open].
func (l *Link) unreachable(ctx context.Context, err error) error {
	e := &capability.Error{Kind: capability.Unavailable, Op: "connect to MCP server", Target: l.cfg.Name, Fix: l.fix()}
	cause := fmt.Errorf("%w: %w", errEnded, err)
	text := l.tale(err)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Kind, e.Rule, cause = capability.Timeout, l.knob("startTimeout"), err
		text = "the server did not answer the handshake in time" + l.printed()
	}
	e.Err = WithRemedy(&told{text, cause}, remedy(l.cfg))
	if said := own(err); said != nil {
		toldOf(e, said)
	}
	if why := unspoken(err); why != "" {
		e.Err, e.Fix = &told{why, err}, "update the server, or Ken"
	}
	return e
}

// unspoken returns which protocol versions were offered and answered if a
// connection failed because of them, or "".
func unspoken(err error) string {
	_, version, ok := strings.Cut(err.Error(), "unsupported protocol version: ")
	if !ok {
		return ""
	}
	return "the server uses protocol version " + untrusted.Line(version, 60) + "; Ken supports " + strings.Join(mcp.SupportedProtocolVersions(), ", ")
}

// ended is the error of a connection that was not closed by Close.
func (l *Link) ended(cause error) error {
	if cause == nil {
		cause = io.EOF
	}
	return &capability.Error{Kind: capability.Unavailable, Op: "talk to MCP server", Target: l.cfg.Name, Fix: l.fix(),
		Err: WithRemedy(&told{l.tale(cause), fmt.Errorf("%w: %w", errEnded, cause)}, remedy(l.cfg))}
}

// tale tells how a server was lost: how it exited, what it printed, or what the
// network said.
func (l *Link) tale(err error) string {
	if l.proc == nil {
		return "the server cannot be reached: " + untrusted.Line(networkCause(err), messageRunes)
	}
	text := "it ended"
	select {
	case <-l.proc.Done():
		if p, ok := l.proc.(interface{ Err() error }); ok && p.Err() != nil {
			text = "the server ended with " + untrusted.Line(p.Err().Error(), messageRunes)
		}
	default:
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) && err != nil {
			text = untrusted.Line(err.Error(), messageRunes)
		}
	}
	return text + l.printed()
}

// networkCause returns what the network or the server said, without the steps of
// the SDK that led there.
func networkCause(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.URL + ": " + e.Err.Error()
	}
	return sdkSteps().ReplaceAllString(err.Error(), "")
}

var sdkSteps = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:calling|sending) "[^"]*": |rejected by transport: )+`)
})

func (l *Link) printed() string {
	if l.proc == nil {
		return ""
	}
	var b strings.Builder
	if s := strings.TrimSpace(l.proc.Stderr()); s != "" {
		if len(s) > 4*stderrRunes {
			s = strings.ToValidUTF8(s[len(s)-4*stderrRunes:], "")
		}
		b.WriteString("; it printed: " + untrusted.Line(s, stderrRunes))
	}
	if n, sample := l.wire.noise(); n > 0 {
		fmt.Fprintf(&b, "; %d lines on its output are no messages: %s", n, sample)
	}
	return b.String()
}

// fix says the remedy of a lost server in words.
func (l *Link) fix() string {
	if remedy(l.cfg) == RunCommand {
		return "run the command of mcp.servers." + l.cfg.Name + " by hand, or see ken doctor"
	}
	return "check url and sign-in of mcp.servers." + l.cfg.Name + ", or see ken doctor"
}

// remedy returns what can be done about a server that is lost.
func remedy(c Config) Remedy {
	if c.Start != nil {
		return RunCommand
	}
	return CheckAddress
}
