//go:build unix

package main_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestQuickCall: 500 slow calls of one session run and wait on two replicas. A quick call of
// another session, of the same extension, waits until one of them ends, and for at most
// one more.
func TestQuickCall(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	const places, slow = 4, 500
	r := newReplicas(t, 2, storetest.Postgres(t), shellOpen, fmt.Sprintf("limits: {perExtension: %d}\nserve: {rate: {requests: 0}}\n", places))
	r[0].allowShell(t, "slow")
	r[0].allowShell(t, "quick")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	start := func(i int) {
		all.Go(func() {
			// Each says that it began, and ends when it is told.
			_, _, _ = r[i%2].shell(ctx, r[0].token, "slow", fmt.Sprintf("echo %d >> began.%d; while [ ! -e end.%d ]; do sleep 0.02; done", i, i%2, i))
		})
	}
	// begun returns the slow calls that have begun on a replica.
	begun := func(replica int) []string {
		text, _ := os.ReadFile(filepath.Join(r[0].work, fmt.Sprintf("began.%d", replica)))
		return strings.Fields(string(text))
	}
	began := func() []string { return begun(0) }
	// Each replica has half of the places before the others come: a call that runs keeps its place.
	for replica := range 2 {
		for i := range places / 2 {
			start(2*i + replica)
		}
		if !testkit.Until(func() bool { return len(begun(replica)) == places/2 }) {
			t.Fatalf("%d calls begin on replica %d, want %d", len(begun(replica)), replica, places/2)
		}
	}
	for i := places; i < slow; i++ {
		start(i)
	}
	if !testkit.Until(func() bool {
		return r[0].gauge(t, "ken_calls_waiting")+r[1].gauge(t, "ken_calls_waiting") == slow-places
	}) {
		t.Fatalf("%v and %v calls wait, want %d together", r[0].gauge(t, "ken_calls_waiting"), r[1].gauge(t, "ken_calls_waiting"), slow-places)
	}
	waiting := r[0].gauge(t, "ken_calls_waiting")
	done := make(chan struct{})
	all.Go(func() {
		defer close(done)
		if status, text, err := r[0].shell(ctx, r[0].token, "quick", "echo quick >> began.0"); status != http.StatusOK {
			t.Errorf("the quick call: %d %.300s %v", status, text, err)
		}
	})
	if !testkit.Until(func() bool { return r[0].gauge(t, "ken_calls_waiting") == waiting+1 }) {
		t.Fatal("the quick call does not wait")
	}
	// The calls of this replica begin one after the other, so their order tells how many
	// slow ones had ended when the quick one began.
	ended := 0
	for before := began(); !slices.Contains(before, "quick"); before = began() {
		if ended == len(before) {
			t.Fatal("no slow call runs on this replica")
		}
		if err := os.WriteFile(filepath.Join(r[0].work, "end."+before[ended]), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		ended++
		if !testkit.Until(func() bool { return len(began()) > len(before) }) {
			t.Fatal("a place is free, and no call begins")
		}
	}
	<-done
	t.Logf("the quick call began when %d of %d slow calls had ended on its replica", ended, slow/2)
	if ended > 2 {
		t.Errorf("%d slow calls ended before the quick call, want at most 2", ended)
	}
	cancel()
	all.Wait()
}

// gauge reads a number from the metrics of a server.
func (s *server) gauge(t *testing.T, name string) float64 {
	t.Helper()
	status, text := s.ask(t, http.MethodGet, "/metrics", s.token, nil)
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("there is no %s: %d", name, status)
	return 0
}
