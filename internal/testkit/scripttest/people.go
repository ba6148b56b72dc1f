//go:build unix

package scripttest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Commands of scripts about people of an OpenID Connect issuer.

// An Issuer says who people are, in tokens that it signs.
type Issuer struct {
	URL string
	key *rsa.PrivateKey
}

// startIssuer starts an issuer; $ISSUER is its address.
//
//	issuer
func startIssuer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: issuer")
	}
	i, stop, err := NewIssuer()
	ts.Check(err)
	ts.Defer(stop)
	of(ts).issuer = i
	ts.Setenv("ISSUER", i.URL)
}

// NewIssuer starts an issuer.
func NewIssuer() (i *Issuer, stop func(), err error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	i = &Issuer{key: key}
	server := httptest.NewServer(i)
	i.URL = server.URL
	return i, server.Close, nil
}

// Token returns a token for the client ken, with these claims besides those that every
// token has.
func (i *Issuer) Token(more map[string]any) (string, error) {
	now := time.Now()
	claims := map[string]any{"iss": i.URL, "aud": "ken", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, more)
	head, err := json.Marshal(map[string]any{"alg": "RS256", "typ": "JWT", "kid": "1"})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, i.key, crypto.SHA256, sum[:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature), err
}

// ServeHTTP tells about the issuer, and its key.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var doc any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		doc = map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
		}
	case "/keys":
		doc = map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "1",
			"n": base64.RawURLEncoding.EncodeToString(i.key.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(i.key.E)).Bytes()),
		}}}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(doc)
}

// person NAME CLAIMS: puts a token into the environment that the issuer gives
// somebody, with these claims besides those that every token for the client ken
// has.
func person(ts *testscript.TestScript, neg bool, args []string) {
	i := of(ts).issuer
	if neg || len(args) != 2 || i == nil {
		ts.Fatalf("usage: issuer, then person NAME CLAIMS")
	}
	var more map[string]any
	ts.Check(json.Unmarshal([]byte(args[1]), &more))
	token, err := i.Token(more)
	ts.Check(err)
	ts.Setenv(args[0], token)
}
