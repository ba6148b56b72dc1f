package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/serve/problem"
	"ken/internal/store"
)

// Config says who is let in.
type Config struct {
	// Tokens are those of the owner. Nil only with Off.
	Tokens *Tokens

	// Owner started Ken: the tokens are theirs, and with Off every
	// request is. Whether a person asks, and whether they decide, is not read
	// from it.
	Owner Identity

	// Off (serve.auth: off) asks for no token. It is refused unless Loopback.
	Off bool

	// Loopback: the server listens where only this machine can reach it.
	Loopback bool

	// Hosts (serve.hosts) are names of this server besides those of the
	// loopback, without ports.
	Hosts []string

	// Origins (serve.origins) are the sites whose pages may use this server
	// from a browser, with a token, as in https://tools.example or
	// http://localhost:6274.
	Origins []string

	// Views are the first parts of paths that the page leads to, as in chat.
	Views []string

	// OIDC (serve.oidc) lets in the people of an issuer. Nil: only the
	// owner.
	OIDC *OIDCConfig

	// Rate (serve.rate) limits the requests of one principal, per second and at
	// once. A request over the rate waits for its turn, for a few seconds at
	// most.
	Rate Rate

	// TenantRate (serve.tenantRate) limits the requests of all of one tenant together,
	// in the same way. Its Open is not used.
	TenantRate Rate

	// FreeMCP exempts MCP requests from Rate; only Rate.Open limits them.
	// It is for a server that only this machine can reach.
	FreeMCP bool

	// SignOuts keeps what was signed out over restarts. Where it cannot be had
	// when the server starts, cookies of before count no more. Nil: what was
	// signed out is good again after a restart, until it ends.
	SignOuts func() (*store.Store, error)

	// Paces returns the pace of a caller or a tenant, if the rates are for several
	// servers together. Nil: each counts by itself.
	Paces func(caller string, r Rate) Pace

	// Current says why this server may not know what others of its group revoked. Nil:
	// it always knows.
	Current func() error

	// Beside runs something until the server stops: it follows what others sign out.
	// Nil: there are no others.
	Beside func(func(context.Context))

	Log *slog.Logger // nil: nothing is logged
}

// The paths that [Guard] serves itself. What begins with /auth/ and is none of
// them is next's.
const (
	SignInPath   = "/auth/signin"   // POST, a form with the token
	LogoutPath   = "/auth/logout"   // POST
	LoginPath    = "/auth/login"    // GET, with next, a path of ours: signs in with the issuer
	CallbackPath = "/auth/callback" // GET, where the issuer leads back to
)

// Guard lets through to next what may be asked, and says on whose behalf. In
// this order: the name that the server is asked by, the site that asks, the
// token, how often. All else it answers with a problem document, or a person's
// browser with a page to sign in on. What it lets through has no credentials of
// ours any more: nothing behind it can pass them on.
//
// Every path needs a token but those of [IsCard], GET and HEAD of /healthz, and
// HEAD of /. There no caller is known: they have the zero Identity. The token is in the header
// Authorization as Bearer, or in X-Api-Key or Api-Key, as clients of language
// models send it, and may be an issuer's instead. A browser has a cookie, which
// it gets for a token at GET / (see [Tokens.Link]), at [SignInPath] or from the
// issuer. Nowhere else is a token in an address looked at: addresses are logged.
//
// Who decides for a principal ([Identity.Decides]) depends on how they come: a
// browser that is signed in does, and a program with the owner's token. One with
// the token for agents does not, and no browser is signed in by it. An issuer's
// token does where the issuer gave it the scope [DecideScope]. With Off no one
// is told apart, but for the pages of Origins, which decide nothing. Who does
// not decide is no operator either.
//
// A browser sends the cookies of a host to all of its ports. So a server of
// another user on this machine, visited with the same browser, sees ours: where
// that matters, use a browser profile of its own.
//
// It fails where cfg would leave the server open: say so before listening.
func Guard(next Handler, cfg Config) (http.Handler, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	g := &guard{Config: cfg, next: next, limits: newLimits(cfg.Rate, cfg.TenantRate, cfg.Paces)}
	if cfg.Off {
		return g, nil
	}
	g.jar = newJar(cfg.Tokens)
	g.jar.remember(cfg.SignOuts, cfg.Log)
	if cfg.Beside != nil && cfg.SignOuts != nil {
		cfg.Beside(g.jar.follow)
	}
	if cfg.OIDC != nil {
		var err error
		if g.issuer, err = newIssuer(*cfg.OIDC, cfg.Tokens, cfg.Owner.Principal.Tenant, cfg.Log); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// CheckReach refuses settings with which nobody should be served: off says that no
// token is asked for, loopback that only this machine reaches the address, oidc
// that others may sign in, and hosts are the names by which they ask.
func CheckReach(off, loopback, oidc bool, hosts []string) error {
	switch {
	case off && !loopback:
		return refused("serve.auth: off", "other machines can reach the address, and would need no token", "listen on 127.0.0.1, or switch serve.auth on")
	case off && oidc:
		return refused("serve.auth: off", "no one signs in, so serve.oidc has no effect", "switch serve.auth on, or remove serve.oidc")
	case !loopback && len(hosts) == 0:
		return refused("serve.hosts", "no name is given by which other machines may ask", "list the names and addresses of this server")
	}
	return nil
}

// check refuses what would leave the server open, and brings the rest into the
// form that requests are compared with.
func (c *Config) check() error {
	switch {
	case c.Owner.Principal.ID == "":
		return refused("", "missing owner", "set the owner's identity")
	case !c.Off && c.Tokens == nil:
		return refused("", "there is no token to ask for", "open one, or switch serve.auth off on a loopback address")
	case c.Rate.Requests < 0 || c.Rate.Burst < 0 || c.Rate.Open < 0:
		return refused("serve.rate", "a rate is less than nothing", "write numbers from 0; 0 sets no limit")
	case c.TenantRate.Requests < 0 || c.TenantRate.Burst < 0:
		return refused("serve.tenantRate", "a rate is less than nothing", "write numbers from 0; 0 sets no limit")
	}
	if err := CheckReach(c.Off, c.Loopback, c.OIDC != nil, c.Hosts); err != nil {
		return err
	}
	c.Hosts, c.Origins = slices.Clone(c.Hosts), slices.Clone(c.Origins)
	for i, host := range c.Hosts {
		if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
			host = "[" + host + "]" // as requests have it
		}
		name, port, ok := hostPort(host)
		if !ok || port != "" {
			return refused("serve.hosts", "there is no host "+host, "write a name or an address, without a port")
		}
		c.Hosts[i] = name
	}
	for _, origin := range c.Origins {
		if _, _, ok := splitOrigin(origin); !ok {
			return refused("serve.origins", "there is no origin "+origin, "write scheme://host or scheme://host:port, nothing behind")
		}
	}
	return nil
}

func refused(rule, why, fix string) error {
	return &capability.Error{Kind: capability.Denied, Op: "serve over HTTP", Rule: rule, Err: errors.New(why), Fix: fix}
}

type guard struct {
	Config
	next   Handler
	jar    *jar    // nil with Off
	issuer *issuer // nil where there is none
	limits *limits
}

// guarding are the headers of every answer. All answers share these lists, which must
// not be changed.
var guarding = http.Header{
	"X-Content-Type-Options":       {"nosniff"},
	"X-Frame-Options":              {"DENY"},
	"Referrer-Policy":              {"no-referrer"},
	"Cross-Origin-Opener-Policy":   {"same-origin"},
	"Cross-Origin-Resource-Policy": {"same-origin"},
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	maps.Copy(h, guarding)
	if !g.ours(r.Host) {
		g.forbid(w, r, "wrong-host", "this server is asked for as localhost or 127.0.0.1; serve.hosts adds names")
		return
	}
	if IsCard(r) { // for every page: it says where this server is, and nothing else
		h.Del("Cross-Origin-Resource-Policy")
		g.next.ServeAs(w, without(r), Identity{})
		return
	}
	listed, ok := g.site(r)
	if !ok {
		g.forbid(w, r, "wrong-origin", "requests from other sites' pages are refused; serve.origins lets one in")
		return
	}
	if listed {
		h.Del("Cross-Origin-Resource-Policy")
		if share(w, r) {
			return
		}
		// It has the token or nothing: a browser adds our cookie to what any
		// page asks of this machine.
		r = r.Clone(r.Context())
		r.Header.Del("Cookie")
	}
	switch {
	case g.Off && entering(r):
		http.Redirect(w, r, "/", http.StatusSeeOther)
	case g.Off:
		who := g.Owner
		who.Person, who.Decides = !listed && fromOurs(r), !listed
		who.Operator = who.Operator && !listed
		g.pass(w, r, who)
	case public(r):
		g.next.ServeAs(w, without(r), Identity{})
	case !listed && g.doorway(w, r):
	default:
		g.let(w, r)
	}
}

// let passes a request on if someone is behind it who may ask.
func (g *guard) let(w http.ResponseWriter, r *http.Request) {
	who, card, err := g.who(r)
	switch {
	case errors.Is(err, errNoToken) && g.leads(r.URL.Path) && visit(r):
		// The browser keeps the cookie back from a link on another site. The
		// page holds nothing: ask for it once more, from here.
		land(w, local(r.URL.RequestURI()), "Opening Ken")
		return
	case err != nil:
		g.refuse(w, r, err, wantsPage(r))
		return
	case card != nil && !fromOurs(r) && r.Method != http.MethodGet && r.Method != http.MethodHead:
		g.forbid(w, r, "wrong-origin", "what a browser's cookie is to change must come from a page of ours, with Origin or Sec-Fetch-Site; a program sends Authorization: Bearer")
		return
	}
	// Only on what is never cached: else a cache might give it to others.
	if card != nil && (r.URL.Path == "/" || strings.HasPrefix(r.URL.Path, "/api/")) {
		if later, ok := card.renewed(time.Now()); ok {
			_ = g.jar.set(w, later, g.secure(r)) // it was small enough before
		}
	}
	g.pass(w, r, who)
}

// pass hands a request on, if it is not one too many.
func (g *guard) pass(w http.ResponseWriter, r *http.Request, who Identity) {
	who.Local = g.Loopback && len(g.Hosts) == 0
	leave := g.limits.enter(who)
	if leave == nil {
		retryAfter(w, time.Second)
		answer(w, http.StatusTooManyRequests, "too-many-open", fmt.Sprintf("%d requests of one principal are being answered, which is what serve.rate.open allows; close a stream that is not read, and try again", g.Rate.Open))
		return
	}
	defer leave()
	until := time.Now().Add(queueFor)
	if g.FreeMCP && IsMCP(r) || g.paced(w, r, g.limits.asked, who, until) {
		if g.paced(w, r, g.limits.tenants, who, until) {
			g.next.ServeAs(w, without(r), who)
		}
	}
}

// paced waits for the turn of a request by one of the rates. It reports whether the
// request may go on; if not, it has its answer.
func (g *guard) paced(w http.ResponseWriter, r *http.Request, by *pacer, who Identity, until time.Time) bool {
	wait, err := by.wait(r.Context(), who, time.Until(until))
	switch {
	case r.Context().Err() != nil:
		return false // the client has gone
	case err != nil:
		g.Log.Warn("this server has no share of "+by.setting, "why", err)
		retryAfter(w, time.Second)
		answer(w, http.StatusServiceUnavailable, "unavailable", by.setting+" holds for all replicas together, and this one has no share of it, because it cannot reach the store that they share; wait and ask again")
		return false
	case wait > 0:
		retryAfter(w, wait)
		answer(w, http.StatusTooManyRequests, "too-many-requests", "more requests than "+by.setting+" lets one "+by.of+" make, and the queue for them is full; wait and ask again")
		return false
	}
	return true
}

// IsMCP reports whether a request is an MCP request.
func IsMCP(r *http.Request) bool { return strings.TrimSuffix(r.URL.Path, "/") == "/mcp" }

// IsCard reports whether a request is for the card of the MCP server, or for the
// catalog that leads to it. They are public.
func IsCard(r *http.Request) bool {
	return (r.URL.Path == "/mcp/server-card" || r.URL.Path == "/.well-known/mcp/catalog.json") &&
		(r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions)
}

// public reports whether a request needs no token: whether the server is there
// is no secret.
func public(r *http.Request) bool {
	return r.URL.Path == "/healthz" && (r.Method == http.MethodGet || r.Method == http.MethodHead) ||
		r.URL.Path == "/" && r.Method == http.MethodHead
}

// without returns the request as next sees it.
func without(r *http.Request) *http.Request {
	out := new(http.Request)
	*out = *r
	out.Header = maps.Clone(r.Header) // the lists are shared and must not be changed
	for _, name := range [...]string{"Authorization", "X-Api-Key", "Api-Key"} {
		delete(out.Header, name)
	}
	if r.URL.Path == "/" && r.URL.Query().Has(tokenParam) { // HEAD, of one who looks where a link leads
		at := *r.URL
		at.RawQuery, out.RequestURI, out.URL = "", "/", &at
	}
	if len(r.Header["Cookie"]) > 0 {
		out.Header.Del("Cookie")
		for _, c := range r.Cookies() {
			if !strings.HasPrefix(strings.TrimPrefix(c.Name, hostPrefix), cookiePrefix) {
				out.AddCookie(c)
			}
		}
	}
	return out
}

func (g *guard) forbid(w http.ResponseWriter, r *http.Request, code, detail string) {
	g.Log.Debug("a request is refused", "why", code, "from", r.RemoteAddr)
	answer(w, http.StatusForbidden, code, detail)
}

func answer(w http.ResponseWriter, status int, code, detail string) {
	(&problem.Problem{Status: status, Code: code, Detail: detail}).Write(w)
}
