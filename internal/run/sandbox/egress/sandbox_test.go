//go:build linux

package egress_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ken/internal/run/sandbox"
	"ken/internal/run/sandbox/egress"
)

func TestMain(m *testing.M) {
	sandbox.Helper()
	os.Exit(m.Run())
}

// TestEgress lets a tool out through the proxy to one host and nowhere else:
// not to the host directly, not to another listener, not by UDP.
func TestEgress(t *testing.T) {
	if r := sandbox.Probe(context.Background()); r.Isolation.Profile != sandbox.Full {
		t.Skipf("cannot here: no network namespaces: %v", r.Isolation.Missing)
	}
	var hits, others atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		w.Write([]byte("hello"))
	}))
	defer srv.Close()
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { others.Add(1) }))
	defer other.Close()
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer udp.Close()

	var book atomic.Pointer[egress.Connection]
	proxy := func(networks ...netip.Prefix) sandbox.Egress {
		p, err := egress.New(egress.Config{
			Allow: []string{srv.Listener.Addr().String()}, Networks: networks,
			Report: func(c egress.Connection) { book.Store(&c) },
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	const get = `u=${URL#http://}; exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:} && printf 'GET %s/ HTTP/1.0\r\n\r\n' "$URL" >&3 && cat <&3`
	tests := []struct {
		name, script, url string
		egress            sandbox.Egress
		want              string // in stdout
		not               string
	}{
		{"through the proxy", get, srv.URL, proxy(loopback), "hello", ""},
		{"another host", get, other.URL, proxy(loopback), "403", "hello"},
		{"a private address not allowed", get, srv.URL, proxy(), "502", "hello"},
		{"past the proxy", `u=${URL#http://}; exec 3<>/dev/tcp/${u%:*}/${u##*:} && echo open; echo done`, srv.URL, proxy(loopback), "done", "open"},
		{"udp", `echo x >/dev/udp/127.0.0.1/$UDP; echo done`, srv.URL, proxy(loopback), "done", ""},
		{"own server and client", `exec 3<>/dev/tcp/127.0.0.1/${HTTPS_PROXY##*:} && echo open`, srv.URL, proxy(loopback), "open", ""},
		{"no network", `u=${URL#http://}; exec 3<>/dev/tcp/${u%:*}/${u##*:} && echo open; echo "proxy=$HTTP_PROXY"`, srv.URL, nil, "proxy=\n", "open"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before := hits.Load()
			work, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer work.Close()
			s := sandbox.Spec{Path: "/bin/bash", Args: []string{"bash", "-c", tt.script}, Work: work,
				Egress: tt.egress, Require: sandbox.RequireFull}
			s.Env = []string{"URL=" + tt.url, "UDP=" + strings.TrimPrefix(udp.LocalAddr().String(), "127.0.0.1:")}
			o, err := sandbox.Run(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			out := o.Stdout.Text()
			if !strings.Contains(out, tt.want) || (tt.not != "" && strings.Contains(out, tt.not)) {
				t.Errorf("Run = %q %q, want %q and not %q", out, o.Stderr.Text(), tt.want, tt.not)
			}
			if got, want := hits.Load()-before, int64(strings.Count(tt.want, "hello")); got != want {
				t.Errorf("the host was reached %d times, want %d", got, want)
			}
		})
	}
	if n := others.Load(); n != 0 {
		t.Errorf("the other host was reached %d times", n)
	}
	if book.Load() == nil {
		t.Error("no connection was reported")
	}
	udp.SetReadDeadline(time.Now())
	if n, _, err := udp.ReadFrom(make([]byte, 9)); err == nil {
		t.Errorf("%d bytes came by UDP", n)
	}
}
