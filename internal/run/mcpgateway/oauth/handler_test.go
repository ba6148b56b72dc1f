package oauth_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/mcpgateway/oauth"
	"ken/internal/secret"
	"ken/internal/testkit/oauthtest"
)

var pia = capability.Principal{ID: "pia", Tenant: "acme"}

// never is an Ask for cases in which no person may be asked.
func never(t *testing.T) func(context.Context, string) error {
	return func(context.Context, string) error {
		t.Error("a person was asked")
		return errors.New("nobody is here")
	}
}

// A clock stands until a test lets time pass.
type clock struct{ ahead atomic.Int64 }

func (c *clock) time() time.Time {
	return time.Date(2126, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(c.ahead.Load()))
}

func (c *clock) pass(d time.Duration) { c.ahead.Add(int64(d)) }

// TestLogin: without a login calls fail and say what to do, without asking a
// person; with one they work, also in another process, and for this principal only.
func TestLogin(t *testing.T) {
	a, s := newWorld(t)
	dir := t.TempDir()
	keep := oauth.Sealed(secret.New(secret.Config{Dir: dir}))

	daemon := s.handler(t, oauth.Config{Keep: keep, Principal: pia, Ask: never(t)})
	wantLogin(t, s.call(t, daemon))
	if got := a.All(); got != "" {
		t.Fatalf("the authorization server was sent %q before anybody logged in", got)
	}

	person := s.handler(t, oauth.Config{Keep: keep, Principal: pia, Ask: oauthtest.Agree})
	login(t, person)
	for name, h := range map[string]*oauth.Handler{"the same": person, "the daemon, from before": daemon, "another": s.handler(t, oauth.Config{Keep: keep, Principal: pia, Ask: never(t)})} {
		if err := s.call(t, h); err != nil {
			t.Errorf("call by %s = %v", name, err)
		}
	}
	other := pia
	other.ID = "bob"
	wantLogin(t, s.call(t, s.handler(t, oauth.Config{Keep: keep, Principal: other, Ask: never(t)})))

	// Removing the server finds the logins of all users, and of it alone.
	for server, want := range map[string]int{"files": 1, "another": 0} {
		if names, err := oauth.Logins(secret.New(secret.Config{Dir: dir}), server, other); err != nil || len(names) != want {
			t.Errorf("Logins(%s) = %q, %v; want %d", server, names, err, want)
		}
	}

	// Nothing of it is in a file in clear.
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), "access-") || strings.Contains(string(data), "refresh-") {
			t.Errorf("%s has a token in clear", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	if err := person.Logout(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLogin(t, s.call(t, s.handler(t, oauth.Config{Keep: keep, Principal: pia})))
}

// TestRenewal: a token whose time is over is renewed once however many ask, and
// the refresh token that comes with it is the one used next.
func TestRenewal(t *testing.T) {
	a, s := newWorld(t)
	var now clock
	keep := &oauthtest.Memory{}
	h := s.handler(t, oauth.Config{Keep: keep, Ask: oauthtest.Agree, Now: now.time})
	login(t, h)
	for round := range 3 {
		now.pass(2 * time.Hour)
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				src, err := h.TokenSource(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				if token, err := src.Token(); err != nil || token == nil || !strings.HasPrefix(token.AccessToken, "access-") {
					t.Errorf("Token = %v, %v", token, err)
				}
			})
		}
		group.Wait()
		if a.Asked != round+1 {
			t.Fatalf("round %d: the token was renewed %d times, want %d", round, a.Asked, round+1)
		}
	}
	// Revoked at the server, it is renewed after the refusal.
	a.Revoke(false)
	s.works(t, h)
	// What another process renewed is used: the refresh token here is worthless.
	second := s.handler(t, oauth.Config{Keep: keep, Now: now.time})
	s.works(t, second)
	now.pass(2 * time.Hour)
	if err := errors.Join(s.call(t, second), s.call(t, h)); err != nil {
		t.Fatal(err)
	}
	// With the refresh token gone a person must come.
	a.Revoke(true)
	wantLogin(t, s.call(t, h))
}

// TestKeeperFails: a keeper that cannot be read lets nothing pass as logged in;
// one that cannot be written does not lose the token of this process.
func TestKeeperFails(t *testing.T) {
	_, s := newWorld(t)
	keep := &oauthtest.Memory{Err: errors.New("disk gone")}
	if err := s.call(t, s.handler(t, oauth.Config{Keep: keep})); err == nil || !strings.Contains(err.Error(), "disk gone") {
		t.Fatalf("call = %v, want disk gone", err)
	}
	keep.Err = nil
	h := s.handler(t, oauth.Config{Keep: keep, Ask: oauthtest.Agree})
	login(t, h)
	for key := range keep.Values {
		keep.Values[key] = []byte("damaged")
	}
	wantLogin(t, s.call(t, s.handler(t, oauth.Config{Keep: keep})))
}

// TestTokenStaysHome: a token is not sent to where the server redirects to, and
// not for another address that the server of this name had.
func TestTokenStaysHome(t *testing.T) {
	_, s := newWorld(t)
	keep := &oauthtest.Memory{}
	h := s.handler(t, oauth.Config{Keep: keep, Ask: oauthtest.Agree})
	login(t, h)
	reached := ""
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reached += r.URL.Path + " " + r.Header.Get("Authorization") + "\n"
	}))
	defer elsewhere.Close()
	bounce := httptest.NewServer(http.RedirectHandler(elsewhere.URL+"/stolen", http.StatusTemporaryRedirect))
	defer bounce.Close()

	moved, err := oauth.New(oauth.Config{Server: "files", URL: bounce.URL, Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	src, err := moved.TokenSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if token, err := src.Token(); token != nil || err != nil {
		t.Errorf("Token for another address = %v, %v, want none", token, err)
	}
	ask := func(c *http.Client, to string) error {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer secret")
		res, err := c.Do(req)
		if err == nil {
			res.Body.Close()
		}
		return err
	}
	if err := ask(moved.Client(nil), bounce.URL); err == nil || !strings.Contains(err.Error(), "a different server") {
		t.Errorf("a redirect to another server = %v, want a refusal", err)
	}
	if reached != "" {
		t.Errorf("the other server was reached: %s", reached)
	}
	if err := ask(moved.Client(nil), elsewhere.URL+"/direct"); err != nil || reached != "/direct \n" {
		t.Errorf("a request to another server = %v, it saw %q, want no token", err, reached)
	}
	// A refusal by another server is not answered with a token.
	req := httptest.NewRequest(http.MethodPost, elsewhere.URL, nil)
	if err := h.Authorize(t.Context(), req, &http.Response{StatusCode: 401, Body: http.NoBody}); err == nil {
		t.Error("Authorize for another server = nil, want a refusal")
	}
}

// TestMigration: when a server names another authorization server, nothing of
// the first reaches it.
func TestMigration(t *testing.T) {
	first, second := oauthtest.NewIssuer(t), oauthtest.NewIssuer(t)
	s := newResource(t, first)
	keep := &oauthtest.Memory{}
	h := s.handler(t, oauth.Config{Keep: keep, Ask: oauthtest.Agree})
	login(t, h)
	s.works(t, h)
	s.Move(second)
	wantLogin(t, s.call(t, h))
	if first.Asked != 0 {
		t.Errorf("the first authorization server was asked to renew %d times, want none", first.Asked)
	}
	login(t, h)
	s.works(t, h)
	name := strings.TrimPrefix(first.URL, "http://")
	for _, kind := range []string{"client-", "secret-", "refresh-", "access-", "code-"} {
		if strings.Contains(second.All(), kind+name) {
			t.Errorf("the second authorization server was sent %s of the first:\n%s", kind, second.All())
		}
	}
}

// TestRefusals: what a server or an authorization server may say that no login
// may follow. No person is asked, or nothing is exchanged.
func TestRefusals(t *testing.T) {
	tests := []struct {
		name   string
		server func(map[string]any) // its metadata
		issuer func(map[string]any)
		answer func(url.Values)
		want   string
	}{
		{name: "resource of another", server: func(m map[string]any) { m["resource"] = "https://example.com/mcp" }, want: "a different server"},
		{name: "resource beside", server: func(m map[string]any) { m["resource"] = m["resource"].(string) + "2" }, want: "a different server"},
		{name: "no authorization server", server: func(m map[string]any) { m["authorization_servers"] = nil }, want: "names no authorization server"},
		{name: "private authorization server", server: func(m map[string]any) { m["authorization_servers"] = []string{"https://10.0.0.1"} }, want: "not a public address"},
		{name: "cloud metadata", server: func(m map[string]any) { m["authorization_servers"] = []string{"https://169.254.169.254"} }, want: "not a public address"},
		{name: "in clear", server: func(m map[string]any) { m["authorization_servers"] = []string{"http://example.com"} }, want: "not https"},
		{name: "issuer of another", issuer: func(m map[string]any) { m["issuer"] = "https://example.com" }, want: "a different issuer, https://example.com"},
		{name: "no PKCE", issuer: func(m map[string]any) { delete(m, "code_challenge_methods_supported") }, want: "PKCE"},
		{name: "plain PKCE", issuer: func(m map[string]any) { m["code_challenge_methods_supported"] = []string{"plain"} }, want: "PKCE"},
		{name: "script", issuer: func(m map[string]any) { m["authorization_endpoint"] = "javascript:alert(1)" }, want: "not valid"},
		{name: "file", issuer: func(m map[string]any) { m["authorization_endpoint"] = "file:///etc/passwd" }, want: "not valid"},
		{name: "tokens in clear", issuer: func(m map[string]any) { m["token_endpoint"] = "http://example.com/token" }, want: "not https"},
		{name: "tokens inside", issuer: func(m map[string]any) { m["token_endpoint"] = "https://192.168.1.1/token" }, want: "not a public address"},
		{name: "registration inside", issuer: func(m map[string]any) { m["registration_endpoint"] = "https://[fd00::1]/r" }, want: "not a public address"},
		{name: "no registration", issuer: func(m map[string]any) { delete(m, "registration_endpoint") }, want: "oauth.clientId"},
		{name: "answer of another", answer: func(q url.Values) { q.Set("iss", "https://example.com") }, want: `from "https://example.com"`},
		{name: "answer with a slash", answer: func(q url.Values) { q.Set("iss", q.Get("iss")+"/") }, want: "expected"},
		{name: "answer of nobody", answer: func(q url.Values) { q.Del("iss") }, want: "expected"},
		{name: "no", answer: func(q url.Values) { q.Del("code"); q.Set("error", "access_denied\x1b[2J") }, want: "access_denied⟨U+001B⟩"},
		{name: "no code", answer: func(q url.Values) { q.Del("code") }, want: "no code"},
		{name: "code of another", answer: func(q url.Values) { q.Set("code", "x") }, want: "invalid_grant"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a, s := newWorld(t)
			s.Edit, a.Edit, a.Answer = test.server, test.issuer, test.answer
			asked := false
			h := s.handler(t, oauth.Config{Ask: func(ctx context.Context, address string) error {
				asked = true
				return oauthtest.Agree(ctx, address)
			}})
			err := h.Login(t.Context())
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("Login = %v, want %q", err, test.want)
			}
			if asked != (test.answer != nil) {
				t.Errorf("a person was asked: %v", asked)
			}
			if strings.Contains(a.All(), "grant_type") != (test.name == "code of another") {
				t.Errorf("the authorization server was asked for a token:\n%s", a.All())
			}
			wantLogin(t, s.call(t, h))
		})
	}
}

// TestStrayAnswers: what other pages send to the address that waits changes
// nothing.
func TestStrayAnswers(t *testing.T) {
	a, s := newWorld(t)
	h := s.handler(t, oauth.Config{Ask: func(ctx context.Context, address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		q := u.Query()
		back, state := q.Get("redirect_uri"), q.Get("state")
		if q.Get("code_challenge_method") != "S256" || !strings.HasPrefix(back, "http://127.0.0.1:") || q.Get("resource") != s.URL+"/mcp" {
			t.Errorf("the address is %s", address)
		}
		for query, want := range map[string]int{
			"?code=evil": 400, "?code=evil&state=": 400, "?code=evil&state=x": 400, "?code=evil&state=" + state + "&state=x": 400, "/more?code=evil&state=" + state: 404,
		} {
			res, err := http.Get(back + query)
			if err != nil {
				return err
			}
			res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("GET %s = %d, want %d", query, res.StatusCode, want)
			}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, back+"?code=evil&state="+state, nil)
		if err != nil {
			return err
		}
		req.Host = "evil.example.com"
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("GET with another Host = %d, want 403", res.StatusCode)
		}
		return oauthtest.Agree(ctx, address)
	}})
	login(t, h)
	if strings.Contains(a.All(), "evil") {
		t.Errorf("a stray code was exchanged:\n%s", a.All())
	}
}

// TestLoginEnds: a login without an answer ends with its context.
func TestLoginEnds(t *testing.T) {
	_, s := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	h := s.handler(t, oauth.Config{Ask: func(context.Context, string) error { cancel(); return nil }})
	if err := h.Login(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Login = %v, want %v", err, context.Canceled)
	}
	if err := s.handler(t, oauth.Config{}).Login(t.Context()); err == nil || !strings.Contains(err.Error(), "cannot ask a person") {
		t.Fatalf("Login without anybody to ask = %v", err)
	}
}

// TestStepUp: more scopes are asked for once; what was granted stays asked for.
func TestStepUp(t *testing.T) {
	_, s := newWorld(t)
	times := 0
	h := s.handler(t, oauth.Config{Interactive: true, Ask: func(ctx context.Context, address string) error {
		times++
		if times == 2 {
			u, _ := url.Parse(address)
			if got := u.Query().Get("scope"); got != "read write" {
				t.Errorf("the second login asks for %q, want read write", got)
			}
		}
		return oauthtest.Agree(ctx, address)
	}})
	if err := s.call(t, h); err != nil || times != 1 {
		t.Fatalf("call = %v after %d logins, want one", err, times)
	}
	s.Need("write")
	for range 3 {
		if err := s.call(t, h); err == nil {
			t.Fatal("call = nil, want a refusal")
		}
	}
	if times != 2 {
		t.Errorf("a person was asked %d times, want twice", times)
	}
	// If no person may be asked, the error says what is missing.
	quiet := s.handler(t, oauth.Config{Ask: never(t)})
	resp := &http.Response{StatusCode: 403, Body: http.NoBody, Header: http.Header{"Www-Authenticate": {`Bearer error="insufficient_scope", scope="admin"`}}}
	err := quiet.Authorize(t.Context(), httptest.NewRequest(http.MethodPost, s.URL+"/mcp", nil), resp)
	wantLogin(t, err)
	if !errors.Is(err, oauth.ErrLogin) || !strings.Contains(err.Error(), "admin") {
		t.Errorf("Authorize = %v, want it to name the scope", err)
	}
}

func TestNew(t *testing.T) {
	good := oauth.Config{Server: "x", URL: "https://example.com/mcp", Keep: &oauthtest.Memory{}}
	if _, err := oauth.New(good); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*oauth.Config){
		"no name":         func(c *oauth.Config) { c.Server = "" },
		"no keeper":       func(c *oauth.Config) { c.Keep = nil },
		"no url":          func(c *oauth.Config) { c.URL = "" },
		"in clear":        func(c *oauth.Config) { c.URL = "http://example.com" },
		"user in it":      func(c *oauth.Config) { c.URL = "https://a:b@example.com" },
		"not here":        func(c *oauth.Config) { c.Redirect = "0.0.0.0:0" },
		"document":        func(c *oauth.Config) { c.ClientMetadata = "http://example.com/x" },
		"document at all": func(c *oauth.Config) { c.ClientMetadata = "https://example.com/" },
	} {
		c := good
		edit(&c)
		if _, err := oauth.New(c); capability.KindOf(err) != capability.Invalid {
			t.Errorf("New with %s = %v, want a refusal", name, err)
		}
	}
}

// TestOneRenewalForAll: a short-lived token serves more than one request, and
// requests that wait for a failing renewal share its failure.
func TestOneRenewalForAll(t *testing.T) {
	a, s := newWorld(t)
	a.Lives = 20
	var now clock
	h := s.handler(t, oauth.Config{Ask: oauthtest.Agree, Now: now.time})
	login(t, h)
	ask := func() error {
		src, err := h.TokenSource(t.Context())
		if err == nil {
			_, err = src.Token()
		}
		return err
	}
	for range 11 {
		now.pass(400 * time.Millisecond)
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	if a.Asked != 0 {
		t.Errorf("a token that lives for 20 s was renewed %d times in 5 s, want 0", a.Asked)
	}
	now.pass(time.Minute)
	a.Close() // the server is gone
	first := ask()
	for range 10 {
		if err := ask(); err == nil || err.Error() != first.Error() {
			t.Errorf("Token = %v, want the failure that was shared: %v", err, first)
		}
	}
}
