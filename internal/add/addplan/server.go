package addplan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"ken/capability"
	"ken/internal/add/addmcp"
)

// Servers is what is needed to add and remove MCP servers.
type Servers struct {
	Config addmcp.Config
	File   string // the ken.yaml that definitions are written into

	Defined   func(name string) string // where a server of that name is defined, or ""
	Narrow    func(name string, d addmcp.Definition) (_ addmcp.Definition, against string)
	Try       func(ctx context.Context, name, file string, d addmcp.Definition) (*addmcp.Trial, error)
	Unpin     func(ctx context.Context, name, file string) error
	Configure func(file, name string, d addmcp.Definition) error // writes a definition
	Forget    func(file, name string) error                      // takes it away

	// Logout removes the logins to a server whose definition was taken away. If
	// another definition of this name uses them they stay, and used says where it is.
	Logout func(name string) (removed bool, used string, err error)

	// Secrets returns the names of the secrets that each server refers to.
	Secrets func() map[string][]string
}

// A ServerRequest says which MCP server to add, and how it is confined.
type ServerRequest struct {
	addmcp.Request
	Registry string // the registry that has the name; empty: that of mcp.registry

	Profile            string // confined or imported; empty: confined
	Read, Write, Hosts []string
}

// A Server is an MCP server that was read and is not added yet.
type Server struct {
	Kind        string            `json:"kind"` // server
	Name        string            `json:"name"`
	From        string            `json:"from"`
	Title       string            `json:"title,omitempty"`
	Description string            `json:"description,omitempty"`
	Package     string            `json:"package,omitempty"`
	Digest      string            `json:"digest,omitempty"`
	Definition  addmcp.Definition `json:"definition"`
	Secrets     []addmcp.Secret   `json:"secrets"`
	Notes       []string          `json:"notes"`
	Replaces    string            `json:"replaces,omitempty"` // the package that was added before
	Tools       []ServerTool      `json:"tools"`
	Login       bool              `json:"login,omitempty"` // it wants one before it lists its tools
	Added       bool              `json:"added"`
	File        string            `json:"file"`

	// Failed says why the server could not be used when it was tried, and
	// FailedFix what to do.
	Failed    string `json:"-"`
	FailedFix string `json:"-"`

	app   App
	read  *addmcp.Server
	trial *addmcp.Trial
}

// A ServerTool is a tool that a server listed when it was tried.
type ServerTool struct {
	ID       capability.ID `json:"id"`
	Decision string        `json:"decision"` // allow, ask or deny
	Rule     string        `json:"rule,omitempty"`
	Findings int           `json:"findings,omitempty"`
}

// ReadServer finds out what a server is. It installs an npm package and starts
// nothing. The caller closes the plan.
func (a App) ReadServer(ctx context.Context, q ServerRequest) (*Server, error) {
	cfg := a.Servers.Config
	if q.Registry != "" {
		cfg.Registry = q.Registry
	}
	var before addmcp.Added
	q.Taken = func(name string) (err error) {
		before, err = a.replaced(name)
		return err
	}
	s, err := addmcp.Read(ctx, cfg, q.Request)
	if err != nil {
		return nil, err
	}
	p := &Server{
		Kind: "server", Name: s.Name, From: s.From, Title: s.Title, Description: s.Description, Package: s.Package, Digest: s.Digest,
		Definition: s.Definition, Secrets: listOf(s.Secrets), Notes: listOf(s.Notes), Replaces: before.Package, Tools: []ServerTool{}, File: a.Servers.File,
		app: a, read: s,
	}
	if err := p.hold(q); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	p.look()
	return p, nil
}

// replaced returns the server of a name that was added before. If another server
// has the name, it returns an error.
func (a App) replaced(name string) (addmcp.Added, error) {
	before, again := addmcp.Find(a.Servers.Config, name)
	if at := a.Servers.Defined(name); at != "" && !again {
		return before, &capability.Error{Kind: capability.Conflict, Err: fmt.Errorf("%s has a server named %s", at, name), Fix: "choose another name with --name"}
	}
	return before, nil
}

// look finds out which secrets of the plan are set.
func (p *Server) look() {
	for i := range p.Secrets {
		p.Secrets[i].Set = p.app.HasSecret(p.Secrets[i].Name)
	}
}

// Unset returns the first secret that the server needs and that is not set, or "".
func (p *Server) Unset() string {
	p.look()
	for _, s := range p.Secrets {
		if !s.Set {
			return s.Name
		}
	}
	return ""
}

// hold chooses the sandbox profile: the one that was named, or else the narrowest
// that the definition allows.
func (p *Server) hold(o ServerRequest) error {
	wider := len(o.Read)+len(o.Write)+len(o.Hosts) > 0
	usage := func(text string) error { return &UsageError{errors.New(text)} }
	switch {
	case p.Definition.URL != "" && (o.Profile != "" || wider):
		return usage("a remote server runs elsewhere: --profile, --read, --write and --host are for programs")
	case p.Definition.URL != "":
		return nil
	case o.Profile == "imported" && wider:
		return usage("--read, --write and --host are for --profile confined")
	case o.Profile == "imported":
		p.Definition.Profile = o.Profile
		return nil
	case o.Profile != "" && o.Profile != "confined":
		return usage(fmt.Sprintf("--profile %q: use confined or imported", o.Profile))
	}
	narrow, against := p.app.Servers.Narrow(p.Name, p.Definition)
	if against != "" {
		return &capability.Error{
			Kind: capability.Invalid, Op: "confine MCP server", Target: p.Name, Err: errors.New(against),
			Fix: "change its arguments, or add --profile imported, with which it has your files and the network",
		}
	}
	for _, list := range []struct {
		to    *[]string
		given []string
	}{{&narrow.Read, o.Read}, {&narrow.Write, o.Write}} {
		for _, path := range list.given {
			full, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			*list.to = append(*list.to, full)
		}
	}
	narrow.Hosts = append(narrow.Hosts, o.Hosts...)
	p.Definition = narrow
	return nil
}

// Widen changes the sandbox profile to imported, for the next Try.
func (p *Server) Widen() {
	d := &p.Definition
	d.Profile, d.Read, d.Write, d.Hosts = "imported", nil, nil, nil
}

// Try starts the server once, or connects to it. Then Tools are its tools, or
// Login is true, or Failed says why it cannot be used.
func (p *Server) Try(ctx context.Context) error {
	t, err := p.app.Servers.Try(ctx, p.Name, p.File, p.Definition)
	if err != nil {
		return err
	}
	p.trial, p.Login, p.Failed, p.FailedFix, p.Tools = t, t.Login, "", "", []ServerTool{}
	if t.Login {
		return nil
	}
	if p.Failed, p.FailedFix = t.Err, t.Fix; t.Err != "" {
		return nil
	}
	for _, tool := range t.Tools {
		d := p.app.Standing(tool, nil)
		shown := ServerTool{ID: tool.ID, Decision: d.Effect.String()}
		if shown.Decision == "deny" {
			shown.Rule = d.Reason.Rule
		}
		for _, f := range tool.Findings {
			if f.Severity == capability.Grave {
				shown.Findings++
			}
		}
		p.Tools = append(p.Tools, shown)
	}
	return nil
}

// Tried reports whether the server was tried and can be added.
func (p *Server) Tried() bool { return p.trial != nil && p.Failed == "" }

// Add writes the definition, and pins what the server listed. The server must have
// been tried.
func (p *Server) Add(ctx context.Context) error {
	if !p.Tried() {
		return &capability.Error{Kind: capability.Conflict, Op: "add MCP server", Target: p.Name, Err: errors.New("it has not been started yet"), Fix: "start it once first"}
	}
	a := p.app
	notes := map[string]string{"from": p.From, "package": p.Package, "url": p.Definition.URL, "profile": p.Definition.Profile, "file": p.File}
	maps.DeleteFunc(notes, func(_, text string) bool { return text == "" })
	if err := a.Record(ctx, "add", "mcp", p.Name, p.Digest, notes); err != nil {
		return fmt.Errorf("add MCP server %s: not added, because the audit log could not be written: %w", p.Name, err)
	}
	if !p.Login {
		if err := p.trial.Pin(ctx); err != nil {
			return err
		}
	}
	if err := a.Servers.Configure(p.File, p.Name, p.Definition); err != nil {
		return err
	}
	if err := p.read.Keep(); err != nil {
		return err
	}
	p.Added = true
	return nil
}

// Close removes what was installed, unless the server was added.
func (p *Server) Close() error { return p.read.Close() }
