package oauth_test

import (
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"ken/capability"
	"ken/internal/run/mcpgateway/oauth"
	"ken/internal/testkit/oauthtest"
)

// A resource is an MCP server that wants tokens, and its clients.
type resource struct{ *oauthtest.Resource }

func newResource(t *testing.T, a *oauthtest.Issuer) *resource {
	return &resource{oauthtest.NewResource(t, a)}
}

func newWorld(t *testing.T) (*oauthtest.Issuer, *resource) {
	a := oauthtest.NewIssuer(t)
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
		c.Keep = &oauthtest.Memory{}
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
