// Package egress is a confined tool's only way to the network: an HTTP proxy
// that connects to the hosts it was told and to no others.
//
// The name a tool asks for is checked against a list, and the address that is
// dialled in the end against closed networks: private, local and
// metadata networks. The second check is made on the socket, after every
// resolution, so neither a strange spelling nor a name that changes its mind
// gets past it. Redirects are the client's to follow, through the proxy again.
//
// A [Proxy] is made for one run: its byte caps hold over its life.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Config says who may be reached and how much may pass. Its zero value
// reaches no host.
type Config struct {
	// Allow lists host:port. The host may begin with "*.", for every name one
	// level below; the port may be *; a host alone means 80 and 443.
	Allow []string
	// Networks are allowed in spite of being private, local or loopback. The
	// host must be allowed as well.
	Networks []netip.Prefix
	// NoMetadata refuses link-local and metadata addresses whatever Networks has.
	NoMetadata bool
	// MaxBytes bounds both directions together, over the proxy's life [64 MiB;
	// negative: no bound]. Rate bounds bytes a second [none].
	MaxBytes, Rate int64
	// Connections at once [32].
	Connections int
	// Connect bounds the time to connect [10 s], Idle that without a byte [60 s].
	Connect, Idle time.Duration
	// Report is told of every connection once it is over, and of every
	// refusal. It is called from many goroutines, may be nil, and must not block.
	Report func(Connection)
}

// A Connection is one connection made or refused.
type Connection struct {
	Host     string        `json:"host"` // as asked for
	Address  string        `json:"address,omitempty"`
	Refused  string        `json:"refused,omitempty"` // why it was refused or cut; "" when it was not
	Up, Down int64         // bytes to and from the host
	Begun    time.Time     `json:"begun"`
	Took     time.Duration `json:"took"`
}

// A Proxy serves one run. It is safe for concurrent use.
type Proxy struct {
	cfg   Config
	rules atomic.Pointer[[]rule]
	meter *meter
	slots chan struct{}
}

// New checks a configuration and makes a proxy of it.
func New(cfg Config) (*Proxy, error) {
	if cfg.MaxBytes == 0 {
		cfg.MaxBytes = 64 << 20
	}
	if cfg.Connections <= 0 {
		cfg.Connections = 32
	}
	if cfg.Connect <= 0 {
		cfg.Connect = 10 * time.Second
	}
	if cfg.Idle <= 0 {
		cfg.Idle = 60 * time.Second
	}
	p := &Proxy{
		cfg:   cfg,
		meter: &meter{left: cfg.MaxBytes, bounded: cfg.MaxBytes > 0, rate: cfg.Rate},
		slots: make(chan struct{}, cfg.Connections),
	}
	if err := p.Allow(cfg.Allow); err != nil {
		return nil, err
	}
	return p, nil
}

// Allow replaces the hosts that new connections may be made to. Those that are
// there stay.
func (p *Proxy) Allow(list []string) error {
	rules, err := parseRules(list)
	if err == nil {
		p.rules.Store(&rules)
	}
	return err
}

// Refill allows MaxBytes again from now on, for a run that goes on for several
// calls.
func (p *Proxy) Refill() {
	p.meter.mu.Lock()
	defer p.meter.mu.Unlock()
	p.meter.left = p.cfg.MaxBytes
}

// Serve serves a listener given as a file until ctx ends. The file stays the
// caller's to close.
func (p *Proxy) Serve(ctx context.Context, listener *os.File) error {
	l, err := net.FileListener(listener)
	if err != nil {
		return fmt.Errorf("egress: listen: %w", err)
	}
	return p.ServeListener(ctx, l)
}

// ServeListener serves any listener, also a unix socket's, until ctx ends, and
// closes it. When it returns, every connection is over and was reported.
func (p *Proxy) ServeListener(ctx context.Context, l net.Listener) error {
	var serving sync.WaitGroup
	var mu sync.Mutex // over comes after the last Add
	over := false
	defer func() {
		mu.Lock()
		over = true
		mu.Unlock()
		serving.Wait()
	}()
	handle := func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if over {
			mu.Unlock()
			return
		}
		serving.Add(1)
		mu.Unlock()
		defer serving.Done()
		p.handle(w, r)
	}
	srv := &http.Server{
		Handler: http.HandlerFunc(handle), ReadHeaderTimeout: p.cfg.Connect,
		IdleTimeout: p.cfg.Idle, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // what a tool does to a proxy is no news
	}
	defer context.AfterFunc(ctx, func() { srv.Close() })()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("egress: serve: %w", err)
	}
	return nil
}

func (p *Proxy) handle(w http.ResponseWriter, r *http.Request) {
	target, err := targetOf(r)
	if err != nil {
		http.Error(w, "egress: "+err.Error(), http.StatusBadRequest)
		return
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		p.refuse(w, target, "too many connections at once", http.StatusTooManyRequests)
		return
	}
	if !allowed(*p.rules.Load(), target) {
		p.refuse(w, target, NotListed, http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, target)
		return
	}
	p.forward(w, r, target)
}

func (p *Proxy) refuse(w http.ResponseWriter, t target, why string, status int) {
	p.report(Connection{Host: t.String(), Refused: why, Begun: time.Now()})
	http.Error(w, "egress: "+t.String()+": "+why, status)
}

func (p *Proxy) report(c Connection) {
	if p.cfg.Report != nil {
		p.cfg.Report(c)
	}
}

// targetOf is where a request wants to go.
func targetOf(r *http.Request) (target, error) {
	if r.Method == http.MethodConnect {
		return parseTarget(r.Host, "")
	}
	if r.URL.Scheme != "http" || r.URL.Host == "" {
		return target{}, errors.New("not a proxy request: use CONNECT, or an http:// address")
	}
	return parseTarget(r.URL.Host, "80")
}

// dial connects to a target whose host is allowed, if its address is.
func (p *Proxy) dial(ctx context.Context, t target) (*metered, error) {
	c := Connection{Host: t.String(), Begun: time.Now()}
	d := net.Dialer{Timeout: p.cfg.Connect, Control: p.checkAddress}
	conn, err := d.DialContext(ctx, "tcp", t.String())
	if err != nil {
		c.Refused, c.Took = err.Error(), time.Since(c.Begun)
		p.report(c)
		return nil, err
	}
	c.Address = conn.RemoteAddr().String()
	return &metered{Conn: conn, ctx: ctx, meter: p.meter, idle: p.cfg.Idle, report: p.report, c: c}, nil
}

// forward does a plain HTTP request for the tool. The Host it names is where
// it goes: a header cannot say otherwise.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request, t target) {
	conn, err := p.dial(r.Context(), t)
	if err != nil {
		http.Error(w, "egress: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer conn.Close()
	out := r.Clone(r.Context())
	out.RequestURI, out.Host, out.Close = "", r.URL.Host, true
	dropHopHeaders(out.Header)
	transport := &http.Transport{
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return conn, nil },
		DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: p.cfg.Idle,
	}
	resp, err := transport.RoundTrip(out)
	if err != nil {
		http.Error(w, "egress: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer resp.Body.Close()
	dropHopHeaders(resp.Header)
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	if _, err := io.Copy(flushing{w}, resp.Body); err != nil {
		panic(http.ErrAbortHandler) // cut the answer short, so that it does not look whole
	}
}

// flushing passes each piece of an answer on as it comes.
type flushing struct{ w http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	if fl, ok := f.w.(http.Flusher); ok && err == nil {
		fl.Flush()
	}
	return n, err
}

// dropHopHeaders removes what concerns only one connection.
func dropHopHeaders(h http.Header) {
	for _, list := range h.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			h.Del(strings.TrimSpace(name))
		}
	}
	for _, name := range []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization",
		"Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade"} {
		h.Del(name)
	}
}

// tunnel joins the tool and the host. On the port of TLS the tool must speak
// it, and name the host it asked for.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, t target) {
	up, err := p.dial(r.Context(), t)
	if err != nil {
		http.Error(w, "egress: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer up.Close()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "egress: cannot tunnel", http.StatusInternalServerError)
		return
	}
	conn, rw, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	defer context.AfterFunc(r.Context(), func() { conn.Close(); up.Close() })()
	conn.SetDeadline(time.Time{})
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var from io.Reader = rw.Reader
	if t.port == 443 {
		hello, err := readHello(conn, rw.Reader, p.cfg.Connect)
		if err == nil {
			err = checkName(hello, t.host)
		}
		if err != nil {
			up.cut(err.Error())
			return
		}
		from = io.MultiReader(strings.NewReader(string(hello)), rw.Reader)
	}
	var both sync.WaitGroup
	both.Go(func() {
		io.Copy(onlyWriter{up}, from)
		up.closeWrite()
	})
	io.Copy(onlyWriter{conn}, up)
	conn.Close()
	both.Wait()
}

// onlyWriter hides ReadFrom, by which the kernel would move bytes uncounted.
type onlyWriter struct{ io.Writer }

func port(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("port %q is not between 1 and 65535", text)
	}
	return uint16(n), nil
}
