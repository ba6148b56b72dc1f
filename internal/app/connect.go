package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"ken/internal/config"
	"ken/internal/connect"
	"ken/internal/secret"
	"ken/internal/serve/auth"
	"ken/internal/wholefile"
)

// A Connection is what is asked of connecting a client.
type Connection struct {
	Client  string
	File    string // the client's configuration, where it is not in the usual place
	Project string // a folder whose own files are taken too
	Program string // the absolute path of ken
	HTTP    bool   // the client asks over HTTP, at serve.addr, with the token
	Token   string // for HTTP
}

// PlanConnection works out what connecting a client would change. It changes
// nothing.
func (a *App) PlanConnection(c Connection) (*connect.Plan, error) {
	entry := connect.Entry{Command: c.Program, Home: a.movedHome()}
	if c.HTTP {
		entry = connect.Entry{URL: "http://" + a.Settings.Serve.Addr + "/mcp", Token: c.Token}
	}
	return connect.Prepare(connect.Options{
		Where: connect.Where{Client: c.Client, Home: a.Places.UserHome, Getenv: a.getenv, File: c.File, Project: c.Project},
		Entry: entry,
		Secret: func(name string) (secret.Value, bool) {
			v, err := a.secrets.Lookup(name)
			return v, err == nil
		},
	})
}

// movedHome returns Ken's folder if KEN_HOME moved it, and "" if Ken finds the
// same folders without the variable.
func (a *App) movedHome() string {
	if a.getenv("KEN_HOME") == "" {
		return ""
	}
	usual, err := config.NewPlaces(func(name string) string {
		if name == "KEN_HOME" {
			return ""
		}
		return a.getenv(name)
	}, a.Places.Workspace)
	if err == nil && usual.Home == a.Places.Home && usual.State == a.Places.State && usual.Cache == a.Places.Cache {
		return ""
	}
	return a.Places.Home
}

// Connect does what a plan says: seals its secrets, takes its servers over, and
// then changes the client's files. It gives the names of the servers, as Ken
// has them.
func (a *App) Connect(ctx context.Context, p *connect.Plan) (names []string, err error) {
	for _, s := range p.Secrets {
		if s.Value.Reveal() == "" {
			continue // a person has to set it
		}
		if err := a.secrets.Set(s.Name, s.Value); err != nil {
			return nil, err
		}
	}
	renames, err := a.editServers(func(old []byte) ([]byte, map[string]string, error) {
		return connect.Merge(old, p.Servers, p.Client)
	})
	if err != nil {
		return nil, err
	}
	for _, s := range p.Servers {
		name := s.Name
		if now, ok := renames[name]; ok {
			name = now
		}
		if !s.Disabled {
			names = append(names, name)
		}
	}
	return names, connect.Apply(ctx, p, a.vault())
}

// A Disconnection is what became of a client's files.
type Disconnection struct {
	Files   []connect.Restored `json:"files"`
	Removed []string           `json:"removed"` // servers that Ken no longer has
	Secrets []string           `json:"secrets"` // that came from the client's files, and are removed
	Stay    []string           `json:"stay"`    // secrets that a person set, and that nothing refers to now
	Token   bool               `json:"token"`   // the client had its own token, which was removed
}

// Disconnect returns a client its files back, and forgets the servers that came
// from it alone, with the secrets that were in its files, and its token.
func (a *App) Disconnect(ctx context.Context, client string, force bool) (Disconnection, error) {
	d := Disconnection{Removed: []string{}, Secrets: []string{}, Stay: []string{}}
	sealed, err := connect.Sealed(ctx, client, a.vault())
	if err != nil {
		return d, err
	}
	if d.Files, err = connect.Undo(ctx, client, a.vault(), force); err != nil {
		return d, err
	}
	var loose []string
	_, err = a.editServers(func(old []byte) (out []byte, _ map[string]string, err error) {
		out, d.Removed, loose, err = connect.Unmerge(old, client)
		return out, nil, err
	})
	if err != nil {
		return d, err
	}
	for _, name := range loose {
		if _, err := a.secrets.Lookup(name); err != nil {
			continue // nobody has set it
		}
		if !slices.Contains(sealed, name) {
			d.Stay = append(d.Stay, name)
			continue
		}
		if err := a.secrets.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			a.log.Warn("a secret that nothing needs any more stays", "name", name, "error", err)
			d.Stay = append(d.Stay, name)
			continue
		}
		d.Secrets = append(d.Secrets, name)
	}
	d.Token, err = auth.RemoveAgent(a.Places.State, client)
	return d, err
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

// Connected returns the clients that are connected.
func (a *App) Connected(ctx context.Context) ([]string, error) {
	return connect.Connected(ctx, a.vault())
}

func (a *App) vault() *connect.Vault {
	return connect.NewVault(filepath.Join(a.Places.State, "connect"), a.secrets)
}

// editServers changes mcp.json as a whole.
func (a *App) editServers(edit func(old []byte) ([]byte, map[string]string, error)) (map[string]string, error) {
	file := a.serverFile()
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the servers: %w", err)
	}
	out, renames, err := edit(old)
	if err != nil {
		return nil, fmt.Errorf("edit %s: %w", file, err)
	}
	if err := os.MkdirAll(a.Places.Home, 0o700); err != nil {
		return nil, err
	}
	if err := wholefile.Write(file, out, 0o600); err != nil {
		return nil, fmt.Errorf("write the servers: %w", err)
	}
	return renames, nil
}
