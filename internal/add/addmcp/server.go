// Package addmcp finds out how an MCP server is started that ken add is asked
// for: an npm package, an entry of an MCP registry, or a remote server.
//
// An npm package is installed into a folder of its own, without running any of
// its scripts. What was installed is what runs: nothing is fetched at a start.
package addmcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"ken/capability"
	"ken/internal/address"
	"ken/internal/run/sandbox"
)

// A Config says what servers are added with.
type Config struct {
	Packages string // the folder of npm packages
	Markers  string // the folder that says what was added

	Registry string   // an MCP registry: its address, or a file
	Path     string   // folders of programs, as PATH has them
	Hide     []string // folders that npm does not see
	Getenv   func(string) (string, bool)
	Require  sandbox.Requirement

	// Fetch reads a document at an address; see package remote.
	Fetch func(ctx context.Context, address string) (data []byte, shown string, err error)
}

// A Request says which server to add.
type Request struct {
	From string // npm:PACKAGE, a name in the registry, an address, or a file
	Name string // empty: made from that

	// Command is a program of this machine that is the server, started with Args.
	// It is used if From is empty.
	Command string

	Args []string

	// Env are more variables of the program, as NAME=VALUE, or NAME for the
	// secret of that name.
	Env []string

	// Taken returns an error if the name is that of another server. Nothing is
	// installed then.
	Taken func(name string) error
}

// A Server is one that was read and is not added yet.
type Server struct {
	Name        string
	From        string
	Title       string // as its publisher says
	Description string // as its publisher says
	Package     string // the npm package with its version
	Digest      string // of what was installed
	Notes       []string
	Secrets     []Secret

	Definition Definition
	Folder     string // of the npm package; empty: there is none

	cfg Config
}

// A Secret is one that the definition of a server refers to.
type Secret struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Set         bool   `json:"set"`
}

// A Definition is what mcp.servers in ken.yaml says of a server.
type Definition struct {
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
	URL       string            `json:"url,omitempty"`
	Transport string            `json:"transport,omitempty"`
	Headers   map[string]string `json:"headers,omitempty"`
	Profile   string            `json:"profile,omitempty"`
	Read      []string          `json:"read,omitempty"`
	Write     []string          `json:"write,omitempty"`
	Hosts     []string          `json:"hosts,omitempty"`
}

// Names reports whether an argument of ken add names a server by its form.
func Names(given string) bool {
	return strings.HasPrefix(given, "npm:") || strings.HasPrefix(given, "https://") || strings.HasPrefix(given, "http://") || entryName().MatchString(given)
}

var serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,62}$`) })

// Read finds out what a server is. It installs an npm package and starts nothing.
// The caller closes it.
func Read(ctx context.Context, cfg Config, q Request) (_ *Server, err error) {
	s := &Server{From: q.From, cfg: cfg}
	defer func() {
		if err != nil {
			out := &capability.Error{Kind: capability.Invalid, Op: "add MCP server", Target: s.From, Err: err}
			if e, ok := errors.AsType[*capability.Error](err); ok {
				out.Kind, out.Fix = e.Kind, e.Fix
				switch {
				case e.Op == "" && e.Err != nil:
					out.Err = e.Err
				case err == error(e): // its text has the advice too
					inner := *e
					inner.Fix, out.Err = "", &inner
				}
			}
			err = errors.Join(out, s.Close())
		}
	}()
	if q.From == "" && q.Command != "" {
		return s, s.program(q)
	}
	if pkg, ok := strings.CutPrefix(q.From, "npm:"); ok {
		at := strings.LastIndex(pkg, "@")
		version := ""
		if at > 0 {
			pkg, version = pkg[:at], pkg[at+1:]
		}
		if !npmName().MatchString(pkg) || strings.HasPrefix(version, "-") || strings.ContainsAny(version, ":/ ") {
			return nil, &capability.Error{Kind: capability.Invalid, Err: fmt.Errorf("%q is not the name of an npm package", strings.TrimPrefix(q.From, "npm:")), Fix: "write npm:PACKAGE or npm:PACKAGE@VERSION"}
		}
		return s, s.npm(ctx, q, nil, pkg, version)
	}
	if IsRemote(q.From) {
		return s, s.address(q)
	}
	e, err := s.find(ctx, q.From)
	if err != nil {
		return nil, err
	}
	return s, s.entry(ctx, q, e)
}

// program makes the definition of a program that is on this machine.
func (s *Server) program(q Request) error {
	s.From = strings.Join(append([]string{q.Command}, q.Args...), " ")
	if err := s.name(q, strings.TrimSuffix(filepath.Base(q.Command), ".exe")); err != nil {
		return err
	}
	if strings.ContainsFunc(q.Command, unicode.IsControl) {
		return errors.New("the command has control characters")
	}
	s.Definition = Definition{Command: q.Command, Args: q.Args}
	s.note("what this command starts is not pinned: if the program changes, Ken starts the changed one")
	_, err := s.variables(nil, q.Env)
	return err
}

// IsRemote reports whether an argument is the address of a remote server, and not
// of an entry in a registry.
func IsRemote(given string) bool {
	u, err := url.Parse(given)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return false
	}
	return !strings.HasSuffix(u.Path, ".json") && !strings.Contains(u.Path, "/v0/servers/") && !strings.Contains(u.Path, "/v0.1/servers/")
}

// find returns an entry: from a document, or by its name in the registry.
func (s *Server) find(ctx context.Context, from string) (*entry, error) {
	m := entryName().FindStringSubmatch(from)
	place, wanted, version := from, "", ""
	if _, err := os.Stat(from); m != nil && err != nil {
		wanted, version = m[1], m[2]
		if place = s.cfg.Registry; strings.Contains(place, "://") {
			place = strings.TrimSuffix(place, "/") + "/v0.1/servers/" + url.PathEscape(wanted) + "/versions/" + url.PathEscape(cmp.Or(version, "latest"))
		}
	}
	data, shown, err := s.cfg.readDocument(ctx, place)
	if err != nil {
		return nil, err
	}
	s.From = shown
	list, err := readEntries(data)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(e entry) bool {
		return wanted != "" && e.Name != wanted || version != "" && version != "latest" && e.Version != version
	})
	switch {
	case wanted != "" && len(list) == 0:
		return nil, &capability.Error{Kind: capability.NotFound, Err: fmt.Errorf("registry has no server %s", from), Fix: "check the name, or name another registry with --registry"}
	case len(list) > 1 && wanted == "":
		return nil, &capability.Error{Kind: capability.Invalid, Err: fmt.Errorf("registry has %d servers", len(list)), Fix: "name one: ken add NAME --registry " + from}
	}
	e := &list[len(list)-1]
	if e.Status == "deleted" {
		return nil, errors.New("the registry has deleted it")
	}
	return e, nil
}

// mostDocument is how much of an entry is read.
const mostDocument = 4 << 20

func (c Config) readDocument(ctx context.Context, from string) (data []byte, shown string, err error) {
	if strings.Contains(from, "://") {
		data, shown, err = c.Fetch(ctx, from)
	} else if shown, err = filepath.Abs(from); err == nil {
		data, err = os.ReadFile(shown)
	}
	if err == nil && len(data) > mostDocument {
		err = fmt.Errorf("document has %d bytes, more than the limit of %d", len(data), mostDocument)
	}
	return data, shown, err
}

// entry makes the definition of an entry.
func (s *Server) entry(ctx context.Context, q Request, e *entry) error {
	s.Title, s.Description = e.Title, e.Description
	if e.Status == "deprecated" {
		s.note("the registry says that it is deprecated")
	}
	p, r, err := e.usable()
	if err != nil {
		return err
	}
	_, short, _ := strings.Cut(e.Name, "/")
	if err := s.name(q, short); err != nil {
		return err
	}
	if p != nil {
		if err := p.check(); err != nil {
			return err
		}
		if len(e.Remotes) > 0 {
			s.note("it is also at %s; ken add with that address uses it there", e.Remotes[0].URL)
		}
		return s.npm(ctx, q, e, p.Identifier, p.Version)
	}
	if len(q.Args)+len(q.Env) > 0 {
		return errors.New("a remote server has no arguments and no variables")
	}
	secret := func(header string) func(string) string {
		return func(part string) string { return s.Name + "-" + strings.ToLower(cmp.Or(part, header)) }
	}
	if err := refers("its address", r.URL); err != nil {
		return err
	}
	at, err := fill("its address", r.URL, r.Variables, secret("url"))
	if err != nil {
		return err
	}
	headers, missing := map[string]string{}, []string{at.missing}
	s.Secrets = append(s.Secrets, at.secrets...)
	for _, h := range r.Headers {
		v, err := h.resolve("the header "+h.Name, secret(h.Name))
		if err != nil {
			return err
		}
		s.Secrets, missing = append(s.Secrets, v.secrets...), append(missing, v.missing)
		if !v.absent {
			headers[h.Name] = v.text
		}
	}
	if missing = slices.DeleteFunc(missing, func(m string) bool { return m == "" }); len(missing) > 0 {
		return &capability.Error{Kind: capability.Invalid, Err: fmt.Errorf("entry leaves values open: %s", strings.Join(missing, "; ")), Fix: "write the definition into ken.yaml yourself, under mcp.servers." + s.Name}
	}
	s.Definition = Definition{URL: at.text, Headers: headers}
	if r.Type == "sse" {
		s.Definition.Transport = "sse"
	}
	return s.checkAddress()
}

// address makes the definition of a remote server.
func (s *Server) address(q Request) error {
	if len(q.Args)+len(q.Env) > 0 {
		return errors.New("a remote server has no arguments and no variables")
	}
	s.Definition.URL = q.From
	u, err := url.Parse(q.From)
	if err != nil {
		return errors.New("invalid address")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		s.From = u.Scheme + "://" + u.Host + u.Path
		return &capability.Error{
			Kind: capability.Invalid, Err: errors.New("the address has a name, a password or a query, which may be secret"),
			Fix: "write it into ken.yaml, under mcp.servers, with ${secret:NAME} in its place",
		}
	}
	short := strings.TrimPrefix(strings.TrimPrefix(u.Hostname(), "www."), "mcp.")
	if labels := strings.Split(short, "."); len(labels) > 1 {
		if at, literal := address.Parse(u.Hostname()); !literal || !at.IsValid() {
			short = labels[len(labels)-2]
		}
	}
	if err := s.name(q, short); err != nil {
		return err
	}
	return s.checkAddress()
}

// checkAddress refuses an address to which things would go unprotected.
func (s *Server) checkAddress() error {
	u, err := url.Parse(s.Definition.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return fmt.Errorf("%q is not an address", s.Definition.URL)
	}
	if address.Unprotected(u) {
		return &capability.Error{Kind: capability.Invalid, Err: fmt.Errorf("what is said to %s would go over the network unprotected", u.Host), Fix: "use an https:// address"}
	}
	return nil
}

// name sets the name of the server.
func (s *Server) name(q Request, usual string) error {
	if s.Name = q.Name; q.Name == "" {
		s.Name = strings.Trim(strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return '-'
		}, strings.ToLower(usual)), "-")
	}
	if !serverName().MatchString(s.Name) {
		return &capability.Error{Kind: capability.Invalid, Err: fmt.Errorf("%q cannot name a server", s.Name), Fix: "choose a name with --name: small letters, digits and dashes"}
	}
	return q.Taken(s.Name)
}

func (s *Server) note(format string, args ...any) {
	s.Notes = append(s.Notes, fmt.Sprintf(format, args...))
}

// variables sets those of the program: what the entry has, and what a person gave.
func (s *Server) variables(of []input, given []string) (missing []string, err error) {
	env := map[string]string{}
	for _, one := range given {
		name, text, literal := strings.Cut(one, "=")
		if !literal {
			s.Secrets = append(s.Secrets, Secret{Name: name})
			text = "${secret:" + name + "}"
		}
		env[name] = text
	}
	for _, in := range of {
		if _, is := env[in.Name]; is {
			if in.Secret && !strings.Contains(env[in.Name], "${") {
				return nil, &capability.Error{Kind: capability.Invalid, Err: fmt.Errorf("%s is a secret, and would stand in ken.yaml", in.Name), Fix: "ken secret set " + in.Name + ", and --env " + in.Name + " without a value"}
			}
			continue
		}
		v, err := in.resolve("the variable "+in.Name, func(part string) string { return cmp.Or(part, in.Name) })
		if err != nil {
			return nil, err
		}
		s.Secrets = append(s.Secrets, v.secrets...)
		switch {
		case v.missing != "":
			missing = append(missing, v.missing+" (--env "+in.Name+"=VALUE)")
		case !v.absent:
			env[in.Name] = v.text
		}
	}
	if len(env) > 0 {
		s.Definition.Env = maps.Clone(env)
	}
	return missing, nil
}

// Close removes what was installed, unless the server was added.
func (s *Server) Close() error {
	if s.Folder == "" {
		return nil
	}
	return os.RemoveAll(s.Folder)
}

// A Trial is how a server did that was started once.
type Trial struct {
	Tools []*capability.Capability

	Err   string // why it could not be used
	Fix   string
	Login bool // Err is that it wants a login

	// Pin pins what the server listed.
	Pin func(context.Context) error
}
