package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"ken/capability"
	"ken/internal/untrusted"
)

// A client is what an authorization server knows Ken by.
type client struct {
	ID     string `json:"id"`
	Secret string `json:"secret,omitempty"`
	Method string `json:"method"` // at the token endpoint: "none", "client_secret_post" or "client_secret_basic"
}

// register returns the client to log in with: that of the configuration, a
// metadata document, or one that is registered now.
func (h *Handler) register(ctx context.Context, p *place, redirect string) (client, error) {
	methods := p.server.TokenEndpointAuthMethodsSupported
	switch {
	case h.conf.ClientID != "":
		c := client{ID: h.conf.ClientID, Secret: h.conf.ClientSecret}
		c.Method = method(c.Secret, "", methods)
		return c, nil
	case h.conf.ClientMetadata != "" && p.server.ClientIDMetadataDocumentSupported:
		return client{ID: h.conf.ClientMetadata, Method: "none"}, nil
	case p.server.RegistrationEndpoint == "":
		return client{}, &capability.Error{
			Kind: capability.Unavailable, Op: "log in to", Target: h.conf.Server,
			Err: errors.New("the authorization server does not support client registration"),
			Fix: "register Ken there by hand and set mcp.servers." + h.conf.Server + ".oauth.clientId",
		}
	}
	wish := oauthex.ClientRegistrationMetadata{
		RedirectURIs: []string{redirect}, ClientName: "Ken", ApplicationType: "native",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		TokenEndpointAuthMethod: wishedMethod(methods),
	}
	c, err := h.registerNow(ctx, p.server.RegistrationEndpoint, wish)
	if err != nil {
		return client{}, fmt.Errorf("register at %s: %w", p.server.RegistrationEndpoint, err)
	}
	return c, nil
}

// wishedMethod is the plainest that the server takes: Ken is on the user's own
// machine and can keep no secret from its user.
func wishedMethod(supported []string) string {
	for _, m := range []string{"none", "client_secret_post", "client_secret_basic"} {
		if slices.Contains(supported, m) {
			return m
		}
	}
	return "none"
}

// method says how a client names itself when it asks for a token: as was agreed,
// or as the server can.
func method(secret, agreed string, supported []string) string {
	switch {
	case secret == "":
		return "none"
	case agreed == "client_secret_post" || agreed == "client_secret_basic":
		return agreed
	case slices.Contains(supported, "client_secret_post") && !slices.Contains(supported, "client_secret_basic"):
		return "client_secret_post"
	}
	return "client_secret_basic" // what every server must have
}

func (h *Handler) registerNow(ctx context.Context, at string, wish oauthex.ClientRegistrationMetadata) (client, error) {
	body, err := json.Marshal(wish)
	if err != nil {
		return client{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		return client{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	res, err := h.fetch.Do(req)
	if err != nil {
		return client{}, err
	}
	defer res.Body.Close()
	var got struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		Method       string `json:"token_endpoint_auth_method"`
		problem
	}
	if err := decodeBody(res.Body, &got); err != nil || res.StatusCode/100 != 2 || got.ClientID == "" {
		return client{}, fmt.Errorf("answered %s %s", res.Status, got.problem)
	}
	if got.Method == "" {
		got.Method = wish.TokenEndpointAuthMethod
	}
	return client{ID: got.ClientID, Secret: got.ClientSecret, Method: method(got.ClientSecret, got.Method, nil)}, nil
}

// A problem is how an authorization server says no.
type problem struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (p problem) String() string { return untrusted.Line(p.Code+" "+p.Description, 300) }
