package mcpgateway

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// passed are the variables that every stdio server gets, where they are set, and
// homely those that only one gets which may use what they point to.
var (
	passed = []string{"LANG", "TERM", "USER", "LOGNAME", "SHELL"}
	homely = []string{
		"HOME", "TMPDIR",
		"XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
	}
)

// placeholder is ${NAME}, ${env:NAME}, ${secret:NAME}, and each with :-default.
var placeholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{((?:secret:|env:)?[A-Za-z_][A-Za-z0-9_.-]*?)(:-[^}]*)?\}`)
})

// An expander puts values in the place of names. It remembers which were
// missing, and what must not be shown.
type expander struct {
	get     func(string) (string, bool)
	foreign bool // sealed secrets are not for it
	missing []string
	secrets []string
}

func (x *expander) expand(text string) string {
	return placeholder().ReplaceAllStringFunc(text, func(found string) string {
		m := placeholder().FindStringSubmatch(found)
		name := strings.TrimPrefix(m[1], "env:")
		if v, ok := x.get(name); ok {
			if strings.HasPrefix(name, "secret:") || secretName().MatchString(name) {
				x.keep(v)
			}
			return v
		}
		if m[2] != "" {
			return m[2][len(":-"):]
		}
		x.missing = append(x.missing, name)
		return ""
	})
}

// secretName reports variables whose values must stay hidden.
var secretName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)token|secret|passw|credential|auth|api_?key|access_?key|private|cookie|_key$|_pat$|_pwd$|dsn`)
})

// keep notes a value that must not be shown. Short ones are ordinary words:
// taking them out of texts would garble those and hide nothing.
func (x *expander) keep(value string) {
	if len(value) >= 6 {
		x.secrets = append(x.secrets, value)
	}
}

// err names what was missing, once each.
func (x *expander) err() error {
	if len(x.missing) == 0 {
		return nil
	}
	return &unset{slices.Compact(slices.Sorted(slices.Values(x.missing))), x.foreign}
}

// An unset error is that of a definition with names in it that stand for
// nothing.
type unset struct {
	names   []string // at least one
	foreign bool     // a sealed secret would not help
}

func (u *unset) Error() string {
	var all []string
	for _, name := range u.names {
		switch secret, sealed := strings.CutPrefix(name, "secret:"); {
		case sealed && u.foreign:
			name = "secret " + secret + " (which a file of mcp.import cannot have)"
		case sealed:
			name = "secret " + secret + " (ken secret set " + secret + ")"
		case ofWindow(name):
			name += " (another one in each window, and the server serves all of them)"
		}
		all = append(all, name)
	}
	return "the definition refers to values that are not set: " + strings.Join(all, ", ")
}

// fix says what a person can do: for the first name, the rest is like it.
func (u *unset) fix() string {
	name, sealed := strings.CutPrefix(u.names[0], "secret:")
	const export = "export it and end the daemon with ken mcp --stop, so that the next window starts one that has it"
	switch {
	case sealed && u.foreign:
		return "define the server in ken.yaml or mcp.json of Ken's folder, which may use sealed secrets"
	case sealed:
		return "ken secret set " + name
	case ofWindow(name):
		return "write the folder itself into the definition, or give the server a project"
	case u.foreign:
		return export + ", or define the server in ken.yaml or mcp.json of Ken's folder, which may use sealed secrets"
	}
	return "ken secret set " + name + ", or " + export
}

// ofWindow reports whether a name stands for the folder that one client works
// in. What the environment of the daemon has under it is where its first client
// happened to be.
func ofWindow(name string) bool {
	switch name {
	case "PWD", "OLDPWD", "INIT_CWD", "CLAUDE_PROJECT_DIR", "workspaceFolder", "workspaceRoot":
		return true
	}
	return false
}

// expander makes the one for a definition.
func (g *Gateway) expander(s *Server) *expander {
	return &expander{foreign: s.Foreign, get: func(name string) (string, bool) {
		switch {
		case ofWindow(name):
			return s.Folder, s.Folder != ""
		case !s.Foreign:
			return g.cfg.Getenv(name)
		case strings.HasPrefix(name, "secret:"):
			return "", false
		}
		return g.cfg.Getenv("env:" + name)
	}}
}

// Unset returns, by server, what definitions refer to that is not set, in words
// for people. It starts nothing. Servers that are switched off, or wait for a
// person, are not in it.
func (g *Gateway) Unset() map[string]string {
	out := map[string]string{}
	for _, s := range g.all() {
		if s.def.Disabled || s.broken != nil {
			continue
		}
		x := g.expander(&s.def)
		for _, text := range slices.Concat([]string{s.def.Cwd, s.def.URL}, s.def.Args, slices.Collect(maps.Values(s.def.Env)), slices.Collect(maps.Values(s.def.Headers))) {
			if strings.Contains(text, "${") {
				x.expand(text)
			}
		}
		if err := x.err(); err != nil {
			out[s.def.Name] = err.Error() + "; " + err.(*unset).fix()
		}
	}
	return out
}

// secrets returns the names that the definition of a server has values for: the
// server is given those.
func (s *Server) secrets() []string {
	var out []string
	for _, text := range slices.Concat([]string{s.URL}, s.Args, slices.Collect(maps.Values(s.Env)), slices.Collect(maps.Values(s.Headers))) {
		for _, m := range placeholder().FindAllStringSubmatch(text, -1) {
			name := strings.TrimPrefix(strings.TrimPrefix(m[1], "env:"), "secret:")
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// hide takes the values that were put in out of a text.
func (x *expander) hide(text string) string {
	for _, s := range x.secrets {
		text = strings.ReplaceAll(text, s, "[hidden]")
	}
	return text
}

// A command is a stdio server made out.
type command struct {
	path string
	argv []string
	env  []string
	dir  string // absolute; empty: none given
}

// command makes out what to start.
func (x *expander) command(s *Server, search string) (command, error) {
	var c command
	for _, arg := range s.Args {
		c.argv = append(c.argv, x.expand(arg))
	}
	own := make(map[string]string, len(s.Env))
	for name, value := range s.Env {
		own[name] = x.expand(value)
		if secretName().MatchString(name) {
			x.keep(own[name])
		}
	}
	c.dir = x.expand(s.Cwd)
	if err := x.err(); err != nil {
		return c, err
	}
	if p, ok := own["PATH"]; ok {
		search = p // it ran with that one before
	}
	c.env = x.environment(s, own, search)
	for name, value := range own {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return c, fmt.Errorf("variable %q cannot be passed on", name)
		}
	}
	if c.dir != "" && (!filepath.IsAbs(c.dir) || filepath.Clean(c.dir) == "/") {
		return c, errors.New("cwd must be the absolute path of a folder below /")
	}
	found, err := findProgram(s.Command, search)
	if err != nil {
		return c, err
	}
	c.path, c.argv = found, append([]string{s.Command}, c.argv...)
	return c, nil
}

// environment is all that a server gets: what every program needs, and what its
// definition names.
func (x *expander) environment(s *Server, own map[string]string, search string) []string {
	all := map[string]string{"PATH": search}
	names := passed
	if s.Profile == ProfileImported {
		names = slices.Concat(passed, homely)
	}
	for _, name := range names {
		if v, ok := x.get(name); ok && !strings.ContainsRune(v, 0) {
			all[name] = v
		}
	}
	maps.Copy(all, own)
	env := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env
}

// findProgram looks for a program where the user's shell would, but never in a
// folder that is named relative to another.
func findProgram(name, search string) (string, error) {
	if filepath.IsAbs(name) {
		if err := executable(filepath.Clean(name)); err != nil {
			return "", &badProgram{err.Error(), err}
		}
		return filepath.Clean(name), nil
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return "", errors.New("command is a relative path; use an absolute path or a plain name")
	}
	for _, dir := range filepath.SplitList(search) {
		if p := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(p) == nil {
			return p, nil
		}
	}
	return "", &badProgram{"program " + name + " is not installed", fs.ErrNotExist}
}

// badProgram says that the program of a command cannot be started, and why.
type badProgram struct {
	text string
	why  error
}

func (e *badProgram) Error() string { return e.text }
func (e *badProgram) Unwrap() error { return e.why }

func executable(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("program %s: %w", filepath.Base(name), errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("program %s: not an executable file", filepath.Base(name))
	}
	return nil
}

// headers makes out what is sent with each request.
func (x *expander) headers(s *Server) http.Header {
	h := http.Header{}
	for name, value := range s.Headers {
		value = x.expand(value)
		x.keep(value)
		h.Set(name, value)
	}
	return h
}
