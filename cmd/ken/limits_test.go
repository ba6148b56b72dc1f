//go:build unix

package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ken/internal/store/storetest"
)

// TestClusterLimits: limits hold for all replicas together, and the share of a replica that
// was killed comes back.
func TestClusterLimits(t *testing.T) {
	t.Run("calls at once", func(t *testing.T) {
		const replicas, limit, calls = 3, 3, 5
		r := newReplicas(t, replicas, storetest.Postgres(t), shellOpen, fmt.Sprintf("limits: {perExtension: %d}\n", limit))
		shell := func(ctx context.Context, s *replica, cmd string) (int, []byte, error) {
			return requestTo(ctx, http.MethodPost, s.url+"/api/v1/invoke", r[0].token, map[string]any{"session": "all", "target": "tool:shell", "arguments": map[string]any{"cmd": cmd}})
		}
		_, asked := r[0].invoke(t, r[0].token, "all", "tool:shell", map[string]any{"cmd": "true"})
		if status, text := r[0].ask(t, http.MethodPost, "/api/v1/approvals/"+asked.ticket(), r[0].token, map[string]any{"effect": "grant", "scope": "session", "covers": "tool"}); status != http.StatusOK {
			t.Fatalf("grant: %d %s", status, text)
		}
		var all sync.WaitGroup
		for _, s := range r {
			for range calls {
				all.Go(func() {
					status, text, err := shell(t.Context(), s, "echo + >> times.txt; sleep 0.1; echo - >> times.txt")
					if status != http.StatusOK {
						t.Errorf("a call: %d %.300s %v", status, text, err)
					}
				})
			}
		}
		all.Wait()
		text, err := os.ReadFile(filepath.Join(r[0].work, "times.txt"))
		if err != nil {
			t.Fatal(err)
		}
		running, most, began := 0, 0, 0
		for line := range strings.Lines(string(text)) {
			if strings.TrimSpace(line) == "+" {
				running++
				began++
			} else {
				running--
			}
			most = max(most, running)
		}
		t.Logf("%d calls on %d replicas, at most %d at once", began, replicas, most)
		if most > limit || began != replicas*calls {
			t.Errorf("%d calls began, at most %d at once; want %d, and %d at once", began, most, replicas*calls, limit)
		}

		// One replica takes all places and is killed.
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range limit {
			all.Go(func() { _, _, _ = shell(ctx, r[0], "echo x >> long.txt; sleep 60") })
		}
		if !until(func() bool {
			text, _ := os.ReadFile(filepath.Join(r[0].work, "long.txt"))
			return strings.Count(string(text), "x") == limit
		}) {
			t.Fatal("one replica does not get all places")
		}
		_ = r[0].cmd.Process.Kill()
		killed := time.Now()
		if status, text, err := shell(t.Context(), r[1], "echo after"); status != http.StatusOK {
			t.Errorf("after a replica was killed: %d %s %v", status, text, err)
		}
		t.Logf("a call on another replica got its place %v after the kill", time.Since(killed).Round(10*time.Millisecond))
		cancel()
		all.Wait()
	})

	t.Run("requests a second", func(t *testing.T) {
		const perSecond, burst, replicas = 20, 20, 2
		r := newReplicas(t, replicas, storetest.Postgres(t), fmt.Sprintf("policy: {intents: \"off\"}\nserve: {rate: {requests: %d, burst: %d}}\n", perSecond, burst))
		var let atomic.Int64
		var all sync.WaitGroup
		began := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		each := make([]atomic.Int64, replicas)
		// It ends after four seconds, once each replica has answered often enough.
		enough := func() bool {
			return time.Since(began) > 4*time.Second && each[0].Load() > perSecond/2 && each[1].Load() > perSecond/2
		}
		for i, s := range r {
			for range 4 {
				all.Go(func() {
					for ctx.Err() == nil {
						switch status, text, err := requestTo(ctx, http.MethodGet, s.url+"/api/v1/me", r[0].token, nil); {
						case err != nil && ctx.Err() != nil:
						case status == http.StatusOK:
							let.Add(1)
							if each[i].Add(1); enough() {
								stop()
							}
						default:
							t.Errorf("a request: %d %s %v", status, text, err)
							return
						}
					}
				})
			}
		}
		all.Wait()
		took := time.Since(began).Seconds()
		most := (burst+perSecond*took)*1.01 + 3*replicas
		counts := []int64{each[0].Load(), each[1].Load()}
		t.Logf("%d requests in %.1f s, %v by replica; at most %.0f are allowed", let.Load(), took, counts, most)
		if n := float64(let.Load()); n > most || slices.Min(counts) <= perSecond/2 {
			t.Errorf("%.0f requests were answered, want at most %.0f, and some by each: %v", n, most, counts)
		}
	})
}
