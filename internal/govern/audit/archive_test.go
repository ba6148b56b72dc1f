package audit

import (
	"crypto/ed25519"
	"crypto/sha256"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

// TestOrphansOfOneStore: of several processes that share a store and an audit log,
// one closes the calls of a process that died, once; calls of a process that lives
// are not closed.
func TestOrphansOfOneStore(t *testing.T) { orphansOfOneStore(t, storetest.SQLite(t)) }

func TestOrphansOfOneStorePostgres(t *testing.T) { orphansOfOneStore(t, storetest.Postgres(t)) }

func orphansOfOneStore(t *testing.T, address string) {
	at, elsewhere := orphanTrail(t), orphanTrail(t)
	died := orphanLog(t, elsewhere, "lost")
	for from, to := range map[string]string{elsewhere.Dir: at.Dir, elsewhere.CheckpointDir: at.CheckpointDir} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil { // no process holds the copy: its own counts as dead
			t.Fatal(err)
		}
	}
	lives := orphanLog(t, at, "runs")

	closeAll := func(log *Log) {
		a := Archive{Dir: at.Dir, Store: func() (*store.Store, error) { return storetest.Open(t, address), nil }}
		_ = a.CloseOrphans(t.Context(), log) // of a log that is closed it fails
	}
	gone := orphanLog(t, at)
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	closeAll(gone) // it cannot write, and leaves the chain to others
	if got := lostCalls(t, at.Dir); len(got) > 0 {
		t.Errorf("a log that is closed recorded %v", got)
	}
	var wg sync.WaitGroup
	for range 4 {
		log := orphanLog(t, at)
		wg.Go(func() { closeAll(log) })
	}
	wg.Wait()
	want := map[string]string{"lost": died.Chain()}
	if diff := cmp.Diff(want, lostCalls(t, at.Dir)); diff != "" {
		t.Errorf("closed calls, with their chain (-want +got):\n%s", diff)
	}
	closeAll(orphanLog(t, at))
	if diff := cmp.Diff(want, lostCalls(t, at.Dir)); diff != "" {
		t.Errorf("closed calls after the next start (-want +got):\n%s", diff)
	}
	if _, err := lives.Append(t.Context(), Record{Event: Executed, Status: Completed, EffectID: "runs"}); err != nil {
		t.Errorf("the process that lives cannot end its call: %v", err)
	}
}

func orphanTrail(t *testing.T) Config {
	dir := t.TempDir()
	seed := sha256.Sum256([]byte("orphans"))
	key, err := NewKey(ed25519.NewKeyFromSeed(seed[:]))
	if err != nil {
		t.Fatal(err)
	}
	return Config{Dir: filepath.Join(dir, "audit"), CheckpointDir: filepath.Join(dir, "checkpoints"), Key: key}
}

// orphanLog opens the audit log of a process that started some calls.
func orphanLog(t *testing.T, cfg Config, effects ...string) *Log {
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for _, effect := range effects {
		if _, err := l.Append(t.Context(), Record{Event: Started, Status: Running, EffectID: effect, Target: "tool:write"}); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// lostCalls returns the calls that were closed as unknown, with their chains. A
// call that was closed twice is an error.
func lostCalls(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	for e, err := range Query(dir, Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Record.Event != Unknown {
			continue
		}
		if _, twice := out[e.Record.EffectID]; twice {
			t.Errorf("the call %s was closed twice", e.Record.EffectID)
		}
		out[e.Record.EffectID] = e.Record.Metadata.Notes["chain"]
	}
	return out
}
