package oauth_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/run/mcpgateway/oauth"
)

// An issuer is a small authorization server that keeps to the rules and
// remembers all that it was sent.
type issuer struct {
	*httptest.Server
	edit func(meta map[string]any) // of its metadata

	mu      sync.Mutex
	sent    []string // all queries, bodies and headers with credentials
	codes   map[string]url.Values
	refresh map[string]bool
	access  map[string]bool
	n       int
	asked   int // for tokens, by refresh
	lives   int // seconds of a token
	answer  func(q url.Values)
	grants  func(scope string) string
}

func newIssuer(t *testing.T) *issuer {
	a := &issuer{codes: map[string]url.Values{}, refresh: map[string]bool{}, access: map[string]bool{}, lives: 3600}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		meta := map[string]any{
			"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token", "registration_endpoint": a.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
			"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post"},
		}
		if a.edit != nil {
			a.edit(meta)
		}
		reply(w, 200, meta)
	})
	mux.HandleFunc("POST /register", func(w http.ResponseWriter, r *http.Request) {
		var meta map[string]any
		json.NewDecoder(r.Body).Decode(&meta)
		a.note("register " + fmt.Sprint(meta["redirect_uris"]))
		reply(w, 201, map[string]any{"client_id": a.next("client"), "client_secret": a.next("secret"), "token_endpoint_auth_method": meta["token_endpoint_auth_method"]})
	})
	mux.HandleFunc("GET /authorize", a.authorize)
	mux.HandleFunc("POST /token", a.token)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v)
}

func (a *issuer) note(s string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, s)
}

func (a *issuer) next(kind string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	return fmt.Sprintf("%s-%s-%d", kind, strings.TrimPrefix(a.URL, "http://"), a.n)
}

func (a *issuer) all() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.sent, "\n")
}

func (a *issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.note("authorize " + q.Encode())
	code := a.next("code")
	a.mu.Lock()
	a.codes[code] = q
	a.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {a.URL}}
	if a.answer != nil {
		a.answer(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (a *issuer) token(w http.ResponseWriter, r *http.Request) {
	r.ParseForm()
	user, password, _ := r.BasicAuth()
	a.note("token " + r.Form.Encode() + " " + user + ":" + password)
	fail := func(code string) { reply(w, 400, map[string]any{"error": code}) }
	scope := ""
	switch r.Form.Get("grant_type") {
	case "authorization_code":
		a.mu.Lock()
		q, ok := a.codes[r.Form.Get("code")]
		delete(a.codes, r.Form.Get("code"))
		a.mu.Unlock()
		sum := sha256.Sum256([]byte(r.Form.Get("code_verifier")))
		if !ok || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || q.Get("redirect_uri") != r.Form.Get("redirect_uri") || q.Get("resource") != r.Form.Get("resource") {
			fail("invalid_grant")
			return
		}
		scope = q.Get("scope")
	case "refresh_token":
		a.mu.Lock()
		a.asked++
		ok := a.refresh[r.Form.Get("refresh_token")]
		delete(a.refresh, r.Form.Get("refresh_token"))
		a.mu.Unlock()
		if !ok || r.Form.Get("resource") == "" {
			fail("invalid_grant")
			return
		}
	}
	access, refresh := a.next("access"), a.next("refresh")
	a.mu.Lock()
	a.access[access], a.refresh[refresh] = true, true
	lives := a.lives
	a.mu.Unlock()
	out := map[string]any{"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "expires_in": lives}
	if a.grants != nil {
		scope = a.grants(scope)
	}
	if scope != "" {
		out["scope"] = scope
	}
	reply(w, 200, out)
}

// revoke makes every token and refresh token of the issuer worthless.
func (a *issuer) revoke(refresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
	if refresh {
		clear(a.refresh)
	}
}

// A resource is an MCP server that wants tokens of an issuer.
type resource struct {
	*httptest.Server
	mu     sync.Mutex
	issuer *issuer
	edit   func(meta map[string]any)
	needs  []string // scopes for calling a tool
}

func newResource(t *testing.T, a *issuer) *resource {
	s := &resource{issuer: a}
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "hello"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hi"}}}, nil, nil
	})
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true})
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		s.mu.Lock()
		a := s.issuer
		s.mu.Unlock()
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.access[token] {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{Expiration: time.Now().Add(time.Hour)}, nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		meta := map[string]any{"resource": s.URL + "/mcp", "authorization_servers": []string{s.issuer.URL}, "scopes_supported": []string{"read"}}
		s.mu.Unlock()
		if s.edit != nil {
			s.edit(meta)
		}
		reply(w, 200, meta)
	})
	mux.Handle("/mcp", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		needs := s.needs
		s.mu.Unlock()
		if r.Header.Get("Mcp-Method") == "tools/call" && needs != nil {
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+strings.Join(needs, " ")+`"`)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: s.URL + "/.well-known/oauth-protected-resource/mcp"})(inner).ServeHTTP(w, r)
	}))
	s.Server = httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s
}

func newWorld(t *testing.T) (*issuer, *resource) {
	a := newIssuer(t)
	return a, newResource(t, a)
}

func login(t *testing.T, h *oauth.Handler) {
	t.Helper()
	if err := h.Login(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// works makes a call that must succeed.
func (s *resource) works(t *testing.T, h *oauth.Handler) {
	t.Helper()
	if err := s.call(t, h); err != nil {
		t.Fatal(err)
	}
}

func (s *resource) handler(t *testing.T, c oauth.Config) *oauth.Handler {
	t.Helper()
	if c.Server == "" {
		c.Server = "files"
	}
	c.URL = s.URL + "/mcp"
	if c.Keep == nil {
		c.Keep = &memory{}
	}
	h, err := oauth.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// call connects and calls the tool.
func (s *resource) call(t *testing.T, h *oauth.Handler) error {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{
		Endpoint: s.URL + "/mcp", HTTPClient: h.Client(nil), OAuthHandler: h, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	if err != nil {
		return err
	}
	defer session.Close()
	_, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "hello"})
	return err
}

func wantLogin(t *testing.T, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "ken login files") || capability.KindOf(err) != capability.Unavailable {
		t.Fatalf("error = %v (%v), want one that says ken login files", err, capability.KindOf(err))
	}
}

// agree does what a browser does with a person who agrees: it goes to the
// address and follows it back.
func agree(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// A memory keeps values without sealing them.
type memory struct {
	values map[string][]byte
	err    error
}

func (m *memory) key(server string, by capability.Principal) string {
	return server + "\x00" + by.Tenant + "\x00" + by.ID
}

func (m *memory) Load(_ context.Context, server string, by capability.Principal) ([]byte, bool, error) {
	v, ok := m.values[m.key(server, by)]
	return v, ok, m.err
}

func (m *memory) Save(_ context.Context, server string, by capability.Principal, value []byte) error {
	if m.err != nil {
		return m.err
	}
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[m.key(server, by)] = value
	return nil
}

func (m *memory) Delete(_ context.Context, server string, by capability.Principal) error {
	delete(m.values, m.key(server, by))
	return m.err
}
