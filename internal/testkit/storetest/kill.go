package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"ken/internal/store"
)

const (
	kills   = 6
	writers = 4
	parts   = 5
)

// kill: a process that writes is killed at any moment. What it acknowledged is
// there whole, and nothing is there in part.
func kill(t *testing.T, address string) {
	s := Open(t, address)
	acknowledged := map[string]bool{}
	for round := range kills {
		c := start(t, address)
		_, answers := c.ask(question{Do: "work", Key: "write", Number: int64(round)})
		n, enough := 0, 20+17*round
		for a := range answers {
			if !a.More {
				t.Fatalf("the child ended by itself: %s", a.Failed)
			}
			acknowledged[a.Sent] = true
			if n++; n == enough {
				if err := c.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n < enough {
			t.Fatalf("the child ended after %d of %d batches", n, enough)
		}
		// Those who are left write at once.
		if _, err := (local{s}).apply(put(fmt.Sprintf("after/%d", round), "x")); err != nil {
			t.Fatalf("Apply after the kill = %v", err)
		}
	}
	items, err := local{s}.scan("batch/", store.Range{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]int{}
	for _, item := range items {
		name := item.Key[:strings.LastIndexByte(item.Key, '/')]
		there[name]++
		if string(item.Value) != name {
			t.Errorf("%s = %q", item.Key, item.Value)
		}
	}
	for name := range acknowledged {
		if there[name] != parts {
			t.Errorf("%s was acknowledged, and %d of %d parts are there", name, there[name], parts)
		}
	}
	for name, n := range there {
		if n != parts {
			t.Errorf("%d of %d parts of %s are there", n, parts, name)
		}
	}
	t.Logf("%d batches acknowledged, %d there", len(acknowledged), len(there))
}

// writeJob writes without end.
func writeJob(s *store.Store, round int, send func(string)) error {
	return together(writers, func(worker int) error {
		for i := 0; ; i++ {
			name := fmt.Sprintf("batch/%d-%d-%d", round, worker, i)
			steps := []step{put("last", name)} // shared, so that batches meet
			for p := range parts {
				key := fmt.Sprintf("%s/%d", name, p)
				steps = append(steps, absent(key), put(key, name))
			}
			if _, err := (local{s}).apply(steps...); err != nil {
				return err
			}
			send(name)
		}
	})
}

// openAtOnce: several processes open a place where nothing is yet.
func openAtOnce(t *testing.T, address string) {
	const n = 4
	var done sync.WaitGroup
	for i := range n {
		done.Go(func() {
			c := start(t, address)
			if _, err := c.apply(put(fmt.Sprintf("from/%d", i), "x")); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	items, err := local{Open(t, address)}.scan("from/", store.Range{})
	if err != nil || len(items) != n {
		t.Errorf("Scan = %d items, %v; want %d", len(items), err, n)
	}
}
