package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ken/internal/testkit"
)

// A testIssuer is an OpenID Connect issuer on this machine.
type testIssuer struct {
	*httptest.Server
	t testing.TB

	down     atomic.Bool
	keysDown atomic.Bool
	keysRead atomic.Int64

	mu     sync.Mutex
	rsa    *rsa.PrivateKey
	ec     *ecdsa.PrivateKey
	kid    string // that of the RSA key
	alg    string // of ID tokens
	claims map[string]any
	codes  map[string]url.Values // what a code was asked for with
	secret string
	tamper func(claims map[string]any) // before an ID token is signed
	coded  func()                      // when a code is brought
	found  map[string]any              // what discovery says besides
}

// issuerKey takes a while to make.
var issuerKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newTestIssuer(t testing.TB) *testIssuer {
	t.Helper()
	r := testkit.Must(issuerKey())(t)
	e := testkit.Must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	i := &testIssuer{t: t, rsa: r, ec: e, kid: "r1", alg: "RS256", codes: map[string]url.Values{}, found: map[string]any{}, claims: map[string]any{
		"sub": "ann", "name": "Ann Other", "groups": []string{"staff"},
	}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", i.keys)
	mux.HandleFunc("POST /token", i.token)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.down.Load() {
			http.Error(w, "down for a while", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *testIssuer) json(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Error(err)
	}
}

func (i *testIssuer) discovery(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	doc := map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"RS256", "ES256", "HS256", "none"},
	}
	maps.Copy(doc, i.found)
	i.json(w, doc)
}

func (i *testIssuer) keys(w http.ResponseWriter, _ *http.Request) {
	i.keysRead.Add(1)
	if i.keysDown.Load() {
		panic(http.ErrAbortHandler)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	b64 := base64.RawURLEncoding.EncodeToString
	point, err := i.ec.PublicKey.Bytes()
	if err != nil {
		i.t.Error(err)
	}
	i.json(w, map[string]any{"keys": []map[string]any{
		{"kty": "RSA", "kid": i.kid, "use": "sig", "n": b64(i.rsa.N.Bytes()), "e": "AQAB"},
		{"kty": "EC", "kid": "e1", "use": "sig", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])},
	}})
}

// authorize is what a person does at the issuer: they agree, and their browser
// is led back with a code.
func (i *testIssuer) authorize(to string) (back *url.URL) {
	i.t.Helper()
	u := testkit.Must(url.Parse(to))(i.t)
	q := u.Query()
	for name, want := range map[string]string{"response_type": "code", "client_id": "ken", "code_challenge_method": "S256"} {
		if got := q.Get(name); got != want {
			i.t.Errorf("the issuer is asked with %s %q, want %s", name, got, want)
		}
	}
	if len(q.Get("state")) < 40 || len(q.Get("nonce")) < 40 || len(q.Get("code_challenge")) != 43 {
		i.t.Errorf("the issuer is asked with %v", q)
	}
	code := random(16)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.codes[code] = q
	back = testkit.Must(url.Parse(q.Get("redirect_uri")))(i.t)
	back.RawQuery = url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL}}.Encode()
	return back
}

func (i *testIssuer) token(w http.ResponseWriter, r *http.Request) {
	if i.coded != nil {
		i.coded()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	code := r.PostFormValue("code")
	asked, ok := i.codes[code]
	delete(i.codes, code)
	sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	if !ok || id != "ken" || secret != i.secret || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(sum[:]) != asked.Get("code_challenge") {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	claims := i.about()
	claims["nonce"] = asked.Get("nonce")
	if i.tamper != nil {
		i.tamper(claims)
	}
	i.json(w, map[string]any{"access_token": "opaque", "token_type": "Bearer", "expires_in": 3600, "id_token": i.sign(i.alg, claims, nil)})
}

// about returns the claims about the person, as of now.
func (i *testIssuer) about() map[string]any {
	now := time.Now()
	claims := map[string]any{"iss": i.URL, "aud": "ken", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, i.claims)
	return claims
}

// sign makes a token. more replaces fields of its header.
func (i *testIssuer) sign(alg string, claims, more map[string]any) string {
	i.t.Helper()
	header := map[string]any{"alg": alg, "typ": "JWT", "kid": i.kid}
	if alg == "ES256" {
		header["kid"] = "e1"
	}
	maps.Copy(header, more)
	part := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			i.t.Error(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	text := part(header) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	var sig []byte
	var err error
	switch alg {
	case "RS256":
		sig, err = rsa.SignPKCS1v15(rand.Reader, i.rsa, crypto.SHA256, sum[:])
	case "ES256":
		r, s, e := ecdsa.Sign(rand.Reader, i.ec, sum[:])
		sig, err = make([]byte, 64), e
		r.FillBytes(sig[:32])
		s.FillBytes(sig[32:])
	case "HS256": // with what everybody knows as the secret
		der, e := x509.MarshalPKIXPublicKey(&i.rsa.PublicKey)
		mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
		mac.Write([]byte(text))
		sig, err = mac.Sum(nil), e
	}
	if err != nil {
		i.t.Error(err)
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}
