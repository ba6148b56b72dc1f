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
)

var someone = capability.Principal{ID: "someone"}

func open(t testing.TB) *Tokens {
	t.Helper()
	tokens, err := Open(t.TempDir(), someone)
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	all := make([]string, 20)
	var opened sync.WaitGroup
	for i := range all {
		opened.Go(func() {
			tokens, err := Open(dir, someone)
			if err != nil {
				t.Error(err)
				return
			}
			all[i] = tokens.Token().Reveal()
		})
	}
	opened.Wait()
	for _, token := range all {
		if token != all[0] || len(token) != 43 {
			t.Fatalf("Open at once has the tokens %q, want one of 43 characters", all)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v; want the token alone", entries, err)
	}
	info, err := os.Stat(filepath.Join(dir, "token"))
	if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v; want mode 0600", info, err)
	}
	tokens := open(t)
	if tokens.Token().Reveal() == all[0] {
		t.Error("two folders have one token")
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, tokens); strings.Contains(text, tokens.Token().Reveal()) {
			t.Errorf("Sprintf(%s) shows the token", verb)
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
		{"a folder", func(p string) error { return os.Mkdir(p, 0o700) }, "no file"},
		{"empty", func(p string) error { return os.WriteFile(p, nil, 0o600) }, "does not hold 32 bytes"},
		{"short", func(p string) error { return os.WriteFile(p, []byte(good[:20]), 0o600) }, "does not hold 32 bytes"},
		{"long", func(p string) error { return os.WriteFile(p, []byte(strings.Repeat(good, 1000)), 0o600) }, "does not hold 32 bytes"},
		{"with spaces", func(p string) error { return os.WriteFile(p, []byte(" "+good), 0o600) }, "does not hold 32 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := tt.make(filepath.Join(dir, "token")); err != nil {
				t.Fatal(err)
			}
			_, err := Open(dir, someone)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "remove it") {
				t.Errorf("Open = %v, want %q and what to do", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), good[:10]) {
				t.Errorf("the error %v shows the token", err)
			}
		})
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), someone); capability.KindOf(err) != capability.Unavailable {
		t.Errorf("Open without its folder = %v, want Unavailable", err)
	}
}

func TestCheck(t *testing.T) {
	tokens := open(t)
	right := tokens.Token().Reveal()
	wrong := random(32)
	tests := []struct {
		name   string
		header http.Header
		target string
		want   error
	}{
		{"nothing", nil, "/", ErrNoToken},
		{"bearer", http.Header{"Authorization": {"Bearer " + right}}, "/", nil},
		{"in other case", http.Header{"Authorization": {"bEARER  " + right}}, "/", nil},
		{"as clients of models do", http.Header{"X-Api-Key": {right}}, "/", nil},
		{"as others do", http.Header{"Api-Key": {right}}, "/", nil},
		{"one right of two", http.Header{"X-Api-Key": {right}, "Authorization": {"Bearer " + wrong}}, "/", nil},
		{"wrong", http.Header{"Authorization": {"Bearer " + wrong}}, "/", ErrWrongToken},
		{"empty", http.Header{"Authorization": {"Bearer "}}, "/", ErrWrongToken},
		{"empty key", http.Header{"X-Api-Key": {""}}, "/", ErrWrongToken},
		{"its beginning", http.Header{"Authorization": {"Bearer " + right[:42]}}, "/", ErrWrongToken},
		{"more than it", http.Header{"Authorization": {"Bearer " + right + "x"}}, "/", ErrWrongToken},
		{"a space behind", http.Header{"Authorization": {"Bearer " + right + " "}}, "/", ErrWrongToken},
		{"without its scheme", http.Header{"Authorization": {right}}, "/", ErrWrongToken},
		{"in another scheme", http.Header{"Authorization": {"Basic " + right}}, "/", ErrWrongToken},
		{"twice", http.Header{"Authorization": {"Bearer " + right, "Bearer " + wrong}}, "/", ErrWrongToken},
		{"in the address", nil, "/?access_token=" + url.QueryEscape(right) + "&token=" + right, ErrNoToken},
		{"as a cookie", http.Header{"Cookie": {CookieName + "=" + right}}, "/", ErrWrongToken},
	}
	for _, tt := range tests {
		r := httptest.NewRequest("GET", tt.target, nil)
		for name, values := range tt.header {
			r.Header[name] = values
		}
		who, err := tokens.Check(r)
		if err != tt.want {
			t.Errorf("%s: Check = %v, want %v", tt.name, err, tt.want)
		}
		if want := (capability.Principal{}); err != nil && !reflect.DeepEqual(who, want) || err == nil && !reflect.DeepEqual(who, someone) {
			t.Errorf("%s: Check names %v beside %v", tt.name, who, err)
		}
	}
}

// guarded serves 204 behind a guard and keeps the last request let through.
func guarded(t *testing.T, cfg Config) (h http.Handler, last *http.Request) {
	t.Helper()
	last = new(http.Request)
	h, err := Guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last = *r
		w.WriteHeader(http.StatusNoContent)
	}), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h, last
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
	if w := ask(h, "POST", "/mcp", "localhost", "Origin", "http://localhost", "Origin", "http://evil.example"); w.Code != 403 {
		t.Errorf("two origins = %d, want 403", w.Code)
	}
}

func TestFetchSite(t *testing.T) {
	h, _ := guarded(t, Config{Off: true, Loopback: true, Origins: []string{"https://tools.example"}, Public: []string{"/"}})
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
		if w := ask(h, tt.method, tt.target, "localhost", tt.headers...); w.Code != tt.want {
			t.Errorf("%s %s with %v = %d, want %d", tt.method, tt.target, tt.headers, w.Code, tt.want)
		}
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
	h, last := guarded(t, Config{Tokens: tokens, Loopback: true, Public: []string{"/", "/healthz", "/static/"}, Origins: []string{"https://tools.example"}})
	right := tokens.Token().Reveal()
	for _, tt := range []struct {
		method, target string
		headers        []string
		want           int
	}{
		{"GET", "/", nil, 204}, {"HEAD", "/healthz", nil, 204}, {"GET", "/static/a/b.js", nil, 204},
		{"POST", "/", nil, 401}, {"GET", "/healthz/x", nil, 401}, {"GET", "/static", nil, 401}, {"GET", "/static/../api", nil, 401}, {"GET", "/static/%2e%2e/api", nil, 401}, {"GET", "//", nil, 401},
		{"GET", "/api", nil, 401}, {"POST", "/mcp", nil, 401}, {"OPTIONS", "/mcp", nil, 401},
		{"GET", "/api?access_token=" + right, nil, 401},
		{"GET", "/api", []string{"Authorization", "Bearer " + right}, 204},
		{"POST", "/v1/messages", []string{"X-Api-Key", right}, 204},
		{"POST", "/mcp", []string{"Origin", "https://tools.example"}, 401},
		{"POST", "/mcp", []string{"Origin", "https://tools.example", "Authorization", "Bearer " + right}, 204},
		{"POST", "/mcp", []string{"Origin", "https://evil.example", "Authorization", "Bearer " + right}, 403},
	} {
		tokens.failures = bucket{}
		w := ask(h, tt.method, tt.target, "localhost", tt.headers...)
		if w.Code != tt.want {
			t.Errorf("%s %s with %v = %d, want %d", tt.method, tt.target, tt.headers, w.Code, tt.want)
		}
		if w.Code == 401 {
			wantProblem(t, w, "unauthorized")
			if got := w.Header().Get("WWW-Authenticate"); got != `Bearer realm="ken"` {
				t.Errorf("WWW-Authenticate = %s", got)
			}
		}
	}
	w := ask(h, "GET", "/api", "localhost", "Authorization", "Bearer x")
	if got := w.Header().Get("WWW-Authenticate"); got != `Bearer realm="ken", error="invalid_token"` {
		t.Errorf("WWW-Authenticate for a wrong token = %s", got)
	}

	// Nothing of ours goes on, all else does.
	ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+right, "X-Api-Key", right, "Api-Key", right, "Cookie", CookieName+"=x; theme=dark", "X-Other", "kept")
	if got := fmt.Sprint(last.Header); strings.Contains(got, right) || strings.Contains(got, CookieName) || !strings.Contains(got, "theme=dark") || !strings.Contains(got, "kept") {
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
		{"off on loopback", Config{Off: true, Loopback: true}, ""},
		{"on loopback", Config{Tokens: tokens, Loopback: true}, ""},
		{"open to others", Config{Tokens: tokens, Hosts: []string{"ken.example", "::2", "[::3]"}}, ""},
	} {
		_, err := Guard(http.NotFoundHandler(), tt.cfg)
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
		if got := count(); got != burst {
			t.Errorf("%d failures are answered at once, want %d", got, burst)
		}
		w := ask(h, "GET", "/", "localhost")
		if wantProblem(t, w, "too-many-attempts"); w.Code != 429 || w.Header().Get("Retry-After") == "" {
			t.Errorf("one more = %d %v", w.Code, w.Header())
		}
		if w := ask(h, "GET", "/", "localhost", "Authorization", "Bearer "+tokens.Token().Reveal()); w.Code != 204 {
			t.Errorf("the right token meanwhile = %d, want 204", w.Code)
		}
		time.Sleep(3*refill + refill/2)
		if got := count(); got != 3 {
			t.Errorf("%d failures are answered after the time of 3.5, want 3", got)
		}
		time.Sleep(refill / 2)
		if got := count(); got != 1 {
			t.Errorf("%d failures are answered when the half is whole, want 1", got)
		}
		time.Sleep(time.Hour)
		if got := count(); got != burst {
			t.Errorf("%d failures are answered after an hour, want %d", got, burst)
		}
	})
}

// enter gives the code of a link for a cookie.
func enter(h http.Handler, code string, headers ...string) (cookie string, status int) {
	r := httptest.NewRequest("POST", ExchangePath, strings.NewReader(`{"code":"`+code+`"}`))
	r.Host = "localhost"
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.Name == CookieName && c.HttpOnly && c.SameSite == http.SameSiteStrictMode && c.Path == "/" && c.Domain == "" {
			cookie = c.Name + "=" + c.Value
		}
	}
	return cookie, w.Code
}

func code(t *testing.T, link string) string {
	t.Helper()
	u, err := url.Parse(link)
	c, ok := strings.CutPrefix(u.Fragment, "code=")
	if err != nil || !ok || u.RawQuery != "" || strings.Contains(u.Path, c) {
		t.Fatalf("Link = %s, want the code in the fragment alone", link)
	}
	return c
}

func TestLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := open(t)
		h, _ := guarded(t, Config{Tokens: tokens, Loopback: true, Origins: []string{"https://tools.example"}})
		const base = "http://localhost:7777/"
		if strings.Contains(tokens.Link(base), tokens.Token().Reveal()) {
			t.Error("Link shows the token")
		}
		c := code(t, tokens.Link(base))
		cookie, status := enter(h, c)
		if cookie == "" || status != 204 {
			t.Fatalf("the exchange = %q, %d", cookie, status)
		}
		if _, status := enter(h, c); status != 401 {
			t.Errorf("the same code again = %d, want 401", status)
		}
		if w := ask(h, "GET", "/api", "localhost", "Cookie", cookie); w.Code != 204 {
			t.Errorf("with the cookie = %d, want 204", w.Code)
		}
		if w := ask(h, "POST", "/api", "localhost", "Cookie", cookie, "Origin", "https://tools.example"); w.Code != 401 {
			t.Errorf("with the cookie, from a listed site = %d, want 401", w.Code)
		}
		if w := ask(h, "POST", "/api", "localhost", "Cookie", cookie, "Sec-Fetch-Site", "same-site"); w.Code != 403 {
			t.Errorf("with the cookie, from another port = %d, want 403", w.Code)
		}
		if w := ask(h, "GET", "/api", "localhost", "Cookie", cookie, "Authorization", "Bearer x"); w.Code != 401 {
			t.Errorf("with the cookie and a wrong token = %d, want 401", w.Code)
		}

		late := code(t, tokens.Link(base))
		time.Sleep(codeLife)
		if _, status := enter(h, late); status != 401 {
			t.Errorf("a code after its time = %d, want 401", status)
		}
		first := code(t, tokens.Link(base))
		for range mostCodes {
			tokens.Link(base)
		}
		if _, status := enter(h, first); status != 401 {
			t.Errorf("a code with %d after it = %d, want 401", mostCodes, status)
		}
		if _, status := enter(h, code(t, tokens.Link(base)), "Origin", "https://evil.example"); status != 403 {
			t.Errorf("an exchange from another site = %d, want 403", status)
		}
		if w := ask(h, "POST", ExchangePath, "localhost"); w.Code != 400 {
			t.Errorf("an exchange of nothing = %d, want 400", w.Code)
		}
		time.Sleep(browserLife)
		if w := ask(h, "GET", "/api", "localhost", "Cookie", cookie); w.Code != 401 {
			t.Errorf("with the cookie after its time = %d, want 401", w.Code)
		}
	})
}

// TestCodeOnce: of many browsers with one code, one is let in.
func TestCodeOnce(t *testing.T) {
	tokens := open(t)
	h, _ := guarded(t, Config{Tokens: tokens, Loopback: true})
	c := code(t, tokens.Link("http://localhost/"))
	in := make([]bool, 20)
	var all sync.WaitGroup
	for i := range in {
		all.Go(func() {
			cookie, _ := enter(h, c)
			in[i] = cookie != ""
		})
	}
	all.Wait()
	n := 0
	for _, ok := range in {
		if ok {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d browsers got in with one code, want 1", n)
	}
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

func BenchmarkGuard(b *testing.B) {
	tokens := open(b)
	h, err := Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Config{Tokens: tokens, Loopback: true})
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/mcp", nil)
	r.Host = "127.0.0.1:7777"
	r.Header.Set("Authorization", "Bearer "+tokens.Token().Reveal())
	w := httptest.NewRecorder()
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(w, r)
	}
	if w.Code != 200 {
		b.Fatal(w.Code)
	}
}
