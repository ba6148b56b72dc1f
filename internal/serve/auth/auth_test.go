package auth

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/testkit"
)

// owner runs the server of the tests.
func owner() Identity {
	return Identity{Principal: capability.Principal{ID: "someone", Tenant: "home", Roles: []string{"boss"}}, Name: "Some One", Operator: true, Decides: true}
}

func open(t testing.TB) *Tokens {
	t.Helper()
	return openIn(t, t.TempDir())
}

func openIn(t testing.TB, dir string) *Tokens {
	t.Helper()
	tokens := testkit.Must(Open(dir))(t)
	return tokens
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	all, agents := make([]string, 20), make([]string, 20)
	var opened sync.WaitGroup
	for i := range all {
		opened.Go(func() {
			tokens, err := Open(dir)
			if err != nil {
				t.Error(err)
				return
			}
			all[i], agents[i] = tokens.Token().Reveal(), tokens.Agent().Reveal()
		})
	}
	opened.Wait()
	for i, token := range all {
		if token != all[0] || agents[i] != agents[0] || len(token) != 43 || len(agents[i]) != 43 || token == agents[i] {
			t.Fatalf("Open at once has the tokens %q and %q, want two of 43 characters", all, agents)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the folder has %v, %v; want the tokens alone", entries, err)
	}
	for _, name := range []string{"token", "agent-token"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("the file %s is %v, %v; want mode 0600", name, info, err)
		}
	}
	tokens := open(t)
	if tokens.Token().Reveal() == all[0] {
		t.Error("two folders have one token")
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		text := fmt.Sprintf(verb, tokens)
		if strings.Contains(text, tokens.Token().Reveal()) || strings.Contains(text, tokens.Agent().Reveal()) {
			t.Errorf("Sprintf(%s) shows a token", verb)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("cannot here: modes do not say who can read")
	}
	good := random(32) + "\n"
	tests := []struct {
		name string
		make func(path string) error
		want string
	}{
		{"readable by the group", func(p string) error { return os.WriteFile(p, []byte(good), 0o640) }, "others may have read it"},
		{"readable by all", func(p string) error { return os.WriteFile(p, []byte(good), 0o604) }, "others may have read it"},
		{"a link", func(p string) error {
			other := p + "2"
			if err := os.WriteFile(other, []byte(good), 0o600); err != nil {
				return err
			}
			return os.Symlink(other, p)
		}, "too many levels"},
		{"a folder", func(p string) error { return os.Mkdir(p, 0o700) }, "not a regular file"},
		{"empty", func(p string) error { return os.WriteFile(p, nil, 0o600) }, "does not hold 32 bytes"},
		{"short", func(p string) error { return os.WriteFile(p, []byte(good[:20]), 0o600) }, "does not hold 32 bytes"},
		{"long", func(p string) error { return os.WriteFile(p, []byte(strings.Repeat(good, 1000)), 0o600) }, "does not hold 32 bytes"},
		{"with spaces", func(p string) error { return os.WriteFile(p, []byte(" "+good), 0o600) }, "does not hold 32 bytes"},
	}
	for _, file := range []string{"token", "agent-token"} {
		for _, tt := range tests {
			t.Run(file+" "+tt.name, func(t *testing.T) {
				dir := t.TempDir()
				testkit.OK(t, tt.make(filepath.Join(dir, file)))
				_, err := Open(dir)
				if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "remove it") || !strings.Contains(err.Error(), file) {
					t.Errorf("Open = %v, want %q and what to do", err, tt.want)
				}
				if err != nil && strings.Contains(err.Error(), good[:10]) {
					t.Errorf("the error %v shows the token", err)
				}
			})
		}
	}
	dir := t.TempDir()
	for _, file := range []string{"token", "agent-token"} {
		testkit.OK(t, os.WriteFile(filepath.Join(dir, file), []byte(good), 0o600))
	}
	if _, err := Open(dir); capability.KindOf(err) != capability.Denied || err == nil || !strings.Contains(err.Error(), "agent-token") {
		t.Errorf("Open with one token in both files = %v, want it refused", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none")); capability.KindOf(err) != capability.Unavailable {
		t.Errorf("Open without its folder = %v, want Unavailable", err)
	}
}

func TestCheck(t *testing.T) {
	tokens := open(t)
	g := newGuard(t, Config{Tokens: tokens, Loopback: true})
	right, start := tokens.Token().Reveal(), tokens.start.Reveal()
	wrong := random(32)
	tests := []struct {
		name   string
		header http.Header
		target string
		want   error
	}{
		{"nothing", nil, "/", errNoToken},
		{"bearer", http.Header{"Authorization": {"Bearer " + right}}, "/", nil},
		{"in other case", http.Header{"Authorization": {"bEARER  " + right}}, "/", nil},
		{"as clients of models do", http.Header{"X-Api-Key": {right}}, "/", nil},
		{"the start's", http.Header{"Authorization": {"Bearer " + start}}, "/", nil},
		{"the start's as a key", http.Header{"Api-Key": {start}}, "/", nil},
		{"as others do", http.Header{"Api-Key": {right}}, "/", nil},
		{"one right of two", http.Header{"X-Api-Key": {right}, "Authorization": {"Bearer " + wrong}}, "/", nil},
		{"wrong", http.Header{"Authorization": {"Bearer " + wrong}}, "/", errWrongToken},
		{"empty", http.Header{"Authorization": {"Bearer "}}, "/", errWrongToken},
		{"empty key", http.Header{"X-Api-Key": {""}}, "/", errWrongToken},
		{"its beginning", http.Header{"Authorization": {"Bearer " + right[:42]}}, "/", errWrongToken},
		{"more than it", http.Header{"Authorization": {"Bearer " + right + "x"}}, "/", errWrongToken},
		{"a space behind", http.Header{"Authorization": {"Bearer " + right + " "}}, "/", errWrongToken},
		{"without its scheme", http.Header{"Authorization": {right}}, "/", errWrongToken},
		{"in another scheme", http.Header{"Authorization": {"Basic " + right}}, "/", errWrongToken},
		{"twice", http.Header{"Authorization": {"Bearer " + right, "Bearer " + wrong}}, "/", errWrongToken},
		{"in the address", nil, "/?access_token=" + url.QueryEscape(right) + "&token=" + right, errNoToken},
		{"as a cookie", http.Header{"Cookie": {g.jar.name("", false) + "=" + right}}, "/", errWrongToken},
	}
	for _, tt := range tests {
		r := httptest.NewRequest("GET", tt.target, nil)
		for name, values := range tt.header {
			r.Header[name] = values
		}
		who, card, err := g.who(r)
		if err != tt.want || card != nil {
			t.Errorf("%s: who = %v, %v, want %v", tt.name, card, err, tt.want)
		}
		want := owner()
		want.Owner = true
		if err != nil && !reflect.DeepEqual(who, Identity{}) || err == nil && !reflect.DeepEqual(who, want) {
			t.Errorf("%s: who names %v beside %v", tt.name, who, err)
		}
	}
}

// A passed is what was let through last.
type passed struct {
	full Identity // with everything
	*http.Request
	who   Identity // but for Still, which cannot be compared
	still func() bool
}

// guarded serves 204 behind a guard and keeps the last request let through.
func guarded(t testing.TB, cfg Config) (h http.Handler, last *passed) {
	t.Helper()
	last = new(passed)
	if cfg.Owner.Principal.ID == "" {
		cfg.Owner = owner()
	}
	var mu sync.Mutex // requests may come at the same time
	h, err := Guard(HandlerFunc(func(w http.ResponseWriter, r *http.Request, who Identity) {
		mu.Lock()
		*last = passed{Request: r, who: who, still: who.Still}
		last.who.Still, last.who.Owner, last.who.Local, last.who.Began = nil, false, false, time.Time{} // TestOwner looks at these
		last.full = who
		mu.Unlock()
		w.WriteHeader(http.StatusNoContent)
	}), cfg)
	testkit.OK(t, err)
	return h, last
}

func newGuard(t testing.TB, cfg Config) *guard {
	t.Helper()
	h, _ := guarded(t, cfg)
	return h.(*guard)
}

// ask makes a request; headers are name, value, …
func ask(h http.Handler, method, target, host string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	r.Host = host
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// submit posts a form; headers are name, value, …
func submit(h http.Handler, path, form string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(form))
	r.Host = "localhost:7777"
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHost(t *testing.T) {
	h, _ := guarded(t, Config{Off: true, Loopback: true, Hosts: []string{"Ken.example", "192.0.2.7", "2001:DB8:0::7"}})
	tests := []struct {
		host string
		ok   bool
	}{
		{"localhost", true}, {"LocalHost:7777", true}, {"127.0.0.1", true}, {"127.0.0.1:7777", true}, {"127.8.9.1:1", true},
		{"[::1]", true}, {"[::1]:7777", true}, {"[0:0:0:0:0:0:0:1]:7", true}, {"[::ffff:127.0.0.1]", true},
		{"ken.example", true}, {"KEN.EXAMPLE:443", true}, {"192.0.2.7:80", true}, {"[2001:db8::7]", true},

		{"", false}, {":7777", false}, {"evil.example", false}, {"localhost.evil.example", false}, {"127.0.0.1.evil.example", false},
		{"evil.localhost", false}, {"xlocalhost", false}, {"localhost.", false}, {"ken.example.", false}, {"ken.example.evil", false}, {"sub.ken.example", false},
		{"0.0.0.0", false}, {"0.0.0.0:7777", false}, {"0", false}, {"[::]", false}, {"10.0.0.1", false}, {"192.0.2.8", false}, {"169.254.169.254", false},
		{"127.1", false}, {"2130706433", false}, {"0x7f000001", false}, {"0177.0.0.1", false}, {"127.0.0.1 ", false}, {" localhost", false},
		{"::1", false}, {"[::1", false}, {"[::1]x", false}, {"[::1]:", false}, {"[::1%25lo]", false}, {"[::1%lo]", false}, {"[127.0.0.1]", false}, {"[::2]", false},
		{"localhost:", false}, {"localhost:x", false}, {"localhost:99999", false}, {"localhost:+80", false}, {"localhost:080", false}, {"localhost:80:80", false}, {"localhost:-1", false},
		{"evil@localhost", false}, {"localhost@evil.example", false}, {"localhost/evil", false}, {"localhost#", false}, {"localhost?x", false},
		{"localhost,evil.example", false}, {"localhost\tevil", false}, {"localhost\x00", false}, {"loc\u0430lhost", false}, {"lo\u017fcalhost", false}, {"localho\u017ft", false},
	}
	for _, tt := range tests {
		w := ask(h, "GET", "/", tt.host)
		if want := map[bool]int{true: 204, false: 403}[tt.ok]; w.Code != want {
			t.Errorf("Host %q = %d, want %d", tt.host, w.Code, want)
		}
		if !tt.ok {
			wantProblem(t, w, "wrong-host")
		}
	}
}

func TestOrigin(t *testing.T) {
	h, _ := guarded(t, Config{Off: true, Loopback: true, Hosts: []string{"ken.example"}, Origins: []string{"https://tools.example", "http://localhost:6274", "vscode-webview://abc"}})
	tests := []struct {
		host, origin string
		ok           bool
	}{
		{"localhost:7777", "http://localhost:7777", true}, {"localhost:7777", "http://LOCALHOST:7777", true}, {"localhost:7777", "https://localhost:7777", true},
		{"127.0.0.1:7777", "http://127.0.0.1:7777", true}, {"[::1]:7777", "http://[::1]:7777", true}, {"localhost", "http://localhost", true}, {"localhost:80", "http://localhost", true},
		{"ken.example", "https://ken.example", true}, {"ken.example", "https://ken.example:443", true},
		{"localhost:7777", "https://tools.example", true}, {"localhost:7777", "http://localhost:6274", true}, {"localhost:7777", "vscode-webview://abc", true},

		{"localhost:7777", "null", false}, {"localhost:7777", "", false}, {"localhost:7777", "http://evil.example", false}, {"localhost:7777", "https://evil.example:7777", false},
		{"localhost:7777", "http://localhost", false}, {"localhost:7777", "http://localhost:7778", false}, {"localhost:7777", "http://127.0.0.1:7777", false},
		{"localhost:7777", "http://localhost:7777.evil.example", false}, {"localhost:7777", "http://localhost:7777@evil.example", false}, {"localhost:7777", "http://evil.example#localhost:7777", false},
		{"localhost:7777", "http://localhost:7777/", false}, {"localhost:7777", "http://localhost:7777 http://evil.example", false}, {"localhost:7777", "localhost:7777", false}, {"localhost:7777", "//localhost:7777", false},
		{"localhost:7777", "file://localhost:7777", false}, {"localhost:7777", "chrome-extension://localhost:7777", false}, {"localhost:7777", "file://", false},
		{"localhost:7777", "https://tools.example.evil", false}, {"localhost:7777", "https://tools.example:444", false}, {"localhost:7777", "http://tools.example", false}, {"localhost:7777", "https://xtools.example", false},
		{"localhost:7777", "vscode-webview://abcd", false}, {"ken.example", "http://localhost", false},
	}
	for _, tt := range tests {
		w := ask(h, "POST", "/mcp", tt.host, "Origin", tt.origin)
		if want := map[bool]int{true: 204, false: 403}[tt.ok]; w.Code != want {
			t.Errorf("Origin %q of %s = %d, want %d", tt.origin, tt.host, w.Code, want)
		}
		if !tt.ok {
			wantProblem(t, w, "wrong-origin")
		}
	}
	wantStatus(t, "two origins", 403, ask(h, "POST", "/mcp", "localhost", "Origin", "http://localhost", "Origin", "http://evil.example"))
}

func TestFetchSite(t *testing.T) {
	h, _ := guarded(t, Config{Off: true, Loopback: true, Origins: []string{"https://tools.example"}})
	tests := []struct {
		method, target string
		headers        []string
		want           int
	}{
		{"GET", "/api", []string{"Sec-Fetch-Site", "same-origin"}, 204},
		{"GET", "/api", []string{"Sec-Fetch-Site", "none"}, 204},
		{"GET", "/api", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/api", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"GET", "/api", []string{"Sec-Fetch-Site", "new-thing"}, 403},
		{"GET", "/api", []string{"Sec-Fetch-Site", ""}, 403},
		{"GET", "/api", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", "/api", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 204},
		{"GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{"GET", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, 403},
		{"POST", "/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 403},
		{"POST", "/api", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://tools.example"}, 204},
		{"POST", "/api", []string{"Sec-Fetch-Site", "same-origin", "Origin", "https://evil.example"}, 403},
	}
	for _, tt := range tests {
		wantStatus(t, fmt.Sprintf("%s %s with %v", tt.method, tt.target, tt.headers), tt.want, ask(h, tt.method, tt.target, "localhost", tt.headers...))
	}
}

// wantStatus holds an answer to its status.
func wantStatus(t *testing.T, what string, status int, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code != status {
		t.Errorf("%s = %d %s, want %d", what, w.Code, w.Body, status)
	}
}

func wantProblem(t *testing.T, w *httptest.ResponseRecorder, code string) {
	t.Helper()
	var doc struct {
		Type, Title, Code, Detail string
		Status                    int
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || doc.Code != code || doc.Status != w.Code || doc.Type == "" || doc.Title == "" || doc.Detail == "" ||
		w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("the answer is %s %s, want a problem document with the code %s", w.Header().Get("Content-Type"), w.Body, code)
	}
}

func TestGuardToken(t *testing.T) {
	tokens := open(t)
	h, last := guarded(t, Config{Tokens: tokens, Loopback: true, Origins: []string{"https://tools.example"}})
	right := tokens.Token().Reveal()
	for _, tt := range []struct {
		method, target string
		headers        []string
		want           int
	}{
		{"HEAD", "/", nil, 204}, {"HEAD", "/healthz", nil, 204}, {"GET", "/healthz", nil, 204},
		{"GET", "/", nil, 401}, {"POST", "/", nil, 401}, {"POST", "/healthz", nil, 401}, {"GET", "/healthz/", nil, 401}, {"GET", "/healthz/x", nil, 401}, {"GET", "/healthz/../api", nil, 401}, {"GET", "//", nil, 401},
		{"GET", "/assets/a.js", nil, 401}, {"HEAD", "/assets/a.js", nil, 401}, {"GET", "/favicon.ico", nil, 401}, {"HEAD", "//", nil, 401}, {"HEAD", "/index.html", nil, 401},
		{"GET", "/api", nil, 401}, {"POST", "/mcp", nil, 401}, {"OPTIONS", "/mcp", nil, 401},
		{"GET", "/api?access_token=" + right, nil, 401},
		{"GET", "/api", []string{"Authorization", "Bearer " + right}, 204},
		{"POST", "/v1/messages", []string{"X-Api-Key", right}, 204},
		{"POST", "/mcp", []string{"Origin", "https://tools.example"}, 401},
		{"POST", "/mcp", []string{"Origin", "https://tools.example", "Authorization", "Bearer " + right}, 204},
		{"POST", "/mcp", []string{"Origin", "https://evil.example", "Authorization", "Bearer " + right}, 403},
	} {
		h.(*guard).limits = newLimits(Rate{}, Rate{}, nil)
		*last = passed{}
		w := ask(h, tt.method, tt.target, "localhost", tt.headers...)
		if w.Code != tt.want {
			t.Errorf("%s %s with %v = %d, want %d", tt.method, tt.target, tt.headers, w.Code, tt.want)
		}
		if want := map[bool]Identity{true: owner()}[len(tt.headers) > 0]; w.Code == 204 && !reflect.DeepEqual(last.who, want) {
			t.Errorf("%s %s is made by %v, want %v", tt.method, tt.target, last.who, want)
		}
		if w.Code == 401 {
			wantProblem(t, w, "unauthorized")
			testkit.Equal(t, "WWW-Authenticate", w.Header().Get("WWW-Authenticate"), `Bearer realm="ken"`)
		}
	}
	w := ask(h, "GET", "/api", "localhost", "Authorization", "Bearer x")
	testkit.Equal(t, "WWW-Authenticate for a wrong token", w.Header().Get("WWW-Authenticate"), `Bearer realm="ken", error="invalid_token"`)

	// Nothing of ours goes on, all else does.
	ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+right, "X-Api-Key", right, "Api-Key", right, "Cookie", "ken_x=1; __Host-ken_x=2; theme=dark", "X-Other", "kept")
	if got := fmt.Sprint(last.Header); strings.Contains(got, right) || strings.Contains(got, "ken_") || !strings.Contains(got, "theme=dark") || !strings.Contains(got, "kept") {
		t.Errorf("behind the guard are the headers %s", strings.ReplaceAll(got, right, "TOKEN"))
	}
}

func TestPreflight(t *testing.T) {
	h, _ := guarded(t, Config{Tokens: open(t), Loopback: true, Origins: []string{"https://tools.example"}})
	w := ask(h, "OPTIONS", "/mcp", "localhost", "Origin", "https://tools.example", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,mcp-session-id")
	if w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != "https://tools.example" || w.Header().Get("Access-Control-Allow-Headers") != "authorization,mcp-session-id" || w.Header().Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("a listed site's question = %d %v", w.Code, w.Header())
	}
	w = ask(h, "OPTIONS", "/mcp", "localhost", "Origin", "https://evil.example", "Access-Control-Request-Method", "POST")
	if w.Code != 403 || w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another site's question = %d %v", w.Code, w.Header())
	}
}

func TestGuardRefusesToStart(t *testing.T) {
	tokens := open(t)
	for _, tt := range []struct {
		name string
		cfg  Config
		want string // empty: it starts
	}{
		{"zero", Config{}, "no token"},
		{"off, open to others", Config{Off: true, Hosts: []string{"ken.example"}}, "serve.auth: off"},
		{"open to others without a name", Config{Tokens: tokens}, "serve.hosts"},
		{"a host with a port", Config{Tokens: tokens, Loopback: true, Hosts: []string{"ken.example:80"}}, "serve.hosts"},
		{"every host", Config{Tokens: tokens, Loopback: true, Hosts: []string{"*"}}, "serve.hosts"},
		{"every origin", Config{Tokens: tokens, Loopback: true, Origins: []string{"*"}}, "serve.origins"},
		{"no origin", Config{Tokens: tokens, Loopback: true, Origins: []string{"null"}}, "serve.origins"},
		{"an origin with a path", Config{Tokens: tokens, Loopback: true, Origins: []string{"https://a.example/"}}, "serve.origins"},
		{"nobody runs it", Config{Tokens: tokens, Loopback: true}, "missing owner"},
		{"off, with an issuer", Config{Off: true, Loopback: true, OIDC: &OIDCConfig{Issuer: "https://id.example", ClientID: "ken"}}, "serve.auth: off"},
		{"an issuer over http", Config{Tokens: tokens, Loopback: true, OIDC: &OIDCConfig{Issuer: "http://id.example", ClientID: "ken"}}, "serve.oidc"},
		{"an issuer that is none", Config{Tokens: tokens, Loopback: true, OIDC: &OIDCConfig{Issuer: "https://id.example/?x=1", ClientID: "ken"}}, "serve.oidc"},
		{"an issuer without a client", Config{Tokens: tokens, Loopback: true, OIDC: &OIDCConfig{Issuer: "https://id.example"}}, "clientID"},
		{"less than nothing", Config{Tokens: tokens, Loopback: true, Rate: Rate{Requests: -1}}, "serve.rate"},
		{"with an issuer", Config{Tokens: tokens, Loopback: true, OIDC: &OIDCConfig{Issuer: "https://id.example/realm", ClientID: "ken"}}, ""},
		{"with one on this machine", Config{Tokens: tokens, Loopback: true, OIDC: &OIDCConfig{Issuer: "http://127.0.0.1:9", ClientID: "ken"}}, ""},
		{"off on loopback", Config{Off: true, Loopback: true}, ""},
		{"on loopback", Config{Tokens: tokens, Loopback: true}, ""},
		{"open to others", Config{Tokens: tokens, Hosts: []string{"ken.example", "::2", "[::3]"}}, ""},
	} {
		if tt.name != "nobody runs it" {
			tt.cfg.Owner = owner()
		}
		_, err := Guard(HandlerFunc(func(http.ResponseWriter, *http.Request, Identity) {}), tt.cfg)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || capability.KindOf(err) != capability.Denied) {
			t.Errorf("%s: Guard = %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestFailuresAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := open(t)
		h, _ := guarded(t, Config{Tokens: tokens, Loopback: true})
		count := func() (n int) {
			for ask(h, "GET", "/", "localhost", "Authorization", "Bearer x").Code == 401 {
				n++
			}
			return n
		}
		testkit.Equal(t, "failures are answered at once", count(), burst)
		w := ask(h, "GET", "/", "localhost")
		if wantProblem(t, w, "too-many-attempts"); w.Code != 429 || w.Header().Get("Retry-After") == "" {
			t.Errorf("one more = %d %v", w.Code, w.Header())
		}
		wantStatus(t, "the right token meanwhile", 204, ask(h, "GET", "/", "localhost", "Authorization", "Bearer "+tokens.Token().Reveal()))
		time.Sleep(3*refill + refill/2)
		testkit.Equal(t, "failures are answered after the time of 3.5", count(), 3)
		time.Sleep(refill / 2)
		testkit.Equal(t, "failures are answered when the half is whole", count(), 1)
		time.Sleep(time.Hour)
		testkit.Equal(t, "failures are answered after an hour", count(), burst)
	})
}

// FuzzHost holds the host check against the addresses that mean this machine.
func FuzzHost(f *testing.F) {
	for _, s := range []string{"localhost", "127.0.0.1:1", "[::1]:7777", "evil.example", "localhost@evil", "[::ffff:7f00:1]"} {
		f.Add(s)
	}
	g := &guard{}
	f.Fuzz(func(t *testing.T, host string) {
		if !g.ours(host) {
			return
		}
		u, err := url.Parse("http://" + host + "/")
		if err != nil {
			t.Fatalf("ours(%q), which is in no address: %v", host, err)
		}
		if name := u.Hostname(); !strings.EqualFold(name, "localhost") && !net.ParseIP(name).IsLoopback() {
			t.Errorf("ours(%q), whose name is %q", host, name)
		}
	})
}
