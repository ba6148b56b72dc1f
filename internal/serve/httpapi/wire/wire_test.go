package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/serve/auth"
	"ken/internal/testkit"
)

type noted struct {
	Text string `json:"text"`
	N    int    `json:"n"`
}

func routes() []Route {
	return []Route{
		{Method: "GET", Path: "/things/{id}", Name: "showThing", Answer: noted{}, Query: []Param{
			{Name: "n", Type: Whole}, {Name: "x", Type: Number}, {Name: "deep", Type: Yes}, {Name: "since", Type: Instant},
			{Name: "kind", Words: []string{"a", "b"}}, {Name: "tag", Many: true},
		}, Serve: func(r *Request) (any, error) {
			return noted{Text: fmt.Sprint(r.PathValue("id"), r.Texts("tag"), r.Yes("deep"), r.Number("x", 0.5), r.Has("kind")), N: r.Whole("n", 7)}, nil
		}},
		{Method: "POST", Path: "/things/check", Name: "check", Body: noted{}, Answer: noted{}, Limit: 64, Serve: func(r *Request) (any, error) {
			var in noted
			return in, r.Decode(&in)
		}},
		{Method: "DELETE", Path: "/things/{id}", Name: "dropThing", Operator: true, Serve: func(*Request) (any, error) { return nil, nil }},
		{Method: "PUT", Path: "/things/{id}/fate", Name: "decideThing", Decision: "toss a coin", Serve: func(*Request) (any, error) { return nil, nil }},
		{Method: "GET", Path: "/fail/{how}", Name: "fail", Answer: noted{}, Serve: func(r *Request) (any, error) {
			switch r.PathValue("how") {
			case "panic":
				panic("a secret detail")
			case "denied":
				return nil, fmt.Errorf("around: %w", &capability.Error{Kind: capability.Denied, Op: "call", Target: "tool:x", Rule: "policy.deny", Fix: "ask"})
			case "internal":
				return nil, errors.New("a secret detail")
			case "late":
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return nil, Missing("there is no such way")
		}, Patience: time.Millisecond},
		{Method: "GET", Path: "/stream", Name: "stream", Stream: func(w http.ResponseWriter, r *Request) error {
			e, err := NewEvents(w)
			if err != nil {
				return err
			}
			return errors.Join(e.Event("1\n2", "tick", []byte(`{"a":1}`)), e.Comment("still\nhere"))
		}},
		{Method: "GET", Path: "/raw", Name: "raw", Answer: "", Serve: func(*Request) (any, error) {
			return Answered{Status: 201, Header: http.Header{"Etag": {`"1"`}}, Value: Raw{Type: "text/plain", Body: []byte("hi")}}, nil
		}},
	}
}

func TestMux(t *testing.T) {
	var log bytes.Buffer
	other := auth.HandlerFunc(func(w http.ResponseWriter, r *http.Request, who auth.Identity) {
		w.WriteHeader(299)
		_, _ = io.WriteString(w, "other for "+who.Principal.ID)
	})
	m := NewMux(slog.New(slog.NewTextHandler(&log, nil)), other, routes()...)
	told := map[string]int{}
	m.Answered = func(r *Route, status int, _ time.Duration) { told[r.Name] = status }
	tests := []struct {
		ask    string // method, target and body
		status int
		body   string // part of it
	}{
		{"GET /things/7", 200, `{"text":"7[] false 0.5 false","n":7}`},
		{"GET /things/7?n=3&x=1e2&deep=true&kind=a&tag=p&tag=q", 200, `{"text":"7[p q] true 100 true","n":3}`},
		{"HEAD /things/7", 200, ""},
		{"GET /things/7?nope=1", 400, `there is no parameter \"nope\"; there are n, x, deep, since, kind, tag`},
		{"GET /things/7?n=%zz", 400, "the query cannot be read"},
		{"GET /things/7?n=1;n=2", 400, "the query cannot be read"},
		{"GET /things/7?n=-1", 400, `"code":"invalid"`},
		{"GET /things/7?n=99999999999999999999", 400, "it is a whole number of 0 to 2147483647"},
		{"GET /things/7?n=1&n=2", 400, "n may be given once"},
		{"GET /things/7?x=NaN", 400, "it is a number"},
		{"GET /things/7?deep=yes", 400, "it is true or false"},
		{"GET /things/7?kind=c", 400, "it is one of a, b"},
		{"GET /things/7?since=yesterday", 400, "or how long ago"},
		{"GET /things/7?since=30d", 200, ""},
		{"GET /things/7 {}", 400, "takes no body"},
		{`POST /things/check {"text":"t","n":1}`, 200, `{"text":"t","n":1}`},
		{`POST /things/check `, 200, `{"text":"","n":0}`},
		{`POST /things/check {"text":"t","more":1}`, 400, `unknown field \"more\"`},
		{`POST /things/check {} {}`, 400, "more than one JSON value"},
		{`POST /things/check {"text":`, 400, `"code":"invalid"`},
		{`POST /things/check "` + strings.Repeat("x", 100) + `"`, 413, `"code":"too-large"`},
		{"PUT /things/check {}", 405, `is asked with GET, POST, DELETE`},
		{"DELETE /things/7", 403, `"code":"operator-only"`},
		{"PUT /things/7/fate", 403, `ken.decide; toss a coin","status":403`},
		{"PUT /things/7/fate", 403, `"code":"person-decides"`},
		{"GET /fail/denied", 403, `"rule":"policy.deny"`},
		{"GET /fail/internal", 500, `"code":"internal"`},
		{"GET /fail/panic", 500, `"code":"internal"`},
		{"GET /fail/late", 504, `"code":"timeout"`},
		{"GET /fail/else", 404, `"code":"not-found"`},
		{"GET /stream", 200, ": \n\nid: 1 2\nevent: tick\ndata: {\"a\":1}\n\n: still here\n\n"},
		{"HEAD /stream", 405, ""},
		{"GET /raw", 201, "hi"},
		{"GET /elsewhere", 299, "other for ann"},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.ServeAs(w, r, auth.Identity{Principal: capability.Principal{ID: "ann"}})
	}))
	defer server.Close()
	for _, tt := range tests {
		part := strings.SplitN(tt.ask, " ", 3)
		var body io.Reader
		if len(part) > 2 {
			body = strings.NewReader(part[2])
		}
		r := testkit.Must(http.NewRequest(part[0], server.URL+part[1], body))(t)
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
		answer := testkit.Must(server.Client().Do(r))(t)
		b, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != tt.status || !strings.Contains(string(b), tt.body) {
			t.Errorf("%s = %d %s, want %d with %s", tt.ask, answer.StatusCode, b, tt.status, tt.body)
		}
		if strings.Contains(string(b), "secret") || strings.Contains(string(b), "goroutine") {
			t.Errorf("%s = %s, which tells what is inside", tt.ask, b)
		}
		if answer.StatusCode >= 400 && part[0] != http.MethodHead {
			var p struct {
				Status       int
				Code, Detail string
			}
			testkit.Equal(t, fmt.Sprintf("%s has type", tt.ask), answer.Header.Get("Content-Type"), "application/problem+json")
			if err := json.Unmarshal(b, &p); err != nil || p.Status != tt.status || p.Code == "" || p.Detail == "" {
				t.Errorf("%s = %s (%v), want status, code and detail", tt.ask, b, err)
			}
		}
	}
	if !strings.Contains(log.String(), "a secret detail") {
		t.Errorf("the log has %q, want what went wrong inside", log.String())
	}
	if told["showThing"] == 0 || told["stream"] != 405 || told["dropThing"] != 403 {
		t.Errorf("told of %v, want every request with its status", told)
	}
}

func FuzzQuery(f *testing.F) {
	for _, seed := range []string{"n=1", "since=30d", "x=1e400", "tag=%00&tag=%ff", "since=9999999d", "n=%2B1"} {
		f.Add(seed)
	}
	m := NewMux(slog.New(slog.DiscardHandler), nil, routes()...)
	f.Fuzz(func(t *testing.T, query string) {
		r := httptest.NewRequest("GET", "/things/7", nil)
		r.URL.RawQuery = query
		w := httptest.NewRecorder()
		m.ServeAs(w, r, auth.Identity{})
		if w.Code != 200 && w.Code != 400 {
			t.Errorf("?%q = %d %s", query, w.Code, w.Body)
		}
	})
}
