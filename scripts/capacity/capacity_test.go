package main

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables to docs/scale.md")

const (
	page  = "../../docs/scale.md"
	begin = "<!-- capacity: go test ./scripts/capacity -update writes this -->\n"
	end   = "<!-- end of capacity -->\n"
)

// TestPage: docs/scale.md has what the simulator prints.
func TestPage(t *testing.T) {
	var b strings.Builder
	if err := run(&b, usual, "10000,10000000"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	old, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("docs/scale.md has no place for the tables: %q and %q", begin, end)
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+b.String()+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != b.String() {
		t.Errorf("docs/scale.md is out of date; go test ./scripts/capacity -update writes it. It should have\n%s", b.String())
	}
}

// TestModel: more users need no less, what is asked for is possible, and the lock behaves as
// its costs say.
func TestModel(t *testing.T) {
	m, err := readMeasured()
	if err != nil {
		t.Fatal(err)
	}
	var last need
	for _, users := range []int{1, 1000, 10_000, 100_000, 1_000_000, 10_000_000} {
		n := of(m, usual, users)
		if n.replicas < max(2, last.replicas) || n.cores < last.cores || n.commits < last.commits || n.locks < last.locks {
			t.Errorf("%d users need %+v, fewer need %+v", users, n, last)
		}
		if n.cores/float64(n.replicas)/coresEach > busy+0.01 {
			t.Errorf("%d users: %d replicas have too few processors for %.1f busy ones", users, n.replicas, n.cores)
		}
		last = n
	}
	at := most(m, usual)
	if !m.enough(demand(m, usual, at), 1) || m.enough(demand(m, usual, at*2), 1) {
		t.Errorf("one lock suffices for %d users, it says", at)
	}
	base, each := m.commit()
	if base <= 0 || each <= 0 || base+each != m.Commit.Alone {
		t.Fatalf("a commit costs %v, and %v for each batch", base, each)
	}
	quiet, busyLock := m.simulate(1, 4, 1), m.simulate(0.95*1000/each, 4, 1)
	if quiet.busy > 0.01 || quiet.p99 < m.Commit.Alone-0.001 || quiet.p99 > 3*m.Commit.Alone {
		t.Errorf("one batch a second: %v", quiet)
	}
	if busyLock.busy < 0.9 || busyLock.p99 < 3*quiet.p99 {
		t.Errorf("almost as many batches as the lock can take: %v, want it busy and slow", busyLock)
	}
	if over := m.simulate(1100/each, 4, 1); over.busy != 1 {
		t.Errorf("more batches than the lock can take: %v", over)
	}
}

// TestArguments: what cannot be calculated is refused.
func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		online float64
		users  string
		want   string
	}{
		{0.1, "ten", "-users"}, {0.1, "0", "-users"}, {0, "10", "-online"}, {2, "10", "-online"},
	} {
		h := usual
		h.online = tt.online
		if err := run(&strings.Builder{}, h, tt.users); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("online %g, users %s: %v, want an error about %s", tt.online, tt.users, err, tt.want)
		}
	}
}
