//lint:file-ignore SA1019 clients of before 2026-07-28 have what that version gave up

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/internal/serve/mcpsession"
)

// sessionless is the first version of the protocol without sessions; before it
// is the last one with them.
const (
	sessionless = "2026-07-28"
	sessionful  = "2025-11-25"
)

// An endpoint is a server of the SDK with all of its sessions: the one of a
// stream, or those of one principal over HTTP.
type endpoint struct {
	*audience
	sdk       *mcp.Server
	handler   *mcp.StreamableHTTPHandler // nil for a stream
	only      *session                   // of a stream
	stateless bool
	asked     string   // the surface that the client of a stream asks for
	live      sync.Map // *mcp.ServerSession to *session, where there are several
	headers   *menu    // whose headers the SDK knows

	kept *mcp.MemoryEventStore // events for clients whose stream broke; nil for a stream

	lastMeta atomic.Pointer[clientMeta] // of requests without sessions
}

// endpoint makes one. Its session is nil for HTTP.
func (s *Server) endpoint(a *audience, only *session, stateless bool) *endpoint {
	ep := &endpoint{audience: a, only: only, stateless: stateless}
	caps := &mcp.ServerCapabilities{
		Logging:   &mcp.LoggingCapabilities{},
		Tools:     &mcp.ToolCapabilities{ListChanged: true},
		Prompts:   &mcp.PromptCapabilities{ListChanged: true},
		Resources: &mcp.ResourceCapabilities{ListChanged: true},
	}
	opts := &mcp.ServerOptions{
		Capabilities: caps,
		Instructions: ownInstructions,
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.TTLMs, c.CacheScope = 60_000, "private" },
	}
	caps.AddExtension(tasksExtension, map[string]any{})
	caps.AddExtension(skillsExtension, map[string]any{"directoryRead": true})
	if s.cfg.Backends != nil {
		caps.Completions = &mcp.CompletionCapabilities{}
		caps.Resources.Subscribe = true
		opts.SubscribeHandler, opts.UnsubscribeHandler = ep.subscribe, ep.unsubscribe
	}
	ep.sdk = mcp.NewServer(s.implementation(), opts)
	if err := errors.Join(ep.answerTasks(), ep.answerSkills()); err != nil {
		s.log.Error("clients cannot ask about tasks and skills", "error", err)
	}
	ep.sdk.AddReceivingMiddleware(ep.measured, ep.receive)
	ep.sdk.AddSendingMiddleware(ep.send)
	return ep
}

// measured tells of every answer but those of tools/call, which do not all come
// this way.
func (ep *endpoint) measured(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "tools/call" || method == "subscriptions/listen" {
			return next(ctx, method, req)
		}
		began := time.Now()
		res, err := next(ctx, method, req)
		ep.s.observe(method, began, res, err)
		return res, err
	}
}

// receive answers requests. What it does not know it leaves to the SDK.
func (ep *endpoint) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "tools/call":
			return reply(ep.callTool(ctx, req.(*mcp.CallToolRequest)))
		case "tools/list":
			return reply(ep.listTools(ctx, req.(*mcp.ListToolsRequest)))
		case "prompts/list":
			return reply(ep.listPrompts(req.(*mcp.ListPromptsRequest)))
		case "prompts/get":
			return reply(ep.getPrompt(ctx, req.(*mcp.GetPromptRequest)))
		case "resources/list":
			return reply(ep.listResources(req.(*mcp.ListResourcesRequest)))
		case "resources/templates/list":
			return reply(ep.listTemplates(req.(*mcp.ListResourceTemplatesRequest)))
		case "resources/read":
			return reply(ep.readResource(ctx, req.(*mcp.ReadResourceRequest)))
		case "completion/complete":
			return reply(ep.complete(ctx, req.(*mcp.CompleteRequest)))
		case "initialize":
			return ep.initialize(ctx, next, method, req)
		case "logging/setLevel":
			sess := ep.sessionOf(req)
			sess.mu.Lock()
			sess.logging = true
			sess.mu.Unlock()
		case "server/discover":
			res, err := next(ctx, method, req)
			if r, ok := res.(*mcp.DiscoverResult); ok && err == nil {
				r.Instructions = ep.advice()
			}
			return res, err
		case "subscriptions/listen":
			return ep.listen(ctx, next, method, req)
		}
		return next(ctx, method, req)
	}
}

// reply keeps a nil answer from becoming a result that is not nil.
func reply(a *answer, err error) (mcp.Result, error) {
	if err != nil {
		return nil, err
	}
	return a, nil
}

// initialize begins a session.
func (ep *endpoint) initialize(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	r, ok := req.(*mcp.ServerRequest[*mcp.InitializeParams])
	if !ok {
		return next(ctx, method, req)
	}
	if r.Params.ProtocolVersion >= sessionless {
		// What is begun by a handshake is of the time of handshakes, whatever
		// the client hopes for.
		r.Params.ProtocolVersion = sessionful
	}
	res, err := next(ctx, method, req)
	if err != nil {
		return res, err
	}
	if r, ok := res.(*mcp.InitializeResult); ok {
		r.Instructions = ep.advice()
	}
	sess := ep.only
	if sess == nil && !ep.stateless {
		sess = &session{id: r.Session.ID()}
		ep.live.Store(r.Session, sess)
		ep.s.guests.Arrive(sess.id, ep.key, r.Session)
		go func() {
			_ = r.Session.Wait() // how it ended does not matter
			ep.live.Delete(r.Session)
			ep.s.guests.Depart(sess.id)
			_ = ep.kept.SessionClosed(context.Background(), sess.id) // its calls may have kept events since the SDK did this
			ep.s.over(sess)
		}()
	}
	if sess != nil {
		name := clientName(r.Params.ClientInfo)
		sess.meet(name, ep.surface(name))
		if c := r.Params.Capabilities; c != nil {
			_, apps := c.Extensions[appsExtension]
			sess.declare(apps)
		}
	}
	return res, nil
}

func clientName(i *mcp.Implementation) string {
	if i == nil {
		return ""
	}
	return i.Name[:min(len(i.Name), 128)]
}

// sessionOf returns the session that a request belongs to.
func (ep *endpoint) sessionOf(req mcp.Request) *session {
	ss, _ := req.GetSession().(*mcp.ServerSession)
	name := ""
	if ep.only != nil {
		if ep.only.shown() == "" { // 2026-07-28 has no handshake
			name = clientName(initial(ss))
			ep.only.meet(name, ep.surface(name))
		}
		return ep.only
	}
	if s, ok := ep.live.Load(ss); ok {
		return s.(*session)
	}
	name = clientName(initial(ss))
	return ep.s.lobby.find(ep.who, ep.s.cfg.Settle == nil, name, ep.surface(name), time.Now())
}

func initial(ss *mcp.ServerSession) *mcp.Implementation {
	if p := ss.InitializeParams(); p != nil {
		return p.ClientInfo
	}
	return nil
}

// isModern reports whether a request is of a protocol without sessions.
func isModern(p mcp.Params) bool {
	v, _ := p.GetMeta()[mcp.MetaKeyProtocolVersion].(string)
	return v >= sessionless
}

// listTools returns the menu.
func (ep *endpoint) listTools(ctx context.Context, req *mcp.ListToolsRequest) (*answer, error) {
	sess := ep.sessionOf(req)
	cursor, modern := "", false
	if req.Params != nil {
		cursor, modern = req.Params.Cursor, isModern(req.Params)
	}
	if modern {
		sess.declare(declares(req.Params, appsExtension))
	}
	menu := sess.menu()
	m, err := ep.menuFor(ctx, ep.viewOf(menu), menu)
	if err != nil {
		return nil, err
	}
	sess.saw(tools, m.hash)
	return m.answer(cursor, modern)
}

// listen notes what a client has seen that waits for changes without a session.
func (ep *endpoint) listen(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	ss, _ := req.GetSession().(*mcp.ServerSession)
	if ep.only != nil {
		ep.note(ctx, ep.sessionOf(req))
		return next(ctx, method, req)
	}
	of := ep.sessionOf(req)
	surface, apps := strings.CutSuffix(of.menu(), withApps)
	sess := &session{id: of.id, client: of.client, surface: surface, apps: apps}
	ep.note(ctx, sess)
	ep.live.Store(ss, sess)
	defer ep.live.Delete(ss)
	defer sess.end()
	return next(ctx, method, req)
}

func (ep *endpoint) note(ctx context.Context, sess *session) {
	menu := sess.menu()
	if _, err := ep.menuFor(ctx, ep.viewOf(menu), menu); err != nil {
		ep.s.log.Warn("no news of tools", "why", err)
	}
	ep.offerings(ep.view())
	for k := range kinds {
		sess.saw(k, ep.hash(k, menu))
	}
}

// changes are the notifications of changed lists.
func changeOf(method string) (kind, bool) {
	switch method {
	case "notifications/tools/list_changed":
		return tools, true
	case "notifications/prompts/list_changed":
		return prompts, true
	case "notifications/resources/list_changed":
		return resources, true
	}
	return 0, false
}

// send keeps news of changed lists from those whose list is as it was, and has what
// belongs to a call that is made past the SDK go on the response of its request.
func (ep *endpoint) send(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if stream, ok := ctx.Value(streamKey{}).(*mcpsession.Stream); ok {
			return stream.Send(ctx, method, req)
		}
		k, ok := changeOf(method)
		if !ok {
			return next(ctx, method, req)
		}
		sess := ep.only
		if sess == nil {
			s, ok := ep.live.Load(req.GetSession())
			if !ok {
				return nil, nil
			}
			sess = s.(*session)
		}
		hash := ep.hash(k, sess.menu())
		if !sess.behind(k, hash) {
			return nil, nil
		}
		sess.saw(k, hash)
		return next(ctx, method, req)
	}
}

// tell sends news of changed lists. The SDK sends them when something is added
// to what it holds itself, which is not shown.
func (ep *endpoint) tell() {
	for k := range kinds {
		if !ep.anyBehind(k) {
			continue
		}
		switch k {
		case tools:
			ep.sdk.AddTool(&mcp.Tool{Name: "ken", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
		case prompts:
			ep.sdk.AddPrompt(&mcp.Prompt{Name: "ken"}, nil)
		case resources:
			ep.sdk.AddResource(&mcp.Resource{Name: "ken", URI: "ken://list"}, nil)
		}
	}
}

func (ep *endpoint) anyBehind(k kind) bool {
	behind := func(sess *session) bool { return sess.behind(k, ep.hash(k, sess.menu())) }
	if ep.only != nil {
		return behind(ep.only)
	}
	found := false
	ep.live.Range(func(_, s any) bool {
		found = behind(s.(*session))
		return !found
	})
	return found
}

// inUse reports whether there is anybody.
func (ep *endpoint) inUse() bool {
	if ep.only != nil {
		return true
	}
	used := false
	ep.live.Range(func(any, any) bool { used = true; return false })
	return used
}

// knowHeaders lets the SDK check the headers of calls whose arguments are in
// headers too.
func (ep *endpoint) knowHeaders() {
	m := ep.known(direct)
	if m == nil { // they were not listed, so headers are unknown
		return
	}
	ep.mu.Lock()
	before := ep.headers
	ep.headers = m
	ep.mu.Unlock()
	if before == m {
		return
	}
	if before != nil {
		for _, t := range before.headers {
			ep.sdk.RemoveTools(t.Name)
		}
	}
	for _, t := range m.headers {
		func() {
			// What is said about headers comes from outside, and the SDK
			// panics when it is wrong: then there is nothing to check.
			defer func() {
				if p := recover(); p != nil {
					ep.s.log.Warn("headers of a tool are not checked", "tool", t.Name, "why", fmt.Sprint(p))
				}
			}()
			ep.sdk.AddTool(t, nil)
		}()
	}
}
