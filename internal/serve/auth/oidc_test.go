package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/testkit"
)

func (i *testIssuer) config() *OIDCConfig {
	return &OIDCConfig{Issuer: i.URL, ClientID: "ken", Operators: []string{"admins"}, Name: "Example"}
}

func (i *testIssuer) prefix() string { return "oidc:" + strings.TrimPrefix(i.URL, "http://") + "#" }

func with(i *testIssuer, change func(claims map[string]any)) map[string]any {
	claims := i.about()
	change(claims)
	return claims
}

func TestBearer(t *testing.T) {
	i := newTestIssuer(t)
	cfg := i.config()
	cfg.Audience = []string{"ken", "ken-api"}
	h, last := guarded(t, Config{Tokens: open(t), Loopback: true, OIDC: cfg})
	ann := Identity{Principal: capability.Principal{ID: i.prefix() + "ann", Tenant: "home", Roles: []string{"staff"}}, Name: "Ann Other"}
	adminsAgent := ann
	adminsAgent.Principal.Roles = []string{"staff", "admins"}
	admin := adminsAgent
	admin.Operator, admin.Decides = true, true
	decider := ann
	decider.Decides = true

	foreign := testkit.Must(rsa.GenerateKey(rand.Reader, 2048))(t)
	own := i.rsa
	i.rsa = foreign
	forged := i.sign("RS256", i.about(), nil)
	i.rsa = own
	set := func(name string, v any) map[string]any {
		return with(i, func(c map[string]any) { c[name] = v })
	}
	good := i.sign("RS256", i.about(), nil)
	for _, tt := range []struct {
		name, token string
		who         *Identity
		code        string
	}{
		{"RS256", good, &ann, ""},
		{"ES256", i.sign("ES256", i.about(), nil), &ann, ""},
		{"an access token", i.sign("ES256", set("aud", []string{"other", "ken-api"}), map[string]any{"typ": "at+jwt"}), &ann, ""},
		{"without a type", i.sign("ES256", i.about(), map[string]any{"typ": nil}), &ann, ""},
		{"one that decides", i.sign("RS256", set("scope", "openid ken.decide"), nil), &decider, ""},
		{"one that decides, in a list", i.sign("RS256", set("scp", []string{"x", "ken.decide"}), nil), &decider, ""},
		{"one that nearly does", i.sign("RS256", set("scope", "ken.decided xken.decide"), nil), &ann, ""},
		{"one whose scope is no text", i.sign("RS256", set("scope", map[string]any{"ken.decide": true}), nil), &ann, ""},
		{"an operator", i.sign("RS256", with(i, func(c map[string]any) { c["groups"], c["scope"] = []string{"staff", "admins"}, "ken.decide" }), nil), &admin, ""},
		{"an operator's agent", i.sign("RS256", set("groups", []string{"staff", "admins"}), nil), &adminsAgent, ""},

		{"of another issuer", i.sign("RS256", set("iss", "https://evil.example"), nil), nil, "unauthorized"},
		{"for somebody else", i.sign("RS256", set("aud", "other"), nil), nil, "unauthorized"},
		{"for nobody", i.sign("RS256", set("aud", nil), nil), nil, "unauthorized"},
		{"expired", i.sign("RS256", set("exp", time.Now().Add(-time.Second).Unix()), nil), nil, "expired-token"},
		{"without an end", i.sign("RS256", with(i, func(c map[string]any) { delete(c, "exp") }), nil), nil, "expired-token"},
		{"not yet", i.sign("RS256", set("nbf", time.Now().Add(time.Hour).Unix()), nil), nil, "unauthorized"},
		{"unsigned", i.sign("none", i.about(), nil), nil, "unauthorized"},
		{"signed with the public key", i.sign("HS256", i.about(), nil), nil, "unauthorized"},
		{"signed with another key", forged, nil, "unauthorized"},
		{"of a key that is not there", i.sign("RS256", i.about(), map[string]any{"kid": "r9"}), nil, "unauthorized"},
		{"of the other key", i.sign("RS256", i.about(), map[string]any{"kid": "e1"}), nil, "unauthorized"},
		{"another algorithm in its header", i.sign("RS256", i.about(), map[string]any{"alg": "ES256"}), nil, "unauthorized"},
		{"a sign-out", i.sign("RS256", i.about(), map[string]any{"typ": "logout+jwt"}), nil, "unauthorized"},
		{"an event", i.sign("RS256", set("events", map[string]any{"x": map[string]any{}}), nil), nil, "unauthorized"},
		{"without a signature", good[:strings.LastIndex(good, ".")+1], nil, "unauthorized"},
		{"changed", good[:len(good)-8] + "AAAAAAAA", nil, "unauthorized"},
		{"no token", "a.b.c", nil, "unauthorized"},
		{"too long", good + strings.Repeat("A", longestJWT), nil, "unauthorized"},

		{"nobody", i.sign("RS256", set("sub", ""), nil), nil, "unauthorized"},
		{"no text", i.sign("RS256", set("sub", 7), nil), nil, "unauthorized"},
		{"a long name", i.sign("RS256", set("sub", strings.Repeat("a", 256)), nil), nil, "unauthorized"},
		{"a control character", i.sign("RS256", set("sub", "ann\x00"), nil), nil, "unauthorized"},
		{"a hidden character", i.sign("RS256", set("sub", "ann\u202e"), nil), nil, "unauthorized"},
		{"a space behind", i.sign("RS256", set("sub", "ann "), nil), nil, "unauthorized"},
		{"a bad role", i.sign("RS256", set("groups", []any{"staff", "x\ny"}), nil), nil, "unauthorized"},
		{"roles that are none", i.sign("RS256", set("groups", map[string]any{"a": 1}), nil), nil, "unauthorized"},
		{"too many roles", i.sign("RS256", set("groups", strings.Split(strings.Repeat("x ", mostRoles+1), " ")), nil), nil, "unauthorized"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h.(*guard).limits = newLimits(Rate{}, Rate{}, nil)
			h.(*guard).issuer.keys.Transport.(*sparing).asked = newSparing(nil).asked
			for range 2 { // the second time from memory
				*last = passed{}
				w := ask(h, "POST", "/mcp", "localhost", "Authorization", "Bearer "+tt.token)
				if tt.who != nil {
					if w.Code != 204 || !reflect.DeepEqual(last.who, *tt.who) || last.still == nil || !last.still() {
						t.Errorf("= %d %s by %+v, want 204 by %+v", w.Code, w.Body, last.who, *tt.who)
					}
					continue
				}
				if w.Code != 401 || last.Request != nil {
					t.Errorf("= %d %s, want 401", w.Code, w.Body)
				}
				wantProblem(t, w, tt.code)
			}
		})
	}
	wantStatus(t, "an issuer's token as a key", 401, ask(h, "POST", "/mcp", "localhost", "X-Api-Key", good))
	testkit.Equal(t, "tokens are remembered", len(h.(*guard).issuer.verified.byKey), 10)
}

func TestClaims(t *testing.T) {
	i := newTestIssuer(t)
	set := func(change func(*OIDCConfig)) *OIDCConfig {
		cfg := i.config()
		change(cfg)
		return cfg
	}
	id := func(s string) string { return i.prefix() + s }
	for _, tt := range []struct {
		name   string
		cfg    *OIDCConfig
		claims map[string]any
		want   Identity // zero: refused
		status int
	}{
		{"an address", set(func(c *OIDCConfig) { c.UserClaim = "email" }), map[string]any{"email": "ann@acme.example", "email_verified": true},
			Identity{Principal: capability.Principal{ID: id("ann@acme.example"), Tenant: "home", Roles: []string{"staff"}}, Name: "Ann Other"}, 204},
		{"an address that was not verified", set(func(c *OIDCConfig) { c.UserClaim = "email" }), map[string]any{"email": "ann@acme.example"}, Identity{}, 401},
		{"a tenant", set(func(c *OIDCConfig) { c.TenantClaim = "org" }), map[string]any{"org": "acme"},
			Identity{Principal: capability.Principal{ID: id("ann"), Tenant: "acme", Roles: []string{"staff"}}, Name: "Ann Other"}, 204},
		{"no tenant", set(func(c *OIDCConfig) { c.TenantClaim = "org" }), nil, Identity{}, 401},
		{"roles inside", set(func(c *OIDCConfig) { c.RolesClaim = "realm_access.roles" }), map[string]any{"scope": "ken.decide", "realm_access": map[string]any{"roles": []string{"admins"}}},
			Identity{Principal: capability.Principal{ID: id("ann"), Tenant: "home", Roles: []string{"admins"}}, Name: "Ann Other", Operator: true, Decides: true}, 204},
		{"a claim with a dot", set(func(c *OIDCConfig) { c.RolesClaim = "https://x.example/roles" }), map[string]any{"https://x.example/roles": "one"},
			Identity{Principal: capability.Principal{ID: id("ann"), Tenant: "home", Roles: []string{"one"}}, Name: "Ann Other"}, 204},
		{"no roles and no name", set(func(c *OIDCConfig) { c.RolesClaim, c.NameClaim = "none", "none" }), nil,
			Identity{Principal: capability.Principal{ID: id("ann"), Tenant: "home"}, Name: "ann"}, 204},
		{"admitted", set(func(c *OIDCConfig) { c.Admit = []string{"x", "staff"} }), nil,
			Identity{Principal: capability.Principal{ID: id("ann"), Tenant: "home", Roles: []string{"staff"}}, Name: "Ann Other"}, 204},
		{"not admitted", set(func(c *OIDCConfig) { c.Admit = []string{"x"} }), nil, Identity{}, 403},
	} {
		h, last := guarded(t, Config{Tokens: open(t), Loopback: true, OIDC: tt.cfg})
		token := i.sign("ES256", with(i, func(c map[string]any) {
			for name, v := range tt.claims {
				c[name] = v
			}
		}), nil)
		for range 2 {
			w := ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+token)
			if w.Code != tt.status || !reflect.DeepEqual(last.who, tt.want) {
				t.Errorf("%s = %d %s by %+v, want %d by %+v", tt.name, w.Code, w.Body, last.who, tt.status, tt.want)
			}
			if w.Code == 403 {
				wantProblem(t, w, "not-admitted")
			}
		}
	}
}

// A person is somebody with a browser.
type person struct {
	t       *testing.T
	h       http.Handler
	ctx     context.Context
	host    string
	headers []string          // of each of their requests
	cookies map[string]string // by name
}

func newPerson(t *testing.T, h http.Handler) *person {
	return &person{t: t, h: h, ctx: t.Context(), host: "localhost:7777", cookies: map[string]string{}}
}

func (p *person) get(target, site string) *httptest.ResponseRecorder {
	p.t.Helper()
	r := httptest.NewRequest("GET", target, nil).WithContext(p.ctx)
	r.Host = p.host
	headers := append(browserHeaders(site), p.headers...)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	for name, value := range p.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value})
	}
	w := httptest.NewRecorder()
	p.h.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if delete(p.cookies, c.Name); c.MaxAge >= 0 {
			p.cookies[c.Name] = c.Value
		}
	}
	return w
}

// login begins a login and gives where the issuer leads back to.
func (p *person) login(i *testIssuer, next string) string {
	p.t.Helper()
	w := p.get(LoginPath+"?next="+url.QueryEscape(next), "same-origin")
	to := w.Header().Get("Location")
	if w.Code != 303 || !strings.HasPrefix(to, i.URL+"/authorize?") {
		p.t.Fatalf("GET %s = %d %v %s, want 303 to the issuer", LoginPath, w.Code, w.Header(), w.Body)
	}
	return i.authorize(to).RequestURI()
}

func TestLogin(t *testing.T) {
	for _, alg := range []string{"RS256", "ES256"} {
		t.Run(alg, func(t *testing.T) {
			i := newTestIssuer(t)
			i.alg = alg
			h, last := guarded(t, Config{Tokens: open(t), Loopback: true, OIDC: i.config()})
			p := newPerson(t, h)
			back := p.login(i, "/chat?x=1&y=2#z")
			for name, value := range p.cookies {
				if strings.Contains(value, "state") || !strings.HasPrefix(name, "ken_login_") {
					t.Errorf("the login has the cookie %s %s", name, value)
				}
			}
			w := p.get(back, "cross-site")
			if w.Code != 200 || !strings.Contains(w.Body.String(), `content="0;url=/chat?x=1&amp;y=2#z"`) {
				t.Fatalf("back from the issuer = %d %s, want to be led on to /chat", w.Code, w.Body)
			}
			testkit.Equal(t, "the page at the address with the code has the Referrer-Policy", w.Header().Get("Referrer-Policy"), "no-referrer")
			if len(p.cookies) != 1 {
				t.Errorf("the browser has %v, want one cookie", p.cookies)
			}
			want := Identity{Principal: capability.Principal{ID: i.prefix() + "ann", Tenant: "home", Roles: []string{"staff"}}, Name: "Ann Other", Decides: true, SignedIn: true, Person: true}
			if w := p.get("/chat?x=1", "same-origin"); w.Code != 204 || !reflect.DeepEqual(last.who, want) {
				t.Errorf("then = %d by %+v, want 204 by %+v", w.Code, last.who, want)
			}
		})
	}
}

// TestLoginBehindProxy: the name and the scheme are the proxy's, and the secret
// goes to the issuer.
func TestLoginBehindProxy(t *testing.T) {
	for _, methods := range [][]string{nil, {"client_secret_post"}} {
		i := newTestIssuer(t)
		i.secret = "s3cret"
		if methods != nil {
			i.found["token_endpoint_auth_methods_supported"] = methods
		}
		cfg := i.config()
		cfg.ClientSecret = func(context.Context) (string, error) { return "s3cret", nil }
		h, _ := guarded(t, Config{Tokens: open(t), Hosts: []string{"ken.example"}, OIDC: cfg})
		p := newPerson(t, h)
		p.host, p.headers = "ken.example", []string{"X-Forwarded-Proto", "https"}
		back := p.login(i, "/")
		i.mu.Lock()
		for _, asked := range i.codes {
			testkit.Equal(t, "redirect_uri", asked.Get("redirect_uri"), "https://ken.example/auth/callback")
		}
		i.mu.Unlock()
		if w := p.get(back, "cross-site"); w.Code != 200 {
			t.Fatalf("back from the issuer = %d %s", w.Code, w.Body)
		}
		for name := range p.cookies {
			if !strings.HasPrefix(name, "__Host-ken_") {
				t.Errorf("over TLS there is the cookie %s", name)
			}
		}
		wantStatus(t, "then", 204, p.get("/", "same-origin"))
	}
}

func TestLoginRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tamper func(map[string]any)
		cfg    func(*OIDCConfig)
		back   func(p *person, back string) string
		status int
	}{
		{"another nonce", func(c map[string]any) { c["nonce"] = "x" }, nil, nil, 401},
		{"no nonce", func(c map[string]any) { delete(c, "nonce") }, nil, nil, 401},
		{"another client's", func(c map[string]any) { c["aud"] = "other" }, nil, nil, 401},
		{"made for another", func(c map[string]any) { c["azp"] = "other" }, nil, nil, 401},
		{"another issuer's", func(c map[string]any) { c["iss"] = "https://evil.example" }, nil, nil, 401},
		{"expired", func(c map[string]any) { c["exp"] = 1 }, nil, nil, 401},
		{"of nobody", func(c map[string]any) { c["sub"] = "" }, nil, nil, 401},
		{"too many groups", func(c map[string]any) {
			c["groups"] = strings.Split(strings.Repeat("a-long-name-of-a-group ", 200)+"x", " ")
		}, nil, nil, 401},
		{"not admitted", nil, func(c *OIDCConfig) { c.Admit = []string{"x"} }, nil, 403},
		{"no secret", nil, func(c *OIDCConfig) {
			c.ClientSecret = func(context.Context) (string, error) { return "", errors.New("it is not set") }
		}, nil, 401},
		{"the wrong secret", nil, func(c *OIDCConfig) {
			c.ClientSecret = func(context.Context) (string, error) { return "wrong", nil }
		}, nil, 401},
		{"another state", nil, nil, func(_ *person, back string) string { return back + "x" }, 401},
		{"no state", nil, nil, func(_ *person, back string) string { return CallbackPath + "?code=x" }, 401},
		{"another code", nil, nil, func(_ *person, back string) string { return strings.Replace(back, "code=", "code=x", 1) }, 401},
		{"of another issuer", nil, nil, func(_ *person, back string) string { return strings.Replace(back, "iss=http", "iss=https", 1) }, 401},
		{"the issuer says no", nil, nil, func(_ *person, back string) string { return back + "&error=access_denied" }, 401},
		{"no login in progress", nil, nil, func(p *person, back string) string { clear(p.cookies); return back }, 401},
		{"another login's cookie", nil, nil, func(p *person, back string) string {
			p.get(LoginPath, "same-origin")
			return back
		}, 401},
		{"a changed cookie", nil, nil, func(p *person, back string) string {
			for name, value := range p.cookies {
				other := "A" // one in 64 begins with it
				if value[0] == 'A' {
					other = "B"
				}
				p.cookies[name] = other + value[1:]
			}
			return back
		}, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i := newTestIssuer(t)
			cfg := i.config()
			if tt.cfg != nil {
				tt.cfg(cfg)
			}
			h, _ := guarded(t, Config{Tokens: open(t), Loopback: true, OIDC: cfg})
			p := newPerson(t, h)
			back := p.login(i, "/")
			if tt.back != nil {
				back = tt.back(p, back)
			}
			// ID tokens are made with wrong claims only from here on.
			i.mu.Lock()
			i.tamper = tt.tamper
			i.mu.Unlock()
			w := p.get(back, "cross-site")
			if w.Code != tt.status || len(p.cookies) > 0 || !strings.Contains(w.Body.String(), `role="alert"`) || !strings.Contains(w.Body.String(), LoginPath) {
				t.Errorf("back from the issuer = %d with %v: %s, want %d and a page that says so", w.Code, p.cookies, w.Body, tt.status)
			}
		})
	}
}

// TestReplay: a login that is over is over, with its cookie kept and a code that
// the issuer would take again.
func TestReplay(t *testing.T) {
	i := newTestIssuer(t)
	h, _ := guarded(t, Config{Tokens: open(t), Loopback: true, OIDC: i.config()})
	p := newPerson(t, h)
	back := p.login(i, "/")
	thief := newPerson(t, h)
	for name, value := range p.cookies {
		thief.cookies[name] = value
	}
	if w := p.get(back, "cross-site"); w.Code != 200 {
		t.Fatalf("the first = %d %s", w.Code, w.Body)
	}
	i.mu.Lock()
	u, _ := url.Parse(back)
	i.codes[u.Query().Get("code")] = url.Values{}
	i.mu.Unlock()
	w := thief.get(back, "cross-site")
	if w.Code != 401 || !strings.Contains(w.Body.String(), "Sign in again") {
		t.Errorf("the second = %d %s, want 401", w.Code, w.Body)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.codes) != 1 {
		t.Error("the issuer was asked about the second")
	}
}

func TestLoginIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, Config{Tokens: open(t), Loopback: true, OIDC: &OIDCConfig{Issuer: "https://id.example", ClientID: "ken"}})
		j := journey{State: "s", Given: time.Now().Unix()}
		value := testkit.Must(g.issuer.pack(j))(t)
		r := httptest.NewRequest("GET", CallbackPath+"?state=s&code=c", nil)
		r.AddCookie(&http.Cookie{Name: g.jar.name(loginKind, false), Value: value})
		time.Sleep(loginLife - time.Second)
		if _, err := g.returned(r, false); err != nil {
			t.Errorf("returned in time = %v", err)
		}
		time.Sleep(time.Second)
		if _, err := g.returned(r, false); err == nil || !strings.Contains(err.Error(), "too old") {
			t.Errorf("returned too late = %v, want that it is too old", err)
		}
	})
}

// TestIssuerDown: the server starts without its issuer, says so, and goes on
// when it is there.
func TestIssuerDown(t *testing.T) {
	i := newTestIssuer(t)
	i.down.Store(true)
	tokens := open(t)
	h, _ := guarded(t, Config{Tokens: tokens, Loopback: true, OIDC: i.config()})
	token := i.sign("RS256", i.about(), nil)
	p := newPerson(t, h)
	for range 2 {
		w := ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+token)
		if wantProblem(t, w, "issuer-unavailable"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
			t.Errorf("a token while it is down = %d %v, want 503", w.Code, w.Header())
		}
		if w := p.get(LoginPath, "same-origin"); w.Code != 503 || !strings.Contains(w.Body.String(), "does not answer") || strings.Contains(w.Body.String(), "down for a while") {
			t.Errorf("a login while it is down = %d %s, want 503 and a page", w.Code, w.Body)
		}
	}
	wantStatus(t, "the owner meanwhile", 204, ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+tokens.Token().Reveal()))
	i.down.Store(false)
	wantStatus(t, "at once again", 503, p.get(LoginPath, "same-origin"))
	set := h.(*guard).issuer
	later := func(d time.Duration) {
		set.mu.Lock()
		defer set.mu.Unlock()
		set.tried = set.tried.Add(-d)
	}
	later(retryIssuer)
	wantStatus(t, "when it is up", 204, ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+token))
	wantStatus(t, "a login when it is up", 200, p.get(p.login(i, "/"), "cross-site"))

	// Its keys cannot be had: that is not the token's fault.
	i.keysDown.Store(true)
	i.mu.Lock()
	i.kid = "r2"
	fresh := i.sign("RS256", i.about(), nil)
	i.mu.Unlock()
	wantStatus(t, "without its keys", 503, ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+fresh))
	i.keysDown.Store(false)
	wantStatus(t, "with new keys", 204, ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+fresh))

	// What it said holds on when it is down later.
	i.down.Store(true)
	later(freshIssuer)
	other := i.sign("ES256", i.about(), nil)
	wantStatus(t, "down a day later", 204, ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+other))

	// And it is asked again soon, not a day later.
	tried := func() (at time.Time, over <-chan struct{}) {
		set.mu.Lock()
		defer set.mu.Unlock()
		return set.tried, set.trying
	}
	if _, over := tried(); over != nil {
		<-over
	}
	later(retryIssuer)
	before, _ := tried()
	if _, err := set.discover(t.Context()); err != nil {
		t.Error(err)
	}
	if after, over := tried(); !after.After(before) {
		t.Errorf("after a renewal that failed the issuer is not asked again")
	} else if over != nil {
		<-over
	}
}

// TestDiscoveryRefused: an issuer that names others, or leads to them, is none.
func TestDiscoveryRefused(t *testing.T) {
	elsewhere := newTestIssuer(t)
	for name, found := range map[string]map[string]any{
		"another issuer":        {"issuer": "https://evil.example"},
		"keys over http":        {"jwks_uri": "http://evil.example/keys"},
		"tokens over http":      {"token_endpoint": "http://evil.example/token"},
		"a login that is a run": {"authorization_endpoint": "javascript:alert(1)"},
		"no keys":               {"jwks_uri": nil},
	} {
		i := newTestIssuer(t)
		i.found = found
		h, _ := guarded(t, Config{Tokens: open(t), Loopback: true, OIDC: i.config()})
		if w := newPerson(t, h).get(LoginPath, "same-origin"); w.Code != 503 || w.Header().Get("Location") != "" {
			t.Errorf("%s = %d %v, want 503", name, w.Code, w.Header())
		}
	}
	leading := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusFound)
	}))
	defer leading.Close()
	huge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"issuer": "%s"}`, strings.Repeat("x", 2*longestAnswer))
	}))
	defer huge.Close()
	for _, server := range []*httptest.Server{leading, huge} {
		h, _ := guarded(t, Config{Tokens: open(t), Loopback: true, OIDC: &OIDCConfig{Issuer: server.URL, ClientID: "ken"}})
		wantStatus(t, server.URL, 503, newPerson(t, h).get(LoginPath, "same-origin"))
	}
}

// TestKeysAreSpared: tokens with wrong signatures do not have the issuer asked
// for each.
func TestKeysAreSpared(t *testing.T) {
	i := newTestIssuer(t)
	h, _ := guarded(t, Config{Tokens: open(t), Loopback: true, OIDC: i.config()})
	good := i.sign("RS256", i.about(), nil)
	if w := ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+good); w.Code != 204 {
		t.Fatalf("a good token = %d", w.Code)
	}
	for n := range 200 {
		ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+i.sign("HS256", map[string]any{"n": n}, map[string]any{"alg": "RS256"}))
	}
	if got := i.keysRead.Load(); got > 15 {
		t.Errorf("200 wrong tokens have the keys asked for %d times", got)
	}
	wantStatus(t, "a good token meanwhile", 204, ask(h, "GET", "/api", "localhost", "Authorization", "Bearer "+i.sign("RS256", i.about(), nil)))
}

// TestCallbackIsBounded: however many codes are brought, the issuer is asked
// about few at once, and the log does not tell of each.
func TestCallbackIsBounded(t *testing.T) {
	i := newTestIssuer(t)
	var coded atomic.Int64
	i.coded = func() { coded.Add(1) }
	var log bytes.Buffer
	h, _ := guarded(t, Config{Tokens: open(t), Loopback: true, OIDC: i.config(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	asking := h.(*guard).issuer.asking
	for range cap(asking) {
		asking <- struct{}{}
	}
	p := newPerson(t, h)
	gone, cancel := context.WithCancel(t.Context())
	back := p.login(i, "/")
	cancel()
	p.ctx = gone
	if w := p.get(back, "cross-site"); w.Code != http.StatusServiceUnavailable || coded.Load() != 0 {
		t.Errorf("a code beside %d others = %d, and the issuer was asked %d times; want 503 and none", cap(asking), w.Code, coded.Load())
	}
	<-asking
	const wrong = 4 * burst
	for range wrong {
		p := newPerson(t, h)
		if w := p.get(strings.Replace(p.login(i, "/"), "code=", "code=x", 1), "cross-site"); w.Code != http.StatusUnauthorized {
			t.Errorf("a wrong code = %d, want 401", w.Code)
		}
	}
	testkit.Equal(t, "the issuer was asked about", coded.Load(), wrong)
	// The rate gives one more every two seconds that this takes.
	if got := strings.Count(log.String(), "came to nothing"); got == 0 || got > 2*burst {
		t.Errorf("%d of %d wrong codes are logged, want about %d", got, wrong, burst)
	}
}

// TestCallbackLocksNobodyOut: whoever has no login in progress, brings codes that
// nobody gave, or has a token that is wrong, does not keep others at the same
// address from signing in. Behind a proxy all are at one.
func TestCallbackLocksNobodyOut(t *testing.T) {
	i := newTestIssuer(t)
	h, _ := guarded(t, Config{Tokens: open(t), Loopback: true, OIDC: i.config()})
	status := map[int]int{}
	for range 2 * burst {
		status[newPerson(t, h).get(CallbackPath+"?state=x&code=y", "cross-site").Code]++
		ask(h, "GET", "/api", "localhost", "Authorization", "Bearer x")
		p := newPerson(t, h)
		p.get(strings.Replace(p.login(i, "/"), "code=", "code=x", 1), "cross-site")
	}
	if status[401] == 0 || status[429] == 0 {
		t.Errorf("logins of nobody are answered %v, want 401 and then 429", status)
	}
	p := newPerson(t, h)
	if w := p.get(p.login(i, "/"), "cross-site"); w.Code != 200 || !strings.Contains(w.Body.String(), "You are signed in") {
		t.Errorf("a login then = %d %s, want it to succeed", w.Code, w.Body)
	}
}

// TestOldCookies: what the configuration says now holds for those who signed in
// before.
func TestOldCookies(t *testing.T) {
	i := newTestIssuer(t)
	tokens := open(t)
	h, _ := guarded(t, Config{Tokens: tokens, Loopback: true, OIDC: i.config()})
	p := newPerson(t, h)
	p.get(p.login(i, "/"), "cross-site")
	serve := func(cfg *OIDCConfig) (int, Identity) {
		h, last := guarded(t, Config{Tokens: tokens, Loopback: true, OIDC: cfg})
		p.h = h
		return p.get("/", "same-origin").Code, last.who
	}
	if code, who := serve(i.config()); code != 204 || who.Operator {
		t.Errorf("after a restart = %d by %v, want 204", code, who)
	}
	raised := i.config()
	raised.Operators = []string{"staff"}
	if code, who := serve(raised); code != 204 || !who.Operator {
		t.Errorf("when staff are operators = %d by %v, want an operator", code, who)
	}
	closed := i.config()
	closed.Admit = []string{"x"}
	if code, _ := serve(closed); code != 403 {
		t.Errorf("when staff are not admitted = %d, want 403", code)
	}
	other := i.config()
	other.Issuer = "https://other.example"
	for name, cfg := range map[string]*OIDCConfig{"of another issuer": other, "without one": nil} {
		if code, _ := serve(cfg); code != 401 {
			t.Errorf("%s = %d, want 401", name, code)
		}
	}
}

// TestOIDCCookieEnds: what an issuer said is not renewed without asking it.
func TestOIDCCookieEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(t, Config{Tokens: open(t), Loopback: true, OIDC: &OIDCConfig{Issuer: "https://id.example", ClientID: "ken"}})
		card := newTicket()
		card.ID = "oidc:id.example#ann"
		value := testkit.Must(g.jar.seal(card))(t)
		time.Sleep(browserLife - time.Second)
		w := ask(g, "GET", "/", "localhost", "Cookie", g.jar.name("", false)+"="+value)
		if _, cookie := cookieOf(t, w); w.Code != 204 || cookie != "" {
			t.Errorf("at the end of its life = %d %q, want 204 and no other", w.Code, cookie)
		}
		time.Sleep(time.Second)
		w = ask(g, "GET", "/", "localhost", "Cookie", g.jar.name("", false)+"="+value)
		wantProblem(t, w, "expired-token")
		if w := ask(g, "GET", "/", "localhost", append(browserHeaders("none"), "Cookie", g.jar.name("", false)+"="+value)...); w.Code != 401 || !strings.Contains(w.Body.String(), "has expired") {
			t.Errorf("a browser then = %d %s, want a page that says so", w.Code, w.Body)
		}
	})
}

func TestLocal(t *testing.T) {
	for next, want := range map[string]string{
		"/": "/", "/chat": "/chat", "/chat?x=1#y": "/chat?x=1#y", "/a/b": "/a/b", "/?q=//evil.example": "/?q=//evil.example",
		"": "/", "chat": "/", "//evil.example": "/", "///evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/", "https://evil.example": "/",
		"javascript:alert(1)": "/", "/%2f/evil.example": "/", "/%5cevil.example": "/", "/\t/evil.example": "/", "/\n": "/", " /x": "/", "/auth/logout": "/", "/auth/callback?x": "/",
		"/" + strings.Repeat("x", 2000): "/",
	} {
		testkit.Equal(t, fmt.Sprintf("local(%q)", next), local(next), want)
	}
}

// FuzzNext: whatever is asked for, a browser stays at this site.
func FuzzNext(f *testing.F) {
	for _, s := range []string{"/", "//evil.example", "/\\evil", "/%2f%2fevil", "/x?y#z", "/./\t/evil", "/;//evil"} {
		f.Add(s)
	}
	base := testkit.Must(url.Parse("http://ken.example/auth/callback"))(f)
	f.Fuzz(func(t *testing.T, next string) {
		got := local(next)
		u, err := base.Parse(got)
		if err != nil || u.Host != "ken.example" || u.Scheme != "http" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") {
			t.Fatalf("local(%q) = %q, which leads to %v, %v", next, got, u, err)
		}
		// Browsers drop tabs and line ends, and take \ for /.
		seen := strings.NewReplacer("\t", "", "\n", "", "\r", "", "\\", "/").Replace(got)
		if seen != got || strings.HasPrefix(seen, "//") {
			t.Fatalf("local(%q) = %q, which a browser reads as %q", next, got, seen)
		}
	})
}

// TestKeysAfterAFailure: a request after a failed attempt starts a new one, and
// does not get the old failure.
func TestKeysAfterAFailure(t *testing.T) {
	i := newTestIssuer(t)
	keys := &keySet{client: http.DefaultClient, url: i.URL + "/keys"}
	for range 300 {
		i.keysDown.Store(true)
		_, err := keys.fresh(t.Context())
		if err == nil {
			t.Fatal("the keys were read although the issuer does not give them")
		}
		i.keysDown.Store(false)
		if _, err := keys.fresh(t.Context()); err != nil {
			t.Fatalf("when the keys are there again: %v", err)
		}
	}

	// While one request fetches the keys, no other does. A request that stops
	// waiting returns.
	before := i.keysRead.Load()
	i.mu.Lock() // the issuer holds its answer back
	first := make(chan error)
	go func() { _, err := keys.fresh(t.Context()); first <- err }()
	for i.keysRead.Load() == before {
		runtime.Gosched()
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 8 {
		if _, err := keys.fresh(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("who has left = %v, want canceled", err)
		}
	}
	i.mu.Unlock()
	if err := <-first; err != nil {
		t.Error(err)
	}
	testkit.Equal(t, "nine who needed the keys at once asked", i.keysRead.Load()-before, 1)
}

// TestWithdrawnKeyEnds: a key that the issuer no longer lists counts for an hour at
// most. While the issuer is away, what it said before holds.
func TestWithdrawnKeyEnds(t *testing.T) {
	i := newTestIssuer(t)
	keys := &keySet{client: http.DefaultClient, url: i.URL + "/keys"}
	jwt := i.sign("RS256", i.about(), nil)
	check := func(when string, want bool) {
		t.Helper()
		if _, err := keys.VerifySignature(t.Context(), jwt); (err == nil) != want {
			t.Errorf("%s: VerifySignature = %v, want it accepted: %v", when, err, want)
		}
	}
	hourLater := func() { keys.again = time.Now() }
	check("at first", true)
	i.mu.Lock()
	i.kid = "r2"
	i.mu.Unlock()
	check("withdrawn just now", true)
	testkit.Equal(t, "the keys were read", i.keysRead.Load(), 1)
	i.keysDown.Store(true)
	hourLater()
	check("an hour later, and the issuer is away", true)
	check("a moment later", true)
	read := i.keysRead.Load()
	check("again", true)
	if n := i.keysRead.Load(); n != read {
		t.Error("an issuer that is away is asked for every token")
	}
	i.keysDown.Store(false)
	hourLater()
	check("when it is back", false)
}

// TestUnknownKeysAreLeftOut: an unusable key does not hide the others.
func TestUnknownKeysAreLeftOut(t *testing.T) {
	good := `{"kty":"RSA","kid":"r","n":"sXchTQ","e":"AQAB"}`
	for name, tt := range map[string]struct {
		body string
		keys int
		ok   bool
	}{
		"one":               {`{"keys":[` + good + `]}`, 1, true},
		"another algorithm": {`{"keys":[{"kty":"EC","crv":"secp256k1","alg":"ES256K","x":"AA","y":"AA"},` + good + `]}`, 1, true},
		"another kind":      {`{"keys":[{"kty":"LWE","kid":"q"},` + good + `]}`, 1, true},
		"for encryption":    {`{"keys":[{"kty":"RSA","kid":"x","use":"enc","n":"sXchTQ","e":"AQAB"},` + good + `]}`, 1, true},
		"none":              {`{"keys":[]}`, 0, true},
		"no JSON":           {`<html>`, 0, false},
		"a broken key":      {`{"keys":[{"kty":"RSA","n":5}]}`, 0, false},
	} {
		keys, err := parseKeys([]byte(tt.body))
		if len(keys) != tt.keys || (err == nil) != tt.ok {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
	}
}
