package browser

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/sandbox"
	"ken/internal/run/sandbox/egress"
	"ken/internal/testkit"
	"ken/internal/testkit/executortest"
)

// needChromium skips a test where there is no Chromium, or no sandbox that it
// can run in.
func needChromium(t testing.TB) {
	t.Helper()
	testkit.CI(t, "needs Chromium")
	if !slices.ContainsFunc(Programs(), func(name string) bool { _, err := exec.LookPath(name); return err == nil }) {
		t.Skip("cannot here: no Chromium")
	}
	if sandbox.Probe(t.Context()).Isolation.Profile != sandbox.Full {
		t.Skip("cannot here: there is no full sandbox")
	}
}

// A rig is an executor with one tool for each verb.
type rig struct {
	*Executor
	dir, workspace string
}

func newRig(t testing.TB, change func(*Config)) *rig {
	t.Helper()
	r := &rig{dir: t.TempDir(), workspace: t.TempDir()}
	cfg := Config{
		Extensions: filepath.Join(r.dir, "extensions"), Workspace: r.workspace, Lookup: lookup,
		Networks: func() []netip.Prefix {
			return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("169.254.0.0/16")}
		},
	}
	if change != nil {
		change(&cfg)
	}
	e, err := New(cfg)
	executortest.Must(t, err)
	r.Executor = e
	t.Cleanup(func() { e.Close() })
	return r
}

func lookup(_ context.Context, id capability.ID) (*capability.Capability, capability.Detail, error) {
	verb := strings.TrimPrefix(string(id), "tool:")
	return &capability.Capability{
		ID: id, Kind: capability.KindTool, Name: verb, Trust: capability.TrustUser, RequiredTools: []string{"extension:tools.browse"},
		Origin: capability.Origin{Format: capability.FormatExtension}, Run: &capability.Recipe{Runner: "browser." + verb}, Hash: "h",
	}, capability.Detail{}, nil
}

type object = map[string]any

func call(session, verb string, args object) capability.Call {
	if args == nil {
		args = object{}
	}
	c := executortest.Call("tool:"+verb, args)
	c.Session = session
	return c
}

// do makes a call that must succeed, and returns its text.
func (r *rig) do(t testing.TB, session, verb string, args object) string {
	t.Helper()
	res, err := r.Invoke(t.Context(), call(session, verb, args))
	if err != nil || res.Failed {
		t.Fatalf("%s %v = %s, %v", verb, args, executortest.Text(res, ""), err)
	}
	return executortest.Text(res, "")
}

// fails makes a call that must fail with a text, and returns it.
func (r *rig) fails(t testing.TB, session, verb string, args object, want string) string {
	t.Helper()
	res, err := r.Invoke(t.Context(), call(session, verb, args))
	text := fmt.Sprint(executortest.Text(res, ""), err)
	if err == nil && !res.Failed || !strings.Contains(strings.ToLower(text), strings.ToLower(want)) {
		t.Errorf("%s %v = %s, want a failure with %q", verb, args, text, want)
	}
	return text
}

func has(t testing.TB, what, text string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%s = %s\nwant %q in it", what, text, w)
		}
	}
}

// ref finds the reference of what a reading calls so.
func ref(t testing.TB, reading, before, after string) string {
	t.Helper()
	_, rest, ok := strings.Cut(reading, before)
	name, _, ok2 := strings.Cut(rest, after)
	if !ok || !ok2 || !strings.HasPrefix(name, "e") {
		t.Fatalf("no reference between %q and %q in %s", before, after, reading)
	}
	return name
}

const formPage = `<!doctype html><title>Harbour</title><h1>The ships are in</h1>
<p>Two <a href="/two?x=1">arrived</a> today.<p style="display:none">hidden orders</p><p style="opacity:0">faint orders</p>
<form action="/done" method=get><label>Name <input name=n></label> <label>Kind <select name=k><option>Tug<option value=f>Ferry</select></label>
<label><input type=checkbox name=c>Customs</label> <input type=date name=d aria-label=Day> <input type=password name=p value=hunter2><button>Send</button></form>
<table><caption>Berths</caption><tr><th>Berth<th>Ship<tr><td>1<td>Ada</table><div id=late></div>
<script>setTimeout(() => late.textContent = "made by script", 300)</script>`

// site is the server of the tests. Hits of paths are counted.
type site struct {
	*httptest.Server
	hits  atomic.Int64 // of /private
	never chan struct{}
}

func newSite(t testing.TB) *site {
	s := &site{never: make(chan struct{})}
	page := func(path, text string) func(*http.ServeMux) {
		return func(m *http.ServeMux) {
			m.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				io.WriteString(w, text)
			})
		}
	}
	mux := http.NewServeMux()
	for _, add := range []func(*http.ServeMux){
		page("/form", formPage), page("/two", "<title>Two</title>second page <a href=/form>back</a>"),
		page("/dialog", "<script>alert('one'); document.write(confirm('two') ? 'agreed' : 'declined'); prompt('three')</script>after"),
		page("/endless", "<p>busy</p><script>addEventListener('load', () => setTimeout(() => { for (;;) ; }, 50))</script>"),
		page("/busy", "<script>for (;;) ;</script>"),
		page("/popup", "<a href=/two target=_blank>new window</a>"),
		page("/offer", "<script>location = '/file.csv'</script>offer"),
		page("/links", "<a href=/file.csv>the file</a> <a href=/two>the page</a>"),
		page("/cover", "<button onclick=\"document.title='hit'\">Below</button><div style='position:fixed;inset:0;background:#fff'>on top</div>"),
		page("/gone", "<button onclick='this.remove()'>Once</button>"),
		page("/liar", "<p>the truth</p><script>document.querySelectorAll = () => []; JSON.stringify = () => 'lies'; Object.defineProperty(document, 'title', {get: () => 'lies'}); globalThis.ken = {read: () => ({text: 'lies'})}</script>"),
		page("/upload", "<form action=/take method=post enctype=multipart/form-data><input type=file name=f aria-label=File><button>Send</button></form>"),
		page("/frames", "<iframe src=/two></iframe>"),
		page("/big", bigPage()),
		page("/tofile", "<a href='file:///etc/passwd'>passwd</a><iframe src='file:///etc/passwd'></iframe><script>setTimeout(() => location = 'file:///etc/passwd', 20)</script>stay"),
	} {
		add(mux)
	}
	mux.HandleFunc("/done", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "got %s", r.URL.RawQuery) })
	mux.HandleFunc("/missing", http.NotFound)
	mux.HandleFunc("/private", func(http.ResponseWriter, *http.Request) { s.hits.Add(1) })
	mux.HandleFunc("/file.csv", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", `attachment; filename="../../ships .csv"`)
		io.WriteString(w, "name,berth\nAda,1\n")
	})
	mux.HandleFunc("/bytes", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "image/png")
		w.Write([]byte("\x89PNG\r\n\x1a\n\x00\xff"))
	})
	mux.HandleFunc("/flood", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=flood")
		for block := bytes.Repeat([]byte{0}, 64<<10); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/take", func(w http.ResponseWriter, r *http.Request) {
		f, h, err := r.FormFile("f")
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		data, _ := io.ReadAll(f)
		fmt.Fprintf(w, "took %s: %s", h.Filename, data)
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("a"))
		w.WriteHeader(http.StatusFound)
	})
	mux.HandleFunc("/loads", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		for _, a := range r.URL.Query()["a"] {
			fmt.Fprintf(w, "<img src=%q><iframe src=%[1]q></iframe><script>fetch(%[1]q, {mode: 'no-cors'}).catch(() => 0)</script>", a)
		}
		io.WriteString(w, "loaded")
	})
	mux.HandleFunc("/never", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-s.never:
		case <-r.Context().Done():
		}
	})
	s.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		close(s.never)
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// bigPage has 200 KB of text, links and tables.
func bigPage() string {
	var b strings.Builder
	b.WriteString("<!doctype html><title>Big</title><h1>Register</h1>")
	for n := 0; b.Len() < 200<<10; n++ {
		fmt.Fprintf(&b, "<h2>Ship %d</h2><p>The <b>ship</b> number %d lies at <a href='/ship/%[2]d'>berth %[2]d</a> and waits for the tide. <button>Call %[2]d</button></p>", n, n)
		if n%10 == 0 {
			fmt.Fprintf(&b, "<table><tr><th>a<th>b<tr><td>%d<td>two</table>", n)
		}
	}
	return b.String()
}

// TestBrowserPage uses one page as a model would: it reads, fills, selects,
// clicks, takes pictures and saves files. One browser serves the whole test.
func TestBrowserPage(t *testing.T) {
	needChromium(t)
	r, s := newRig(t, nil), newSite(t)
	work := filepath.Join(r.dir, "extensions", "tools.browse", "work")

	text := r.do(t, "s", "open", object{"url": s.URL + "/form"})
	has(t, "open", text, "Harbour", s.URL+"/form", "# The ships are in", "Two [arrived](e", "Table: Berths", "| 1 | Ada |", "(off)", ": Send]")
	for _, hidden := range []string{"hidden orders", "faint orders", "hunter2"} {
		if strings.Contains(text, hidden) {
			t.Errorf("open shows %q: %s", hidden, text)
		}
	}
	name, kind, customs, send := ref(t, text, "[input ", ": Name"), ref(t, text, "[select ", ": Kind"), ref(t, text, "[checkbox ", ": Customs"), ref(t, text, "[button ", ": Send")
	day := ref(t, text[strings.Index(text, "[checkbox "):], "[input ", ": Day")
	has(t, "wait", r.do(t, "s", "wait", object{"text": "made by script"}), "made by script")
	has(t, "links", r.do(t, "s", "read", object{"as": "links"}), "arrived -> "+s.URL+"/two?x=1")
	has(t, "tables", r.do(t, "s", "read", object{"as": "tables"}), "| Berth | Ship |\n| --- | --- |\n| 1 | Ada |")
	has(t, "tree", r.do(t, "s", "read", object{"as": "tree"}), `heading "The ships are in"`, `textbox "Name" [`+name+"]", `button "Send" [`+send+"]")
	has(t, "part", r.do(t, "s", "read", object{"element": "table"}), "Ada")
	has(t, "parts", r.do(t, "s", "read", object{"selector": "h1, td"}), "# The ships are in\n\n1\n\nAda")
	r.fails(t, "s", "read", object{"element": "#nothing"}, "no element matches")
	r.fails(t, "s", "click", object{"element": "e999"}, "is not of the last read")

	has(t, "fill", r.do(t, "s", "fill", object{"element": name, "text": "Grace & co"}), "Filled input \"Name\" with 10 characters")
	has(t, "fill again", r.do(t, "s", "fill", object{"element": name, "text": "Ada & co"}), "Filled")
	r.do(t, "s", "fill", object{"element": day, "text": "2026-11-17"})
	r.fails(t, "s", "fill", object{"element": kind, "text": "f"}, "use select")
	r.fails(t, "s", "select", object{"element": kind, "value": "Raft"}, "there are: Tug, Ferry")
	has(t, "select", r.do(t, "s", "select", object{"element": kind, "value": "Ferry"}), "Selected Ferry")
	r.do(t, "s", "click", object{"element": customs})
	has(t, "read", r.do(t, "s", "read", nil), `= "Ada & co"`, `= "Ferry" of`, name+": Name")
	has(t, "click", r.do(t, "s", "click", object{"element": send}), "It led to another page", "/done?", "got n=Ada+%26+co&k=f&c=on&d=2026-11-17&p=hunter2")
	r.fails(t, "s", "click", object{"element": send}, "is not of the last read")

	t.Run("pictures", func(t *testing.T) {
		r.do(t, "s", "open", object{"url": s.URL + "/big"})
		for _, args := range []object{{}, {"full": true}, {"element": "h1"}} {
			res, err := r.Invoke(t.Context(), call("s", "screenshot", args))
			if err != nil || res.Failed || len(res.Parts) == 0 {
				t.Fatalf("screenshot %v = %+v, %v", args, res, err)
			}
			last := res.Parts[len(res.Parts)-1]
			if args["full"] != nil {
				has(t, "full", executortest.Text(res, ""), "first 8000 of")
			}
			if last.MIME != "image/png" && last.MIME != "image/jpeg" {
				t.Errorf("screenshot %v is %s", args, last.MIME)
			}
			if last.MIME == "image/png" {
				picture, err := png.DecodeConfig(bytes.NewReader(last.Data))
				if err != nil || picture.Width < 100 || args["element"] != nil && picture.Height > 200 {
					t.Errorf("screenshot %v = %+v, %v", args, picture, err)
				}
			}
		}
		r.do(t, "s", "open", object{"url": s.URL + "/two"})
		res, err := r.Invoke(t.Context(), call("s", "pdf", nil))
		if last := res.Parts[len(res.Parts)-1]; err != nil || last.MIME != "application/pdf" || !bytes.HasPrefix(last.Data, []byte("%PDF-")) {
			t.Errorf("pdf = %s, %v", executortest.Text(res, ""), err)
		}
		if data, err := os.ReadFile(filepath.Join(work, "downloads", "Two.pdf")); err != nil || !bytes.HasPrefix(data, []byte("%PDF-")) {
			t.Errorf("downloads/Two.pdf: %v", err)
		}
	})

	t.Run("files", func(t *testing.T) {
		has(t, "offer", r.do(t, "s", "open", object{"url": s.URL + "/offer"})+r.do(t, "s", "wait", object{"seconds": 0.3}), "was not saved")
		has(t, "download", r.do(t, "s", "download", object{"url": s.URL + "/file.csv"}), "Saved downloads/", "name,berth")
		list := r.do(t, "s", "open", object{"url": s.URL + "/links"})
		has(t, "download a link", r.do(t, "s", "download", object{"element": ref(t, list, "the file](", ")")}), "-2.csv")
		has(t, "download a page", r.do(t, "s", "download", object{"url": s.URL + "/two"}), "second page")
		has(t, "download bytes", r.do(t, "s", "download", object{"url": s.URL + "/bytes"}), "Saved downloads/bytes")
		r.fails(t, "s", "download", object{"url": s.URL + "/missing"}, "nothing was downloaded")
		names, err := filepath.Glob(filepath.Join(work, "downloads", "*"))
		if err != nil || len(names) != 5 { // with the PDF
			t.Errorf("downloads = %v, %v", names, err)
		}
		for _, n := range names {
			if base := filepath.Base(n); strings.HasPrefix(base, ".") {
				t.Errorf("a name begins with a dot: %s", base)
			}
		}
		executortest.Must(t, os.WriteFile(filepath.Join(r.workspace, "note.txt"), []byte("for the harbour"), 0o600))
		executortest.Must(t, os.Symlink("/etc/hostname", filepath.Join(r.workspace, "link.txt")))
		form := r.do(t, "s", "open", object{"url": s.URL + "/upload"})
		field := ref(t, form, "[file ", ": File")
		r.fails(t, "s", "upload", object{"element": field, "file": "link.txt"}, "no plain file")
		r.fails(t, "s", "upload", object{"element": field, "file": "gone.txt"}, "cannot be read")
		has(t, "upload", r.do(t, "s", "upload", object{"element": field, "file": "note.txt"}), "Gave note.txt")
		has(t, "send", r.do(t, "s", "click", object{"element": ref(t, form, "[button ", ": Send")}), "took note.txt: for the harbour")
	})

	t.Run("what a page may try", func(t *testing.T) {
		has(t, "dialogs", r.do(t, "s", "open", object{"url": s.URL + "/dialog"}), "dismissed: one", "dismissed: two", "declined", "after")
		popup := r.do(t, "s", "open", object{"url": s.URL + "/popup"})
		has(t, "popup", r.do(t, "s", "click", object{"element": ref(t, popup, "window](", ")")})+r.do(t, "s", "read", nil), "was closed: "+s.URL+"/two")
		text := r.do(t, "s", "open", object{"url": s.URL + "/liar"})
		if has(t, "liar", text, "the truth"); strings.Contains(text, "lies") {
			t.Errorf("the page decides what is read: %s", text)
		}
		cover := r.do(t, "s", "open", object{"url": s.URL + "/cover"})
		r.fails(t, "s", "click", object{"element": ref(t, cover, "[button ", ": Below")}, "is covered by")
		once := r.do(t, "s", "open", object{"url": s.URL + "/gone"})
		button := ref(t, once, "[button ", ": Once")
		r.do(t, "s", "click", object{"element": button})
		r.fails(t, "s", "click", object{"element": button}, "no longer on the page")
		has(t, "frames", r.do(t, "s", "open", object{"url": s.URL + "/frames"}), "second page")
		has(t, "a status", r.do(t, "s", "open", object{"url": s.URL + "/missing"}), "HTTP status 404")
	})

	t.Run("where a page may not go", func(t *testing.T) { forbidden(t, r, s) })

	// Another session has a browser and a profile of its own.
	r.fails(t, "other", "read", nil, "no page is open in this session")
	has(t, "close", r.do(t, "s", "close", nil), "Closed the browser")
	r.fails(t, "s", "read", nil, "no page is open in this session")
}

// forbidden: no address leads a page to files, to pages of the browser itself,
// to metadata addresses, or to hosts that no call named.
func forbidden(t *testing.T, r *rig, s *site) {
	other := newSite(t)
	for _, a := range []string{"file:///etc/passwd", "chrome://version", "chrome://settings", "view-source:" + s.URL + "/two", "javascript:alert(1)", "data:text/html,x", "about:blank", "ftp://example.org/", "example.org",
		"http://user:pw@127.0.0.1/", "devtools://devtools/bundled/inspector.html", "FILE:///etc/passwd"} {
		executortest.Refused(t, r, call("s", "open", object{"url": a}), capability.Invalid, "url")
	}
	for _, a := range []string{"http://169.254.169.254/latest", "http://0xA9FEA9FE/", "http://2852039166/", "http://[::ffff:169.254.169.254]/", "http://metadata.google.internal/", "http://[fe80::1]/"} {
		executortest.Refused(t, r, call("s", "open", object{"url": a}), capability.Denied, "none is ever reached")
	}
	for _, a := range []string{other.URL + "/private", "http://169.254.169.254/private"} {
		text := r.fails(t, "s", "open", object{"url": s.URL + "/to?a=" + url.QueryEscape(a)}, "refused")
		has(t, "a redirect to "+a, text, "not on the list")
	}
	for _, a := range []string{"file:///etc/passwd", "chrome://version", "data:text/html,root:x"} {
		if text := r.fails(t, "s", "open", object{"url": s.URL + "/to?a=" + url.QueryEscape(a)}, ""); strings.Contains(text, "root:") {
			t.Errorf("a redirect to %s shows %s", a, text)
		}
	}
	text := r.do(t, "s", "open", object{"url": s.URL + "/tofile"}) + r.do(t, "s", "wait", object{"seconds": 0.3})
	if has(t, "a page that leads to a file", text, "stay"); strings.Contains(text, "root:") {
		t.Errorf("a page shows a file: %s", text)
	}
	list := url.Values{"a": {other.URL + "/private", "http://169.254.169.254/private", "http://[::ffff:a9fe:a9fe]/private", "file:///etc/passwd", "http://localhost:" + port(other.URL) + "/private"}}
	text = r.do(t, "s", "open", object{"url": s.URL + "/loads?" + list.Encode()})
	if has(t, "what a page loads", text, "loaded", "Not loaded:", "169.254.169.254"); strings.Contains(text, "root:") {
		t.Errorf("a page shows a file: %s", text)
	}
	if n := other.hits.Load(); n != 0 {
		t.Errorf("%d requests reached a host that no call named", n)
	}
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

// testLimits: a page that never ends, a server that never answers and a
// file that never ends stop at a limit, and the next call works.
func testLimits(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Network = func() (int64, int64) { return 2 << 20, 0 } })
	s := newSite(t)
	within := func(limit time.Duration, verb string, args object) (capability.Result, error) {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return r.Invoke(ctx, call("s", verb, args))
	}
	r.do(t, "s", "open", object{"url": s.URL + "/two"})
	res, err := within(4*time.Second, "open", object{"url": s.URL + "/never"})
	if err != nil || !res.Failed || !strings.Contains(executortest.Text(res, ""), "did not answer in time") {
		t.Errorf("a server that never answers: %s, %v", executortest.Text(res, ""), err)
	}
	has(t, "after that", r.do(t, "s", "open", object{"url": s.URL + "/two"}), "second page")
	if res, err := within(20*time.Second, "download", object{"url": s.URL + "/flood"}); err != nil || !res.Failed || !strings.Contains(executortest.Text(res, ""), egress.Spent) {
		t.Errorf("an endless file: %s, %v", executortest.Text(res, ""), err)
	}
	if names, _ := filepath.Glob(filepath.Join(r.dir, "extensions", "*", "work", "downloads", "*")); len(names) != 0 {
		t.Errorf("a download that broke off left %v", names)
	}
	if _, err := within(2*time.Second, "open", object{"url": s.URL + "/busy"}); capability.KindOf(err) != capability.Timeout {
		t.Errorf("an endless script: %v, want a timeout", err)
	}
	r.fails(t, "s", "read", nil, "no page is open")
	has(t, "after that", r.do(t, "s", "open", object{"url": s.URL + "/two"}), "second page")
}

// TestBrowserOtherPage: an act that was decided on for one page is not done on
// another, and its approval is not one for other pages.
func TestBrowserOtherPage(t *testing.T) {
	needChromium(t)
	r, s := newRig(t, nil), newSite(t)
	first := ref(t, r.do(t, "s", "open", object{"url": s.URL + "/form"}), "[button ", ": Send")
	decided := func(args object) (capability.Call, string) {
		t.Helper()
		c := call("s", "click", args)
		f, err := r.Facts(t.Context(), c, nil)
		executortest.Must(t, err)
		c.Code = executor.InState("", f.State)
		return c, f.State
	}
	c, state := decided(object{"element": "button"})
	text := r.do(t, "s", "open", object{"url": s.URL + "/gone"})
	if _, err := r.Invoke(t.Context(), c); capability.KindOf(err) != capability.Conflict || !strings.Contains(fmt.Sprint(err), "the page has changed") {
		t.Errorf("a click that was decided on for %s, on another page = %v (%s was %s)", state, err, first, text)
	}
	has(t, "the button", r.do(t, "s", "read", nil), "Once")
	again, other := decided(object{"element": "button"})
	if other == state || again.Code == c.Code {
		t.Errorf("the state is %q on both pages", state)
	}
	if res, err := r.Invoke(t.Context(), again); err != nil || res.Failed {
		t.Errorf("a click on the page that it was decided on for = %+v, %v", res, err)
	}
	if _, none := decided(object{"element": "button", "url": s.URL + "/form"}); none != "" {
		t.Errorf("a click that opens its page depends on the state %q", none)
	}
}
