//go:build unix

package mcpgateway

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ken/internal/testkit"
)

// TestEmptyListIsReadAgain: a server that had nothing when it was listed first
// is listed again at the next start of Ken.
func TestEmptyListIsReadAgain(t *testing.T) {
	gate, cache := filepath.Join(t.TempDir(), "gate"), t.TempDir()
	def := stdio(t, "s", "gated")
	def.Env["GATE"] = gate
	first := listed(t, Config{CacheDir: cache}, def)
	if b := load(t, first); len(b.Capabilities) != 1 {
		t.Fatalf("the first listing has %d capabilities, want Ken's own", len(b.Capabilities))
	}
	first.Close()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second := gateway(t, Config{CacheDir: cache}, def)
	batches := watch(t, second.Sources()[0])
	for b := <-batches; len(b.Capabilities) != 2; b = <-batches {
	}
}

// TestStarting: a server that is being listed for the first time is named, and
// waited for; one that was listed, or failed, is not.
func TestStarting(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	slow := stdio(t, "slow", "gated")
	slow.Env["GATE"], slow.Env["GATE_HOLDS"] = gate, "1"
	g := gateway(t, Config{}, slow, stdio(t, "dies", "dies"))
	if starting, unlisted := g.Starting(); len(starting) != 0 || !slices.Equal(unlisted, []string{"slow", "dies"}) {
		t.Errorf("before anything runs: Starting() = %v, %v", starting, unlisted)
	}
	if g.Await(t.Context(), "") {
		t.Error("Await() waited for servers that nobody lists")
	}
	batches := watch(t, g.Sources()[0])
	watch(t, g.Sources()[1])
	testkit.Wait(t, "slow alone is starting", func() bool {
		starting, _ := g.Starting()
		return slices.Equal(starting, []string{"slow"})
	})
	testkit.Wait(t, "dies has failed", func() bool { return g.Status()[1].Err != "" })
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if !g.Await(short, "") {
		t.Error("Await() did not wait for a server that is starting")
	}
	if !g.Await(short, "slow") {
		t.Error("Await(slow) did not wait for it")
	}
	if g.Await(t.Context(), "dies") || g.Await(t.Context(), "other") {
		t.Error("Await() of a server that is not starting waited for another")
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	g.Await(t.Context(), "slow")
	select {
	case b := <-batches: // it was handed over before Await returned
		if len(b.Capabilities) != 2 {
			t.Errorf("the batch has %d capabilities, want 2", len(b.Capabilities))
		}
	default:
		if starting, _ := g.Starting(); len(starting) == 0 {
			t.Error("slow is no longer starting, and no catalog has it")
		}
	}
	testkit.Wait(t, "none is starting", func() bool { starting, _ := g.Starting(); return len(starting) == 0 })
}
