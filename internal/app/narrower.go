package app

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ken/internal/run/mcpgateway"
	"ken/internal/run/sandbox"
	"ken/internal/serve/doctor"
)

// trialTime is how long a server may take to start as it would be held.
const trialTime = 30 * time.Second

// closer works out for each server that runs as before how it could be held
// closer, and tries that.
func (a *App) closer(ctx context.Context, defs []mcpgateway.Server, states []mcpgateway.Status, tools map[string]offered) map[string]doctor.Narrower {
	out := map[string]doctor.Narrower{}
	var trial []mcpgateway.Server
	listed := map[string]int{}
	for _, st := range states {
		if st.Err == "" {
			listed[st.Name] = st.Tools
		}
	}
	for _, d := range defs {
		if _, works := listed[d.Name]; !works || d.Disabled || d.Command == "" || profileOf(d) != mcpgateway.ProfileImported {
			continue
		}
		d, note := a.narrower(d)
		out[d.Name] = doctor.Narrower{Note: note}
		if d.Profile == mcpgateway.ProfileConfined {
			d.Networks = a.effective().Sandbox.Prefixes()
			trial = append(trial, d)
		}
	}
	tried, err := a.tryOut(ctx, trial)
	for _, d := range trial {
		n := out[d.Name]
		switch st := tried[d.Name]; {
		case err != nil:
			n.Note = "how it could be held closer cannot be tried: " + err.Error()
		case st.Err != "" || st.Tools < listed[d.Name]:
			n.Note = "with no more than what its definition names it does not start: " + cmp.Or(st.Err, fmt.Sprintf("it lists %d of %d tools", st.Tools, listed[d.Name]))
		default:
			n.Line = a.definitionLine(d)
			n.Note = fmt.Sprintf("tried: it starts, and lists its %d tools; ", st.Tools) + n.Note
			if len(d.Hosts) == 0 && !tools[d.Name].closed {
				n.Note += "; it has no network then: add to hosts what it must reach"
			}
		}
		out[d.Name] = n
	}
	return out
}

// tryOut starts servers as they would be held, beside those that run, and says
// how each stood. Nothing of it is kept.
func (a *App) tryOut(ctx context.Context, list []mcpgateway.Server) (map[string]mcpgateway.Status, error) {
	if len(list) == 0 {
		return nil, nil
	}
	folder := a.serverWork()
	err := os.MkdirAll(folder, 0o700)
	if err == nil {
		folder, err = os.MkdirTemp(folder, "trial-")
	}
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	cfg := a.gatewayConfig()
	cfg.Servers, cfg.Getenv, cfg.Work, cfg.Log = list, a.Servers.Value, folder, a.log
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

// definitionLine is what to write into a definition, in the form of its file.
func (a *App) definitionLine(d mcpgateway.Server) string {
	list := func(paths []string) string {
		text, _ := json.Marshal(append([]string{}, paths...)) // texts cannot fail
		return string(text)
	}
	if slices.Contains(a.Settings.Files(), d.Origin.Path) {
		return fmt.Sprintf("profile: confined, read: %s, write: %s, hosts: %s", list(d.Read), list(d.Write), list(d.Hosts))
	}
	return fmt.Sprintf(`"x-ken": {"profile": "confined", "read": %s, "write": %s, "hosts": %s}`, list(d.Read), list(d.Write), list(d.Hosts))
}

// launchers are programs that fetch what they run, and how to have it without
// them.
func launchers() map[string]string {
	const name = ", then write the program as command"
	npm := "npm install --global %s" + name
	return map[string]string{
		"npx": npm, "bunx": npm, "pnpx": npm, "pnpm": npm, "yarn": npm, "npm": npm,
		"uvx": "uv tool install %s" + name, "uv": "uv tool install %s" + name, "pipx": "pipx install %s" + name,
		"docker": "", "podman": "", "nerdctl": "",
	}
}

// launched says what to do about a server that a launcher starts, or "".
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

// narrower derives from a definition one that is confined to what it names. Its
// profile stays as it was where none can be; note says why, or what to mind.
func (a *App) narrower(d mcpgateway.Server) (out mcpgateway.Server, note string) {
	if note := launched(d); note != "" {
		return d, note
	}
	n := &narrowing{app: a, env: map[string]string{}}
	for name, value := range d.Env {
		n.env[name] = n.expand(value)
	}
	n.search = cmp.Or(n.env["PATH"], a.programPath())
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
	d.StartTimeout = min(cmp.Or(d.StartTimeout, trialTime), trialTime)
	if d.Cwd == a.Places.UserHome {
		d.Cwd = "" // where it was put because nothing else was said
	}
	d.Write = outermost(n.write, nil)
	d.Read = outermost(n.read, append(sandbox.SystemPaths(), d.Write...))
	note = "it can then write to " + strings.Join(append(slices.Clone(d.Write), "its own folder below "+a.serverWork()), ", ") + " alone"
	if len(d.Hosts) > 0 {
		note += "; it reaches its hosts by HTTPS_PROXY, which it must follow"
	}
	return d, note
}
