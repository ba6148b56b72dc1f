// Package dirs says which directories Ken uses: its own, the workspace's, and
// those that capabilities are read from.
package dirs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
)

// Places are the directories that Ken uses. They are computed from names
// alone: nothing is read or made.
type Places struct {
	Home  string // the user's ken.yaml and capabilities
	State string // what Ken remembers
	Cache string // what Ken can make again
	Logs  string // what Ken tells people

	Audit       string // the trail of calls
	Checkpoints string // its signed heads, apart from it

	Workspace string // the directory Ken was started in
	Project   string // its .ken

	// UserHome is the user's home directory, empty when there is none.
	UserHome string

	named       []string // by KEN_CAPABILITY_DIRS
	namedCompat []string // by other programs' variables

	// Tools holds the variables about tools that are set, by name; see
	// [ToolVariables].
	Tools map[string]string
}

// New computes the places from the environment and the working
// directory, which must be absolute. It looks at
//
//   - KEN_HOME: moves everything of the user's;
//   - XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_CACHE_HOME: each moves its part to
//     a folder ken below it, unless KEN_HOME is set;
//   - KEN_CAPABILITY_DIRS and WUNDERLAND_CAPABILITY_DIRS: more directories;
//   - those of [ToolVariables], which the settings are read with;
//   - HOME.
//
// It fails where there is neither a home directory nor KEN_HOME.
func New(getenv func(string) string, cwd string) (Places, error) {
	if !filepath.IsAbs(cwd) {
		return Places{}, errors.New("find Ken's places: the working directory has no absolute name; change to another directory")
	}
	p := Places{Workspace: filepath.Clean(cwd)}
	p.Project = filepath.Join(p.Workspace, ".ken")
	for _, name := range []string{"HOME", "USERPROFILE"} {
		if home := getenv(name); p.UserHome == "" && filepath.IsAbs(home) {
			p.UserHome = filepath.Clean(home)
		}
	}
	// The specification has relative XDG directories ignored.
	under := func(variable, otherwise string) string {
		if dir := getenv(variable); filepath.IsAbs(dir) {
			return filepath.Join(dir, "ken")
		}
		return otherwise
	}
	dotKen := ""
	if p.UserHome != "" {
		dotKen = filepath.Join(p.UserHome, ".ken")
	}
	if home := getenv("KEN_HOME"); home != "" {
		p.Home = p.absolute(home)
		p.State, p.Cache, p.Logs = filepath.Join(p.Home, "state"), filepath.Join(p.Home, "cache"), filepath.Join(p.Home, "logs")
	} else {
		if p.Home = under("XDG_CONFIG_HOME", dotKen); p.Home == "" {
			return Places{}, errors.New("find Ken's places: there is no home directory; set HOME or KEN_HOME")
		}
		if dotKen == "" {
			dotKen = p.Home
		}
		p.State = under("XDG_STATE_HOME", filepath.Join(dotKen, "state"))
		p.Cache = under("XDG_CACHE_HOME", filepath.Join(dotKen, "cache"))
		p.Logs = filepath.Join(under("XDG_STATE_HOME", dotKen), "logs")
	}
	keep := filepath.Dir(p.Logs)
	p.Audit, p.Checkpoints = filepath.Join(keep, "audit"), filepath.Join(keep, "audit-checkpoints")
	p.named = p.list(getenv("KEN_CAPABILITY_DIRS"))
	p.namedCompat = p.list(getenv("WUNDERLAND_CAPABILITY_DIRS"))
	for _, name := range ToolVariables() {
		if value := getenv(name); value != "" {
			if p.Tools == nil {
				p.Tools = map[string]string{}
			}
			p.Tools[name] = value
		}
	}
	return p, nil
}

// ToolVariables are the environment's words about tools.
func ToolVariables() []string {
	return []string{
		"TOOLS_ENABLED", "TOOLS_MODE", "TOOLS_ALLOWED",
		"SHELL_TOOL_ENABLED", "SHELL_TOOL_MODE", "SHELL_TOOL_ALLOWED_PREFIXES", "SHELL_TOOL_TIMEOUT_MS", "SHELL_TOOL_MAX_OUTPUT_CHARS",
	}
}

// MovedHome returns Home if KEN_HOME moved it, and "" if Ken finds the same
// places without that variable. getenv is the environment that p is from.
func (p Places) MovedHome(getenv func(string) string) string {
	if getenv("KEN_HOME") == "" {
		return ""
	}
	usual, err := New(func(name string) string {
		if name == "KEN_HOME" {
			return ""
		}
		return getenv(name)
	}, p.Workspace)
	if err == nil && usual.Home == p.Home && usual.State == p.State && usual.Cache == p.Cache {
		return ""
	}
	return p.Home
}

// Here returns the places of this process.
func Here() (Places, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return Places{}, errors.New("find Ken's places: the working directory is gone; change to another directory")
	}
	return New(os.Getenv, cwd)
}

func (p Places) absolute(name string) string { return Absolute(p.Workspace, p.UserHome, name) }

// Absolute returns the path that a name means from a directory, with ~ for the
// home directory. An empty home leaves ~ as it is.
func Absolute(dir, home, name string) string {
	if home != "" && (name == "~" || strings.HasPrefix(name, "~/")) {
		return filepath.Join(home, name[1:])
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// Within reports whether a path is a directory or lies below it, by name.
func Within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

func (p Places) list(variable string) []string {
	var out []string
	for _, dir := range filepath.SplitList(variable) {
		if dir = strings.TrimSpace(dir); dir != "" {
			out = append(out, p.absolute(dir))
		}
	}
	return out
}

// A Layer ranks where a capability came from: of two with one id, the one of
// the higher layer counts.
type Layer uint8

const (
	LayerBuiltin   Layer = iota // part of the program
	LayerUser                   // in the user's home
	LayerWorkspace              // in the project
	LayerEnv                    // named by an environment variable
)

func (l Layer) String() string {
	return [...]string{"builtin", "user", "workspace", "env"}[min(l, LayerEnv)]
}

// A Place is a directory, or a single file, that capabilities are read from.
type Place struct {
	Path  string
	Trust capability.Trust
	Layer Layer

	// Why says in words for people why it is read.
	Why string

	// Optional: no problem when it is missing.
	Optional bool
}

// Catalog lists what capabilities are read from, the highest layer first and
// no path twice: within a layer, an earlier place counts before a later one.
// compat adds the directories of other programs (catalog.compatibilityPaths).
//
// What lies in a directory that the environment names is read as part of that
// one. Where the project is the user's own home, its directories are the
// user's.
func (p Places) Catalog(compat bool) []Place {
	named := p.envPlaces(compat)
	user := p.userPlaces(compat)
	out := slices.Clone(named)
	for _, place := range p.projectPlaces(compat) {
		if !listsPath(user, place.Path) && !covers(named, place.Path) {
			out = append(out, place)
		}
	}
	for _, place := range user {
		if !covers(named, place.Path) {
			out = append(out, place)
		}
	}
	return out
}

func listsPath(places []Place, path string) bool {
	return slices.ContainsFunc(places, func(p Place) bool { return p.Path == path })
}

func covers(places []Place, path string) bool {
	return slices.ContainsFunc(places, func(p Place) bool { return Within(p.Path, path) })
}

func (p Places) envPlaces(compat bool) []Place {
	var out []Place
	add := func(dirs []string, variable string) {
		for _, dir := range dirs {
			if !listsPath(out, dir) {
				out = append(out, Place{Path: dir, Trust: capability.TrustUser, Layer: LayerEnv, Why: "named by " + variable})
			}
		}
	}
	add(p.named, "KEN_CAPABILITY_DIRS")
	if compat {
		add(p.namedCompat, "WUNDERLAND_CAPABILITY_DIRS")
	}
	return out
}

// ownParts are what Ken reads of its own directories, not of all that lies
// there: state and extensions' work are no capabilities.
func ownParts() []string {
	return []string{"capabilities", "skills", "cards", "extensions", "commands", "AGENTS.md", "SYSTEM_ARCHITECTURE.md"}
}

// otherPrograms are directories that other programs keep capabilities in,
// below the home directory and below a project alike.
func otherPrograms() []string {
	return []string{
		".wunderland/capabilities", ".agentos/capabilities", ".agentos/extensions", ".openclaw/skills",
		".claude/skills", ".claude/commands", ".agents/skills",
	}
}

func (p Places) userPlaces(compat bool) []Place {
	var out []Place
	add := func(path, why string) {
		out = append(out, Place{Path: path, Trust: capability.TrustUser, Layer: LayerUser, Why: why, Optional: true})
	}
	for _, part := range ownParts() {
		add(filepath.Join(p.Home, part), "your "+part)
	}
	if compat && p.UserHome != "" {
		for _, dir := range otherPrograms() {
			add(filepath.Join(p.UserHome, filepath.FromSlash(dir)), "your "+dir+", read for compatibility")
		}
	}
	return out
}

func (p Places) projectPlaces(compat bool) []Place {
	var out []Place
	add := func(path, why string) {
		out = append(out, Place{Path: path, Trust: capability.TrustWorkspace, Layer: LayerWorkspace, Why: why, Optional: true})
	}
	for _, part := range ownParts() {
		add(filepath.Join(p.Project, part), "this project's "+part)
	}
	if compat {
		for _, dir := range append(otherPrograms(), "docs/capabilities") {
			add(filepath.Join(p.Workspace, filepath.FromSlash(dir)), "this project's "+dir+", read for compatibility")
		}
	}
	return out
}
