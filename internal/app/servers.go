package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/connect"
	"ken/internal/govern/audit"
	"ken/internal/govern/pin"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpgateway/oauth"
	"ken/internal/run/sandbox"
	"ken/internal/serve/mcpserver"
)

// serving is what stands before the MCP servers that Ken uses.
type serving struct {
	gateway *mcpgateway.Gateway // nil: there is none
	shared  bool                // another App has it, and closes it
	pins    part[*pin.Desk]

	mcpOnce   sync.Once
	mcpServer *mcpserver.Server

	mu    sync.Mutex
	files []mark               // as they were when they were read
	wrong []capability.Problem // with the files that name servers
	only  map[string]string    // servers for one project, and its folder
}

// prepareServers makes the gateway, which starts nothing.
func (a *App) prepareServers(cfg Config) error {
	a.serving.pins.build = a.openPins
	if cfg.gateway != nil {
		a.gateway, a.shared = cfg.gateway, true
		a.servers() // to know what each is for
		return nil
	}
	if len(cfg.Catalogs) > 0 {
		return nil // what is named stands for everything
	}
	list := a.servers()
	g, err := mcpgateway.New(mcpgateway.Config{
		Servers: list, CacheDir: filepath.Join(a.Places.Cache, "mcp"), Getenv: a.serverValue,
		Path: a.programPath(), Work: a.serverWork(), Hide: a.ownFolders(),
		Networks: a.networks(), Require: a.serverIsolation(), Limits: a.serverLimits(),
		Pins: pinner{a}, OAuth: a.serverAuth, Roots: a.serverRoots, Idle: a.serverIdle(),
		Version: Version(), Log: a.log,
	})
	if err != nil {
		return err
	}
	a.gateway = g
	a.closeLater(g.Close)
	return nil
}

// serverFile is where `ken connect` puts the servers of clients.
func (a *App) serverFile() string { return filepath.Join(a.Places.Home, "mcp.json") }

// servers gives the servers that ken.yaml and the files of clients name. Of two
// with one name the first counts: ken.yaml, then mcp.json, then mcp.import.
func (a *App) servers() []mcpgateway.Server {
	var out []mcpgateway.Server
	var wrong []capability.Problem
	taken, only := map[string]string{}, map[string]string{}
	add := func(s mcpgateway.Server) {
		if where, is := taken[s.Name]; is {
			wrong = append(wrong, capability.Problem{
				Severity: capability.Warning, Code: "mcp-duplicate", Origin: s.Origin, Message: "the MCP server " + s.Name + " is named in " + where + " already, and that counts",
				Fix: "give one of them another name",
			})
			return
		}
		taken[s.Name] = s.Origin.String()
		out = append(out, a.completed(s))
	}
	named, marks := a.namedServers()
	for _, s := range named.Servers {
		add(configured(s))
	}
	for _, file := range append([]string{a.serverFile()}, named.Import...) {
		marks = append(marks, look(file))
		data, err := os.ReadFile(file)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) || file != a.serverFile() {
				wrong = append(wrong, capability.Problem{Code: "mcp-file", Origin: capability.Origin{Path: file}, Message: "servers cannot be read: " + err.Error(), Fix: "mend the file, or take it out of mcp.import"})
			}
			continue
		}
		list, problems := connect.ReadServers(data)
		for _, p := range problems {
			p.Origin.Path = file
			wrong = append(wrong, p)
		}
		for _, s := range list {
			if s.Ken.Project != "" {
				only[s.Name] = filepath.Clean(s.Ken.Project)
			}
			add(imported(s, file))
		}
	}
	a.serving.mu.Lock()
	defer a.serving.mu.Unlock()
	a.serving.files, a.serving.wrong, a.serving.only = marks, wrong, only
	return out
}

// serverSources gives the sources of the servers that are for this folder: a
// client has some for one project alone.
func (a *App) serverSources() []capability.Source {
	if a.gateway == nil {
		return nil
	}
	a.serving.mu.Lock()
	only := a.serving.only
	a.serving.mu.Unlock()
	return slices.DeleteFunc(a.gateway.Sources(), func(s capability.Source) bool {
		project, is := only[strings.TrimPrefix(s.Name(), "mcp:")]
		return is && a.Places.Workspace != project && !strings.HasPrefix(a.Places.Workspace, project+string(filepath.Separator))
	})
}

// namedServers gives what ken.yaml says of servers now, and how its files looked.
// Files that cannot be followed change nothing.
func (a *App) namedServers() (config.MCP, []mark) {
	var marks []mark // before reading: what is written meanwhile is seen the next time
	for _, file := range a.Settings.Files() {
		marks = append(marks, look(file))
	}
	now, err := config.Load(a.Places, a.laws.explicit)
	if err != nil {
		a.log.Warn("ken.yaml cannot be followed, so its servers stay as they are", "error", err)
		now = a.Settings
	}
	return now.MCP, marks
}

// configured gives a server of ken.yaml as the gateway has it.
func configured(s config.Server) mcpgateway.Server {
	out := mcpgateway.Server{
		Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Cwd: s.Cwd,
		URL: s.URL, SSE: s.Transport == config.TransportSSE, Headers: s.Headers,
		Scope: mcpgateway.Scope(s.Scope), Profile: mcpgateway.Profile(s.Profile), Read: s.Read, Write: s.Write, Hosts: s.Hosts,
		Timeout: s.Timeout, StartTimeout: s.StartTimeout, Concurrent: s.Concurrent, Include: s.Include, Exclude: s.Exclude,
		Disabled: s.Disabled, Trust: capability.TrustUser, Origin: s.Origin,
	}
	if s.ClientID != "" || len(s.Scopes) > 0 {
		out.OAuth = &mcpgateway.OAuth{ClientID: s.ClientID, Scopes: s.Scopes}
	}
	return out
}

// imported gives a server of a client's file as the gateway has it.
func imported(s connect.Server, file string) mcpgateway.Server {
	out := mcpgateway.Server{
		Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Cwd: s.Cwd,
		URL: s.URL, SSE: s.Transport == "sse", Headers: s.Headers,
		Scope: mcpgateway.Scope(s.Ken.Scope), Profile: mcpgateway.Profile(s.Ken.Profile), Read: s.Ken.Read, Write: s.Ken.Write, Hosts: s.Ken.Hosts,
		Timeout: s.Timeout, StartTimeout: s.StartTimeout, Concurrent: s.Ken.Concurrent, Include: s.Include, Exclude: s.Exclude,
		Disabled: s.Disabled, Trust: capability.TrustUser, Origin: capability.Origin{Path: file, Line: s.Line},
	}
	if s.ClientID != "" || len(s.Scopes) > 0 {
		out.OAuth = &mcpgateway.OAuth{ClientID: s.ClientID, Scopes: s.Scopes}
	}
	return out
}

// completed fills in what a definition leaves to the configuration.
func (a *App) completed(s mcpgateway.Server) mcpgateway.Server {
	if s.Timeout == 0 {
		s.Timeout = a.Settings.Limits.Timeout
	}
	if s.Command != "" && s.Cwd == "" && s.Profile != mcpgateway.ProfileConfined {
		s.Cwd = a.Places.UserHome // where the client would have started it is not known
	}
	return s
}

// ownFolders are those that no server may see: what is in them decides what
// servers may do.
func (a *App) ownFolders() []string {
	p := a.Places
	var out []string
	for _, dir := range []string{p.Home, p.State, p.Cache, p.Logs, p.Audit, a.checkpoints()} {
		inside := func(of string) bool { return dir == of || strings.HasPrefix(dir, of+string(filepath.Separator)) }
		if slices.ContainsFunc(out, inside) {
			continue
		}
		out = append(out, dir)
	}
	return out
}

// serverWork is where servers work that have no folder: beside what they may not
// see.
func (a *App) serverWork() string { return a.Places.Home + "-servers" }

// serverIsolation is the least that holds a server: what calls need, as far as
// a server that is to run as it ran before can have it.
func (a *App) serverIsolation() sandbox.Requirement {
	return sandbox.Requirement(a.Settings.Sandbox.Require)
}

// serverLimits bound a server's process. They are wider than those of a call:
// it lives long and serves many.
func (a *App) serverLimits() sandbox.Limits {
	return sandbox.Limits{
		Wall: -1, CPU: -1, Memory: a.Settings.Sandbox.Memory, AddressSpace: -1, Processes: 4096, OpenFiles: 65536, FileSize: -1,
		Output: 64 << 10, OutputStop: -1, Scratch: a.Settings.Sandbox.Scratch, Grace: 2 * time.Second,
	}
}

func (a *App) serverIdle() time.Duration {
	if a.Settings.MCP.Idle == 0 {
		return -1
	}
	return a.Settings.MCP.Idle
}

func (a *App) serverRoots() []string {
	if a.Places.UserHome == "" {
		return nil
	}
	return []string{a.Places.UserHome}
}

// serverValue gives what a name in a definition stands for.
func (a *App) serverValue(name string) (string, bool) {
	name, sealed := strings.CutPrefix(name, "secret:")
	if !sealed {
		if text := a.getenv(name); text != "" {
			return text, true
		}
	}
	v, err := a.secrets.Lookup(name)
	if err != nil {
		return "", false
	}
	a.holdSecrets()
	return v.Reveal(), true
}

// openPins makes the desk that remembers what servers offered.
func (a *App) openPins() (*pin.Desk, error) {
	s, err := a.store.get()
	if err != nil {
		return nil, err
	}
	rule := func(r config.PinRule) pin.Rule {
		if r == config.PinAccept {
			return pin.Accept
		}
		return pin.Quarantine
	}
	set := a.Settings.MCP
	return pin.New(s, pin.Config{
		Policy:    func() pin.Policy { return pin.Policy{New: rule(set.New), Changed: rule(set.Changed)} },
		Reviewers: a.Settings.Approval.Approvers,
		Reserved:  reservedNames(),
		Log: func(ctx context.Context, r audit.Record) error {
			log, err := a.trail.get()
			if err == nil {
				_, err = log.Append(ctx, r)
			}
			return err
		},
	})
}

// reservedNames are those of tools that Ken itself offers to clients.
func reservedNames() []string {
	return []string{
		"discover_capabilities", "list_capabilities", "describe_capability", "invoke_capability", "select_active_intent", "read_result", "ask_user", "finish",
	}
}

// A pinner asks the desk, which is opened when the first server has tools.
type pinner struct{ app *App }

func (p pinner) Check(ctx context.Context, server string, tools []pin.Tool) (map[string]pin.Verdict, error) {
	desk, err := p.app.serving.pins.get()
	if err != nil {
		return nil, err
	}
	return desk.Check(ctx, server, tools)
}

// serverAuth gives what a remote server is shown of a person's consent.
func (a *App) serverAuth(s mcpgateway.Server, who capability.Principal) mcpgateway.Login {
	for name := range s.Headers {
		if strings.EqualFold(name, "Authorization") {
			return nil // it has its own
		}
	}
	if who.ID == "" {
		who = a.Principal
	}
	h, err := a.newLogin(s, who, nil)
	if err != nil {
		a.log.Warn("a server cannot be logged in to", "server", s.Name, "error", err)
		return nil
	}
	return h
}

func (a *App) newLogin(s mcpgateway.Server, who capability.Principal, ask func(ctx context.Context, address string) error) (*oauth.Handler, error) {
	cfg := oauth.Config{Server: s.Name, URL: s.URL, Principal: who, Keep: oauth.Sealed(a.secrets), Ask: ask}
	if s.OAuth != nil {
		cfg.ClientID, cfg.Scopes = s.OAuth.ClientID, s.OAuth.Scopes
		if ref := s.OAuth.ClientSecret; ref != "" {
			text, err := a.secrets.Expand(ref)
			if err != nil {
				return nil, err
			}
			cfg.ClientSecret = text.Reveal()
		}
	}
	return oauth.New(cfg)
}

// Login has a person agree that Ken uses a remote server on his behalf. ask is
// given the address that he must open.
func (a *App) Login(ctx context.Context, name string, ask func(ctx context.Context, address string) error) error {
	list := a.servers()
	i := slices.IndexFunc(list, func(s mcpgateway.Server) bool { return s.Name == name })
	switch {
	case i < 0:
		return &capability.Error{Kind: capability.NotFound, Op: "log in to", Target: name, Err: errors.New("there is no MCP server of this name"), Fix: "see ken doctor for those there are"}
	case list[i].URL == "":
		return &capability.Error{Kind: capability.Invalid, Op: "log in to", Target: name, Err: errors.New("it is started by a command, and knows no login"), Fix: "give it what it needs with ken secret set, and env in its definition"}
	}
	h, err := a.newLogin(list[i], a.Principal, ask)
	if err != nil {
		return err
	}
	return h.Login(ctx)
}

// ListServers starts the servers that are named, or those that were never
// listed, and says how they stand.
func (a *App) ListServers(ctx context.Context, names ...string) []mcpgateway.Status {
	if a.gateway == nil {
		return nil
	}
	return a.gateway.List(ctx, names...)
}

// ServerStatus says how the MCP servers stand.
func (a *App) ServerStatus() []mcpgateway.Status {
	if a.gateway == nil {
		return nil
	}
	return a.gateway.Status()
}

// ServerProblems say what is wrong with the files that name servers.
func (a *App) ServerProblems() []capability.Problem {
	a.serving.mu.Lock()
	defer a.serving.mu.Unlock()
	return slices.Clone(a.serving.wrong)
}

// serversEvery is how often the files that name servers are looked at.
const serversEvery = time.Second

// watchServers takes over what the files say of servers while it runs, and
// notes for the doctor how they stand.
func (a *App) watchServers(ctx context.Context) {
	if a.gateway == nil || a.shared {
		return
	}
	notes := newNotebook(a.serverNotes())
	defer notes.close()
	var wrong error
	tick := time.NewTicker(serversEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := notes.look(a.gateway.Status()); err != nil && wrong == nil {
			wrong = err // once is enough
			a.log.Warn("the doctor will not see how MCP servers stand", "error", err)
		}
		a.serving.mu.Lock()
		files := a.serving.files
		a.serving.mu.Unlock()
		if !slices.ContainsFunc(files, func(m mark) bool { return !m.same(look(m.path)) }) {
			continue
		}
		if list := a.servers(); !a.shared {
			a.gateway.Replace(list)
		}
	}
}

// followServers adds the sources of servers that came later, until ctx ends.
func (a *App) followServers(ctx context.Context) {
	if a.gateway == nil {
		return
	}
	known := map[string]bool{}
	for _, p := range a.Reading {
		known[p.Name] = true
	}
	tick := time.NewTicker(serversEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, s := range a.serverSources() {
			if known[s.Name()] {
				continue
			}
			known[s.Name()] = true
			if err := a.catalog.Add(ctx, s); err != nil && ctx.Err() == nil {
				a.log.Warn("an MCP server cannot be listed", "source", s.Name(), "error", err)
			}
		}
	}
}
