// Package addplan works out what adding an MCP server, an API or an extension
// package would do, and does it. ken add, ken remove and the page use it.
//
// Nothing here asks a person. A surface shows a plan, asks, and then calls Add.
package addplan

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/add/addmcp"
	"ken/internal/govern/extensions"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
)

// An App is the program, as far as adding needs it. All fields are required.
type App struct {
	Places     add.Places
	Tools      add.Tools
	By         capability.Principal // who adds
	Catalog    *catalog.Catalog
	Extensions *extensions.Set
	Networks   []netip.Prefix // that calls may reach though they are private
	HasSecret  func(name string) bool
	Secret     func(name string) (string, bool)
	Servers    Servers

	// Standing returns what the rules say of a model's call of a capability that
	// reaches these hosts.
	Standing func(c *capability.Capability, hosts []string) policy.Decision

	// Record records in the audit log that something was added or removed.
	Record func(ctx context.Context, action, kind, name, digest string, notes map[string]string) error

	// Enable switches on a package that was added.
	Enable func(context.Context, *add.Package) (extensions.Extension, error)
}

// A UsageError is a request that contradicts itself.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// IsPackage reports whether a text names a package: a repository, or a file or
// folder that is there.
func IsPackage(given string) bool {
	if rest, ok := strings.CutPrefix(given, "git:"); ok {
		return rest != ""
	}
	_, err := os.Stat(given)
	return given != "" && err == nil
}

// IsDocument reports whether a file is a document by its name, and no package.
func IsDocument(given string) bool {
	switch strings.ToLower(filepath.Ext(given)) {
	case ".json", ".yaml", ".yml":
		info, err := os.Stat(given)
		return err == nil && info.Mode().IsRegular()
	}
	return false
}

// IsMissing reports whether a text is the path of nothing that is there.
func IsMissing(given string) bool {
	if !isPath(given) {
		return false
	}
	_, err := os.Stat(given)
	return errors.Is(err, fs.ErrNotExist)
}

// isPath reports whether a text is a path by how it begins.
func isPath(given string) bool {
	for _, begin := range []string{"./", "../", "~"} {
		if strings.HasPrefix(given, begin) {
			return true
		}
	}
	return filepath.IsAbs(given)
}

// IsServer reports whether a text names an MCP server. A path does if an entry of
// a registry is there.
func IsServer(given string) bool {
	if isPath(given) && !IsDocument(given) {
		return false
	}
	if !IsDocument(given) {
		return addmcp.Names(given)
	}
	data, err := os.ReadFile(given)
	return err == nil && strings.EqualFold(filepath.Ext(given), ".json") && addmcp.LooksLikeEntry(data)
}

// List returns what was added.
func (a App) List() ([]add.Added, error) {
	list, err := add.List(a.Places)
	if err != nil {
		return nil, err
	}
	servers, err := addmcp.List(a.Servers.Config)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		list = append(list, add.Added{Kind: "server", Name: s.Name, From: cmp.Or(s.Package, s.From), Folder: s.Folder})
	}
	return list, nil
}

// secretsBelow returns the secrets that are set and that only the capabilities of
// a folder need.
func (a App) secretsBelow(folder string) []string {
	var out []string
	others := map[string]bool{}
	for e := range a.Catalog.Snapshot().All() {
		rel, err := filepath.Rel(folder, e.Origin.Path)
		inside := err == nil && filepath.IsLocal(rel)
		for _, s := range e.RequiredSecrets {
			switch {
			case !inside:
				others[s] = true
			case a.HasSecret(s) && !slices.Contains(out, s):
				out = append(out, s)
			}
		}
	}
	return slices.DeleteFunc(out, func(s string) bool { return others[s] })
}

// listOf returns a list that is empty, and not null, as JSON.
func listOf[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
