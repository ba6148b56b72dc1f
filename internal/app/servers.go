package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/connect"
	"ken/internal/govern/pin"
	"ken/internal/govern/policy"
	"ken/internal/lazy"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers/definitions"
	"ken/internal/run/sandbox"
	"ken/internal/serve/auth"
	"ken/internal/serve/mcpserver"
	"ken/internal/wholefile"
)

// serving is what stands before the MCP servers that Ken uses.
type serving struct {
	gateway *mcpgateway.Gateway // nil: there is none
	shared  bool                // another App has it, and closes it
	pins    lazy.Value[*pin.Desk]

	definitions *definitions.Pins // of the files of mcp.import

	mcpOnce   sync.Once
	mcpServer *mcpserver.Server

	mu      sync.Mutex
	said    *config.Config              // that servers were last taken from
	files   []wholefile.Stamp           // of clients, as they were when they were read
	wrong   []capability.Problem        // with the files that name servers
	only    map[string]string           // servers for one project, and its folder
	good    map[string][]connect.Server // what files had in them when they could last be read
	judged  map[string]int64            // files of mcp.import with definitions that wait, and how their pins stood
	enabled int                         // servers that are not switched off
	keys    map[string]string           // of the pins, by server
	reread  chan struct{}               // closed and replaced when the files were read again
}

func (a *App) newConnector() *connect.Connector {
	return connect.NewConnector(connect.ConnectorConfig{
		ServerFile: a.serverFile(), RecordDir: filepath.Join(a.Places.State, "connect"), UserHome: a.Places.UserHome, Getenv: a.getenv,
		KenHome: a.Places.MovedHome(a.getenv), Addr: a.Settings.Serve.Addr, Secrets: a.secrets, Log: a.log,
		RemoveToken: func(client string) (bool, error) { return auth.RemoveAgent(a.Places.State, client) },
	})
}

// prepareServers makes the gateway, which starts nothing.
func (a *App) prepareServers(cfg Config) error {
	a.Clients = a.newConnector()
	a.serving.pins.Build = a.openPins
	a.definitions = a.newDefinitions()
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
		Path: a.programPath(), Work: a.serverWork(), Workspace: a.Places.Workspace, Hide: a.ownFolders(), HideFiles: a.ownFiles(),
		Require: a.serverIsolation(), Limits: a.serverLimits(),
		Pins: pinner{a}, OAuth: a.serverAuth, Roots: a.serverRoots, Idle: a.serverIdle(), MaxTools: a.Settings.MCP.MaxTools,
		DenySampling: func() bool { return a.Rules().Denies(policy.PermLLM) },
		Version:      Version(), Log: a.log,
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

// servers returns the servers that ken.yaml and the files of clients name. Of two
// with one name the first counts: ken.yaml, then mcp.json, then mcp.import.
func (a *App) servers() []mcpgateway.Server {
	r := a.newReading(a.loader.Latest().Settings)
	for _, s := range r.now.MCP.Servers {
		r.add(configured(s))
	}
	var marks []wholefile.Stamp
	for _, file := range append([]string{a.serverFile()}, r.now.MCP.Import...) {
		marks = append(marks, wholefile.StampOf(file)) // before reading it
		r.file(file)
	}
	for _, name := range r.now.MCP.TrustHints {
		if r.taken[name] == "" {
			r.problem(capability.Problem{
				Severity: capability.Warning, Code: "mcp-trust-hints", Message: "mcp.trustHints names " + name + ", and no MCP server has that name", Fix: "correct the name, or remove it",
			})
		}
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

// A Neighbour is where servers are from that every client of Ken has.
type Neighbour struct {
	Client  string // empty: a person wrote them
	Servers int
}

// Neighbours counts the servers that a client has through Ken and that did not
// come from it.
func (a *App) Neighbours(client string) []Neighbour {
	from := map[string][]string{}
	if data, err := os.ReadFile(a.serverFile()); err == nil {
		list, _ := connect.ReadServers(data)
		for _, s := range list {
			from[s.Name] = s.Ken.From
		}
	}
	count := map[string]int{}
	for _, s := range a.servers() {
		of := from[s.Name]
		if s.Origin.Path != a.serverFile() {
			of = nil
		}
		switch {
		case s.Disabled || slices.Contains(of, client):
		case len(of) == 0:
			count[""]++
		default:
			count[of[0]]++
		}
	}
	var out []Neighbour
	for _, name := range slices.Sorted(maps.Keys(count)) {
		out = append(out, Neighbour{name, count[name]})
	}
	return out
}

// plainNames says whether tools may have names without their server's: where
// there is one server, no other can be meant. With several of them the order in
// which they answer would decide.
func (a *App) plainNames() bool {
	a.serving.mu.Lock()
	defer a.serving.mu.Unlock()
	return a.serving.enabled <= 1
}

// serverSources returns the sources of the servers that are for this folder: a
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

// serverValue returns what a name in a definition stands for; see
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

// awaitTime is how long a search, or a call of an unknown tool, waits for
// servers that are being listed for the first time.
const awaitTime = 2 * time.Second

// startingServers names the servers that are being listed for the first time,
// or that were never listed if this process lists none. The names are for the
// operator only.
func (a *App) startingServers(p capability.Principal) string {
	if a.gateway == nil {
		return ""
	}
	starting, unlisted := a.gateway.Starting()
	say := func(names []string, one, many, then string) string {
		if names = a.namesForHere(names); len(names) == 0 {
			return ""
		}
		text := "1 server " + one
		if len(names) > 1 {
			text = fmt.Sprintf("%d servers %s", len(names), many)
		}
		if p.ID == a.Principal.ID && p.Tenant == a.Principal.Tenant {
			text += ": " + strings.Join(names, ", ")
		}
		return text + "; " + then
	}
	return cmp.Or(say(starting, "is starting", "are starting", "try again in a moment"),
		say(unlisted, "was never listed", "were never listed", "ken doctor lists them"))
}

// absentServer returns why a server has no tools, if name is the id of one of
// its tools. Like the names of servers, the cause is for the operator only.
func (a *App) absentServer(p capability.Principal, name string) error {
	id, ok := strings.CutPrefix(name, "mcp:")
	if !ok || a.gateway == nil || p.ID != a.Principal.ID || p.Tenant != a.Principal.Tenant {
		return nil
	}
	server, _, _ := strings.Cut(id, "/")
	for _, st := range a.gateway.Status() {
		if st.Name != server || !st.Listed.IsZero() || len(a.namesForHere([]string{server})) == 0 {
			continue
		}
		cause, fix := st.Err, st.Fix
		switch {
		case st.State == mcpgateway.Disabled:
			cause, fix = "it is disabled in its definition", ""
		case cause == "":
			return nil
		}
		return &capability.Error{
			Kind: capability.Unavailable, Op: "find", Target: name,
			Err: fmt.Errorf("the MCP server %s (%s) never listed its tools: %s", server, st.State, cause), Fix: fix,
		}
	}
	return nil
}

// namesForHere keeps the servers that apply to this folder.
func (a *App) namesForHere(names []string) []string {
	if len(names) == 0 {
		return nil
	}
	var here []string
	for _, s := range a.serverSources() {
		here = append(here, strings.TrimPrefix(s.Name(), "mcp:"))
	}
	return slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(here, name) })
}

// awaitServers waits for those servers, and reports whether it did.
func (a *App) awaitServers(ctx context.Context) bool {
	if a.gateway == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, awaitTime)
	defer cancel()
	return a.gateway.Await(ctx)
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
