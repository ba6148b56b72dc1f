package app

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
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
	"ken/internal/run/sandbox"
	"ken/internal/serve/mcpserver"
)

// serving is what stands before the MCP servers that Ken uses.
type serving struct {
	gateway *mcpgateway.Gateway // nil: there is none
	shared  bool                // another App has it, and closes it
	pins    part[*pin.Desk]

	definitions part[*pin.Desk] // of the files of mcp.import

	mcpOnce   sync.Once
	mcpServer *mcpserver.Server

	mu      sync.Mutex
	said    *standing                   // that servers were last taken from
	files   []mark                      // of clients, as they were when they were read
	wrong   []capability.Problem        // with the files that name servers
	only    map[string]string           // servers for one project, and its folder
	good    map[string][]connect.Server // what files had in them when they could last be read
	judged  map[string]int64            // files of mcp.import with definitions that wait, and how their pins stood
	enabled int                         // servers that are not switched off
	keys    map[string]string           // of the pins, by server
	reread  chan struct{}               // closed and replaced when the files were read again
}

// prepareServers makes the gateway, which starts nothing.
func (a *App) prepareServers(cfg Config) error {
	a.serving.pins.build, a.serving.definitions.build = a.openPins, a.openDefinitions
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
		Path: a.programPath(), Work: a.serverWork(), Hide: a.ownFolders(), HideFiles: a.ownFiles(),
		Require: a.serverIsolation(), Limits: a.serverLimits(),
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
	r := a.newReading(a.laws.looking().said)
	for _, s := range r.now.MCP.Servers {
		r.add(configured(s))
	}
	var marks []mark
	for _, file := range append([]string{a.serverFile()}, r.now.MCP.Import...) {
		marks = append(marks, look(file)) // before reading it
		r.file(file)
	}
	enabled, keys := 0, map[string]string{}
	for _, s := range r.out {
		keys[s.Name] = pin.ServerKey(s.Name, s.Origin.Path)
		if !s.Disabled {
			enabled++
		}
	}
	a.serving.mu.Lock()
	defer a.serving.mu.Unlock()
	a.serving.said, a.serving.files, a.serving.wrong, a.serving.only, a.serving.enabled, a.serving.keys = r.now, marks, r.wrong, r.only, enabled, keys
	a.serving.good, a.serving.judged = r.good, r.judged
	if a.serving.reread != nil {
		close(a.serving.reread)
	}
	a.serving.reread = make(chan struct{})
	return r.out
}

// A reading is what is gathered of servers in one go.
type reading struct {
	app    *App
	now    *standing
	out    []mcpgateway.Server
	wrong  []capability.Problem
	taken  map[string]string // names, and where they are from
	only   map[string]string
	last   map[string][]connect.Server
	good   map[string][]connect.Server
	judged map[string]int64
}

func (a *App) newReading(now *standing) *reading {
	a.serving.mu.Lock()
	defer a.serving.mu.Unlock()
	return &reading{
		app: a, now: now, taken: map[string]string{}, only: map[string]string{},
		last: a.serving.good, good: map[string][]connect.Server{}, judged: map[string]int64{},
	}
}

func (r *reading) problem(p capability.Problem) { r.wrong = append(r.wrong, p) }

func (r *reading) add(s mcpgateway.Server) {
	if where, is := r.taken[s.Name]; is {
		r.problem(capability.Problem{
			Severity: capability.Warning, Code: "mcp-duplicate", Origin: s.Origin, Message: "the MCP server " + s.Name + " is named in " + where + " already, and that counts",
			Fix: "give one of them another name",
		})
		return
	}
	r.taken[s.Name] = s.Origin.String()
	r.out = append(r.out, r.completed(s))
}

// file takes the servers of a file: Ken's own, or one of mcp.import.
func (r *reading) file(file string) {
	own := file == r.app.serverFile()
	list, ok := r.read(file, own)
	var held map[string]string
	project := ""
	if !own && ok {
		if project = projectOf(file); project == r.app.Places.UserHome || project == filepath.Dir(project) {
			project = "" // a file of the user, for all that he does
		}
		at := r.app.definitionsAt(context.Background(), file)
		if held = r.app.held(context.Background(), file, list); len(held) > 0 {
			r.judged[file] = at
		}
	}
	for _, s := range list {
		if !own && sealedIn(s) {
			r.problem(capability.Problem{
				Code: "mcp-secret", Origin: capability.Origin{Path: file, Line: s.Line}, Message: "the MCP server " + s.Name + " wants a sealed secret, which only ken.yaml and mcp.json may give",
				Fix: "define it there, or put the value into the environment",
			})
			continue
		}
		if s.Ken.Project != "" {
			r.only[s.Name] = filepath.Clean(s.Ken.Project)
		}
		def := imported(s, file)
		def.Foreign = !own
		if def.Held = held[s.Name]; def.Folder == "" {
			def.Folder = project
		}
		r.add(def)
	}
}

// read gives the servers of a file, if there is one. One that cannot be read now
// has those that it had: somebody may be writing it this moment. One of another
// program that is not there, or never could be read, is read as having none, so
// that what is written into it later is no first reading.
func (r *reading) read(file string, own bool) (list []connect.Server, ok bool) {
	data, err := readServerFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && own:
		return nil, false
	case errors.Is(err, fs.ErrNotExist):
		r.unread(file, err)
	case err != nil:
		r.unread(file, err)
		if list, ok = r.last[file]; !ok {
			return nil, !own
		}
	default:
		var problems []capability.Problem
		list, problems = connect.ReadServers(data)
		for _, p := range problems {
			p.Origin.Path = file
			r.problem(p)
		}
		if len(list) == 0 && len(problems) > 0 {
			if list, ok = r.last[file]; !ok {
				return nil, !own
			}
		}
	}
	r.good[file] = list
	return list, true
}

func (r *reading) unread(file string, err error) {
	r.problem(capability.Problem{Code: "mcp-file", Origin: capability.Origin{Path: file}, Message: "servers cannot be read: " + err.Error(), Fix: "mend the file, or take it out of mcp.import"})
}

// plainNames says whether tools may have names without their server's: where
// there is one server, no other can be meant. With several of them the order in
// which they answer would decide.
func (a *App) plainNames() bool {
	a.serving.mu.Lock()
	defer a.serving.mu.Unlock()
	return a.serving.enabled <= 1
}

// serverSources gives the sources of the servers that are for this folder: a
// client has some for one project alone.
func (a *App) serverSources() []capability.Source {
	if a.gateway == nil {
		return nil
	}
	return a.forHere(a.gateway.Sources())
}

func (a *App) forHere(all []capability.Source) []capability.Source {
	a.serving.mu.Lock()
	only := a.serving.only
	a.serving.mu.Unlock()
	return slices.DeleteFunc(all, func(s capability.Source) bool {
		project, is := only[strings.TrimPrefix(s.Name(), "mcp:")]
		return is && a.Places.Workspace != project && !strings.HasPrefix(a.Places.Workspace, project+string(filepath.Separator))
	})
}

// sealedIn reports whether a definition asks for a sealed secret.
func sealedIn(s connect.Server) bool {
	texts := append([]string{s.Command, s.Cwd, s.URL}, s.Args...)
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for _, v := range m {
			texts = append(texts, v)
		}
	}
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, "${secret:") })
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
	if s.Ken.Project != "" {
		out.Folder = filepath.Clean(s.Ken.Project)
	}
	if s.ClientID != "" || len(s.Scopes) > 0 {
		out.OAuth = &mcpgateway.OAuth{ClientID: s.ClientID, Scopes: s.Scopes}
	}
	return out
}

// completed fills in what a definition leaves to the configuration.
func (r *reading) completed(s mcpgateway.Server) mcpgateway.Server {
	if s.Timeout == 0 {
		s.Timeout = r.now.Limits.Timeout
	}
	if len(s.Hosts) > 0 {
		s.Networks = r.now.networks()
	}
	if s.Command != "" && s.Cwd == "" && s.Profile != mcpgateway.ProfileConfined {
		s.Cwd = cmp.Or(s.Folder, r.app.Places.UserHome) // without a project it is not known where the client would have started it
	}
	return s
}

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

// serverRoots are the folders that servers are told of outside of calls: none.
// A server that is told of some works with those instead of the ones in its own
// definition, and one that is shared has no folder of a client.
func (a *App) serverRoots() []string { return nil }

// serverValue gives what a name in a definition stands for; see
// [mcpgateway.Config]. What Ken itself is told by its environment is not for the
// definitions of others.
func (a *App) serverValue(name string) (string, bool) {
	if plain, foreign := strings.CutPrefix(name, "env:"); foreign {
		text := a.getenv(plain)
		return text, text != "" && !strings.HasPrefix(strings.ToUpper(plain), "KEN_")
	}
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
	return pin.New(s, pin.Config{
		Policy:    a.pinRules,
		Reviewers: a.Settings.Approval.Approvers,
		Reserved:  reservedNames(),
		Plain:     a.plainNames,
		Log:       a.notePins,
	})
}

// pinRules say what becomes of tools that nobody has accepted, as ken.yaml says
// now.
func (a *App) pinRules() pin.Policy {
	rule := func(r config.PinRule) pin.Rule {
		if r == config.PinAccept {
			return pin.Accept
		}
		return pin.Quarantine
	}
	set := a.now().MCP
	return pin.Policy{New: rule(set.New), Changed: rule(set.Changed)}
}

// notePins records what becomes of pins.
func (a *App) notePins(ctx context.Context, r audit.Record) error {
	log, err := a.trail.get()
	if err == nil {
		_, err = log.Append(ctx, r)
	}
	return err
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
