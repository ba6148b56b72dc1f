package mcpgateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/mcpgateway/link"
)

var (
	_ executor.Executor = (*Gateway)(nil)
	_ executor.Punctual = (*Gateway)(nil)
)

// Facts says what a call comes to: a program of the user's, a host, or both. It
// starts nothing.
func (g *Gateway) Facts(ctx context.Context, call capability.Call, c *capability.Capability) (executor.Facts, error) {
	s, err := g.server(call.Target)
	if err != nil {
		return executor.Facts{}, err
	}
	f := executor.Facts{Required: s.def.permissions(), Secrets: s.given}
	g.folders.Texts(&f, call.Arguments, g.cfg.Workspace, s.def.Cwd)
	if s.def.URL == "" {
		f.Isolation = s.isolation(ctx)
		return f, nil
	}
	x := g.expander(&s.def)
	u, err := parseURL(x.expand(s.def.URL))
	if x.err() != nil {
		err = x.err()
	}
	if err != nil {
		return executor.Facts{}, s.def.invalid(err)
	}
	f.Hosts = []string{u.Hostname()}
	return f, nil
}

// server returns the server of a capability.
func (g *Gateway) server(target capability.ID) (*server, error) {
	name, ok := strings.CutPrefix(string(target), "mcp:")
	name, _, found := strings.Cut(name, "/")
	if !ok || !found {
		return nil, &capability.Error{Kind: capability.NotFound, Op: "call", Target: string(target), Err: errors.New("not a tool of an MCP server")}
	}
	return g.find(name)
}

// Punctual implements [executor.Punctual]: what waits for a server waits for the end
// of the call's context, too.
func (g *Gateway) Punctual() bool { return true }

// Invoke carries a call to its server and starts that if need be.
func (g *Gateway) Invoke(ctx context.Context, call capability.Call) (capability.Result, error) {
	s, err := g.server(call.Target)
	if err != nil {
		return capability.Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.def.Timeout)
	defer cancel()
	b, err := s.hold(s.def.keyOf(call.Principal, call.Session))
	if err != nil {
		return capability.Result{}, err
	}
	defer b.release()
	if err := b.calls.enter(ctx, whose{person{call.Principal.Tenant, call.Principal.ID}, call.Session}); err != nil {
		return capability.Result{}, &capability.Error{
			Kind: capability.Unavailable, Op: "call", Target: string(call.Target), Rule: "mcp.servers." + s.def.Name + ".concurrent",
			Err: fmt.Errorf("%d calls are already in progress: %w", s.def.Concurrent, err), Fix: "call later, or allow more at one time",
		}
	}
	defer b.calls.leave()
	res, err, sent := b.try(ctx, call)
	if err != nil && !sent && ctx.Err() == nil {
		res, err, _ = b.try(ctx, call) // once, on another connection
	}
	return res, err
}

// try makes a call on the link there is, or on a new one. sent is false when it
// is known that the call did not reach the server because its connection was
// over.
func (b *backend) try(ctx context.Context, call capability.Call) (res capability.Result, err error, sent bool) {
	l, err := b.connect(ctx)
	if err != nil {
		return res, err, true // another try is the caller's choice
	}
	// The start has read the lists: what is called is what was decided on.
	e, err := b.s.entry(call)
	if err == nil {
		err = b.s.barred(call, e)
	}
	if err != nil {
		return res, err, true
	}
	res, err = b.send(ctx, l, call, e)
	if held := b.held(l); held != "" {
		if res.Meta == nil {
			res.Meta = map[string]string{}
		}
		res.Meta["isolation"] = held
	}
	if err == nil {
		b.settle()
		return res, nil, true
	}
	if unsent(err) {
		b.drop(l)
		return res, err, false
	}
	return res, b.judge(ctx, l, call, err), true
}

// entry returns what a call means, and refuses what is no longer what was decided
// on.
func (s *server) entry(call capability.Call) (*entry, error) {
	o := s.offered()
	var e *entry
	if o != nil {
		e = o.entries[call.Target]
	}
	switch {
	case e == nil:
		return nil, &capability.Error{
			Kind: capability.NotFound, Op: "call", Target: string(call.Target), Err: errors.New("the server no longer offers this tool"), Fix: "look for another",
		}
	case e.barred != "":
		return nil, &capability.Error{
			Kind: capability.Conflict, Op: "call", Target: string(call.Target), Rule: e.barred,
			Err: errors.New("the tool differs from the accepted version"), Fix: "ken extension review mcp:" + s.def.Name,
		}
	case call.CapabilityHash != "" && call.CapabilityHash != e.Hash:
		return nil, &capability.Error{
			Kind: capability.Conflict, Op: "call", Target: string(call.Target), Err: errors.New("the tool changed since it was described"), Fix: "describe it again, then call",
		}
	}
	return e, nil
}

// send puts a call into the words of the protocol.
func (b *backend) send(ctx context.Context, l *link.Link, call capability.Call, e *entry) (capability.Result, error) {
	switch e.Run.Runner {
	case runResource:
		var in struct {
			URI string `json:"uri"`
		}
		if err := decode(call, &in); err != nil {
			return capability.Result{}, err
		}
		skill, err := b.s.skillFile(call, in.URI)
		if err != nil {
			return capability.Result{}, err
		}
		res, err := l.Read(ctx, call, in.URI)
		if err == nil && skill != nil {
			err = b.verified(call, skill, in.URI, &res)
		}
		if err != nil {
			return capability.Result{}, err
		}
		b.s.boundPages(&res)
		return res, nil
	case runSkill:
		return b.readSkill(ctx, l, call)
	case runPrompt:
		var in struct {
			Name      string            `json:"name"`
			Arguments map[string]string `json:"arguments"`
		}
		if err := decode(call, &in); err != nil {
			return capability.Result{}, err
		}
		return l.Prompt(ctx, call, in.Name, in.Arguments)
	}
	return l.Call(ctx, call, e.wire)
}

// readSkill reads a file of a skill for a model.
func (b *backend) readSkill(ctx context.Context, l *link.Link, call capability.Call) (capability.Result, error) {
	o := b.s.offered()
	if o == nil || o.skills[call.Target] == nil {
		return capability.Result{}, &capability.Error{Kind: capability.NotFound, Op: "call", Target: string(call.Target), Err: errNoSkill, Fix: "search for another skill"}
	}
	e := o.skills[call.Target]
	uri, err := skillAddress(call, e)
	if err != nil {
		return capability.Result{}, err
	}
	res, err := l.Read(ctx, call, uri)
	if err == nil {
		err = b.verified(call, e, uri, &res)
	}
	if err != nil {
		return capability.Result{}, err
	}
	b.s.fenceSkill(e, &res)
	return res, nil
}

func decode(call capability.Call, into any) error {
	dec := json.NewDecoder(bytes.NewReader(call.Arguments))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return &capability.Error{Kind: capability.Invalid, Op: "call", Target: string(call.Target), Err: fmt.Errorf("arguments: %w", err), Fix: "see its schema"}
	}
	return nil
}

// codeRejected is the SDK's own: the message did not leave.
const codeRejected = -32005

// unsent reports whether an error proves that a request never got to its server.
func unsent(err error) bool {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Code == codeRejected {
		return true
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return true
	}
	// A server that has forgotten the session has not looked at the request.
	return errors.Is(err, mcp.ErrSessionMissing)
}

// judge says what is known of a call that failed. That it is unavailable means
// to the runner that nothing has happened; whatever broke off later may have.
func (b *backend) judge(ctx context.Context, l *link.Link, call capability.Call, err error) error {
	e, ok := errors.AsType[*capability.Error](err)
	if !ok {
		return &capability.Error{Kind: capability.Upstream, Op: "call", Target: string(call.Target), Err: err}
	}
	switch e.Kind {
	case capability.InputNeeded:
		b.s.mu.Lock()
		b.keep = now().Add(parkTime) // the call may wait inside the link
		b.s.mu.Unlock()
		return err
	case capability.Timeout:
		b.doubt(l)
	case capability.Unavailable:
		if ctx.Err() == nil && !over(l) && errors.Unwrap(e.Err) == nil {
			return err // the server itself says that it is busy
		}
		out := *e
		out.Kind = capability.Upstream
		if why := b.epitaph(ctx, l); why != nil {
			out.Err = why
		}
		if out.Fix == "" {
			out.Fix = "check whether it took effect before you call again"
		}
		return &out
	}
	return err
}

// epitaphTime is how long a call waits to hear how its server ended.
const epitaphTime = time.Second

// epitaph says how the process behind a link ended, if it did: the end of its
// output is seen before that.
func (b *backend) epitaph(ctx context.Context, l *link.Link) error {
	if b.s.def.URL != "" || ctx.Err() != nil {
		return nil
	}
	timer := time.NewTimer(epitaphTime)
	defer timer.Stop()
	select {
	case <-l.Done():
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return nil
	}
	if e, ok := errors.AsType[*capability.Error](l.Err()); ok && e.Err != nil {
		return e.Err
	}
	return l.Err()
}

// drop takes a connection out of use that does not carry messages any more.
func (b *backend) drop(l *link.Link) {
	b.s.mu.Lock()
	mine := b.link == l
	if mine {
		b.link = nil
	}
	b.s.mu.Unlock()
	if mine {
		b.s.shut(l)
	}
}

// settle notes that the back end works.
func (b *backend) settle() {
	b.s.mu.Lock()
	if b.failures > 0 && now().Sub(b.began) >= steady {
		b.failures = 0
	}
	b.s.mu.Unlock()
}
