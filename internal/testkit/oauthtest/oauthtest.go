// Package oauthtest is an authorization server and an MCP server that wants its
// tokens, for tests.
package oauthtest

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
)

// An Issuer is a small authorization server that keeps to the rules and
// remembers all that it was sent.
type Issuer struct {
	*httptest.Server
	Edit   func(meta map[string]any) // of its metadata
	Answer func(q url.Values)        // of an answer to a login
	Asked  int                       // for tokens, by refresh
	Lives  int                       // seconds of a token

	mu      sync.Mutex
	sent    []string // all queries, bodies and headers with credentials
	codes   map[string]url.Values
	refresh map[string]bool
	access  map[string]bool
	n       int
}

// NewIssuer starts an issuer, which ends with the test.
func NewIssuer(t testing.TB) *Issuer {
	a := &Issuer{codes: map[string]url.Values{}, refresh: map[string]bool{}, access: map[string]bool{}, Lives: 3600}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		meta := map[string]any{
			"issuer": a.URL, "authorization_endpoint": a.URL + "/authorize", "token_endpoint": a.URL + "/token", "registration_endpoint": a.URL + "/register",
			"code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
			"token_endpoint_auth_methods_supported": []string{"client_secret_basic", "client_secret_post"},
		}
		if a.Edit != nil {
			a.Edit(meta)
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

func (a *Issuer) note(s string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sent = append(a.sent, s)
}

func (a *Issuer) next(kind string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	return fmt.Sprintf("%s-%s-%d", kind, strings.TrimPrefix(a.URL, "http://"), a.n)
}

// All returns all that the issuer was sent.
func (a *Issuer) All() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.sent, "\n")
}

func (a *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	a.note("authorize " + q.Encode())
	code := a.next("code")
	a.mu.Lock()
	a.codes[code] = q
	a.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {a.URL}}
	if a.Answer != nil {
		a.Answer(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (a *Issuer) token(w http.ResponseWriter, r *http.Request) {
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
		a.Asked++
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
	lives := a.Lives
	a.mu.Unlock()
	out := map[string]any{"access_token": access, "token_type": "Bearer", "refresh_token": refresh, "expires_in": lives}
	if scope != "" {
		out["scope"] = scope
	}
	reply(w, 200, out)
}

// Revoke makes every token and refresh token of the issuer worthless.
func (a *Issuer) Revoke(refresh bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.access)
	if refresh {
		clear(a.refresh)
	}
}

// A Resource is an MCP server that wants tokens of an issuer.
type Resource struct {
	*httptest.Server
	mu     sync.Mutex
	issuer *Issuer
	Edit   func(meta map[string]any)
	needs  []string // scopes for calling a tool
}

// NewResource starts a server, which ends with the test.
func NewResource(t testing.TB, a *Issuer) *Resource {
	s := &Resource{issuer: a}
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
		if s.Edit != nil {
			s.Edit(meta)
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

// Need has every call ask for scopes.
func (s *Resource) Need(scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needs = scopes
}

// Move names another issuer from now on.
func (s *Resource) Move(a *Issuer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issuer = a
}

// Agree does what a browser does with a person who agrees: it goes to the
// address and follows it back.
func Agree(ctx context.Context, address string) error {
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

// A Memory keeps values without sealing them.
type Memory struct {
	mu     sync.Mutex
	Values map[string][]byte
	Err    error // of every access
}

func (m *Memory) key(server string, by capability.Principal) string {
	return server + "\x00" + by.Tenant + "\x00" + by.ID
}

func (m *Memory) Load(_ context.Context, server string, by capability.Principal) ([]byte, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.Values[m.key(server, by)]
	return v, ok, m.Err
}

func (m *Memory) Save(_ context.Context, server string, by capability.Principal, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.Err != nil {
		return m.Err
	}
	if m.Values == nil {
		m.Values = map[string][]byte{}
	}
	m.Values[m.key(server, by)] = value
	return nil
}

func (m *Memory) Delete(_ context.Context, server string, by capability.Principal) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.Values, m.key(server, by))
	return m.Err
}
