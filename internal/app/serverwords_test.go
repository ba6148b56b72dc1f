package app

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/connect"
	"ken/internal/know/catalog"
	"ken/internal/know/source/mcptools"
	"ken/internal/run/mcpgateway"
	"ken/internal/run/mcpservers/toolreview"
	"ken/internal/secret"
	"ken/internal/serve/mcpbridge"
	"ken/internal/serve/mcpserver"
)

// servers writes an mcp.json of this binary with some more keys.
func servers(t *testing.T, file string, list map[string]map[string]any) {
	t.Helper()
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
	for version := uint64(0); ; {
		if so() {
			return
		}
		s, err := a.Catalog.Next(t.Context(), version)
		if err != nil {
			t.Fatal(err)
		}
		version = s.Stats().Version
	}
}

// TestAcceptHeld: what the scan of texts has against a tool is shown with it, and
// accepting the tool does not release it.
func TestAcceptHeld(t *testing.T) {
	home, getenv := home(t, nil)
	more := filepath.Join(t.TempDir(), "more")
	servers(t, filepath.Join(home, ".ken", "mcp.json"), map[string]map[string]any{"s": {"env": map[string]string{"KEN_TEST_MORE": more}}})
	if err := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true}).Close(); err != nil {
		t.Fatal(err)
	}
	write(t, more, "")
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true})
	a.Servers.List(t.Context(), "s")
	if err := a.Catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	stands, err := a.ToolReviews.List(t.Context())
	if err != nil || len(stands) != 1 || stands[0].State != toolreview.Waiting || stands[0].New != 2 {
		t.Fatalf("ServerReviews = %+v, %v, want two that wait", stands, err)
	}
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

// TestServerStands: a server that fails, one that is off and one whose entry
// makes no sense are told.
func TestServerStands(t *testing.T) {
	home, getenv := home(t, nil)
	file := filepath.Join(home, ".ken", "mcp.json")
	servers(t, file, map[string]map[string]any{"good": {}, "off": {"disabled": true}, "gone": {"command": "/nowhere/at-all"}})
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true})
	stands, err := a.ToolReviews.List(t.Context())
	got := map[string]string{}
	for _, s := range stands {
		got[s.Name] = s.State
		if s.State == toolreview.Failed && (s.Why == "" || s.Fix == "") {
			t.Errorf("%+v, want why and what to do", s)
		}
	}
	if err != nil || got["good"] != toolreview.Enabled || got["off"] != toolreview.Disabled || got["gone"] != toolreview.Failed {
		t.Errorf("ServerReviews = %v, %v", got, err)
	}
	for name, want := range map[string]string{"gone": "at-all", "off": "switched off", "good": ""} {
		if r, err := a.ToolReviews.Review(t.Context(), name); err != nil || !strings.Contains(r.Unlisted, want) || (r.Unlisted == "") != (want == "") {
			t.Errorf("ReviewServer(%s) = %q, %v, want %q", name, r.Unlisted, err, want)
		}
	}
	if _, err := a.ToolReviews.Review(t.Context(), "nothing"); capability.KindOf(err) != capability.NotFound {
		t.Errorf("ReviewServer(nothing) = %v, want NotFound", err)
	}
}

// TestSwitchServer disables and enables a server of mcp.json and one of the
// user's own ken.yaml.
func TestSwitchServer(t *testing.T) {
	home, getenv := home(t, map[string]string{".ken/ken.yaml": "mcp: {servers: {mine: {command: /nowhere/at-all}}}\n"})
	file := filepath.Join(home, ".ken", "mcp.json")
	servers(t, file, map[string]map[string]any{"s": {}})
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	a.Servers.List(t.Context(), "s")
	if changed, err := a.Servers.Switch(t.Context(), a.Principal, "s", false, "too loud"); err != nil || !changed {
		t.Fatalf("SwitchServer(off) = %v, %v", changed, err)
	}
	if st := a.gateway.Status()[1]; st.State != mcpgateway.Disabled {
		t.Errorf("state = %v, want it off", st.State)
	}
	if changed, err := a.Servers.Switch(t.Context(), a.Principal, "s", false, ""); err != nil || changed {
		t.Errorf("SwitchServer(off) again = %v, %v, want nothing to change", changed, err)
	}
	if changed, err := a.Servers.Switch(t.Context(), a.Principal, "s", true, ""); err != nil || !changed {
		t.Errorf("SwitchServer(on) = %v, %v", changed, err)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("mcp.json after off and on = %s, %v, want %s", after, err, before)
	}
	own := filepath.Join(home, ".ken", "ken.yaml")
	for _, on := range []bool{false, true} {
		if changed, err := a.Servers.Switch(t.Context(), a.Principal, "mine", on, ""); err != nil || !changed {
			t.Errorf("Switch(mine, %v) = %v, %v", on, changed, err)
		}
		text, err := os.ReadFile(own)
		if err != nil || strings.Contains(string(text), "disabled: true") == on {
			t.Errorf("ken.yaml after Switch(mine, %v) = %s, %v", on, text, err)
		}
	}
}

// TestServerFileProblems: what is wrong with mcp.json is in the catalog's
// problems, and goes when it is mended.
func TestServerFileProblems(t *testing.T) {
	home, getenv := home(t, map[string]string{".ken/mcp.json": `{"mcpServers": {"s": {"args": ["x"]}}}`, ".ken/capabilities/mine/CAPABILITY.yaml": manifest})
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
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
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true})
	if st := a.Servers.Status(); len(st) != 1 || st[0].Err == "" {
		t.Fatalf("ServerStatus = %+v, want that it lacks the secret", st)
	}
	watch(t, a)
	other := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	if err := other.Secrets.Set("later", secret.Of("open-sesame-and-more")); err != nil {
		t.Fatal(err)
	}
	until(t, a, func() bool { _, err := a.View().Lookup("mcp:s/look"); return err == nil })
}

// TestExposedByNumber: the tools of one server have their own names, those of
// several the server's before them, whichever answers first.
func TestExposedByNumber(t *testing.T) {
	for _, tt := range []struct {
		list map[string]map[string]any
		want map[capability.ID]string
	}{
		{map[string]map[string]any{"one": {}, "off": {"disabled": true}}, map[capability.ID]string{"mcp:one/look": "look"}},
		{map[string]map[string]any{"one": {}, "two": {}}, map[capability.ID]string{"mcp:one/look": "one__look", "mcp:two/look": "two__look"}},
	} {
		home, getenv := home(t, nil)
		servers(t, filepath.Join(home, ".ken", "mcp.json"), tt.list)
		a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true})
		for id, want := range tt.want {
			e, ok := a.Catalog.Snapshot().Get(id)
			if !ok || e.Meta[mcptools.MetaExposed] != want {
				t.Errorf("exposed name of %s = %v, want %s", id, e, want)
			}
		}
	}
}

// TestHomeInKens: where the user's home lies in Ken's, Ken's own things are
// hidden one by one, and servers start.
func TestHomeInKens(t *testing.T) {
	dir := t.TempDir()
	getenv := func(name string) string {
		return map[string]string{"HOME": dir, "KEN_HOME": dir}[name]
	}
	servers(t, filepath.Join(dir, "mcp.json"), map[string]map[string]any{"s": {}})
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true})
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

// TestConsentLines: a person in his client sees what he decides on, and not
// what is for the record.
func TestConsentLines(t *testing.T) {
	home, getenv := home(t, nil)
	server(t, home, "", "s")
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true})
	_, err := a.Door.Invoke(t.Context(), asModel(a), capability.Call{Target: "mcp:s/change", Arguments: json.RawMessage(`{"text":"x"}`), Session: "one"})
	q, aerr := mcpbridge.Approvals{Recorded: a.Approvals}.Ask(t.Context(), err)
	if aerr != nil || q == nil {
		t.Fatalf("Ask(%v) = %v, %v", err, q, aerr)
	}
	var names []string
	for _, l := range q.Lines {
		names = append(names, l.Name)
	}
	if want := []string{"capability", "arguments", "folder", "why", "risk"}; !slices.Equal(names, want) {
		t.Errorf("lines = %v, want %v", names, want)
	}
	if !slices.Contains(q.Lines, mcpserver.Line{Name: "capability", Text: "mcp:s/change"}) {
		t.Errorf("lines = %v, want the capability", q.Lines)
	}
}

// TestLoginWords: who cannot log in is told why, and not to log in.
func TestLoginWords(t *testing.T) {
	_, getenv := home(t, map[string]string{".ken/mcp.json": `{"mcpServers": {"far": {"url": "http://127.0.0.1:1/mcp"}, "near": {"command": "x"}}}`})
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	for name, want := range map[string]string{"far": "http://127.0.0.1:1 cannot be reached", "near": "has no login", "none": "MCP server not found"} {
		err := a.Servers.Login(t.Context(), name, func(context.Context, string) error { return nil })
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "ken login") {
			t.Errorf("Login(%s) = %v, want %q and no word of ken login", name, err, want)
		}
	}
}

// TestDisconnectSecrets: what came out of a client's file goes; what a person
// set stays.
func TestDisconnectSecrets(t *testing.T) {
	home, getenv := home(t, map[string]string{".config/Code/User/mcp.json": `{"inputs": [{"id": "pass", "type": "promptString"}],
  "servers": {"s": {"command": "x", "env": {"API_TOKEN": "tok-4711-abcdefgh", "PASS": "${input:pass}"}}}}`})
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	if err := os.MkdirAll(filepath.Join(home, ".ken"), 0o700); err != nil {
		t.Fatal(err)
	}
	plan, err := a.Clients.Plan(connect.Request{Client: "vscode", Program: "/usr/bin/ken"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Clients.Connect(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	if err := a.Secrets.Set("mcp.input.pass", secret.Of("a word of my own")); err != nil {
		t.Fatal(err)
	}
	d, err := a.Clients.Disconnect(t.Context(), "vscode", false)
	if err != nil || !slices.Equal(d.Secrets, []string{"mcp.s.API_TOKEN"}) || !slices.Equal(d.Stay, []string{"mcp.input.pass"}) {
		t.Errorf("Disconnect = %+v, %v, want one secret removed and one that stays", d, err)
	}
	if a.Secrets.Has("mcp.s.API_TOKEN") || !a.Secrets.Has("mcp.input.pass") {
		t.Error("the secrets are not what Disconnect says")
	}
}

// TestServerRule: one rule lets the tools of a server run that say nothing of
// themselves, and no other's.
func TestServerRule(t *testing.T) {
	home, getenv := home(t, map[string]string{".ken/ken.yaml": "policy: {rules: [{id: mem, effect: allow, capabilities: [\"mcp:memory/*\"]}]}\n"})
	servers(t, filepath.Join(home, ".ken", "mcp.json"), map[string]map[string]any{"memory": {}, "other": {}})
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true})
	for target, want := range map[capability.ID]bool{"mcp:memory/change": true, "mcp:other/change": false} {
		_, err := a.Door.Invoke(t.Context(), asModel(a), capability.Call{Target: target, Arguments: json.RawMessage(`{"text":"x"}`), Session: "one"})
		if (err == nil) != want {
			t.Errorf("Invoke(%s) = %v, want that it runs: %v", target, err, want)
		}
	}
}

// TestOwnToolsOverMCP: Ken's own tools are found, listed and called over MCP
// like all others, so a client's model can call what it finds.
func TestOwnToolsOverMCP(t *testing.T) {
	_, getenv := home(t, nil)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.txt"), "what is in it")
	a := open(t, Config{Getenv: getenv, Dir: dir})
	for _, client := range []string{"test", "Visual Studio Code"} { // bridge and direct
		t.Run(client, func(t *testing.T) { testOwnToolsOverMCP(t, a, client) })
	}
}

func testOwnToolsOverMCP(t *testing.T, a *App, client string) {
	ours, theirs := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- a.MCP().Serve(t.Context(), a.Principal, ours, mcpserver.Hello{}) }()
	cs, err := mcp.NewClient(&mcp.Implementation{Name: client, Version: "1"}, nil).Connect(t.Context(), &mcp.IOTransport{Reader: theirs, Writer: theirs}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func(name string, args map[string]any) string {
		t.Helper()
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		said, _ := json.Marshal(res.Content)
		if res.IsError {
			t.Errorf("%s(%v) = %s, an error", name, args, said)
		}
		return string(said)
	}
	for query, want := range map[string]string{"write a file": "write_to_file", "run a shell command": "tool:shell", "read a file": "read_file"} {
		if said := call("discover_capabilities", map[string]any{"query": query}); !strings.Contains(said, want) {
			t.Errorf("discover_capabilities(%s) = %s, want %s in it", query, said, want)
		}
	}
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	times := map[string]int{}
	for _, tool := range list.Tools {
		times[tool.Name]++
	}
	if times["read_result"] != 1 {
		t.Errorf("read_result is listed %d times, want once", times["read_result"])
	}
	args := map[string]any{"path": "a.txt"}
	var said string
	if times["invoke_capability"] > 0 {
		said = call("invoke_capability", map[string]any{"capability": "tool:read_file", "arguments": args})
	} else {
		said = call("read_file", args)
	}
	if !strings.Contains(said, "what is in it") {
		t.Errorf("read_file = %s, want the text of the file", said)
	}
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve = %v", err)
	}
}

// waitsForReview opens an App with a server whose tool fine is new and waits for
// review, and gives what waits until that tool stands otherwise.
func waitsForReview(t *testing.T, home string, getenv func(string) string) (stands func(catalog.State)) {
	t.Helper()
	more := filepath.Join(t.TempDir(), "more")
	servers(t, filepath.Join(home, ".ken", "mcp.json"), map[string]map[string]any{"s": {"env": map[string]string{"KEN_TEST_MORE": more}}})
	if err := open(t, Config{Getenv: getenv, Dir: t.TempDir(), Servers: true}).Close(); err != nil {
		t.Fatal(err)
	}
	write(t, more, "")
	a := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	a.Servers.List(t.Context(), "s")
	watch(t, a)
	stands = func(state catalog.State) {
		t.Helper()
		until(t, a, func() bool { e, ok := a.Catalog.Snapshot().Get("mcp:s/fine"); return ok && e.State == state })
	}
	stands(catalog.Quarantined)
	return stands
}

// TestAcceptedElsewhere: tools that another process accepts may be used here
// soon after.
func TestAcceptedElsewhere(t *testing.T) {
	home, getenv := home(t, nil)
	stands := waitsForReview(t, home, getenv)
	there := open(t, Config{Getenv: getenv, Dir: t.TempDir()})
	r, err := there.ToolReviews.Review(t.Context(), "s")
	if err == nil {
		_, err = there.ToolReviews.Accept(t.Context(), there.Principal, r)
	}
	if err != nil {
		t.Fatal(err)
	}
	stands(catalog.Active)
}
