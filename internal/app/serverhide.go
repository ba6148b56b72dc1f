package app

import (
	"path/filepath"
	"slices"

	"ken/internal/secret"
	"ken/internal/serve/shim"
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
		"ken.yaml", "ken.yml", "ken.json", "mcp.json", "secrets.age", "secrets.key", "secrets.lock", "ken.sock", "AGENTS.md", "SYSTEM_ARCHITECTURE.md", "eval.jsonl",
	} {
		out = append(out, filepath.Join(a.Places.Home, name))
	}
	return out
}

// closedToTools is what the file tools neither read nor change, where it lies in
// the workspace or in another folder that they have: who reads it can be taken
// for the user, and who writes it decides what Ken runs.
func (a *App) closedToTools() []string {
	p := a.Places
	// All of them by themselves: one may lie in a folder that is open.
	own := slices.DeleteFunc(a.ownFolders(), func(dir string) bool { return slices.Contains(a.openToTools(), dir) })
	own = append(own, p.State, p.Cache, p.Logs, p.Audit, a.checkpoints())
	own = append(own, a.ownFiles()...)
	if file, err := filepath.Abs(a.configFile); a.configFile != "" && err == nil {
		own = append(own, file)
	}
	return own
}

// openToTools is what they may read of it: what a model is told of anyway. None
// of it can be written, since it counts as the user's own word.
func (a *App) openToTools() []string {
	var out []string
	for _, name := range []string{"capabilities", "cards", "context", "skills"} {
		out = append(out, filepath.Join(a.Places.Home, name))
	}
	return out
}

// Hold keeps tokens of ken serve out of results, sessions, the audit log and the
// arguments of calls from now on.
func (a *App) Hold(values []secret.Value) {
	a.redactor.HoldNamed(func(yield func(name, value string) bool) {
		for _, v := range values {
			if !yield("token of ken serve", v.Reveal()) {
				return
			}
		}
	})
}

// serverWork is where servers work that have no folder: beside what they may not
// see.
func (a *App) serverWork() string {
	if a.sharesHome() {
		return filepath.Join(a.Places.Home, ".ken-servers")
	}
	return a.Places.Home + "-servers"
}
