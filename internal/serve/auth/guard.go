package auth

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"ken/capability"
)

// Config says who is let in.
type Config struct {
	// Tokens checks who asks. Nil only with Off.
	Tokens *Tokens

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

	// Public are paths that anyone on this machine's name may GET: what holds
	// no data, as the page's own files. One that ends in / stands for all
	// below it.
	Public []string

	Log *slog.Logger // nil: nothing is logged
}

// Guard lets through to next what may be asked, and answers all else with a
// problem document. In this order: the name that the server is asked by, the
// site that asks, the token. What it lets through has no credentials of ours
// any more: nothing behind it can pass them on.
//
// It fails where cfg would leave the server open: say so before listening.
func Guard(next http.Handler, cfg Config) (http.Handler, error) {
	refused := func(rule, why, fix string) (http.Handler, error) {
		return nil, &capability.Error{Kind: capability.Denied, Op: "serve over HTTP", Rule: rule, Err: errors.New(why), Fix: fix}
	}
	switch {
	case cfg.Off && !cfg.Loopback:
		return refused("serve.auth: off", "other machines can reach the address, and would need no token", "listen on 127.0.0.1, or switch serve.auth on")
	case !cfg.Off && cfg.Tokens == nil:
		return refused("", "there is no token to ask for", "open one, or switch serve.auth off on a loopback address")
	case !cfg.Loopback && len(cfg.Hosts) == 0:
		return refused("serve.hosts", "no name is given by which other machines may ask", "list the names and addresses of this server")
	}
	cfg.Hosts = slices.Clone(cfg.Hosts)
	for i, host := range cfg.Hosts {
		if addr, err := netip.ParseAddr(host); err == nil && addr.Is6() {
			host = "[" + host + "]" // as requests have it
		}
		name, port, ok := hostPort(host)
		if !ok || port != "" {
			return refused("serve.hosts", "there is no host "+host, "write a name or an address, without a port")
		}
		cfg.Hosts[i] = name
	}
	for _, origin := range cfg.Origins {
		if _, _, ok := splitOrigin(origin); !ok {
			return refused("serve.origins", "there is no origin "+origin, "write scheme://host or scheme://host:port, nothing behind")
		}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Origins, cfg.Public = slices.Clone(cfg.Origins), slices.Clone(cfg.Public)
	return &guard{cfg, next}, nil
}

const challenge = `Bearer realm="ken"`

type guard struct {
	Config
	next http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !g.ours(r.Host) {
		g.forbid(w, r, "wrong-host", "this server is asked for as localhost or 127.0.0.1; serve.hosts adds names")
		return
	}
	listed, ok := g.site(r)
	if !ok {
		g.forbid(w, r, "wrong-origin", "requests from other sites' pages are refused; serve.origins lets one in")
		return
	}
	if listed {
		if share(w, r) {
			return
		}
		// It has the token or nothing: a browser adds our cookie to what any
		// page asks of this machine.
		r = r.Clone(r.Context())
		r.Header.Del("Cookie")
	}
	if g.Off || g.public(r) {
		g.next.ServeHTTP(w, without(r))
		return
	}
	if r.URL.Path == ExchangePath && r.Method == http.MethodPost {
		g.Tokens.Exchange(w, r)
		return
	}
	if _, err := g.Tokens.Check(r); err != nil {
		g.challenge(w, r, err)
		return
	}
	g.next.ServeHTTP(w, without(r))
}

func (g *guard) forbid(w http.ResponseWriter, r *http.Request, code, detail string) {
	g.Log.Debug("a request is refused", "why", code, "from", r.RemoteAddr)
	problem(w, http.StatusForbidden, code, detail)
}

func (g *guard) challenge(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, ErrWrongToken) {
		w.Header().Set("WWW-Authenticate", challenge+`, error="invalid_token"`)
	}
	if g.Tokens.refuse(w, "unauthorized", err.Error()+
		"; send Authorization: Bearer with the one that ken connect writes and Ken's state folder has; on this machine alone, serve.auth: off asks for none") {
		g.Log.Warn("a request without the right token", "why", err, "from", r.RemoteAddr)
	}
}

// refuse answers a failed attempt, and reports whether failures are within
// their rate.
func (t *Tokens) refuse(w http.ResponseWriter, code, detail string) (within bool) {
	if !t.failures.take() {
		w.Header().Set("Retry-After", "2")
		problem(w, http.StatusTooManyRequests, "too-many-attempts", "too many attempts without the right token; the right one is let in at any time")
		return false
	}
	if w.Header().Get("WWW-Authenticate") == "" {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	problem(w, http.StatusUnauthorized, code, detail)
	return true
}

// public reports whether a request needs no token.
func (g *guard) public(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	path := r.URL.Path
	return slices.ContainsFunc(g.Public, func(p string) bool {
		// A path with dots may mean another one to whoever serves it.
		return p == path || p != "/" && strings.HasSuffix(p, "/") && strings.HasPrefix(path, p) && !strings.Contains(path, "..")
	})
}

// without gives the request as next sees it.
func without(r *http.Request) *http.Request {
	out := new(http.Request)
	*out = *r
	out.Header = r.Header.Clone()
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
		out.Header.Del(name)
	}
	if cookies := r.Cookies(); len(r.CookiesNamed(CookieName)) > 0 {
		out.Header.Del("Cookie")
		for _, c := range cookies {
			if c.Name != CookieName {
				out.AddCookie(c)
			}
		}
	}
	return out
}

func problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{ // the client is gone; there is nobody to tell
		"type": "about:blank", "title": http.StatusText(status), "status": status, "code": code, "detail": detail,
	})
}
