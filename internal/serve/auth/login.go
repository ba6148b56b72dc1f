package auth

import (
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	loginLife = 10 * time.Minute
	loginKind = "login_"
)

// A journey is a login in progress. The browser carries it, sealed: strangers
// who begin logins take no memory, and a restart meanwhile does no harm.
type journey struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	Next     string `json:"x"`
	Given    int64  `json:"g"` // seconds since 1970
}

// login leads a browser to the issuer.
func (g *guard) login(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	found, err := g.issuer.discover(r.Context())
	if err != nil {
		g.refuse(w, r, err, true)
		return
	}
	j := journey{State: random(tokenBytes), Nonce: random(tokenBytes), Verifier: oauth2.GenerateVerifier(), Next: local(r.URL.Query().Get("next")), Given: time.Now().Unix()}
	value, err := g.issuer.pack(j)
	if err != nil {
		answer(w, http.StatusInternalServerError, "internal", "the login cannot be begun")
		return
	}
	secure := g.secure(r)
	// The issuer leads back from its own site, and Lax lets the cookie come
	// along then. It opens nothing by itself.
	http.SetCookie(w, &http.Cookie{
		Name: g.jar.name(loginKind, secure), Value: value, Path: "/", MaxAge: int(loginLife.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: secure,
	})
	to := g.client(found, r).AuthCodeURL(j.State, oidc.Nonce(j.Nonce), oauth2.S256ChallengeOption(j.Verifier))
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// client is what the issuer knows us by. The name that it leads back to was
// checked, and the issuer has its own list.
func (g *guard) client(found *discovered, r *http.Request) *oauth2.Config {
	scheme := "http://"
	if g.secure(r) {
		scheme = "https://"
	}
	return &oauth2.Config{ClientID: g.issuer.ClientID, Endpoint: found.endpoint, RedirectURL: scheme + r.Host + CallbackPath, Scopes: g.issuer.Scopes}
}

// callback takes a browser in that comes from the issuer.
func (g *guard) callback(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	secure := g.secure(r)
	j, err := g.returned(r, secure)
	ours := err == nil
	g.jar.clear(w, loginKind, secure)
	if ours {
		var who Identity
		if who, err = g.exchange(r, j); err == nil {
			t := newTicket()
			t.ID, t.Tenant, t.Roles, t.Name = who.Principal.ID, who.Principal.Tenant, who.Principal.Roles, who.Name
			if err = g.jar.set(w, t, secure); err != nil {
				err = &strayError{"The sign-in service lists more groups for you than fit in a cookie. Ask the operator to set another serve.oidc.rolesClaim.", err}
			}
		}
	}
	stray, isStray := errors.AsType[*strayError](err)
	log := g.log
	if isStray || errors.Is(err, errWrongToken) || errors.Is(err, errExpired) {
		switch {
		case g.limits.failed(r):
		case ours: // behind a proxy all have one address: no one is kept out by another's wrong codes
			log = func(*http.Request, string, error) {}
		default:
			g.refuse(w, r, errTooMany, true)
			return
		}
	}
	switch {
	case err == nil:
		g.log(r, "signed in with the issuer", nil)
		land(w, j.Next, "You are signed in")
	case isStray:
		log(r, "a login with the issuer came to nothing", stray.cause)
		g.signInPage(w, r, http.StatusUnauthorized, stray.say)
	case errors.Is(err, errWrongToken), errors.Is(err, errExpired):
		log(r, "the issuer's token is refused", err)
		g.signInPage(w, r, http.StatusUnauthorized, "The answer of the sign-in service could not be used. The reason is in Ken's log; ask the operator.")
	default:
		g.refuse(w, r, err, true)
	}
}

func (g *guard) log(r *http.Request, what string, err error) {
	if err == nil {
		g.Log.Info(what, "from", r.RemoteAddr)
		return
	}
	g.Log.Warn(what, "why", err, "from", r.RemoteAddr)
}

// A strayError is a login that came to nothing.
type strayError struct {
	say   string // to the person
	cause error
}

func (e *strayError) Error() string { return e.cause.Error() }
func (e *strayError) Unwrap() error { return e.cause }

func again(why string) error {
	return &strayError{"This sign-in was started elsewhere, was used already, or has expired. Sign in again.", errors.New(why)}
}

// returned returns the login that a browser comes back from.
func (g *guard) returned(r *http.Request, secure bool) (journey, error) {
	cookies := r.CookiesNamed(g.jar.name(loginKind, secure))
	if len(cookies) != 1 {
		return journey{}, again("the browser has no login in progress")
	}
	j, err := g.issuer.unpack(cookies[0].Value)
	if err != nil {
		return journey{}, again(err.Error())
	}
	now, q := time.Now(), r.URL.Query()
	switch {
	case subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(j.State)) != 1:
		return journey{}, again("the state is another login's")
	case now.Unix() >= time.Unix(j.Given, 0).Add(loginLife).Unix():
		return journey{}, again("the login is too old")
	case g.issuer.spent.has(j.State, j.Given, now):
		return journey{}, again("the login is over")
	case q.Has("iss") && q.Get("iss") != g.issuer.Issuer:
		return journey{}, again("another issuer leads back to us")
	case q.Has("error"):
		return journey{}, &strayError{"The sign-in service refused to sign you in.", fmt.Errorf("the issuer says %.100q", q.Get("error"))}
	}
	return j, nil
}

// exchange gets the token for the code, and says whose it is.
func (g *guard) exchange(r *http.Request, j journey) (Identity, error) {
	i := g.issuer
	found, err := i.discover(r.Context())
	if err != nil {
		return Identity{}, err
	}
	client := g.client(found, r)
	ctx, cancel := context.WithTimeout(r.Context(), issuerTimeout)
	defer cancel()
	select { // anyone can begin logins, and each code is asked of the issuer
	case i.asking <- struct{}{}:
		defer func() { <-i.asking }()
	case <-ctx.Done():
		return Identity{}, &downError{fmt.Errorf("%d codes are being asked of it: %w", cap(i.asking), ctx.Err())}
	}
	if i.ClientSecret != nil {
		if client.ClientSecret, err = i.ClientSecret(ctx); err != nil {
			return Identity{}, &strayError{"Ken could not read the client secret for the sign-in service (serve.oidc.clientSecret). Ask the operator; the reason is in Ken's log.", fmt.Errorf("read serve.oidc.clientSecret: %w", err)}
		}
	}
	token, err := client.Exchange(oidc.ClientContext(ctx, i.client), r.URL.Query().Get("code"), oauth2.VerifierOption(j.Verifier))
	if said, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return Identity{}, &strayError{"The sign-in service did not confirm this sign-in. Sign in again.", fmt.Errorf("the issuer refuses the code: %s, %.100q", said.Response.Status, said.ErrorCode)}
	}
	if err != nil {
		return Identity{}, &downError{err}
	}
	// The code was worth something once. So is what went with it.
	i.spent.add(j.State, time.Unix(j.Given, 0).Add(loginLife))
	raw, _ := token.Extra("id_token").(string)
	if raw == "" || len(raw) > longestJWT {
		return Identity{}, fmt.Errorf("%w: the issuer gave no ID token of up to %d bytes", errWrongToken, longestJWT)
	}
	id, err := i.verify(ctx, found.keys, raw)
	if err != nil {
		return Identity{}, err
	}
	var more struct {
		Party string `json:"azp"`
	}
	switch err := id.Claims(&more); {
	case err != nil:
		return Identity{}, fmt.Errorf("%w: its claims cannot be read", errWrongToken)
	case !slices.Contains(id.Audience, i.ClientID) || more.Party != "" && more.Party != i.ClientID:
		return Identity{}, fmt.Errorf("%w: it is another client's", errWrongToken)
	case subtle.ConstantTimeCompare([]byte(id.Nonce), []byte(j.Nonce)) != 1:
		return Identity{}, fmt.Errorf("%w: its nonce is another login's", errWrongToken)
	}
	return i.identify(id)
}

func (i *issuer) pack(j journey) (string, error) {
	b, err := json.Marshal(j)
	if err != nil {
		return "", err
	}
	if i.group != nil { // the browser may read it: it is its own
		text := base64.RawURLEncoding.EncodeToString(b)
		return text + "." + base64.RawURLEncoding.EncodeToString(i.group.Sign(loginUse, text)), nil
	}
	return base64.RawURLEncoding.EncodeToString(i.seal.Seal(nil, nil, b, nil)), nil
}

// signedBy returns what a server of the group has packed.
func (i *issuer) signedBy(value string) (journey, error) {
	text, signature, _ := strings.Cut(value, ".")
	given, err := base64.RawURLEncoding.Strict().DecodeString(signature)
	if err != nil || !i.group.Verify(loginUse, text, given) {
		return journey{}, errors.New("the login is not one of ours")
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return journey{}, err
	}
	var j journey
	return j, json.Unmarshal(b, &j)
}

func (i *issuer) unpack(value string) (journey, error) {
	if i.group != nil {
		return i.signedBy(value)
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil {
		return journey{}, errors.New("the login is not one of ours")
	}
	b, err := i.seal.Open(nil, nil, sealed, nil)
	if err != nil {
		return journey{}, errors.New("the login is not one of ours")
	}
	var j journey
	return j, json.Unmarshal(b, &j)
}

// local returns a path of ours that a login may lead to, which is / for all that
// could lead elsewhere.
func local(next string) string {
	const longest = 1024
	u, err := url.Parse(next)
	switch {
	case err != nil || len(next) > longest || u.Scheme != "" || u.Host != "" || u.User != nil || u.Opaque != "",
		!strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.HasPrefix(u.Path, "//") || strings.HasPrefix(u.Path, "/auth/"),
		strings.ContainsFunc(next+u.Path, func(c rune) bool { return c == '\\' || !unicode.IsPrint(c) }):
		return "/"
	}
	return next
}
