package app

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/find/outcome"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
	"ken/internal/run/result"
	"ken/internal/secret"
	"ken/internal/serve/auth"
	"ken/internal/serve/doctor"
	"ken/internal/serve/httpapi"
	"ken/internal/serve/httpapi/catalogapi"
	"ken/internal/serve/httpapi/chatapi"
	"ken/internal/serve/httpapi/manageapi"
	"ken/internal/serve/httpapi/stream"
	"ken/internal/serve/httpapi/systemapi"
	"ken/internal/serve/httpapi/trailapi"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/serve/mcpbridge"
	"ken/internal/serve/metrics"
	"ken/internal/serve/reviews"
	"ken/internal/serve/servercard"
	"ken/internal/serve/settings"
	"ken/internal/setup"
	"ken/internal/store"
	"ken/internal/talk/commands"
	"ken/internal/talk/consent"
	"ken/internal/talk/demo"
	"ken/internal/talk/event"
	"ken/internal/talk/opener"
	"ken/internal/talk/session"
	"ken/internal/talk/slash"
	"ken/web"
)

// A Site is what is served over HTTP: the page, the API and MCP.
type Site struct {
	app     *App
	hub     *stream.Hub
	meters  *metrics.Meters
	numbers metrics.Registry
	handler auth.Handler
	started time.Time
	mcp     *mcpbridge.Handler
	records stream.TurnRecords
	demo    *demoSite // nil: this is the demo
}

// NewSite makes what is served. waiting ends when the server is about to stop:
// requests that only wait for news are answered then.
func (a *App) NewSite(waiting context.Context, log *slog.Logger) (*Site, error) {
	s, err := newSite(waiting, a, log)
	if err == nil {
		s.demo = newDemoSite(waiting, a, log)
	}
	return s, err
}

func newSite(waiting context.Context, a *App, log *slog.Logger) (*Site, error) {
	s := &Site{app: a, started: time.Now(), records: stream.TurnRecords{Store: a.store.Get, Keep: a.Settings.Chat.Keep}}
	s.meters = metrics.NewMeters(&s.numbers, s.readings())
	told := s.meters.Outcome
	a.counter.Store(&told)
	s.hub = stream.New(stream.Config{Turn: s.turn, Keep: s.records.Put, Last: s.lastEntry, Relay: s.relay(), Log: log})
	running, stop := context.WithCancel(context.WithoutCancel(waiting)) // turns end after waiting does
	ended := make(chan struct{})
	go func() { defer close(ended); s.hub.Run(running) }()
	a.closers.Add(func() error {
		stop()
		<-ended
		return nil
	})
	s.mcp = s.mcpHandler(waiting)
	docs, err := web.Docs()
	if err != nil {
		return nil, err
	}
	s.handler, err = httpapi.New(httpapi.Config{
		Routes: s.routes(waiting), Page: web.Dist, Docs: docs, MCP: s.mcp, Log: log,
		Card: servercard.Config{Version: Version(), Protocols: mcp.SupportedProtocolVersions(), Open: s.app.Settings.Serve.Auth == config.AuthOff},
		Info: wire.Info{Title: "Ken", Version: Version(), Summary: "The capability layer between agents and what they can do", Public: []string{"/healthz"}},
		Answered: func(r *wire.Route, status int, took time.Duration) {
			s.meters.Request(r.Name, status, took, r.Stream != nil)
		},
	})
	return s, err
}

// routes are all operations of the API, but for the one that describes them.
func (s *Site) routes(waiting context.Context) []wire.Route {
	routes := slices.Concat(
		systemapi.Routes(s.system(waiting)), chatapi.Routes(s.chat()),
		catalogapi.Routes(s.catalog(waiting)), trailapi.Routes(s.trail(waiting)),
		manageapi.Routes(s.manage(waiting)),
	)
	for i := range routes {
		stream := routes[i].Stream
		if stream == nil {
			continue
		}
		routes[i].Stream = func(w http.ResponseWriter, r *wire.Request) error {
			if r.Method == http.MethodGet || r.WantsEvents() { // else it answers with one document
				defer s.meters.Stream()()
			}
			return stream(w, r)
		}
	}
	return routes
}

// ServeAs answers a request.
func (s *Site) ServeAs(w http.ResponseWriter, r *http.Request, who auth.Identity) {
	if s.demo != nil && strings.HasPrefix(r.URL.Path, demoAPI) {
		s.demo.ServeAs(w, r, who)
		return
	}
	s.handler.ServeAs(w, r, who)
}

// Drain begins no more turns and waits for those that run; see [stream.Hub.Drain].
func (s *Site) Drain(ctx context.Context) error {
	if s.demo == nil {
		return s.hub.Drain(ctx)
	}
	return errors.Join(s.hub.Drain(ctx), s.demo.drain(ctx))
}

// EndCalls accepts no more calls, waits up to serve.drain for running calls,
// and cancels the rest. Each call gets its result. See [runner.Runner.Close].
func (s *Site) EndCalls(ctx context.Context) error {
	r, made := s.app.runner.Peek()
	if !made {
		return nil
	}
	return r.Close(context.WithoutCancel(ctx)) // Close has its own time limit
}

// SignOuts returns where it is kept which browsers were signed out.
func (a *App) SignOuts() (*store.Store, error) { return a.store.Get() }

// OIDC returns the identity provider whose users may sign in too; nil if there is
// none.
func (a *App) OIDC() *auth.OIDCConfig {
	o := a.Settings.Serve.OIDC
	if o.Issuer == "" {
		return nil
	}
	out := &auth.OIDCConfig{
		Issuer: o.Issuer, ClientID: o.ClientID, Audience: o.Audience, UserClaim: o.UserClaim, TenantClaim: o.TenantClaim, RolesClaim: o.RolesClaim,
		NameClaim: o.NameClaim, Operators: o.Operators, Admit: o.Admit, Scopes: o.Scopes, Name: o.Name,
	}
	if o.ClientSecret != "" {
		out.ClientSecret = func(context.Context) (string, error) {
			v, err := a.Secrets.Lookup(o.ClientSecret)
			if err != nil {
				return "", err
			}
			a.Redactor.Hold(v.Reveal())
			return v.Reveal(), nil
		}
	}
	return out
}

// mcpHandler makes what serves MCP. Agents have a server of their own: on it the answer
// of a client does not count as a person's.
func (s *Site) mcpHandler(waiting context.Context) *mcpbridge.Handler {
	agents := s.app.newMCP(nil)
	watching, stop := context.WithCancel(waiting)
	done := make(chan struct{})
	go func() { defer close(done); _ = agents.Watch(watching) }() // it ends with watching
	s.app.closers.Add(func() error {
		stop()
		<-done
		return nil
	})
	people := s.app.MCP()
	people.OnAnswered(s.meters.MCP)
	agents.OnAnswered(s.meters.MCP)
	return &mcpbridge.Handler{People: people, Agents: agents, Waiting: waiting}
}

// turn has the engine made when the first turn comes.
func (s *Site) turn(ctx context.Context, in event.Input) iter.Seq2[event.Event, error] {
	return func(yield func(event.Event, error) bool) {
		e, err := s.app.Engine()
		if err != nil {
			yield(nil, err)
			return
		}
		defer s.meters.Turn()()
		e.Turn(ctx, in)(yield)
	}
}

// lastEntry returns the number of the newest entry of a session.
func (s *Site) lastEntry(ctx context.Context, who capability.Principal, id string) (int, error) {
	sessions, err := s.app.Sessions()
	if err != nil {
		return 0, err
	}
	head, err := sessions.Head(ctx, who, id)
	return head.Last, err
}

// relay passes on the events of turns between replicas; nil: this is the only one.
func (s *Site) relay() *stream.Relay {
	g := s.app.Replicas.group.Load()
	if g == nil {
		return nil
	}
	return &stream.Relay{
		Name: g.ID(), Store: s.app.store.Get, Peers: g.Peers, Answer: chatapi.Relayed(s.reply),
		Left: func(ctx context.Context, who capability.Principal, id string, left []event.Asked) {
			chatapi.Deny(ctx, s.reply, who, id, left)
		},
	}
}

// reply answers what a turn asked.
func (s *Site) reply(ctx context.Context, who capability.Principal, id string, asked event.Asked, said chatapi.Answer) error {
	return s.app.Questions.Reply(ctx, who, id, asked, consent.Answer(said))
}

func (s *Site) chat() chatapi.Config {
	a := s.app
	return chatapi.Config{
		Hub: s.hub, Sessions: a.Sessions, Engine: func() (chatapi.Engine, error) { return a.Engine() }, Folder: a.Places.Workspace, Modes: func() []string { return a.Rules().ModeNames() },
		Commands: func(who auth.Identity) *slash.Index { return a.Commands.For(callerOf(who)) }, NoCommands: a.Commands.Denied, Inspect: s.records.Get, Surface: string(policy.SurfaceChat),
		Reply: s.reply,
		FindAgain: func(ctx context.Context, who capability.Principal, head session.Head, text string) (door.Found, error) {
			view := a.Door.ViewFor(door.Viewer{Principal: who, Mode: head.Mode, Surface: policy.SurfaceChat})
			return a.Door.Preview(ctx, view, door.Query{Text: text, Scope: capability.Scope{Agent: head.Agent, Mode: head.Mode}})
		},
	}
}

// callerOf returns who types commands over HTTP.
func callerOf(who auth.Identity) commands.Caller {
	return commands.Caller{Principal: who.Principal, Agent: !who.Decides}
}

func (s *Site) catalog(waiting context.Context) catalogapi.Config {
	a := s.app
	return catalogapi.Config{
		Door: a.Door, Waiting: waiting, Why: a.Why, Reviews: a.reviews(),
		Cases: &catalogapi.CaseFile{Path: filepath.Join(a.Places.Home, "eval.jsonl")},
	}
}

func (s *Site) trail(waiting context.Context) trailapi.Config {
	a := s.app
	cfg := trailapi.Config{
		Door: a.Door, Desk: a.Desk, Settle: a.Approvals.Settle, Revoke: a.Approvals.Revoke, Waiting: waiting, Redact: a.Redactor.Redact,
		AuditDir: a.Places.Audit, Prove: a.Archive.Prove, Read: s.readKept,
		Verify: func(ctx context.Context) (audit.Report, error) {
			if all := a.Replicas.Audit(); all != nil {
				return all.Verify(ctx)
			}
			return a.Archive.Verify(ctx)
		},
		Route: func(ctx context.Context, who auth.Identity, line string) (capability.Call, error) {
			return a.Commands.Route(ctx, callerOf(who), line)
		},
		Lines: a.Questions.Lines, Jobs: a.Jobs, AddJob: a.AddJob, RecordJob: a.RecordJob,
		Opens: s.opens,
	}
	if all := a.Replicas.Audit(); all != nil {
		cfg.View, cfg.Follow = all.View, all.Follow
	}
	return cfg
}

// opens reports whether who may open the session; false if it cannot be read.
func (s *Site) opens(ctx context.Context, who auth.Identity, id string) bool {
	sessions, err := s.app.Sessions()
	if err != nil {
		return false
	}
	head, err := sessions.Head(ctx, who.Principal, id)
	return err == nil && chatapi.Opens(who, head)
}

// readKept returns a piece of a result that was kept.
func (s *Site) readKept(ctx context.Context, who capability.Principal, id, handle string, from int64) (trailapi.Piece, error) {
	kept, err := s.app.results.Get()
	if err != nil {
		return trailapi.Piece{}, err
	}
	scope := result.ScopeOf(capability.Call{Principal: who, Session: id})
	x, err := kept.Read(ctx, scope, result.Query{Handle: handle, Op: result.OpChars, From: max(from, 1)})
	if err != nil {
		return trailapi.Piece{}, err
	}
	p := trailapi.Piece{
		Handle: x.Entry.Handle, Target: string(x.Entry.Target), Made: x.Entry.Made, Failed: x.Entry.Failed, Binary: x.Entry.Binary,
		Text: x.Text, From: x.Chars.From, Chars: x.Entry.Kept.Chars, Left: x.Left,
	}
	if x.Chars.To < p.Chars {
		p.Next = x.Chars.To + 1
	}
	return p, nil
}

func (s *Site) readings() metrics.Readings {
	a := s.app
	return metrics.Readings{
		Cluster: s.cluster(), Version: Version(), Started: s.started,
		Catalog: func() metrics.Catalog {
			st := a.OperatorView().Stats()
			return metrics.Catalog{Capabilities: st.Capabilities, Available: st.Available, Quarantined: st.Quarantined, Problems: st.Errors, Version: st.Version}
		},
		Calls: func() (running, waiting int) {
			r, made := a.runner.Peek()
			if !made {
				return 0, 0
			}
			l := r.Load()
			return l.Running, l.Waiting
		},
		Pending: func() (int, error) {
			desk, made := a.desk.Peek()
			if !made {
				return 0, nil
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return desk.Waiting(ctx)
		},
		Audit: func() metrics.Audit {
			log, made := a.trail.Peek()
			if !made {
				return metrics.Audit{}
			}
			return metrics.Audit{Written: uint64(log.Records()), Poisoned: log.Err() != nil}
		},
	}
}

// cluster reads how the replicas stand; nil: this is the only one.
func (s *Site) cluster() func() metrics.Cluster {
	r := &s.app.Replicas
	g := r.group.Load()
	if g == nil {
		return nil
	}
	return func() metrics.Cluster {
		st := g.State()
		c := metrics.Cluster{Replica: st.ID, Host: st.Host, Live: st.Live, Lag: r.shared.Age(), Current: func() bool { return r.Current() == nil }}
		if s.hub != nil {
			c.Sent, c.Received = s.hub.Relayed()
		}
		return c
	}
}

func (s *Site) system(waiting context.Context) systemapi.Config {
	a := s.app
	cfg := systemapi.Config{
		Version: Version(), Workspace: a.Places.Workspace, Profile: a.loader.ProfileName, Tokenizer: string(a.Settings.Discovery.Tokenizer),
		Model: func() (string, int) { return a.Models.Name(), a.Models.Row().Window },
		Modes: func() []string { return a.Rules().ModeNames() }, Intents: policy.Intents, Fault: a.loader.Fault,
		View: func(who auth.Identity) door.View {
			if who.Operator {
				return a.Door.OperatorView(who.Principal)
			}
			return a.Door.View(who.Principal)
		},
		Stats: func() door.Stats { return a.OperatorView().Stats() }, Ready: s.probes(waiting),
		Settings: a.settingsPage().List, Set: a.settingsPage().Set, Check: a.settingsPage().Check, Reset: a.settingsPage().Reset,
		Doctor:   func(ctx context.Context) []doctor.Check { return doctor.Examine(a.Facts(ctx)) },
		Insights: a.Door.Insights, Price: a.Models.Price, Prices: a.Models.Prices,
		SetPrice: func(_ context.Context, _ auth.Identity, p outcome.Price) error { return a.Models.SetPrice(p) },
		Metrics:  s.numbers.Text, MetricsType: metrics.ContentType,
	}
	if playsDemo(a) {
		cfg.Demo = demo.Requests()
		cfg.Model = func() (string, int) { return "demo/script", a.Models.Row().Window }
		return cfg
	}
	cfg.Setup = func(ctx context.Context) setup.Found {
		return setup.Find(ctx, setup.Config{Model: a.Models.Name(), UserHome: a.Places.UserHome, Workspace: a.Places.Workspace, Choices: a.Models.Choices, Plan: a.Clients.Plan})
	}
	cfg.Offers = func(ctx context.Context, provider string) ([]opener.Offered, error) {
		return a.Models.Offers(ctx, provider, secret.Value{})
	}
	cfg.SetKey = func(ctx context.Context, who auth.Identity, provider string, key secret.Value) ([]opener.Offered, error) {
		list, err := a.Models.SetKey(ctx, provider, key)
		if err != nil {
			return nil, err
		}
		success := true
		return list, a.record(ctx, audit.Record{
			Event: audit.Changed, Command: "secret", Action: "set", Target: "provider:" + provider, Origin: string(capability.ByPerson),
			UserID: who.Principal.ID, Tenant: who.Principal.Tenant, Status: audit.Completed, Success: &success,
		})
	}
	return cfg
}

// reviews returns what waits for review.
func (a *App) reviews() reviews.List {
	return reviews.List{Extensions: a.Extensions, Tools: a.ToolReviews, Servers: a.Servers, Tenant: a.Principal.Tenant}
}

func (a *App) settingsPage() settings.Page {
	return settings.Page{Start: a.Settings, Places: a.Places, File: a.configFile, Loader: a.loader, Log: a.trail.Get, Doubt: a.Models.Doubt}
}

// probes are the conditions under which requests are of use.
func (s *Site) probes(waiting context.Context) []systemapi.Probe {
	a := s.app
	return []systemapi.Probe{
		{Name: "catalog", Check: func(context.Context) error {
			if a.Catalog.Snapshot().Version() == 0 {
				return errors.New("the catalog is not loaded yet")
			}
			return nil
		}},
		{Name: "rules", Check: func(context.Context) error {
			_, err := a.loader.Rules()
			return err
		}},
		{Name: "store", Check: func(ctx context.Context) error {
			db, err := a.store.Get()
			if err == nil {
				err = db.Check(ctx)
			}
			return err
		}},
		{Name: "trail", Check: func(context.Context) error { return a.recordable() }},
		{Name: "calls", Check: func(ctx context.Context) error { // the runner writes what the audit log did not take before
			r, err := a.runner.Get()
			if err == nil {
				err = r.Ready(ctx)
			}
			return err
		}},
		{Name: "stopping", Check: func(context.Context) error {
			if waiting.Err() != nil {
				return errors.New("the server is about to stop")
			}
			return nil
		}},
	}
}
