// Package mcpservers manages the MCP servers behind Ken: it reads their
// definitions, keeps the gateway up to date with them, enables and disables
// them, and logs in to them.
package mcpservers

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/connect"
	"ken/internal/dirs"
	"ken/internal/govern/audit"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers/definitions"
	"ken/internal/secret"
)

// A Config says what [Servers] works with. All of it is needed unless a comment
// says otherwise.
type Config struct {
	Places      dirs.Places
	ConfigFiles []string // the files of the configuration, which Ken does not edit
	Operator    capability.Principal

	// Settings returns the settings in force, and Latest the same after a look at
	// their files. The pointer is another one as soon as a setting changes.
	Settings, Latest func() *config.Config

	// Gateway is for the gateway, without Servers, Getenv, OAuth and Log. None
	// makes no gateway, and Shared uses one that another owner keeps up to date
	// and closes.
	Gateway mcpgateway.Config
	None    bool
	Shared  *mcpgateway.Gateway // may be nil

	Definitions *definitions.Pins
	Secrets     *secret.Store
	Redact      func() // makes the secrets that exist known to the redactor

	// Hold makes more secrets known to the redactor.
	Hold func(values ...string)

	Getenv func(string) string
	Record func(context.Context, audit.Record) error // appends to the audit log
	Log    *slog.Logger
}

// Servers are the MCP servers behind Ken. Its methods are safe for concurrent
// use.
type Servers struct {
	cfg     Config
	gateway *mcpgateway.Gateway // nil: there is none

	ends atomic.Bool // this process ends soon, and its servers with it

	replacing sync.Mutex
	mu        sync.Mutex
	last      *reading
	known     map[string]bool // secrets that definitions have in clear
}

// New reads the definitions and makes the gateway. It starts no server.
func New(cfg Config) (*Servers, error) {
	s := &Servers{cfg: cfg, gateway: cfg.Shared, last: &reading{replaced: make(chan struct{})}, known: map[string]bool{}}
	if cfg.None {
		return s, nil
	}
	list := s.Definitions()
	if s.Shared() {
		return s, nil
	}
	g := cfg.Gateway
	g.Servers, g.Getenv, g.OAuth, g.Log = list, s.Value, s.login, cfg.Log
	var err error
	s.gateway, err = mcpgateway.New(g)
	return s, err
}

// Shared reports whether another owner keeps the gateway up to date.
func (s *Servers) Shared() bool { return s.cfg.Shared != nil }

// Gateway returns the gateway to the servers, or nil if there is none.
func (s *Servers) Gateway() *mcpgateway.Gateway { return s.gateway }

// Close ends the servers, unless the gateway is shared.
func (s *Servers) Close() error {
	if s.gateway == nil || s.Shared() {
		return nil
	}
	return s.gateway.Close()
}

// File returns mcp.json, where `ken connect` puts the servers of clients.
func File(p dirs.Places) string { return filepath.Join(p.Home, "mcp.json") }

// latest returns what was read last.
func (s *Servers) latest() *reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// replace hands the gateway the definitions as they are now.
func (s *Servers) replace() {
	s.replacing.Lock() // so that the gateway never gets an older reading last
	defer s.replacing.Unlock()
	if list := s.Definitions(); s.gateway != nil && !s.Shared() {
		s.gateway.Replace(list)
	}
}

// PlainNames reports whether tools may have names without that of their server,
// which is where there is only one. With several, the order in which they
// answer would decide whose tool has the name.
func (s *Servers) PlainNames() bool { return s.latest().enabled <= 1 }

// PinKey returns the key under which the tools of a server are pinned.
func (s *Servers) PinKey(name string) string { return s.latest().pinKeys[name] }

// Problems returns what is wrong with the files that define servers.
func (s *Servers) Problems() []capability.Problem { return slices.Clone(s.latest().problems) }

// Sources returns the sources of the servers that apply to the workspace. A
// client has some for one project alone.
func (s *Servers) Sources() []capability.Source {
	if s.gateway == nil {
		return nil
	}
	return s.inWorkspace(s.gateway.Sources())
}

func (s *Servers) inWorkspace(all []capability.Source) []capability.Source {
	projects, workspace := s.latest().projects, s.cfg.Places.Workspace
	return slices.DeleteFunc(all, func(src capability.Source) bool {
		project, is := projects[strings.TrimPrefix(src.Name(), "mcp:")]
		return is && workspace != project && !strings.HasPrefix(workspace, project+string(filepath.Separator))
	})
}

// A From says from where servers came that every client of Ken has.
type From struct {
	Client  string // empty: a person wrote them
	Servers int
}

// FromOthers counts the enabled servers that a client has through Ken and that
// did not come from it.
func (s *Servers) FromOthers(client string) []From {
	file := File(s.cfg.Places)
	from := map[string][]string{}
	if data, err := os.ReadFile(file); err == nil {
		list, _ := connect.ReadServers(data)
		for _, one := range list {
			from[one.Name] = one.Ken.From
		}
	}
	count := map[string]int{}
	for _, one := range s.Definitions() {
		of := from[one.Name]
		if one.Origin.Path != file {
			of = nil
		}
		switch {
		case one.Disabled || slices.Contains(of, client):
		case len(of) == 0:
			count[""]++
		default:
			count[of[0]]++
		}
	}
	var out []From
	for _, name := range slices.Sorted(maps.Keys(count)) {
		out = append(out, From{name, count[name]})
	}
	return out
}

// Value returns the value of a name in a definition; see [mcpgateway.Config].
// Variables that begin with KEN_ are not for the definitions of others.
func (s *Servers) Value(name string) (string, bool) {
	if plain, foreign := strings.CutPrefix(name, "env:"); foreign {
		text := s.cfg.Getenv(plain)
		return text, text != "" && !strings.HasPrefix(strings.ToUpper(plain), "KEN_")
	}
	name, sealed := strings.CutPrefix(name, "secret:")
	if !sealed {
		if text := s.cfg.Getenv(name); text != "" {
			return text, true
		}
	}
	v, err := s.cfg.Secrets.Lookup(name)
	if err != nil {
		return "", false
	}
	s.cfg.Redact()
	return v.Reveal(), true
}
