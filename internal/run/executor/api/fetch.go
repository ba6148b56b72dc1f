package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/time/rate"

	"ken/capability"
	"ken/internal/address"
)

const (
	mostRedirects = 5
	longestWait   = time.Minute // for a Retry-After
	mostHosts     = 1000
)

// newTransport makes connections that are checked. It uses no proxy of the
// environment: behind one it is unknown which address is dialled.
func (e *Executor) newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second, Control: e.checkAddress}
	return &http.Transport{
		DialContext: dialer.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns: 100, MaxIdleConnsPerHost: 8, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 256 << 10,
		ExpectContinueTimeout: time.Second,
	}
}

// A barred is an address that is never dialled.
type barred struct{ text, rule string }

func (b *barred) Error() string { return b.text }

// checkAddress sees every address on its way into connect, after its name was
// resolved.
func (e *Executor) checkAddress(_, dialled string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(dialled)
	if err != nil {
		return &barred{"the dialled address cannot be parsed", "addresses"}
	}
	addr := ap.Addr().Unmap().WithZone("")
	if address.Metadata(addr.String()) || addr.IsUnspecified() || addr.IsMulticast() {
		return &barred{fmt.Sprintf("address %s is link-local or a metadata address; Ken never connects to these", addr), "link-local and metadata addresses"}
	}
	if address.Public(addr) {
		return nil
	}
	if e.cfg.Networks != nil {
		for _, n := range e.cfg.Networks() {
			if n.Contains(addr) {
				return nil
			}
		}
	}
	return &barred{fmt.Sprintf("address %s is private, local or reserved, and not in an allowed network", addr), "sandbox.networks"}
}

// A pace is how fast one host is asked.
type pace struct {
	limit  *rate.Limiter
	shared Pace // instead, where processes count together
	set    float64
}

// paceOf returns the pace of a host.
func (x *exchange) paceOf(host string) *pace {
	x.mu.Lock()
	defer x.mu.Unlock()
	p := x.hosts[host]
	if p == nil || p.set != x.limits.Rate {
		if len(x.hosts) >= mostHosts {
			clear(x.hosts)
		}
		p = &pace{set: x.limits.Rate}
		if burst := max(1, int(2*p.set)); x.cfg.Pace != nil {
			p.shared = x.cfg.Pace(host, p.set, burst)
		} else {
			p.limit = rate.NewLimiter(rate.Limit(p.set), burst)
		}
		x.hosts[host] = p
	}
	return p
}

// pace waits for a host's turn.
func (x *exchange) pace(ctx context.Context, u *url.URL) error {
	if x.limits.Rate < 0 {
		return nil
	}
	host := strings.ToLower(u.Host)
	p := x.paceOf(host)
	until, bounded := ctx.Deadline()
	late := &capability.Error{
		Kind: capability.Unavailable, Op: "call", Target: string(x.call.Target), Rule: "requests.rate",
		Err: fmt.Errorf("requests to %s are limited to %g per second; this one would have to wait longer than the call may take", host, x.limits.Rate), Fix: "call again later, or raise requests.rate",
	}
	if p.shared != nil {
		most := x.limits.Timeout
		if bounded {
			most = time.Until(until)
		}
		switch wait, err := p.shared.Wait(ctx, most); {
		case ctx.Err() != nil:
			return x.stopped(context.Cause(ctx), false)
		case err != nil:
			return &capability.Error{
				Kind: capability.Unavailable, Op: "call", Target: string(x.call.Target), Rule: "requests.rate",
				Err: fmt.Errorf("requests.rate holds for all replicas together, and this one has no share of it, because the store does not answer: %w", err),
				Fix: "call again when PostgreSQL answers; ken doctor --cluster says what is wrong with it",
			}
		case wait > 0:
			return late
		}
		return nil
	}
	r := p.limit.Reserve()
	wait := r.Delay()
	if wait == 0 {
		return nil
	}
	if bounded && time.Until(until) < wait {
		r.Cancel()
		return late
	}
	if err := x.sleep(ctx, wait); err != nil {
		r.Cancel()
		return x.stopped(err, false)
	}
	return nil
}

// An answer is what a server said.
type answer struct {
	status    int
	header    http.Header
	body      []byte
	url       *url.URL // that gave it, without credentials
	truncated bool
	broken    string // why the body ended early
	elsewhere string // where a redirect leads that is not followed
}

// fetch makes the request, with its retries, and its redirects within the host.
func (x *exchange) fetch(ctx context.Context, u *url.URL) (*answer, error) {
	have := x.remembered(u)
	if have != nil && have.fresh(time.Now()) {
		x.cached = "hit"
		return have.answer.at(u), nil
	}
	retry := x.plan.safe() || x.plan.keyed
	renewed := false
	for try := 0; ; try++ {
		a, sent, err := x.once(ctx, u, have, renewed)
		if err == nil && a.status == http.StatusUnauthorized && !renewed && x.renews() {
			renewed = true
			try--
			continue
		}
		wait, again := time.Duration(0), false
		if retry && try < x.limits.Retries {
			wait, again = worthAnother(a, err, try)
		}
		if again {
			if until, ok := ctx.Deadline(); !ok || time.Until(until) > wait {
				if err := x.sleep(ctx, wait); err != nil {
					return nil, x.stopped(err, sent)
				}
				continue
			}
		}
		if err != nil {
			return nil, x.failure(ctx, err, sent)
		}
		if a.status == http.StatusNotModified && have != nil {
			x.cached = "revalidated"
			return x.renew(u, have, a).at(u), nil
		}
		x.remember(u, a)
		return a, nil
	}
}

// renews reports whether a token can be fetched again.
func (x *exchange) renews() bool {
	for _, a := range x.plan.op.auth {
		if _, ok := x.secret(a.Refresh); a.TokenURL != "" && (ok || a.Scheme == "clientCredentials") {
			return true
		}
	}
	return false
}

// worthAnother says whether a request is made again, and after how long.
func worthAnother(a *answer, err error, try int) (time.Duration, bool) {
	wait := time.Duration(250<<try) * time.Millisecond
	wait += rand.N(wait / 2)
	if err != nil {
		if _, no := errors.AsType[*barred](err); no || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return 0, false
		}
		if own, ok := errors.AsType[*capability.Error](err); ok && own != nil {
			return 0, false
		}
		return wait, true
	}
	switch a.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		return 0, false
	}
	if asked, ok := retryAfter(a.header.Get("Retry-After"), time.Now()); ok {
		return asked, asked <= longestWait
	}
	return wait, true
}

// retryAfter reads seconds or a date.
func retryAfter(text string, now time.Time) (time.Duration, bool) {
	if n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32); err == nil && n >= 0 {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}

// once makes the request and follows its redirects. sent says whether a server may
// have seen it.
func (x *exchange) once(ctx context.Context, u *url.URL, have *entry, fresh bool) (*answer, bool, error) {
	method, body := x.plan.method, x.plan.body
	at, bare := u, false
	for hop := 0; ; hop++ {
		a, sent, err := x.send(ctx, leg{method, at, body, have, fresh, bare})
		if err != nil || !redirects(a.status) {
			return a, sent || hop > 0, err
		}
		next, err := at.Parse(a.header.Get("Location"))
		if err != nil || a.header.Get("Location") == "" {
			return a, true, nil // the answer itself is all there is
		}
		next.Fragment, next.RawFragment = "", ""
		keepsMethod := a.status == http.StatusTemporaryRedirect || a.status == http.StatusPermanentRedirect
		switch {
		case next.User != nil || address.Metadata(next.Hostname()) || originOf(next) != originOf(x.plan.url) && !(safe(method) && x.plan.op.names(next)):
			// Another host was not decided on, and gets nothing.
			a.elsewhere = next.Scheme + "://" + next.Host + next.EscapedPath()
			return a, true, nil
		case hop == mostRedirects:
			return a, true, &capability.Error{Kind: capability.Upstream, Op: "call", Target: string(x.call.Target), Err: fmt.Errorf("the server redirects more than %d times", mostRedirects)}
		case !keepsMethod && method != http.MethodHead:
			method, body = http.MethodGet, nil
		}
		at, have, bare = next, nil, bare || originOf(next) != originOf(x.plan.url)
	}
}

// names reports whether a recipe names the host of an address besides its own.
func (op *operation) names(u *url.URL) bool {
	return slices.ContainsFunc(op.named, func(host string) bool {
		return strings.EqualFold(host, u.Host) || strings.EqualFold(host, u.Hostname()) && u.Port() == ""
	})
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// A leg is one request of several that redirects make of a call.
type leg struct {
	method string
	url    *url.URL
	body   []byte
	have   *entry
	fresh  bool // with new tokens
	bare   bool // to another host: without arguments in headers, cookies and credentials
}

// send makes one request.
func (x *exchange) send(ctx context.Context, l leg) (*answer, bool, error) {
	method, u, body, have := l.method, l.url, l.body, l.have
	if err := x.pace(ctx, u); err != nil {
		return nil, false, err
	}
	var sent atomic.Bool
	if !safe(method) { // the others need no record
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	}
	var reader io.Reader
	if body != nil {
		reader = bytes.NewReader(body)
	}
	at := *u
	req, err := http.NewRequestWithContext(ctx, method, "http://x", reader)
	if err != nil {
		return nil, false, err
	}
	req.URL, req.Host = &at, at.Host
	req.Header = x.plan.header.Clone()
	if body == nil {
		req.Header.Del("Content-Type")
		if method != http.MethodGet && method != http.MethodHead {
			req.ContentLength = 0
		}
	}
	if l.bare {
		req.Header = http.Header{"Accept": req.Header["Accept"], "User-Agent": req.Header["User-Agent"]}
	} else {
		if len(x.plan.cookies) > 0 {
			req.Header.Set("Cookie", strings.Join(x.plan.cookies, "; "))
		}
		if have != nil {
			have.ask(req.Header)
		}
		if err := x.sign(ctx, req, l.fresh); err != nil {
			return nil, false, err
		}
	}
	x.attempts++
	resp, err := x.transport.RoundTrip(req)
	if err != nil {
		return nil, sent.Load(), err
	}
	a := &answer{status: resp.StatusCode, header: resp.Header, url: u}
	a.body, a.truncated, err = readSized(resp, x.limits.Bytes)
	if err != nil {
		if ctx.Err() != nil {
			return nil, true, ctx.Err()
		}
		a.broken = plainError(err)
	}
	return a, true, nil
}

// readSized reads a body whose length the server gave at once, as long as it can be
// true.
func readSized(resp *http.Response, most int64) (data []byte, cut bool, err error) {
	n := resp.ContentLength
	if n <= 0 || n > most || n > 1<<20 {
		return readLimited(resp.Body, most)
	}
	defer resp.Body.Close()
	data = make([]byte, n)
	read, err := io.ReadFull(resp.Body, data)
	return data[:read], false, err
}

// readLimited reads as much as may be kept, and closes the body. The bytes are
// counted after they were decompressed.
func readLimited(body io.ReadCloser, most int64) (data []byte, cut bool, err error) {
	defer body.Close()
	data, err = io.ReadAll(io.LimitReader(body, most+1))
	if int64(len(data)) > most {
		return data[:most], true, nil
	}
	return data, false, err
}

// plainError returns the cause of a failure without the address, which may hold a
// secret.
func plainError(err error) string {
	if b, ok := errors.AsType[*barred](err); ok {
		return b.text
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if d, ok := errors.AsType[*net.DNSError](err); ok {
		return fmt.Sprintf("the name %s cannot be resolved", d.Name)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "the response ended early"
	}
	return strings.ToValidUTF8(err.Error(), "\uFFFD")
}

// failure is the error of a request without an answer.
func (x *exchange) failure(ctx context.Context, err error, sent bool) error {
	if own, ok := errors.AsType[*capability.Error](err); ok {
		return own
	}
	if ctx.Err() != nil {
		return x.stopped(ctx.Err(), sent)
	}
	out := &capability.Error{Kind: capability.Unavailable, Op: "call", Target: string(x.call.Target), Err: errors.New("request to " + x.plan.url.Hostname() + ": " + plainError(err))}
	if b, ok := errors.AsType[*barred](err); ok {
		out.Kind, out.Rule = capability.Denied, b.rule
		if b.rule == "sandbox.networks" {
			out.Fix = "to allow it, add the network to sandbox.networks in ken.yaml"
		}
		return out
	}
	if sent && !x.plan.safe() {
		out.Kind, out.Fix = capability.Upstream, "the request may or may not have taken effect; check before you call again"
	}
	return out
}

// stopped is the error of a call whose time is over, or that was cancelled.
func (x *exchange) stopped(err error, sent bool) error {
	out := &capability.Error{Kind: capability.Timeout, Op: "call", Target: string(x.call.Target), Err: errors.New("the server did not answer within the time limit of the call"), Fix: "the time limit is limits.timeout, or timeoutSec in the recipe"}
	if errors.Is(err, context.Canceled) {
		out.Kind, out.Err, out.Fix = capability.Unavailable, errors.New("cancelled"), ""
		if sent && !x.plan.safe() {
			out.Kind = capability.Upstream
		}
	}
	return out
}
