package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"ken/internal/address"
)

// origin is scheme, host and port of an address.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(u.Hostname(), port)
}

// checkURL refuses an address that must not be fetched or shown: https, or http
// on this machine where the server is on it too.
func (h *Handler) checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return errors.New("the address is not valid")
	case u.User != nil:
		return errors.New("the address contains a user name")
	case u.Scheme == "https", u.Scheme == "http" && address.Loopback(u.Hostname()):
	default:
		return fmt.Errorf("the address %s is not https", u.Redacted())
	}
	if address.Loopback(u.Hostname()) && !address.Loopback(h.url.Hostname()) {
		return fmt.Errorf("the address %s is on this machine, but the server is not", u.Redacted())
	}
	if ip, ok := address.Parse(u.Hostname()); ok {
		return h.checkIP(ip, nil)
	}
	return nil
}

// checkIP refuses networks that can only be reached from inside, unless the
// server itself, whose addresses are own, is in one of the same kind.
func (h *Handler) checkIP(ip netip.Addr, own []netip.Addr) error {
	ip = ip.Unmap()
	if literal, err := netip.ParseAddr(h.url.Hostname()); err == nil {
		own = append(own, literal)
	}
	switch inside := kindOf(ip); inside {
	case public:
		return nil
	default:
		for _, mine := range own {
			if mine.Unmap() == ip || inside != special && kindOf(mine.Unmap()) == inside {
				return nil
			}
		}
		if inside == loopback && address.Loopback(h.url.Hostname()) {
			return nil
		}
		return fmt.Errorf("%s is not a public address", ip)
	}
}

type network uint8

const (
	public network = iota
	loopback
	private
	special // link-local, where clouds give out keys; multicast; none
)

func kindOf(ip netip.Addr) network {
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64}), 10) // of a provider's customers
	ip = address.Inner(ip)
	switch {
	case address.Metadata(ip.String()):
		return special
	case ip.IsLoopback():
		return loopback
	case ip.IsPrivate(), shared.Contains(ip):
		return private
	case !ip.IsGlobalUnicast():
		return special
	}
	return public
}

// A guard checks every address that is asked, those of redirects as well.
type guard struct {
	h      *Handler
	direct http.RoundTripper
	proxy  func(*http.Request) (*url.URL, error)
	behind http.RoundTripper // through a proxy, which looks names up itself
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.h.checkURL(req.URL.String()); err != nil {
		return nil, err
	}
	if g.proxy != nil {
		if via, err := g.proxy(req); err != nil || via != nil {
			return g.behind.RoundTrip(req)
		}
	}
	return g.direct.RoundTrip(req)
}

const (
	fetchTimeout = 30 * time.Second
	mostHops     = 3
)

// fetcher makes the client for metadata, registration and tokens. The address of
// every connection is checked after its name was looked up. A transport of the
// configuration that is no *http.Transport makes its own connections, of which
// only the addresses as written are checked.
func (h *Handler) fetcher(base *http.Client) *http.Client {
	var rt http.RoundTripper
	if base != nil {
		rt = base.Transport
	}
	if rt == nil {
		rt = http.DefaultTransport
	}
	g := &guard{h: h, direct: rt}
	if t, ok := rt.(*http.Transport); ok {
		direct := t.Clone()
		direct.Proxy, direct.IdleConnTimeout = nil, fetchTimeout
		direct.DialContext = h.dial
		g.direct, g.behind, g.proxy = direct, t, t.Proxy
	}
	return &http.Client{
		Transport: g, Timeout: fetchTimeout,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			switch {
			case via[0].Method != http.MethodGet:
				return http.ErrUseLastResponse // codes and secrets are sent once
			case len(via) > mostHops:
				return fmt.Errorf("more than %d redirects", mostHops)
			}
			return nil
		},
	}
}

func (h *Handler) dial(ctx context.Context, kind, to string) (net.Conn, error) {
	// Who the server is, is asked at each dial: its name may mean something
	// else by now.
	var own []netip.Addr
	if host := h.url.Hostname(); !address.Loopback(host) {
		own, _ = net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	d := net.Dialer{
		Timeout: fetchTimeout,
		Control: func(_, dialled string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(dialled)
			if err != nil {
				return err
			}
			return h.checkIP(at.Addr(), own)
		},
	}
	return d.DialContext(ctx, kind, to)
}

// Client returns a client for talking to the server itself: base with a redirect
// to another origin refused, and without any token on its way there. A nil base
// is a client with nothing set.
func (h *Handler) Client(base *http.Client) *http.Client {
	var c http.Client
	if base != nil {
		c = *base
	}
	inner := c.Transport
	if inner == nil {
		inner = http.DefaultTransport
	}
	c.Transport = proving{h, stayHome{inner, origin(h.url)}}
	check := c.CheckRedirect
	c.CheckRedirect = func(req *http.Request, via []*http.Request) error {
		if origin(req.URL) != origin(h.url) {
			return fmt.Errorf("the server %s redirects to a different server, %s; if you trust it, connect to that address", h.conf.Server, origin(req.URL))
		}
		if check != nil {
			return check(req, via)
		}
		if len(via) > mostHops {
			return fmt.Errorf("more than %d redirects", mostHops)
		}
		return nil
	}
	return &c
}

// stayHome takes the token off any request that leaves the server's origin.
type stayHome struct {
	next http.RoundTripper
	home string
}

func (s stayHome) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Authorization") != "" && origin(req.URL) != s.home {
		req = req.Clone(req.Context())
		req.Header.Del("Authorization")
	}
	return s.next.RoundTrip(req)
}
