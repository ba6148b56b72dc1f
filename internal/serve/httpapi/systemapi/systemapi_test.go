package systemapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/outcome"
	"ken/internal/govern/policy"
	"ken/internal/know/source"
	"ken/internal/serve/auth"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/testkit/runtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	root = auth.Identity{Principal: capability.Principal{ID: "root"}, Name: "Root", Operator: true, Decides: true, SignedIn: true}
	ann  = auth.Identity{Principal: capability.Principal{ID: "ann", Tenant: "acme", Roles: []string{"intern"}}, Decides: true}
	now  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

// A rig is the routes over a real door.
type rig struct{ cfg Config }

func newRig(t *testing.T) *rig {
	t.Helper()
	m := source.NewMemory("test", capability.TrustUser)
	m.Put(capability.Capability{Name: "weather", Description: "Weather forecast"}, capability.Detail{})
	m.Put(capability.Capability{Name: "guard", Description: "Guard the gate"}, capability.Detail{})
	d := runtest.Open(t, runtest.Load(t, m), nil, func(s *policy.Settings) {
		s.Rules = []policy.Rule{{ID: "no.interns", Effect: policy.Deny, Capabilities: []string{"tool:guard"}, Roles: []string{"intern"}, Reason: "no", Where: "test:1"}}
	})
	return &rig{cfg: Config{
		Version: "v1", Workspace: "/work", Profile: func() string { return "personal" }, Tokenizer: "exact", Zone: time.UTC, Now: func() time.Time { return now },
		View:  func(who auth.Identity) door.View { return d.View(who.Principal) },
		Stats: func() door.Stats { return d.View(root.Principal).Stats() },
	}}
}

// ask makes a request as somebody.
func (r *rig) ask(who auth.Identity, method, target, body string) *httptest.ResponseRecorder {
	nowhere := auth.HandlerFunc(func(w http.ResponseWriter, q *http.Request, _ auth.Identity) { wire.NoSuchPath(w, q) })
	mux := wire.NewMux(slog.New(slog.DiscardHandler), nowhere, Routes(r.cfg)...)
	q := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	mux.ServeAs(w, q, who)
	return w
}

// want makes a request and looks at what comes back.
func (r *rig) want(t *testing.T, who auth.Identity, method, target, body string, status int, parts ...string) {
	t.Helper()
	w := r.ask(who, method, target, body)
	if w.Code != status {
		t.Errorf("%s %s as %s = %d %s, want %d", method, target, who.Principal.ID, w.Code, w.Body, status)
		return
	}
	if kind := w.Header().Get("Content-Type"); status >= 400 && kind != "application/problem+json" {
		t.Errorf("%s %s = %s, want a problem document", method, target, kind)
	}
	for _, part := range parts {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("%s %s as %s = %s, want %s in it", method, target, who.Principal.ID, w.Body, part)
		}
	}
}

// TestReady: each condition is named, and what is wrong is told to operators
// alone.
func TestReady(t *testing.T) {
	r := newRig(t)
	r.want(t, ann, "GET", "/readyz", "", 200, `"checks":[]`)
	good := Probe{"catalog", func(context.Context) error { return nil }}
	r.cfg.Ready = []Probe{good}
	r.want(t, ann, "GET", "/readyz", "", 200, `"status":"ready"`, `{"name":"catalog","ok":true}`)
	r.cfg.Ready = []Probe{
		good,
		{"store", func(context.Context) error { return errors.New("the disk is full") }},
		{"trail", func(context.Context) error { panic("broken") }},
	}
	r.want(t, root, "GET", "/readyz", "", 503, `"code":"not-ready"`, "not ready: store, trail", `{"name":"store","ok":false,"error":"the disk is full"}`, `"error":"the check broke"`)
	if body := r.ask(ann, "GET", "/readyz", "").Body.String(); strings.Contains(body, "disk") {
		t.Errorf("whoever is no operator reads %s", body)
	}
}

// TestReadyDoesNotWait: a check that hangs says no.
func TestReadyDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		r := &rig{cfg: Config{Ready: []Probe{{"store", func(context.Context) error { <-end; return nil }}}}}
		began := time.Now()
		r.want(t, root, "GET", "/readyz", "", 503, `"name":"store","ok":false`, "not answered within 3 s")
		if took := time.Since(began); took != patience {
			t.Errorf("it took %v, want %v", took, patience)
		}
		close(end)
	})
}

func TestMe(t *testing.T) {
	r := newRig(t)
	r.want(t, root, "GET", "/api/v1/me", "", 200, `"id":"root"`, `"name":"Root"`, `"operator":true,"decides":true,"signOut":true`, `"model":""`, `"modes":[]`, `"intents":[]`, `"capabilityCount":2`, `"workspace":"/work"`)
	r.cfg.Model = func() (string, int) { return "p/m", 200_000 }
	r.cfg.Modes = func() []string { return []string{"ask", "code"} }
	// What an intern does not see is not counted for them.
	r.want(t, ann, "GET", "/api/v1/me", "", 200, `"id":"ann","tenant":"acme","operator":false,"decides":true,"signOut":false`, `"model":"p/m","window":200000`, `"modes":["ask","code"]`, `"capabilityCount":1`, `"workspace":""`)
}

// TestAgent: an agent is told that it is one, and changes nothing of the whole,
// though it works for one who runs it.
func TestAgent(t *testing.T) {
	r := newRig(t)
	agent := root
	agent.Decides = false
	r.want(t, agent, "GET", "/api/v1/me", "", 200, `"operator":true,"decides":false`)
	for _, change := range [][2]string{{"/api/v1/settings/model", `{"value":"p/m"}`}, {"/api/v1/prices/a/b", `{"input":1,"output":1,"cachedRead":1,"cacheWrite":1}`}} {
		r.want(t, agent, "PUT", change[0], change[1], 403, `"code":"person-decides"`, "open the page")
	}
}

// TestOperatorsOnly: what is about the whole is for those who run it.
func TestOperatorsOnly(t *testing.T) {
	r := newRig(t)
	r.cfg.Settings = func() []Setting { return []Setting{{Key: "a", Value: "hush"}} }
	for _, route := range Routes(r.cfg) {
		target := strings.NewReplacer("{key}", "a", "{model...}", "m").Replace(route.Path)
		open := slices.Contains([]string{"/healthz", "/readyz", "/api/v1/me"}, route.Path)
		if route.Operator == open {
			t.Errorf("%s: operators only = %v", route.Path, route.Operator)
		}
		if !open {
			body := ""
			if route.Body != nil {
				body = "{}"
			}
			r.want(t, ann, route.Method, target, body, 403, `"code":"operator-only"`)
		}
	}
}

// TestWhatIsNotThere: a part that is not configured is told as such.
func TestWhatIsNotThere(t *testing.T) {
	r := &rig{}
	for _, target := range []string{"/metrics", "/api/v1/settings", "/api/v1/doctor", "/api/v1/insights", "/api/v1/prices"} {
		r.want(t, root, "GET", target, "", 404, `"code":"not-served"`)
	}
	r.want(t, root, "PUT", "/api/v1/settings/a", `{"value":"1"}`, 404, `"code":"not-served"`)
	r.want(t, root, "PUT", "/api/v1/prices/m", `{"input":1}`, 404, `"code":"not-served"`)
	r.want(t, root, "GET", "/api/v1/me", "", 200, `"capabilityCount":0`)
}

// TestSettings: a value is checked before it is written, and what cannot be
// changed here says why not. The script api_system has the changes.
func TestSettings(t *testing.T) {
	r := newRig(t)
	all := []Setting{
		{Key: "chat.steps", Value: "50", Origin: "default", Writable: true, About: "Requests of a turn"},
		{Key: "serve.addr", Value: "127.0.0.1:7777", Origin: "ken.yaml:3", Why: "it is read when ken serve starts"},
		{Key: "policy.profile", Value: "personal", Origin: "default"},
	}
	r.cfg.Settings = func() []Setting { return all }
	r.cfg.Set = func(_ context.Context, who auth.Identity, key, value string) (Changed, error) {
		if value == "many" {
			return Changed{}, &capability.Error{Kind: capability.Invalid, Op: "set", Target: key, Err: errors.New("many is not a number"), Fix: "write a number"}
		}
		all[0].Value, all[0].Origin = value, "ken.yaml:9"
		return Changed{Restart: true, Warning: "too many"}, nil
	}
	r.want(t, root, "POST", "/api/v1/settings/chat.steps/check", `{"value":"many"}`, 404, `"code":"not-served"`)
	r.cfg.Check = func(key, value string) error {
		_, err := r.cfg.Set(t.Context(), root, key, value)
		return err
	}
	r.want(t, root, "POST", "/api/v1/settings/chat.steps/check", `{"value":"many"}`, 200, `{"fault":"many is not a number","fix":"write a number"}`)
	r.want(t, root, "POST", "/api/v1/settings/chat.steps/check", `{"value":"60"}`, 200, `{}`)
	r.want(t, root, "POST", "/api/v1/settings/chat.steps/check", `{}`, 400, `"code":"invalid"`)
	r.want(t, root, "POST", "/api/v1/settings/none/check", `{"value":"60"}`, 404, `"code":"not-found"`)
	r.want(t, root, "PUT", "/api/v1/settings/chat.steps", `{"value":"60"}`, 200, `"key":"chat.steps","value":"60","origin":"ken.yaml:9"`, `"restart":true`, `"warning":"too many"`)
	r.want(t, root, "PUT", "/api/v1/settings/chat.steps", `{"value":"many"}`, 400, `"code":"invalid"`, "many is not a number")
	r.want(t, root, "PUT", "/api/v1/settings/chat.steps", `{}`, 400, `"code":"invalid"`, "say what it shall be")
	r.want(t, root, "PUT", "/api/v1/settings/serve.addr", `{"value":"0.0.0.0:1"}`, 403, `"code":"read-only"`, "it is read when ken serve starts")
	r.want(t, root, "PUT", "/api/v1/settings/policy.profile", `{"value":"x"}`, 403, `"code":"read-only"`, "ken.yaml alone")
	if all[1].Value != "127.0.0.1:7777" || all[0].Value != "60" {
		t.Errorf("settings = %+v", all)
	}
}

// TestPrices: only what can be a price is taken. The script api_system has one
// that somebody wrote.
func TestPrices(t *testing.T) {
	r := newRig(t)
	table := map[string]outcome.Price{"a/b": {Model: "a/b", Input: 1}}
	r.cfg.Price = func(model string) (outcome.Price, bool) { p, ok := table[model]; return p, ok }
	r.cfg.SetPrice = func(_ context.Context, who auth.Identity, p outcome.Price) error {
		p.Source = "set by " + who.Principal.ID
		table[p.Model] = p
		return nil
	}
	const good = `{"input":2.5,"output":10,"cachedRead":0,"cacheWrite":9999}`
	for _, tt := range []struct{ target, body, part string }{
		{"a/b", `{"input":-1,"output":1,"cachedRead":1,"cacheWrite":1}`, "input is -1"},
		{"a/b", `{"input":1,"output":10000,"cachedRead":1,"cacheWrite":1}`, "output is 10000"},
		{"a/b", `{"input":1,"output":1,"cachedRead":1e999,"cacheWrite":1}`, "invalid body"},
		{"a/b", `{"input":1,"output":1,"cachedRead":1}`, "cacheWrite is missing"},
		{"a/b", `{"input":"1"}`, "invalid body"},
		{"a/b", `{"input":null,"output":1,"cachedRead":1,"cacheWrite":1}`, "input is missing"},
		{"a%0Ab", good, "the name has"},
		{"%20a", good, "spaces around"},
		{strings.Repeat("a", 201), good, "more than 200 bytes"},
		{"caf%C3%A9", good, "the name has"},
	} {
		r.want(t, root, "PUT", "/api/v1/prices/"+tt.target, tt.body, 400, `"code":"invalid"`, tt.part)
	}
	r.want(t, root, "PUT", "/api/v1/prices/new-model*", good, 200, `"model":"new-model*"`)
	if len(table) != 2 {
		t.Errorf("table = %v, want what was there and the new one", table)
	}
}

// TestMeFault: everybody is told that nothing may be called, for as long as that
// is so, and operators where it is to be mended.
func TestMeFault(t *testing.T) {
	r := newRig(t)
	r.cfg.Fault = func(operator bool) string {
		return map[bool]string{true: "ken.yaml:2: unknown key", false: "nothing may be called"}[operator]
	}
	r.want(t, root, "GET", "/api/v1/me", "", http.StatusOK, `"fault":"ken.yaml:2: unknown key"`)
	r.want(t, ann, "GET", "/api/v1/me", "", http.StatusOK, `"fault":"nothing may be called"`)
}
