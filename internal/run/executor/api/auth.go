package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/address"
)

// A credential says how one secret is sent. The source writes it into Meta.
type credential struct {
	Secret string `json:"secret"` // its name
	Scheme string `json:"scheme"` // apiKey, bearer, basic, clientCredentials
	In     string `json:"in"`     // apiKey: header, query, cookie
	Name   string `json:"name"`   // apiKey: of the header, parameter or cookie

	TokenURL string `json:"tokenUrl"` // where tokens are fetched, or renewed
	Scope    string `json:"scope"`
	Refresh  string `json:"refresh"` // bearer: the secret that renews it, where there is one
	Client   string `json:"client"`  // and that of the client's id
	Key      string `json:"key"`     // and that of the client's own secret
}

func (a credential) check() error {
	switch a.Scheme {
	case "bearer", "basic", "clientCredentials":
	case "apiKey":
		if !slices.Contains([]string{"header", "query", "cookie"}, a.In) || a.Name == "" {
			return errors.New("the document does not define where the API key goes")
		}
		if a.In == "header" && (framing(a.Name) || !headerName(a.Name)) {
			return errors.New("the API key would replace a header that controls how the request is parsed")
		}
	default:
		return fmt.Errorf("unknown authentication method %.40q", a.Scheme)
	}
	if a.TokenURL == "" && a.Scheme != "clientCredentials" {
		return nil
	}
	u, err := url.Parse(a.TokenURL)
	if err != nil || u.Hostname() == "" || u.User != nil || !guarded(u) {
		return errors.New("the token address must be https with a host")
	}
	if address.Metadata(u.Hostname()) {
		return errors.New("the token address is link-local or a metadata address")
	}
	return nil
}

// guarded reports whether what is sent cannot be read on its way.
func guarded(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && address.Loopback(u.Hostname())
}

// missing says why the credentials of a call cannot be sent.
func (e *Executor) missing(call capability.Call, p *plan) error {
	if len(p.op.auth) == 0 {
		return nil
	}
	deny := func(rule, why, fix string) error {
		return &capability.Error{Kind: capability.Denied, Op: "call", Target: string(call.Target), Rule: rule, Err: errors.New(why), Fix: fix}
	}
	if p.capability.Trust < capability.TrustUser {
		return deny("trust", "the API requires secrets, but its document is not yours: it came with "+p.capability.Trust.String(),
			"read its hosts, then put the document into a catalog of your own")
	}
	if !guarded(p.url) {
		return deny("https", "the address is http, so anyone on the network path could read the secret", "use the https address of the API")
	}
	for _, a := range p.op.auth {
		if _, ok := e.secret(a.Secret); !ok {
			return &capability.Error{
				Kind: capability.Unavailable, Op: "call", Target: string(call.Target),
				Err: fmt.Errorf("the secret %s is not set", a.Secret), Fix: "run ken secret set " + a.Secret,
			}
		}
	}
	return nil
}

func (e *Executor) secret(name string) (string, bool) {
	if e.cfg.Secret == nil || name == "" {
		return "", false
	}
	v, ok := e.cfg.Secret(name)
	return v, ok && v != ""
}

// hold keeps a text out of results and records.
func (e *Executor) hold(text string) {
	if e.cfg.Hold == nil || text == "" {
		return
	}
	key := sha256.Sum256([]byte(text))
	e.mu.Lock()
	known := e.held[key]
	if len(e.held) >= mostTokens {
		clear(e.held)
	}
	e.held[key] = true
	e.mu.Unlock()
	if !known {
		e.cfg.Hold(text)
	}
}

// sign adds the credentials to a request. fresh asks for new tokens.
func (x *exchange) sign(ctx context.Context, req *http.Request, fresh bool) error {
	var user, password string
	basic := false
	var cookies []string
	for _, a := range x.plan.op.auth {
		value, ok := x.secret(a.Secret)
		if !ok {
			continue // missing has said so
		}
		x.hold(value)
		if !headerValue(value) {
			return unfit(x.call, fmt.Errorf("the secret %s is more than one line of text", a.Secret), "set it again with ken secret set "+a.Secret)
		}
		switch a.Scheme {
		case "bearer":
			token, err := x.bearer(ctx, a, value, fresh)
			if err != nil {
				return err
			}
			req.Header.Set("Authorization", "Bearer "+token)
		case "clientCredentials":
			if !strings.HasSuffix(a.Secret, "CLIENT_ID") {
				continue
			}
			token, err := x.clientToken(ctx, a, value, fresh)
			if err != nil {
				return err
			}
			req.Header.Set("Authorization", "Bearer "+token)
		case "basic":
			if basic = true; strings.HasSuffix(a.Secret, "PASSWORD") {
				password = value
			} else {
				user = value
			}
		case "apiKey":
			switch a.In {
			case "header":
				req.Header.Set(a.Name, value)
			case "cookie":
				cookies = append(cookies, a.Name+"="+escape(value))
			case "query":
				q := req.URL.RawQuery
				if q != "" {
					q += "&"
				}
				req.URL.RawQuery = q + escape(a.Name) + "=" + escape(value)
			}
		}
	}
	if basic {
		text := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		x.hold(text)
		req.Header.Set("Authorization", "Basic "+text)
	}
	if len(cookies) > 0 {
		if have := req.Header.Get("Cookie"); have != "" {
			cookies = append([]string{have}, cookies...)
		}
		req.Header.Set("Cookie", strings.Join(cookies, "; "))
	}
	return nil
}

// A tokenKey names a token without holding a secret.
type tokenKey [sha256.Size]byte

type token struct {
	access, refresh string
	expires         time.Time // zero: not given
}

func (t *token) good(now time.Time) bool {
	return t != nil && t.access != "" && (t.expires.IsZero() || now.Add(10*time.Second).Before(t.expires))
}

func keyOf(texts ...string) tokenKey {
	raw, _ := json.Marshal(texts) // texts cannot fail
	return sha256.Sum256(raw)
}

// bearer returns the token of a call: the secret itself, or what it was renewed to
// when the server no longer took it.
func (x *exchange) bearer(ctx context.Context, a credential, value string, fresh bool) (string, error) {
	refresh, canRenew := x.secret(a.Refresh)
	if a.TokenURL == "" || !canRenew {
		return value, nil
	}
	key := keyOf("refresh", a.TokenURL, a.Secret, value)
	x.mu.Lock()
	known := x.tokens[key]
	x.mu.Unlock()
	if !fresh {
		if known.good(time.Now()) {
			return known.access, nil
		}
		if known == nil {
			return value, nil
		}
	}
	if known != nil && known.refresh != "" {
		refresh = known.refresh
	}
	x.hold(refresh)
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}
	t, err := x.askToken(ctx, a, form)
	if err != nil {
		return "", err
	}
	if t.refresh == "" {
		t.refresh = refresh
	}
	x.keepToken(key, t)
	if x.cfg.Save != nil {
		for name, now := range map[string]string{a.Secret: t.access, a.Refresh: t.refresh} {
			if err := x.cfg.Save(name, now); err != nil {
				return "", &capability.Error{Kind: capability.Unavailable, Op: "store the token of", Target: string(x.call.Target), Err: err, Fix: "make the secret store writable"}
			}
		}
		x.keepToken(keyOf("refresh", a.TokenURL, a.Secret, t.access), t)
	}
	return t.access, nil
}

// clientToken returns the token that a client's id and secret are exchanged for.
func (x *exchange) clientToken(ctx context.Context, a credential, client string, fresh bool) (string, error) {
	secret, _ := x.secret(strings.TrimSuffix(a.Secret, "CLIENT_ID") + "CLIENT_SECRET")
	key := keyOf("client", a.TokenURL, client, secret, a.Scope)
	x.mu.Lock()
	known := x.tokens[key]
	x.mu.Unlock()
	if !fresh && known.good(time.Now()) {
		return known.access, nil
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if a.Scope != "" {
		form.Set("scope", a.Scope)
	}
	a.Client, a.Key = a.Secret, strings.TrimSuffix(a.Secret, "CLIENT_ID")+"CLIENT_SECRET"
	t, err := x.askToken(ctx, a, form)
	if err != nil {
		return "", err
	}
	x.keepToken(key, t)
	return t.access, nil
}

const mostTokens = 1000

func (x *exchange) keepToken(key tokenKey, t *token) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.tokens) >= mostTokens {
		clear(x.tokens)
	}
	x.tokens[key] = t
}

// askToken asks the server of tokens. Nothing that it says is repeated: it may
// hold what was sent.
func (x *exchange) askToken(ctx context.Context, a credential, form url.Values) (*token, error) {
	fail := func(kind capability.ErrorKind, why string) error {
		return &capability.Error{Kind: kind, Op: "sign in for", Target: string(x.call.Target), Err: errors.New(why),
			Fix: "check the secrets of the API with ken secret list"}
	}
	client, _ := x.secret(a.Client)
	own, _ := x.secret(a.Key)
	if client != "" && own == "" {
		form.Set("client_id", client)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fail(capability.Invalid, "the token address cannot be parsed")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "ken")
	if client != "" && own != "" {
		x.hold(own)
		text := base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(client) + ":" + url.QueryEscape(own)))
		x.hold(text)
		req.Header.Set("Authorization", "Basic "+text)
	}
	if err := x.pace(ctx, req.URL); err != nil {
		return nil, err
	}
	resp, err := x.transport.RoundTrip(req)
	if err != nil {
		return nil, fail(capability.Unavailable, "the token server: "+plainError(err))
	}
	body, _, _ := readLimited(resp.Body, 1<<20)
	var said struct {
		Access  string      `json:"access_token"`
		Refresh string      `json:"refresh_token"`
		Expires json.Number `json:"expires_in"`
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fail(capability.Unavailable, fmt.Sprintf("the token server answered HTTP %d", resp.StatusCode))
	}
	if json.Unmarshal(body, &said) != nil || said.Access == "" || !headerValue(said.Access) {
		return nil, fail(capability.Unavailable, "the token server returned no token")
	}
	x.hold(said.Access)
	x.hold(said.Refresh)
	t := &token{access: said.Access, refresh: said.Refresh}
	if n, err := said.Expires.Int64(); err == nil && n > 0 {
		t.expires = time.Now().Add(time.Duration(min(n, 1<<31)) * time.Second)
	}
	return t, nil
}
