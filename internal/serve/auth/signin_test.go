package auth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ken/internal/secret"
	"ken/internal/testkit"
)

// cookieOf returns the cookie that an answer sets, as a request has it.
func cookieOf(t testing.TB, w *httptest.ResponseRecorder) (*http.Cookie, string) {
	t.Helper()
	var found *http.Cookie
	for _, c := range w.Result().Cookies() {
		if strings.Contains(c.Name, loginKind) {
			continue
		}
		if found != nil {
			t.Fatalf("two cookies are set: %v", w.Header())
		}
		found = c
	}
	if found == nil {
		return nil, ""
	}
	return found, found.Name + "=" + found.Value
}

// browserHeaders are those of a person's browser that goes to an address.
func browserHeaders(site string, more ...string) []string {
	return append([]string{"Accept", "text/html,application/xhtml+xml", "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, more...)
}

// entered signs a browser in by the link.
func entered(t testing.TB, h http.Handler, tokens *Tokens) string {
	t.Helper()
	u := testkit.Must(url.Parse(tokens.Link("http://localhost:7777")))(t)
	w := ask(h, "GET", u.RequestURI(), u.Host, browserHeaders("none")...)
	_, cookie := cookieOf(t, w)
	if w.Code != 303 || w.Header().Get("Location") != "/" || cookie == "" {
		t.Fatalf("GET of the link = %d %v, want 303 to / with a cookie", w.Code, w.Header())
	}
	return cookie
}

func TestLink(t *testing.T) {
	tokens := open(t)
	h, last := guarded(t, Config{Tokens: tokens, Loopback: true})
	for _, base := range []string{"http://127.0.0.1:7777", "http://127.0.0.1:7777/", "http://127.0.0.1:7777/?x=1#y"} {
		if got, want := tokens.Link(base), "http://127.0.0.1:7777/?token="+tokens.start.Reveal(); got != want {
			t.Errorf("Link(%s) = %s, want %s", base, got, want)
		}
	}
	if strings.Contains(tokens.Link("http://localhost"), tokens.Token().Reveal()) {
		t.Error("Link shows the token of the file")
	}
	for _, token := range []string{tokens.start.Reveal(), tokens.Token().Reveal()} {
		for range 2 { // it works in any browser, as often as it is opened
			w := ask(h, "GET", "/?token="+token, "127.0.0.1:7777", browserHeaders("none")...)
			c, cookie := cookieOf(t, w)
			if w.Code != 303 || w.Header().Get("Location") != "/" || w.Header().Get("Referrer-Policy") != "no-referrer" || w.Header().Get("Cache-Control") != "no-store" || strings.Contains(w.Body.String(), token) {
				t.Fatalf("GET /?token= = %d %v %s, want 303 to / without it", w.Code, w.Header(), w.Body)
			}
			if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.Secure || c.MaxAge != int(browserLife.Seconds()) {
				t.Errorf("the cookie is %v", c)
			}
			want := owner()
			want.SignedIn, want.Person = true, true
			if w := ask(h, "GET", "/api", "localhost", "Cookie", cookie); w.Code != 204 || !reflect.DeepEqual(last.who, want) {
				t.Errorf("with the cookie = %d by %v, want 204 by %v", w.Code, last.who, want)
			}
		}
	}

	// From a page of another site, the cookie would not come with a redirect.
	w := ask(h, "GET", "/?token="+tokens.start.Reveal(), "localhost", browserHeaders("cross-site")...)
	if _, cookie := cookieOf(t, w); w.Code != 200 || cookie == "" || !strings.Contains(w.Body.String(), `content="0;url=/"`) {
		t.Errorf("the link on another site = %d %s", w.Code, w.Body)
	}
	w = ask(h, "GET", "/", "localhost", browserHeaders("cross-site")...)
	if _, cookie := cookieOf(t, w); w.Code != 200 || cookie != "" || !strings.Contains(w.Body.String(), `content="0;url=/"`) {
		t.Errorf("a link to the page on another site = %d %s", w.Code, w.Body)
	}
	if w = ask(h, "GET", "/", "localhost", browserHeaders("same-origin")...); w.Code != 401 {
		t.Errorf("what it leads to, without a cookie = %d, want 401", w.Code)
	}

	// The token is looked at in no other address, and never twice.
	right := tokens.start.Reveal()
	for _, tt := range []struct {
		method, target string
		page           bool
	}{
		{"GET", "/?token=" + random(32), true}, {"GET", "/?token=", true}, {"GET", "/?token=" + right + "&token=" + right, true}, {"GET", "/?token=" + right[:42], true},
		{"POST", "/?token=" + right, false}, {"GET", "/api?token=" + right, false}, {"GET", "//?token=" + right, false}, {"GET", "/index.html?token=" + right, false},
		{"POST", SignInPath + "?token=" + right, false},
	} {
		h.(*guard).limits = newLimits(Rate{}, Rate{}, nil)
		w := ask(h, tt.method, tt.target, "localhost", "Content-Type", "application/x-www-form-urlencoded", "Sec-Fetch-Site", "same-origin")
		if _, cookie := cookieOf(t, w); w.Code != 401 || cookie != "" {
			t.Errorf("%s %s = %d %v, want 401 without a cookie", tt.method, tt.target, w.Code, w.Header())
		}
		if isPage := strings.Contains(w.Body.String(), "<form"); tt.page && !isPage {
			t.Errorf("%s %s = %s, want a page", tt.method, tt.target, w.Body)
		}
	}

	if w := ask(h, "HEAD", "/?token="+right, "localhost"); w.Code != 204 || strings.Contains(last.URL.String()+last.RequestURI, right) || !reflect.DeepEqual(last.who, Identity{}) {
		t.Errorf("HEAD of the link = %d of %v by %v, want 204 without the token by nobody", w.Code, last.URL, last.who)
	}

	again := openIn(t, filepath.Dir(tokens.Path()))
	later, _ := guarded(t, Config{Tokens: again, Loopback: true})
	wantStatus(t, "the link after a restart", 401, ask(later, "GET", "/?token="+right, "localhost"))
}

// TestOff: with no token asked for, everything is the owner's, and an old link
// leaves nothing in the address.
func TestOff(t *testing.T) {
	h, last := guarded(t, Config{Off: true, Loopback: true})
	for _, target := range []string{"/", "/api", "/healthz", LogoutPath} {
		if w := ask(h, "GET", target, "localhost"); w.Code != 204 || !reflect.DeepEqual(last.who, owner()) {
			t.Errorf("GET %s = %d by %v, want 204 by the owner", target, w.Code, last.who)
		}
	}
	if w := ask(h, "GET", "/?token=x", "localhost"); w.Code != 303 || w.Header().Get("Location") != "/" {
		t.Errorf("GET /?token=x = %d %v, want 303 to /", w.Code, w.Header())
	}
}

// TestStill: what let somebody in is known to hold no more.
func TestStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := open(t)
		h, last := guarded(t, Config{Tokens: tokens, Loopback: true})
		came := func(headers ...string) Identity {
			t.Helper()
			if w := ask(h, "GET", "/api", "localhost", headers...); w.Code != 204 {
				t.Fatalf("GET /api = %d %s", w.Code, w.Body)
			}
			return Identity{Still: last.still}
		}
		out, ends := entered(t, h, tokens), entered(t, h, tokens)
		owner, leaves, stays := came("Authorization", "Bearer "+tokens.Token().Reveal()), came("Cookie", out), came("Cookie", ends)
		ctx, cancel := leaves.While(t.Context())
		defer cancel()
		time.Sleep(time.Hour)
		if ctx.Err() != nil || !leaves.Still() {
			t.Error("a cookie that is good does not hold")
		}
		ask(h, "POST", LogoutPath, "localhost", "Cookie", out, "Origin", "http://localhost")
		if leaves.Still() || !stays.Still() {
			t.Errorf("after a sign-out it holds: %v, another's: %v; want false, true", leaves.Still(), stays.Still())
		}
		time.Sleep(5 * time.Second)
		if ctx.Err() == nil {
			t.Error("five seconds after a sign-out the context has not ended")
		}
		time.Sleep(browserLife)
		if stays.Still() {
			t.Error("a cookie holds after its end")
		}
		token := before(time.Now().Add(time.Hour))
		time.Sleep(time.Hour - 1)
		if !token() {
			t.Error("an issuer's token does not hold before its end")
		}
		time.Sleep(time.Nanosecond)
		if token() {
			t.Error("an issuer's token holds at its end")
		}
		if owner.Still != nil {
			t.Error("the owner's token has an end")
		}
	})
}

// TestRestart: a cookie outlives the process, and not the token file.
func TestRestart(t *testing.T) {
	tokens := open(t)
	first, _ := guarded(t, Config{Tokens: tokens, Loopback: true})
	cookie := entered(t, first, tokens)
	again := openIn(t, filepath.Dir(tokens.Path()))
	second, _ := guarded(t, Config{Tokens: again, Loopback: true})
	wantStatus(t, "after a restart", 204, ask(second, "GET", "/", "localhost", "Cookie", cookie))
	testkit.OK(t, os.Remove(tokens.Path()))
	fresh := openIn(t, filepath.Dir(tokens.Path()))
	third, _ := guarded(t, Config{Tokens: fresh, Loopback: true})
	_, value, _ := strings.Cut(cookie, "=")
	for _, name := range []string{cookie, third.(*guard).jar.name("", false) + "=" + value} {
		wantStatus(t, "with a new token file", 401, ask(third, "GET", "/", "localhost", "Cookie", name))
	}
	if third.(*guard).jar.suffix == first.(*guard).jar.suffix {
		t.Error("two token files have one cookie")
	}
}

func TestCookieLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := open(t)
		h, _ := guarded(t, Config{Tokens: tokens, Loopback: true})
		cookie := entered(t, h, tokens)
		get := func(target string) (int, string) {
			w := ask(h, "GET", target, "localhost", "Cookie", cookie)
			_, renewed := cookieOf(t, w)
			return w.Code, renewed
		}
		time.Sleep(browserLife / 2)
		if code, renewed := get("/"); code != 204 || renewed != "" {
			t.Errorf("after half of its life = %d %q, want 204 and no other", code, renewed)
		}
		time.Sleep(time.Second)
		if code, renewed := get("/assets/x.js"); code != 204 || renewed != "" {
			t.Errorf("a file, which may be cached = %d %q, want 204 and no other", code, renewed)
		}
		old := cookie
		for _, target := range []string{"/", "/api/v1/me"} {
			code, renewed := get(target)
			if code != 204 || renewed == "" || renewed == old {
				t.Fatalf("GET %s after more than half of its life = %d %q, want 204 and another cookie", target, code, renewed)
			}
			cookie = renewed
			time.Sleep(browserLife/2 + time.Second)
		}
		if w := ask(h, "GET", "/", "localhost", "Cookie", old); w.Code != 401 {
			t.Errorf("the first cookie after its life = %d, want 401", w.Code)
		} else {
			wantProblem(t, w, "expired-token")
		}

		// Renewing ends too.
		for began := time.Now(); time.Since(began) < 2*longestLife; time.Sleep(browserLife/2 + time.Minute) {
			code, renewed := get("/")
			if code == 401 {
				if gone := time.Since(began); gone < longestLife-2*browserLife {
					t.Errorf("the renewed cookie ended after %v", gone)
				}
				return
			}
			if renewed != "" {
				cookie = renewed
			}
		}
		t.Error("the renewed cookie has no end")
	})
}

func TestLogout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := open(t)
		h, _ := guarded(t, Config{Tokens: tokens, Loopback: true})
		cookie, other := entered(t, h, tokens), entered(t, h, tokens)
		time.Sleep(browserLife/2 + time.Second)
		_, renewed := cookieOf(t, ask(h, "GET", "/", "localhost", "Cookie", cookie))

		wantStatus(t, "a sign-out from nowhere", 403, ask(h, "POST", LogoutPath, "localhost", "Cookie", cookie))
		if w := ask(h, "GET", LogoutPath, "localhost", "Cookie", cookie); w.Code != 204 || len(w.Result().Cookies()) > 1 {
			t.Errorf("GET %s = %d %v, want it to be no sign-out", LogoutPath, w.Code, w.Header())
		}
		w := ask(h, "POST", LogoutPath, "localhost", "Cookie", cookie, "Origin", "http://localhost")
		if c, _ := cookieOf(t, w); w.Code != 204 || c == nil || c.MaxAge >= 0 || c.Value != "" {
			t.Errorf("POST %s = %d %v, want the cookie taken away", LogoutPath, w.Code, w.Header())
		}
		for name, gone := range map[string]string{"the cookie": cookie, "the one it was renewed to": renewed} {
			wantStatus(t, fmt.Sprintf("%s after signing out", name), 401, ask(h, "GET", "/api", "localhost", "Cookie", gone))
		}
		wantStatus(t, "another browser's cookie then", 204, ask(h, "GET", "/api", "localhost", "Cookie", other))
		wantStatus(t, "a form that signs out", 303, ask(h, "POST", LogoutPath, "localhost", browserHeaders("same-origin")...))
		// As long as a copy could live, it is remembered.
		time.Sleep(browserLife - time.Second)
		wantStatus(t, "the renewed cookie much later", 401, ask(h, "GET", "/api", "localhost", "Cookie", renewed))
	})
}

// TestVoidsAreBounded: too many sign-outs sign everybody out rather than let one
// back in.
func TestVoidsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v voids
		given := time.Now().Unix()
		for i := range mostVoid {
			v.add(strconv.Itoa(i), time.Now().Add(time.Hour))
		}
		if !v.has("0", given, time.Now()) || v.has("other", given, time.Now()) {
			t.Fatal("voids has not what was added, or more")
		}
		time.Sleep(2 * time.Second)
		v.add("last", time.Now().Add(time.Hour))
		for _, s := range []string{"0", "last", "other"} {
			if !v.has(s, given, time.Now()) {
				t.Errorf("voids lets %s back in when it is full", s)
			}
		}
		if v.has("fresh", time.Now().Unix()+1, time.Now()) || len(v.until) > mostVoid {
			t.Errorf("voids has %d and those given later", len(v.until))
		}
		time.Sleep(2 * time.Hour)
		for i := range 2 * mostVoid {
			v.add(strconv.Itoa(i), time.Now()) // over at once
		}
		if len(v.until) > mostVoid || v.has("fresh", time.Now().Unix(), time.Now()) {
			t.Errorf("voids keeps %d that are over", len(v.until))
		}
	})
}

func TestCSRF(t *testing.T) {
	tokens := open(t)
	h, _ := guarded(t, Config{Tokens: tokens, Loopback: true, Origins: []string{"https://tools.example"}})
	cookie := entered(t, h, tokens)
	for _, tt := range []struct {
		method  string
		headers []string
		want    int
	}{
		{"GET", nil, 204}, {"HEAD", nil, 204},
		{"POST", nil, 403}, {"PUT", nil, 403}, {"PATCH", nil, 403}, {"DELETE", nil, 403}, {"OPTIONS", nil, 403},
		{"POST", []string{"Origin", "http://localhost:7777"}, 204}, {"DELETE", []string{"Sec-Fetch-Site", "same-origin"}, 204},
		{"POST", []string{"Origin", "http://localhost:7777", "Sec-Fetch-Site", "same-origin"}, 204},
		{"POST", []string{"Sec-Fetch-Site", "none"}, 403}, {"POST", []string{"Sec-Fetch-Site", "same-site"}, 403}, {"POST", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"POST", []string{"Origin", "null"}, 403}, {"POST", []string{"Origin", ""}, 403}, {"POST", []string{"Origin", "http://localhost:7778"}, 403}, {"POST", []string{"Origin", "https://evil.example"}, 403},
		{"POST", []string{"Origin", "http://localhost:7777", "Sec-Fetch-Site", "cross-site"}, 403},
		{"GET", []string{"Origin", "https://tools.example"}, 401}, {"POST", []string{"Origin", "https://tools.example"}, 401},
		{"POST", []string{"Authorization", "Bearer " + tokens.Token().Reveal()}, 204},
		{"GET", []string{"Authorization", "Bearer x"}, 401},
	} {
		w := ask(h, tt.method, "/api/v1/x", "localhost:7777", append([]string{"Cookie", cookie}, tt.headers...)...)
		if w.Code != tt.want {
			t.Errorf("%s with the cookie and %v = %d, want %d", tt.method, tt.headers, w.Code, tt.want)
		}
		if w.Code == 403 {
			wantProblem(t, w, "wrong-origin")
		}
	}
}

func TestSignIn(t *testing.T) {
	tokens := open(t)
	h, _ := guarded(t, Config{Tokens: tokens, Loopback: true, Origins: []string{"https://tools.example"}})
	post := func(body string, headers ...string) *httptest.ResponseRecorder {
		return submit(h, SignInPath, body, headers...)
	}
	ours := []string{"Origin", "http://localhost:7777", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "navigate"}
	for _, right := range []string{tokens.Token().Reveal(), tokens.start.Reveal()} {
		w := post("token="+right, ours...)
		if _, cookie := cookieOf(t, w); w.Code != 303 || w.Header().Get("Location") != "/" || cookie == "" {
			t.Errorf("the form = %d %v, want 303 to / and a cookie", w.Code, w.Header())
		}
	}
	right := tokens.Token().Reveal()
	for _, tt := range []struct {
		name, body string
		headers    []string
		want       int
	}{
		{"a wrong token", "token=" + random(32), ours, 401}, {"none", "", ours, 401}, {"two", "token=" + right + "&token=" + right, ours, 401},
		{"from nowhere", "token=" + right, nil, 403}, {"from another site", "token=" + right, []string{"Origin", "https://evil.example"}, 403},
		{"as JSON", `{"token":"` + right + `"}`, append([]string{"Content-Type", "application/json"}, ours...), 415},
		{"a huge one", "token=" + strings.Repeat("x", 1<<20), ours, 400}, {"a broken one", "token=%zz", ours, 400},
	} {
		w := post(tt.body, tt.headers...)
		if _, cookie := cookieOf(t, w); w.Code != tt.want || cookie != "" || strings.Contains(w.Body.String(), right) {
			t.Errorf("%s = %d %v, want %d and no cookie", tt.name, w.Code, w.Header(), tt.want)
		}
		if w.Code == 401 && !strings.Contains(w.Body.String(), `role="alert"`) {
			t.Errorf("%s = %s, want a page that says so", tt.name, w.Body)
		}
	}
	w := post("token="+right, "Origin", "https://tools.example")
	if _, cookie := cookieOf(t, w); w.Code != 401 || cookie != "" {
		t.Errorf("from a listed site = %d %v, want 401 and no cookie", w.Code, w.Header())
	}
}

func TestSignInPage(t *testing.T) {
	tokens := open(t)
	h, _ := guarded(t, Config{Tokens: tokens, Loopback: true, OIDC: &OIDCConfig{Issuer: "https://id.example", ClientID: "ken", Name: `A & <b>"Co"</b>`}})
	w := ask(h, "GET", "/chat?a=&1", "localhost", browserHeaders("none")...)
	body, head := w.Body.String(), w.Header()
	if w.Code != 401 || head.Get("Content-Type") != "text/html; charset=utf-8" || head.Get("Cache-Control") != "no-store" || head.Get("WWW-Authenticate") != challenge {
		t.Errorf("GET /chat of a browser = %d %v, want a page", w.Code, head)
	}
	_, after, _ := strings.Cut(body, "<style>")
	inline, _, _ := strings.Cut(after, "</style>")
	sum := sha256.Sum256([]byte(inline))
	want := "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	if got := head.Get("Content-Security-Policy"); got != want || inline == "" {
		t.Errorf("the policy is %s, want %s", got, want)
	}
	// A form of a page with no-referrer has the origin null, which is refused.
	testkit.Equal(t, "Referrer-Policy", head.Get("Referrer-Policy"), "same-origin")
	for _, part := range []string{`<html lang="en">`, `name="viewport"`, `<label for="token">`, `<form method="post" action="/auth/signin">`, `href="/auth/login?next=%2Fchat%3Fa%3D%261"`, "A &amp; &lt;b&gt;"} {
		if !strings.Contains(body, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	for _, part := range []string{"<script", "style=", "onclick", "<b>", tokens.Path(), filepath.Dir(tokens.Path()), tokens.start.Reveal(), `role="alert"`} {
		if strings.Contains(body, part) {
			t.Errorf("the page has %s", part)
		}
	}
	for _, target := range []string{"/", "/?token=x", LoginPath + "x", "//evil.example/"} {
		if body := ask(h, "GET", target, "localhost", browserHeaders("none")...).Body.String(); !strings.Contains(body, `href="/auth/login"`) {
			t.Errorf("GET %s = %s, want a login that leads to /", target, body)
		}
	}
	for name, headers := range map[string][]string{
		"a script":                      {"Accept", "*/*", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors", "Sec-Fetch-Dest", "empty"},
		"a script that wants HTML":      {"Accept", "text/html", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"},
		"a program":                     nil,
		"a program with a token":        {"Accept", "text/html", "Authorization", "Bearer x"},
		"a program that takes anything": {"Accept", "application/json, */*"},
	} {
		if w := ask(h, "GET", "/", "localhost", headers...); w.Code != 401 {
			t.Errorf("%s = %d, want 401", name, w.Code)
		} else {
			wantProblem(t, w, "unauthorized")
		}
	}
	plain, _ := guarded(t, Config{Tokens: tokens, Loopback: true})
	if w := ask(plain, "GET", "/", "localhost", browserHeaders("none")...); strings.Contains(w.Body.String(), LoginPath) {
		t.Error("the page offers an issuer where there is none")
	}
}

func TestSecureCookie(t *testing.T) {
	tokens := open(t)
	proxied, _ := guarded(t, Config{Tokens: tokens, Hosts: []string{"ken.example"}})
	local, _ := guarded(t, Config{Tokens: tokens, Loopback: true})
	link := "/?token=" + tokens.start.Reveal()
	for _, tt := range []struct {
		name    string
		h       http.Handler
		headers []string
		secure  bool
	}{
		{"plain", proxied, nil, false},
		{"a proxy with TLS", proxied, []string{"X-Forwarded-Proto", "https"}, true},
		{"a proxy without", proxied, []string{"X-Forwarded-Proto", "http"}, false},
		{"two words", proxied, []string{"X-Forwarded-Proto", "https", "X-Forwarded-Proto", "http"}, false},
		{"no proxy is expected", local, []string{"X-Forwarded-Proto", "https"}, false},
	} {
		w := ask(tt.h, "GET", link, "localhost", tt.headers...)
		c, cookie := cookieOf(t, w)
		if c == nil || c.Secure != tt.secure || strings.HasPrefix(c.Name, "__Host-") != tt.secure {
			t.Fatalf("%s: the cookie is %v, want secure %v", tt.name, c, tt.secure)
		}
		wantStatus(t, fmt.Sprintf("%s: with the cookie", tt.name), 204, ask(tt.h, "GET", "/", "localhost", append([]string{"Cookie", cookie}, tt.headers...)...))
		wantStatus(t, fmt.Sprintf("%s: with a cookie of another name", tt.name), 401, ask(tt.h, "GET", "/", "localhost", append([]string{"Cookie", "x" + cookie}, tt.headers...)...))
	}
}

func TestHeaders(t *testing.T) {
	tokens := open(t)
	h, _ := guarded(t, Config{Tokens: tokens, Loopback: true, Origins: []string{"https://tools.example"}})
	right := []string{"Authorization", "Bearer " + tokens.Token().Reveal()}
	want := map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
	}
	for name, w := range map[string]*httptest.ResponseRecorder{
		"let in": ask(h, "GET", "/api", "localhost", right...), "public": ask(h, "GET", "/healthz", "localhost"),
		"refused": ask(h, "GET", "/api", "localhost"), "wrong host": ask(h, "GET", "/api", "evil.example"),
	} {
		for header, value := range want {
			testkit.Equal(t, fmt.Sprintf("%s: %s", name, header), w.Header().Get(header), value)
		}
	}
	w := ask(h, "GET", "/api", "localhost", append([]string{"Origin", "https://tools.example"}, right...)...)
	if got := w.Header().Get("Cross-Origin-Resource-Policy"); w.Code != 204 || got != "" {
		t.Errorf("for a listed site = %d, Cross-Origin-Resource-Policy %q, want none", w.Code, got)
	}
}

// What one principal keeps open is bounded, and only that: others, and a person
// beside their agents, are not kept out by it.
func TestOpenAtOnce(t *testing.T) {
	tokens := open(t)
	entered, end := make(chan struct{}), make(chan struct{})
	next := HandlerFunc(func(w http.ResponseWriter, r *http.Request, _ Identity) {
		if r.URL.Path == "/stream" {
			entered <- struct{}{}
			<-end
		}
		w.WriteHeader(http.StatusNoContent)
	})
	h := testkit.Must(Guard(next, Config{Tokens: tokens, Owner: owner(), Loopback: true, Rate: Rate{Open: 2}}))(t)
	bearer := func(s secret.Value) []string { return []string{"Authorization", "Bearer " + s.Reveal()} }
	var streams sync.WaitGroup
	for range 2 {
		streams.Go(func() {
			if w := ask(h, "GET", "/stream", "localhost", bearer(tokens.Agent())...); w.Code != http.StatusNoContent {
				t.Errorf("a stream = %d, want 204", w.Code)
			}
		})
		<-entered
	}
	w := ask(h, "GET", "/api", "localhost", bearer(tokens.Agent())...)
	if wantProblem(t, w, "too-many-open"); w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), "serve.rate.open") {
		t.Errorf("a third = %d %v %s, want 429, when to ask again, and the setting", w.Code, w.Header(), w.Body)
	}
	if w := ask(h, "GET", "/api", "localhost", bearer(tokens.Token())...); w.Code != http.StatusNoContent {
		t.Errorf("their person meanwhile = %d, want 204", w.Code)
	}
	close(end)
	streams.Wait()
	if w := ask(h, "GET", "/api", "localhost", bearer(tokens.Agent())...); w.Code != http.StatusNoContent {
		t.Errorf("once the streams have ended = %d, want 204", w.Code)
	}
	testkit.Equal(t, "askers are counted when nothing is open", len(h.(*guard).limits.open.count), 0)
}

// TestRate: requests over the rate wait for their turn, in order. Only a
// request that would wait too long is rejected. Other principals are not slowed
// down.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := open(t)
		h, _ := guarded(t, Config{Tokens: tokens, Loopback: true, Rate: Rate{Requests: 2, Burst: 5}})
		right := []string{"Authorization", "Bearer " + tokens.Token().Reveal()}
		const asked = 20
		began := time.Now()
		var mu sync.Mutex
		after := map[time.Duration]int{} // how many were answered when
		refused := 0
		var done sync.WaitGroup
		for range asked {
			done.Go(func() {
				w := ask(h, "GET", "/api", "localhost", right...)
				mu.Lock()
				defer mu.Unlock()
				if w.Code == 204 {
					after[time.Since(began)]++
					return
				}
				refused++
				if wantProblem(t, w, "too-many-requests"); w.Code != 429 || w.Header().Get("Retry-After") != "6" {
					t.Errorf("one too many = %d %v, want 429 and when to ask again", w.Code, w.Header())
				}
			})
		}
		synctest.Wait()
		wantStatus(t, "GET /healthz meanwhile", 204, ask(h, "GET", "/healthz", "localhost"))
		done.Wait()
		queued := int(queueFor / (time.Second / 2))
		if after[0] != 5 || after[queueFor] != 1 || len(after) != queued+1 || refused != asked-5-queued {
			t.Errorf("answered %v and refused %d, want 5 at once, %d in the queue and the rest refused", after, refused, queued)
		}
		time.Sleep(time.Minute)
		// Others are not slowed down.
		l := h.(*guard).limits
		wait := func(who Identity) time.Duration {
			began := time.Now()
			if _, err := l.asked.wait(t.Context(), who, queueFor); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		for range 6 {
			wait(owner())
		}
		other, agent, plain := owner(), owner(), owner()
		other.Principal.Tenant, agent.Principal.Agent, plain.Decides = "elsewhere", "cursor", false
		testkit.Equal(t, "another tenant's and their agents' wait", wait(other)+wait(agent)+wait(plain), 0)
		// A request that is cancelled gives its turn back.
		gone, leave := context.WithCancel(t.Context())
		leave()
		if _, err := l.asked.wait(gone, owner(), queueFor); err == nil {
			t.Error("a caller who has gone gets in")
		}
		testkit.Equal(t, "the next waits", wait(owner()), time.Second/2)
		for i := range 3 * mostKnown {
			other.Principal.ID = strconv.Itoa(i)
			wait(other)
		}
		if n := len(l.asked.paces.byKey); n > mostKnown || n != l.asked.paces.order.Len() {
			t.Errorf("%d principals are remembered, want up to %d", n, mostKnown)
		}
	})
	free, _ := guarded(t, Config{Off: true, Loopback: true})
	for range 1000 {
		if w := ask(free, "GET", "/", "localhost"); w.Code != 204 {
			t.Fatalf("without a rate = %d, want 204", w.Code)
		}
	}
}

// TestFailuresByAddress: one machine's failures are not another's.
func TestFailuresByAddress(t *testing.T) {
	h, _ := guarded(t, Config{Tokens: open(t), Loopback: true})
	from := func(remote string) int {
		r := httptest.NewRequest("GET", "/api", nil)
		r.Host, r.RemoteAddr = "localhost", remote
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for range burst {
		from("[2001:db8::1]:9")
	}
	for remote, want := range map[string]int{
		"[2001:db8::1]:10": 429, "[2001:db8::ffff]:9": 429, "[2001:db8:0:1::1]:9": 401, "192.0.2.9:1": 401, "": 401,
	} {
		testkit.Equal(t, fmt.Sprintf("from %s", remote), from(remote), want)
	}
}

// FuzzCookie: no text but a sealed one opens, and a sealed one says what went in.
func FuzzCookie(f *testing.F) {
	tokens := open(f)
	j := newJar(tokens)
	t := newTicket()
	t.Owner = true
	good := testkit.Must(j.seal(t))(f)
	f.Add(good, "ann", "acme")
	f.Add("eyJvIjp0cnVlfQ.x", "", "")
	f.Add(".", "a.b", "\x00")
	f.Fuzz(func(t *testing.T, value, id, tenant string) {
		if got, err := j.open(value); err == nil && value != good {
			t.Fatalf("open(%q) = %v", value, got)
		}
		in := newTicket()
		in.ID, in.Tenant, in.Roles = strings.ToValidUTF8(id, "?"), strings.ToValidUTF8(tenant, "?"), []string{strings.ToValidUTF8(value, "?")}
		sealed, err := j.seal(in)
		if err != nil {
			return // too long
		}
		out, err := j.open(sealed)
		if in.ID == "" {
			if err == nil {
				t.Fatalf("a ticket of nobody opens: %v", out)
			}
			return
		}
		if err != nil || !reflect.DeepEqual(in, out) {
			t.Fatalf("open(seal(%v)) = %v, %v", in, out, err)
		}
		if at := strings.IndexByte(sealed, '.'); at > 0 {
			swapped := []byte(sealed)
			swapped[at/2] ^= 1
			if _, err := j.open(string(swapped)); err == nil {
				t.Fatalf("a changed cookie opens: %s", swapped)
			}
		}
	})
}

// TestLinksFromElsewhere: a link on another site opens a view of the page, and
// nothing that answers with data.
func TestLinksFromElsewhere(t *testing.T) {
	g := &guard{Config: Config{Views: []string{"chat", "trail"}}}
	for path, want := range map[string]bool{
		"/": true, "/chat": true, "/chat/abc": true, "/trail/x:1?event=y": true, "/api/v1/me": false, "/mcp": false, "/chatter": false, "//chat": false, "chat": false,
	} {
		r := &http.Request{Method: "GET", URL: &url.URL{Path: strings.Split(path, "?")[0]}, Header: http.Header{
			"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}, "Sec-Fetch-Dest": {"document"},
		}}
		if _, ok := g.site(r); ok != want {
			t.Errorf("a link to %s from another site is let in: %v, want %v", path, ok, want)
		}
	}
}

// TestOwner: only the owner's token, and a cookie that it gave, are the owner's, and
// only at a server that no other machine reaches it is local.
func TestOwner(t *testing.T) {
	tokens := open(t)
	h, last := guarded(t, Config{Tokens: tokens, Loopback: true})
	_, cookie := cookieOf(t, ask(h, "GET", "/?token="+tokens.start.Reveal(), "localhost", browserHeaders("none")...))
	before := time.Now().Add(-time.Minute)
	if ask(h, "GET", "/api", "localhost", "Cookie", cookie); !last.full.Owner || !last.full.Local || last.full.Began.Before(before) {
		t.Errorf("with the cookie = %+v, want the owner, who signed in now", last.full)
	}
	if ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+tokens.Token().Reveal()); !last.full.Owner || !last.full.Local || !last.full.Began.IsZero() {
		t.Errorf("with the token = %+v, want the owner", last.full)
	}
	if ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+tokens.Agent().Reveal()); last.full.Owner {
		t.Errorf("with an agent's token = %+v, want no owner", last.full)
	}
	off, last := guarded(t, Config{Off: true, Loopback: true})
	if ask(off, "GET", "/api", "localhost"); last.full.Owner {
		t.Errorf("with serve.auth off = %+v, want no owner: anyone may ask", last.full)
	}
	for name, cfg := range map[string]Config{"another name": {Tokens: tokens, Loopback: true, Hosts: []string{"ken.example"}}, "another address": {Tokens: tokens, Hosts: []string{"ken.example"}}} {
		h, last := guarded(t, cfg)
		if ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+tokens.Token().Reveal()); last.full.Local {
			t.Errorf("%s = %+v, want not local", name, last.full)
		}
	}
}

// TestSignInReturns: the form leads to the path that was asked for, also after a
// wrong token, and never to another site.
func TestSignInReturns(t *testing.T) {
	tokens := open(t)
	h, _ := guarded(t, Config{Tokens: tokens, Loopback: true, Views: []string{"docs"}})
	w := ask(h, "GET", "/docs/install?q=1", "localhost", browserHeaders("none")...)
	if !strings.Contains(w.Body.String(), `name="next" value="/docs/install?q=1"`) {
		t.Fatalf("the form does not have the path that was asked for: %s", w.Body)
	}
	post := func(token, next string) *httptest.ResponseRecorder {
		return submit(h, SignInPath, url.Values{"token": {token}, "next": {next}}.Encode(), "Sec-Fetch-Site", "same-origin", "Accept", "text/html")
	}
	if w := post("wrong", "/docs/install"); w.Code != 401 || !strings.Contains(w.Body.String(), `value="/docs/install"`) {
		t.Errorf("a wrong token = %d %s, want the form with the path", w.Code, w.Body)
	}
	for next, want := range map[string]string{"/docs/install": "/docs/install", "": "/", "https://evil.example/": "/", "//evil.example": "/", "/auth/logout": "/"} {
		if w := post(tokens.Token().Reveal(), next); w.Code != 303 || w.Header().Get("Location") != want {
			t.Errorf("next %q = %d to %q, want %q", next, w.Code, w.Header().Get("Location"), want)
		}
	}
}

// TestTenantRate: the principals of one tenant share a rate, those of another have their own,
// and a request that cannot wait is told which setting it is. MCP that is free of serve.rate
// is not free of it.
func TestTenantRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var passed atomic.Int64
		next := HandlerFunc(func(w http.ResponseWriter, _ *http.Request, _ Identity) { passed.Add(1) })
		h := testkit.Must(Guard(next, Config{Off: true, Owner: owner(), Loopback: true, Rate: Rate{Requests: 1000}, TenantRate: Rate{Requests: 1, Burst: 2}, FreeMCP: true}))(t)
		g := h.(*guard)
		ask := func(tenant, id, path string) *httptest.ResponseRecorder {
			who := owner()
			who.Principal.Tenant, who.Principal.ID = tenant, id
			w := httptest.NewRecorder()
			g.pass(w, httptest.NewRequest("POST", path, nil), who)
			return w
		}
		began := time.Now()
		for i := range 2 {
			ask("one", strconv.Itoa(i), "/mcp")
		}
		ask("two", "other", "/api")
		if took := time.Since(began); took != 0 || passed.Load() != 3 {
			t.Errorf("%d requests passed in %v, want 3 at once", passed.Load(), took)
		}
		var all sync.WaitGroup
		for i := range 5 { // the queue is five seconds long
			all.Go(func() { ask("one", strconv.Itoa(i), "/mcp") })
		}
		synctest.Wait()
		w := ask("one", "more", "/api")
		if wantProblem(t, w, "too-many-requests"); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "serve.tenantRate lets one tenant make") {
			t.Errorf("one more = %d %s, want 429 with the setting", w.Code, w.Body)
		}
		all.Wait()
		if took := time.Since(began); took != 5*time.Second || passed.Load() != 8 {
			t.Errorf("%d requests passed in %v, want 8 in 5 s", passed.Load(), took)
		}
	})
}
