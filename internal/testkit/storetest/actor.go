package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ken/internal/store"
)

// An actor works on a store: in this process, or in another one.
type actor interface {
	get(key string) (store.Item, bool, error)
	scan(prefix string, r store.Range) ([]store.Item, error)
	apply(steps ...step) (int64, error)
	// watch sends changes until stop is called, which waits for the end.
	watch(prefix string, after int64) (changes <-chan store.Change, stop func())
	// work does one of jobs, without talk between the processes, and returns
	// what it sent.
	work(job string, arg int) ([]string, error)
}

// A step is one part of a batch, as it goes between processes.
type step struct {
	Do      string // put, delete, absent, at, most
	Key     string
	Value   []byte
	TTL     time.Duration
	Version int64
}

func put(key, value string) step { return step{Do: "put", Key: key, Value: []byte(value)} }

func putFor(key, value string, ttl time.Duration) step {
	return step{Do: "put", Key: key, Value: []byte(value), TTL: ttl}
}

func drop(key string) step { return step{Do: "delete", Key: key} }

func absent(key string) step { return step{Do: "absent", Key: key} }

func at(key string, version int64) step { return step{Do: "at", Key: key, Version: version} }

// most allows so many keys that begin with a prefix.
func most(prefix string, n int64) step { return step{Do: "most", Key: prefix, Version: n} }

func batch(steps []step) *store.Batch {
	var b store.Batch
	for _, s := range steps {
		switch s.Do {
		case "put":
			if s.TTL != 0 {
				b.PutFor(s.Key, s.Value, s.TTL)
			} else {
				b.Put(s.Key, s.Value)
			}
		case "delete":
			b.Delete(s.Key)
		case "absent":
			b.Absent(s.Key)
		case "at":
			b.At(s.Key, s.Version)
		case "most":
			b.AtMost(s.Key, int(s.Version))
		}
	}
	return &b
}

// A local actor works in this process.
type local struct{ s *store.Store }

func (l local) get(key string) (store.Item, bool, error) { return l.s.Get(context.Background(), key) }

func (l local) scan(prefix string, r store.Range) (items []store.Item, err error) {
	for item, err := range l.s.Scan(context.Background(), prefix, r) {
		if err != nil {
			return items, err
		}
		items = append(items, item)
	}
	return items, nil
}

func (l local) apply(steps ...step) (int64, error) {
	return l.s.Apply(context.Background(), batch(steps))
}

func (l local) watch(prefix string, after int64) (<-chan store.Change, func()) {
	changes := make(chan store.Change)
	ctx, cancel := context.WithCancel(context.Background())
	watching := l.s.Watch(ctx, prefix, after) // now, not when the goroutine runs
	go func() {
		defer close(changes)
		for c, err := range watching {
			if err != nil {
				if !errors.Is(err, context.Canceled) && !errors.Is(err, store.ErrClosed) {
					panic(fmt.Sprintf("watch %q: %v", prefix, err))
				}
				return
			}
			select {
			case changes <- c:
			case <-ctx.Done():
			}
		}
	}()
	return changes, func() {
		cancel()
		for range changes {
		}
	}
}

func (l local) work(job string, arg int) (sent []string, err error) {
	var mu sync.Mutex
	err = jobs[job](l.s, arg, func(s string) {
		mu.Lock()
		defer mu.Unlock()
		sent = append(sent, s)
	})
	return sent, err
}
