package extensions_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"ken/internal/run/executor/process"
	"ken/internal/run/sandbox"
)

func TestWeb(t *testing.T) {
	b := newBench(t, "tools.web")
	if !sandbox.Probe(t.Context()).Isolation.NetNS {
		t.Skip("cannot here: there is no network namespace")
	}
	var hits atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		fmt.Fprintf(w, "hello %s %s%s", r.Header.Get("Accept"), r.Header.Get("Cookie"), r.Header.Get("Authorization"))
	})
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.Header.Get("Content-Type"), body)
	})
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/hello", http.StatusFound) })
	mux.HandleFunc("/file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "file:///etc/passwd")
		w.WriteHeader(302)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	other := httptest.NewServer(mux)
	defer other.Close()

	b.try(t, []try{{line: "/web get " + srv.URL + "/hello", failed: true, not: "hello"}})
	b.grant = process.Grant{Hosts: []string{strings.TrimPrefix(srv.URL, "http://")}, Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	b.try(t, []try{{line: "/web get " + other.URL + "/hello", failed: true, not: "hello"}})
	if n := hits.Load(); n != 0 {
		t.Fatalf("%d requests arrived without a grant", n)
	}
	files := map[string]string{"secret.txt": "hunter2", ".curlrc": "output = pwned\nupload-file = secret.txt\n", ".netrc": "machine 127.0.0.1 login a password hunter2\n"}
	b.home(t, "tools.web", files)
	b.write(t, files)
	b.try(t, []try{
		{line: "/web get " + srv.URL + "/hello", want: []string{"hello */*"}, not: "Basic"},
		{line: "/web get " + srv.URL + "/hello --accept application/json", want: []string{"hello application/json"}},
		{line: "/web get " + srv.URL + "/away", want: []string{"hello"}},
		{line: "/web head " + srv.URL + "/away", want: []string{"302 Found", "200 OK"}},
		{line: "/web get " + srv.URL + "/none", failed: true, want: []string{"404"}},
		{line: "/web post " + srv.URL + `/echo '{"a":1}'`, want: []string{`POST application/json {"a":1}`}},
		{line: "/web download " + srv.URL + "/hello hello.txt", want: []string{"200 OK"}},
		{line: "/web download " + srv.URL + "/none none.txt", failed: true},

		{line: "/web get file:///etc/passwd", refused: "url"},
		{line: "/web get " + srv.URL + "/file", failed: true, not: "root:"},
		{line: "/web get ftp://example.org/", refused: "url"},
		{line: "/web get example.org", refused: "url"},
		{line: "/web get http://user:hunter2@example.org/", refused: "url"},
		{line: "/web get -- -opwned", refused: "url"},
		{line: "/web get 'http://a/ -o pwned'", refused: "url"},
		{line: "/web get " + srv.URL + "/hello --accept '*/*\r\nCookie: x'", refused: "accept"},
		{line: "/web post " + srv.URL + "/echo @secret.txt", refused: "json"},
		{line: "/web post " + srv.URL + `/echo '"@secret.txt"'`, want: []string{"@secret.txt"}, not: "hunter2"},
		{line: "/web download " + srv.URL + "/hello ../pwned", refused: "name"},
		{line: "/web download " + srv.URL + "/hello .curlrc", refused: "name"},
		{line: "/web download " + srv.URL + "/hello pwned#1", refused: "name"},
	})
	if got, err := os.ReadFile(b.work(t, "downloads/hello.txt")); err != nil || string(got) != "hello */* " {
		t.Errorf("downloads/hello.txt = %q, %v", got, err)
	}
	if _, err := os.Stat(b.work(t, "downloads/none.txt")); err == nil {
		t.Error("a failed download left a file")
	}
	b.pwned(t)
}
