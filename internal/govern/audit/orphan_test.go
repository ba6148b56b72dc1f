package audit

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// testDead copies the chains of a log to where another one is: no process holds
// the copies, so theirs counts as dead.
func testDead(t testing.TB, from, to Config) {
	t.Helper()
	for src, dst := range map[string]string{from.Dir: to.Dir, from.CheckpointDir: to.CheckpointDir} {
		if err := os.MkdirAll(dst, 0o700); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(src)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(src, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dst, e.Name()), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func begun(effect string) Record {
	return Record{Event: Started, Status: Running, EffectID: effect, Target: "tool:write", UserID: "ann", SessionID: "s1"}
}

// TestOrphans: which calls of a chain are open, whatever stands around them.
func TestOrphans(t *testing.T) {
	done := func(effect string) Record { return begun(effect).Ended(Completed, time.Second) }
	tests := []struct {
		name    string
		records []Record
		want    []string
	}{
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
		found, err := Orphans(cfg.Dir, l.Chain())
		if err != nil {
			t.Fatal(err)
		}
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

// TestOrphansOfCutChain: a line that was cut by the death of its process hides no
// other.
func TestOrphansOfCutChain(t *testing.T) {
	cfg := testConfig(t)
	l := testOpen(t, cfg)
	testAppend(t, l, begun("a"))
	testAppend(t, l, begun("b"))
	files, err := filepath.Glob(filepath.Join(cfg.Dir, "*"+".jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], data[:len(data)-5], 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := Orphans(cfg.Dir, l.Chain())
	if err != nil || len(found) != 1 || found[0].EffectID != "a" {
		t.Errorf("Orphans = %v, %v, want the call whose line is whole", found, err)
	}
}

// TestDied: of all chains only those count whose process ended without closing
// them: not our own, not one that is closed, not one whose process lives.
func TestDied(t *testing.T) {
	cfg := testConfig(t)
	var dead []string
	for _, effect := range []string{"a", "b", "c"} {
		other := testConfig(t)
		l := testOpen(t, other)
		testAppend(t, l, begun(effect))
		testDead(t, other, cfg)
		dead = append(dead, l.Chain())
	}
	closed := testOpen(t, cfg)
	testAppend(t, closed, begun("d"))
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	lives := testOpen(t, cfg)
	testAppend(t, lives, begun("e"))
	own := testOpen(t, cfg)
	testAppend(t, own, begun("f"))

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

// TestAsLost: the closing record names the call, and says that its outcome is
// unknown.
func TestAsLost(t *testing.T) {
	r := begun("a").AsLost("chain-1")
	if r.EffectID != "a" || r.Target != "tool:write" || r.UserID != "ann" || r.SessionID != "s1" || r.Event != Unknown || r.Status != Lost {
		t.Errorf("AsLost = %+v", r)
	}
	if r.Success == nil || *r.Success || r.Error == nil || !strings.Contains(*r.Error, "may or may not have taken effect") || r.Metadata.Notes["chain"] != "chain-1" {
		t.Errorf("AsLost = %+v, want a failure that says why", r)
	}
}
