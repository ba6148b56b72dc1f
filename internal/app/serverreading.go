package app

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
	"ken/internal/run/mcpgateway"
)

// A reading is what is gathered of servers in one go.
type reading struct {
	app    *App
	now    *config.Config
	out    []mcpgateway.Server
	wrong  []capability.Problem
	taken  map[string]string // names, and where they are from
	only   map[string]string
	last   map[string][]connect.Server
	good   map[string][]connect.Server
	judged map[string]int64
}

func (a *App) newReading(now *config.Config) *reading {
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
		at := r.app.definitions.Revision(context.Background(), file)
		if held = r.app.definitions.Held(context.Background(), file, list); len(held) > 0 {
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

// read returns the servers of a file, if there is one. One that cannot be read now
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

// configured returns a server of ken.yaml as the gateway has it.
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

// imported returns a server of a client's file as the gateway has it.
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
	s.TrustHints = slices.Contains(r.now.MCP.TrustHints, s.Name)
	if len(s.Hosts) > 0 {
		s.Networks = r.now.Sandbox.Prefixes()
	}
	if s.Command != "" && s.Cwd == "" && s.Profile != mcpgateway.ProfileConfined {
		s.Cwd = cmp.Or(s.Folder, r.app.Places.UserHome) // without a project it is not known where the client would have started it
	}
	return s
}

// readServerFile reads a file that names servers, which may be another's.
func readServerFile(file string) ([]byte, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &fs.PathError{Op: "read", Path: file, Err: fmt.Errorf("it is no file")}
	case info.Size() > connect.Largest:
		return nil, &fs.PathError{Op: "read", Path: file, Err: fmt.Errorf("it has more than %d bytes", connect.Largest)}
	}
	return os.ReadFile(file)
}

// projectOf returns the folder that a file with servers lies in for a client: of a
// project's .mcp.json its own, of .cursor/mcp.json the one above.
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
