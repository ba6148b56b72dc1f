package oauth

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/untrusted"
)

// A Grant is a way to a token without a person at a browser. The zero value is
// none: a person logs in.
type Grant string

// The grants.
const (
	GrantClient   Grant = "client-credentials" // the client itself, with its secret or key
	GrantJWT      Grant = "jwt-bearer"         // Token, a signed statement about a workload (RFC 7523)
	GrantExchange Grant = "token-exchange"     // Token, an access token from elsewhere (RFC 8693)
	GrantIDJAG    Grant = "id-jag"             // Token, an ID token, by way of the company's identity provider
)

// A Machine is what a grant without a person needs.
type Machine struct {
	Grant Grant

	// Issuer is the only authorization server that gets the client's secret or the
	// token. The MCP server names one too, and must name this one.
	Issuer string

	// Key is the private key of the client in PEM (PKCS #8), with which it signs
	// who it is. Without one it uses the client's secret.
	Key string

	// Token returns the token to begin with. It is asked each time, because such
	// tokens last for minutes.
	Token func(ctx context.Context) (string, error)

	// Provider is the token endpoint of the identity provider, and ProviderClient
	// what it knows Ken by; for GrantIDJAG.
	Provider, ProviderClient string
}

const (
	tokenTypes   = "urn:ietf:params:oauth:token-type:"
	grantTypes   = "urn:ietf:params:oauth:grant-type:"
	typeIDJAG    = tokenTypes + "id-jag"
	assertionJWT = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	privateKey   = "private_key_jwt"
)

// checkMachine says what is missing.
func (c *Config) checkMachine() (fix string, err error) {
	m := &c.Machine
	at := "mcp.servers." + c.Server + ".oauth."
	if m.Grant != "" && m.Issuer == "" {
		return "set " + at + "issuer", fmt.Errorf("the grant %s needs the authorization server that may get its secrets", m.Grant)
	}
	switch m.Grant {
	case "":
		return "", nil
	case GrantClient:
		if c.ClientID == "" || c.ClientSecret == "" && m.Key == "" {
			return "set clientId, and " + at + "clientSecret or " + at + "clientKey", errors.New("the grant client-credentials needs a client and its secret or key")
		}
	case GrantJWT, GrantExchange, GrantIDJAG:
		if m.Token == nil {
			return "set " + at + "token", fmt.Errorf("the grant %s needs a token to begin with", m.Grant)
		}
		if m.Grant == GrantIDJAG && (m.Provider == "" || m.ProviderClient == "" || c.ClientID == "") {
			return "set clientId, " + at + "provider (its token endpoint) and " + at + "providerClient", errors.New("the grant id-jag needs the identity provider")
		}
	default:
		return "write client-credentials, jwt-bearer, token-exchange or id-jag", fmt.Errorf("the grant %q is not known", m.Grant)
	}
	if m.Key != "" {
		if _, err := parseKey(m.Key); err != nil {
			return "set " + at + "clientKey to a private key in PEM (PKCS #8): P-256, RSA or Ed25519", fmt.Errorf("the key of the client cannot be used: %w", err)
		}
	}
	return "", nil
}

// obtain gets a token without a person. The turn is held. A failure is not tried
// again for a moment, and no other grant is tried.
func (h *Handler) obtain(ctx context.Context, c challenge) (*grant, error) {
	h.mu.Lock()
	last := h.obtained
	h.mu.Unlock()
	if h.conf.Now().Sub(last.at) < sharedFor && last.err != nil {
		return nil, last.err
	}
	g, err := h.obtainNow(ctx, c)
	if err != nil {
		err = &capability.Error{
			Kind: capability.Unavailable, Op: "get a token for", Target: h.conf.Server, Err: err, Fix: "check mcp.servers." + h.conf.Server + ".oauth, and what the authorization server knows of the client",
		}
	}
	if ctx.Err() == nil {
		h.mu.Lock()
		h.obtained = attempt{at: h.conf.Now(), err: err}
		h.mu.Unlock()
	}
	return g, err
}

func (h *Handler) obtainNow(ctx context.Context, c challenge) (*grant, error) {
	p, err := h.discover(ctx, c)
	if err != nil {
		return nil, err
	}
	m := &h.conf.Machine
	if strings.TrimSuffix(p.server.Issuer, "/") != strings.TrimSuffix(m.Issuer, "/") {
		return nil, fmt.Errorf("the server names the authorization server %s, and oauth.issuer is %s", untrusted.Line(p.server.Issuer, 200), m.Issuer)
	}
	as := client{ID: h.conf.ClientID, Secret: h.conf.ClientSecret}
	as.Method = method(as.Secret, "", p.server.TokenEndpointAuthMethodsSupported)
	if m.Key != "" {
		as.Secret, as.Method = "", privateKey
	}
	scopes := h.conf.Scopes
	if len(c.scopes) > 0 {
		scopes = c.scopes
	}
	g := grant{V: grantVersion, Resource: p.resource, Issuer: p.server.Issuer, TokenEndpoint: p.server.TokenEndpoint, Client: as, Scopes: scopes}
	if p.proofs {
		if g.Key, err = newKey(); err != nil {
			return nil, err
		}
	}
	form := url.Values{}
	if len(scopes) > 0 {
		form.Set("scope", strings.Join(scopes, " "))
	}
	if m.Grant == GrantClient {
		form.Set("grant_type", "client_credentials")
		return h.ask(ctx, g, form)
	}
	token, err := m.Token(ctx)
	if err != nil {
		return nil, err
	}
	switch m.Grant {
	case GrantExchange:
		form.Set("grant_type", grantTypes+"token-exchange")
		form.Set("subject_token", token)
		form.Set("subject_token_type", tokenTypes+"access_token")
		form.Set("requested_token_type", tokenTypes+"access_token")
		return h.ask(ctx, g, form)
	case GrantIDJAG:
		if token, err = h.introduce(ctx, p, token, form.Get("scope")); err != nil {
			return nil, err
		}
	}
	form.Set("grant_type", grantTypes+"jwt-bearer")
	form.Set("assertion", token)
	return h.ask(ctx, g, form)
}

// introduce exchanges an ID token at the identity provider of a company for a
// statement to the authorization server of the MCP server (ID-JAG).
func (h *Handler) introduce(ctx context.Context, p *place, token, scope string) (string, error) {
	m := &h.conf.Machine
	if err := h.checkURL(m.Provider); err != nil {
		return "", fmt.Errorf("the identity provider: %w", err)
	}
	form := url.Values{
		"grant_type": {grantTypes + "token-exchange"}, "requested_token_type": {typeIDJAG}, "audience": {p.server.Issuer},
		"subject_token": {token}, "subject_token_type": {tokenTypes + "id_token"},
	}
	if scope != "" {
		form.Set("scope", scope)
	}
	at := grant{Resource: p.resource, TokenEndpoint: m.Provider, Client: client{ID: m.ProviderClient, Method: "none"}}
	got, err := h.request(ctx, at, form)
	switch {
	case err != nil:
		return "", err
	case got.Issued != typeIDJAG || got.Access == "":
		return "", fmt.Errorf("request a token from %s: the response has no ID-JAG", m.Provider)
	}
	return got.Access, nil
}

// assertion signs who the client is, for the authorization server alone.
func (h *Handler) assertion(g *grant) (string, error) {
	key, err := parseKey(h.conf.Machine.Key)
	if err != nil {
		return "", err
	}
	now := h.conf.Now()
	return sign(key, nil, map[string]any{
		"iss": g.Client.ID, "sub": g.Client.ID, "aud": g.Issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	})
}

func parseKey(text string) (crypto.Signer, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("not PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		if k.Curve == elliptic.P256() {
			return k, nil
		}
	case *rsa.PrivateKey:
		return k, nil
	case ed25519.PrivateKey:
		return k, nil
	}
	return nil, fmt.Errorf("a key of type %T", key)
}

// sign makes a JSON Web Token in the way of the key.
func sign(key crypto.Signer, header, claims map[string]any) (string, error) {
	head := map[string]any{"typ": "JWT"}
	for name, value := range header {
		head[name] = value
	}
	var hash crypto.Hash
	switch key.(type) {
	case *ecdsa.PrivateKey:
		head["alg"], hash = "ES256", crypto.SHA256
	case *rsa.PrivateKey:
		head["alg"], hash = "RS256", crypto.SHA256
	default:
		head["alg"] = "EdDSA"
	}
	var parts [2]string
	for i, v := range []map[string]any{head, claims} {
		raw, err := json.Marshal(v)
		if err != nil {
			return "", err
		}
		parts[i] = base64.RawURLEncoding.EncodeToString(raw)
	}
	text := parts[0] + "." + parts[1]
	digest := []byte(text)
	if hash != 0 {
		sum := sha256.Sum256(digest)
		digest = sum[:]
	}
	var sig []byte
	var err error
	if k, ok := key.(*ecdsa.PrivateKey); ok {
		r, s, signErr := ecdsa.Sign(rand.Reader, k, digest)
		if err = signErr; err == nil {
			sig = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		}
	} else {
		sig, err = key.Sign(rand.Reader, digest, hash)
	}
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig), nil
}
