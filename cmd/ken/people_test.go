//go:build unix

package main_test

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
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// Commands of scripts about people of an OpenID Connect issuer.

// An issuer says who people are, in tokens that it signs.
type issuer struct {
	url string
	key *rsa.PrivateKey
}

// issuers are those of scripts, by the folder that one runs in.
var issuers sync.Map

// startIssuer starts an issuer; $ISSUER is its address.
//
//	issuer
func startIssuer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: issuer")
	}
	i, stop, err := newIssuer()
	ts.Check(err)
	ts.Defer(stop)
	issuers.Store(ts.Getenv("WORK"), i)
	ts.Setenv("ISSUER", i.url)
}

func newIssuer() (i *issuer, stop func(), err error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, err
	}
	i = &issuer{key: key}
	server := httptest.NewServer(i)
	i.url = server.URL
	return i, server.Close, nil
}

// token returns a token for the client ken, with these claims besides those that every
// token has.
func (i *issuer) token(more map[string]any) (string, error) {
	now := time.Now()
	claims := map[string]any{"iss": i.url, "aud": "ken", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
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
func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var doc any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		doc = map[string]any{
			"issuer": i.url, "authorization_endpoint": i.url + "/authorize", "token_endpoint": i.url + "/token", "jwks_uri": i.url + "/keys",
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
	value, ok := issuers.Load(ts.Getenv("WORK"))
	if neg || len(args) != 2 || !ok {
		ts.Fatalf("usage: issuer, then person NAME CLAIMS")
	}
	i := value.(*issuer)
	var more map[string]any
	ts.Check(json.Unmarshal([]byte(args[1]), &more))
	token, err := i.token(more)
	ts.Check(err)
	ts.Setenv(args[0], token)
}
