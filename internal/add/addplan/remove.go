package addplan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/add/addmcp"
)

// A Removed is what was removed, and what stays.
type Removed struct {
	Name    string
	Kind    string // api, server or package
	Folder  string
	File    string   // of a server: the ken.yaml that had it
	Work    string   // of a package: the folder that its programs wrote to, which stays
	Secrets []string // that stay, and that nothing else needs

	// Of a server: whether its login was removed, with the token and the client
	// registration; or the definition of the same name that still uses it.
	LoggedOut bool
	LoginUsed string

	Shared []Shared // secrets that stay because something else needs them
}

// A Shared is a secret that stays, and what needs it.
type Shared struct {
	Secret string `json:"secret"`
	By     string `json:"by"` // mcp:NAME, or the id of a capability
}

// Remove removes what was added under a name.
func (a App) Remove(ctx context.Context, name string) (Removed, error) {
	if folder, ok := add.FindAPI(a.Places, name); ok {
		return a.removeAPI(ctx, name, folder)
	}
	if added, ok := addmcp.Find(a.Servers.Config, name); ok {
		return a.removeServer(ctx, added)
	}
	return a.removePackage(ctx, name)
}

func (a App) removeAPI(ctx context.Context, name, folder string) (Removed, error) {
	r := Removed{Name: name, Kind: "api", Folder: folder, Secrets: a.secretsBelow(folder)}
	if err := add.RemoveAPI(a.Places, name); err != nil {
		return r, err
	}
	return r, a.recordRemoved(ctx, "api", "API", name, map[string]string{"folder": folder})
}

func (a App) recordRemoved(ctx context.Context, kind, word, name string, notes map[string]string) error {
	if err := a.Record(ctx, "remove", kind, name, "", notes); err != nil {
		return fmt.Errorf("remove %s %s: removed, but the audit log could not be written: %w", word, name, err)
	}
	return nil
}

func (a App) removeServer(ctx context.Context, added addmcp.Added) (Removed, error) {
	r := Removed{Name: added.Name, Kind: "server", File: a.Servers.File, Folder: added.Folder}
	r.Secrets, r.Shared = a.secretsOfServer(added.Name)
	if err := a.Servers.Forget(a.Servers.File, added.Name); err != nil {
		return r, err
	}
	if err := added.Forget(a.Servers.Config); err != nil {
		return r, err
	}
	if err := a.Servers.Unpin(ctx, added.Name, a.Servers.File); err != nil {
		return r, err
	}
	notes := map[string]string{"file": a.Servers.File}
	var err error
	r.LoggedOut, r.LoginUsed, err = a.Servers.Logout(added.Name)
	switch {
	case err != nil:
		notes["login"] = "not removed"
		err = fmt.Errorf("remove MCP server %s: removed, but its login could not be: %w", added.Name, err)
	case r.LoggedOut:
		notes["login"] = "removed"
	}
	return r, errors.Join(err, a.recordRemoved(ctx, "mcp", "MCP server", added.Name, notes))
}

// secretsOfServer returns the secrets that are set and that a server refers to:
// those that nothing else needs, and those that something else does.
func (a App) secretsOfServer(name string) (own []string, shared []Shared) {
	servers := a.Servers.Secrets()
	for _, s := range servers[name] {
		if !a.HasSecret(s) {
			continue
		}
		by := a.needs(s, name, servers)
		if by == "" {
			own = append(own, s)
		} else {
			shared = append(shared, Shared{s, by})
		}
	}
	return own, shared
}

// needs returns what needs a secret besides a server, or "".
func (a App) needs(name, besides string, servers map[string][]string) string {
	for _, other := range slices.Sorted(maps.Keys(servers)) {
		if other != besides && slices.Contains(servers[other], name) {
			return "mcp:" + other
		}
	}
	for e := range a.Catalog.Snapshot().All() {
		if slices.Contains(e.RequiredSecrets, name) && !strings.HasPrefix(string(e.ID), "mcp:"+besides+"/") {
			return string(e.ID)
		}
	}
	return ""
}

func (a App) removePackage(ctx context.Context, id string) (Removed, error) {
	folder, ok := add.FindPackage(a.Places, id)
	if !ok {
		return Removed{}, add.NotAdded(id)
	}
	r := Removed{Name: id, Kind: "package", Folder: folder, Secrets: a.secretsBelow(folder)}
	if _, err := a.Extensions.Disable(ctx, a.By, id, folder, "removed with ken remove"); err != nil && capability.KindOf(err) != capability.NotFound {
		return r, err
	}
	var err error
	if r.Work, err = add.RemovePackage(a.Places, id); err != nil {
		return r, err
	}
	return r, a.recordRemoved(ctx, "extension", "package", id, map[string]string{"folder": folder})
}
