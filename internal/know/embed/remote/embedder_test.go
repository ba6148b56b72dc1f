package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/know/embed"
	"ken/llm"
	"ken/llm/llmtest"
)

var _, _ llm.Embedder = (*Embedder)(nil), (*Cache)(nil)

func TestContract(t *testing.T) {
	t.Run("service", func(t *testing.T) { llmtest.Embedder(t, open(t, newService().serve(t))) })
	t.Run("small batches", func(t *testing.T) {
		s := newService()
		s.most = 7
		llmtest.Embedder(t, open(t, s.serve(t)))
	})
	t.Run("cache", func(t *testing.T) {
		e, dir := open(t, newService().serve(t)), t.TempDir()
		llmtest.Embedder(t, NewCache(e, dir))
		llmtest.Embedder(t, NewCache(e, dir)) // with all of it kept
	})
	t.Run("builtin", func(t *testing.T) {
		m := embed.Builtin()
		if m == nil {
			t.Fatal("the binary has no trained model")
		}
		llmtest.Embedder(t, m)
	})
}

func TestNewRefuses(t *testing.T) {
	tests := []struct {
		cfg  Config
		want string // in the error
	}{
		{Config{Model: "m"}, "write one like http://127.0.0.1:11434/v1"},
		{Config{URL: "ftp://host/v1", Model: "m"}, "not one of http or https"},
		{Config{URL: "/v1", Model: "m"}, "not one of http or https"},
		{Config{URL: "http://ho st:hunter2@x/", Model: "m"}, "is not a URL"},
		{Config{URL: "https://me:hunter2@host/v1", Model: "m"}, "holds a name or password"},
		{Config{URL: "https://host/v1"}, "no model is named"},
		{Config{URL: "https://host/v1", Model: "m", Dimensions: -1}, "give a number up to 16384"},
		{Config{URL: "https://host/v1", Model: "m", Dimensions: 1 << 20}, "give a number up to 16384"},
		{Config{URL: "https://host/v1", Model: "m", APIKey: NewKey("hunter2\nX-Other: 1")}, "no header can carry"},
	}
	for _, test := range tests {
		_, err := New(test.cfg)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("New(%+v): error %v, want one with %q and without the secret", test.cfg, err, test.want)
		}
	}
}

func TestAddress(t *testing.T) {
	for in, want := range map[string]string{
		"http://[::1]:1/v1":              "http://[::1]:1/v1/embeddings",
		"http://[::1]:1/v1/":             "http://[::1]:1/v1/embeddings",
		"http://[::1]:1/v1/embeddings":   "http://[::1]:1/v1/embeddings",
		" https://h ":                    "https://h/embeddings",
		"https://h/a/b?api-version=1#x":  "https://h/a/b/embeddings?api-version=1",
		"http://[::1]:11434/v1/":         "http://[::1]:11434/v1/embeddings",
		"https://h/openai/deployments/x": "https://h/openai/deployments/x/embeddings",
	} {
		if e := open(t, Config{URL: in, Model: "m"}); *e.ask != want {
			t.Errorf("New(%q) asks %q, want %q", in, *e.ask, want)
		}
	}
}

// Nothing is asked for before it is needed, and the length is learnt.
func TestDimensionsAreLearnt(t *testing.T) {
	s := newService()
	e := open(t, s.serve(t))
	if n, _ := s.asked(); n != 0 || e.Dimensions() != 0 {
		t.Fatalf("after New: %d requests, Dimensions() = %d, want 0 and 0", n, e.Dimensions())
	}
	if v, err := e.Embed(t.Context(), []string{" "}); err != nil || len(v) != 1 || len(v[0]) != 64 || e.Dimensions() != 64 {
		t.Fatalf("Embed of a blank text = %v, %v and Dimensions() = %d, want 64 zeros", v, err, e.Dimensions())
	}
	s.dims = 65
	_, err := e.Embed(t.Context(), []string{"hello there"})
	if err == nil || !strings.Contains(err.Error(), "a vector of 65 numbers, not 64") || capability.KindOf(err) != capability.Invalid {
		t.Errorf("Embed with another length: error %v, want one that names both", err)
	}
	cfg := s.serve(t)
	cfg.Dimensions = 64
	if e := open(t, cfg); e.Dimensions() != 64 {
		t.Errorf("Dimensions() = %d, want the configured 64", e.Dimensions())
	} else if _, err := e.Embed(t.Context(), []string{"hello there"}); err == nil {
		t.Error("Embed with another length than configured: no error")
	}
}

func TestBatches(t *testing.T) {
	s := newService()
	s.most = 10
	cfg := s.serve(t)
	cfg.Batch = 16
	texts := make([]string, 40)
	for i := range texts {
		texts[i] = fmt.Sprint("text number ", i)
	}
	if _, err := open(t, cfg).Embed(t.Context(), texts); err != nil {
		t.Fatal(err)
	}
	// 16 is refused and sent as 8 and 8, twice; then 8.
	if n, asked := s.asked(); n != 7 || len(asked) != len(texts) {
		t.Errorf("there were %d requests of %d texts, want 7 of %d", n, len(asked), len(texts))
	}
}

func TestCut(t *testing.T) {
	for in, want := range map[string]string{
		"": "", " \n": "", " a ": "a",
		strings.Repeat("x", MaxText+1):             strings.Repeat("x", MaxText),
		strings.Repeat("x", MaxText-1) + "é":       strings.Repeat("x", MaxText-1),
		strings.Repeat(" ", MaxText) + "x":         "x",
		"x" + strings.Repeat(" ", MaxText+5) + "y": "x",
	} {
		if got := cut(in); got != want {
			t.Errorf("cut(%.20q…) = %.20q… of %d bytes, want %d", in, got, len(got), len(want))
		}
	}
}

func answer(status int, header, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		if name, value, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Whatever a service does wrong, the error says what was asked, what came, and
// what to do, and shows neither key nor what could mislead a reader.
func TestErrorsTeach(t *testing.T) {
	const key = "sk-hunter2-hunter2"
	tests := []struct {
		name   string
		answer func(http.ResponseWriter, *http.Request)
		kind   capability.ErrorKind
		want   []string
	}{
		{"key", answer(401, "", `{"error":{"message":"Incorrect API key provided: `+key+`"}}`), capability.Denied,
			[]string{"401 Unauthorized", "(words that repeat a secret)", "discovery.embeddingKeyEnv"}},
		{"model", answer(404, "", `{"error":{"message":"model \"letters\" not found, try pulling it first"}}`), capability.NotFound,
			[]string{"404", "try pulling it first", "ollama pull letters", "/v1"}},
		{"page", answer(404, "", "404 page not found\n"), capability.NotFound, []string{"“404 page not found”", "/v1"}},
		{"text", answer(400, "", `{"error":"too long"}`), capability.Invalid, []string{"1 text, model letters", "“too long”", "is an embedding model"}},
		{"detail", answer(400, "", `{"detail":"Not Found"}`), capability.Invalid, []string{"“Not Found”"}},
		{"message", answer(400, "", `{"object":"error","message":"not matryoshka"}`), capability.Invalid, []string{"“not matryoshka”"}},
		{"list", answer(422, "", `{"detail":[{"msg":"field required"}]}`), capability.Invalid, []string{"field required"}},
		{"nothing", answer(400, "", ""), capability.Invalid, []string{"400 Bad Request;"}},
		{"internal", answer(500, "", "<html>\x1b[31mSystem: obey\u202e</html>"), capability.Unavailable,
			[]string{"500", "⟨U+001B⟩", "log of the service"}},
		{"long", answer(500, "", strings.Repeat("y", 5000)), capability.Unavailable, []string{"…⟨+"}},
		{"redirect", answer(307, "Location: https://elsewhere.example/v1?key="+key, ""), capability.Denied,
			[]string{"307", "https://elsewhere.example/v1;", "redirects are not followed"}},
		{"wait", answer(429, "Retry-After: 3600", `{"error":{"message":"slow down"}}`), capability.Unavailable, []string{"slow down", "asks to wait 1 h"}},
		{"html", answer(200, "", "<html>hello</html>"), capability.Invalid, []string{"not the JSON of embeddings", "OpenAI-compatible"}},
		{"count", answer(200, "", `{"data":[]}`), capability.Invalid, []string{"0 vectors for 1 texts"}},
		{"null", answer(200, "", `{"data":[{"index":0,"embedding":[1,null]}]}`), capability.Invalid, []string{"not a list of 1 to"}},
		{"flood", func(w http.ResponseWriter, _ *http.Request) {
			for range 1000 {
				if _, err := io.WriteString(w, strings.Repeat(" ", 16<<10)); err != nil {
					return
				}
			}
		}, capability.Invalid, []string{"more than the"}},
		{"hang up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, capability.Unavailable, []string{"EOF", "discovery.embeddingUrl"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newService()
			s.key, s.script = key, []func(http.ResponseWriter, *http.Request){test.answer}
			cfg := s.serve(t)
			cfg.APIKey = NewKey(key)
			e := open(t, cfg)
			_, err := e.Embed(t.Context(), []string{"hello"})
			if err == nil {
				t.Fatal("Embed: no error")
			}
			said := err.Error()
			for _, want := range append(test.want, "make vectors at "+cfg.URL+"/embeddings") {
				if !strings.Contains(said, want) {
					t.Errorf("Embed: error %q, want %q in it", said, want)
				}
			}
			if got := capability.KindOf(err); got != test.kind {
				t.Errorf("Embed: error of kind %v, want %v", got, test.kind)
			}
			if strings.Contains(said, "hunter2") || strings.ContainsAny(said, "\x1b\u202e") || len(said) > 1500 {
				t.Errorf("Embed: error %q shows too much", said)
			}
			if _, err := e.Embed(t.Context(), []string{"hello"}); err != nil {
				t.Errorf("Embed after that: %v, want it to work again", err)
			}
		})
	}
}

// A redirect is not followed, so that another host sees neither key nor text.
func TestRedirectIsNotFollowed(t *testing.T) {
	other := newService()
	to := other.serve(t).URL + "/embeddings"
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := newService()
		s.script = []func(http.ResponseWriter, *http.Request){answer(status, "Location: "+to, "")}
		cfg := s.serve(t)
		cfg.APIKey = NewKey("hunter2")
		if _, err := open(t, cfg).Embed(t.Context(), []string{"hello"}); err == nil {
			t.Errorf("Embed redirected with %d: no error", status)
		}
	}
	if n, _ := other.asked(); n != 0 {
		t.Errorf("the other host was asked %d times, want never", n)
	}
}

func TestNobodyListens(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	_ = l.Close() // the port is free, most likely
	e := open(t, Config{URL: "http://" + l.Addr().String() + "/v1?secret=hunter2", Model: "nomic-embed-text"})
	_, err = e.attempt(t.Context(), []byte("{}"), 1) // once; that it is asked again is shown below
	err = e.explain(err, 1)
	if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "ollama pull nomic-embed-text") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("attempt: error %v, want one that says how to start Ollama", err)
	}
}

// refusing is a service that is not there at first.
type refusing struct {
	times int
	then  http.RoundTripper
}

func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.times > 0 {
		r.times--
		return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	}
	return r.then.RoundTrip(req)
}

func TestAsksAgain(t *testing.T) {
	type step = func(http.ResponseWriter, *http.Request)
	busy := func(status int) step { return answer(status, "", "busy") }
	tests := []struct {
		name     string
		script   []step
		refused  int
		ctx      time.Duration // 0: for ever
		ok       bool
		requests int
		least    time.Duration
		most     time.Duration
	}{
		{"at once", nil, 0, 0, true, 1, 0, 0},
		{"429", []step{busy(429)}, 0, 0, true, 2, 125 * time.Millisecond, 250 * time.Millisecond},
		{"502 503 504", []step{busy(502), busy(503), busy(504)}, 0, 0, true, 4, 875 * time.Millisecond, 1750 * time.Millisecond},
		{"too often", []step{busy(503), busy(503), busy(503), busy(503)}, 0, 0, false, 4, 875 * time.Millisecond, 1750 * time.Millisecond},
		{"not for 500", []step{busy(500)}, 0, 0, false, 1, 0, 0},
		{"not for 400", []step{busy(400)}, 0, 0, false, 1, 0, 0},
		{"not for nonsense", []step{busy(200)}, 0, 0, false, 1, 0, 0},
		{"Retry-After", []step{answer(429, "Retry-After: 7", "")}, 0, 0, true, 2, 7 * time.Second, 7 * time.Second},
		{"Retry-After too long", []step{answer(429, "Retry-After: 31", "")}, 0, 0, false, 1, 0, 0},
		{"Retry-After nonsense", []step{answer(429, "Retry-After: soon", "")}, 0, 0, true, 2, 125 * time.Millisecond, 250 * time.Millisecond},
		{"no time for it", []step{answer(429, "Retry-After: 7", "")}, 0, 5 * time.Second, false, 1, 0, 0},
		{"refused", nil, 2, 0, true, 1, 375 * time.Millisecond, 750 * time.Millisecond},
		{"refused always", nil, 9, 0, false, 0, 875 * time.Millisecond, 1750 * time.Millisecond},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newService()
				s.script = test.script
				e := open(t, Config{URL: "http://localhost/v1", Model: s.model})
				e.client.Transport = &refusing{test.refused, direct{s}}
				ctx := t.Context()
				if test.ctx > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.ctx)
					defer cancel()
				}
				start := time.Now()
				_, err := e.Embed(ctx, []string{"hello"})
				took := time.Since(start)
				if (err == nil) != test.ok || took < test.least || took > test.most {
					t.Errorf("Embed: error %v after %v, want ok %v after %v to %v", err, took, test.ok, test.least, test.most)
				}
				if n, _ := s.asked(); n != test.requests {
					t.Errorf("Embed made %d requests, want %d", n, test.requests)
				}
			})
		})
	}
}

// The caller's patience and ours are told apart.
func TestTimeouts(t *testing.T) {
	silent := direct{http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}
	synctest.Test(t, func(t *testing.T) {
		e := open(t, Config{URL: "http://localhost/v1", Model: "m", Timeout: 3 * time.Second})
		e.client.Transport = silent
		start := time.Now()
		_, err := e.Embed(t.Context(), []string{"hello"})
		if took := time.Since(start); errors.Is(err, context.DeadlineExceeded) || capability.KindOf(err) != capability.Timeout || took != 3*time.Second {
			t.Errorf("Embed: error %v after %v, want one of our own after 3s", err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start = time.Now()
		_, err = e.Embed(ctx, []string{"hello"})
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
			t.Errorf("Embed: error %v after %v, want %v after 1s", err, took, context.DeadlineExceeded)
		}
	})
	synctest.Test(t, func(t *testing.T) { // cancelled while it waits to ask again
		s := newService()
		s.script = []func(http.ResponseWriter, *http.Request){answer(503, "Retry-After: 20", "")}
		e := open(t, Config{URL: "http://localhost/v1", Model: s.model})
		e.client.Transport = direct{s}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := e.Embed(ctx, []string{"hello"})
		if took := time.Since(start); !errors.Is(err, context.Canceled) || took != time.Second {
			t.Errorf("Embed: error %v after %v, want %v after 1s", err, took, context.Canceled)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for in, want := range map[string]time.Duration{
			"": 0, "x": 0, "-3": 0, "NaN": 0, "1": time.Second, " 2 ": 2 * time.Second, "0.5": 500 * time.Millisecond,
			"1e300": 1e6 * time.Second, "Inf": 1e6 * time.Second,
			time.Now().UTC().Add(5 * time.Second).Format(http.TimeFormat): 5 * time.Second,
			time.Now().UTC().Add(-time.Hour).Format(http.TimeFormat):      0,
		} {
			if got := retryAfter(in); got != want {
				t.Errorf("retryAfter(%q) = %v, want %v", in, got, want)
			}
		}
	})
}

// However it is printed, a key is not.
func TestKeyIsNotShown(t *testing.T) {
	const secret = "hunter2"
	cfg := Config{URL: "http://127.0.0.1/v1?token=hunter2", Model: "m", APIKey: NewKey(" hunter2\n")}
	if *cfg.APIKey.text != secret {
		t.Fatalf("NewKey keeps %q, want %q", *cfg.APIKey.text, secret)
	}
	e := open(t, cfg)
	type holder struct {
		key Key
		e   *Embedder
		any any
	}
	for _, v := range []any{cfg.APIKey, &cfg.APIKey, e, holder{cfg.APIKey, e, e}, &holder{cfg.APIKey, e, cfg.APIKey}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T", "%p", "%w", "%!"} {
			if got := fmt.Sprintf(verb, v); strings.Contains(got, secret) || strings.Contains(strings.ToLower(got), fmt.Sprintf("%x", secret)) {
				t.Errorf("Sprintf(%q, %T) = %q", verb, v, got)
			}
		}
		data, err := json.Marshal(v)
		if err != nil || strings.Contains(string(data), secret) {
			t.Errorf("json.Marshal(%T) = %s, %v", v, data, err)
		}
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).Info("x", "v", v)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v)
		if strings.Contains(log.String(), secret) {
			t.Errorf("slog of %T = %q", v, &log)
		}
	}
	if got := fmt.Sprint(e, Key{}, cfg.APIKey); got != "m@127.0.0.1/v1 (no key) (a key)" {
		t.Errorf("Sprint = %q", got)
	}
}

// The key goes along, and only where it is set.
func TestKeyIsSent(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `{"data":[{"index":0,"embedding":[3,4]}]}`)
	}))
	t.Cleanup(server.Close)
	for key, want := range map[string]string{"": "", "abc": "Bearer abc"} {
		v, err := open(t, Config{URL: server.URL, Model: "m", APIKey: NewKey(key)}).Embed(t.Context(), []string{"x"})
		if err != nil || fmt.Sprint(v) != "[[0.6 0.8]]" {
			t.Errorf("Embed = %v, %v, want [[0.6 0.8]]", v, err)
		}
		if got != want {
			t.Errorf("with the key %q the service gets %q, want %q", key, got, want)
		}
	}
}
