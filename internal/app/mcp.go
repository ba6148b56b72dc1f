package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/know/source/mcptools"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/result"
	"ken/internal/serve/mcpserver"
)

// MCP returns the server for MCP clients, which is one for all of them.
func (a *App) MCP() *mcpserver.Server {
	a.mcpOnce.Do(func() { a.mcpServer = a.newMCP(a.mcpSettle) })
	return a.mcpServer
}

// exposedName returns the name that the gateway gave a server's tool. Other
// formats keep unknown keys in Meta, so there the key means nothing.
func exposedName(e *door.Entry) string {
	if e.Origin.Format != mcptools.Format {
		return ""
	}
	return e.Meta[mcptools.MetaExposed]
}

// newMCP makes a server. Without settle no client's word is taken for a
// person's.
func (a *App) newMCP(settle func(context.Context, capability.Principal, string, mcpserver.Decision) error) *mcpserver.Server {
	cfg := mcpserver.Config{
		Door: a.Door, Version: Version(), Log: a.log, Surface: string(a.Settings.MCP.Surface), Pinned: a.Settings.MCP.Pinned,
		Intents: a.mcpIntents, Ask: a.mcpAsk, Settle: settle, Whole: a.wholeResult, Hosts: a.Settings.Serve.Hosts,
		Exposed:     exposedName,
		ApproveHint: func(ticket string) string { return "ken approve grant " + ticket },
	}
	if a.gateway != nil {
		cfg.Backends, cfg.EndSession, cfg.Missing = backends{a, a.gateway}, a.gateway.EndSession, a.Servers.Unset
	}
	return mcpserver.New(cfg)
}

// mcpIntents are the intents that a client's model may choose; none where
// intents are not asked for at MCP.
func (a *App) mcpIntents() []string {
	rules := a.Rules()
	if rules == nil || !rules.AsksIntent(policy.SurfaceMCP) {
		return nil
	}
	return policy.Intents()
}

// mcpAsk returns what a person must answer before a call can go on.
func (a *App) mcpAsk(ctx context.Context, err error) (*mcpserver.Question, error) {
	q, ok := errors.AsType[*door.Question](err)
	if !ok {
		return nil, nil
	}
	out := &mcpserver.Question{Name: q.Name, Text: q.Text}
	switch q.Name {
	case door.AnswerAgain:
		out.Answer, err = json.Marshal(q.Effect)
		return out, err
	case door.AnswerConsent:
		desk, err := a.Desk()
		if err != nil {
			return nil, err
		}
		t, err := desk.Get(ctx, q.Ticket)
		if err != nil {
			return nil, err
		}
		out.Ticket, out.Wide = t.ID, t.Question.Widest == approval.Session
		out.Lines = consentLines(t)
		for _, o := range t.Offers {
			switch {
			case o.Scope == approval.Always && o.Covers == approval.CoverPrefix:
				out.Prefix = o.Text
			case o.Scope == approval.Always && o.Covers == approval.CoverCall:
				out.Always = o.Text
			}
		}
		out.Answer, err = json.Marshal(t.ID)
		return out, err
	}
	return nil, fmt.Errorf("ask the client: unknown question %q", q.Name)
}

// consentLines are what a person needs in order to decide: what will run, why he
// is asked, and what is different from what he agreed to before. The rest of a
// ticket, as ken approve shows it, is for the record.
func consentLines(t approval.Ticket) []mcpserver.Line {
	var out []mcpserver.Line
	all := t.Lines()
	for _, name := range []string{"capability", "action", "command", "argv", "arguments", "runs", "also runs", "again", "difference", "void", "why", "justification", "risk"} {
		for _, l := range all {
			if l.Name == name {
				out = append(out, mcpserver.Line{Name: l.Name, Text: l.Text})
			}
		}
	}
	return out
}

// mcpSettle takes the answer that a person gave in his client.
func (a *App) mcpSettle(ctx context.Context, who capability.Principal, ticket string, d mcpserver.Decision) error {
	said := approval.Answer{By: who, Effect: approval.Yes, Scope: approval.Once}
	switch d {
	case mcpserver.AllowOnce:
	case mcpserver.AllowSession:
		said.Scope, said.Covers = approval.Session, approval.CoverTool
	case mcpserver.AllowAlways:
		said.Scope, said.Covers = approval.Always, approval.CoverCall
	case mcpserver.AllowPrefix:
		said.Scope, said.Covers = approval.Always, approval.CoverPrefix
	default:
		said.Effect = approval.No
	}
	_, err := a.Approvals.Settle(ctx, ticket, said)
	if errors.Is(err, approval.ErrSettled) && said.Effect == approval.Yes {
		// A client whose answer was lost on the way says it again. Whether the
		// call may run is asked of the desk in any case.
		return nil
	}
	return err
}

// wholeResult reads all of what a call returned.
func (a *App) wholeResult(ctx context.Context, who capability.Principal, session, handle string) (capability.Result, error) {
	kept, err := a.results.Get()
	if err != nil {
		return capability.Result{}, err
	}
	scope := result.ScopeOf(capability.Call{Principal: who, Session: session})
	var text strings.Builder
	for from := int64(1); ; {
		piece, err := kept.Read(ctx, scope, result.Query{Handle: handle, Op: result.OpChars, From: from, Limit: result.Whole})
		if err != nil {
			return capability.Result{}, err
		}
		text.WriteString(piece.Text)
		if piece.Left == "" || piece.Chars.To < from {
			return capability.Result{Parts: []capability.Part{{Text: text.String()}}}, nil
		}
		from = piece.Chars.To + 1
	}
}

// backends shows the gateway to the server.
type backends struct {
	app     *App
	gateway *mcpgateway.Gateway
}

func (b backends) Offers(capability.Principal) ([]mcpserver.Offer, uint64) {
	version := b.gateway.Version() // before the lists: what comes between is news
	var out []mcpserver.Offer
	for _, o := range b.gateway.Offers() {
		out = append(out, mcpserver.Offer(o))
	}
	return out, version
}

func (b backends) Next(ctx context.Context, after uint64) (uint64, error) {
	return b.gateway.Next(ctx, after)
}

func (b backends) Complete(ctx context.Context, who capability.Principal, session, server string, params json.RawMessage) (json.RawMessage, error) {
	var p mcp.CompleteParams
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "complete", Target: server, Err: err}
	}
	if err := b.app.redactor.Check("complete", server, string(params), p.Argument.Value); err != nil {
		return nil, err
	}
	res, err := b.gateway.Complete(ctx, who, session, server, &p)
	if err != nil {
		return nil, err
	}
	for i, value := range res.Completion.Values {
		res.Completion.Values[i] = b.app.redactor.Held(value)
	}
	return json.Marshal(res)
}

func (b backends) Subscribe(ctx context.Context, who capability.Principal, session, server, uri string, updated func()) (func(), error) {
	if err := b.app.redactor.Check("subscribe", server, uri); err != nil {
		return nil, err
	}
	return b.gateway.Subscribe(ctx, who, session, uri, updated)
}
