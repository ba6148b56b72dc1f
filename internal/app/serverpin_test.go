package app

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/pin"
	"ken/internal/know/catalog"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers/definitions"
	"ken/internal/run/mcpservers/toolreview"
	"ken/internal/secret"
)

// importing makes a home whose ken.yaml imports a file with one server.
func importing(t *testing.T) (getenv func(string) string, file string) {
	t.Helper()
	dir, getenv := home(t, nil)
	file = filepath.Join(t.TempDir(), "theirs.json")
	write(t, filepath.Join(dir, ".ken", "ken.yaml"), "mcp: {trustHints: [s], import: ["+file+"]}\n")
	servers(t, file, map[string]map[string]any{"s": {}})
	return getenv, file
}

func lookAt(t *testing.T, a *App) error {
	t.Helper()
	_, err := a.Door.Invoke(t.Context(), asModel(a), capability.Call{Target: "mcp:s/look", Arguments: json.RawMessage(`{"text":"x"}`), Session: "one"})
	return err
}

// TestImportedDefinitionsArePinned: a server of another program's file is started
// as that file first defined it. What is changed or added there waits for a
// person, who is shown what differs, and a new token is no change.
func TestImportedDefinitionsArePinned(t *testing.T) {
	getenv, file := importing(t)
	first := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true})
	if err := lookAt(t, first); err != nil {
		t.Fatalf("look = %v, want it accepted at first sight", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	mark := filepath.Join(t.TempDir(), "started")
	servers(t, file, map[string]map[string]any{
		"s":   {"args": []string{"--", mark}, "env": map[string]string{"API_TOKEN": "one", "NODE_OPTIONS": "--require /tmp/x.js"}},
		"new": {"command": "/bin/touch", "args": []string{mark}},
	})
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true})
	err := lookAt(t, a)
	if err == nil {
		t.Fatal("look worked with another definition")
	}
	for _, st := range a.Servers.Status() {
		if st.Pid != 0 || st.Rule != "mcp.import" || st.Fix != "ken extension review mcp:"+st.Name || !strings.Contains(st.Err, "differs from the accepted one") {
			t.Errorf("status = %+v, want one that was not started, with the knob and what to do", st)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a server that was added to the file was started")
	}
	problems := a.Catalog.Snapshot().Problems()
	if !slices.ContainsFunc(problems, func(p capability.Problem) bool { return p.Code == "mcp-held" && strings.Contains(p.Message, "args") }) {
		t.Errorf("problems = %v, want one that says what differs", problems)
	}
	stands, err := a.ToolReviews.List(t.Context())
	if err != nil || len(stands) != 2 || stands[0].State != toolreview.Waiting || stands[1].State != toolreview.Waiting {
		t.Fatalf("ServerReviews = %+v, %v, want two that wait", stands, err)
	}
	r, err := a.ToolReviews.Review(t.Context(), "s")
	if err != nil || len(r.Waiting) != 1 || r.Waiting[0].Tool != definitions.Tool || r.Waiting[0].State != pin.Changed {
		t.Fatalf("ReviewServer = %+v, %v, want the definition", r, err)
	}
	var lines []string
	for _, d := range r.Waiting[0].Differences {
		lines = append(lines, d.String())
	}
	said := strings.Join(lines, "\n")
	for _, want := range []string{`args added: ["--","` + mark + `"]`, `env.API_TOKEN added: "(a secret)"`, `env.NODE_OPTIONS added: "--require /tmp/x.js"`} {
		if !strings.Contains(said, want) {
			t.Errorf("differences:\n%s\nwant %s", said, want)
		}
	}
	done, err := a.ToolReviews.Accept(t.Context(), a.Principal, r)
	if err != nil || !slices.Contains(done.Usable, "mcp:s/look") {
		t.Fatalf("AcceptTools = %+v, %v, want its tools usable", done, err)
	}
	if err := lookAt(t, a); err != nil {
		t.Errorf("look = %v, after it was accepted", err)
	}
	// Another token is the same server, and other options are not.
	for value, want := range map[string]bool{"--require /tmp/x.js": true, "--require /tmp/y.js": false} {
		servers(t, file, map[string]map[string]any{"s": {"args": []string{"--", mark}, "env": map[string]string{"API_TOKEN": "two", "NODE_OPTIONS": value}}})
		list := a.Servers.Definitions()
		if len(list) != 1 || (list[0].Held == "") != want {
			t.Errorf("with NODE_OPTIONS %q: %+v, want it accepted: %v", value, list, want)
		}
	}
}

// TestImportedDefinitionsAreLive: the file is followed while Ken runs, also what
// another process accepts.
func TestImportedDefinitionsAreLive(t *testing.T) {
	getenv, file := importing(t)
	here := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	here.Servers.List(t.Context(), "s")
	watch(t, here)
	state := func() catalog.State {
		e, ok := here.Catalog.Snapshot().Get("mcp:s/look")
		if !ok {
			return ""
		}
		return e.State
	}
	until(t, here, func() bool { return state() == catalog.Active })
	servers(t, file, map[string]map[string]any{"s": {"args": []string{"other"}}})
	until(t, here, func() bool { return state() == "" })
	there := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	r, err := there.ToolReviews.Review(t.Context(), "s")
	if err == nil {
		_, err = there.ToolReviews.Accept(t.Context(), there.Principal, r)
	}
	if err != nil || len(r.Waiting) != 1 {
		t.Fatalf("ReviewServer = %+v, %v", r, err)
	}
	until(t, here, func() bool { return state() == catalog.Active })
	// Half a file changes nothing.
	write(t, file, `{"mcpServers": {"s": {"com`)
	until(t, here, func() bool {
		return slices.ContainsFunc(here.Servers.Problems(), func(p capability.Problem) bool { return p.Origin.Path == file })
	})
	if err := lookAt(t, here); err != nil {
		t.Errorf("look = %v, while the file is being written", err)
	}
}

// TestAnEmptyImport: a file that named no server when it was first read, was not
// there or could not be read, is trusted for that, and not for what comes into it
// later.
func TestAnEmptyImport(t *testing.T) {
	for name, first := range map[string]func(t *testing.T, file string) error{
		"empty":  func(t *testing.T, file string) error { return os.WriteFile(file, []byte("{}"), 0o600) },
		"absent": func(t *testing.T, file string) error { return os.Remove(file) },
		"half": func(t *testing.T, file string) error {
			return os.WriteFile(file, []byte(`{"mcpServers": {"s": {"com`), 0o600)
		},
		"no servers": func(t *testing.T, file string) error { return os.WriteFile(file, []byte(`{"mcpServers": []}`), 0o600) },
		"a folder": func(t *testing.T, file string) error {
			t.Cleanup(func() { os.Remove(file) })
			return errors.Join(os.Remove(file), os.Mkdir(file, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			getenv, file := importing(t)
			if err := first(t, file); err != nil {
				t.Fatal(err)
			}
			if err := open(t, Config{Getenv: getenv, Dir: t.TempDir()}).Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			servers(t, file, map[string]map[string]any{"s": {}})
			a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
			if list := a.Servers.Definitions(); len(list) != 1 || !strings.Contains(list[0].Held, "was not in the file before") {
				t.Errorf("servers = %+v, want one that waits", list)
			}
		})
	}
}

// TestImportsHaveNoSecrets: a definition of another program's file gets no sealed
// secret and nothing that is Ken's own, whatever it calls them, and no variable
// that it did not name when it was accepted.
func TestImportsHaveNoSecrets(t *testing.T) {
	dir, plain := home(t, nil)
	getenv := func(name string) string {
		return cmp.Or(map[string]string{"MINE": "a-value-of-mine", "OTHER": "another", "KEN_STORE": "postgres://u:p@db/x"}[name], plain(name))
	}
	file, own := filepath.Join(t.TempDir(), "theirs.json"), filepath.Join(dir, ".ken", "mcp.json")
	write(t, filepath.Join(dir, ".ken", "ken.yaml"), "mcp: {import: ["+file+"]}\n")
	entry := func(value string) map[string]any {
		return map[string]any{"env": map[string]string{"FOO_API_KEY": value}}
	}
	servers(t, own, map[string]map[string]any{"own": entry("${GITHUB_TOKEN}")})
	servers(t, file, map[string]map[string]any{
		"sealed": entry("${GITHUB_TOKEN}"), "env": entry("${env:GITHUB_TOKEN}"), "kens": entry("${KEN_STORE}"), "fine": entry("${MINE}"), "token": entry("a-token-of-its-own"),
		"head": {"command": "", "url": "https://example.com/mcp", "headers": map[string]string{"Authorization": "Bearer one-token-or-other"}},
	})
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	if err := a.Secrets.Set("GITHUB_TOKEN", secret.Of("sealed-and-not-for-them")); err != nil {
		t.Fatal(err)
	}
	unset := a.gateway.Unset()
	if got := slices.Sorted(maps.Keys(unset)); !slices.Equal(got, []string{"env", "kens", "sealed"}) || strings.Contains(unset["sealed"], "ken secret set") {
		t.Errorf("Unset = %v, want env, kens and sealed, which no sealed secret would help", unset)
	}
	for _, value := range []string{"${GITHUB_TOKEN}", "${OTHER}", "x${OTHER}", "${OTHER:-sk-live0123456789ABCDEFabcdef}"} {
		servers(t, file, map[string]map[string]any{
			"fine": entry(value), "token": entry(value),
			"head": {"command": "", "url": "https://example.com/mcp", "headers": map[string]string{"Authorization": "Bearer " + value}},
		})
		for _, s := range a.Servers.Definitions() {
			name, _, _ := strings.Cut(value, ":-")
			if s.Foreign && !strings.Contains(s.Held, strings.TrimPrefix(name, "x")) {
				t.Errorf("%s with %s: held for %q, want it held for what it names", s.Name, value, s.Held)
			}
		}
	}
	servers(t, file, map[string]map[string]any{
		"token": entry("another-token"),
		"head":  {"command": "", "url": "https://example.com/mcp", "headers": map[string]string{"Authorization": "Bearer a-newer-one"}},
	})
	for _, s := range a.Servers.Definitions() {
		if s.Held != "" {
			t.Errorf("%s with a new token is held: %s", s.Name, s.Held)
		}
	}
}

// TestImportsStayOff: a server that was switched off in another program's file
// is not switched on by whoever writes that file.
func TestImportsStayOff(t *testing.T) {
	getenv, file := importing(t)
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	stands := func(entry map[string]any) mcpgateway.Server {
		t.Helper()
		servers(t, file, map[string]map[string]any{"s": entry})
		list := a.Servers.Definitions()
		if len(list) != 1 {
			t.Fatalf("servers = %+v, want one", list)
		}
		return list[0]
	}
	if s := stands(map[string]any{}); s.Held != "" {
		t.Fatalf("it is held at first: %s", s.Held)
	}
	if s := stands(map[string]any{"disabled": true}); s.Held != "" || !s.Disabled {
		t.Errorf("switched off: %+v, want it off, with nothing to review", s)
	}
	if s := stands(map[string]any{}); !strings.Contains(s.Held, "disabled") {
		t.Errorf("switched on again: held for %q, want it held", s.Held)
	}
	// What else came with it is not accepted by being off.
	if s := stands(map[string]any{"disabled": true, "args": []string{"evil"}}); !strings.Contains(s.Held, "evil") {
		t.Errorf("off and different: held for %q, want the argument", s.Held)
	}
	if s := stands(map[string]any{"args": []string{"evil"}}); !strings.Contains(s.Held, "evil") {
		t.Errorf("on and different: held for %q, want the argument", s.Held)
	}
	if s := stands(map[string]any{"disabled": true}); s.Held != "" {
		t.Errorf("as it was: held for %q", s.Held)
	}
}

// TestPinRulesAreLive: what mcp.new says counts at once, for tools that wait
// already too.
func TestPinRulesAreLive(t *testing.T) {
	home, getenv := home(t, nil)
	stands := waitsForReview(t, home, getenv)
	write(t, filepath.Join(home, ".ken", "ken.yaml"), "mcp: {new: accept}\n")
	stands(catalog.Active)
}

// TestServersOfProjectsStartThere: a server of a project's file, or for a
// project, starts in its folder, and what stands for a client's folder is that.
func TestServersOfProjectsStartThere(t *testing.T) {
	home, plain := home(t, nil)
	getenv := func(name string) string {
		if name == "PWD" {
			return "/somewhere/else"
		}
		return plain(name)
	}
	project, other := t.TempDir(), t.TempDir()
	servers(t, filepath.Join(project, ".mcp.json"), map[string]map[string]any{"a": {"args": []string{"${PWD}"}}})
	servers(t, filepath.Join(project, ".cursor", "mcp.json"), map[string]map[string]any{"b": {}, "c": {"cwd": other}})
	servers(t, filepath.Join(home, ".client.json"), map[string]map[string]any{"d": {"args": []string{"${PWD}"}}})
	servers(t, filepath.Join(home, ".ken", "mcp.json"), map[string]map[string]any{"e": {"x-ken": map[string]any{"project": other}}, "f": {}})
	write(t, filepath.Join(home, ".ken", "ken.yaml"), "mcp: {import: ["+project+"/.mcp.json, "+project+"/.cursor/mcp.json, "+home+"/.client.json]}\n")
	a := open(t, Config{Getenv: getenv, Dir: other})
	for _, s := range a.Servers.Definitions() {
		want := map[string]string{"a": project, "b": project, "c": other, "d": home, "e": other, "f": home}[s.Name]
		if s.Cwd != want {
			t.Errorf("%s starts in %s, want %s", s.Name, s.Cwd, want)
		}
	}
	unset := a.gateway.Unset()
	if len(unset) != 1 || !strings.Contains(unset["d"], "PWD (another one in each window") {
		t.Errorf("Unset = %v, want d for PWD alone", unset)
	}
	if said := a.Servers.Unset(); len(said) != 1 || !strings.HasPrefix(said[0], "d: the definition refers to values that are not set: PWD") {
		t.Errorf("missingServers = %q", said)
	}
}
