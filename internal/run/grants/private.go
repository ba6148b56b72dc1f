package grants

import (
	"path/filepath"
	"slices"

	"ken/internal/dirs"
)

// PrivatePaths are the folders and files that are private to Ken.
type PrivatePaths struct {
	Places      dirs.Places
	Checkpoints string // of the audit log
	ConfigFile  string // that was named; may be empty
	SocketDir   string // of the daemon, if it lies outside of Places; may be empty
}

// sharesHome reports whether the user's own home lies in Ken's, as where
// KEN_HOME is HOME. Ken's folder cannot be hidden as a whole then: servers work
// in it.
func (p PrivatePaths) sharesHome() bool {
	return p.Places.UserHome != "" && within(p.Places.Home, p.Places.UserHome)
}

// Folders returns the folders that no server may see: what is in them decides
// what servers may do.
func (p PrivatePaths) Folders() []string {
	places := p.Places
	all := []string{places.Home}
	if p.sharesHome() {
		all = nil
		for _, name := range []string{"capabilities", "skills", "cards", "extensions", "commands"} {
			all = append(all, filepath.Join(places.Home, name))
		}
	}
	all = append(all, places.State, places.Cache, places.Logs, places.Audit, p.Checkpoints)
	if p.SocketDir != "" {
		all = append(all, p.SocketDir)
	}
	var out []string
	for _, dir := range all {
		if !slices.ContainsFunc(out, func(of string) bool { return within(of, dir) }) {
			out = append(out, dir)
		}
	}
	return out
}

// Files returns the files that no server may see and that lie in none of Folders.
func (p PrivatePaths) Files() []string {
	if !p.sharesHome() {
		return nil
	}
	var out []string
	for _, name := range []string{
		"ken.yaml", "ken.yml", "ken.json", "mcp.json", "secrets.age", "secrets.key", "secrets.lock", "ken.sock", "AGENTS.md", "SYSTEM_ARCHITECTURE.md", "eval.jsonl",
	} {
		out = append(out, filepath.Join(p.Places.Home, name))
	}
	return out
}

// Closed returns what the file tools neither read nor change, even if it lies in
// the workspace or in another folder that they have: who reads it can be taken
// for the user, and who writes it decides what Ken runs.
func (p PrivatePaths) Closed() []string {
	places := p.Places
	// All of them by themselves: one may lie in a folder that is open.
	own := slices.DeleteFunc(p.Folders(), func(dir string) bool { return slices.Contains(p.Readable(), dir) })
	own = append(own, places.State, places.Cache, places.Logs, places.Audit, p.Checkpoints)
	own = append(own, p.Files()...)
	if file, err := filepath.Abs(p.ConfigFile); p.ConfigFile != "" && err == nil {
		own = append(own, file)
	}
	return own
}

// Readable returns the part of Closed that the file tools may read: what a model
// is shown anyway. They cannot write it, because it has the user's trust.
func (p PrivatePaths) Readable() []string {
	var out []string
	for _, name := range []string{"capabilities", "cards", "context", "skills"} {
		out = append(out, filepath.Join(p.Places.Home, name))
	}
	return out
}

// ServerWork returns where servers work that have no folder: beside what they may
// not see.
func (p PrivatePaths) ServerWork() string {
	if p.sharesHome() {
		return filepath.Join(p.Places.Home, ".ken-servers")
	}
	return p.Places.Home + "-servers"
}
