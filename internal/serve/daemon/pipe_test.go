package daemon

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ken/internal/serve/shim"
	"ken/internal/testkit"
)

// pipes is a listener whose connections are in memory, so that time can be
// made to pass.
type pipes struct {
	calls  chan net.Conn
	closed chan struct{}
}

func newPipes() (*Listener, *pipes) {
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	return &Listener{ln: p, path: "/nonexistent/ken.sock", allowed: func(net.Conn) (int, error) { return 0, nil }}, p
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// call connects and has the greeting.
func (p *pipes) call(t *testing.T) (net.Conn, *bufio.Reader, shim.Greeting) {
	t.Helper()
	a, b := net.Pipe()
	p.calls <- b
	r := bufio.NewReader(a)
	line, err := r.ReadBytes('\n')
	var g shim.Greeting
	if err != nil || json.Unmarshal(line, &g) != nil || g.V != shim.Protocol {
		t.Fatalf("the greeting = %s, %v", line, err)
	}
	return a, r, g
}

const serveMe = `{"v":1,"do":"serve","cwd":"/w"}` + "\n"

func say(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
}

func hearLine(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	if got, err := r.ReadString('\n'); err != nil || !strings.Contains(got, want) {
		t.Fatalf("the daemon says %q, %v; want %s", got, err, want)
	}
}

// untilEOF writes a word and serves until the client goes or ctx ends.
func untilEOF(ctx context.Context, _ shim.Hello, conn net.Conn) error {
	if _, err := io.WriteString(conn, "word\n"); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	_, err := io.Copy(io.Discard, conn)
	return err
}

func start(l *Listener, ctx context.Context, cfg Config, h Handler) <-chan error {
	served := make(chan error, 1)
	go func() { served <- l.Serve(ctx, cfg, h) }()
	return served
}

// serving serves until the test ends, which must be without an error.
func serving(t *testing.T, cfg Config, h Handler) *pipes {
	l, p := newPipes()
	ctx, cancel := context.WithCancel(t.Context())
	served := start(l, ctx, cfg, h)
	t.Cleanup(func() {
		cancel()
		testkit.Equal(t, "Serve", <-served, nil)
	})
	return p
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newPipes()
		begin := time.Now()
		served := start(l, t.Context(), Config{Idle: time.Minute}, untilEOF)
		c, r, g := p.call(t)
		if g.Clients != 0 {
			t.Errorf("the first greeting tells of %d clients", g.Clients)
		}
		say(t, c, serveMe)
		hearLine(t, r, `{"ok":true}`)
		hearLine(t, r, "word")
		time.Sleep(time.Hour) // a client that says nothing is a client
		probe, _, g := p.call(t)
		if g.Clients != 1 {
			t.Errorf("a greeting beside one client tells of %d", g.Clients)
		}
		probe.Close()
		select {
		case err := <-served:
			t.Fatalf("Serve = %v beside a client", err)
		default:
		}
		c.Close()
		testkit.Equal(t, "Serve", <-served, nil)
		if got, want := time.Since(begin), time.Hour+time.Minute; got != want {
			t.Errorf("Serve ended after %v, want %v", got, want)
		}
	})
}

func TestIdleNever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		served := start(l, ctx, Config{Idle: -1}, untilEOF)
		time.Sleep(1000 * time.Hour)
		select {
		case err := <-served:
			t.Fatalf("Serve = %v without a limit", err)
		default:
		}
		cancel()
		testkit.Equal(t, "Serve", <-served, nil)
	})
}

// TestSlowHello: bytes that drip do not buy time.
func TestSlowHello(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serving(t, Config{}, func(context.Context, shim.Hello, net.Conn) error {
			t.Error("a slow caller is served")
			return nil
		})
		c, _, _ := p.call(t)
		begin := time.Now()
		var err error
		for i := 0; err == nil && i < 100; i++ {
			_, err = io.WriteString(c, " ")
			time.Sleep(time.Second)
		}
		if took := time.Since(begin); err == nil || took > 7*time.Second {
			t.Errorf("a dripping hello is read for %v, %v; want 5s", took, err)
		}
	})
}

func TestDrain(t *testing.T) {
	tests := []struct {
		name    string
		handler Handler
		took    time.Duration
		want    string // part of the error; empty for none
	}{
		{"one that stops", untilEOF, 0, ""},
		{"one that needs a while", func(ctx context.Context, _ shim.Hello, conn net.Conn) error {
			<-ctx.Done()
			time.Sleep(3 * time.Second)
			_, err := io.WriteString(conn, "last\n")
			return err
		}, 3 * time.Second, ""},
		{"one that only knows its connection", func(_ context.Context, _ shim.Hello, conn net.Conn) error {
			_, err := io.Copy(io.Discard, conn)
			return err
		}, 10 * time.Second, ""},
		{"one that hangs", func(context.Context, shim.Hello, net.Conn) error {
			time.Sleep(time.Hour)
			return nil
		}, 20 * time.Second, "1 clients are still served"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, p := newPipes()
				ctx, cancel := context.WithCancel(t.Context())
				served := start(l, ctx, Config{}, tt.handler)
				c, r, _ := p.call(t)
				say(t, c, serveMe)
				go io.Copy(io.Discard, r)
				synctest.Wait()
				begin := time.Now()
				cancel()
				err := <-served
				if took := time.Since(begin); took != tt.took {
					t.Errorf("Serve ended after %v, want %v", took, tt.took)
				}
				if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("Serve = %v, want %q", err, tt.want)
				}
				c.Close()
				time.Sleep(time.Hour) // the one that hangs ends
			})
		})
	}
}

func TestRetireFinishesClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, p := newPipes()
		served := start(l, t.Context(), Config{}, func(_ context.Context, _ shim.Hello, conn net.Conn) error {
			_, err := io.Copy(conn, conn)
			return err
		})
		c, r, _ := p.call(t)
		say(t, c, serveMe)
		synctest.Wait()
		asking, answer, _ := p.call(t)
		say(t, asking, `{"v":9,"do":"retire"}`+"\n")
		hearLine(t, answer, `{"ok":true}`)
		select {
		case <-p.closed:
		default:
			t.Error("the socket is not free when the retirement is confirmed")
		}
		time.Sleep(time.Hour)
		say(t, c, "still here\n")
		hearLine(t, r, `{"ok":true}`)
		hearLine(t, r, "still here")
		select {
		case err := <-served:
			t.Fatalf("Serve = %v beside a client", err)
		default:
		}
		c.Close()
		testkit.Equal(t, "Serve", <-served, nil)
	})
}

func TestHandlerEnds(t *testing.T) {
	tests := []struct {
		name    string
		handler Handler
		want    string
	}{
		{"error", func(context.Context, shim.Hello, net.Conn) error { return errors.New("ken.yaml: line 3") }, `{"error":"ken.yaml: line 3"}`},
		{"panic", func(context.Context, shim.Hello, net.Conn) error { panic("secret") }, `{"error":"something went wrong inside; the daemon's log says more"}`},
		{"nothing", func(context.Context, shim.Hello, net.Conn) error { return nil }, `{"ok":true}`},
		{"late error", func(_ context.Context, _ shim.Hello, c net.Conn) error {
			io.WriteString(c, "word\n")
			return errors.New("late")
		}, `{"ok":true}` + "\nword"},
		{"long error", func(context.Context, shim.Hello, net.Conn) error { return errors.New(strings.Repeat("\x01", 1<<20)) }, `{"error":"` + strings.Repeat(`\u0001`, 2048) + `…"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := serving(t, Config{}, tt.handler)
				c, r, _ := p.call(t)
				say(t, c, serveMe)
				got, err := io.ReadAll(r)
				if string(got) != tt.want+"\n" || err != nil {
					t.Errorf("the client reads %q, %v; want %q", got, err, tt.want)
				}
			})
		})
	}
}

func TestBadHello(t *testing.T) {
	long := strings.Repeat("x", shim.MaxHello+1)
	for _, tt := range []struct{ hello, want string }{
		{"\n", "no JSON"},
		{"{}\n", "version 0"},
		{`{"v":2,"do":"serve","cwd":"/"}` + "\n", "version 2"},
		{`{"v":1,"do":"dance","cwd":"/"}` + "\n", "asks for"},
		{`{"v":1,"do":"serve","cwd":"w"}` + "\n", "not absolute"},
		{`{"v":1,"do":"serve"}` + "\n", "not absolute"},
		{long, "longer than"},
		{`{"v":1,"env":{"A":"` + long, "longer than"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := serving(t, Config{}, func(context.Context, shim.Hello, net.Conn) error {
				t.Errorf("the hello %.40q is served", tt.hello)
				return nil
			})
			c, r, _ := p.call(t)
			go io.WriteString(c, tt.hello) // not all of it is read
			hearLine(t, r, tt.want)
			if rest, err := io.ReadAll(r); len(rest) > 0 {
				t.Errorf("after the refusal of %.40q comes %q, %v", tt.hello, rest, err)
			}
			c.Close()
		})
	}
}

// TestHelloWithMore: what comes right behind the hello is the handler's.
func TestHelloWithMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dir atomic.Value
		p := serving(t, Config{}, func(_ context.Context, h shim.Hello, conn net.Conn) error {
			dir.Store(h.Dir)
			_, err := io.Copy(conn, conn)
			return err
		})
		c, r, _ := p.call(t)
		more := strings.Repeat("m", 100_000)
		go io.WriteString(c, serveMe+"first\n"+more+"\n")
		hearLine(t, r, `{"ok":true}`)
		hearLine(t, r, "first")
		hearLine(t, r, more)
		if dir.Load() != "/w" {
			t.Errorf("Hello.Dir = %v, want /w", dir.Load())
		}
		c.Close()
	})
}

func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serving(t, Config{Clients: 1}, untilEOF)
		c, r, _ := p.call(t)
		say(t, c, serveMe)
		hearLine(t, r, `{"ok":true}`)
		hearLine(t, r, "word")
		if _, _, g := p.call(t); !strings.Contains(g.Error, "has 1 clients") {
			t.Errorf("the greeting beyond the limit says %q", g.Error)
		}
		c.Close()
		synctest.Wait()
		c, _, g := p.call(t)
		if g.Error != "" {
			t.Errorf("the greeting when there is room again says %q", g.Error)
		}
		c.Close()
	})
}
