package manageapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/add"
	"ken/internal/add/addmcp"
	"ken/internal/add/addplan"
	"ken/internal/connect"
	"ken/internal/govern/extensions"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
	"ken/internal/secret"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/testkit"
)

// A rig is the routes over a home of its own. Servers are not started: try says
// what becomes of one.
type rig struct {
	mux     *wire.Mux
	cfg     Config
	now     time.Time
	home    string
	records []string
	written map[string]addmcp.Definition
	try     func(name string, d addmcp.Definition) (*addmcp.Trial, error)
}

// fresh is the owner, who signed in at this moment.
func (r *rig) fresh() auth.Identity {
	return auth.Identity{Principal: capability.Principal{ID: "root"}, Operator: true, Owner: true, Local: true, Decides: true, SignedIn: true, Began: r.now}
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{now: time.Now(), home: t.TempDir(), written: map[string]addmcp.Definition{}}
	r.try = func(string, addmcp.Definition) (*addmcp.Trial, error) {
		return &addmcp.Trial{Tools: []*capability.Capability{{ID: "mcp:x/echo"}}, Pin: func(context.Context) error { return nil }}, nil
	}
	secrets := secret.New(secret.Config{Dir: filepath.Join(r.home, "secrets")})
	list, err := catalog.New(catalog.Config{})
	if err != nil {
		t.Fatal(err)
	}
	connector := connect.NewConnector(connect.ConnectorConfig{
		ServerFile: filepath.Join(r.home, "mcp.json"), RuleFile: filepath.Join(r.home, "client-rules.json"), RecordDir: filepath.Join(r.home, "connect"),
		UserHome: r.home, Getenv: func(string) string { return "" }, Addr: "127.0.0.1:7777", Secrets: secrets, Log: slog.New(slog.DiscardHandler),
		RemoveToken: func(string) (bool, error) { return false, nil },
	})
	r.cfg = Config{
		Waiting: t.Context(), Secrets: secrets, Now: func() time.Time { return r.now },
		Items:   func(context.Context) ([]Item, error) { return []Item{{Name: "mcp:x", Title: "x", Kind: "server"}}, nil },
		Changed: func(context.Context) error { return nil },
		Record: func(_ context.Context, who auth.Identity, command, action, target string, _ map[string]string) error {
			r.records = append(r.records, who.Principal.ID+" "+command+" "+action+" "+target)
			return nil
		},
		Adding: func(by capability.Principal) (addplan.App, error) {
			return addplan.App{
				Places: add.Places{Capabilities: filepath.Join(r.home, "capabilities"), Extensions: filepath.Join(r.home, "extensions"), Staging: filepath.Join(r.home, ".adding")},
				By:     by, Catalog: list, Extensions: extensions.New(extensions.Config{Catalog: func() *catalog.Catalog { return list }}),
				HasSecret: secrets.Has, Secret: func(string) (string, bool) { return "", false },
				Standing: func(*capability.Capability, []string) policy.Decision { return policy.Decision{Effect: policy.Ask} },
				Record: func(_ context.Context, action, kind, name, _ string, _ map[string]string) error {
					r.records = append(r.records, by.ID+" "+kind+" "+action+" "+name)
					return nil
				},
				Servers: addplan.Servers{
					Config: addmcp.Config{Packages: filepath.Join(r.home, "packages"), Markers: filepath.Join(r.home, "servers")}, File: "ken.yaml",
					Defined: func(string) string { return "" },
					Narrow: func(_ string, d addmcp.Definition) (addmcp.Definition, string) {
						d.Profile = "confined"
						return d, ""
					},
					Try: func(_ context.Context, name, _ string, d addmcp.Definition) (*addmcp.Trial, error) {
						return r.try(name, d)
					},
					Unpin:     func(context.Context, string, string) error { return nil },
					Configure: func(_, name string, d addmcp.Definition) error { r.written[name] = d; return nil },
					Forget:    func(_, name string) error { delete(r.written, name); return nil },
					Logout:    func(string) (bool, string, error) { return true, "", nil },
					Secrets:   func() map[string][]string { return map[string][]string{"prog": {"API_KEY"}, "other": {"API_KEY"}} },
				},
			}, nil
		},
		Plan: func(client string) (*connect.Plan, error) {
			return connector.Plan(connect.Request{Client: client, Program: "/usr/bin/ken"})
		},
		Connect: func(ctx context.Context, p *connect.Plan) ([]Started, error) {
			_, err := connector.Connect(ctx, p)
			return nil, err
		},
		Disconnect: connector.Disconnect,
	}
	r.mux = wire.NewMux(slog.New(slog.DiscardHandler), auth.HandlerFunc(func(w http.ResponseWriter, _ *http.Request, _ auth.Identity) { w.WriteHeader(404) }), Routes(r.cfg)...)
	return r
}

func (r *rig) ask(who auth.Identity, method, path, body string) *httptest.ResponseRecorder {
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	q := httptest.NewRequest(method, path, in)
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	r.mux.ServeAs(w, q, who)
	return w
}

func (r *rig) want(t *testing.T, who auth.Identity, method, path, body string, status int, parts ...string) string {
	t.Helper()
	w := r.ask(who, method, path, body)
	if w.Code != status {
		t.Errorf("%s %s = %d %s, want %d", method, path, w.Code, w.Body, status)
	}
	for _, p := range parts {
		if !strings.Contains(w.Body.String(), p) {
			t.Errorf("%s %s = %s, want %s in it", method, path, w.Body, p)
		}
	}
	return w.Body.String()
}

func id(t *testing.T, answer string) string {
	t.Helper()
	_, rest, ok := strings.Cut(answer, `"id":"`)
	out, _, _ := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("there is no id in %s", answer)
	}
	return out
}

// TestRefused: what starts programs or changes files outside of Ken is for the
// owner alone, at this machine, who signed in a short time ago. The others are told
// why not.
func TestRefused(t *testing.T) {
	r := newRig(t)
	change := func(f func(*auth.Identity)) auth.Identity {
		who := r.fresh()
		f(&who)
		return who
	}
	for _, tt := range []struct {
		name, code string
		who        auth.Identity
	}{
		{"an agent", "", change(func(w *auth.Identity) { *w = auth.Identity{Principal: w.Principal, Local: true} })},
		{"a user", "operator-only", change(func(w *auth.Identity) { w.Operator, w.Owner = false, false })},
		{"another operator", "owner-only", change(func(w *auth.Identity) { w.Owner = false })},
		{"another machine", "not-local", change(func(w *auth.Identity) { w.Local = false })},
		{"an old cookie", SignInAgain, change(func(w *auth.Identity) { w.Began = r.now.Add(-31 * time.Minute) })},
		{"no one", "", auth.Identity{}},
	} {
		for _, q := range [][3]string{
			{"POST", "/api/v1/additions", `{"command":["x"]}`}, {"POST", "/api/v1/additions", `{"from":"npm:x"}`}, {"POST", "/api/v1/additions", `{"from":"` + r.home + `"}`},
			{"POST", "/api/v1/additions", `{"from":"io.github.x/y"}`}, {"POST", "/api/v1/additions", `{"from":"https://registry.example/v0.1/servers/x"}`}, {"POST", "/api/v1/additions", `{"from":"openapi:/etc/passwd"}`},
			{"POST", "/api/v1/additions", `{"from":"https://x.example/entry.json"}`}, {"POST", "/api/v1/additions", `{"from":"https://x.example/entry.json?a=b"}`},
			{"POST", "/api/v1/additions", `{"from":"https://x.example/entry.json#a"}`}, {"POST", "/api/v1/additions", `{"from":"https://x.example/entry%2ejson"}`},
			{"POST", "/api/v1/additions", `{"from":"https://x.example/v0.1%2Fservers%2Fx"}`}, {"POST", "/api/v1/additions", `{"from":"openapi:graphql:https://x.example"}`},
			{"GET", "/api/v1/clients/claude/plan", ""}, {"POST", "/api/v1/clients/claude/connect", `{}`}, {"POST", "/api/v1/clients/claude/disconnect", `{}`},
			{"POST", "/api/v1/servers/x/login", ""},
		} {
			if w := r.ask(tt.who, q[0], q[1], q[2]); w.Code != 403 || !strings.Contains(w.Body.String(), tt.code) {
				t.Errorf("%s: %s %s %s = %d %s, want 403 %s", tt.name, q[0], q[1], q[2], w.Code, w.Body, tt.code)
			}
		}
	}
	if len(r.records) != 0 {
		t.Errorf("refused requests were recorded as done: %v", r.records)
	}
	r.want(t, change(func(w *auth.Identity) { w.Owner = false }), "GET", "/api/v1/managed", "", 200, `"code":"owner-only"`, `"name":"mcp:x"`)
	if answer := r.want(t, r.fresh(), "GET", "/api/v1/managed", "", 200); strings.Contains(answer, "refused") {
		t.Errorf("the owner is refused: %s", answer)
	}
}

// TestAdd: a server is planned, started once and then added; each step is needed.
// A plan is its maker's, and an operator elsewhere may add a remote server.
func TestAdd(t *testing.T) {
	r := newRig(t)
	who := r.fresh()
	answer := r.want(t, who, "POST", "/api/v1/additions", `{"command":["prog","--flag"],"env":["API_KEY"],"hosts":["a.example"]}`, 200, `"next":"secrets"`, `"unset":"API_KEY"`, `"profile":"confined"`, `"hosts":["a.example"]`)
	plan := "/api/v1/additions/" + id(t, answer)
	r.want(t, who, "POST", plan+"/try", "", 409, "secret-not-set")
	r.want(t, who, "PUT", "/api/v1/secrets/API_KEY", `{"value":"hidden-value"}`, 204)
	r.want(t, who, "POST", plan+"/add", "", 409)
	other := who
	other.Principal.ID = "eve"
	r.want(t, other, "POST", plan+"/try", "", 404)
	good := r.try
	r.try = func(string, addmcp.Definition) (*addmcp.Trial, error) { return &addmcp.Trial{Err: "it crashed"}, nil }
	r.want(t, who, "POST", plan+"/try", "", 200, `"failed":"it crashed"`, `"next":"try"`)
	r.want(t, who, "POST", plan+"/add", "", 409)
	r.try = good
	if answer := r.want(t, who, "POST", plan+"/try", "", 200, `"next":"add"`, "mcp:x/echo"); strings.Contains(answer, "hidden-value") {
		t.Errorf("a secret was shown: %s", answer)
	}
	r.want(t, who, "POST", plan+"/add", "", 200, `"added":true`)
	if d := r.written["prog"]; d.Command != "prog" || d.Env["API_KEY"] != "${secret:API_KEY}" {
		t.Errorf("written = %+v", r.written)
	}
	r.want(t, who, "POST", plan+"/add", "", 404) // once
	r.want(t, who, "DELETE", "/api/v1/added/prog", "", 200, `"kind":"server"`, `"logged_out":true`, `"shared":[{"secret":"API_KEY","by":"mcp:other"}]`)
	if len(r.written) != 0 {
		t.Errorf("after it was removed = %v", r.written)
	}

	elsewhere := who
	elsewhere.Owner, elsewhere.Local = false, false
	answer = r.want(t, elsewhere, "POST", "/api/v1/additions", `{"from":"https://mcp.example.com/mcp"}`, 200, `"next":"try"`)
	r.want(t, elsewhere, "POST", "/api/v1/additions/"+id(t, answer)+"/try", "", 200, `"next":"add"`)
	r.want(t, elsewhere, "DELETE", "/api/v1/additions/"+id(t, answer), "", 204)
	r.want(t, elsewhere, "POST", "/api/v1/additions/"+id(t, answer)+"/add", "", 404)

	// A plan ends, and with it what it may do.
	answer = r.want(t, who, "POST", "/api/v1/additions", `{"command":["late"]}`, 200)
	r.now = r.now.Add(planLife + time.Second)
	r.want(t, r.fresh(), "POST", "/api/v1/additions/"+id(t, answer)+"/try", "", 404)
	for _, body := range []string{`{}`, `{"from":"x","command":["y"]}`, `{"from":"not something"}`, `{"unknown":1}`} {
		r.want(t, r.fresh(), "POST", "/api/v1/additions", body, 400)
	}
	for _, done := range []string{"root secret set API_KEY", "root mcp add prog", "root mcp remove prog"} {
		if !strings.Contains(strings.Join(r.records, "\n"), done) {
			t.Errorf("records = %q, want %q", r.records, done)
		}
	}
}

// TestConnect: a client is connected exactly as it was shown: not when it was
// changed since. The browser's story manage has the rest.
func TestConnect(t *testing.T) {
	r := newRig(t)
	who := r.fresh()
	file := filepath.Join(r.home, ".claude.json")
	const before = `{"mcpServers": {"notes": {"command": "notes-server", "env": {"API_TOKEN": "ghp_abcdefghijklmnopqrstuvwxyz0123456789"}}}}`
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	answer := r.want(t, who, "GET", "/api/v1/clients/claude/plan", "", 200, `"servers":["notes"]`, `"connected":false`, ".claude.json")
	if strings.Contains(answer, "ghp_abc") {
		t.Errorf("the plan shows a secret of the client: %s", answer)
	}
	_, rest, _ := strings.Cut(answer, `"digest":"`)
	digest, _, _ := strings.Cut(rest, `"`)
	r.want(t, who, "POST", "/api/v1/clients/claude/connect", `{"digest":"other"}`, 409)
	changed := strings.Replace(before, "0123456789", "9876543210", 1)
	if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	r.want(t, who, "POST", "/api/v1/clients/claude/connect", `{"digest":"`+digest+`"}`, 409)
	r.want(t, who, "GET", "/api/v1/clients/nothing/plan", "", 404)
	r.want(t, who, "GET", "/api/v1/clients/generic/plan", "", 404)
}

// TestSecrets: names are listed, values never.
func TestSecrets(t *testing.T) {
	r := newRig(t)
	who := r.fresh()
	r.want(t, who, "PUT", "/api/v1/secrets/TOKEN", `{"value":"very-hidden"}`, 204)
	if answer := r.want(t, who, "GET", "/api/v1/secrets", "", 200, `"name":"TOKEN"`); strings.Contains(answer, "very-hidden") {
		t.Errorf("the value is shown: %s", answer)
	}
	r.want(t, who, "PUT", "/api/v1/secrets/TOKEN", `{"value":""}`, 400)
	r.want(t, who, "DELETE", "/api/v1/secrets/TOKEN", "", 204)
	r.want(t, who, "DELETE", "/api/v1/secrets/TOKEN", "", 404)
	user := who
	user.Operator = false
	r.want(t, user, "GET", "/api/v1/secrets", "", 403, "operator-only")
}

// TestLogin: a login answers with the address to open, and its end is told.
func TestLogin(t *testing.T) {
	r := newRig(t)
	finish := make(chan error)
	cfg := r.cfg
	cfg.Login = func(ctx context.Context, server string, ask func(context.Context, string) error) error {
		if server == "none" {
			return errors.New("there is no such server")
		}
		if err := ask(ctx, "https://login.example/authorize"); err != nil {
			return err
		}
		select {
		case err := <-finish:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.mux = wire.NewMux(slog.New(slog.DiscardHandler), nil, Routes(cfg)...)
	who := r.fresh()
	r.want(t, who, "GET", "/api/v1/servers/x/login", "", 200, `"state":"none"`)
	r.want(t, who, "POST", "/api/v1/servers/none/login", "", 500)
	for _, tt := range []struct {
		err   error
		state string
	}{{errors.New("refused by the provider"), "failed"}, {nil, "done"}} {
		r.want(t, who, "POST", "/api/v1/servers/x/login", "", 200, `"state":"waiting"`, "https://login.example/authorize")
		finish <- tt.err
		testkit.Wait(t, "the login is "+tt.state, func() bool {
			return strings.Contains(r.ask(who, "GET", "/api/v1/servers/x/login", "").Body.String(), tt.state)
		})
	}
}
