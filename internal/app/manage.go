package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/add/addplan"
	"ken/internal/config"
	"ken/internal/connect"
	"ken/internal/govern/audit"
	"ken/internal/govern/extensions"
	"ken/internal/run/mcpgateway"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/manageapi"
)

// manage returns what an operator manages on the page. The demo has none.
func (s *Site) manage(waiting context.Context) manageapi.Config {
	a := s.app
	if playsDemo(a) {
		return manageapi.Config{}
	}
	return manageapi.Config{
		Waiting: waiting, Items: s.managed, Secrets: a.Secrets,
		Adding: func(by capability.Principal) (addplan.App, error) {
			file, err := ownConfig(a)
			if err != nil {
				return addplan.App{}, err
			}
			return Adding(a, by, file, func(ctx context.Context, p *add.Package) (extensions.Extension, error) {
				if err := a.Catalog.Load(ctx); err != nil {
					return extensions.Extension{}, err
				}
				return EnableAdded(ctx, a, by, p, "added on the page")
			}), nil
		},
		Changed: func(ctx context.Context) error {
			a.loader.Latest()
			a.Servers.Reread(ctx)
			a.Catalog.LookAgain()
			return a.Catalog.Load(ctx)
		},
		Login: func(ctx context.Context, server string, ask func(ctx context.Context, address string) error) error {
			if err := a.Servers.Login(ctx, server, ask); err != nil {
				return err
			}
			a.Servers.List(ctx, server)
			return nil
		},
		Record: func(ctx context.Context, who auth.Identity, command, action, target string, notes map[string]string) error {
			success := true
			return a.record(ctx, audit.Record{
				Event: audit.Changed, Command: command, Action: action, Target: target, Origin: string(capability.ByPerson),
				UserID: who.Principal.ID, Tenant: who.Principal.Tenant, Status: audit.Completed, Success: &success, Metadata: audit.Metadata{Notes: notes},
			})
		},
		Plan: func(client string) (*connect.Plan, error) {
			program, err := lastingProgram(client)
			if err != nil {
				return nil, err
			}
			return a.Clients.Plan(connect.Request{Client: client, Program: program})
		},
		Connect: func(ctx context.Context, p *connect.Plan) ([]manageapi.Started, error) {
			names, err := a.Clients.Connect(ctx, p)
			if err != nil {
				return nil, err
			}
			a.Servers.Reread(ctx)
			var out []manageapi.Started
			for _, st := range a.Servers.List(ctx, names...) {
				if slices.Contains(names, st.Name) {
					out = append(out, manageapi.Started{Name: st.Name, Error: st.Err, Fix: st.Fix})
				}
			}
			return out, nil
		},
		Disconnect: a.Clients.Disconnect,
	}
}

// ownConfig returns the configuration file that the person changes.
func ownConfig(a *App) (string, error) {
	if a.configFile != "" {
		return a.configFile, nil
	}
	return config.File(a.Places)
}

// lastingProgram returns the path of this program for a client to start. It
// refuses a program that will be deleted.
func lastingProgram(client string) (string, error) {
	program, err := os.Executable()
	if err == nil {
		program, err = filepath.EvalSymlinks(program)
	}
	if err != nil {
		return "", err
	}
	slashed := filepath.ToSlash(program)
	if strings.Contains(slashed, "/go-build") || strings.Contains(slashed, "/_npx/") {
		return "", &capability.Error{
			Kind: capability.Unavailable, Op: "connect", Target: client, Err: errors.New("this program was started by go run or npx, which delete it when it ends"),
			Fix: "install Ken, or run ken connect " + client + " in the terminal",
		}
	}
	return program, nil
}

// managed lists MCP servers, extension packages and APIs. Those that wait for
// review come first.
func (s *Site) managed(ctx context.Context) ([]manageapi.Item, error) {
	a := s.app
	reviews, err := a.reviews().List(ctx)
	if err != nil {
		return nil, err
	}
	servers, err := a.ToolReviews.List(ctx)
	if err != nil {
		return nil, err
	}
	file, err := ownConfig(a)
	if err != nil {
		return nil, err
	}
	added, err := Adding(a, a.Principal, file, nil).List()
	if err != nil {
		return nil, err
	}
	from := map[string]string{}
	for _, x := range added {
		from[x.Kind+":"+x.Name] = x.From
	}
	defined := map[string]mcpgateway.Server{}
	for _, d := range a.Servers.Definitions() {
		defined[d.Name] = d
	}
	var out []manageapi.Item
	for _, r := range reviews {
		one := manageapi.Item{Name: r.Name, Title: r.Name, Kind: r.Kind, State: r.State, Why: r.Why, Fix: r.Fix, Pending: r.Pending, Digest: r.Digest}
		kind := "package:"
		if name, ok := strings.CutPrefix(r.Name, "mcp:"); ok {
			kind, one.Title = "server:", name
			d := defined[name]
			one.Place, one.Remote, one.Fixed = d.Origin.String(), d.URL != "", a.Servers.Unswitchable(d)
			one.Login = one.Remote && strings.Contains(r.Fix, "ken login")
			for _, t := range servers {
				if t.Name == name {
					one.Tools, one.Waiting = t.Accepted, t.New+t.Changed
				}
			}
		}
		one.From, one.Added = from[kind+one.Title], hasKey(from, kind+one.Title)
		out = append(out, one)
	}
	for _, x := range added {
		if x.Kind == "api" {
			out = append(out, manageapi.Item{Name: x.Name, Title: x.Name, Kind: "api", State: "enabled", From: x.From, Place: x.Folder, Added: true, Fixed: "an API is removed, not disabled"})
		}
	}
	return out, nil
}

func hasKey[V any](m map[string]V, key string) bool {
	_, ok := m[key]
	return ok
}
