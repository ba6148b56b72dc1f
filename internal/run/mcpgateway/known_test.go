//go:build unix

package mcpgateway

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"ken/capability"
	"ken/internal/govern/pin"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// A counted desk counts how often tools are compared with their pins.
type counted struct {
	*pin.Desk
	checks atomic.Int32
}

func (c *counted) Check(ctx context.Context, server string, tools []pin.Tool) (map[string]pin.Verdict, error) {
	if !strings.HasSuffix(server, "offers") {
		c.checks.Add(1)
	}
	return c.Desk.Check(ctx, server, tools)
}

// TestKnownList: a list that is the one before is not judged again. Whatever else
// changes, and wherever, it is.
func TestKnownList(t *testing.T) {
	testkit.CI(t, "starts thirty servers")
	const (
		one   = `{"name":"one","description":"Reads.","inputSchema":{"type":"object"}}`
		other = `{"name":"one","description":"Reads, and writes.","inputSchema":{"type":"object"}}`
		two   = `{"name":"two","description":"Counts.","inputSchema":{"type":"object"}}`
		none  = `{"resources":[]}`
		page  = `{"resources":[{"uri":"note://a","name":"a"}]}`
	)
	me := capability.Principal{ID: "ada"}
	for name, tt := range map[string]struct {
		change func(t *testing.T, r *knownRig) // between the load of the second process and its first call
		judged bool
		wants  capability.ErrorKind // of the call of "one"
	}{
		"nothing":     {change: func(*testing.T, *knownRig) {}},
		"a tool":      {change: func(t *testing.T, r *knownRig) { r.write(t, other, two, none) }, judged: true, wants: capability.Conflict},
		"the order":   {change: func(t *testing.T, r *knownRig) { r.write(t, two, one, none) }, judged: true},
		"a resource":  {change: func(t *testing.T, r *knownRig) { r.write(t, one, two, page) }, judged: true},
		"a tool less": {change: func(t *testing.T, r *knownRig) { r.write(t, two, none) }, judged: true, wants: capability.NotFound},
		"the pins":    {change: func(t *testing.T, r *knownRig) { r.forget(t, me) }, judged: true},
		"the rules":   {change: func(_ *testing.T, r *knownRig) { r.policy.Changed = pin.Accept }, judged: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newKnownRig(t)
			r.write(t, one, two, none)
			if err := listed(t, r.config(), r.def).Close(); err != nil {
				t.Fatal(err)
			}
			g := gateway(t, r.config(), r.def)
			if n := len(load(t, g).Capabilities); n < 2 {
				t.Fatalf("%d capabilities are kept, want 2", n)
			}
			tt.change(t, r)
			before := r.desk.checks.Load()
			_, err := g.Invoke(t.Context(), callAs("ada", "", "s/one", ""))
			if capability.KindOf(err) != tt.wants && (err != nil || tt.wants != 0) {
				t.Errorf("Invoke = %v, want kind %v", err, tt.wants)
			}
			if judged := r.desk.checks.Load() > before; judged != tt.judged {
				t.Errorf("judged again: %v, want %v", judged, tt.judged)
			}
		})
	}
}

// TestKnownListHoldsSecret: a secret that Ken learned of after it kept a list is taken
// out of it, although the server lists what it did before.
func TestKnownListHoldsSecret(t *testing.T) {
	r := newKnownRig(t)
	r.write(t, `{"name":"one","description":"Logs in as hunter2-hunter2.","inputSchema":{"type":"object"}}`, `{"resources":[]}`)
	if err := listed(t, r.config(), r.def).Close(); err != nil {
		t.Fatal(err)
	}
	cfg := r.config()
	cfg.Redact = func(s string) string { return strings.ReplaceAll(s, "hunter2-hunter2", "[redacted]") }
	g := gateway(t, cfg, r.def)
	load(t, g)
	before := r.desk.checks.Load()
	invoke(t, g, callAs("ada", "", "s/one", ""))
	if r.desk.checks.Load() != before {
		t.Error("the list was judged again before the call")
	}
	testkit.Wait(t, "the secret is out of what is kept", func() bool {
		for _, name := range r.files(t) {
			if text, err := os.ReadFile(name); err != nil || strings.Contains(string(text), "hunter2") {
				return false
			}
		}
		return true
	})
}

// A knownRig is a server whose lists stand in a file, and a place for what is kept of
// them.
type knownRig struct {
	def    Server
	desk   *counted
	policy pin.Policy
	dir    string
	tools  string
}

func newKnownRig(t *testing.T) *knownRig {
	r := &knownRig{dir: t.TempDir(), tools: filepath.Join(t.TempDir(), "tools")}
	r.def = stdio(t, "s", "filed")
	r.def.Env["TOOLS"] = r.tools
	d, err := pin.New(storetest.Open(t, filepath.Join(t.TempDir(), "ken.db")), pin.Config{Policy: func() pin.Policy { return r.policy }})
	if err != nil {
		t.Fatal(err)
	}
	r.desk = &counted{Desk: d}
	return r
}

func (r *knownRig) config() Config { return Config{Pins: r.desk, CacheDir: r.dir} }

func (r *knownRig) write(t *testing.T, lines ...string) {
	t.Helper()
	if err := os.WriteFile(r.tools, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *knownRig) forget(t *testing.T, by capability.Principal) {
	t.Helper()
	if err := r.desk.Forget(t.Context(), pin.ServerKey("s", r.def.Origin.Path), by); err != nil {
		t.Fatal(err)
	}
}

// files returns the files of kept lists.
func (r *knownRig) files(t *testing.T) []string {
	t.Helper()
	out, err := filepath.Glob(filepath.Join(r.dir, "*.json"))
	if err != nil || len(out) == 0 {
		t.Fatalf("the kept lists are missing: %v", err)
	}
	return out
}
