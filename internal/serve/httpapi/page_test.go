package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"ken/internal/serve/auth"
	"ken/web"
)

func realPage(t *testing.T) *page {
	t.Helper()
	p, err := newPage(web.Dist, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func ask(h auth.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeAs(w, r, auth.Identity{})
	return w
}

func TestPage(t *testing.T) {
	p := realPage(t)
	for path, status := range map[string]int{
		"/": 200, "/chat": 200, "/chat/abc": 200, "/catalog/tool:a/b": 200, "/settings": 200, "/ken.svg": 200, "/favicon.ico": 200,
		"/nothing": 404, "/assets/nothing.js": 404, "/api/v1/nothing": 404, "/../../etc/passwd": 404, "/index.htmlx": 404,
	} {
		w := ask(p, "GET", path)
		if w.Code != status {
			t.Errorf("GET %s = %d, want %d", path, w.Code, status)
		}
		if status == 200 && !strings.Contains(w.Header().Get("Content-Security-Policy"), "script-src 'self';") {
			t.Errorf("GET %s has the policy %q", path, w.Header().Get("Content-Security-Policy"))
		}
	}
	if w := ask(p, "GET", "/nothing", "Accept", "text/html"); w.Code != 404 || !strings.Contains(w.Body.String(), "<title>Ken") {
		t.Errorf("GET /nothing in a browser = %d %s, want 404 with the page", w.Code, w.Body)
	}
	if w := ask(p, "POST", "/"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST / = %d, want 405", w.Code)
	}
	if w := ask(p, "HEAD", "/"); w.Code != 200 || w.Body.Len() != 0 {
		t.Errorf("HEAD / = %d with %d bytes, want 200 without any", w.Code, w.Body.Len())
	}
}

func TestPageIsKeptByBrowsers(t *testing.T) {
	p := realPage(t)
	first := ask(p, "GET", "/")
	if again := ask(p, "GET", "/", "If-None-Match", first.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("GET / with its ETag = %d, want 304", again.Code)
	}
	w := httptest.NewRecorder()
	w.Header().Set("Vary", "Origin") // as the guard says it of every answer
	p.ServeAs(w, httptest.NewRequest("GET", "/", nil), auth.Identity{})
	if got := w.Header().Values("Vary"); !slices.Equal(got, []string{"Origin", "Accept-Encoding"}) {
		t.Errorf("GET / varies with %v, want the origin still, and the encoding", got)
	}
	for name, f := range p.files {
		w := ask(p, "GET", "/"+name, "Accept-Encoding", "gzip")
		body := w.Body.Bytes()
		if w.Header().Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(bytes.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if body, err = io.ReadAll(z); err != nil {
				t.Fatal(err)
			}
		}
		if len(body) == 0 || !bytes.Equal(body, f.plain()) {
			t.Errorf("GET /%s compressed is not the file", name)
		}
		if lasting := strings.Contains(w.Header().Get("Cache-Control"), "immutable"); lasting != strings.HasPrefix(name, "assets/") {
			t.Errorf("GET /%s is kept for ever: %v", name, lasting)
		}
	}
}

// BenchmarkPageSize is all that a browser could ever fetch.
func BenchmarkPageSize(b *testing.B) {
	p, err := newPage(web.Dist, nil)
	if err != nil {
		b.Fatal(err)
	}
	sum := 0
	for b.Loop() {
		sum = 0
		for _, f := range p.files {
			if size := len(f.small()); size > 0 {
				sum += size
			} else {
				sum += len(f.plain())
			}
		}
	}
	b.ReportMetric(float64(sum)/1024, "KiB")
}

func TestPageWithoutFiles(t *testing.T) {
	if _, err := newPage(fstest.MapFS{"dist/other.txt": {Data: []byte("x")}}, nil); err == nil || !strings.Contains(err.Error(), "npm run build") {
		t.Errorf("newPage without index.html = %v, want what to do", err)
	}
}

func TestDocs(t *testing.T) {
	site := fstest.MapFS{
		"index.html":           {Data: []byte("<title>Start</title>")},
		"mcp.html":             {Data: []byte("<title>MCP</title>")},
		"decisions/index.html": {Data: []byte("<title>Decisions</title>")},
	}
	p, err := newPage(web.Dist, site)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"/docs/": "Start", "/docs/index.html": "Start", "/docs/mcp.html": "MCP", "/docs/decisions/": "Decisions",
	} {
		if w := ask(p, "GET", path); w.Code != 200 || !strings.Contains(w.Body.String(), want) || w.Header().Get("Content-Security-Policy") != pagePolicy {
			t.Errorf("GET %s = %d %s, policy %q; want %s under the page's policy", path, w.Code, w.Body, w.Header().Get("Content-Security-Policy"), want)
		}
	}
	if w := ask(p, "GET", "/docs"); w.Code != http.StatusPermanentRedirect || w.Header().Get("Location") != "/docs/" {
		t.Errorf("GET /docs = %d to %q, want a redirect to /docs/", w.Code, w.Header().Get("Location"))
	}
	for _, path := range []string{"/docs/nothing.html", "/docs/../mcp.html", "/docs//mcp.html"} {
		if w := ask(p, "GET", path); w.Code != http.StatusNotFound {
			t.Errorf("GET %s = %d, want 404", path, w.Code)
		}
	}
	if w := ask(realPage(t), "GET", "/docs/"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "make build") {
		t.Errorf("GET /docs/ without documentation = %d %s, want 404 that names make build", w.Code, w.Body)
	}
}
