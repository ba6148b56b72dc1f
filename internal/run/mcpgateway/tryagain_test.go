//go:build unix

package mcpgateway

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ken/internal/run/sandbox"
)

// TestTryAgain: a server that lacked something and was given up starts as soon as
// it is there, whether it was listed before or never.
func TestTryAgain(t *testing.T) {
	var set atomic.Bool
	get := func(name string) (string, bool) { return "v", name == "secret:later" && set.Load() }
	def := stdio(t, "s", "plain")
	def.Env["KEY"] = "${secret:later}"
	cache := t.TempDir()
	rest := func(g *Gateway) {
		t.Helper()
		s := g.all()[0]
		if st := g.List(t.Context(), "s"); st[0].Err == "" {
			t.Fatalf("List = %+v, want that it lacks the secret", st)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, b := range s.backs { // it failed for hours
			b.failures, b.until = 20, now().Add(time.Hour)
		}
	}
	g := gateway(t, Config{Getenv: get, CacheDir: cache}, def)
	rest(g)
	set.Store(true)
	if err := g.all()[0].list(t.Context()); err == nil {
		t.Fatal("list = nil, want that it is left alone")
	}
	g.TryAgain()
	eventually(t, "the server is listed", func() bool { return !g.Status()[0].Listed.IsZero() })
	if st := g.Status()[0]; st.Err != "" || st.Tools == 0 {
		t.Errorf("Status = %+v, want it ready", st)
	}

	set.Store(false)
	known := gateway(t, Config{Getenv: get, CacheDir: cache}, def)
	load(t, known)
	rest(known)
	known.TryAgain()
	if st := known.Status()[0]; st.State == Ready || st.State == Starting {
		t.Errorf("Status = %+v, want that a server that is known waits for its next call", st)
	}
	set.Store(true)
	invoke(t, known, callAs("ada", "", "s/pid", ""))
}

// TestHideFiles: single files are hidden where they are, and not made where they
// are not.
func TestHideFiles(t *testing.T) {
	if p := sandbox.Probe(t.Context()).Isolation.Profile; p != sandbox.Full {
		t.Skip("cannot here: hiding files takes the full profile, this machine gives " + string(p))
	}
	dir, err := os.MkdirTemp("", "mcpgateway-") // t.TempDir lies below a closed directory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	there, not := filepath.Join(dir, "ken.yaml"), filepath.Join(dir, "ken.json")
	if err := os.WriteFile(there, []byte("rules"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "note"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	g := listed(t, Config{Require: sandbox.RequireFull, HideFiles: []string{there, not}}, stdio(t, "s", "plain"))
	peek := func(name string) string { return invoke(t, g, callAs("ada", "", "s/peek", `{"text":"`+name+`"}`)) }
	if got := peek(there); strings.Contains(got, "rules") {
		t.Errorf("a server reads %q", got)
	}
	if got := peek(filepath.Join(dir, "note")); !strings.Contains(got, "mine") {
		t.Errorf("a server reads %q beside it, want mine", got)
	}
	if _, err := os.Lstat(not); err == nil {
		t.Errorf("%s was made", not)
	}
}
