package oauth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/untrusted"
)

// patience bounds a login for which the caller set no time.
const patience = 10 * time.Minute

// Login lets a person log in, whether one has before or not, and keeps what
// comes of it. It waits until the person has done so in a browser.
func (h *Handler) Login(ctx context.Context) error {
	if grant := h.conf.Machine.Grant; grant != "" {
		return &capability.Error{
			Kind: capability.Invalid, Op: "log in to", Target: h.conf.Server, Err: fmt.Errorf("the server has the grant %s, which needs no person", grant), Fix: "ken doctor tries it",
		}
	}
	if h.conf.Ask == nil {
		return h.unavailable("log in to", errors.New("cannot ask a person here"))
	}
	if err := h.wait(ctx); err != nil {
		return err
	}
	defer h.done()
	c, err := h.probe(ctx)
	if err != nil {
		return h.unavailable("log in to", err)
	}
	g, err := h.known(ctx)
	if err != nil {
		return err
	}
	h.mu.Lock()
	clear(h.asked) // a person tries again
	h.mu.Unlock()
	return h.login(ctx, g, c)
}

// Logout forgets what was kept.
func (h *Handler) Logout(ctx context.Context) error {
	if err := h.wait(ctx); err != nil {
		return err
	}
	defer h.done()
	h.set(nil, false)
	if err := h.conf.Keep.Delete(ctx, h.conf.Server, h.conf.Principal); err != nil {
		return h.unavailable("log out of", err)
	}
	return nil
}

// probe asks the server something without a token, so that it says what it
// wants. A server that says nothing is found out about all the same.
func (h *Handler) probe(ctx context.Context) (challenge, error) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.conf.URL, bytes.NewReader([]byte(ping)))
	if err != nil {
		return challenge{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	c := h.Client(h.conf.HTTP)
	c.Timeout = fetchTimeout
	res, err := c.Do(req)
	if err != nil {
		return challenge{}, err
	}
	defer res.Body.Close()
	io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	if res.StatusCode != http.StatusUnauthorized && res.StatusCode != http.StatusForbidden {
		return challenge{}, nil
	}
	return readChallenge(res.Header), nil
}

// login runs the flow of codes and keeps the grant. The turn is held.
func (h *Handler) login(ctx context.Context, old *grant, c challenge) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, err := h.discover(ctx, c)
	if err != nil {
		return h.unavailable("log in to", err)
	}
	scopes := h.scopes(old, p, c)
	if err := h.again(p, c, scopes); err != nil {
		return err
	}
	g, err := h.flow(ctx, p, scopes)
	if err != nil {
		return h.unavailable("log in to", err)
	}
	if err := h.save(ctx, g); err != nil {
		h.set(g, true)
		return h.unavailable("keep the login to", err)
	}
	h.set(g, false)
	return nil
}

// scopes are what is asked for: what the server wants now, else what it knows;
// what the configuration adds; and what was granted before by the same
// authorization server, so that nothing is lost by asking for more.
func (h *Handler) scopes(old *grant, p *place, c challenge) []string {
	var out []string
	add := func(list []string) {
		for _, s := range list {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	if old != nil && old.Issuer == p.server.Issuer && c.problem == "insufficient_scope" {
		add(old.Scopes)
	}
	if len(c.scopes) > 0 {
		add(c.scopes)
	} else {
		add(p.scopes)
	}
	add(h.conf.Scopes)
	if slices.Contains(p.server.ScopesSupported, "offline_access") {
		add([]string{"offline_access"}) // else nothing could be renewed
	}
	return out
}

// again stops a server that wants more and more, or the same again and again:
// the same scopes are asked for once.
func (h *Handler) again(p *place, c challenge, scopes []string) error {
	if c.problem != "insufficient_scope" {
		return nil
	}
	const most = 5
	key := p.server.Issuer + " " + strings.Join(slices.Sorted(slices.Values(scopes)), " ")
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.asked[key] || len(h.asked) >= most {
		return &capability.Error{
			Kind: capability.Denied, Op: "log in to", Target: h.conf.Server,
			Err: fmt.Errorf("the server requires %s, and the authorization server did not grant it", untrusted.Line(strings.Join(c.scopes, " "), 200)),
			Fix: "have these rights granted to the account, then run ken login " + h.conf.Server,
		}
	}
	h.asked[key] = true
	return nil
}

// flow is one login: listen, let the person go to the authorization server, and
// change the code that comes back for a token.
func (h *Handler) flow(ctx context.Context, p *place, scopes []string) (*grant, error) {
	state, verifier := rand.Text(), rand.Text()+rand.Text()
	back, err := listen(ctx, h.conf.Redirect, state)
	if err != nil {
		return nil, err
	}
	defer back.close()
	as, err := h.register(ctx, p, back.redirect())
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"response_type": {"code"}, "client_id": {as.ID}, "redirect_uri": {back.redirect()}, "state": {state}, "resource": {p.resource},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	if len(scopes) > 0 {
		q.Set("scope", strings.Join(scopes, " "))
	}
	if slices.Contains(scopes, "offline_access") {
		q.Set("prompt", "consent") // without which some give no refresh token
	}
	address, err := withQuery(p.server.AuthorizationEndpoint, q)
	if err != nil {
		return nil, err
	}
	if err := h.checkURL(address); err != nil {
		return nil, err
	}
	if err := h.conf.Ask(ctx, address); err != nil {
		return nil, fmt.Errorf("show the address to a person: %w", err)
	}
	code, err := back.wait(ctx, p.server.Issuer, p.server.AuthorizationResponseIssParameterSupported)
	if err != nil {
		return nil, err
	}
	g := grant{
		V: grantVersion, Resource: p.resource, Issuer: p.server.Issuer, TokenEndpoint: p.server.TokenEndpoint, Client: as, Scopes: scopes,
	}
	if p.proofs {
		if g.Key, err = newKey(); err != nil {
			return nil, err
		}
	}
	return h.ask(ctx, g, url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {back.redirect()}, "code_verifier": {verifier},
	})
}

// withQuery adds to the query that an address may have already.
func withQuery(address string, q url.Values) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	all := u.Query()
	for name, values := range q {
		all[name] = values
	}
	u.RawQuery, u.Fragment = all.Encode(), ""
	return u.String(), nil
}
