package app

import (
	"ken/internal/serve/shim"
	"path/filepath"
	"slices"
)

// sharesHome reports whether the user's own home lies in Ken's, as where
// KEN_HOME is HOME. Ken's folder cannot be hidden as a whole then: servers work
// in it.
func (a *App) sharesHome() bool {
	return a.Places.UserHome != "" && within(a.Places.Home, a.Places.UserHome)
}

// ownFolders are those that no server may see: what is in them decides what
// servers may do.
func (a *App) ownFolders() []string {
	p := a.Places
	all := []string{p.Home}
	if a.sharesHome() {
		all = nil
		for _, name := range []string{"capabilities", "skills", "cards", "extensions", "commands"} {
			all = append(all, filepath.Join(p.Home, name))
		}
	}
	all = append(all, p.State, p.Cache, p.Logs, p.Audit, a.checkpoints())
	// Where the name of the home is too long the socket lies elsewhere.
	if place, err := shim.Where(a.getenv, p.Workspace); err == nil && place.Private {
		all = append(all, filepath.Dir(place.Socket))
	}
	var out []string
	for _, dir := range all {
		if !slices.ContainsFunc(out, func(of string) bool { return within(of, dir) }) {
			out = append(out, dir)
		}
	}
	return out
}

// ownFiles are the files of Ken that no server may see and that none of
// ownFolders has in it.
func (a *App) ownFiles() []string {
	if !a.sharesHome() {
		return nil
	}
	var out []string
	for _, name := range []string{
		"ken.yaml", "ken.yml", "ken.json", "mcp.json", "secrets.age", "secrets.key", "secrets.lock", "ken.sock", "AGENTS.md", "SYSTEM_ARCHITECTURE.md",
	} {
		out = append(out, filepath.Join(a.Places.Home, name))
	}
	return out
}

// serverWork is where servers work that have no folder: beside what they may not
// see.
func (a *App) serverWork() string {
	if a.sharesHome() {
		return filepath.Join(a.Places.Home, ".ken-servers")
	}
	return a.Places.Home + "-servers"
}
