package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/testkit/executortest"
)

// A house is an executor with capabilities, and what it was told and sent.
type house struct {
	*Executor
	server  *httptest.Server
	by      map[capability.ID]*capability.Capability
	secrets map[string]string
	held    []string
	waited  []time.Duration
	limits  Limits
}

func newHouse(t testing.TB, handler http.HandlerFunc) *house {
	t.Helper()
	h := &house{by: map[capability.ID]*capability.Capability{}, secrets: map[string]string{}}
	if handler != nil {
		h.server = httptest.NewServer(handler)
		t.Cleanup(h.server.Close)
	}
	e, err := New(Config{
		Lookup: func(_ context.Context, id capability.ID) (*capability.Capability, capability.Detail, error) {
			c, ok := h.by[id]
			if !ok {
				return nil, capability.Detail{}, &capability.Error{Kind: capability.NotFound, Op: "call", Target: string(id)}
			}
			return c, capability.Detail{Schema: json.RawMessage(c.Meta["test-schema"])}, nil
		},
		Secret:   func(name string) (string, bool) { v, ok := h.secrets[name]; return v, ok },
		Save:     func(name, value string) error { h.secrets[name] = value; return nil },
		Hold:     func(text string) { h.held = append(h.held, text) },
		Networks: func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} },
		Limits:   func() Limits { return h.limits },
	})
	executortest.Must(t, err)
	e.sleep = func(ctx context.Context, d time.Duration) error { h.waited = append(h.waited, d); return ctx.Err() }
	h.Executor = e
	h.limits.Rate = -1
	t.Cleanup(func() { e.Close() })
	return h
}

// op adds an operation; path is appended to the server's address.
func (h *house) op(name, method, path string, meta map[string]string) *capability.Capability {
	address := path
	if h.server != nil && strings.HasPrefix(path, "/") {
		address = h.server.URL + path
	}
	c := &capability.Capability{
		ID: capability.ID("tool:" + name), Kind: capability.KindTool, Name: name, Trust: capability.TrustUser, Permissions: []string{"network"},
		Run: &capability.Recipe{Runner: "api.rest", Method: method, URL: address}, Meta: meta, Origin: capability.Origin{Format: "openapi"},
	}
	if c.Meta == nil {
		c.Meta = map[string]string{}
	}
	h.by[c.ID] = c
	return c
}

func (h *house) call(t *testing.T, name string, arguments any) (capability.Result, error) {
	t.Helper()
	return h.Invoke(t.Context(), executortest.Call("tool:"+name, arguments))
}

// gives wants a call to give a text.
func (h *house) gives(t *testing.T, name string, arguments any, want string) {
	t.Helper()
	if r, err := h.call(t, name, arguments); err != nil || !strings.Contains(text(r), want) {
		t.Errorf("%s %v = %.2000s, %v, want %q in it", name, arguments, text(r), err, want)
	}
}

// refuses wants a call to be an error with a text in it.
func (h *house) refuses(t *testing.T, name string, arguments any, kind capability.ErrorKind, want string) {
	t.Helper()
	if r, err := h.call(t, name, arguments); capability.KindOf(err) != kind || err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s %v = %.2000s, %v, want %v with %q", name, arguments, text(r), err, kind, want)
	}
}

func text(r capability.Result) string {
	var b strings.Builder
	for _, p := range r.Parts {
		b.WriteString(p.Text + string(p.JSON) + string(p.Data))
	}
	return b.String()
}

// echo answers with what it was sent.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "uri": r.RequestURI, "headers": r.Header, "body": string(body)})
}

func TestChecklist(t *testing.T) {
	var asked atomic.Int32
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		switch r.URL.Path {
		case "/never":
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		case "/endless":
			for {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
					return
				}
			}
		default:
			echo(w, r)
		}
	})
	h.op("get", "GET", "/items/{id}", map[string]string{"in": `{"id":"path","q":"query","X-Note":"header"}`})
	executortest.Nine{
		ValidateInputs: func(t *testing.T) {
			for _, args := range []string{`[]`, `nul`, `{"id":"1","id":"2"}`, `{}`, `{"id":"1","other":2}`, `{"id":""}`, `{"id":"1","select":"items"}`, `{"id":"1","pages":0}`, `{"id":"1","X-Note":"a\r\nHost: b"}`} {
				executortest.Refused(t, h, executortest.Call("tool:get", args), capability.Invalid, "")
			}
			executortest.Refused(t, h, executortest.Call("tool:none", `{}`), capability.NotFound, "")
			if asked.Load() != 0 {
				t.Error("a request was made with bad arguments")
			}
		},
		WorkDirBounds: func(t *testing.T) {
			// A request has no work directory. Its path stays beneath the one of
			// the document.
			for _, id := range []string{".", "..", "../admin", "a/../../b", "..;/x/.."} {
				_, err := h.Facts(t.Context(), executortest.Call("tool:get", map[string]any{"id": id}), nil)
				if err == nil && strings.Contains(id, "..;") {
					continue // a segment of its own
				}
				if capability.KindOf(err) != capability.Invalid || err == nil {
					t.Errorf("id %q = %v, want invalid", id, err)
				}
			}
		},
		EnvFilter: func(t *testing.T) {
			t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
			t.Setenv("http_proxy", "http://127.0.0.1:1")
			t.Setenv("SECRET", "leaked")
			r, err := h.call(t, "get", `{"id":"$SECRET ${SECRET}"}`)
			if err != nil || strings.Contains(text(r), "leaked") {
				t.Errorf("Invoke = %s, %v, want a request without the environment", text(r), err)
			}
		},
		Timeout: func(t *testing.T) {
			h.op("never", "GET", "/never", nil).Run.TimeoutSec = 1
			h.op("neverPost", "POST", "/never", nil).Run.TimeoutSec = 1
			for _, name := range []string{"never", "neverPost"} {
				h.refuses(t, name, `{}`, capability.Timeout, "")
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := h.Invoke(ctx, executortest.Call("tool:get", `{"id":"1"}`)); capability.KindOf(err) != capability.Unavailable || err == nil {
				t.Errorf("a cancelled call: %v, want unavailable", err)
			}
		},
		OutputLimit: func(t *testing.T) {
			h.limits.Bytes = 100_000
			defer func() { h.limits.Bytes = 0 }()
			h.op("endless", "GET", "/endless", nil)
			r, err := h.call(t, "endless", `{}`)
			if err != nil || !r.Failed || r.Meta["truncated"] != "true" || !strings.Contains(text(r), "requests.bytes") || len(text(r)) > 101_000 {
				t.Errorf("an endless answer = %d bytes, %+v, %v", len(text(r)), r.Meta, err)
			}
		},
		Log: func(t *testing.T) {
			f, err := h.Facts(t.Context(), executortest.Call("tool:get", `{"id":"1","q":"a b"}`), nil)
			if err != nil || f.Line != "GET "+h.server.URL+"/items/1?q=a%20b" || f.Args != 2 || !json.Valid(f.Isolation) {
				t.Errorf("Facts = %+v, %v", f, err)
			}
			r, err := h.call(t, "get", `{"id":"1"}`)
			for _, key := range []string{"http_status", "host", "method", "tool", "end", "isolation", "attempts", "truncated"} {
				if r.Meta[key] == "" || err != nil {
					t.Errorf("Meta[%s] is empty: %v, %v", key, r.Meta, err)
				}
			}
		},
		SecureErrors: func(t *testing.T) {
			h.secrets["S_API_KEY"] = "key-4711-secret"
			h.op("lost", "GET", "http://127.0.0.1:1/x", map[string]string{"auth": `[{"secret":"S_API_KEY","scheme":"apiKey","in":"query","name":"key"}]`})
			_, err := h.call(t, "lost", `{}`)
			if capability.KindOf(err) != capability.Unavailable || err == nil || strings.Contains(err.Error(), "4711") || !strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("an address without a server: %v", err)
			}
		},
		MaliciousInputs: func(t *testing.T) {
			for _, attack := range []string{"a\r\nX: y", "a\x00b", "../../etc/passwd", "%2e%2e/", "@evil.example/", "?x=1#", "//evil.example", "\u2028", strings.Repeat("a", 70_000), "{id}", "${x}", "`id`"} {
				call := executortest.Call("tool:get", map[string]any{"id": attack})
				f, err := h.Facts(t.Context(), call, nil)
				if err != nil {
					continue // refused
				}
				if !slices.Equal(f.Hosts, []string{"127.0.0.1"}) {
					t.Errorf("id %q leads to %v", attack, f.Hosts)
				}
				u, err := url.Parse(strings.TrimPrefix(f.Line, "GET "))
				if err != nil || strings.Count(u.EscapedPath(), "/") != 2 || u.RawQuery != "" || u.Fragment != "" {
					t.Errorf("id %q makes %s", attack, f.Line)
				}
			}
			for _, host := range []string{"169.254.169.254", "[fe80::1]", "metadata.google.internal", "2852039166", "0xA9.0xFE.0xA9.0xFE"} {
				h.op("meta", "GET", "http://"+host+"/latest", nil)
				executortest.Refused(t, h, executortest.Call("tool:meta", `{}`), capability.Denied, "never connects to these")
			}
		},
		PermissionReview: func(t *testing.T) {
			c := h.op("hosts", "DELETE", "https://api.example.com/x", map[string]string{
				"auth": `[{"secret":"A_CLIENT_ID","scheme":"clientCredentials","tokenUrl":"https://login.example.com/token"}]`,
			})
			c.Permissions, c.Run.Hosts = nil, []string{"files.example.com:8443", "*.example.net"}
			f, err := h.Facts(t.Context(), executortest.Call("tool:hosts", `{}`), nil)
			if err != nil || !slices.Equal(f.Required, []string{executor.PermNetwork}) || !f.Destructive ||
				!slices.Equal(f.Hosts, []string{"api.example.com", "files.example.com", "login.example.com"}) {
				t.Errorf("Facts = %+v, %v; want the network, and every host", f, err)
			}
		},
	}.Run(t)
}

// TestStyles holds every style against the table of OpenAPI 3.1.
func TestStyles(t *testing.T) {
	array, object := `["blue","black","brown"]`, `{"R":100,"G":200,"B":150}`
	for _, tt := range []struct{ in, style, value, want string }{
		{"path", "simple", `"blue"`, "/blue"},
		{"path", "simple", array, "/blue,black,brown"},
		{"path", "simple", object, "/B,150,G,200,R,100"},
		{"path", "simple:true", object, "/B=150,G=200,R=100"},
		{"path", "label", `"blue"`, "/.blue"},
		{"path", "label", array, "/.blue,black,brown"},
		{"path", "label:true", array, "/.blue.black.brown"},
		{"path", "label:true", object, "/.B=150.G=200.R=100"},
		{"path", "matrix", `"blue"`, "/;color=blue"},
		{"path", "matrix", array, "/;color=blue,black,brown"},
		{"path", "matrix:true", array, "/;color=blue;color=black;color=brown"},
		{"path", "matrix", object, "/;color=B,150,G,200,R,100"},
		{"path", "matrix:true", object, "/;B=150;G=200;R=100"},
		{"path", "", `"a/b?c d%"`, "/a%2Fb%3Fc%20d%25"},
		{"query", "", `"blue"`, "/?color=blue"},
		{"query", "form", array, "/?color=blue&color=black&color=brown"},
		{"query", "form:false", array, "/?color=blue,black,brown"},
		{"query", ":false", object, "/?color=B,150,G,200,R,100"},
		{"query", "form:true", object, "/?B=150&G=200&R=100"},
		{"query", "spaceDelimited:false", array, "/?color=blue%20black%20brown"},
		{"query", "pipeDelimited:false", array, "/?color=blue%7Cblack%7Cbrown"},
		{"query", "deepObject", object, "/?color%5BB%5D=150&color%5BG%5D=200&color%5BR%5D=100"},
		{"query", "deepObject:true", `{"a":{"b":[1,2]}}`, "/?color%5Ba%5D%5Bb%5D%5B0%5D=1&color%5Ba%5D%5Bb%5D%5B1%5D=2"},
		{"query", "", `12345678901234567890`, "/?color=12345678901234567890"},
		{"query", "", `true`, "/?color=true"},
		{"query", "", `"a+b&c=d é"`, "/?color=a%2Bb%26c%3Dd%20%C3%A9"},
		{"query", "", `null`, "/"},
		{"query+json", "", object, "/?color=%7B%22B%22%3A150%2C%22G%22%3A200%2C%22R%22%3A100%7D"},
		{"query:other", "", `"x"`, "/?other=x"},
	} {
		h := newHouse(t, nil)
		path := "https://a.example/"
		if tt.in == "path" {
			path += "{color}"
		}
		meta := map[string]string{"in": fmt.Sprintf(`{"color":%q}`, tt.in)}
		if tt.style != "" {
			meta["style"] = fmt.Sprintf(`{"color":%q}`, tt.style)
		}
		h.op("x", "GET", path, meta)
		f, err := h.Facts(t.Context(), executortest.Call("tool:x", `{"color":`+tt.value+`}`), nil)
		if want := "GET https://a.example" + tt.want; err != nil || f.Line != want {
			t.Errorf("%s %s of %s: %q, %v; want %q", tt.in, tt.style, tt.value, f.Line, err, want)
		}
	}
	h := newHouse(t, nil)
	h.op("r", "GET", "https://a.example/", map[string]string{"in": `{"color":"query"}`, "reserved": `["color"]`})
	f, err := h.Facts(t.Context(), executortest.Call("tool:r", `{"color":"a/b:c&d#e"}`), nil)
	if err != nil || f.Line != "GET https://a.example/?color=a/b:c%26d%23e" {
		t.Errorf("with reserved characters: %s, %v", f.Line, err)
	}
}

func TestHeadersAndCookies(t *testing.T) {
	h := newHouse(t, echo)
	h.op("x", "GET", "/", map[string]string{
		"in":    `{"X-List":"header","X-Map":"header","sid":"cookie","pair":"cookie"}`,
		"style": `{"X-Map":"simple:true"}`,
	})
	r, err := h.call(t, "x", `{"X-List":["a","b"],"X-Map":{"k":1,"l":"two"},"sid":"1 2;3","pair":{"p":1,"q":2}}`)
	executortest.Must(t, err)
	var got struct {
		Headers map[string][]string `json:"headers"`
	}
	executortest.Must(t, json.Unmarshal([]byte(text(r)), &got))
	for name, want := range map[string]string{"X-List": "a,b", "X-Map": "k=1,l=two", "Cookie": "p=1; q=2; sid=1%202%3B3"} {
		if v := strings.Join(got.Headers[name], "|"); v != want {
			t.Errorf("%s = %q, want %q", name, v, want)
		}
	}
	for _, name := range []string{"Host", "content-length", "Transfer-Encoding", "Proxy-Authorization", "Connection"} {
		h.op("bad", "GET", "/", map[string]string{"in": fmt.Sprintf(`{%q:"header"}`, name)})
		executortest.Refused(t, h, executortest.Call("tool:bad", `{}`), capability.Invalid, "how the request is parsed")
	}
}

func TestBodies(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n\x00"
	type got struct {
		media string
		body  []byte
		form  map[string][]string
		files map[string]string
	}
	var last got
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		last = got{media: r.Header.Get("Content-Type"), files: map[string]string{}}
		if strings.HasPrefix(last.media, "multipart/") {
			if err := r.ParseMultipartForm(1 << 20); err != nil {
				t.Error(err)
				return
			}
			last.form = r.MultipartForm.Value
			for name, files := range r.MultipartForm.File {
				f, _ := files[0].Open()
				data, _ := io.ReadAll(f)
				last.files[name] = files[0].Header.Get("Content-Type") + " " + string(data)
			}
			return
		}
		last.body, _ = io.ReadAll(r.Body)
	})
	for _, tt := range []struct {
		name, media, in, more, args, want string
	}{
		{"members", "", `{"a":"body","b":"body"}`, "", `{"a":1.50,"b":[{"c":null}]}`, `{"a":1.50,"b":[{"c":null}]}`},
		{"whole", "", `{"body":"body:*"}`, "", `{"body":[1,"two"]}`, `[1,"two"]`},
		{"none", "", `{"a":"body"}`, "", `{}`, ``},
		{"required", "", `{"a":"body"}`, "required", `{}`, `{}`},
		{"renamed", "", `{"a_body":"body:a"}`, "", `{"a_body":1}`, `{"a":1}`},
		{"form", "application/x-www-form-urlencoded", `{"a":"body","b":"body"}`, "", `{"a":"x y&z","b":["1","2"]}`, `a=x%20y%26z&b=1&b=2`},
		{"text", "text/plain", `{"body":"body:*"}`, "", `{"body":"as it is"}`, `as it is`},
		{"xml", "application/xml", `{"body":"body:*"}`, "", `{"body":"<a/>"}`, `<a/>`},
		{"merge patch", "application/merge-patch+json", `{"body":"body:*"}`, "", `{"body":{"a":null}}`, `{"a":null}`},
	} {
		meta := map[string]string{"in": tt.in}
		if tt.media != "" {
			meta["contentType"] = tt.media
		}
		if tt.more != "" {
			meta["body"] = tt.more
		}
		h.op("x", "POST", "/", meta)
		if _, err := h.call(t, "x", tt.args); err != nil || string(last.body) != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, last.body, err, tt.want)
		}
		if want := tt.media; want != "" && last.media != want || tt.want == "" && last.media != "" {
			t.Errorf("%s has the type %q, want %q", tt.name, last.media, want)
		}
	}
	b64 := base64.StdEncoding.EncodeToString([]byte(png))
	h.op("bytes", "PUT", "/", map[string]string{"in": `{"body":"body:*"}`, "contentType": "image/png", "binary": `["body"]`})
	if _, err := h.call(t, "bytes", map[string]any{"body": b64}); err != nil || string(last.body) != png || last.media != "image/png" {
		t.Errorf("bytes: %q %s, %v", last.body, last.media, err)
	}
	executortest.Refused(t, h, executortest.Call("tool:bytes", `{"body":"no base64!"}`), capability.Invalid, "invalid base64")
	h.op("parts", "POST", "/", map[string]string{
		"in": `{"file":"body","name":"body","tags":"body","about":"body"}`, "contentType": "multipart/form-data", "binary": `["file"]`, "media": `{"file":"image/png"}`,
	})
	if _, err := h.call(t, "parts", map[string]any{"file": b64, "name": "n", "tags": []string{"a", "b"}, "about": map[string]any{"k": 1}}); err != nil {
		t.Fatal(err)
	}
	if last.files["file"] != "image/png "+png || strings.Join(last.form["tags"], "") != "ab" || last.form["name"][0] != "n" || last.form["about"][0] != `{"k":1}` {
		t.Errorf("parts: %q %q", last.files, last.form)
	}
}

// TestDialledAddress: the address that a name resolves to is what counts.
func TestDialledAddress(t *testing.T) {
	h := newHouse(t, echo)
	for dialled, rule := range map[string]string{
		"127.0.0.1:80": "", "93.184.215.14:443": "", "[2606:2800:21f::1]:443": "",
		"10.0.0.1:80": "sandbox.networks", "192.168.1.1:80": "sandbox.networks", "[::1]:80": "sandbox.networks", "[fd00::1]:80": "sandbox.networks",
		"169.254.169.254:80": "metadata", "[fe80::1%eth0]:80": "metadata", "[::ffff:169.254.169.254]:80": "metadata", "100.100.100.200:80": "metadata",
		"[64:ff9b::a9fe:a9fe]:80": "metadata", "0.0.0.0:80": "metadata", "[::]:80": "metadata", "224.0.0.1:80": "metadata",
	} {
		err := h.checkAddress("tcp", dialled, nil)
		b, _ := err.(*barred)
		if (rule == "") != (err == nil) || rule != "" && (b == nil || !strings.Contains(b.rule, rule)) {
			t.Errorf("checkAddress(%s) = %v, want %q", dialled, err, rule)
		}
	}
	// Even where the settings open it.
	h.cfg.Networks = func() []netip.Prefix {
		return []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	}
	for _, dialled := range []string{"169.254.169.254:80", "[fe80::1]:80", "168.63.129.16:80"} {
		if h.checkAddress("tcp", dialled, nil) == nil {
			t.Errorf("%s is dialled when all networks are open", dialled)
		}
	}
	// A name that resolves to this machine is checked after it was resolved.
	h.cfg.Networks = nil
	_, port, _ := net.SplitHostPort(h.server.Listener.Addr().String())
	h.op("local", "GET", "http://localhost:"+port+"/", nil)
	h.refuses(t, "local", `{}`, capability.Denied, "sandbox.networks")
}

// TestRedirects: within the host they are followed; another host gets nothing.
func TestRedirects(t *testing.T) {
	var other atomic.Pointer[http.Request]
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { other.Store(r.Clone(context.Background())); echo(w, r) }))
	defer far.Close()
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		to := map[string]string{
			"/near": "/end?x=1", "/keep": "/end", "/far": far.URL + "/end", "/meta": "http://169.254.169.254/", "/user": "http://u:p@" + r.Host + "/end", "/loop": "/loop",
		}
		switch at := to[r.URL.Path]; {
		case at == "":
			echo(w, r)
		case r.URL.Path == "/keep":
			http.Redirect(w, r, at, http.StatusTemporaryRedirect)
		default:
			http.Redirect(w, r, at, http.StatusFound)
		}
	})
	h.secrets["T_TOKEN"] = "tok-4711-secret"
	auth := map[string]string{"in": `{"X-Note":"header","a":"body"}`, "auth": `[{"secret":"T_TOKEN","scheme":"bearer"}]`}
	h.op("near", "GET", "/near", maps.Clone(auth))
	if r, err := h.call(t, "near", `{"X-Note":"n"}`); err != nil || r.Failed || !strings.Contains(text(r), "/end?x=1") || !strings.Contains(text(r), "Bearer tok-4711") {
		t.Errorf("within the host: %s, %v", text(r), err)
	}
	h.op("keep", "POST", "/keep", maps.Clone(auth))
	if r, err := h.call(t, "keep", `{"a":1}`); err != nil || !strings.Contains(text(r), `"method":"POST"`) || !strings.Contains(text(r), `{\"a\":1}`) {
		t.Errorf("307: %s, %v", text(r), err)
	}
	for _, name := range []string{"far", "meta", "user"} {
		h.op(name, "GET", "/"+name, maps.Clone(auth))
		r, err := h.call(t, name, `{"X-Note":"n"}`)
		if err != nil || !r.Failed || !strings.Contains(text(r), "may not reach") || other.Load() != nil {
			t.Errorf("%s: %s, %v; want a redirect that is told and not followed", name, text(r), err)
		}
	}
	c := h.op("named", "GET", "/far", maps.Clone(auth))
	c.Run.Hosts = []string{strings.TrimPrefix(far.URL, "http://")}
	r, err := h.call(t, "named", `{"X-Note":"n"}`)
	got := other.Load()
	if err != nil || r.Failed || got == nil || got.Header.Get("Authorization") != "" || got.Header.Get("X-Note") != "" {
		t.Errorf("a host that the recipe names: %s, %v, %v; want a bare request", text(r), err, got)
	}
	h.op("loop", "GET", "/loop", nil)
	h.refuses(t, "loop", `{}`, capability.Upstream, "")
}

// TestCredentials: each way to sign in, and that the credentials sent are not shown.
func TestCredentials(t *testing.T) {
	var tokens atomic.Int32
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			r.ParseForm()
			n := tokens.Add(1)
			user, password, _ := r.BasicAuth()
			password, _ = url.QueryUnescape(password)
			switch {
			case r.Form.Get("grant_type") == "client_credentials" && user == "cid" && password == "c secret" && r.Form.Get("scope") == "read":
			case r.Form.Get("grant_type") == "refresh_token" && strings.HasPrefix(r.Form.Get("refresh_token"), "refresh-") && user == "cid":
			default:
				http.Error(w, "who are you, "+password, http.StatusUnauthorized)
				return
			}
			fmt.Fprintf(w, `{"access_token":"access-%d","refresh_token":"refresh-%d","expires_in":3600}`, n, n)
			return
		}
		if strings.Contains(r.Header.Get("Authorization"), "stale") {
			http.Error(w, "expired", http.StatusUnauthorized)
			return
		}
		echo(w, r)
	})
	maps.Copy(h.secrets, map[string]string{
		"K": "key 1/2", "U": "ada", "B_PASSWORD": "pass:word", "T": "tok", "X_CLIENT_ID": "cid", "X_CLIENT_SECRET": "c secret",
		"STALE": "stale", "X_REFRESH_TOKEN": "refresh-0",
	})
	for name, tt := range map[string]struct{ auth, want string }{
		"bearer": {`[{"secret":"T","scheme":"bearer"}]`, `"Authorization":["Bearer tok"]`},
		"basic":  {`[{"secret":"U","scheme":"basic"},{"secret":"B_PASSWORD","scheme":"basic"}]`, `"Authorization":["Basic ` + base64.StdEncoding.EncodeToString([]byte("ada:pass:word")) + `"]`},
		"header": {`[{"secret":"K","scheme":"apiKey","in":"header","name":"X-Key"}]`, `"X-Key":["key 1/2"]`},
		"query":  {`[{"secret":"K","scheme":"apiKey","in":"query","name":"api key"}]`, `"uri":"/?q=1\u0026api%20key=key%201%2F2"`},
		"cookie": {`[{"secret":"K","scheme":"apiKey","in":"cookie","name":"sid"}]`, `"Cookie":["sid=key%201%2F2"]`},
		"client": {`[{"secret":"X_CLIENT_ID","scheme":"clientCredentials","tokenUrl":"` + h.server.URL + `/token","scope":"read"},{"secret":"X_CLIENT_SECRET","scheme":"clientCredentials","tokenUrl":"` + h.server.URL + `/token"}]`, `Bearer access-`},
		"renew":  {`[{"secret":"STALE","scheme":"bearer","tokenUrl":"` + h.server.URL + `/token","refresh":"X_REFRESH_TOKEN","client":"X_CLIENT_ID","key":"X_CLIENT_SECRET"}]`, `Bearer access-`},
	} {
		h.op(name, "GET", "/", map[string]string{"in": `{"q":"query"}`, "auth": tt.auth})
		f, err := h.Facts(t.Context(), executortest.Call("tool:"+name, `{"q":"1"}`), nil)
		if err != nil || f.Line != "GET "+h.server.URL+"/?q=1" {
			t.Errorf("%s: the record would say %q, %v", name, f.Line, err)
		}
		for range 2 {
			r, err := h.call(t, name, `{"q":"1"}`)
			if err != nil || r.Failed || !strings.Contains(text(r), tt.want) {
				t.Errorf("%s: %s, %v; want %s", name, text(r), err, tt.want)
			}
		}
	}
	if n := tokens.Load(); n != 2 {
		t.Errorf("%d tokens were asked for, want one for each way", n)
	}
	if h.secrets["STALE"] == "stale" || h.secrets["X_REFRESH_TOKEN"] == "refresh-0" {
		t.Errorf("what the server replaced was not kept: %v", h.secrets)
	}
	for _, want := range []string{"tok", "key 1/2", "access-1", "access-2", "c secret", base64.StdEncoding.EncodeToString([]byte("ada:pass:word"))} {
		if !slices.Contains(h.held, want) {
			t.Errorf("the redactor does not know %q", want)
		}
	}
	// Refusals: a document that is not the user's own, http in the open, no secret.
	theirs := h.op("theirs", "GET", "/", map[string]string{"auth": `[{"secret":"T","scheme":"bearer"}]`})
	theirs.Trust = capability.TrustWorkspace
	h.refuses(t, "theirs", `{}`, capability.Denied, "not yours")
	h.op("open", "GET", "http://api.example.com/", map[string]string{"auth": `[{"secret":"T","scheme":"bearer"}]`})
	h.refuses(t, "open", `{}`, capability.Denied, "https")
	h.op("without", "GET", "/", map[string]string{"auth": `[{"secret":"NOPE","scheme":"bearer"}]`})
	if _, err := h.Check(t.Context(), executortest.Call("tool:without", `{}`)); capability.KindOf(err) != capability.Unavailable || err == nil || !strings.Contains(err.Error(), "NOPE") {
		t.Errorf("no secret: %v", err)
	}
	h.secrets["X_CLIENT_SECRET"] = "wrong-secret"
	if _, err := h.call(t, "client", `{}`); err == nil || strings.Contains(err.Error(), "wrong-secret") || !strings.Contains(err.Error(), "401") {
		t.Errorf("a wrong secret: %v; want the status and not what the server said", err)
	}
}

// TestRetries: only what is safe or has a key is made again, and Retry-After is
// honoured.
func TestRetries(t *testing.T) {
	var asked atomic.Int32
	status, after := http.StatusServiceUnavailable, "7"
	fails := int32(2)
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) <= fails {
			w.Header().Set("Retry-After", after)
			http.Error(w, "busy", status)
			return
		}
		echo(w, r)
	})
	h.op("get", "GET", "/", nil)
	h.op("post", "POST", "/", map[string]string{"in": `{"Idempotency-Key":"header"}`})
	r, err := h.call(t, "get", `{}`)
	if err != nil || r.Failed || r.Meta["attempts"] != "3" || !slices.Equal(h.waited, []time.Duration{7 * time.Second, 7 * time.Second}) {
		t.Errorf("a safe request: %v, %v after %v", r.Meta, err, h.waited)
	}
	asked.Store(0)
	if r, err := h.call(t, "post", `{}`); err != nil || !r.Failed || r.Meta["attempts"] != "1" || !strings.Contains(text(r), "Retry-After: 7") {
		t.Errorf("a request that changes something: %v, %v", r.Meta, err)
	}
	asked.Store(0)
	if r, err := h.call(t, "post", `{"Idempotency-Key":"k1"}`); err != nil || r.Failed || r.Meta["attempts"] != "3" {
		t.Errorf("a request with a key: %v, %v", r.Meta, err)
	}
	asked.Store(0)
	after = "3600"
	if r, err := h.call(t, "get", `{}`); err != nil || !r.Failed || r.Meta["attempts"] != "1" {
		t.Errorf("Retry-After of an hour: %v, %v", r.Meta, err)
	}
	asked.Store(0)
	status, after = http.StatusInternalServerError, "1"
	if r, err := h.call(t, "get", `{}`); err != nil || !r.Failed || r.Meta["attempts"] != "1" {
		t.Errorf("a 500 is not made again: %v, %v", r.Meta, err)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if d, ok := retryAfter(at.Add(5*time.Second).Format(http.TimeFormat), at); !ok || d != 5*time.Second {
		t.Errorf("a date = %v, %v", d, ok)
	}
}

// TestUnknownEffect: if a connection breaks after a request was sent, the error
// does not claim that nothing happened.
func TestUnknownEffect(t *testing.T) {
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	})
	h.op("post", "POST", "/", map[string]string{"in": `{"a":"body"}`})
	h.refuses(t, "post", `{"a":1}`, capability.Upstream, "")
	h.op("get", "GET", "/", nil)
	if _, err := h.call(t, "get", `{}`); capability.KindOf(err) != capability.Unavailable || err == nil || len(h.waited) != 2 {
		t.Errorf("GET: %v after %v, want unavailable after two more", err, h.waited)
	}
}

func TestRatePerHost(t *testing.T) {
	h := newHouse(t, echo)
	h.limits.Rate = 0.5
	h.op("get", "GET", "/", nil)
	for range 6 {
		if _, err := h.call(t, "get", `{}`); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.waited) < 2 {
		t.Errorf("six requests at one in two seconds waited %v", h.waited)
	}
}

// TestHostileAnswers: whatever a server sends, the call ends, with a result that
// says what came.
func TestHostileAnswers(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	z.Write(make([]byte, 8<<20))
	z.Close()
	answers := map[string]struct {
		header, value, body string
		failed              bool
		want                string
	}{
		"/bomb":    {"Content-Encoding", "gzip", bomb.String(), true, "requests.bytes"},
		"/badgzip": {"Content-Encoding", "gzip", "this is no gzip", true, "incomplete"},
		"/liar":    {"Content-Type", "application/json", "<html>no</html>", false, "and it is not"},
		"/bytes":   {"Content-Type", "text/plain", "\xff\xfe\x00\x01", false, "\xff\xfe\x00\x01"},
		"/deep":    {"Content-Type", "application/json", strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000), false, "[[["},
		"/short":   {"Content-Length", "1000", `{"a":1`, true, "incomplete"},
		"/nothing": {"", "", "", false, "HTTP 204"},
	}
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		a := answers[r.URL.Path]
		w.Header().Set(a.header, a.value)
		if a.body == "" {
			w.WriteHeader(http.StatusNoContent)
		}
		io.WriteString(w, a.body)
	})
	h.limits.Bytes = 1 << 20
	for path, want := range answers {
		h.op("x", "GET", path, nil)
		r, err := h.call(t, "x", `{}`)
		if err != nil || r.Failed != want.failed || !strings.Contains(text(r), want.want) || len(text(r)) > 2<<20 {
			t.Errorf("%s: failed %v, %.200q, %v; want %v, %q", path, r.Failed, text(r), err, want.failed, want.want)
		}
	}
}

func TestSelect(t *testing.T) {
	body := `{"total":2,"items":[{"id":1,"name":"a","owner":{"login":"x","x":0}},{"id":2,"name":"b","owner":{"login":"y"}}],"a/b":{"k":1.50},"by":{"u":{"n":1},"v":{"n":2}}}`
	for _, tt := range []struct{ paths, want string }{
		{`["/total"]`, "{\n \"total\": 2\n}"},
		{`["/items/name"]`, "{\n \"items\": [\n  {\"name\":\"a\"},\n  {\"name\":\"b\"}\n ]\n}"},
		{`["/items/*/id","/items/*/owner/login"]`, "{\n \"items\": [\n  {\"id\":1,\"owner\":{\"login\":\"x\"}},\n  {\"id\":2,\"owner\":{\"login\":\"y\"}}\n ]\n}"},
		{`["/items/1/id"]`, "{\n \"items\": [\n  {\"id\":2}\n ]\n}"},
		{`["/a~1b/k"]`, "{\n \"a/b\": {\n  \"k\": 1.50\n }\n}"},
		{`["/by/*/n"]`, "{\n \"by\": {\n  \"u\": {\"n\":1},\n  \"v\": {\"n\":2}\n }\n}"},
		{`"/total, /a~1b"`, "{\n \"a/b\": {\n  \"k\": 1.50\n },\n \"total\": 2\n}"},
		{`["/nothing"]`, ""},
	} {
		var v any
		json.Unmarshal([]byte(tt.paths), &v)
		s, err := readSelection(v)
		executortest.Must(t, err)
		got, some, err := s.of([]byte(body))
		if err != nil || got != tt.want || some != (tt.want != "") {
			t.Errorf("%s = %s, %v, %v; want %s", tt.paths, got, some, err, tt.want)
		}
	}
	for _, bad := range []any{"items", []any{}, []any{1}, 7, []any{"x"}} {
		if _, err := readSelection(bad); err == nil {
			t.Errorf("%v is taken for a selection", bad)
		}
	}
}

// TestPages: the next page is found by a Link, an address, a cursor or a number.
func TestPages(t *testing.T) {
	var asked atomic.Int32
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		q := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		n := map[string]int{"": 1, "c2": 2, "c3": 3, "2": 2, "3": 3, "4": 4}[q.Get("page")+q.Get("cursor")+q.Get("n")]
		switch r.URL.Path {
		case "/link":
			if n < 3 {
				w.Header().Set("Link", fmt.Sprintf(`<http://%s/link?n=%d>; rel="next", <http://%s/>; rel="first"`, r.Host, n+1, r.Host))
			}
			fmt.Fprintf(w, `[%d]`, n)
		case "/far":
			w.Header().Set("Link", `<https://evil.example/>; rel="next"`)
			fmt.Fprint(w, `[1]`)
		case "/cursor":
			fmt.Fprintf(w, `{"items":[%d],"next_cursor":%q}`, n, []string{"", "c2", "c3", ""}[n])
		case "/page":
			fmt.Fprintf(w, `{"items":[%s],"total":2}`, []string{"", "1", "2", "", ""}[n])
		case "/next":
			fmt.Fprintf(w, `{"data":[%d]%s}`, n, []string{"", `,"links":{"next":{"href":"/next?n=2"}}`, `,"links":{"next":{"href":"/next?n=3"}}`, ""}[n])
		case "/same":
			w.Header().Set("Link", `</same>; rel=next`)
			fmt.Fprint(w, `[1]`)
		}
	})
	meta := func() map[string]string {
		return map[string]string{"in": `{"page":"query","cursor":"query","n":"query"}`}
	}
	for path, want := range map[string]string{
		"/link": `[1,2,3]`, "/cursor": `{"items":[1,2,3],"next_cursor":""}`, "/page": `{"items":[1,2],"total":2}`, "/next": `{"data":[1,2,3]}`,
		"/far": `[1]`, "/same": `[1]`,
	} {
		h.op("x", "GET", path, meta())
		r, err := h.call(t, "x", `{"pages":10}`)
		if err != nil || !strings.HasSuffix(text(r), want) || strings.Contains(text(r), "further page") {
			t.Errorf("%s: %s, %v; want %s", path, text(r), err, want)
		}
	}
	h.op("x", "GET", "/link", meta())
	if r, err := h.call(t, "x", `{"pages":2}`); err != nil || !strings.Contains(text(r), "[1,2]") || !strings.Contains(text(r), "further page") {
		t.Errorf("two pages: %s, %v", text(r), err)
	}
	h.limits.Pages = 2
	asked.Store(0)
	if r, err := h.call(t, "x", `{"pages":1000}`); err != nil || asked.Load() != 2 || !strings.Contains(text(r), "further page") {
		t.Errorf("with a limit of two: %s, %v, %d requests", text(r), err, asked.Load())
	}
	if r, err := h.call(t, "x", `{}`); err != nil || !strings.Contains(text(r), "further page") || !strings.Contains(text(r), "pages") {
		t.Errorf("one page: %s, %v; want to be told that there are more", text(r), err)
	}
}

// TestCache: an answer is used again as it says, and never for another person.
func TestCache(t *testing.T) {
	var asked, full atomic.Int32
	control := "max-age=60"
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Cache-Control", control)
		w.Header().Set("ETag", `"v1"`)
		if r.Header.Get("If-None-Match") == `"v1"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		full.Add(1)
		echo(w, r)
	})
	c := h.op("get", "GET", "/", map[string]string{"in": `{"q":"query"}`})
	h.op("post", "POST", "/", nil)
	get := func(who string) capability.Result {
		t.Helper()
		call := executortest.Call("tool:get", `{"q":"1"}`)
		call.Principal.ID = who
		r, err := h.Invoke(t.Context(), call)
		if err != nil || r.Failed || !strings.Contains(text(r), `"/?q=1"`) {
			t.Fatalf("%s, %v", text(r), err)
		}
		return r
	}
	want := func(what string, requests, whole int32) {
		t.Helper()
		if asked.Load() != requests || full.Load() != whole {
			t.Errorf("%s: %d requests, %d whole; want %d and %d", what, asked.Load(), full.Load(), requests, whole)
		}
	}
	get("ada")
	if r := get("ada"); r.Meta["cache"] != "hit" {
		t.Errorf("cache = %q", r.Meta["cache"])
	}
	want("fresh", 1, 1)
	get("bob")
	want("another person", 2, 2)
	if _, err := h.call(t, "post", `{}`); err != nil {
		t.Fatal(err)
	}
	want("a change", 3, 3)
	control = "no-cache"
	get("ada")
	want("after a change", 4, 4)
	if r := get("ada"); r.Meta["cache"] != "revalidated" {
		t.Errorf("cache = %q", r.Meta["cache"])
	}
	want("no-cache", 5, 4)
	control = "no-store"
	c.Run.URL += "two"
	h.op("two", "GET", "/two", nil)
	h.call(t, "two", `{}`)
	h.call(t, "two", `{}`)
	want("no-store", 7, 6)
}

// TestRecipes: a recipe with an address, and a runner that takes the address.
func TestRecipes(t *testing.T) {
	h := newHouse(t, echo)
	schema := `{"properties":{"id":{"type":"string"},"q":{"type":"string"},"n":{"type":"integer"},"url":{"type":"string"},"headers":{"type":"object"},"body":{}}}`
	add := func(runner, method, address string) {
		c := h.op("x", method, address, map[string]string{"test-schema": schema})
		c.Run.Runner, c.Origin.Format = runner, "manifest"
	}
	for _, tt := range []struct{ runner, method, address, args, want string }{
		{"api.rest", "", "/items/{id}?q={q}", `{"id":"a b","q":"1&2","n":3}`, `"uri":"/items/a%20b?q=1%262\u0026n=3"`},
		{"api.rest", "POST", "/items/{id}", `{"id":"a","n":3}`, `"body":"{\"n\":3}"`},
		{"api.get", "", "", `{"url":"` + h.server.URL + `/x?y=1"}`, `"uri":"/x?y=1"`},
		{"api.post", "", "", `{"url":"` + h.server.URL + `/x","body":{"a":1},"headers":{"X-A":"b"}}`, `"X-A":["b"]`},
		{"api.delete", "", "", `{"url":"` + h.server.URL + `/x"}`, `"method":"DELETE"`},
	} {
		add(tt.runner, tt.method, tt.address)
		h.gives(t, "x", tt.args, tt.want)
	}
	add("api.get", "", "")
	for _, args := range []string{`{}`, `{"url":"file:///etc/passwd"}`, `{"url":"http://u:p@a.example/"}`, `{"url":"gopher://a"}`, `{"url":7}`, `{"url":"http://a.example/","headers":{"Host":"b"}}`,
		`{"url":"http://a.example/","headers":{"x-http-method-override":"DELETE"}}`, `{"url":"http://a.example/","headers":{"X-Method-Override":"DELETE"}}`} {
		executortest.Refused(t, h, executortest.Call("tool:x", args), capability.Invalid, "")
	}
	add("api.fetch", "", "")
	executortest.Refused(t, h, executortest.Call("tool:x", `{}`), capability.Invalid, "not a runner for requests")
}

// TestOnlyDocumentsSign: what a manifest, a package or a row writes beside its
// recipe is no credential and no place of an argument, whatever key it uses.
func TestOnlyDocumentsSign(t *testing.T) {
	h := newHouse(t, echo)
	h.secrets["T_KEY"] = "a-secret-of-another"
	c := h.op("x", "GET", "/", map[string]string{
		"auth": `[{"secret":"T_KEY","scheme":"apiKey","in":"query","name":"k"}]`, "in": `{"q":"header:X-Q"}`, "contentType": "text/x", "body": "required",
		"test-schema": `{"properties":{"q":{"type":"string"}}}`,
	})
	for _, format := range []string{"manifest", "extension", "jsonl", "memory", ""} {
		c.Origin.Format = format
		r, err := h.call(t, "x", `{"q":"1"}`)
		if got := text(r); err != nil || !strings.Contains(got, `"uri":"/?q=1"`) || strings.Contains(got, "X-Q") || strings.Contains(got, "a-secret") {
			t.Errorf("%s: %s, %v; want a request with q alone", format, got, err)
		}
	}
}

// FuzzRequestPath: an argument never leaves its place in the address, and a server
// reads it as it was given.
func FuzzRequestPath(f *testing.F) {
	for _, s := range []string{"a", "../x", "a/b?c#d", "%2e%2e", "@evil.example", "\x00", "é", "a;b=c"} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, id, q string) {
		h := newHouse(t, nil)
		h.op("x", "GET", "https://a.example/items/{id}", map[string]string{"in": `{"id":"path","q":"query"}`})
		args, err := json.Marshal(map[string]string{"id": id, "q": q})
		if err != nil {
			t.Skip("cannot here: it is no JSON")
		}
		facts, err := h.Facts(t.Context(), executortest.Call("tool:x", string(args)), nil)
		if err != nil {
			return
		}
		var given struct{ ID, Q string }
		executortest.Must(t, json.Unmarshal(args, &given))
		u, err := url.Parse(strings.TrimPrefix(facts.Line, "GET "))
		if err != nil || u.Host != "a.example" || u.Path != "/items/"+given.ID || u.Query().Get("q") != given.Q || len(u.Query()) != 1 || u.Fragment != "" {
			t.Errorf("%q and %q make %s: %v", id, q, facts.Line, err)
		}
	})
}
