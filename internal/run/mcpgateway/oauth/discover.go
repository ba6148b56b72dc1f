package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"ken/internal/untrusted"
)

// A challenge is what a server said when it refused a request.
type challenge struct {
	metadata string   // where it describes itself
	scopes   []string // what it wants
	problem  string   // "insufficient_scope", …
}

func readChallenge(header http.Header) challenge {
	var c challenge
	// What cannot be read is as if it were not there: discovery goes on
	// without it.
	list, _ := oauthex.ParseWWWAuthenticate(header.Values("WWW-Authenticate"))
	for _, one := range list {
		if one.Scheme != "bearer" && one.Scheme != "dpop" {
			continue
		}
		if c.metadata == "" {
			c.metadata = one.Params["resource_metadata"]
		}
		if c.scopes == nil {
			c.scopes = strings.Fields(one.Params["scope"])
		}
		if c.problem == "" {
			c.problem = one.Params["error"]
		}
	}
	return c
}

// A place is where tokens for the server come from.
type place struct {
	resource string
	scopes   []string // that the resource knows
	server   *oauthex.AuthServerMeta
	own      bool // the server named none: it is its own authorization server
	proofs   bool // tokens can be bound to a key
}

// discover finds out where tokens come from.
func (h *Handler) discover(ctx context.Context, c challenge) (*place, error) {
	p, issuer, err := h.findResource(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := h.checkURL(issuer); err != nil {
		return nil, fmt.Errorf("the authorization server %s: %w", untrusted.Line(issuer, 200), err)
	}
	meta, err := h.findIssuer(ctx, issuer, p.own)
	if err != nil {
		return nil, err
	}
	if meta != nil {
		p.server, p.proofs = &meta.AuthServerMeta, slices.Contains(meta.Proofs, "ES256")
	} else {
		base := strings.TrimSuffix(issuer, "/")
		p.server = &oauthex.AuthServerMeta{
			Issuer: issuer, AuthorizationEndpoint: base + "/authorize", TokenEndpoint: base + "/token", RegistrationEndpoint: base + "/register",
		}
	}
	return p, nil
}

// findResource reads what the server says about itself: where its challenge
// points to, below its address, or at its root. A server that says nothing is
// its own authorization server, as in 2025-03-26.
func (h *Handler) findResource(ctx context.Context, c challenge) (*place, string, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	root := url.URL{Scheme: h.url.Scheme, Host: h.url.Host}
	places := []string{c.metadata, root.JoinPath(wellKnown, h.url.Path).String(), root.JoinPath(wellKnown).String()}
	for i, at := range places {
		if at == "" || slices.Contains(places[:i], at) {
			continue
		}
		var meta oauthex.ProtectedResourceMetadata
		found, err := h.getJSON(ctx, at, &meta)
		if status := (*statusError)(nil); i > 0 && errors.As(err, &status) {
			continue // not announced
		}
		if err != nil {
			return nil, "", fmt.Errorf("read the server's metadata at %s: %w", untrusted.Line(at, 200), err)
		}
		if !found {
			continue
		}
		switch {
		case !covers(meta.Resource, h.url):
			return nil, "", fmt.Errorf("the metadata at %s is for a different server, %s", untrusted.Line(at, 200), untrusted.Line(meta.Resource, 200))
		case len(meta.AuthorizationServers) == 0:
			return nil, "", errors.New("the server names no authorization server")
		}
		return &place{resource: meta.Resource, scopes: meta.ScopesSupported}, meta.AuthorizationServers[0], nil
	}
	resource := *h.url
	resource.Fragment = ""
	return &place{resource: resource.String(), own: true}, root.String(), nil
}

// covers says that a resource is this server: of its origin, and at its path or
// above it.
func covers(resource string, server *url.URL) bool {
	u, err := url.Parse(resource)
	if err != nil || u.Host == "" || u.Fragment != "" || u.User != nil || origin(u) != origin(server) {
		return false
	}
	path := strings.TrimSuffix(u.Path, "/")
	rest, below := strings.CutPrefix(strings.TrimSuffix(server.Path, "/"), path)
	return below && (rest == "" || rest[0] == '/') && (u.RawQuery == "" || u.RawQuery == server.RawQuery)
}

// findIssuer reads the metadata of an authorization server. It is nil where
// there is none.
func (h *Handler) findIssuer(ctx context.Context, issuer string, own bool) (*issuerMeta, error) {
	u, err := url.Parse(issuer)
	if err != nil {
		return nil, err
	}
	root, path := url.URL{Scheme: u.Scheme, Host: u.Host}, strings.Trim(u.Path, "/")
	places := []string{
		root.JoinPath("/.well-known/oauth-authorization-server", path).String(),
		root.JoinPath("/.well-known/openid-configuration", path).String(),
	}
	if path != "" {
		places = append(places, root.JoinPath(path, "/.well-known/openid-configuration").String())
	}
	for _, at := range places {
		meta := &issuerMeta{}
		found, err := h.getJSON(ctx, at, meta)
		if err != nil {
			return nil, fmt.Errorf("read the metadata of the authorization server at %s: %w", at, err)
		}
		if found {
			return meta, h.checkIssuer(&meta.AuthServerMeta, issuer, own)
		}
	}
	return nil, nil
}

// checkIssuer refuses metadata that is for another issuer or leads elsewhere.
func (h *Handler) checkIssuer(meta *oauthex.AuthServerMeta, issuer string, own bool) error {
	// A slash at the end is all that may differ: so many servers have it in
	// one of the two places only. Where no issuer was named, any of the
	// server's own origin is as good.
	same := strings.TrimSuffix(meta.Issuer, "/") == strings.TrimSuffix(issuer, "/")
	if u, err := url.Parse(meta.Issuer); own && err == nil && origin(u) == origin(h.url) {
		same = true
	}
	if !same {
		return fmt.Errorf("the metadata of the authorization server %s names a different issuer, %s", issuer, untrusted.Line(meta.Issuer, 200))
	}
	machine := h.conf.Machine.Grant != "" // no browser and no code
	if !machine && !slices.Contains(meta.CodeChallengeMethodsSupported, "S256") {
		return fmt.Errorf("the authorization server %s does not announce PKCE with S256, which Ken requires so that a code cannot be stolen", issuer)
	}
	if meta.AuthorizationEndpoint == "" && !machine || meta.TokenEndpoint == "" {
		return fmt.Errorf("the metadata of the authorization server %s has no authorization or token endpoint", issuer)
	}
	for _, at := range []string{meta.AuthorizationEndpoint, meta.TokenEndpoint, meta.RegistrationEndpoint} {
		if at == "" {
			continue
		}
		if err := h.checkURL(at); err != nil {
			return fmt.Errorf("the authorization server %s: %w", issuer, err)
		}
	}
	return nil
}

type statusError struct{ status string }

func (e *statusError) Error() string { return "the server answers " + e.status }

const mostMetadata = 1 << 20

// getJSON reads a document. It reports false where there is none.
func (h *Handler) getJSON(ctx context.Context, at string, into any) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := h.fetch.Do(req)
	if err != nil {
		return false, err
	}
	defer res.Body.Close()
	switch {
	case res.StatusCode >= 400 && res.StatusCode < 500:
		return false, nil
	case res.StatusCode != http.StatusOK:
		return false, &statusError{res.Status}
	}
	kind, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return false, nil // a page that says that there is nothing
	}
	return true, decodeBody(res.Body, into)
}

func decodeBody(body io.Reader, into any) error {
	data, err := io.ReadAll(io.LimitReader(body, mostMetadata+1))
	if err != nil {
		return err
	}
	if len(data) > mostMetadata {
		return fmt.Errorf("the response has more than %d bytes", mostMetadata)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return errors.New("the response is not the expected JSON")
	}
	return nil
}
