package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ken/llm"
)

const key = "sk-very-secret-0123456789"

func TestRetryAfter(t *testing.T) {
	now := time.Now().UTC()
	tests := []struct {
		header map[string]string
		want   time.Duration
	}{
		{nil, 0},
		{map[string]string{"Retry-After": "7"}, 7 * time.Second},
		{map[string]string{"Retry-After": " 1.5 "}, 1500 * time.Millisecond},
		{map[string]string{"Retry-After": "0"}, 0},
		{map[string]string{"Retry-After": "-3"}, 0},
		{map[string]string{"Retry-After": "soon"}, 0},
		{map[string]string{"Retry-After": "NaN"}, 0},
		{map[string]string{"Retry-After": "1e300"}, 365 * 24 * time.Hour},
		{map[string]string{"Retry-After-Ms": "250"}, 250 * time.Millisecond},
		{map[string]string{"Retry-After-Ms": "250", "Retry-After": "9"}, 250 * time.Millisecond},
		{map[string]string{"Retry-After-Ms": "x", "Retry-After": "9"}, 9 * time.Second},
		{map[string]string{
			"Date":        now.Add(-time.Hour).Format(http.TimeFormat), // a clock that is wrong
			"Retry-After": now.Add(-time.Hour).Add(20 * time.Second).Format(http.TimeFormat),
		}, 20 * time.Second},
		{map[string]string{"Retry-After": now.Add(-time.Minute).Format(http.TimeFormat)}, 0},
	}
	for _, tt := range tests {
		h := http.Header{}
		for k, v := range tt.header {
			h.Set(k, v)
		}
		if got := RetryAfter(h); got != tt.want {
			t.Errorf("RetryAfter(%v) = %v, want %v", tt.header, got, tt.want)
		}
	}
	synctest.Test(t, func(t *testing.T) { // without the server's clock ours counts
		h := http.Header{"Retry-After": {time.Now().Add(30 * time.Second).UTC().Format(http.TimeFormat)}}
		if got := RetryAfter(h); got != 30*time.Second {
			t.Errorf("RetryAfter(%v) = %v, want 30s", h, got)
		}
	})
}

func server(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// post sends a request with a key, as a wire would.
func post(t *testing.T, cfg Config, classify func(int, http.Header, []byte) *llm.Error) (*http.Response, error) {
	t.Helper()
	cfg.Name, cfg.Model = "acme", "m1"
	return Post(t.Context(), cfg, "/v1/x", http.Header{"X-Api-Key": {key}, "X-Own": {"wire"}}, []byte(`{"a":1}`), classify)
}

func TestPostStatus(t *testing.T) {
	tests := []struct {
		status int
		want   llm.Kind
	}{
		{400, llm.Invalid}, {401, llm.Auth}, {402, llm.Quota}, {403, llm.Auth}, {404, llm.Invalid}, {408, llm.Overloaded},
		{409, llm.Overloaded}, {413, llm.TooLong}, {422, llm.Invalid}, {429, llm.Rate}, {500, llm.Overloaded},
		{501, llm.Invalid}, {502, llm.Overloaded}, {503, llm.Overloaded}, {529, llm.Overloaded}, {304, llm.Invalid},
	}
	for _, tt := range tests {
		s := server(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "3")
			w.WriteHeader(tt.status)
		})
		_, err := post(t, Config{BaseURL: s.URL}, nil)
		e, ok := errors.AsType[*llm.Error](err)
		if !ok || e.Kind != tt.want || e.Status != tt.status || e.RetryAfter != 3*time.Second || e.Provider != "acme" || e.Model != "m1" {
			t.Errorf("Post, status %d = %+v, want kind %v with status and hint", tt.status, e, tt.want)
		}
	}
}

// TestKeysNotInErrors: a server that echoes what it got does not bring the key
// into an error, nor control characters, nor too much of anything.
func TestKeysNotInErrors(t *testing.T) {
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(400)
		fmt.Fprintf(w, "\x1b[31mbad key %s and %s\u202e\n%s%s", r.Header.Get("X-Api-Key"), r.Header.Get("Authorization"), r.Header.Get("X-Team-Password"), strings.Repeat("x", 1<<20))
	})
	own := http.Header{"Authorization": {"Bearer other-secret-42"}, "X-Team-Password": {"hunter2-and-more"}} // of any name
	classifiers := map[string]func(int, http.Header, []byte) *llm.Error{
		"none": nil,
		"nil":  func(int, http.Header, []byte) *llm.Error { return nil },
		"whole": func(_ int, _ http.Header, b []byte) *llm.Error {
			return &llm.Error{Kind: llm.Invalid, Code: string(b), Message: string(b)}
		},
	}
	for name, classify := range classifiers {
		_, err := post(t, Config{BaseURL: s.URL, Header: own}, classify)
		text := fmt.Sprintf("%v %+v", err, err)
		if llm.KindOf(err) != llm.Invalid || strings.Contains(text, key) || strings.Contains(text, "other-secret-42") || strings.Contains(text, "hunter2") {
			t.Errorf("%s: Post = %v, want an error without the keys", name, err)
		}
		if strings.ContainsAny(err.Error(), "\x1b\u202e\n") || len(err.Error()) > 4096 {
			t.Errorf("%s: Post = %q of %d bytes, want it clean and short", name, err, len(err.Error()))
		}
		if !strings.Contains(err.Error(), "bad key [key] and") {
			t.Errorf("%s: Post = %v, want it to say what the server said", name, err)
		}
	}
}

// TestKeysNotInStreamErrors is the same for an error within a stream, and for
// addresses that hold a password.
func TestKeysNotInStreamErrors(t *testing.T) {
	cfg := Config{
		Name: "acme", BaseURL: "https://me:passw0rd@example.com/v1?k=hush", Retry: Retry{Tries: 1},
		Key: func(context.Context) (string, error) { return key, nil },
	}
	for _, kind := range []llm.Kind{llm.Invalid, llm.Malformed, llm.Unreachable} {
		_, err := run(t.Context(), cfg, &play{attempts: []scene{{err: &llm.Error{Kind: kind, Message: "no: " + key + "\x00"}}}})
		for _, secret := range []string{key, "passw0rd", "hush", "\x00"} {
			if strings.Contains(fmt.Sprintf("%v %+v", err, err), secret) {
				t.Errorf("Generate = %v, which has %q", err, secret)
			}
		}
	}
}

func TestUnreachable(t *testing.T) {
	s := server(t, nil)
	s.Close()
	base := strings.Replace(s.URL, "http://", "http://me:passw0rd@", 1)
	_, err := post(t, Config{BaseURL: base + "/?k=" + key}, nil)
	if llm.KindOf(err) != llm.Unreachable || strings.Contains(err.Error(), key) || strings.Contains(err.Error(), "passw0rd") {
		t.Errorf("Post to nobody = %v, want unreachable and no secret", err)
	}
	_, err = post(t, Config{BaseURL: "::" + key}, nil)
	if llm.KindOf(err) != llm.Invalid || !strings.Contains(err.Error(), "base_url") || strings.Contains(err.Error(), key) {
		t.Errorf("Post to no address = %v, want invalid, base_url and no secret", err)
	}
}

func TestSecret(t *testing.T) {
	vault := errors.New("the vault is locked")
	tests := []struct {
		name string
		key  func(context.Context) (string, error)
		want string
		kind llm.Kind
	}{
		{"none", nil, "", 0},
		{"trimmed", func(context.Context) (string, error) { return " " + key + "\n", nil }, key, 0},
		{"two lines", func(context.Context) (string, error) { return "a\nb: c", nil }, "", llm.Auth},
		{"locked", func(context.Context) (string, error) { return "", vault }, "", llm.Auth},
	}
	for _, tt := range tests {
		got, err := Config{Name: "acme", Key: tt.key}.Secret(t.Context())
		if got != tt.want || llm.KindOf(err) != tt.kind {
			t.Errorf("%s: Secret = %q, %v; want %q, %v", tt.name, got, err, tt.want, tt.kind)
		}
		if tt.name == "locked" && !errors.Is(err, vault) {
			t.Errorf("Secret = %v, want it to wrap %v", err, vault)
		}
	}
}

// TestRedirects: the key goes to no other server, and a redirect to the same
// one is followed.
func TestRedirects(t *testing.T) {
	reached := false
	other := server(t, func(w http.ResponseWriter, r *http.Request) { reached = true })
	var to string
	status := http.StatusTemporaryRedirect
	s := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" {
			fmt.Fprint(w, r.Method, r.Header.Get("X-Api-Key") == key)
			return
		}
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	})
	for _, tt := range []struct {
		to     string
		status int
		follow bool
	}{
		{other.URL + "/v1?k=" + key, 307, false},
		{other.URL, 308, false},
		{other.URL, 302, false},
		{strings.Replace(s.URL, "http", "https", 1) + "/there", 307, false},
		{"/there", 302, false}, // it would become a GET
		{"/there", 307, true},
		{"/v1/x", 308, false}, // for ever
	} {
		to, status = tt.to, tt.status
		resp, err := post(t, Config{BaseURL: s.URL}, nil)
		switch {
		case tt.follow:
			if err != nil {
				t.Errorf("redirect to %s: %v, want it followed", tt.to, err)
				continue
			}
			got, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if string(got) != "POSTtrue" {
				t.Errorf("redirect to %s: %q, want the same request", tt.to, got)
			}
		case llm.KindOf(err) != llm.Invalid || !strings.Contains(err.Error(), "base_url") || strings.Contains(err.Error(), key):
			t.Errorf("redirect %d to %s = %v, want invalid, base_url and no secret", tt.status, tt.to, err)
		}
	}
	if reached {
		t.Error("the other server was reached")
	}
}

// transport answers without a network, so that time can be false.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestSilence cuts off a server that says nothing: before its answer, and
// within it; one that keeps talking is heard to the end.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mute := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})}
		begin := time.Now()
		_, err := post(t, Config{BaseURL: "http://a", Client: mute, Silence: time.Minute}, nil)
		if llm.KindOf(err) != llm.Unreachable || !errors.Is(err, errSilent) || time.Since(begin) != time.Minute {
			t.Errorf("Post = %v after %v, want silence after a minute", err, time.Since(begin))
		}

		slow := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			pr, pw := io.Pipe()
			context.AfterFunc(r.Context(), func() { pw.CloseWithError(r.Context().Err()) })
			go func() {
				for range 5 {
					time.Sleep(50 * time.Second)
					pw.Write([]byte("data: x\n\n"))
				}
			}()
			return &http.Response{StatusCode: 200, Body: pr, Header: http.Header{}}, nil
		})}
		begin = time.Now()
		resp, err := post(t, Config{BaseURL: "http://a", Client: slow, Silence: time.Minute}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		got, err := list(resp.Body, 0)
		if len(got) != 5 || !errors.Is(err, errSilent) || time.Since(begin) != 310*time.Second {
			t.Errorf("events %v, %v after %v; want 5, silence, 310s", got, err, time.Since(begin))
		}
		if k := Broken(err).Kind; k != llm.Cut {
			t.Errorf("Broken(%v) = %v, want cut", err, k)
		}
	})
}

func TestBodyIsBounded(t *testing.T) {
	flood := &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(&endless{text: "data: x\n\n"})}, nil
	})}
	resp, err := post(t, Config{BaseURL: "http://a", Client: flood}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if n != mostBody || Broken(err).Kind != llm.Malformed {
		t.Errorf("read %d bytes, %v; want %d and malformed", n, err, mostBody)
	}
}

// TestList: it returns the models that a server lists, or its error.
func TestList(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   []string
		kind   llm.Kind // of the error; 0: none
	}{
		{"openai", 200, `{"data":[{"id":"a"},{"id":"b"}]}`, []string{"a", "b"}, 0},
		{"gemini", 200, `{"models":[{"name":"models/a"}]}`, []string{"models/a"}, 0},
		{"something else", 200, `<html>`, nil, 0},
		{"no list", 404, `no`, nil, 0},
		{"a wrong key", 401, `bad key sesame`, nil, llm.Auth},
		{"broken", 502, `oops`, nil, llm.Overloaded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := server(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "Bearer sesame" {
					t.Errorf("%s %s with %v, want the list and the key", r.Method, r.URL, r.Header)
				}
				w.WriteHeader(tt.status)
				_, _ = w.Write([]byte(tt.body))
			})
			got, err := List(t.Context(), Config{Name: "lab", BaseURL: s.URL + "/v1"}, "/models", http.Header{"Authorization": {"Bearer sesame"}})
			e, _ := errors.AsType[*llm.Error](err)
			if !slices.Equal(got, tt.want) || (e != nil) != (tt.kind != 0) || e != nil && e.Kind != tt.kind {
				t.Errorf("List() = %v, %v, want %v and kind %v", got, err, tt.want, tt.kind)
			}
			if err != nil && strings.Contains(err.Error(), "sesame") {
				t.Errorf("the error holds the key: %v", err)
			}
		})
	}
}
