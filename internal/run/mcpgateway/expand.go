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
var placeholder = regexp.MustCompile(`\$\{((?:secret:|env:)?[A-Za-z_][A-Za-z0-9_.-]*?)(:-[^}]*)?\}`)

// An expander puts values in the place of names. It remembers which were
// missing, and what must not be shown.
type expander struct {
	get     func(string) (string, bool)
	missing []string
	secrets []string
}

func (x *expander) expand(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(found string) string {
		m := placeholder.FindStringSubmatch(found)
		name := strings.TrimPrefix(m[1], "env:")
		if v, ok := x.get(name); ok {
			if strings.HasPrefix(name, "secret:") || secretName.MatchString(name) {
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

// secretName tells variables whose values nobody should see.
var secretName = regexp.MustCompile(`(?i)token|secret|passw|credential|auth|api_?key|access_?key|private|cookie|_key$|_pat$|_pwd$|dsn`)

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
	var names []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(x.missing))) {
		if secret, ok := strings.CutPrefix(name, "secret:"); ok {
			name = "secret " + secret + " (ken secret set " + secret + ")"
		}
		names = append(names, name)
	}
	return fmt.Errorf("it refers to what is not set: %s", strings.Join(names, ", "))
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
		if secretName.MatchString(name) {
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
			return c, fmt.Errorf("its variable %q cannot be passed on", name)
		}
	}
	if c.dir != "" && (!filepath.IsAbs(c.dir) || filepath.Clean(c.dir) == "/") {
		return c, errors.New("its cwd is not the absolute path of a folder below /")
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
		return filepath.Clean(name), executable(filepath.Clean(name))
	}
	if strings.ContainsRune(name, filepath.Separator) {
		return "", errors.New("its command is a relative path; write it from /, or as a plain name")
	}
	for _, dir := range filepath.SplitList(search) {
		if p := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(p) == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("no program %s is installed: %w", name, fs.ErrNotExist)
}

func executable(name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("program %s: %w", filepath.Base(name), errors.Unwrap(err))
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("program %s: it is no executable file", filepath.Base(name))
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
