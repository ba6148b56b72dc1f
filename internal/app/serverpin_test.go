package app

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/run/mcpgateway"
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

// TestImportedDefinitionsAreLive: the file is followed while Ken runs, also what
// another process accepts.
func TestImportedDefinitionsAreLive(t *testing.T) {
	getenv, file := importing(t)
	here := open(t, Config{Getenv: getenv})
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
	there := open(t, Config{Getenv: getenv})
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
	for name, first := range map[string]string{
		"empty": "{}", "absent": "", "half": `{"mcpServers": {"s": {"com`, "no servers": `{"mcpServers": []}`, "a folder": "",
	} {
		t.Run(name, func(t *testing.T) {
			getenv, file := importing(t)
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if first != "" {
				write(t, file, first)
			} else if name == "a folder" {
				write(t, filepath.Join(file, "x"), "")
			}
			if err := open(t, Config{Getenv: getenv}).Close(); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(file); err != nil {
				t.Fatal(err)
			}
			servers(t, file, map[string]map[string]any{"s": {}})
			a := open(t, Config{Getenv: getenv})
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
	a := open(t, Config{Getenv: getenv})
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
	a := open(t, Config{Getenv: getenv})
	stands := func(entry map[string]any) mcpgateway.Server {
		t.Helper()
		servers(t, file, map[string]map[string]any{"s": entry})
		list := a.Servers.Definitions()
		if len(list) != 1 {
			t.Fatalf("servers = %+v, want one", list)
		}
		return list[0]
	}
	for i, step := range []struct {
		entry map[string]any
		held  string // for; "": it is not held
	}{
		{map[string]any{}, ""},
		{map[string]any{"disabled": true}, ""},
		{map[string]any{}, "disabled"},
		{map[string]any{"disabled": true, "args": []string{"evil"}}, "evil"}, // what else came with it is not accepted by being off
		{map[string]any{"args": []string{"evil"}}, "evil"},
		{map[string]any{"disabled": true}, ""},
	} {
		s := stands(step.entry)
		if (s.Held == "") != (step.held == "") || !strings.Contains(s.Held, step.held) || s.Disabled != (step.entry["disabled"] == true) {
			t.Errorf("step %d: %+v, want it held for %q", i, s, step.held)
		}
	}
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
