// Package profile suggests a tighter sandbox profile for an MCP server, and
// starts the server under it to see whether it works.
package profile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ken/internal/run/mcpgateway"
	"ken/internal/run/sandbox"
)

// A Config says what a [Suggester] works with.
type Config struct {
	KenHome, UserHome string   // a server that may use all of one may use everything
	ConfigFiles       []string // the files of the configuration; a definition in one is YAML

	Gateway  mcpgateway.Config     // how servers are confined, without Servers
	Networks func() []netip.Prefix // private addresses that a confined server may reach
	Getenv   func(string) string
}

// A Suggester suggests sandbox profiles.
type Suggester struct{ cfg Config }

// New returns a Suggester.
func New(cfg Config) *Suggester { return &Suggester{cfg} }

// A Suggestion is what to write into the definition of a server.
type Suggestion struct {
	Line string // empty: the server cannot be confined, or does not start if it is
	Note string // why not, or what to consider
}

// testTime is how long a server may take to start in a test.
const testTime = 30 * time.Second

// Suggest returns a suggestion for each server that runs with the access of the
// user and works. offline has the servers whose tools all say that they need no
// network.
func (s *Suggester) Suggest(ctx context.Context, defs []mcpgateway.Server, states []mcpgateway.Status, offline map[string]bool) map[string]Suggestion {
	out := map[string]Suggestion{}
	var candidates []mcpgateway.Server
	listed := map[string]int{}
	for _, st := range states {
		if st.Err == "" {
			listed[st.Name] = st.Tools
		}
	}
	for _, d := range defs {
		if _, works := listed[d.Name]; !works || d.Disabled || d.Command == "" || d.EffectiveProfile() != mcpgateway.ProfileImported {
			continue
		}
		d, note := s.Tighten(d)
		out[d.Name] = Suggestion{Note: note}
		if d.Profile == mcpgateway.ProfileConfined {
			d.Networks = s.cfg.Networks()
			candidates = append(candidates, d)
		}
	}
	started, err := s.testStart(ctx, candidates)
	for _, d := range candidates {
		n := out[d.Name]
		switch st := started[d.Name]; {
		case err != nil:
			n.Note = "confining it cannot be tried: " + err.Error()
		case st.Err != "" || st.Tools < listed[d.Name]:
			n.Note = "confining it to what its definition names was tried and failed: " + cmp.Or(st.Err, fmt.Sprintf("it lists %d of %d tools", st.Tools, listed[d.Name]))
		default:
			n.Line = s.definitionLine(d)
			n.Note = fmt.Sprintf("Ken tried it, and the server started and listed its %d tools; ", st.Tools) + n.Note
			if len(d.Hosts) == 0 && !offline[d.Name] {
				n.Note += "; it would have no network: add the hosts that it must reach to hosts"
			}
		}
		out[d.Name] = n
	}
	return out
}

// testStart starts servers under their new profiles, beside those that run, and
// returns the status of each. It leaves nothing behind.
func (s *Suggester) testStart(ctx context.Context, list []mcpgateway.Server) (map[string]mcpgateway.Status, error) {
	if len(list) == 0 {
		return nil, nil
	}
	folder := s.cfg.Gateway.Work
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		folder, err = os.MkdirTemp(folder, "trial-")
	}
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	cfg := s.cfg.Gateway
	cfg.Servers, cfg.Work = list, folder
	g, err := mcpgateway.New(cfg)
	if err != nil {
		return nil, err
	}
	defer g.Close()
	var names []string
	for _, d := range list {
		names = append(names, d.Name)
	}
	out := map[string]mcpgateway.Status{}
	for _, st := range g.List(ctx, names...) {
		out[st.Name] = st
	}
	return out, nil
}

// definitionLine returns what to write into a definition, in the format of its
// file.
func (s *Suggester) definitionLine(d mcpgateway.Server) string {
	list := func(paths []string) string {
		text, _ := json.Marshal(append([]string{}, paths...)) // texts cannot fail
		return string(text)
	}
	if slices.Contains(s.cfg.ConfigFiles, d.Origin.Path) {
		return fmt.Sprintf("profile: confined, read: %s, write: %s, hosts: %s", list(d.Read), list(d.Write), list(d.Hosts))
	}
	return fmt.Sprintf(`"x-ken": {"profile": "confined", "read": %s, "write": %s, "hosts": %s}`, list(d.Read), list(d.Write), list(d.Hosts))
}

// launchers returns programs that fetch what they run, and how to install it
// instead.
func launchers() map[string]string {
	const name = ", then write the program as command"
	npm := "npm install --global %s" + name
	return map[string]string{
		"npx": npm, "bunx": npm, "pnpx": npm, "pnpm": npm, "yarn": npm, "npm": npm,
		"uvx": "uv tool install %s" + name, "uv": "uv tool install %s" + name, "pipx": "pipx install %s" + name,
		"docker": "", "podman": "", "nerdctl": "",
	}
}

// launched returns what to do about a server that a launcher starts, or "".
func launched(d mcpgateway.Server) string {
	program := strings.TrimSuffix(filepath.Base(d.Command), ".exe")
	how, is := launchers()[program]
	switch {
	case !is:
		return ""
	case how == "":
		return program + " starts it by a daemon of its own, outside of what Ken holds: limit it by the arguments of " + program
	}
	pkg := "PACKAGE"
	for i, arg := range d.Args {
		flag := i > 0 && (d.Args[i-1] == "-p" || d.Args[i-1] == "--package" || d.Args[i-1] == "--from")
		if strings.HasPrefix(arg, "-") || !flag && slices.Contains([]string{"exec", "dlx", "x", "run", "tool"}, arg) {
			continue
		}
		pkg = arg
		break
	}
	return program + " fetches it, and needs the network for that; to hold it closer install it once: " + fmt.Sprintf(how, pkg)
}

// Tighten returns a definition that is confined to what d names, or d itself if
// there is none. note says why not, or what to consider.
func (s *Suggester) Tighten(d mcpgateway.Server) (out mcpgateway.Server, note string) {
	if note := launched(d); note != "" {
		return d, note
	}
	n := &requirements{cfg: &s.cfg, env: map[string]string{}}
	for name, value := range d.Env {
		n.env[name] = n.expand(value)
	}
	n.search = cmp.Or(n.env["PATH"], s.cfg.Gateway.Path)
	n.program(n.find(d.Command), 0)
	for _, arg := range d.Args {
		n.argument(n.expand(arg), d.Cwd)
	}
	for _, name := range slices.Sorted(maps.Keys(n.env)) {
		if name != "PATH" {
			n.variable(name, n.env[name])
		}
	}
	if len(n.against) > 0 {
		return d, strings.Join(n.against, "; ")
	}
	d.Profile, d.Hosts = mcpgateway.ProfileConfined, n.hosts
	d.StartTimeout = min(cmp.Or(d.StartTimeout, testTime), testTime)
	if d.Cwd == s.cfg.UserHome {
		d.Cwd = "" // where it was put because nothing else was said
	}
	d.Write = outermost(n.write, nil)
	d.Read = outermost(n.read, append(sandbox.SystemPaths(), d.Write...))
	note = "it could write only to " + strings.Join(append(slices.Clone(d.Write), "its own folder under "+s.cfg.Gateway.Work), ", ")
	if len(d.Hosts) > 0 {
		note += "; it would reach its hosts through HTTPS_PROXY, so it must use that variable"
	}
	return d, note
}
