//go:build unix

package mcpgateway

import (
	"sync/atomic"
	"testing"
	"time"

	"ken/internal/testkit"
)

// TestTryAgain: a server that lacked something and was given up starts as soon as
// it is there, whether it was listed before or never.
func TestTryAgain(t *testing.T) {
	testkit.CI(t, "starts a server again and again")
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
	testkit.Wait(t, "the server is listed", func() bool { return !g.Status()[0].Listed.IsZero() })
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
