package audit

import (
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
	at, elsewhere := testConfig(t), testConfig(t)
	died := began(t, elsewhere, "lost")
	testDead(t, elsewhere, at)
	lives := began(t, at, "runs")

	closeAll := func(log *Log) {
		a := Archive{Dir: at.Dir, Store: func() (*store.Store, error) { return storetest.Open(t, address), nil }}
		_ = a.CloseOrphans(t.Context(), log) // of a log that is closed it fails
	}
	gone := testOpen(t, at)
	testClose(t, gone)
	closeAll(gone) // it cannot write, and leaves the chain to others
	wantLost := func(when string, want map[string]string) {
		t.Helper()
		if diff := cmp.Diff(want, lostCalls(t, at.Dir)); diff != "" {
			t.Errorf("%s: closed calls, with their chain (-want +got):\n%s", when, diff)
		}
	}
	wantLost("by a log that is closed", map[string]string{})
	var wg sync.WaitGroup
	for range 4 {
		log := testOpen(t, at)
		wg.Go(func() { closeAll(log) })
	}
	wg.Wait()
	want := map[string]string{"lost": died.Chain()}
	wantLost("by four processes", want)
	closeAll(testOpen(t, at))
	wantLost("after the next start", want)
	if _, err := lives.Append(t.Context(), Record{Event: Executed, Status: Completed, EffectID: "runs"}); err != nil {
		t.Errorf("the process that lives cannot end its call: %v", err)
	}
}

// lostCalls returns the calls that were closed as unknown, with their chains. A
// call that was closed twice is an error.
func lostCalls(t *testing.T, dir string) map[string]string {
	out := map[string]string{}
	for _, e := range collect(t, dir, Filter{Event: string(Unknown)}) {
		if _, twice := out[e.Record.EffectID]; twice {
			t.Errorf("the call %s was closed twice", e.Record.EffectID)
		}
		out[e.Record.EffectID] = e.Record.Metadata.Notes["chain"]
	}
	return out
}
