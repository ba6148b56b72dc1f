package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/envelope"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

// schemaTokens is how much of a schema an error shows.
const schemaTokens = 2000

// callTool makes the call that a client asks for.
func (ep *endpoint) callTool(ctx context.Context, req *mcp.CallToolRequest) (*answer, error) {
	return ep.call(ctx, ep.sessionOf(req), req)
}

// call makes the call of a request of a session. The request has no session of the
// SDK if it can ask nothing and report nothing while it runs.
func (ep *endpoint) call(ctx context.Context, sess *session, req *mcp.CallToolRequest) (*answer, error) {
	began := time.Now()
	a, err := ep.callAny(ctx, sess, req, began)
	ep.s.observe("tools/call", began, a, err)
	return a, err
}

// callAny is call without the measuring.
func (ep *endpoint) callAny(ctx context.Context, sess *session, req *mcp.CallToolRequest, began time.Time) (*answer, error) {
	p, modern := req.Params, isModern(req.Params)
	if modern {
		sess.declare(declares(p, appsExtension))
	}
	if !sess.enter() {
		return said(modern, fmt.Sprintf("%d calls of this session run already; wait for one of them, then call again", maxRunning), true), nil
	}
	defer sess.leave()
	v := ep.view()
	switch p.Name {
	case toolDiscover, toolList, toolDescribe:
		if ep.s.cfg.Door.Await(ctx, "") { // the tool may belong to a server that is starting
			v = ep.view()
		}
		return ep.look(ctx, v, sess, p)
	case toolIntent:
		if names := ep.s.cfg.Intents(); len(names) > 0 {
			return ep.selectIntent(sess, names, p, modern), nil
		}
		return nil, ep.unknownTool(p.Name, sess.shown())
	}
	target, app, err := ep.target(ctx, v, sess, p)
	if err != nil {
		return nil, err
	}
	x := &exchange{ep: ep, sess: sess, view: v, ss: req.Session, modern: modern, subject: "tools/call " + p.Name, caps: req.ClientCapabilities}
	x.prepare(ctx, target, p.Arguments, p)
	x.call.Arrived, x.call.Structured = began, ep.promises(sess.menu(), p.Name)
	if app {
		x.call.Origin = capability.ByApp
	}
	if later, ok, err := laterOf(p); ok || err != nil {
		if err != nil {
			return nil, err
		}
		return ep.queue(ctx, x, p, later)
	}
	if declaresTasks(p) {
		return ep.callLong(ctx, x, p)
	}
	return ep.finish(ctx, x, p)
}

// finish makes a call while its client waits.
func (ep *endpoint) finish(ctx context.Context, x *exchange, p *mcp.CallToolParamsRaw) (*answer, error) {
	res, pause, err := x.run(ctx, p.InputResponses, p.RequestState)
	switch {
	case err != nil:
		return ep.refused(ctx, x, p, err)
	case pause != nil:
		return pause, nil
	}
	return x.answered(res), nil
}

// answered writes the result of a call.
func (x *exchange) answered(res capability.Result) *answer {
	x.remember(res)
	if x.call.Structured {
		res = kept(res)
	}
	return toolResult(x.modern, res)
}

// remember notes whose the addresses in a result are.
func (x *exchange) remember(res capability.Result) {
	for i := range res.Parts {
		if p := &res.Parts[i]; p.Link != "" {
			if rest, ok := strings.CutPrefix(string(realTarget(x.call)), "mcp:"); ok {
				server, _, _ := strings.Cut(rest, "/")
				x.sess.link(p.Link, server)
			}
		}
	}
}

// look runs the tools by which a model looks further.
func (ep *endpoint) look(ctx context.Context, v door.View, sess *session, p *mcp.CallToolParamsRaw) (*answer, error) {
	a, err := ep.s.cfg.Door.Call(ctx, v, capability.Scope{Session: sess.id, User: ep.who.ID}, p.Name, p.Arguments)
	if err != nil {
		return nil, err
	}
	if a.Failed || a.Data == nil || strings.Contains(sess.menu(), textOnly) {
		return said(isModern(p), a.Text, a.Failed), nil
	}
	data, err := json.Marshal(a.Data)
	if err != nil {
		return nil, err
	}
	return toolResult(isModern(p), capability.Result{Parts: []capability.Part{{Text: a.Text}, {JSON: data, MIME: "application/json"}}}), nil
}

// selectIntent sets what the session is about to do.
func (ep *endpoint) selectIntent(sess *session, names []string, p *mcp.CallToolParamsRaw, modern bool) *answer {
	var in struct {
		Intent string `json:"intent"`
	}
	if err := json.Unmarshal(p.Arguments, &in); err != nil || !slices.Contains(names, in.Intent) {
		return said(modern, fmt.Sprintf("intent is %s; it is one of %s", untrusted.Line(in.Intent, 40), strings.Join(names, ", ")), true)
	}
	sess.selectIntent(in.Intent, time.Now())
	return said(modern, fmt.Sprintf("The intent is %s for %d minutes.", in.Intent, int(intentLife.Minutes())), false)
}

// target returns what a tool's name stands for, and whether a page of a server
// calls it. A name that was not there when the menu was made is looked for in a new
// one.
func (ep *endpoint) target(ctx context.Context, v door.View, sess *session, p *mcp.CallToolParamsRaw) (id capability.ID, app bool, err error) {
	menu := sess.menu()
	switch {
	case p.Name == toolInvoke && surfaceOf(menu) == bridge:
		return toolInvoke, false, nil
	case p.Name == toolRead && ep.has(v, toolRead):
		return "tool:" + toolRead, false, nil
	}
	if m := ep.known(menu); m != nil {
		if id, ok := m.targets[p.Name]; ok {
			return id, ep.byApp(menu, id), nil
		}
	}
	for try := range 2 {
		m, err := ep.menuFor(ctx, ep.viewOf(menu), menu)
		if err != nil {
			return "", false, err
		}
		if id, ok := m.targets[p.Name]; ok {
			return id, ep.byApp(menu, id), nil
		}
		if try > 0 || !ep.s.cfg.Door.Await(ctx, "") {
			break
		}
	}
	if id, err := ep.appTarget(sess, p.Name); id != "" || err != nil {
		return id, true, err
	}
	// A tool that only this agent may not use is not in its menu. The call is made,
	// so that its denial names the rule.
	for _, name := range []string{p.Name, "mcp:" + strings.Replace(p.Name, "__", "/", 1)} {
		if id, ok := ep.s.cfg.Door.DeniedToAgent(v, name); ok {
			return id, false, nil
		}
	}
	return "", false, ep.unknownTool(p.Name, surfaceOf(menu))
}

// promises reports whether a tool is listed with the schema of its results.
func (ep *endpoint) promises(surface, name string) bool {
	m := ep.known(surface)
	return m != nil && m.promise[name]
}

func (ep *endpoint) unknownTool(name, surface string) error {
	text := "unknown tool " + untrusted.Line(name, 80)
	if note := ep.s.cfg.Door.Starting(ep.who); note != "" {
		text += "; " + note
	}
	if surface == bridge {
		text += "; " + toolDiscover + " finds capabilities and " + toolInvoke + " calls them"
	}
	return fault(jsonrpc.CodeInvalidParams, text, nil)
}

// invoked returns the capability that a call of invoke_capability is about. It is
// empty for other calls and for arguments that cannot be read.
func invoked(p *mcp.CallToolParamsRaw) string {
	if p.Name != toolInvoke {
		return ""
	}
	in, _ := envelope.Read(p.Arguments) // the runner says what is wrong with it
	return in.Capability
}

// refused tells why a call was not made: as a result that a model can read, but
// for what the protocol has an error for.
func (ep *endpoint) refused(ctx context.Context, x *exchange, p *mcp.CallToolParamsRaw, err error) (*answer, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if wire, ok := answered(err); ok {
		return nil, wire
	}
	e, ok := errors.AsType[*capability.Error](err)
	if !ok {
		ep.s.log.Error("call", "tool", p.Name, "error", err)
		return said(x.modern, err.Error(), true), nil
	}
	switch {
	// Without a cause, the tool itself was not found. With one, the tool ran
	// and did not find something, such as the handle of a result.
	case e.Kind == capability.NotFound && e.Err == nil && x.call.Target != toolInvoke && e.Target == string(x.call.Target):
		return nil, ep.unknownTool(p.Name, x.sess.shown())
	case e.Kind == capability.NotFound && strings.HasPrefix(e.Fix, "see ken catalog"):
		// The command is for a terminal, and a model has a tool for it.
		about := *e
		about.Fix = toolDiscover + " finds the ids"
		return said(x.modern, about.Error()+x.waiting, true), nil
	case e.Kind == capability.Invalid:
		if text := ep.schemaError(ctx, x.view, e); text != "" {
			return said(x.modern, text, true), nil
		}
	}
	return said(x.modern, err.Error()+x.waiting, true), nil
}

// notSent is the code by which the SDK says that a message to a server did not
// leave, as when the server cannot be reached.
const notSent = -32005

// answered returns the error of the protocol in err. The SDK's own error for a message
// that did not leave is not one: no server said it, and its text says nothing.
func answered(err error) (*jsonrpc.Error, bool) {
	wire, ok := errors.AsType[*jsonrpc.Error](err)
	return wire, ok && !(wire.Code == notSent && wire.Message == "rejected by transport")
}

// schemaError says what is wrong with arguments together with what they must
// be, which saves the model a question.
func (ep *endpoint) schemaError(ctx context.Context, v door.View, e *capability.Error) string {
	d, err := ep.s.cfg.Door.Describe(ctx, v, e.Target)
	if err != nil || len(d.Detail.Schema) == 0 {
		return ""
	}
	about := *e
	about.Fix = ""
	schema := string(d.Detail.Schema)
	if short := tokenizer.Cut(schema, schemaTokens); len(short) < len(schema) {
		schema = fmt.Sprintf("%s … (%d of %d bytes; %s has the rest)", short, len(short), len(schema), toolDescribe)
	}
	return about.Error() + "\nIts input schema: " + schema
}
