package audit

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ken/internal/testkit"
)

// TestRetire: old closed chains go, with a tombstone; young, open and broken
// ones stay; and removing one without a tombstone is still found.
func TestRetire(t *testing.T) {
	cfg := testConfig(t)
	now := seedClock()
	cfg.now = func() time.Time { return now }
	closed := func() *Log {
		l := testOpen(t, cfg)
		testAppend(t, l, ran)
		testClose(t, l)
		return l
	}
	old, broken := closed(), closed()
	alive := testOpen(t, cfg)
	path := filepath.Join(cfg.Dir, segmentName(broken.Chain(), 1))
	data := mustRead(t, path)
	data[30] ^= 1
	mustWrite(t, path, data)
	now = now.Add(time.Hour)
	young := closed()
	keeper := testOpen(t, cfg)
	gone, err := keeper.Retire(t.Context(), now.Add(-time.Minute))
	if err != nil || !slices.Equal(gone, []string{old.Chain()}) {
		t.Fatalf("Retire = %v, %v, want only %s", gone, err, old.Chain())
	}
	states := func() map[string]State {
		out := map[string]State{}
		for _, c := range testVerify(t, cfg).Chains {
			out[c.Chain] = c.State
		}
		return out
	}
	for chain, want := range map[string]State{
		old.Chain(): RetiredNow, broken.Chain(): Broken, alive.Chain(): OpenAlive, young.Chain(): Whole, keeper.Chain(): OpenAlive,
	} {
		if got := states()[chain]; got != want {
			t.Errorf("%s is %q, want %q", chain, got, want)
		}
	}
	testkit.OK(t, os.Remove(filepath.Join(cfg.Dir, segmentName(young.Chain(), 1))))
	if got := states()[young.Chain()]; got != MissingFile {
		t.Errorf("removed without a tombstone: %q, want missing file", got)
	}
}
