package wire

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ken/internal/serve/auth"
	"ken/internal/testkit"
)

// TestHeld: what large bodies hold together is bounded, and given back.
func TestHeld(t *testing.T) {
	const large = 128 << 20
	in, out := make(chan bool), make(chan bool)
	decode := func(r *Request) error {
		var n noted
		in <- true
		<-out
		return r.Decode(&n)
	}
	m := NewMux(slog.New(slog.DiscardHandler), nil,
		Route{Method: "POST", Path: "/large", Name: "large", Body: noted{}, Answer: noted{}, Limit: large, Serve: func(r *Request) (any, error) { return noted{}, decode(r) }},
		Route{Method: "POST", Path: "/stream", Name: "stream", Body: noted{}, Limit: large, Stream: func(w http.ResponseWriter, r *Request) error {
			if err := decode(r); err != nil {
				return err
			}
			in <- true
			<-out
			JSON(w, 200, noted{})
			return nil
		}},
		Route{Method: "POST", Path: "/small", Name: "small", Body: noted{}, Answer: noted{}, Serve: func(*Request) (any, error) { return noted{}, nil }},
	)
	post := func(path string, size int64) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.ContentLength = size
		w := &deadlines{httptest.NewRecorder()}
		m.ServeAs(w, r, auth.Identity{})
		return w.ResponseRecorder
	}
	over := make(chan int, 2)
	for _, path := range []string{"/large", "/stream"} { // of unknown size: the most
		go func() { over <- post(path, -1).Code }()
		<-in
	}
	w := post("/large", 1)
	if w.Code != 503 || !strings.Contains(w.Body.String(), `"code":"busy"`) || w.Header().Get("Retry-After") != "1" {
		t.Errorf("one more = %d %v %s, want 503 busy with Retry-After: 1", w.Code, w.Header(), w.Body)
	}
	if w := post("/small", -1); w.Code != 200 {
		t.Errorf("one that is never large = %d, want 200", w.Code)
	}
	out <- true
	out <- true
	<-in // the stream has read its body
	testkit.Equal(t, "POST /large", <-over, 200)
	testkit.Equal(t, "bytes are held while the stream goes on", m.held.Load(), 0)
	out <- true
	testkit.Equal(t, "POST /stream", <-over, 200)
	testkit.Equal(t, "bytes are held after all", m.held.Load(), 0)
}

// deadlines can be set, and are of no effect.
type deadlines struct{ *httptest.ResponseRecorder }

func (deadlines) SetReadDeadline(time.Time) error  { return nil }
func (deadlines) SetWriteDeadline(time.Time) error { return nil }

// TestTooSlow: a body that stalls is told so.
func TestTooSlow(t *testing.T) {
	m := NewMux(slog.New(slog.DiscardHandler), nil, routes()...)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.ServeAs(w, r, auth.Identity{}) }))
	srv.Config.ReadHeaderTimeout = time.Minute // what a slow machine takes for these is not what is tried
	srv.Config.ReadTimeout = 50 * time.Millisecond
	srv.Start()
	defer srv.Close()
	conn := testkit.Must(net.Dial("tcp", srv.Listener.Addr().String()))(t)
	defer conn.Close()
	fmt.Fprint(conn, "POST /things/check HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{")
	res := testkit.Must(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	defer res.Body.Close()
	if b, _ := io.ReadAll(res.Body); res.StatusCode != 408 || !strings.Contains(string(b), `"code":"too-slow"`) || !res.Close {
		t.Errorf("a stalled body = %d %s, want 408 too-slow and the connection closed", res.StatusCode, b)
	}
}

// TestNobodyReads: an answer may take its time; whoever does not read it then
// does not hold it for ever.
func TestNobodyReads(t *testing.T) {
	var set []time.Time
	m := NewMux(slog.New(slog.DiscardHandler), nil,
		Route{Method: "GET", Path: "/slow", Name: "a", Answer: "", Patience: time.Hour, Serve: func(*Request) (any, error) { return "x", nil }},
		Route{Method: "POST", Path: "/stream", Name: "b", Body: noted{}, Stream: func(w http.ResponseWriter, _ *Request) error {
			JSON(w, http.StatusOK, "x")
			return nil
		}})
	for _, r := range []*http.Request{httptest.NewRequest("GET", "/slow", nil), httptest.NewRequest("POST", "/stream", strings.NewReader("{}"))} {
		r.Header.Set("Content-Type", "application/json")
		set = nil
		w := notedDeadlines{httptest.NewRecorder(), &set}
		m.ServeAs(w, r, auth.Identity{})
		if n := len(set); w.Code != http.StatusOK || n != 3 || !set[0].IsZero() || !set[1].IsZero() || set[2].IsZero() {
			t.Errorf("%s = %d, with the deadlines %v; want none to read or write by while it is made, and one to write it by then", r.URL.Path, w.Code, set)
		}
	}
}

// notedDeadlines notes those that are set.
type notedDeadlines struct {
	*httptest.ResponseRecorder
	set *[]time.Time
}

func (w notedDeadlines) SetReadDeadline(t time.Time) error { return w.SetWriteDeadline(t) }
func (w notedDeadlines) SetWriteDeadline(t time.Time) error {
	*w.set = append(*w.set, t)
	return nil
}

// TestStreamEndsWithSignIn: events end soon after what let somebody in; one
// answer does not.
func TestStreamEndsWithSignIn(t *testing.T) {
	for _, tt := range []struct {
		method, accept string
		ends           bool
	}{
		{"GET", "", true}, {"POST", "text/event-stream", true}, {"POST", "application/json", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			ended := false
			stream := func(w http.ResponseWriter, r *Request) error {
				select {
				case <-r.Context().Done():
					ended = true
				case <-time.After(time.Hour):
				}
				return nil
			}
			m := NewMux(slog.New(slog.DiscardHandler), nil, Route{Method: "GET", Path: "/s", Name: "a", Stream: stream}, Route{Method: "POST", Path: "/s", Name: "b", Body: noted{}, Stream: stream})
			r := httptest.NewRequest(tt.method, "/s", nil)
			r.Header.Set("Accept", tt.accept)
			r.Header.Set("Content-Type", "application/json")
			began := time.Now()
			m.ServeAs(&deadlines{httptest.NewRecorder()}, r, auth.Identity{Still: func() bool { return time.Since(began) < time.Minute }})
			if took := time.Since(began); ended != tt.ends || ended && (took < time.Minute || took > time.Minute+5*time.Second) {
				t.Errorf("%s for %q ended with the sign-in: %v after %v, want %v", tt.method, tt.accept, ended, took, tt.ends)
			}
		})
	}
}
