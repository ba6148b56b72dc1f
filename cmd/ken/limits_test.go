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

	"ken/internal/testkit"
	"ken/internal/testkit/scripttest"
	"ken/internal/testkit/storetest"
)

// shell runs a command on a replica, as the user.
func (r *replica) shell(ctx context.Context, token, session, cmd string) (int, []byte, error) {
	return requestTo(ctx, http.MethodPost, r.url+"/api/v1/invoke", token, map[string]any{"session": session, "target": "tool:shell", "arguments": map[string]any{"cmd": cmd}})
}

// allowShell approves all commands of a session.
func (r *replica) allowShell(t *testing.T, session string) {
	t.Helper()
	_, asked := r.invoke(t, r.token, session, "tool:shell", map[string]any{"cmd": "true"})
	if status, text := r.ask(t, http.MethodPost, "/api/v1/approvals/"+asked.ticket(), r.token, map[string]any{"effect": "grant", "scope": "session", "covers": "tool"}); status != http.StatusOK {
		t.Fatalf("grant: %d %s", status, text)
	}
}

// atOnce makes calls on all replicas, and checks how many ran at once.
func atOnce(t *testing.T, r []*replica, each, limit int) {
	t.Helper()
	r[0].allowShell(t, "all")
	var all sync.WaitGroup
	for _, s := range r {
		for range each {
			all.Go(func() {
				status, text, err := s.shell(t.Context(), r[0].token, "all", "echo + >> times.txt; sleep 0.1; echo - >> times.txt")
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
	t.Logf("%d calls on %d replicas, at most %d at once", began, len(r), most)
	if most > limit || began != len(r)*each {
		t.Errorf("%d calls began, at most %d at once; want %d, and %d at once", began, most, len(r)*each, limit)
	}
}

// hold has a replica run so many commands that do not end, until ctx ends.
func (r *replica) hold(t *testing.T, ctx context.Context, all *sync.WaitGroup, token string, n int) {
	t.Helper()
	for range n {
		all.Go(func() { _, _, _ = r.shell(ctx, token, "all", "echo x >> long.txt; sleep 60") })
	}
	if !testkit.Until(func() bool {
		text, _ := os.ReadFile(filepath.Join(r.work, "long.txt"))
		return strings.Count(string(text), "x") == n
	}) {
		t.Fatal("one replica does not get all places")
	}
}

// TestClusterLimits: limits hold for all replicas together, and the share of a replica that
// was killed comes back.
func TestClusterLimits(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	t.Run("calls at once", func(t *testing.T) {
		const replicas, limit, calls = 3, 3, 5
		r := newReplicas(t, replicas, storetest.Postgres(t), shellOpen, fmt.Sprintf("limits: {perExtension: %d}\n", limit))
		atOnce(t, r, calls, limit)
		var all sync.WaitGroup

		// One replica takes all places and is killed.
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r[0].hold(t, ctx, &all, r[0].token, limit)
		_ = r[0].cmd.Process.Kill()
		if status, text, err := r[1].shell(t.Context(), r[0].token, "all", "echo after"); status != http.StatusOK {
			t.Errorf("after a replica was killed: %d %s %v", status, text, err)
		}
		cancel()
		all.Wait()
	})

	// Calls of a principal, or of a tenant, count whatever they call. Others do not wait for them.
	for _, key := range []string{"perPrincipal", "perTenant"} {
		t.Run(key, func(t *testing.T) {
			const replicas, limit, calls = 2, 2, 5
			people, stop, err := scripttest.NewIssuer()
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			eve, err := people.Token(map[string]any{"sub": "eve", "org": "elsewhere"})
			if err != nil {
				t.Fatal(err)
			}
			r := newReplicas(t, replicas, storetest.Postgres(t), shellOpen,
				fmt.Sprintf("limits: {%s: %d}\nserve: {oidc: {issuer: %q, clientID: ken, tenantClaim: org}}\n", key, limit, people.URL))
			atOnce(t, r, calls, limit)
			if out, err := r[0].command("config", "set", "--shared", "limits.wait", "1s").CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			var all sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r[0].hold(t, ctx, &all, r[0].token, limit)
			note := map[string]any{"path": "note.txt"}
			want := fmt.Sprintf("limits.%s is %d, and as many calls are running", key, limit)
			if !testkit.Until(func() bool { // once the setting is there
				status, got := r[1].invoke(t, r[0].token, "all", "tool:read_file", note)
				return status == http.StatusServiceUnavailable && got.Rule == "limits.wait" && strings.Contains(got.Detail, want)
			}) {
				t.Errorf("a call on another replica does not say %q", want)
			}
			if status, got := r[1].invoke(t, eve, "hers", "tool:read_file", note); status != http.StatusOK {
				t.Errorf("a call of another tenant: %d %+v", status, got)
			}
			cancel()
			all.Wait()
			if status, got := r[1].invoke(t, r[0].token, "all", "tool:read_file", note); status != http.StatusOK {
				t.Errorf("a call when the others have ended: %d %+v", status, got)
			}
		})
	}

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
		four, cancel := context.WithTimeout(ctx, 4*time.Second)
		defer cancel()
		enough := func() bool {
			return four.Err() != nil && each[0].Load() > perSecond/2 && each[1].Load() > perSecond/2
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
