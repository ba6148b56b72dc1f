package oauth

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"net/url"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// Tokens that are bound to a key (DPoP, RFC 9449). Where the authorization server
// supports it, each login has a key of its own, and each request proves that Ken has
// the key: a token that was stolen alone is of no use.

const headerNonce = "DPoP-Nonce"

// issuerMeta is the metadata of an authorization server with the members that the
// SDK does not have.
type issuerMeta struct {
	oauthex.AuthServerMeta
	Proofs []string `json:"dpop_signing_alg_values_supported"`
}

// newKey makes the key of a login, in PEM.
func newKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})), nil
}

// proof proves that Ken has the key of a login, for one request. token is empty at a
// token endpoint.
func (h *Handler) proof(keyText, method string, to *url.URL, token string) (string, error) {
	signer, err := parseKey(keyText)
	if err != nil {
		return "", err
	}
	key, ok := signer.(*ecdsa.PrivateKey)
	if !ok {
		return "", errRefused // not a key that newKey made
	}
	point, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		return "", err
	}
	encode := base64.RawURLEncoding.EncodeToString
	at := url.URL{Scheme: to.Scheme, Host: to.Host, Path: to.Path, RawPath: to.RawPath}
	claims := map[string]any{"jti": rand.Text(), "htm": method, "htu": at.String(), "iat": h.conf.Now().Unix()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = encode(sum[:])
	}
	h.mu.Lock()
	nonce := h.nonces[origin(to)]
	h.mu.Unlock()
	if nonce != "" {
		claims["nonce"] = nonce
	}
	jwk := map[string]string{"kty": "EC", "crv": "P-256", "x": encode(point[1:33]), "y": encode(point[33:])}
	return sign(key, map[string]any{"typ": "dpop+jwt", "jwk": jwk}, claims)
}

// nonce notes the word that a server wants in proofs. It reports whether the server
// refused a request for want of it.
func (h *Handler) nonce(res *http.Response, problem string) bool {
	word := res.Header.Get(headerNonce)
	if word == "" || len(word) > 1024 {
		return false
	}
	at := origin(res.Request.URL)
	h.mu.Lock()
	defer h.mu.Unlock()
	known := h.nonces[at] == word
	if h.nonces == nil || len(h.nonces) > 8 {
		h.nonces = map[string]string{}
	}
	h.nonces[at] = word
	return !known && problem == "use_dpop_nonce"
}

// proving puts a proof on each request to the server whose token is bound to a key.
type proving struct {
	h    *Handler
	next http.RoundTripper
}

func (p proving) RoundTrip(req *http.Request) (*http.Response, error) {
	p.h.mu.Lock()
	g := p.h.current
	p.h.mu.Unlock()
	token, ok := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	if !ok || g == nil || g.Key == "" || token != g.Access || origin(req.URL) != origin(p.h.url) {
		return p.next.RoundTrip(req)
	}
	res, err := p.send(req.Context(), req, g)
	if err != nil || !p.h.nonce(res, problemOf(res)) || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return res, err
	}
	res.Body.Close()
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	return p.send(req.Context(), again, g)
}

func problemOf(res *http.Response) string {
	if res.StatusCode != http.StatusUnauthorized {
		return ""
	}
	return readChallenge(res.Header).problem
}

func (p proving) send(ctx context.Context, req *http.Request, g *grant) (*http.Response, error) {
	proof, err := p.h.proof(g.Key, req.Method, req.URL, g.Access)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	out := req.Clone(ctx)
	out.Header.Set("Authorization", "DPoP "+g.Access)
	out.Header.Set("DPoP", proof)
	return p.next.RoundTrip(out)
}
