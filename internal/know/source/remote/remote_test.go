package remote

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/testkit/sourcetest"
)

var (
	_ capability.Watcher  = (*Remote)(nil)
	_ capability.Detailer = (*Remote)(nil)
)

// A site is a page on this machine whose content a test changes.
type site struct {
	*httptest.Server
	mu       sync.Mutex
	handle   http.HandlerFunc
	requests atomic.Int32
}

func newSite(t *testing.T, handle http.HandlerFunc) *site {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	s := &site{handle: handle}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		s.mu.Lock()
		h := s.handle
		s.mu.Unlock()
		h(w, r)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // clients hang up on purpose
	s.StartTLS()
	t.Cleanup(func() {
		s.Close()
		goleak.VerifyNone(t, leaks)
	})
	return s
}

func (s *site) serve(h http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle = h
}

// client connects as Ken does, and knows the server's certificate.
func (s *site) client(loopback bool) *http.Client {
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return &http.Client{Transport: guardedTransport(loopback, roots)}
}

func (s *site) remote(t *testing.T, path string, cfg Config) *Remote {
	t.Helper()
	cfg.URL = s.URL + path
	if cfg.Client == nil {
		cfg.Client = s.client(true)
	}
	r, err := New(cfg)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func text(s string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, s) }
}

func channelList(names ...string) string {
	var b strings.Builder
	b.WriteString("channels:\n")
	for _, n := range names {
		fmt.Fprintf(&b, "- {platform: %s, description: Reach people on %s.}\n", n, n)
	}
	return b.String()
}

func codesOf(b capability.Batch) string {
	var codes []string
	for _, p := range b.Problems {
		codes = append(codes, p.Code)
	}
	return strings.Join(codes, " ")
}

func mustLoad(t *testing.T, s capability.Source) capability.Batch {
	t.Helper()
	b, err := s.Load(context.Background())
	must(t, err)
	return b
}

// loads loads, and checks which capabilities come and the codes of problems.
func loads(t *testing.T, what string, r *Remote, ids, codes string) capability.Batch {
	t.Helper()
	b := mustLoad(t, r)
	if sourcetest.IDs(b) != ids || codesOf(b) != codes {
		t.Fatalf("%s: %q with the problems %v, want %q with %q", what, sourcetest.IDs(b), b.Problems, ids, codes)
	}
	return b
}

// refuses loads, and checks that it cannot: of which kind the error is, what it
// says, and that it shows no secret.
func refuses(t *testing.T, r *Remote, kind capability.ErrorKind, words ...string) {
	t.Helper()
	_, err := r.Load(context.Background())
	if err == nil || kind != 0 && capability.KindOf(err) != kind || strings.Contains(err.Error(), "SECRET") {
		t.Fatalf("Load = %v, want an error of kind %v without a secret", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("Load = %v, want %q in it", err, w)
		}
	}
}

// body checks what the details of a capability say.
func body(t *testing.T, r *Remote, c *capability.Capability, want string) {
	t.Helper()
	if d, err := r.Detail(context.Background(), c); err != nil || d.Body != want {
		t.Errorf("Detail(%s) = %q, %v, want %q", c.ID, d.Body, err, want)
	}
}

func TestRemoteLoadAndDetail(t *testing.T) {
	s := newSite(t, text(sourcetest.Card))
	for _, dir := range []string{"", t.TempDir()} {
		r := s.remote(t, "/token-economy.md", Config{CacheDir: dir})
		b := loads(t, "a card", r, "token-economy", "card-size")
		c := b.Capabilities[0]
		want := capability.Origin{Source: s.URL + "/token-economy.md", Format: "card", Location: capability.Remote, Path: s.URL + "/token-economy.md", Line: 1}
		if c.Trust != capability.TrustRemote || c.Origin != want {
			t.Errorf("trust %v, origin %+v, want remote, %+v", c.Trust, c.Origin, want)
		}
		if p := b.Problems[0]; p.Origin.Location != capability.Remote || p.Origin.Path != want.Path {
			t.Errorf("problem %v is not at the address", p)
		}
		body(t, r, c, "Saves tokens.")
	}
}

const (
	jsonlRow  = `{"id":"a","name":"a","description":"Does a.","input_schema":{"type":"object"}}` + "\n"
	jsonlRow2 = `{"id":"b","name":"b","description":"Does b."}` + "\n"
	openAPI   = "openapi: 3.0.0\ninfo: {title: T, version: '1'}\npaths:\n  /a:\n    get:\n      operationId: getA\n      summary: Gets a.\n      responses: {'200': {description: ok}}\n"
)

// TestRemoteFormats: the name, the type or the look of the content decides,
// and the configuration before all of them.
func TestRemoteFormats(t *testing.T) {
	tests := []struct {
		path, format, contentType, content string
		want                               string // format of the origin
	}{
		{"/channels.yaml", "", "", channelList("a"), "channel"},
		{"/feed", "channel", "", channelList("a"), "channel"},
		{"/feed", "channel", "application/json", `{"channels":[{"platform":"a","description":"A."}]}`, "channel"},
		{"/extensions", "extensionlist", "", `[{"name":"a","description":"A."}]`, "extensionlist"},
		{"/card", "", "text/markdown; charset=utf-8", sourcetest.Card, "card"},
		{"/card", "", "", sourcetest.Card, "card"},
		{"/x", "card", "", sourcetest.Card, "card"},
		{"/manifest.json", "", "", `{"id":"x","description":"X.","permissions_required":[]}`, "extension"},
		{"/corpus.jsonl", "", "", jsonlRow + jsonlRow2, "jsonl"},
		{"/feed", "", "", jsonlRow + jsonlRow2, "jsonl"},
		{"/feed", "jsonl", "", jsonlRow, "jsonl"},
		{"/api", "openapi", "", openAPI, "openapi"},
		{"/tools", "mcplist", "", `{"tools":[{"name":"a","description":"A.","inputSchema":{"type":"object"}}]}`, "mcplist"},
		{"/x", "skill", "", "---\nname: x\ndescription: Does x.\n---\nDo x.\n", "skill"},
		{"/x", "manifest", "", "id: tool:x\nkind: tool\nname: x\ndescription: Does x.\n", "manifest"},
		{"/x.md", "command", "", "---\ndescription: Does x.\n---\nDo x.\n", "command"},
		{"/", "extension", "", `{"id":"x","description":"X.","permissions_required":[]}`, "extension"},
	}
	for _, tt := range tests {
		s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
			if tt.contentType != "" {
				w.Header().Set("Content-Type", tt.contentType)
			}
			io.WriteString(w, tt.content)
		})
		r := s.remote(t, tt.path, Config{Format: tt.format, CacheDir: t.TempDir()})
		b := mustLoad(t, r)
		if len(b.Capabilities) == 0 || b.Capabilities[0].Origin.Format != tt.want {
			t.Errorf("%s as %q (%s): %d capabilities, want some from %s; problems %v", tt.path, tt.format, tt.contentType, len(b.Capabilities), tt.want, b.Problems)
			continue
		}
		for _, c := range b.Capabilities {
			if _, err := r.Detail(context.Background(), c); err != nil {
				t.Errorf("%s as %q: Detail(%s) = %v", tt.path, tt.format, c.ID, err)
			}
		}
	}
	s := newSite(t, text("just words"))
	if b := mustLoad(t, s.remote(t, "/x", Config{})); codesOf(b) != "unknown-format" {
		t.Errorf("problems of an unknown format = %v", b.Problems)
	}
}

func TestRemoteName(t *testing.T) {
	tests := []struct{ format, url, contentType, data, want string }{
		{"", "https://h/a/corpus.jsonl?x=1", "", "", "corpus.jsonl"},
		{"", "https://h/a/openapi.yaml", "text/plain", "{", "openapi.yaml"},
		{"", "https://h/", "application/json", "{}", "content.json"},
		{"", "https://h/list", "application/x-ndjson", "{}", "list.jsonl"},
		{"", "https://h/list.txt", "text/plain", "{\"id\":1}\n{\"id\":2}\n", "list.jsonl"},
		{"", "https://h/list", "", "{\n\"a\": 1}", "list.json"},
		{"", "https://h/list", "", "[1]", "list.json"},
		{"", "https://h/list", "", "a: 1", "list.yaml"},
		{"", "https://h/list", "", "\ufeff---\na: 1\n---\n", "list.md"},
		{"", "https://h/..", "application/yaml", "", "content.yaml"},
		{"", "https://h/a%5Cb%00c.json", "", "", "a_b_c.json"},
		{"openapi", "https://h/x", "", "openapi: 3", "openapi.yaml"},
		{"openapi", "https://h/x", "", "{}", "openapi.json"},
		{"card", "https://h/x/economy.md", "", "", "cards/economy.md"},
		{"command", "https://h/x", "", "", "commands/command.md"},
		{"skill", "https://h/x.md", "", "", "SKILL.md"},
	}
	for _, tt := range tests {
		r, err := New(Config{URL: tt.url, Format: tt.format})
		must(t, err)
		if got := remoteName(tt.format, r.url, tt.contentType, []byte(tt.data)); got != tt.want {
			t.Errorf("remoteName(%q, %s, %q, %q) = %s, want %s", tt.format, tt.url, tt.contentType, tt.data, got, tt.want)
		}
	}
}

func TestNewRemoteRefuses(t *testing.T) {
	tests := []struct {
		cfg  Config
		want string
	}{
		{Config{URL: "http://example.com/a"}, "not https"},
		{Config{URL: "ftp://example.com/a"}, "not https"},
		{Config{URL: "file:///etc/passwd"}, "no host"},
		{Config{URL: "example.com/a"}, "no host"},
		{Config{URL: ""}, "no host"},
		{Config{URL: "https://u:SECRET@h\x7f/?k=SECRET"}, "not a URL"},
		{Config{URL: "http://example.com/a?key=SECRET"}, "not https"},
		{Config{URL: "https://example.com", SHA256: "abc"}, "64 hexadecimal digits"},
		{Config{URL: "https://example.com", Format: "csv"}, `no format is called "csv"`},
	}
	for _, tt := range tests {
		_, err := New(tt.cfg)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("NewRemote(%+v) = %v, want %q and no secret", tt.cfg, err, tt.want)
		}
	}
	for _, ok := range []string{"http://127.0.0.1:1/", "http://localhost/a", "http://[::1]/a", "https://example.com"} {
		if _, err := New(Config{URL: ok, SHA256: "SHA256:" + strings.Repeat("AB", 32)}); err != nil {
			t.Errorf("NewRemote(%s) = %v", ok, err)
		}
	}
}

// TestRemoteNotModified: an unchanged page costs one short answer, and nothing
// is read anew.
func TestRemoteNotModified(t *testing.T) {
	var seen []string
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since"))
		w.Header().Set("ETag", `"one"`)
		w.Header().Set("Last-Modified", "Mon, 02 Nov 2026 15:04:05 GMT")
		if r.Header.Get("If-None-Match") == `"one"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, channelList("a", "b"))
	})
	dir := t.TempDir()
	r := s.remote(t, "/channels.yaml", Config{CacheDir: dir})
	first, second := mustLoad(t, r), mustLoad(t, r)
	if len(second.Capabilities) != 2 || first.Capabilities[0] != second.Capabilities[0] {
		t.Errorf("after 304: %d capabilities, the same pointers: %v", len(second.Capabilities), first.Capabilities[0] == second.Capabilities[0])
	}
	again := mustLoad(t, s.remote(t, "/channels.yaml", Config{CacheDir: dir}))
	if len(again.Capabilities) != 2 || len(again.Problems) != 0 {
		t.Errorf("a new process after 304: %d capabilities, problems %v", len(again.Capabilities), again.Problems)
	}
	want := []string{"", `"one"Mon, 02 Nov 2026 15:04:05 GMT`, `"one"Mon, 02 Nov 2026 15:04:05 GMT`}
	if strings.Join(seen, "|") != strings.Join(want, "|") {
		t.Errorf("conditions = %q, want %q", seen, want)
	}
}

func TestRemotePin(t *testing.T) {
	good, bad := channelList("a"), channelList("a", "evil")
	s := newSite(t, text(bad))
	cfg := Config{CacheDir: t.TempDir(), SHA256: hashBytes([]byte(good))}
	refuses(t, s.remote(t, "/channels.yaml", cfg), capability.Conflict, cfg.SHA256, hashBytes([]byte(bad)), "sha256:")
	s.serve(text(good))
	r := s.remote(t, "/channels.yaml", cfg)
	loads(t, "pinned content", r, "channel:a", "")
	s.serve(text(bad))
	for name, r := range map[string]*Remote{"same process": r, "new process": s.remote(t, "/channels.yaml", cfg)} {
		if b := loads(t, name+" after a change", r, "channel:a", "remote-pin"); b.Problems[0].Severity != capability.Grave {
			t.Errorf("%s: %v, want it grave", name, b.Problems[0])
		}
	}
	cfg.SHA256 = hashBytes([]byte(bad))
	loads(t, "after the pin was moved", s.remote(t, "/channels.yaml", cfg), "channel:a channel:evil", "")
}

func TestRemoteChangedSinceFirst(t *testing.T) {
	old, changed := channelList("a"), channelList("a", "b")
	s := newSite(t, text(old))
	cfg := Config{CacheDir: t.TempDir()}
	mustLoad(t, s.remote(t, "/channels.yaml", cfg))
	s.serve(text(changed))
	for range 2 { // it is said again until somebody vouches for it
		b := loads(t, "after a change", s.remote(t, "/channels.yaml", cfg), "channel:a channel:b", "remote-changed")
		if p := b.Problems[0]; p.Severity != capability.Warning || !strings.Contains(p.String(), hashBytes([]byte(old))) || !strings.Contains(p.String(), hashBytes([]byte(changed))) {
			t.Errorf("problem %q, want a warning with both hashes", p)
		}
	}
	cfg.SHA256 = hashBytes([]byte(changed))
	loads(t, "after it was pinned", s.remote(t, "/channels.yaml", cfg), "channel:a channel:b", "")
}

func TestRemoteStale(t *testing.T) {
	s := newSite(t, text(sourcetest.Card))
	cfg := Config{CacheDir: t.TempDir()}
	mustLoad(t, s.remote(t, "/a.md", cfg))
	s.serve(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	hour := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(copyPath(cfg.CacheDir, s.URL+"/a.md"), hour, hour))
	r := s.remote(t, "/a.md", cfg)
	b := loads(t, "a page that is down", r, "token-economy", "card-size remote-stale")
	if p := b.Problems[1]; p.Severity != capability.Warning || !strings.Contains(p.Message, "502 Bad Gateway") || !strings.Contains(p.Message, "is used, 1 h") {
		t.Errorf("problem = %q, want a warning with the cause and the age", p)
	}
	body(t, r, b.Capabilities[0], "Saves tokens.")
	s.serve(text(sourcetest.Card))
	loads(t, "once it answers again", r, "token-economy", "card-size")
}

// TestRemoteNothingToFallBackTo: without a copy the error says the cause.
func TestRemoteNothingToFallBackTo(t *testing.T) {
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })
	refuses(t, s.remote(t, "/a.md?key=SECRET", Config{}), capability.Unavailable, "404 Not Found")
	gone := newSite(t, nil)
	gone.Close()
	refuses(t, gone.remote(t, "/a.md?key=SECRET", Config{}), capability.Unavailable)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.remote(t, "/a.md", Config{}).Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Load after cancel = %v, want context.Canceled", err)
	}
}

func TestRemoteUnusableContentKeepsTheLastGood(t *testing.T) {
	s := newSite(t, text(channelList("a")))
	cfg := Config{CacheDir: t.TempDir()}
	r := s.remote(t, "/channels.yaml", cfg)
	mustLoad(t, r)
	s.serve(text("channels: [\n"))
	loads(t, "after a broken page", r, "channel:a", "bad-list remote-unusable")
	s.Close()
	loads(t, "the copy on disk", s.remote(t, "/channels.yaml", cfg), "channel:a", "remote-stale")
}

func TestRemoteBounds(t *testing.T) {
	// A server that learns of the end of a request must not answer it then.
	hang := func(r *http.Request) {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	var bomb bytes.Buffer
	const limit = 1 << 20
	zeros := make([]byte, 64<<10)
	z := gzip.NewWriter(&bomb)
	for range 2 * limit / len(zeros) {
		z.Write(zeros)
	}
	z.Close()
	tests := []struct {
		name   string
		handle http.HandlerFunc
		want   string
	}{
		{"slow to answer", func(_ http.ResponseWriter, r *http.Request) { hang(r) }, "took too long"},
		{"slow to end", func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "channels:\n")
			w.(http.Flusher).Flush()
			hang(r)
		}, "took too long"},
		{"large by its own word", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(int64(10<<30)))
		}, "more than the"},
		{"large without a word", func(w http.ResponseWriter, _ *http.Request) {
			for range 2 * limit / len(zeros) {
				if _, err := w.Write(zeros); err != nil {
					return
				}
			}
		}, "more than the"},
		{"gzip bomb", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(bomb.Bytes())
		}, "more than the"},
		{"unasked encoding", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "x")
		}, `encoded as "br"`},
		{"304 unasked", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, "304"},
		{"redirects without end", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) }, "more than 3 redirects"},
		{"redirect to a private address", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://10.1.2.3/x", http.StatusFound)
		}, "10.1.2.3 is not a public address"},
		{"redirect to metadata", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://169.254.169.254/latest/meta-data", http.StatusFound)
		}, "169.254.169.254 is not a public address"},
		{"redirect to http", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://example.com/x?key=SECRET", http.StatusFound)
		}, "not https"},
		{"redirect to a file", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "file:///etc/passwd")
			w.WriteHeader(http.StatusFound)
		}, "no host"},
		{"redirect with a password", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://u:SECRET@example.com/")
			w.WriteHeader(http.StatusFound)
		}, "name and password"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, tt.handle)
			timeout := 20 * time.Second
			if strings.HasPrefix(tt.name, "slow") {
				timeout = 200 * time.Millisecond
			}
			r := s.remote(t, "/channels.yaml", Config{Timeout: timeout})
			r.limit = limit
			refuses(t, r, 0, tt.want)
			if n := s.requests.Load(); n > 1+maxRedirects {
				t.Errorf("%d requests, want at most %d", n, 1+maxRedirects)
			}
		})
	}
}

// TestRemotePrivateAddresses: no spelling of a private address is reached, and
// none is asked a thing. The check is at the moment of dialling.
func TestRemotePrivateAddresses(t *testing.T) {
	for _, host := range []string{
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "[::]", "[fe80::1]",
		"[fd00:ec2::254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::ffff:10.0.0.1]", "224.0.0.1", "255.255.255.255",
		"①②⑦.⓪.⓪.①", "127。0。0。1",
	} {
		r, err := New(Config{URL: "https://" + host + ":1/x.jsonl"})
		must(t, err)
		refuses(t, r, capability.Denied, "not a public address")
	}
	// A name that leads here, but is not this machine's by its spelling.
	s := newSite(t, text(channelList("a")))
	refuses(t, s.remote(t, "/channels.yaml", Config{Client: s.client(false)}), capability.Denied)
	if n := s.requests.Load(); n != 0 {
		t.Errorf("%d requests through a name that leads here, want none", n)
	}
	if guardedTransport(false, nil).Proxy != nil {
		t.Error("the transport takes a proxy, which would dial unchecked")
	}
}

func TestRemoteRedirectRules(t *testing.T) {
	tests := []struct {
		first, next string
		ok          bool
	}{
		{"https://example.com/a", "https://cdn.example.com/b", true},
		{"https://example.com/a", "http://example.com/b", false},
		{"https://example.com/a", "https://localhost/b", false},
		{"https://example.com/a", "https://127.0.0.1/b", false},
		{"https://example.com/a", "http://127.0.0.1/b", false},
		{"https://localhost/a", "http://127.0.0.1/b", true},
		{"https://example.com/a", "https://u:p@example.com/b", false},
	}
	for _, tt := range tests {
		r, err := New(Config{URL: tt.first})
		must(t, err)
		next := httptest.NewRequest(http.MethodGet, tt.next, nil)
		next.Header.Set("Referer", tt.first)
		err = r.client.CheckRedirect(next, []*http.Request{{}})
		if (err == nil) != tt.ok {
			t.Errorf("redirect from %s to %s: %v, want allowed %v", tt.first, tt.next, err, tt.ok)
		}
		if tt.ok && next.Header.Get("Referer") != "" {
			t.Error("the redirect tells where it came from")
		}
	}
}

// TestRemoteKeepsSecrets: what is secret in an address reaches its server and
// nothing else, and the server gives us nothing to keep for it.
func TestRemoteKeepsSecrets(t *testing.T) {
	var requests []*http.Request
	s := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r)
		http.SetCookie(w, &http.Cookie{Name: "track", Value: "me"})
		io.WriteString(w, "channels:\n- {platform: a}\n- 7\n")
	})
	dir := t.TempDir()
	cfg := Config{URL: strings.Replace(s.URL, "https://", "https://lovelace:S3CRET@", 1) + "/channels.yaml?token=S3CRET", CacheDir: dir, Client: s.client(true)}
	r, err := New(cfg)
	must(t, err)
	t.Cleanup(func() { r.Close() })
	mustLoad(t, r)
	b := mustLoad(t, r)
	out, err := json.Marshal(b)
	must(t, err)
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("copies = %v, %v, want one", entries, err)
	}
	kept, err := os.ReadFile(filepath.Join(dir, entries[0].Name()))
	must(t, err)
	for what, s := range map[string]string{"name": r.Name(), "batch": string(out), "copy": string(kept), "file name": entries[0].Name()} {
		if strings.Contains(s, "S3CRET") || strings.Contains(s, "lovelace") {
			t.Errorf("the %s shows the secret: %s", what, s)
		}
	}
	if user, password, _ := requests[0].BasicAuth(); user != "lovelace" || password != "S3CRET" || requests[0].URL.RawQuery != "token=S3CRET" {
		t.Errorf("the server got %q %q %q", user, password, requests[0].URL.RawQuery)
	}
	if len(requests[1].Cookies()) != 0 {
		t.Error("a cookie was kept and sent back")
	}
	other := newSite(t, func(w http.ResponseWriter, r *http.Request) {
		requests = append(requests, r)
		io.WriteString(w, channelList("a"))
	})
	s.serve(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/channels.yaml", http.StatusFound)
	})
	cfg.Client.Transport.(*http.Transport).TLSClientConfig.RootCAs.AddCert(other.Certificate())
	mustLoad(t, r)
	if to := requests[len(requests)-1]; to.Host != other.Listener.Addr().String() || to.Header.Get("Authorization") != "" || to.Referer() != "" {
		t.Errorf("the redirect took to %s: authorization %q, referer %q", to.Host, to.Header.Get("Authorization"), to.Referer())
	}
	if info, err := entries[0].Info(); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the copy = %v, %v, want 0600", info.Mode(), err)
	}
}

func TestRemoteDamagedCopy(t *testing.T) {
	s := newSite(t, text(channelList("a")))
	for name, damage := range map[string]func([]byte) []byte{
		"flipped byte": func(b []byte) []byte { b[len(b)-3] ^= 1; return b },
		"cut":          func(b []byte) []byte { return b[:len(b)-4] },
		"no header":    func(b []byte) []byte { return []byte("\n" + string(b)) },
		"one line":     func([]byte) []byte { return []byte("{}") },
		"empty":        func([]byte) []byte { return nil },
		"long header":  func([]byte) []byte { return bytes.Repeat([]byte("x"), maxRemoteHeader*2) },
	} {
		cfg := Config{CacheDir: t.TempDir()}
		mustLoad(t, s.remote(t, "/channels.yaml", cfg))
		file := copyPath(cfg.CacheDir, s.URL+"/channels.yaml")
		data, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, damage(data), 0o600)
		}
		must(t, err)
		loads(t, name, s.remote(t, "/channels.yaml", cfg), "channel:a", "remote-copy")
		loads(t, name+", again", s.remote(t, "/channels.yaml", cfg), "channel:a", "")
	}
	notADir := sourcetest.Write(t, t.TempDir(), "file", "x")
	loads(t, "without room for a copy", s.remote(t, "/channels.yaml", Config{CacheDir: notADir}), "channel:a", "remote-copy remote-copy")
}

func TestRemoteDetailAfterChange(t *testing.T) {
	s := newSite(t, text(sourcetest.Card))
	r := s.remote(t, "/a.md", Config{CacheDir: t.TempDir()})
	old := mustLoad(t, r).Capabilities[0]
	s.serve(text(strings.Replace(sourcetest.Card, "Saves", "Burns", 1)))
	now := mustLoad(t, r).Capabilities[0]
	if _, err := r.Detail(context.Background(), old); capability.KindOf(err) != capability.Conflict {
		t.Errorf("Detail of the old card = %v, want a conflict", err)
	}
	body(t, r, now, "Burns tokens.")
	must(t, r.Close())
	if _, err := r.Detail(context.Background(), now); capability.KindOf(err) != capability.NotFound {
		t.Errorf("Detail after Close = %v, want not found", err)
	}
}

// TestRemoteDetailWhileLoading is for the race detector.
func TestRemoteDetailWhileLoading(t *testing.T) {
	var n atomic.Int32
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "---\nid: a\ntriggers: {keywords: [a]}\n---\nBody %d.\n", n.Add(1))
	})
	r := s.remote(t, "/a.md", Config{CacheDir: t.TempDir()})
	c := mustLoad(t, r).Capabilities[0]
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				if _, err := r.Detail(context.Background(), c); err != nil && capability.KindOf(err) != capability.Conflict {
					t.Errorf("Detail = %v", err)
				}
			}
		})
	}
	for range 10 {
		mustLoad(t, r)
	}
	wg.Wait()
}

// handlerTransport answers requests by a handler, without a network, so that
// time can be the test's.
type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestRemoteWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var content atomic.Value
		content.Store(channelList("a"))
		var requests atomic.Int32
		page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			if s := content.Load().(string); s == "" {
				w.WriteHeader(http.StatusServiceUnavailable)
			} else {
				io.WriteString(w, s)
			}
		})
		r, err := New(Config{URL: "https://example.com/channels.yaml", Refresh: time.Minute, Client: &http.Client{Transport: handlerTransport{page}}})
		must(t, err)
		first := mustLoad(t, r)
		ctx, cancel := context.WithCancel(t.Context())
		batches := make(chan capability.Batch, 1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for b, err := range r.Watch(ctx) {
				if err != nil {
					t.Errorf("Watch: %v", err)
				}
				batches <- b
			}
		}()
		next := func(after time.Duration) *capability.Batch {
			time.Sleep(after)
			synctest.Wait()
			select {
			case b := <-batches:
				return &b
			default:
				return nil
			}
		}
		if b := next(5*time.Minute + time.Second); b != nil || requests.Load() != 6 {
			t.Fatalf("an unchanged page: %v after %d requests, want nothing after 6", b, requests.Load())
		}
		content.Store(channelList("a", "b"))
		b := next(time.Minute)
		if b == nil || sourcetest.IDs(*b) != "channel:a channel:b" || codesOf(*b) != "remote-changed" {
			t.Fatalf("a changed page: %+v, want both channels and a warning", b)
		}
		if b.Capabilities[0] != first.Capabilities[0] {
			t.Error("the channel that did not change is another pointer")
		}
		content.Store("")
		if b := next(time.Minute); b == nil || sourcetest.IDs(*b) != "channel:a channel:b" || codesOf(*b) != "remote-stale remote-changed" || !strings.Contains(b.Problems[0].Message, "1 min old") {
			t.Fatalf("a page that is down: %+v, want what was there and its age", b)
		}
		content.Store(channelList("a", "b"))
		if b := next(time.Minute); b == nil || codesOf(*b) != "remote-changed" {
			t.Fatalf("a page that is back: %+v, want no word of the outage", b)
		}
		cancel()
		<-done
	})
}

func TestRemoteWatchNever(t *testing.T) {
	r, err := New(Config{URL: "https://example.com/channels.yaml", Refresh: -1, Client: &http.Client{Transport: handlerTransport{text(channelList("a"))}}})
	must(t, err)
	mustLoad(t, r)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for b, err := range r.Watch(ctx) {
		t.Errorf("Watch yielded %v, %v, want nothing", b, err)
	}
}

// must ends the test where there is an error.
func must(t interface {
	Helper()
	Fatal(args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
