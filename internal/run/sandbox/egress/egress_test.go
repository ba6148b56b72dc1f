package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ken/internal/testkit"
)

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// A ledger keeps what a proxy reports.
type ledger struct {
	mu    sync.Mutex
	list  []Connection
	proxy *Proxy
}

func (l *ledger) add(c Connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, c)
}

func (l *ledger) all() []Connection {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Connection(nil), l.list...)
}

// serve runs a proxy on a unix socket and returns a client that uses it.
func serve(t *testing.T, cfg Config) (*http.Client, *ledger, string) {
	t.Helper()
	book := new(ledger)
	cfg.Report = book.add
	p, err := New(cfg)
	must(t, err)
	book.proxy = p
	path := filepath.Join(t.TempDir(), "p")
	l, err := net.Listen("unix", path)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.ServeListener(ctx, l) }()
	transport := &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy"}),
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) },
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
	return &http.Client{Transport: transport, Timeout: testkit.Patience}, book, path
}

func hello(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s", r.Host) }

func TestProxy(t *testing.T) {
	hits := 0
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits++
		if r.Header.Get("Proxy-Authorization") != "" {
			t.Error("a header for the proxy reached the host")
		}
		hello(w, r)
	}))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(hello))
	defer secure.Close()
	host, secureHost := plain.Listener.Addr().String(), secure.Listener.Addr().String()

	tests := []struct {
		name, url string
		cfg       Config
		want      string // the answer; "" for a refusal
		why       string // part of what is reported
	}{
		{"plain", plain.URL, Config{Allow: []string{host}, Networks: loopback}, "hello " + host, ""},
		{"tunnel", secure.URL, Config{Allow: []string{secureHost}, Networks: loopback}, "hello " + secureHost, ""},
		{"any port", plain.URL, Config{Allow: []string{"127.0.0.1:*"}, Networks: loopback}, "hello " + host, ""},
		{"not on the list", plain.URL, Config{Allow: []string{"example.com:*"}, Networks: loopback}, "", "not on the list"},
		{"tunnel not on the list", secure.URL, Config{Networks: loopback}, "", "not on the list"},
		{"another port", plain.URL, Config{Allow: []string{"127.0.0.1:1"}, Networks: loopback}, "", "not on the list"},
		{"private address", plain.URL, Config{Allow: []string{host}}, "", "private"},
		{"tunnel to a private address", secure.URL, Config{Allow: []string{secureHost}}, "", "private"},
		{"a name for this machine", strings.Replace(plain.URL, "127.0.0.1", "localhost", 1), Config{Allow: []string{"localhost:*"}}, "", "private"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := hits
			client, book, _ := serve(t, tt.cfg)
			got := ""
			resp, err := client.Get(tt.url)
			if err == nil {
				body, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode == 200 {
					got = string(body)
				}
			}
			client.CloseIdleConnections()
			if got != tt.want {
				t.Errorf("Get(%s) = %q (%v), want %q", tt.url, got, err, tt.want)
			}
			if tt.want == "" && hits != before {
				t.Error("the host was reached")
			}
			testkit.Wait(t, "it is reported, a tunnel when it closes", func() bool { return len(book.all()) > 0 })
			c := book.all()[0]
			if !strings.Contains(c.Refused, tt.why) || (tt.want == "") != (c.Refused != "") {
				t.Errorf("reported %+v, want %q", c, tt.why)
			}
			if tt.want != "" && (c.Up == 0 || c.Down == 0 || c.Address == "") {
				t.Errorf("reported %+v, want bytes and an address", c)
			}
		})
	}
}

// TestRedirect follows a redirect to a host that is not allowed.
func TestRedirect(t *testing.T) {
	reached := false
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer inner.Close()
	outer := httptest.NewServer(http.RedirectHandler(inner.URL, http.StatusFound))
	defer outer.Close()
	client, _, _ := serve(t, Config{Allow: []string{outer.Listener.Addr().String()}, Networks: loopback})
	resp, err := client.Get(outer.URL)
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden || reached {
		t.Errorf("status %d, reached %v, want 403 and not reached", resp.StatusCode, reached)
	}
}

// TestHostHeader asks an allowed host for another one by the Host header.
func TestHostHeader(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(hello))
	defer srv.Close()
	host := srv.Listener.Addr().String()
	_, _, path := serve(t, Config{Allow: []string{host}, Networks: loopback})
	conn, err := net.Dial("unix", path)
	must(t, err)
	defer conn.Close()
	fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n", host)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	body, _ := io.ReadAll(resp.Body)
	if want := "hello " + host; string(body) != want {
		t.Errorf("the host saw %q, want %q", body, want)
	}
}

// TestBytes bounds what passes, up and down together.
func TestBytes(t *testing.T) {
	const size = 1 << 20
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Write(make([]byte, size))
	}))
	defer srv.Close()
	host := srv.Listener.Addr().String()
	tests := []struct {
		max   int64
		whole bool
	}{{size / 2, false}, {2 * size, true}, {-1, true}}
	for _, tt := range tests {
		client, book, _ := serve(t, Config{Allow: []string{host}, Networks: loopback, MaxBytes: tt.max})
		resp, err := client.Get(srv.URL)
		must(t, err)
		n, err := io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if (err == nil) != tt.whole || (n == size) != tt.whole {
			t.Errorf("MaxBytes %d: %d bytes, %v, want whole %v", tt.max, n, err, tt.whole)
		}
		c := book.all()[0]
		if (c.Refused == "") != tt.whole || (!tt.whole && c.Up+c.Down > tt.max) {
			t.Errorf("MaxBytes %d: reported %+v", tt.max, c)
		}
	}
	client, _, _ := serve(t, Config{Allow: []string{host}, Networks: loopback, MaxBytes: size / 4})
	if resp, err := client.Post(srv.URL, "x/y", strings.NewReader(strings.Repeat("x", size))); err == nil {
		resp.Body.Close()
		if resp.StatusCode == 200 {
			t.Error("an upload four times the bound passed")
		}
	}
}

// TestRate passes ten seconds' worth of bytes and looks at the clock.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &meter{rate: 100_000}
		start, sum := time.Now(), 0
		for sum < 1_000_000 {
			n, err := m.take(t.Context(), 1_000_000-sum)
			must(t, err)
			sum += n
		}
		if d := time.Since(start); d < 9500*time.Millisecond || d > 10*time.Second {
			t.Errorf("a million bytes at 100 kB/s took %v, want about 10 s", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := m.take(ctx, 1); err == nil {
			t.Error("take after its context = nil, want an error")
		}
	})
}

func TestConnections(t *testing.T) {
	gate := make(chan struct{})
	here := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { here <- struct{}{}; <-gate }))
	defer srv.Close()
	client, _, _ := serve(t, Config{Allow: []string{srv.Listener.Addr().String()}, Networks: loopback, Connections: 1})
	first := make(chan error)
	go func() {
		resp, err := client.Get(srv.URL)
		if err == nil {
			resp.Body.Close()
		}
		first <- err
	}()
	<-here
	resp, err := client.Get(srv.URL)
	must(t, err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("second connection: status %d, want %d", resp.StatusCode, http.StatusTooManyRequests)
	}
	close(gate)
	if err := <-first; err != nil {
		t.Errorf("first connection: %v", err)
	}
}

func TestParseTarget(t *testing.T) {
	tests := []struct{ text, want string }{
		{"Example.COM.:443", "example.com:443"},
		{"example.com", "example.com:80"},
		{"[::ffff:127.0.0.1]:80", "127.0.0.1:80"},
		{"[2001:db8::1]", "[2001:db8::1]:80"},
		{"127.1:80", ""}, {"0x7f000001:80", ""}, {"2130706433:80", ""}, {"0177.0.0.1:80", ""}, {"0:80", ""}, {"0x7f.1:80", ""},
		{"①②⑦.⓪.⓪.①:80", ""}, {"127。0。0。1:80", ""}, {"exa mple.com:80", ""}, {"a..b:80", ""}, {"-:0", ""}, {"h:65536", ""},
		{"[fe80::1%eth0]:80", ""}, {"user@host:80", ""}, {":80", ""}, {"", ""},
	}
	for _, tt := range tests {
		got, err := parseTarget(tt.text, "80")
		if (err != nil) != (tt.want == "") || (err == nil && got.String() != tt.want) {
			t.Errorf("parseTarget(%q) = %v, %v, want %q", tt.text, got, err, tt.want)
		}
	}
}

func TestAllowed(t *testing.T) {
	tests := []struct {
		rule, target string
		want         bool
	}{
		{"example.com", "example.com:443", true}, {"example.com", "example.com:80", true}, {"example.com", "example.com:22", false},
		{"example.com:22", "example.com:22", true}, {"example.com:*", "example.com:9", true},
		{"*.example.com:443", "a.example.com:443", true}, {"*.example.com:443", "a.b.example.com:443", false}, {"*.example.com:443", "example.com:443", false},
		{"*.example.com:443", "evilexample.com:443", false}, {"example.com", "example.com.evil.org:443", false},
		{"EXAMPLE.com", "example.COM:443", true}, {"1.2.3.4", "1.2.3.4:80", true},
	}
	for _, tt := range tests {
		rules, err := parseRules([]string{tt.rule})
		must(t, err)
		target, err := parseTarget(tt.target, "")
		must(t, err)
		if got := allowed(rules, target); got != tt.want {
			t.Errorf("allowed(%q, %q) = %v, want %v", tt.rule, tt.target, got, tt.want)
		}
	}
	for _, bad := range []string{"", "*", "*.1.2.3.4:80", "host:0", "host:http", "*.*.com"} {
		if _, err := New(Config{Allow: []string{bad}}); err == nil {
			t.Errorf("New(Allow %q) = nil, want an error", bad)
		}
	}
}

func TestReachable(t *testing.T) {
	tests := []struct {
		addr string
		want bool
	}{
		{"93.184.216.34", true}, {"2606:4700::1111", true}, {"127.0.0.1", false}, {"0.0.0.0", false}, {"::", false}, {"::1", false},
		{"::ffff:127.0.0.1", false}, {"::127.0.0.1", false}, {"10.1.2.3", false}, {"172.31.0.1", false}, {"172.32.0.1", true},
		{"192.168.1.1", false}, {"169.254.169.254", false}, {"fd00:ec2::254", false}, {"fe80::1", false}, {"100.100.100.200", false},
		{"64:ff9b::7f00:1", false}, {"2002:7f00:1::", false}, {"224.0.0.1", false}, {"255.255.255.255", false},
	}
	for _, tt := range tests {
		if got := reachable(netip.MustParseAddr(tt.addr), nil); got != tt.want {
			t.Errorf("reachable(%s) = %v, want %v", tt.addr, got, tt.want)
		}
	}
	if !reachable(netip.MustParseAddr("::ffff:127.0.0.1"), loopback) {
		t.Error("a network of the configuration is not reachable")
	}
}

// clientHello is what crypto/tls sends first for a name.
func clientHello(t testing.TB, name string) []byte {
	a, b := net.Pipe()
	defer b.Close()
	go func() {
		tls.Client(a, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		a.Close()
	}()
	record, err := readHello(b, bufio.NewReader(b), testkit.Patience)
	must(t, err)
	return record
}

func TestServerName(t *testing.T) {
	tests := []struct {
		name, host string
		want       bool
	}{
		{"example.com", "example.com", true}, {"Example.com", "example.com", true}, {"evil.org", "example.com", false},
		{"", "example.com", false}, {"", "1.2.3.4", true}, {"evil.org", "1.2.3.4", false},
	}
	for _, tt := range tests {
		if err := checkName(clientHello(t, tt.name), tt.host); (err == nil) != tt.want {
			t.Errorf("checkName(hello for %q, %q) = %v, want ok %v", tt.name, tt.host, err, tt.want)
		}
	}
}

func FuzzServerName(f *testing.F) {
	f.Add(clientHello(f, "example.com"))
	f.Add([]byte("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, record []byte) {
		name, err := serverName(record)
		if err != nil && name != "" {
			t.Errorf("serverName = %q and %v", name, err)
		}
		if name != "" && !strings.Contains(string(record), name) {
			t.Errorf("serverName = %q, which is not in the record", name)
		}
	})
}

func FuzzParseTarget(f *testing.F) {
	for _, s := range []string{"example.com:443", "[::1]:80", "0x7f.1", "a:b:c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseTarget(text, "80")
		if err != nil {
			return
		}
		again, err := parseTarget(got.String(), "")
		if err != nil || again != got {
			t.Errorf("parseTarget(%q) = %v, which parses as %v, %v", text, got, again, err)
		}
	})
}

// TestAllow: the hosts of a proxy can be replaced while it serves, its bytes be
// given again, and metadata addresses stay refused whatever the networks are.
func TestAllow(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 30_000)) }))
	defer plain.Close()
	cfg := Config{MaxBytes: 100_000, NoMetadata: true, Networks: []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}}
	client, book, _ := serve(t, cfg)
	p := book.proxy
	get := func(address string) string {
		resp, err := client.Get(address)
		if err != nil {
			return err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return fmt.Sprint(resp.StatusCode, " ", len(body), " ", err, " ", string(body))
	}
	if got := get(plain.URL); !strings.Contains(got, "not on the list") {
		t.Errorf("before Allow: %s", got)
	}
	if err := p.Allow([]string{plain.Listener.Addr().String(), "169.254.169.254", "192.0.0.192"}); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		got := get(plain.URL)
		if over := n == 3; strings.HasPrefix(got, "200 30000 <nil>") == over {
			t.Errorf("answer %d: %.60s", n, got)
		}
		if n == 3 {
			p.Refill()
		}
	}
	for _, a := range []string{"http://169.254.169.254/", "http://192.0.0.192/"} {
		if got := get(a); !strings.Contains(got, "none is ever reached") {
			t.Errorf("%s: %.200s", a, got)
		}
	}
	if err := p.Allow([]string{"a b"}); err == nil {
		t.Error("Allow takes what is no host")
	}
	if err := p.Allow(nil); err != nil || !strings.Contains(get(plain.URL), "not on the list") {
		t.Errorf("after Allow(nil): %v, and the host is reached", err)
	}
}
