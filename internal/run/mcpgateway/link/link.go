//lint:file-ignore SA1019 Servers of the older protocols need what the newest calls deprecated.

package link

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"ken/capability"
	"ken/internal/know/source/mcpskill"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Target says how to reach a server. Exactly one of Start and URL is set.
type Target struct {
	Name string // as the user named it, for messages

	// Start starts the process of a stdio server. [Open] calls it once, and
	// once more when the server died of being asked for the newest protocol.
	Start func(ctx context.Context) (Process, error)

	URL    string
	SSE    bool         // the transport of 2024-11-05 instead of streamable HTTP
	Client *http.Client // nil is http.DefaultClient; it is not changed
	Header http.Header  // sent to the host of URL and to no other
}

// A Process is a running stdio server. Close ends its whole tree and lets reads
// of Stdout end; it may be called more than once and from any goroutine. Stdin
// and Stdout are used by one goroutine each.
//
// A Process that also has Err() error gives with it how it exited, once Done is
// closed, and one with Pid() int its number.
type Process interface {
	Stdin() io.WriteCloser
	Stdout() io.Reader
	Close() error
	Done() <-chan struct{}
	Stderr() string // the last of it
}

// A Config says what to connect to and how far to trust it. Zero fields mean
// the default in brackets.
type Config struct {
	Target

	// Roots are the folders told to servers that ask outside of a call. With
	// none a server of 2025-11-25 and before is not told that it may ask: one
	// that may takes the answer for all it has to work with.
	Roots []string

	Changed func(what string)                                // "tools", "prompts" or "resources": lists to read again; must not block
	Updated func(uri string)                                 // a resource that was subscribed to; must not block
	Log     func(level, logger string, data json.RawMessage) // log lines outside of calls; must not block; nil drops them
	OAuth   auth.OAuthHandler                                // for streamable HTTP

	DenySampling func() bool // whether servers are denied sampling [they are not]; called for each request

	MaxMessage int64         // bytes of one message [16 MiB]
	MaxTools   int           // tools, prompts, resources and templates, of each; more are cut and noted [10,000]
	ParkTime   time.Duration // how long a call waits for answers [5 min]
	MaxParks   int           // how many calls may wait for answers [64]

	ClientName, ClientVersion string // [ken, 0]

	// Oldest leaves out the question for the newest protocol and begins with
	// the handshake of 2025-11-25 and before.
	Oldest bool
}

func (c Config) filled() Config {
	c.MaxMessage = cmp.Or(c.MaxMessage, 16<<20)
	c.MaxTools = cmp.Or(c.MaxTools, 10_000)
	c.ParkTime = cmp.Or(c.ParkTime, 5*time.Minute)
	c.MaxParks = cmp.Or(c.MaxParks, 64)
	c.ClientName = cmp.Or(c.ClientName, "ken")
	c.ClientVersion = cmp.Or(c.ClientVersion, "0")
	if c.Changed == nil {
		c.Changed = func(string) {}
	}
	if c.Updated == nil {
		c.Updated = func(string) {}
	}
	if c.Log == nil {
		c.Log = func(string, string, json.RawMessage) {}
	}
	return c
}

// Info is what a server says of itself. All of it came from outside.
type Info struct {
	Name, Title, Version string
	Instructions         string
	Protocol             string // "2025-11-25"

	HasTools, HasPrompts, HasResources, HasCompletions, HasSubscribe bool

	HasSkills bool // it announces the extension for skills

	Pid int // 0: not known
}

// A Link is a connection to one server. Its methods may be called from any
// goroutine.
type Link struct {
	cfg    Config
	info   Info
	modern bool   // 2026-07-28 and later: the server keeps the state of questions
	key    string // seals the states of tasks

	session *mcp.ClientSession
	proc    Process // nil: not a stdio server
	wire    *stdio  // nil: not a stdio server
	tap     *tap    // nil: streamable HTTP

	changed [3]changeFlag
	pending *pendingCalls

	done chan struct{} // closed when the connection is over
	err  error         // why; set before done is closed
}

const (
	newest       = "2026-07-28"
	beforeNewest = "2025-11-25"

	// probeTime is how long a server may think about a protocol it does not
	// know. Old ones that ignore unknown requests would hang a client forever.
	probeTime = 5 * time.Second

	// probeLogin is the same over HTTP, where an old server answers unknown
	// requests, and a login may come before any answer.
	probeLogin = 30 * time.Second

	// levelTime bounds the request for log lines, which is made for comfort.
	levelTime = 2 * time.Second

	// closeTime bounds the wait for a connection to wind up.
	closeTime = 5 * time.Second
)

// Open connects to a server and agrees on a protocol with it, the newest first.
// ctx bounds the connecting only. The caller closes the Link.
func Open(ctx context.Context, cfg Config) (*Link, error) {
	cfg = cfg.filled()
	if (cfg.Start == nil) == (cfg.URL == "") {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "connect to MCP server", Target: cfg.Name,
			Err: errors.New("needs either a command or a url")}
	}
	l, err := open(ctx, cfg)
	if err != nil && !cfg.Oldest && ctx.Err() == nil && cfg.Start != nil && errors.Is(err, errEnded) {
		// Some servers exit at a request that comes before "initialize".
		cfg.Oldest = true
		if l, again := open(ctx, cfg); again == nil {
			return l, nil
		}
	}
	return l, err
}

func open(ctx context.Context, cfg Config) (*Link, error) {
	l := &Link{
		cfg:     cfg,
		key:     rand.Text(),
		pending: newPendingCalls(cfg),
		done:    make(chan struct{}),
	}
	transport, err := l.transport(ctx)
	if err != nil {
		return nil, l.unreachable(ctx, err)
	}
	var opts *mcp.ClientSessionOptions
	if cfg.Oldest {
		opts = &mcp.ClientSessionOptions{ProtocolVersion: beforeNewest}
	}
	l.session, err = l.connect(ctx, transport, opts)
	if err != nil {
		l.hangUp()
		return nil, l.unreachable(ctx, err)
	}
	l.learn(l.session.InitializeResult())
	go l.watch()
	l.askForLogs(ctx)
	return l, nil
}

// connect is the handshake, which ends with ctx whatever the server does: one
// that does not read its input cannot even be told of a cancellation.
func (l *Link) connect(ctx context.Context, t mcp.Transport, opts *mcp.ClientSessionOptions) (*mcp.ClientSession, error) {
	type outcome struct {
		session *mcp.ClientSession
		err     error
	}
	result := make(chan outcome, 1)
	go func() {
		session, err := l.client().Connect(ctx, t, opts)
		result <- outcome{session, err}
	}()
	select {
	case o := <-result:
		return o.session, o.err
	case <-ctx.Done():
	}
	l.hangUp()
	select {
	case o := <-result:
		if o.session != nil {
			_ = o.session.Close()
		}
	case <-time.After(closeTime):
	}
	return nil, ctx.Err()
}

// client makes the SDK's client, which tells the server what it may ask for.
func (l *Link) client() *mcp.Client {
	c := mcp.NewClient(&mcp.Implementation{Name: l.cfg.ClientName, Version: l.cfg.ClientVersion}, &mcp.ClientOptions{
		Logger: slog.New(slog.DiscardHandler),
		Capabilities: &mcp.ClientCapabilities{
			RootsV2:     &mcp.RootCapabilities{},
			Sampling:    &mcp.SamplingCapabilities{},
			Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}},
			Extensions:  passedExtensions(),
		},
		// The handlers only make the SDK subscribe and advertise: what arrives
		// is handled before it comes to them.
		ToolListChangedHandler:     func(context.Context, *mcp.ToolListChangedRequest) {},
		PromptListChangedHandler:   func(context.Context, *mcp.PromptListChangedRequest) {},
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) {},
		MultiRoundTrip:             &mcp.MultiRoundTripOptions{Disabled: true},
	})
	_ = errors.Join(knowTasks(c), knowSkills(c)) // they fail for methods of the protocol itself, and these are none
	c.AddReceivingMiddleware(l.receive)
	c.AddSendingMiddleware(l.probeBriefly, l.withoutRoots, wholeList)
	return c
}

// passedExtensions returns the extensions of the protocol that pass through Ken.
// One connection serves many clients, so a server is told of them whether or not
// the client of a call has them; what they add to a result, other clients ignore.
func passedExtensions() map[string]any {
	return map[string]any{
		"io.modelcontextprotocol/ui": map[string]any{"mimeTypes": []any{"text/html;profile=mcp-app"}},
		tasksExtension:               map[string]any{},
		mcpskill.Extension:           map[string]any{},
	}
}

func (l *Link) transport(ctx context.Context) (mcp.Transport, error) {
	if l.cfg.Start != nil {
		proc, err := l.cfg.Start(ctx)
		if err != nil {
			return nil, err
		}
		l.proc = proc
		l.wire = newStdio(proc, l.cfg.MaxMessage)
		l.tap = newTap(l, l.wire)
		return l.tap, nil
	}
	client := http.Client{}
	if l.cfg.Client != nil {
		client = *l.cfg.Client
	}
	carrier, err := newCarrier(l, client.Transport)
	if err != nil {
		return nil, err
	}
	client.Transport = carrier
	if l.cfg.SSE {
		l.tap = newTap(l, nil)
		l.tap.dial = &mcp.SSEClientTransport{Endpoint: l.cfg.URL, HTTPClient: &client, MaxEventSize: int(l.cfg.MaxMessage)}
		return l.tap, nil
	}
	return &mcp.StreamableClientTransport{Endpoint: l.cfg.URL, HTTPClient: &client,
		OAuthHandler: l.cfg.OAuth, MaxEventSize: int(l.cfg.MaxMessage)}, nil
}

func (l *Link) learn(r *mcp.InitializeResult) {
	l.info = Info{Instructions: r.Instructions, Protocol: r.ProtocolVersion}
	l.modern = r.ProtocolVersion >= newest
	if s := r.ServerInfo; s != nil {
		l.info.Name, l.info.Title, l.info.Version = s.Name, s.Title, s.Version
	}
	if c := r.Capabilities; c != nil {
		l.info.HasTools = c.Tools != nil
		l.info.HasPrompts = c.Prompts != nil
		l.info.HasResources = c.Resources != nil
		l.info.HasSubscribe = c.Resources != nil && c.Resources.Subscribe
		l.info.HasCompletions = c.Completions != nil
		_, l.info.HasSkills = c.Extensions[mcpskill.Extension]
	}
	if p, ok := l.proc.(interface{ Pid() int }); ok {
		l.info.Pid = p.Pid()
	}
}

// askForLogs makes servers that wait for it send their log lines. Newer ones
// are asked with each call.
func (l *Link) askForLogs(ctx context.Context) {
	caps := l.session.InitializeResult().Capabilities
	if l.modern || caps == nil || caps.Logging == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, levelTime)
	defer cancel()
	_ = l.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"})
}

// Info returns what the server said of itself when it was connected to.
func (l *Link) Info() Info { return l.info }

// Noise returns how many lines on a stdio server's standard output were no
// messages, and the first of them, safe to show.
func (l *Link) Noise() (count int, sample string) {
	if l.wire == nil {
		return 0, ""
	}
	return l.wire.noise()
}

// Done is closed when the connection is over.
func (l *Link) Done() <-chan struct{} { return l.done }

// Err says why the connection is over, or nil while it is not and after Close.
func (l *Link) Err() error {
	select {
	case <-l.done:
		return l.err
	default:
		return nil
	}
}

// Close ends the connection, the process of a stdio server, and the calls that
// are on it. It may be called more than once.
func (l *Link) Close() error {
	l.pending.close()
	l.pending.cancelAll()
	l.hangUp()
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = l.session.Close()
		<-l.done
	}()
	timer := time.NewTimer(closeTime + time.Second)
	defer timer.Stop()
	select {
	case <-over:
		return nil
	case <-timer.C:
		return &capability.Error{Kind: capability.Timeout, Op: "close connection to MCP server", Target: l.cfg.Name,
			Err: errors.New("did not stop in time")}
	}
}

// hangUp closes what carries the messages, so that the SDK sees their end. It
// leaves streamable HTTP to the SDK, which ends the session with the server.
func (l *Link) hangUp() {
	if l.tap != nil {
		_ = l.tap.Close()
	} else if l.proc != nil {
		_ = l.proc.Close()
	}
}

// watch waits for the end of the connection and records why.
func (l *Link) watch() {
	over := make(chan error, 1)
	go func() { over <- l.session.Wait() }()
	var exited <-chan struct{}
	if l.proc != nil {
		exited = l.proc.Done()
	}
	var cause error
	select {
	case cause = <-over:
	case <-exited:
		// A child of the server may hold its output open for ever.
		timer := time.NewTimer(closeTime)
		select {
		case cause = <-over:
		case <-timer.C:
			l.hangUp()
			cause = <-over
		}
		timer.Stop()
	}
	l.hangUp()
	if !l.pending.isClosed() {
		l.err = l.ended(cause)
	}
	close(l.done)
	l.pending.cancelAll()
}
