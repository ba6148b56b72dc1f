package audit

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ken/internal/testkit"
)

// testDead copies the chains of a log to where another one is: no process holds
// the copies, so theirs counts as dead.
func testDead(t testing.TB, from, to Config) {
	t.Helper()
	for src, dst := range map[string]string{from.Dir: to.Dir, from.CheckpointDir: to.CheckpointDir} {
		testkit.OK(t, os.CopyFS(dst, os.DirFS(src)))
	}
}

func begun(effect string) Record {
	return Record{Event: Started, Status: Running, EffectID: effect, Target: "tool:write", UserID: "ann", SessionID: "s1"}
}

// began opens the audit log of a process that starts some calls.
func began(t testing.TB, cfg Config, effects ...string) *Log {
	t.Helper()
	l := testOpen(t, cfg)
	for _, effect := range effects {
		testAppend(t, l, begun(effect))
	}
	return l
}

// TestOrphans: which calls of a chain are open, whatever stands around them.
func TestOrphans(t *testing.T) {
	done := func(effect string) Record { return begun(effect).Ended(Completed, time.Second) }
	const cut = "one whose process died while it wrote the next"
	tests := []struct {
		name    string
		records []Record
		want    []string
	}{
		{cut, []Record{begun("a"), begun("b")}, []string{"a"}},
		{"nothing", nil, nil},
		{"one that ended", []Record{begun("a"), done("a")}, nil},
		{"one that failed", []Record{begun("a"), begun("a").Ended(CallFailed, time.Second)}, nil},
		{"one that did not end", []Record{begun("a")}, []string{"a"}},
		{"a slow one that did not end", []Record{begun("a"), done("a").AsSlow()}, []string{"a"}},
		{"a slow one that ended", []Record{begun("a"), done("a"), done("a").AsSlow()}, nil},
		{"some of several", []Record{begun("a"), begun("b"), begun("c"), done("b")}, []string{"a", "c"}},
		{"one that was made again", []Record{begun("a"), done("a"), begun("a")}, []string{"a"}},
		{"one that was closed as lost", []Record{begun("a"), begun("a").AsLost("x")}, nil},
		{"one that never started", []Record{{Event: Violation, Status: Denied, Target: "tool:write"}}, nil},
		{"one without an effect", []Record{{Event: Started, Status: Running, Target: "tool:look"}}, nil},
	}
	for _, tt := range tests {
		cfg := testConfig(t)
		l := testOpen(t, cfg)
		for _, r := range tt.records {
			testAppend(t, l, r)
		}
		if tt.name == cut {
			segments, _ := files(t, cfg)
			data := mustRead(t, segments[0])
			mustWrite(t, segments[0], data[:len(data)-5])
		}
		found := testkit.Must(Orphans(cfg.Dir, l.Chain()))(t)
		var got []string
		for _, r := range found {
			got = append(got, r.EffectID)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: Orphans (-want +got):\n%s", tt.name, diff)
		}
		if none, err := Orphans(cfg.Dir, "another"); err != nil || none != nil {
			t.Errorf("%s: Orphans of a chain that is not there = %v, %v", tt.name, none, err)
		}
	}
}

// TestDied: of all chains only those count whose process ended without closing
// them: not our own, not one that is closed, not one whose process lives.
func TestDied(t *testing.T) {
	cfg := testConfig(t)
	var dead []string
	for _, effect := range []string{"a", "b", "c"} {
		other := testConfig(t)
		l := began(t, other, effect)
		testDead(t, other, cfg)
		dead = append(dead, l.Chain())
	}
	testClose(t, began(t, cfg, "d"))
	lives, own := began(t, cfg, "e"), began(t, cfg, "f")

	got, err := own.Died(10)
	slices.Sort(got)
	slices.Sort(dead)
	if diff := cmp.Diff(dead, got); diff != "" || err != nil {
		t.Errorf("Died: %v (-want +got):\n%s", err, diff)
	}
	if got, err := own.Died(2); len(got) != 2 || err != nil {
		t.Errorf("Died(2) = %q, %v", got, err)
	}
	if got, err := lives.Died(10); slices.Contains(got, own.Chain()) || len(got) != 3 || err != nil {
		t.Errorf("Died of the other process = %q, %v, want the same three", got, err)
	}
}
