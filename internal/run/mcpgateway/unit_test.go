//go:build unix

package mcpgateway

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/run/mcpgateway/link"
	"ken/internal/run/sandbox"
	"ken/internal/testkit"
)

// TestBackOff: each failure doubles the time in which nothing is tried, and
// calls meanwhile are answered at once with the reason.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		def := stdio(t, "s", "plain")
		def.Command = "no-such-program"
		g, err := New(Config{Servers: []Server{def}, Work: t.TempDir(), Require: sandbox.Off})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		s := g.all()[0]
		call := callAs("ada", "", "s/echo", "")
		want := firstPause
		for try := 1; try <= 12; try++ {
			refused(t, g, call, capability.Unavailable, "no-such-program")
			s.mu.Lock()
			b := s.backs[key{principal: "ada"}]
			s.mu.Unlock()
			left := b.until.Sub(now())
			if b.failures != try || left < want/2 || left > want {
				t.Fatalf("after failure %d (of %d): %v left, want %v to %v", try, b.failures, left, want/2, want)
			}
			for range 5 {
				begun := now()
				if refused(t, g, call, capability.Unavailable, "Ken starts it again in", "no-such-program", "fix command of s in "); !now().Equal(begun) {
					t.Fatalf("while it is left alone, the answer takes %v", now().Sub(begun))
				}
			}
			if b.failures != try {
				t.Fatalf("calls in between count as failures: %d, want %d", b.failures, try)
			}
			if st := g.Status()[0]; st.State != BackingOff {
				t.Fatalf("State = %s, want backing off", st.State)
			}
			time.Sleep(left)
			want = min(2*want, mostPause)
		}
	})
}

// TestBackgroundGivesUp: starting a server that has no callers is not tried forever.
func TestBackgroundGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		def := stdio(t, "s", "plain")
		def.Command, def.Args = "no-such-program", []string{"${TRY}"}
		var tries atomic.Int64 // the command is looked for once in each
		g, err := New(Config{Servers: []Server{def}, Work: t.TempDir(), Require: sandbox.Off, Getenv: func(name string) (string, bool) {
			if name == "TRY" {
				tries.Add(1)
			}
			return "", true
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		load(t, g)
		batches := watch(t, g.Sources()[0])
		time.Sleep(time.Hour)
		b := <-batches
		if len(b.Problems) != 1 || b.Problems[0].Code != "mcp-server" || !strings.Contains(b.Problems[0].Message, "no-such-program") {
			t.Errorf("the batch is %+v, want the problem", b)
		}
		if n := tries.Load(); n != backgroundTries {
			t.Errorf("%d tries, want %d", n, backgroundTries)
		}
		if st := g.Status()[0]; st.State != Failed {
			t.Errorf("State = %s, want failed", st.State)
		}
	})
}

func TestExpand(t *testing.T) {
	get := func(name string) (string, bool) {
		v, ok := map[string]string{"A": "alpha", "secret:S": "sesame1", "EMPTY": "", "X.Y-Z": "dots"}[name]
		return v, ok
	}
	for in, want := range map[string]string{
		"plain": "plain", "${A}": "alpha", "a${A}b${A}": "aalphabalpha", "${secret:S}": "sesame1", "${env:A}": "alpha",
		"${EMPTY}": "", "${EMPTY:-x}": "", "${B:-beta}": "beta", "${B:-}": "", "${B}": "!B", "${secret:T} ${B}": "!B, secret T (ken secret set T)",
		"$A": "$A", "${}": "${}", "${1}": "${1}", "${A": "${A", "$${A}": "$alpha", "${X.Y-Z}": "dots", "${A}${secret:S}": "alphasesame1",
	} {
		x := &expander{get: get}
		got := x.expand(in)
		if err := x.err(); err != nil {
			got = "!" + strings.TrimPrefix(err.Error(), "the definition refers to values that are not set: ")
		}
		if got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
	x := &expander{get: get}
	x.expand("${secret:S}${A}")
	if got := x.hide("say sesame1 and alpha"); got != "say [hidden] and alpha" {
		t.Errorf("hide() = %q", got)
	}
}

// TestExpandForeign: in the definition of another program no name stands for a
// sealed secret.
func TestExpandForeign(t *testing.T) {
	values := map[string]string{"A": "alpha", "env:A": "alpha", "BOTH": "sealed", "env:BOTH": "plain", "secret:S": "sealed", "S": "sealed"}
	g := &Gateway{cfg: Config{Getenv: func(name string) (string, bool) { v, ok := values[name]; return v, ok }}}
	for in, want := range map[string]string{
		"${A}": "alpha", "${env:A}": "alpha", "${BOTH}": "plain", "${S}": "!S", "${env:S}": "!S", "${S:-x}": "x",
		"${secret:S}": "!secret S (which a file of mcp.import cannot have)",
		"${PWD} ${OLDPWD} ${INIT_CWD} ${CLAUDE_PROJECT_DIR} ${workspaceFolder}": "/project /project /project /project /project",
	} {
		x := g.expander(&Server{Foreign: true, Folder: "/project"})
		got := x.expand(in)
		if err := x.err(); err != nil {
			got = "!" + strings.TrimPrefix(err.Error(), "the definition refers to values that are not set: ")
			if fix := err.(*unset).fix(); strings.Contains(fix, "ken secret set") {
				t.Errorf("fix of %s = %q, which would not help", in, fix)
			}
		}
		if got != want {
			t.Errorf("expand(%q) = %q, want %q", in, got, want)
		}
	}
	// Without a client's folder there is none; that of the daemon never counts.
	values["PWD"] = "/the/daemon's"
	x := g.expander(&Server{})
	if got := x.expand("${PWD:-/tmp}"); got != "/tmp" || x.expand("${PWD}") != "" || x.err() == nil {
		t.Errorf("${PWD:-/tmp} without a folder = %q, %v", got, x.err())
	}
}

// TestExpandOnce: a value is never read as a name again.
func TestExpandOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[$}{:A-Za-z_-]{0,20}`).Draw(t, "value")
		x := &expander{get: func(string) (string, bool) { return value, true }}
		if got := x.expand("<${A}>"); got != "<"+value+">" {
			t.Fatalf("expand with value %q = %q", value, got)
		}
	})
}

func TestFits(t *testing.T) {
	for _, tt := range []struct {
		template, uri string
		want          bool
	}{
		{"file:///{path}", "file:///a/b", true}, {"file:///{path}", "note:///a", false}, {"x://{a}/m/{b}", "x://1/m/2", true},
		{"x://{a}/m/{b}", "x://1/n/2", false}, {"x://{a}/end", "x://1/end", true}, {"x://{a}/end", "x://1/endless", false},
		{"x://fixed", "x://fixed", true}, {"x://fixed", "x://fixed2", false}, {"x://{a", "x://1", false}, {"", "", true},
	} {
		if got := fits(tt.template, tt.uri); got != tt.want {
			t.Errorf("fits(%q, %q) = %v, want %v", tt.template, tt.uri, got, tt.want)
		}
	}
}

func someLists(t testing.TB, tools int) *lists {
	t.Helper()
	got := link.Lists{
		Notes: []string{"a note,\nwith a line"}, Prompts: []*mcp.Prompt{{Name: "p"}},
		Resources: []*mcp.Resource{{URI: "x://a", Name: "a"}}, Templates: []*mcp.ResourceTemplate{{URITemplate: "x://{a}"}},
	}
	for i := range tools {
		got.Tools = append(got.Tools, &mcp.Tool{Name: "t" + strings.Repeat("x", i), Description: "two\nlines, and ],", InputSchema: map[string]any{"type": "object"}})
	}
	l, err := newLists("s", link.Info{Name: "n", HasPrompts: true, HasResources: true, Pid: 7}, got, time.Unix(1700000000, 0), strings.Clone)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestListsHoldNoSecrets: what a server repeats of a secret that it was given is
// in no list, whatever part of it says so.
func TestListsHoldNoSecrets(t *testing.T) {
	const token = `tok"en\4711<é>`
	redact := func(s string) string { return strings.ReplaceAll(s, token, "[redacted]") }
	got := link.Lists{
		Tools: []*mcp.Tool{
			{Name: "go", Title: token, Description: "uses " + token, InputSchema: map[string]any{"type": "object", "properties": map[string]any{token: map[string]any{"default": token, "maximum": 5}}}},
			{Name: "go-" + token}, {Name: "plain", Description: `"quoted" \ text`},
		},
		Prompts: []*mcp.Prompt{{Name: "p", Description: token}}, Templates: []*mcp.ResourceTemplate{{URITemplate: "x://{a}", Name: token}},
		Resources: []*mcp.Resource{{URI: "x://" + token}, {URI: "y://" + token}, {URI: "x://a", Name: token}},
	}
	l, err := newLists("s", link.Info{Name: token, Instructions: "say " + token}, got, time.Unix(1700000000, 0), redact)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := parseLists(bytes.Clone(l.data)); err != nil || back.sum != l.sum {
		t.Errorf("parseLists() = %v", err)
	}
	if bytes.Contains(l.data, []byte("4711")) || strings.Contains(fmt.Sprint(l.Info, l.Prompts[0], l.Templates[0], l.Resources[0]), "4711") {
		t.Errorf("the lists hold the secret: %s", l.data)
	}
	if len(l.tools) != 2 || !bytes.Contains(l.tool(0), []byte(`"maximum":5`)) || !bytes.Contains(l.tool(1), []byte(`\"quoted\"`)) || len(l.Resources) != 1 {
		t.Errorf("the lists are %s", l.data)
	}
	if notes := strings.Join(l.Notes, "\n"); !strings.Contains(notes, "1 tool is left out") || !strings.Contains(notes, "2 resources are left out") {
		t.Errorf("notes = %q", notes)
	}
}

func TestListsRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 2, 9} {
		l := someLists(t, n)
		got, err := parseLists(bytes.Clone(l.data))
		if err != nil {
			t.Fatalf("%d tools: parseLists() = %v", n, err)
		}
		if got.sum != l.sum || len(got.tools) != n || !got.listed.Equal(l.listed) || len(got.Prompts) != 1 || got.Info.Name != "n" || got.Info.Pid != 0 || got.Notes[0] != l.Notes[0] {
			t.Errorf("%d tools: parseLists() = %+v", n, got)
		}
		for i := range got.tools {
			if !bytes.Equal(got.tool(i), l.tool(i)) {
				t.Errorf("tool %d = %s, want %s", i, got.tool(i), l.tool(i))
			}
		}
		// Whatever byte is changed or missing, it is noticed, or nothing changed.
		for at := range l.data {
			bad := bytes.Clone(l.data)
			bad[at] ^= 1
			if got, err := parseLists(bad); err == nil && (len(got.tools) != n || got.sum != l.sum) {
				t.Fatalf("byte %d changed: %+v", at, got)
			}
			if _, err := parseLists(l.data[:at]); err == nil {
				t.Fatalf("cut at %d: no error", at)
			}
		}
	}
}

func FuzzLists(f *testing.F) {
	f.Add(someLists(f, 3).data)
	f.Add([]byte("{\"version\":1,\"head\":{},\n\"tools\":[\n\n],\"sum\":\"x\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := parseLists(data)
		if err != nil {
			return
		}
		for i := range l.tools {
			_ = l.tool(i)
		}
	})
}

// TestDamagedFile: the damage is reported, and the server is listed again. A file that
// was edited and has the sum of before is damaged, too.
func TestDamagedFile(t *testing.T) {
	testkit.CI(t, "starts six servers")
	for name, damage := range map[string]func(data []byte) []byte{
		"another": func([]byte) []byte { return []byte("{}") },
		"short":   func(data []byte) []byte { return data[:len(data)/2] },
		"edited": func(data []byte) []byte {
			return bytes.Replace(data, []byte(`"name":"echo"`), []byte(`"name":"echoed"`), 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{CacheDir: t.TempDir()}
			def := stdio(t, "s", "plain")
			first := listed(t, cfg, def)
			file := first.shelf.file(first.all()[0].id)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if bad := damage(data); bytes.Equal(bad, data) {
				t.Fatal("nothing is damaged")
			} else if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			second := gateway(t, cfg, def)
			b := load(t, second)
			if len(b.Capabilities) != 0 || len(b.Problems) != 2 || b.Problems[0].Code != "mcp-cache" {
				t.Fatalf("Load = %+v", b)
			}
			if got := byID(<-watch(t, second.Sources()[0])); got["mcp:s/echo"] == nil {
				t.Errorf("after the file was damaged: %v", got)
			}
			if l, err := second.shelf.load(second.all()[0].id); err != nil || l == nil {
				t.Errorf("the file is not written again: %v", err)
			}
		})
	}
}

// TestImportedProfile: a server sees what its user sees, but for the folders and files
// that are hidden.
func TestImportedProfile(t *testing.T) {
	if p := sandbox.Probe(t.Context()).Isolation.Profile; p != sandbox.Full {
		t.Skip("cannot here: hiding folders takes the full profile, this machine gives " + string(p))
	}
	dir, err := os.MkdirTemp("", "mcpgateway-") // t.TempDir lies below a closed directory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"open/file": "seen", "ken/secret": "hidden", "open/ken.yaml": "hidden"} {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	def := stdio(t, "s", "plain")
	narrow := stdio(t, "n", "plain")
	program, err := os.ReadFile(def.Command)
	if err != nil {
		t.Fatal(err)
	}
	narrow.Command = filepath.Join(dir, "bin", "server")
	if err := errors.Join(os.Mkdir(filepath.Dir(narrow.Command), 0o755), os.WriteFile(narrow.Command, program, 0o755)); err != nil {
		t.Fatal(err)
	}
	narrow.Profile, narrow.Read = ProfileConfined, []string{filepath.Dir(narrow.Command)}
	g := listed(t, Config{Require: sandbox.RequireFull, Hide: []string{filepath.Join(dir, "ken")}, HideFiles: []string{filepath.Join(dir, "open/ken.yaml"), filepath.Join(dir, "open/ken.json")}}, def, narrow)
	peek := func(server, name string) string {
		return invoke(t, g, callAs("ada", "", server+"/peek", `{"text":"`+filepath.Join(dir, name)+`"}`))
	}
	if got := peek("s", "open/file"); !strings.HasPrefix(got, "seen|") {
		t.Errorf("an imported server reads %q", got)
	}
	for _, name := range []string{"ken/secret", "open/ken.yaml"} {
		if got := peek("s", name); strings.Contains(got, "hidden") {
			t.Errorf("an imported server reads Ken's own %s: %q", name, got)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "open/ken.json")); err == nil {
		t.Error("a file to hide that was not there is made")
	}
	if got := peek("n", "open/file"); strings.Contains(got, "seen") {
		t.Errorf("a confined server reads %q", got)
	}
	for _, st := range g.Status() {
		if st.Isolation == nil || st.Isolation.Profile != sandbox.Full || (st.Name == "s") != strings.Contains(strings.Join(st.Isolation.Missing, " "), "file") {
			t.Errorf("%s: isolation %+v", st.Name, st.Isolation)
		}
	}
	f, err := g.Facts(t.Context(), callAs("ada", "", "n/peek", ""), nil)
	if err != nil || len(f.Isolation) == 0 || strings.Join(f.Required, " ") != "exec" {
		t.Errorf("Facts() = %+v, %v", f, err)
	}
}
