package auth

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// ours reports whether a request names this server by a name of its own. A
// page of another site can have its own name lead here, but must ask by it.
func (g *guard) ours(host string) bool {
	name, _, ok := hostPort(host)
	if !ok {
		return false
	}
	// A name that ends in a dot is another one to a browser.
	return loopback(name) && !strings.HasSuffix(name, ".") || slices.Contains(g.Hosts, name)
}

// hostPort takes host or host:port apart. The name is in lower case, that of
// an address as netip writes it, without brackets. It is strict: what it does
// not know is not a name.
func hostPort(host string) (name, port string, ok bool) {
	name = host
	if rest, bracket := strings.CutPrefix(host, "["); bracket {
		if name, rest, ok = strings.Cut(rest, "]"); !ok {
			return "", "", false
		}
		addr, err := netip.ParseAddr(name)
		if err != nil || !addr.Is6() || addr.Zone() != "" {
			return "", "", false
		}
		name = addr.String()
		if rest != "" && !strings.HasPrefix(rest, ":") {
			return "", "", false
		}
		port = strings.TrimPrefix(rest, ":")
		if rest == ":" {
			return "", "", false
		}
	} else {
		var hasPort bool
		if name, port, hasPort = strings.Cut(host, ":"); hasPort && port == "" {
			return "", "", false
		}
		name = strings.ToLower(name)
		if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-._") != "" {
			return "", "", false
		}
	}
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
			return "", "", false
		}
	}
	return name, port, true
}

// site reports whether the page that makes a browser ask may do so. listed:
// it is another site that the user let in. Programs that are no browsers send
// neither header.
func (g *guard) site(r *http.Request) (listed, ok bool) {
	switch origins := r.Header.Values("Origin"); {
	case len(origins) > 1:
		return false, false
	case len(origins) == 1 && slices.ContainsFunc(g.Origins, func(o string) bool { return strings.EqualFold(o, origins[0]) }):
		return true, true
	case len(origins) == 1 && !sameOrigin(origins[0], r):
		return false, false
	}
	switch fetch := r.Header.Values("Sec-Fetch-Site"); {
	case len(fetch) == 0:
		return false, true
	case len(fetch) > 1:
		return false, false
	case fetch[0] == "same-origin" || fetch[0] == "none":
		return false, true
	}
	// A link on another page may lead to the page, and an issuer back to us.
	// Another port of this machine is another site too: it may be another
	// user's.
	return false, visit(r) && (g.leads(r.URL.Path) || r.URL.Path == CallbackPath || public(r))
}

// leads reports whether a path is one that the page itself leads to: a link on
// another site may lead there too, for the page holds nothing by itself.
func (g *guard) leads(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return path == "/" || strings.HasPrefix(path, "/") && slices.Contains(g.Views, first)
}

// visit reports whether another site leads a browser's window here.
func visit(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (site == "cross-site" || site == "same-site") &&
		r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// fromOurs reports whether a browser says that a page of ours makes it ask. It
// counts on site having looked at the headers before.
func fromOurs(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") == "same-origin"
}

// secure reports whether the browser speaks TLS, with us or with a proxy that
// says so. Without serve.hosts there is no proxy. One who lies about it gets a
// cookie that his own browser will not send back.
func (g *guard) secure(r *http.Request) bool {
	said := r.Header.Values("X-Forwarded-Proto")
	return r.TLS != nil || len(g.Hosts) > 0 && len(said) == 1 && said[0] == "https"
}

// sameOrigin reports whether an origin is the server as this request names it.
// A proxy in front may speak https while we do not, so the scheme is left to
// the browser, which would call that cross-site.
func sameOrigin(origin string, r *http.Request) bool {
	scheme, host, ok := splitOrigin(origin)
	if !ok || scheme != "http" && scheme != "https" {
		return false
	}
	name, port, ok := hostPort(host)
	ownName, ownPort, ownOK := hostPort(r.Host)
	return ok && ownOK && name == ownName && orDefault(port, scheme) == orDefault(ownPort, scheme)
}

func orDefault(port, scheme string) string {
	switch {
	case port != "":
		return port
	case scheme == "https":
		return "443"
	}
	return "80"
}

// splitOrigin takes an origin apart as the header has it: nothing but scheme
// and host.
func splitOrigin(origin string) (scheme, host string, ok bool) {
	scheme, host, ok = strings.Cut(strings.ToLower(origin), "://")
	if !ok || scheme == "" || strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != "" {
		return "", "", false
	}
	_, _, ok = hostPort(host)
	return scheme, host, ok
}

// share tells a browser that a listed site may read the answer. It answers the
// question that a browser asks beforehand, which carries no token, itself.
func share(w http.ResponseWriter, r *http.Request) (answered bool) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate, Retry-After")
	h.Add("Vary", "Origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", r.Header.Get("Access-Control-Request-Headers"))
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
