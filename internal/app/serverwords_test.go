package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/secret"
	"ken/internal/testkit"
)

// servers writes an mcp.json of this binary with some more keys.
func servers(t *testing.T, file string, list map[string]map[string]any) {
	t.Helper()
	testkit.CI(t, "starts MCP servers")
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		env := map[string]string{"KEN_TEST_SERVER": "1"}
		if more, ok := s["env"].(map[string]string); ok {
			for k, v := range more {
				env[k] = v
			}
		}
		s["env"] = env
		if s["command"] == nil {
			s["command"] = me
		}
	}
	data, err := json.Marshal(map[string]any{"mcpServers": list})
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, string(data))
}

// watch runs an App's watching until the test ends.
func watch(t *testing.T, a *App) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- a.Watch(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// until waits until something is so in an App's catalog.
func until(t *testing.T, a *App, so func() bool) {
	t.Helper()
	for version := uint64(0); !so(); {
		s, err := a.Catalog.Next(t.Context(), version)
		if err != nil {
			t.Fatal(err)
		}
		version = s.Stats().Version
	}
}

// updated opens an App with a server s that has two tools more, fine and evil, than
// when it was first listed.
func updated(t *testing.T) (a *App, dir string) {
	t.Helper()
	dir, getenv := home(t, nil)
	more := filepath.Join(t.TempDir(), "more")
	servers(t, filepath.Join(dir, ".ken", "mcp.json"), map[string]map[string]any{"s": {"env": map[string]string{"KEN_TEST_MORE": more}}})
	if err := open(t, Config{Getenv: getenv, Servers: true}).Close(); err != nil {
		t.Fatal(err)
	}
	write(t, more, "")
	a = open(t, Config{Getenv: getenv, Servers: true})
	a.Servers.List(t.Context(), "s")
	if err := a.Catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a, dir
}

// TestAcceptHeld: what the scan of texts has against a tool is shown with it, and
// accepting the tool does not release it.
func TestAcceptHeld(t *testing.T) {
	a, _ := updated(t)
	r, err := a.ToolReviews.Review(t.Context(), "s")
	if err != nil || len(r.Waiting) != 2 || len(r.Findings["evil"]) == 0 || len(r.Findings["fine"]) != 0 || r.Unlisted != "" {
		t.Fatalf("ReviewServer = %+v, %v, want findings against evil alone", r, err)
	}
	for _, f := range r.Findings["evil"] {
		if strings.HasPrefix(f.Rule, "mcp-") {
			t.Errorf("finding %v is of the pins, want those of the scan", f)
		}
	}
	done, err := a.ToolReviews.Accept(t.Context(), a.Principal, r)
	if err != nil || done.Accepted != 2 || !slices.Equal(done.Usable, []string{"mcp:s/fine"}) || len(done.Held["mcp:s/evil"]) == 0 {
		t.Errorf("AcceptTools = %+v, %v, want fine usable and evil held", done, err)
	}
}

// TestPinRulesAreLive: what mcp.new says counts at once, for tools that wait
// already too.
func TestPinRulesAreLive(t *testing.T) {
	a, home := updated(t)
	watch(t, a)
	stands := func(state catalog.State) func() bool {
		return func() bool { e, ok := a.Catalog.Snapshot().Get("mcp:s/fine"); return ok && e.State == state }
	}
	until(t, a, stands(catalog.Quarantined))
	write(t, filepath.Join(home, ".ken", "ken.yaml"), "mcp: {new: accept}\n")
	until(t, a, stands(catalog.Active))
}

// TestSwitchServer disables and enables a server of the user's own ken.yaml.
func TestSwitchServer(t *testing.T) {
	testkit.CI(t, "tries to start a server")
	home, getenv := home(t, map[string]string{".ken/ken.yaml": "mcp: {servers: {mine: {command: /nowhere/at-all}}}\n"})
	a := open(t, Config{Getenv: getenv})
	for _, on := range []bool{false, true} {
		if changed, err := a.Servers.Switch(t.Context(), a.Principal, "mine", on, ""); err != nil || !changed {
			t.Errorf("Switch(mine, %v) = %v, %v", on, changed, err)
		}
		text, err := os.ReadFile(filepath.Join(home, ".ken", "ken.yaml"))
		if err != nil || strings.Contains(string(text), "disabled: true") == on {
			t.Errorf("ken.yaml after Switch(mine, %v) = %s, %v", on, text, err)
		}
	}
}

// TestServerFileProblems: what is wrong with mcp.json is in the catalog's
// problems, and goes when it is mended.
func TestServerFileProblems(t *testing.T) {
	testkit.CI(t, "waits for files to be noticed")
	home, getenv := home(t, map[string]string{".ken/mcp.json": `{"mcpServers": {"s": {"args": ["x"]}}}`, ".ken/capabilities/mine/CAPABILITY.yaml": manifest})
	a := open(t, Config{Getenv: getenv})
	problem := func() bool {
		return slices.ContainsFunc(a.Catalog.Snapshot().Problems(), func(p capability.Problem) bool {
			return p.Code == "mcp-server" && strings.HasSuffix(p.Origin.Path, "mcp.json") && p.Origin.Line == 1
		})
	}
	if !problem() {
		t.Fatalf("Problems = %v, want the entry of mcp.json", a.Catalog.Snapshot().Problems())
	}
	watch(t, a)
	write(t, filepath.Join(home, ".ken", "mcp.json"), `{"mcpServers": {}}`)
	until(t, a, func() bool { return !problem() })
	write(t, filepath.Join(home, ".ken", "mcp.json"), `{"mcpServers": {"other": {"args": ["x"]}}}`)
	until(t, a, problem)
}

// TestSecretSetLater: a server that lacks a secret is tried again once somebody
// sets it, from another process.
func TestSecretSetLater(t *testing.T) {
	home, getenv := home(t, nil)
	servers(t, filepath.Join(home, ".ken", "mcp.json"), map[string]map[string]any{"s": {"env": map[string]string{"KEY": "${secret:later}"}}})
	a := open(t, Config{Getenv: getenv, Servers: true})
	if st := a.Servers.Status(); len(st) != 1 || st[0].Err == "" {
		t.Fatalf("ServerStatus = %+v, want that it lacks the secret", st)
	}
	watch(t, a)
	other := open(t, Config{Getenv: getenv})
	if err := other.Secrets.Set("later", secret.Of("open-sesame-and-more")); err != nil {
		t.Fatal(err)
	}
	until(t, a, func() bool { _, err := a.View().Lookup("mcp:s/look"); return err == nil })
}

// TestHomeInKens: where the user's home lies in Ken's, Ken's own things are
// hidden one by one, and servers start.
func TestHomeInKens(t *testing.T) {
	dir := t.TempDir()
	getenv := func(name string) string {
		return map[string]string{"HOME": dir, "KEN_HOME": dir}[name]
	}
	servers(t, filepath.Join(dir, "mcp.json"), map[string]map[string]any{"s": {}})
	a := open(t, Config{Getenv: getenv, Servers: true})
	hidden := slices.Concat(a.private().Folders(), a.private().Files())
	for _, name := range []string{"state", "cache", "logs", "audit", "audit-checkpoints", "capabilities", "extensions", "ken.yaml", "ken.json", "mcp.json", "secrets.age", "secrets.key", "ken.sock"} {
		if !slices.Contains(hidden, filepath.Join(dir, name)) {
			t.Errorf("hidden = %v, want %s among them", hidden, name)
		}
	}
	if slices.Contains(hidden, dir) {
		t.Errorf("hidden = %v, and the user's home with it", hidden)
	}
	if _, err := a.View().Lookup("mcp:s/look"); err != nil {
		t.Errorf("Lookup = %v, %+v, want a server that started", err, a.Servers.Status())
	}
	for _, name := range []string{"ken.yaml", "ken.json", "secrets.key"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was made to be hidden", name)
		}
	}
}

// TestLoginWords: who cannot log in is told why, and not to log in.
func TestLoginWords(t *testing.T) {
	_, getenv := home(t, map[string]string{".ken/mcp.json": `{"mcpServers": {"far": {"url": "http://127.0.0.1:1/mcp"}, "near": {"command": "x"}}}`})
	a := open(t, Config{Getenv: getenv})
	for name, want := range map[string]string{"far": "http://127.0.0.1:1 cannot be reached", "near": "has no login", "none": "MCP server not found"} {
		err := a.Servers.Login(t.Context(), name, func(context.Context, string) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ken login") {
			t.Errorf("Login(%s) = %v, want %q and no word of ken login", name, err, want)
		}
	}
}
