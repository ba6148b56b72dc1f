// Package manageapi serves what an operator manages on the page: MCP servers,
// extension packages and APIs that are added and removed, logins of MCP servers,
// secrets, and the clients whose servers move behind Ken.
//
// Everything is done in two steps: a plan that changes nothing, and a request that
// carries out exactly this plan.
package manageapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/add/addplan"
	"ken/internal/connect"
	"ken/internal/secret"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
)

// Config says what to serve. All functions must be safe for concurrent use. If
// Items is nil, every route answers that there is nothing to manage here.
type Config struct {
	Waiting context.Context // ends when the server is about to stop

	Items   func(context.Context) ([]Item, error)
	Adding  func(by capability.Principal) (addplan.App, error)
	Changed func(context.Context) error // something was added, removed or connected

	// Login logs in to a remote MCP server. ask receives the address to open.
	Login func(ctx context.Context, server string, ask func(ctx context.Context, address string) error) error

	Secrets *secret.Store

	// Record records in the audit log what a person did to a target.
	Record func(ctx context.Context, who auth.Identity, command, action, target string, notes map[string]string) error

	// Plan, Connect and Disconnect are those of the clients of this machine.
	Plan       func(client string) (*connect.Plan, error)
	Connect    func(ctx context.Context, p *connect.Plan) ([]Started, error)
	Disconnect func(ctx context.Context, client string, force bool) (connect.Disconnection, error)

	Now func() time.Time // nil: the clock
}

// An Item is an MCP server, an extension package or an API.
type Item struct {
	Name    string `json:"name"`  // as reviews have it: mcp:NAME for a server
	Title   string `json:"title"` // as a person calls it
	Kind    string `json:"kind"`  // server, extension or api
	State   string `json:"state"`
	Why     string `json:"why,omitempty"` // it cannot be used
	Fix     string `json:"fix,omitempty"`
	Place   string `json:"place,omitempty"` // where it is defined
	From    string `json:"from,omitempty"`  // where ken add had it from
	Digest  string `json:"digest,omitempty"`
	Tools   int    `json:"tools"`            // that are accepted
	Waiting int    `json:"waiting"`          // that wait for review
	Pending bool   `json:"pending"`          // something waits for review
	Login   bool   `json:"login,omitempty"`  // a person must log in
	Remote  bool   `json:"remote,omitempty"` // it is a remote server
	Added   bool   `json:"added"`            // it can be removed here
	Fixed   string `json:"fixed,omitempty"`  // why it cannot be switched here
}

// A Started says whether a server that moved behind Ken could be started.
type Started struct {
	Name  string `json:"name"`
	Error string `json:"error,omitempty"`
	Fix   string `json:"fix,omitempty"`
}

// Routes returns the routes.
func Routes(cfg Config) []wire.Route {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &server{cfg: cfg, open: map[string]*addition{}, logins: map[string]*login{}}
	if cfg.Waiting != nil {
		context.AfterFunc(cfg.Waiting, s.end)
	}
	const group, long = "manage", 10 * time.Minute
	const decide = "open the page"
	routes := []wire.Route{
		{Method: http.MethodGet, Path: "/api/v1/managed", Name: "listManaged", Group: group, Summary: "MCP servers, extension packages and APIs, with their state", Answer: managed{}, Serve: s.list, Patience: time.Minute},
		{Method: http.MethodPost, Path: "/api/v1/additions", Name: "planAddition", Group: group, Summary: "Show what a server, package or API asks for; starts nothing", Body: Request{}, Answer: Addition{}, Decision: decide + ", or run ken add", Serve: s.plan, Patience: long},
		{Method: http.MethodPost, Path: "/api/v1/additions/{id}/try", Name: "tryAddition", Group: group, Summary: "Start a planned server once, or run the install steps of a package, in the sandbox", Answer: Addition{}, Decision: decide + ", or run ken add", Serve: s.try, Patience: long},
		{Method: http.MethodPost, Path: "/api/v1/additions/{id}/add", Name: "add", Group: group, Summary: "Add what was planned and tried", Answer: Addition{}, Decision: decide + ", or run ken add", Serve: s.add, Patience: time.Minute},
		{Method: http.MethodDelete, Path: "/api/v1/additions/{id}", Name: "discardAddition", Group: group, Summary: "Discard a plan", Decision: decide, Serve: s.discard},
		{Method: http.MethodDelete, Path: "/api/v1/added/{name}", Name: "removeAdded", Group: group, Summary: "Remove what was added", Answer: Removed{}, Decision: decide + ", or run ken remove", Serve: s.remove, Patience: time.Minute},
		{Method: http.MethodPost, Path: "/api/v1/servers/{name}/login", Name: "beginLogin", Group: group, Summary: "Begin to log in to a remote MCP server; answers with the address to open", Answer: LoginState{}, Decision: decide + ", or run ken login", Serve: s.beginLogin, Patience: time.Minute},
		{Method: http.MethodGet, Path: "/api/v1/servers/{name}/login", Name: "loginState", Group: group, Summary: "How a login stands", Answer: LoginState{}, Serve: s.loginState},
		{Method: http.MethodGet, Path: "/api/v1/secrets", Name: "listSecrets", Group: group, Summary: "The names of stored secrets; never their values", Answer: secretList{}, Serve: s.secrets},
		{Method: http.MethodPut, Path: "/api/v1/secrets/{name}", Name: "setSecret", Group: group, Summary: "Store a secret, encrypted; it is never returned", Body: secretValue{}, Decision: decide + ", or run ken secret set", Limit: 128 << 10, Serve: s.setSecret},
		{Method: http.MethodDelete, Path: "/api/v1/secrets/{name}", Name: "removeSecret", Group: group, Summary: "Remove a secret", Decision: decide + ", or run ken secret rm", Serve: s.removeSecret},
		{Method: http.MethodGet, Path: "/api/v1/clients/{name}/plan", Name: "planConnection", Group: group, Summary: "What connecting an MCP client of this machine would change", Answer: ClientPlan{}, Decision: decide + ", or run ken connect --dry-run", Serve: s.clientPlan},
		{Method: http.MethodPost, Path: "/api/v1/clients/{name}/connect", Name: "connectClient", Group: group, Summary: "Connect a client as planned; its servers move behind Ken", Body: Agreement{}, Answer: Connection{}, Decision: decide + ", or run ken connect", Serve: s.connect, Patience: long},
		{Method: http.MethodPost, Path: "/api/v1/clients/{name}/disconnect", Name: "disconnectClient", Group: group, Summary: "Restore the files of a client", Body: Restoration{}, Answer: connect.Disconnection{}, Decision: decide + ", or run ken disconnect", Serve: s.disconnect, Patience: time.Minute},
	}
	for i := range routes {
		routes[i].Operator = true
		serve := routes[i].Serve
		routes[i].Serve = func(r *wire.Request) (any, error) {
			if cfg.Items == nil {
				return nil, &wire.Problem{Status: http.StatusNotFound, Code: "not-served", Detail: "nothing is managed here"}
			}
			return serve(r)
		}
	}
	return routes
}

type server struct {
	cfg Config

	mu     sync.Mutex
	open   map[string]*addition // plans that were shown, by id
	logins map[string]*login    // by server
}

type managed struct {
	Items []Item `json:"items"`

	// Refused says why the caller may not start programs here, add from files, log
	// in or connect clients; absent: they may. Code is that of the problem.
	Refused string `json:"refused,omitempty"`
	Code    string `json:"code,omitempty"`
}

func (s *server) list(r *wire.Request) (any, error) {
	items, err := s.cfg.Items(r.Context())
	if err != nil {
		return nil, err
	}
	out := managed{Items: append([]Item{}, items...)}
	if p := s.refused(r.Who); p != nil {
		out.Refused, out.Code = p.Detail, p.Code
	}
	return out, nil
}

// freshFor is how long after signing in a browser may start programs and change
// the files of clients.
const freshFor = 30 * time.Minute

// SignInAgain is the code of a problem that signing in again solves.
const SignInAgain = "sign-in-again"

// refused returns why a caller may not do what starts a program of this machine or
// changes files outside of Ken, or nil. Only the owner may, at a server that only
// this machine reaches. A browser must have signed in a short time ago, so that a
// stolen cookie is not enough.
func (s *server) refused(who auth.Identity) *wire.Problem {
	switch {
	case !who.Local:
		return &wire.Problem{Status: http.StatusForbidden, Code: "not-local", Detail: "other machines can reach this server, so the page does not start programs or change files outside of Ken; run ken add, ken login or ken connect on the machine itself"}
	case !who.Owner || !who.Decides:
		return &wire.Problem{Status: http.StatusForbidden, Code: "owner-only", Detail: "only the person who runs ken serve, signed in with its link, may do this: it starts programs of this machine or changes files outside of Ken"}
	case who.SignedIn && s.cfg.Now().Sub(who.Began) > freshFor:
		return &wire.Problem{Status: http.StatusForbidden, Code: SignInAgain, Detail: "sign in again to do this: it starts programs of this machine or changes files outside of Ken, and you signed in more than 30 minutes ago"}
	}
	return nil
}

// end removes what was fetched for plans that were not carried out.
func (s *server) end() {
	s.mu.Lock()
	all := s.open
	s.open = map[string]*addition{}
	s.mu.Unlock()
	for _, a := range all {
		a.close()
	}
}
