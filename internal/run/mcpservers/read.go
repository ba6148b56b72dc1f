package mcpservers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/connect"
	"ken/internal/govern/pin"
	"ken/internal/run/mcpgateway"
	"ken/internal/secret/detect"
	"ken/internal/wholefile"
)

// A reading is what the configuration and the files of clients said about
// servers at one moment. It does not change once it is complete.
type reading struct {
	settings *config.Config
	servers  []mcpgateway.Server
	problems []capability.Problem
	stamps   []wholefile.Stamp // of the files of clients, taken before they were read

	readable map[string][]connect.Server // by file: what it contained when it could last be read
	held     map[string]int64            // by file of mcp.import with definitions that wait: the revision of its pins
	projects map[string]string           // by server: the folder of the only project that it is for
	pinKeys  map[string]string           // by server
	enabled  int                         // servers that are not disabled

	replaced chan struct{} // closed when there is a newer reading
}

// Definitions reads the configuration and the files of clients and returns the
// servers that they define. If two have one name the first counts: ken.yaml,
// then mcp.json, then mcp.import.
func (s *Servers) Definitions() []mcpgateway.Server {
	r := s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.last.replaced)
	s.last = r
	s.hold(r.servers)
	return slices.Clone(r.servers)
}

// minSecret is the length from which a secret of a definition is known to the
// redactor. Shorter ones, such as the password postgres, stand in ordinary texts.
const minSecret = 12

// hold makes the secrets that definitions have in clear known to the redactor:
// people write tokens there, and clients do. s.mu is held.
func (s *Servers) hold(list []mcpgateway.Server) {
	var fresh []string
	look := func(name, value string) {
		detect.Each(name, value, func(secret string) {
			if !s.known[secret] && len(secret) >= minSecret {
				s.known[secret] = true
				fresh = append(fresh, secret)
			}
		})
	}
	for _, one := range list {
		before := ""
		for _, arg := range one.Args {
			look(strings.TrimLeft(before, "-"), arg)
			before = ""
			if strings.HasPrefix(arg, "-") {
				before = arg
			}
		}
		for name, value := range one.Env {
			look(name, value)
		}
		for name, value := range one.Headers {
			look(name, value)
		}
		look("", one.URL)
	}
	if len(fresh) > 0 {
		s.cfg.Hold(fresh...)
	}
}

// Find returns the definition of a server. op is for the error.
func (s *Servers) Find(op, name string) (mcpgateway.Server, error) {
	list := s.Definitions()
	i := slices.IndexFunc(list, func(one mcpgateway.Server) bool { return one.Name == name })
	if i < 0 || s.gateway == nil {
		return mcpgateway.Server{}, &capability.Error{Kind: capability.NotFound, Op: op, Target: "mcp:" + name, Err: errors.New("MCP server not found"), Fix: "see ken extension list"}
	}
	return list[i], nil
}

func (s *Servers) read() *reading {
	d := &definitionReader{Config: &s.cfg, last: s.latest(), names: map[string]string{}, reading: reading{
		settings: s.cfg.Latest(), readable: map[string][]connect.Server{}, held: map[string]int64{},
		projects: map[string]string{}, pinKeys: map[string]string{}, replaced: make(chan struct{}),
	}}
	for _, one := range d.settings.MCP.Servers {
		d.add(configured(one))
	}
	for _, file := range append([]string{File(s.cfg.Places)}, d.settings.MCP.Import...) {
		d.stamps = append(d.stamps, wholefile.StampOf(file)) // before reading it
		d.addFile(file)
	}
	for _, name := range d.settings.MCP.TrustHints {
		if d.names[name] == "" {
			d.problem(capability.Problem{
				Severity: capability.Warning, Code: "mcp-trust-hints", Message: "mcp.trustHints names " + name + ", and no MCP server has that name", Fix: "correct the name, or remove it",
			})
		}
	}
	for _, one := range d.servers {
		d.pinKeys[one.Name] = pin.ServerKey(one.Name, one.Origin.Path)
		if !one.Disabled {
			d.enabled++
		}
	}
	return &d.reading
}

// A definitionReader makes a [reading].
type definitionReader struct {
	*Config
	reading
	last  *reading
	names map[string]string // of the servers so far, and where each is defined
}

func (d *definitionReader) problem(p capability.Problem) { d.problems = append(d.problems, p) }

func (d *definitionReader) add(s mcpgateway.Server) {
	if where, is := d.names[s.Name]; is {
		d.problem(capability.Problem{
			Severity: capability.Warning, Code: "mcp-duplicate", Origin: s.Origin, Message: "the MCP server " + s.Name + " is named in " + where + " already, and that counts",
			Fix: "give one of them another name",
		})
		return
	}
	d.names[s.Name] = s.Origin.String()
	d.servers = append(d.servers, d.completed(s))
}

// addFile adds the servers of a file: mcp.json, or one of mcp.import.
func (d *definitionReader) addFile(file string) {
	own := file == File(d.Places)
	list, ok := d.readFile(file, own)
	var held map[string]string
	project := ""
	if !own && ok {
		if project = projectOf(file); project == d.Places.UserHome || project == filepath.Dir(project) {
			project = "" // a file of the user, for all projects
		}
		revision := d.Definitions.Revision(context.Background(), file)
		if held = d.Definitions.Held(context.Background(), file, list); len(held) > 0 {
			d.held[file] = revision
		}
	}
	for _, s := range list {
		if !own && wantsSecret(s) {
			d.problem(capability.Problem{
				Code: "mcp-secret", Origin: capability.Origin{Path: file, Line: s.Line}, Message: "the MCP server " + s.Name + " wants a sealed secret, which only ken.yaml and mcp.json may give",
				Fix: "define it there, or put the value into the environment",
			})
			continue
		}
		if s.Ken.Project != "" {
			d.projects[s.Name] = filepath.Clean(s.Ken.Project)
		}
		def := imported(s, file)
		def.Foreign = !own
		if def.Held = held[s.Name]; def.Folder == "" {
			def.Folder = project
		}
		d.add(def)
	}
}

// readFile returns the servers of a file, and whether they count. A file that
// cannot be read now has the servers that it had, since a program may be
// writing it. A file of another program that does not exist, or could never be
// read, counts as one without servers, so that what is written into it later
// is not trusted as a first reading.
func (d *definitionReader) readFile(file string, own bool) (list []connect.Server, ok bool) {
	data, err := readLimited(file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && own:
		return nil, false
	case errors.Is(err, fs.ErrNotExist):
		d.unreadable(file, err)
	case err != nil:
		d.unreadable(file, err)
		if list, ok = d.last.readable[file]; !ok {
			return nil, !own
		}
	default:
		var problems []capability.Problem
		list, problems = connect.ReadServers(data)
		for _, p := range problems {
			p.Origin.Path = file
			d.problem(p)
		}
		if len(list) == 0 && len(problems) > 0 {
			if list, ok = d.last.readable[file]; !ok {
				return nil, !own
			}
		}
	}
	d.readable[file] = list
	return list, true
}

func (d *definitionReader) unreadable(file string, err error) {
	d.problem(capability.Problem{Code: "mcp-file", Origin: capability.Origin{Path: file}, Message: "servers cannot be read: " + err.Error(), Fix: "fix the file, or take it out of mcp.import"})
}

// wantsSecret reports whether a definition refers to a sealed secret.
func wantsSecret(s connect.Server) bool {
	texts := append([]string{s.Command, s.Cwd, s.URL}, s.Args...)
	for _, m := range []map[string]string{s.Env, s.Headers} {
		for _, v := range m {
			texts = append(texts, v)
		}
	}
	return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, "${secret:") })
}

// configured returns a server of ken.yaml in the form of the gateway.
func configured(s config.Server) mcpgateway.Server {
	out := mcpgateway.Server{
		Name: s.Name, Command: s.Command, Args: s.Args, Env: s.Env, Cwd: s.Cwd,
		URL: s.URL, SSE: s.Transport == config.TransportSSE, Headers: s.Headers,
		Scope: mcpgateway.Scope(s.Scope), Profile: mcpgateway.Profile(s.Profile), Read: s.Read, Write: s.Write, Hosts: s.Hosts,
		Timeout: s.Timeout, StartTimeout: s.StartTimeout, Concurrent: s.Concurrent, Include: s.Include, Exclude: s.Exclude,
		Disabled: s.Disabled, Trust: capability.TrustUser, Origin: s.Origin,
	}
	if s.ClientID != "" || len(s.Scopes) > 0 || len(s.OAuth) > 0 {
		o := s.OAuth
		out.OAuth = &mcpgateway.OAuth{
			ClientID: s.ClientID, Scopes: s.Scopes, ClientSecret: o["clientSecret"], Grant: o["grant"], Issuer: o["issuer"],
			Key: o["clientKey"], Token: o["token"], Provider: o["provider"], ProviderClient: o["providerClient"],
		}
	}
	return out
}

// imported returns a server of a client's file in the form of the gateway.
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
func (d *definitionReader) completed(s mcpgateway.Server) mcpgateway.Server {
	if s.Timeout == 0 {
		s.Timeout = d.settings.Limits.Timeout
	}
	s.TrustHints = slices.Contains(d.settings.MCP.TrustHints, s.Name)
	if len(s.Hosts) > 0 {
		s.Networks = d.settings.Sandbox.Prefixes()
	}
	if s.Command != "" && s.Cwd == "" && s.Profile != mcpgateway.ProfileConfined {
		s.Cwd = cmp.Or(s.Folder, d.Places.UserHome) // without a project it is unknown where the client would have started it
	}
	return s
}

// readLimited reads a file that defines servers. Another program may have
// written it, so it must be a regular file of a limited size.
func readLimited(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: file, Err: fmt.Errorf("not a regular file")}
	case info.Size() > connect.Largest:
		return nil, &fs.PathError{Op: "read", Path: file, Err: fmt.Errorf("larger than %d bytes", connect.Largest)}
	}
	return os.ReadFile(file)
}

// projectOf returns the project that a file belongs to: for PROJECT/.mcp.json and
// PROJECT/.cursor/mcp.json it is PROJECT, and for other files "".
func projectOf(file string) string {
	dir, base := filepath.Split(filepath.Clean(file))
	dir = filepath.Clean(dir)
	if strings.HasPrefix(base, ".") {
		return dir
	}
	if strings.HasPrefix(filepath.Base(dir), ".") {
		return filepath.Dir(dir)
	}
	return ""
}
