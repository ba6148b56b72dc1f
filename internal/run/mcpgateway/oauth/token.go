package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const grantVersion = 1

// A grant is what a login gave, and all that is needed to renew it: where, as
// whom and for what. It is kept sealed.
type grant struct {
	V             int       `json:"v"`
	Server        string    `json:"server,omitempty"` // the name of the MCP server; a login of an older version has none
	Resource      string    `json:"resource"`
	Issuer        string    `json:"issuer"`
	TokenEndpoint string    `json:"token_endpoint"`
	Client        client    `json:"client"`
	Scopes        []string  `json:"scopes,omitempty"` // granted, or asked for where nothing was said
	Access        string    `json:"access"`
	Refresh       string    `json:"refresh,omitempty"`
	Issued        time.Time `json:"issued,omitzero"`
	Expires       time.Time `json:"expires,omitzero"` // zero: not said
	Key           string    `json:"key,omitempty"`    // that the token is bound to (DPoP), in PEM; empty: to none
}

// early is how long before its end a token is renewed. A short-lived token is
// renewed in the last quarter of its lifetime, so that it serves more than one
// request.
const early = 30 * time.Second

func (g *grant) fresh(now time.Time) bool {
	margin := early
	if !g.Issued.IsZero() {
		margin = min(early, g.Expires.Sub(g.Issued)/4)
	}
	return g.Access != "" && (g.Expires.IsZero() || now.Add(margin).Before(g.Expires))
}

// errRefused: the authorization server takes a grant no more.
var errRefused = errors.New("the authorization server no longer accepts the login")

// An issue is what a token endpoint answers.
type issue struct {
	Access  string      `json:"access_token"`
	Type    string      `json:"token_type"`
	Issued  string      `json:"issued_token_type"`
	Refresh string      `json:"refresh_token"`
	Expires json.Number `json:"expires_in"`
	Scope   *string     `json:"scope"`
	problem
}

// request sends a request to a token endpoint. g has where, as whom and for what. A
// server that wants its word in the proof gets the request once more.
func (h *Handler) request(ctx context.Context, g grant, form url.Values) (issue, error) {
	got, again, err := h.requestOnce(ctx, g, form)
	if again {
		got, _, err = h.requestOnce(ctx, g, form)
	}
	return got, err
}

func (h *Handler) requestOnce(ctx context.Context, g grant, form url.Values) (got issue, again bool, err error) {
	form.Set("resource", g.Resource)
	switch g.Client.Method {
	case "client_secret_basic":
	case privateKey:
		signed, err := h.assertion(&g)
		if err != nil {
			return got, false, err
		}
		form.Set("client_assertion_type", assertionJWT)
		form.Set("client_assertion", signed)
		form.Set("client_id", g.Client.ID)
	case "client_secret_post":
		form.Set("client_secret", g.Client.Secret)
		form.Set("client_id", g.Client.ID)
	default:
		if g.Client.ID != "" {
			form.Set("client_id", g.Client.ID)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.TokenEndpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return got, false, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if g.Client.Method == "client_secret_basic" {
		req.SetBasicAuth(url.QueryEscape(g.Client.ID), url.QueryEscape(g.Client.Secret))
	}
	if g.Key != "" {
		proof, err := h.proof(g.Key, req.Method, req.URL, "")
		if err != nil {
			return got, false, err
		}
		req.Header.Set("DPoP", proof)
	}
	res, err := h.fetch.Do(req)
	if err != nil {
		return got, false, err
	}
	defer res.Body.Close()
	err = decodeBody(res.Body, &got)
	again = h.nonce(res, got.Code) && g.Key != ""
	switch {
	case got.Code == "invalid_grant" || got.Code == "invalid_client" || got.Code == "unauthorized_client":
		return got, again, fmt.Errorf("%w: %s", errRefused, got.problem)
	case got.Code != "" || res.StatusCode != http.StatusOK:
		return got, again, fmt.Errorf("request a token from %s: the server answers %s %s", g.TokenEndpoint, res.Status, got.problem)
	case err != nil:
		return got, again, fmt.Errorf("request a token from %s: %w", g.TokenEndpoint, err)
	}
	return got, false, nil
}

// ask requests an access token and gives the grant with what came.
func (h *Handler) ask(ctx context.Context, g grant, form url.Values) (*grant, error) {
	got, err := h.request(ctx, g, form)
	switch {
	case err != nil:
		return nil, err
	case got.Access == "" || !strings.EqualFold(got.Type, "bearer") && (g.Key == "" || !strings.EqualFold(got.Type, "DPoP")) || strings.ContainsFunc(got.Access, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, fmt.Errorf("request a token from %s: the response has no usable token", g.TokenEndpoint)
	}
	g.Access, g.Issued, g.Expires = got.Access, h.conf.Now().UTC(), time.Time{}
	if seconds, err := got.Expires.Float64(); err == nil && seconds > 0 {
		g.Expires = h.conf.Now().Add(time.Duration(min(seconds, 10*365*24*3600) * float64(time.Second))).UTC()
	}
	if strings.EqualFold(got.Type, "bearer") {
		g.Key = "" // the server bound it to none
	}
	if got.Refresh != "" {
		g.Refresh = got.Refresh
	}
	if got.Scope != nil {
		g.Scopes = strings.Fields(*got.Scope)
	}
	return &g, nil
}

// renew asks for a new token with the refresh token.
func (h *Handler) renew(ctx context.Context, g *grant) (*grant, error) {
	if h.conf.Machine.Grant != "" {
		return h.obtain(ctx, challenge{scopes: g.Scopes})
	}
	if g.Refresh == "" {
		return nil, fmt.Errorf("%w: the token has expired and cannot be renewed", errRefused)
	}
	return h.ask(ctx, *g, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}})
}
