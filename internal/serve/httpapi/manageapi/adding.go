package manageapi

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/add/addmcp"
	"ken/internal/add/addplan"
	"ken/internal/serve/httpapi/wire"
)

// A Request says what to add. One of From and Command is set.
type Request struct {
	// From is npm:PACKAGE, the URL of a remote MCP server, a name in the MCP
	// registry, openapi:URL, graphql:URL, git:URL, or a path on this machine.
	From string `json:"from,omitempty"`

	Command []string `json:"command,omitempty"` // the program of an MCP server, and its arguments
	Name    string   `json:"name,omitempty"`    // empty: made from the above
	Args    []string `json:"args,omitempty"`    // of an npm package
	Env     []string `json:"env,omitempty"`     // NAME for the secret of that name, or NAME=VALUE
	Read    []string `json:"read,omitempty"`    // paths that a server may read
	Write   []string `json:"write,omitempty"`   // paths that a server may change
	Hosts   []string `json:"hosts,omitempty"`   // hosts that a server may reach
}

// An Addition is a plan that a person looks at. One of Server, Package and API is
// set.
type Addition struct {
	ID      string           `json:"id"`
	Server  *addplan.Server  `json:"server,omitempty"`
	Package *addplan.Package `json:"package,omitempty"`
	API     *addplan.API     `json:"api,omitempty"`

	// Next is the next step: secrets (set the one that Unset names), try or add. It is
	// empty if there is none.
	Next   string `json:"next,omitempty"`
	Unset  string `json:"unset,omitempty"`  // the first secret that is not set
	Failed string `json:"failed,omitempty"` // why a server could not be used when it was tried
	Fix    string `json:"fix,omitempty"`
	Same   bool   `json:"same,omitempty"` // the API is there with this document
}

// A Removed is what was removed.
type Removed struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	Work    string   `json:"work,omitempty"` // the folder that programs of a package wrote to, which stays
	Secrets []string `json:"secrets"`        // that stay, and that nothing else needs

	LoggedOut bool             `json:"logged_out,omitempty"` // the login to the server was removed, with its token and client registration
	LoginUsed string           `json:"login_used,omitempty"` // the login stays: where a server of this name is still defined
	Shared    []addplan.Shared `json:"shared,omitempty"`     // secrets that stay because something else needs them
}

// An addition is a plan that is open.
type addition struct {
	id       string
	by       capability.Principal
	programs bool // it starts programs of this machine, or reads files of it
	until    time.Time

	mu     sync.Mutex
	closed bool
	server *addplan.Server
	pack   *addplan.Package
	api    *addplan.API
}

const (
	planLife  = 30 * time.Minute
	mostPlans = 8
)

// close removes what was fetched.
func (a *addition) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return
	}
	a.closed = true
	switch { // what is left is removed when Ken starts
	case a.server != nil:
		_ = a.server.Close()
	case a.pack != nil:
		_ = a.pack.Close()
	case a.api != nil:
		_ = a.api.Close()
	}
}

// shown returns what a person is shown. a.mu is held.
func (a *addition) shown() Addition {
	out := Addition{ID: a.id, Next: "add"} // copies, because other requests may change the plan while it is written
	switch {
	case a.server != nil:
		out.Unset, out.Failed, out.Fix = a.server.Unset(), a.server.Failed, a.server.FailedFix
		server := *a.server
		server.Secrets = slices.Clone(server.Secrets)
		out.Server = &server
		switch {
		case a.server.Added:
			out.Next = ""
		case out.Unset != "":
			out.Next = "secrets"
		case !a.server.Tried():
			out.Next = "try"
		}
		if out.Failed != "" && a.server.Definition.Profile == "confined" {
			out.Fix = "let it read or change more folders or reach more hosts, or run ken add --profile imported in the terminal, with which it has your files and the network"
		}
	case a.pack != nil:
		pack := *a.pack
		out.Package = &pack
		switch {
		case a.pack.Added:
			out.Next = ""
		case !a.pack.Installed():
			out.Next = "try"
		}
	case a.api != nil:
		api := *a.api
		out.API = &api
		if out.Same = a.api.Same; out.Same || a.api.Added {
			out.Next = ""
		}
	}
	return out
}

func (s *server) plan(r *wire.Request) (any, error) {
	var in Request
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	in.From = strings.TrimSpace(in.From)
	if (in.From == "") == (len(in.Command) == 0) {
		return nil, wire.Bad("say what to add: either from or command")
	}
	a := &addition{id: rand.Text(), by: r.Who.Principal, programs: startsPrograms(in), until: s.cfg.Now().Add(planLife)}
	if p := s.refused(r.Who); a.programs && p != nil {
		return nil, p
	}
	in.From = strings.TrimPrefix(in.From, "file:")
	app, err := s.cfg.Adding(r.Who.Principal)
	if err != nil {
		return nil, err
	}
	if err := a.read(r.Context(), app, in); err != nil {
		if wrong, ok := errors.AsType[*addplan.UsageError](err); ok {
			return nil, wire.Bad(wrong.Err.Error())
		}
		return nil, err
	}
	s.keep(a)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.shown(), nil
}

// startsPrograms reports whether adding something may start a program of this
// machine or read its files. A remote server and a document at an address do not. An
// entry of a registry may: it may name a package.
func startsPrograms(in Request) bool {
	for _, kind := range []string{"openapi:", "graphql:"} {
		if from, ok := strings.CutPrefix(in.From, kind); ok {
			return !strings.HasPrefix(from, "https://") && !strings.HasPrefix(from, "http://")
		}
	}
	return len(in.Command) > 0 || !addmcp.IsRemote(in.From)
}

// read reads what is to be added.
func (a *addition) read(ctx context.Context, app addplan.App, in Request) (err error) {
	document, api := strings.CutPrefix(in.From, "openapi:")
	graph, isGraph := strings.CutPrefix(in.From, "graphql:")
	switch {
	case api:
		a.api, err = app.ReadAPI(ctx, add.Request{From: document, Name: in.Name})
	case isGraph:
		a.api, err = app.ReadAPI(ctx, add.Request{From: graph, Name: in.Name, GraphQL: true})
	case in.From != "" && !addplan.IsServer(in.From) && addplan.IsPackage(in.From) && !addplan.IsDocument(in.From):
		a.pack, err = app.ReadPackage(ctx, in.From)
	case in.From != "" && !addplan.IsServer(in.From):
		return wire.Bad("Ken cannot add this; name npm:PACKAGE, the URL or the registry name of an MCP server, openapi:URL, graphql:URL, git:URL, or a folder or archive on this machine")
	default:
		q := addplan.ServerRequest{Request: addmcp.Request{From: in.From, Name: in.Name, Args: in.Args, Env: in.Env}, Read: in.Read, Write: in.Write, Hosts: in.Hosts}
		if len(in.Command) > 0 {
			q.Command, q.Args = in.Command[0], in.Command[1:]
		}
		a.server, err = app.ReadServer(ctx, q)
	}
	return err
}

// keep keeps a plan for a while. The oldest goes if there are too many.
func (s *server) keep(a *addition) {
	var gone []*addition
	s.mu.Lock()
	for _, one := range s.open {
		if s.cfg.Now().After(one.until) {
			gone = append(gone, one)
			delete(s.open, one.id)
		}
	}
	if len(s.open) >= mostPlans {
		var oldest *addition
		for _, one := range s.open {
			if oldest == nil || one.until.Before(oldest.until) {
				oldest = one
			}
		}
		gone = append(gone, oldest)
		delete(s.open, oldest.id)
	}
	s.open[a.id] = a
	s.mu.Unlock()
	for _, one := range gone {
		one.close()
	}
}

// find returns the plan that a request names, locked. The caller unlocks it.
func (s *server) find(r *wire.Request) (*addition, error) {
	s.mu.Lock()
	a := s.open[r.PathValue("id")]
	s.mu.Unlock()
	if a == nil || a.by.ID != r.Who.Principal.ID || a.by.Tenant != r.Who.Principal.Tenant || s.cfg.Now().After(a.until) {
		return nil, &wire.Problem{Status: http.StatusNotFound, Code: "not-found", Detail: "this plan has ended; make a new one"}
	}
	if p := s.refused(r.Who); a.programs && p != nil {
		return nil, p
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil, &wire.Problem{Status: http.StatusNotFound, Code: "not-found", Detail: "this plan has ended; make a new one"}
	}
	return a, nil
}

func (s *server) try(r *wire.Request) (any, error) {
	a, err := s.find(r)
	if err != nil {
		return nil, err
	}
	defer a.mu.Unlock()
	switch {
	case a.server != nil:
		if name := a.server.Unset(); name != "" {
			return nil, &wire.Problem{Status: http.StatusConflict, Code: "secret-not-set", Detail: "the secret " + name + " is not set; set it first"}
		}
		err = a.server.Try(r.Context())
	case a.pack != nil && !a.pack.Installed():
		err = a.pack.Install(r.Context())
	}
	if err != nil {
		return nil, err
	}
	return a.shown(), nil
}

func (s *server) add(r *wire.Request) (any, error) {
	a, err := s.find(r)
	if err != nil {
		return nil, err
	}
	defer a.mu.Unlock()
	ctx := context.WithoutCancel(r.Context()) // half of it would be worse than all
	switch {
	case a.server != nil && a.server.Unset() != "":
		return nil, &wire.Problem{Status: http.StatusConflict, Code: "secret-not-set", Detail: "the secret " + a.server.Unset() + " is not set; set it first"}
	case a.server != nil:
		err = a.server.Add(ctx)
	case a.pack != nil:
		_, err = a.pack.Add(ctx)
	case a.api != nil:
		err = a.api.Add(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	delete(s.open, a.id)
	s.mu.Unlock()
	a.closed = true
	return a.shown(), s.cfg.Changed(ctx)
}

func (s *server) discard(r *wire.Request) (any, error) {
	s.mu.Lock()
	a := s.open[r.PathValue("id")]
	if a != nil && a.by.ID == r.Who.Principal.ID && a.by.Tenant == r.Who.Principal.Tenant {
		delete(s.open, a.id)
	} else {
		a = nil
	}
	s.mu.Unlock()
	if a != nil {
		a.close()
	}
	return nil, nil
}

func (s *server) remove(r *wire.Request) (any, error) {
	app, err := s.cfg.Adding(r.Who.Principal)
	if err != nil {
		return nil, err
	}
	ctx := context.WithoutCancel(r.Context())
	gone, err := app.Remove(ctx, r.PathValue("name"))
	if err != nil {
		_ = s.cfg.Changed(ctx) // a part of it may be removed; the error says so
		return nil, err
	}
	return Removed{Name: gone.Name, Kind: gone.Kind, Work: gone.Work, Secrets: append([]string{}, gone.Secrets...), LoggedOut: gone.LoggedOut, LoginUsed: gone.LoginUsed, Shared: gone.Shared}, s.cfg.Changed(ctx)
}
