package queue

import (
	"context"
	"errors"
	"strings"
	"sync"

	"ken/internal/store"
)

// Watch follows the store.
func (q *Stored) Watch(ctx context.Context) (<-chan Signal, error) {
	out := make(chan Signal, 1)
	var done sync.WaitGroup
	follow := func(prefix string, after int64, signal func(store.Change) (Signal, bool)) {
		for {
			for c, err := range q.store.Watch(ctx, prefix, after) {
				if errors.Is(err, store.ErrLagged) {
					break // watched again, from now on: a wake is one too many at worst
				}
				if err != nil {
					return
				}
				s, ok := signal(c)
				if !ok {
					continue
				}
				if s.Cancel == "" {
					select {
					case out <- s:
					default: // one wake waits already, or a cancel does and wakes too
					}
					continue
				}
				select {
				case out <- s:
				case <-ctx.Done():
					return
				}
			}
			if ctx.Err() != nil {
				return
			}
		}
	}
	done.Go(func() {
		follow(nextPrefix, store.FromNow, func(c store.Change) (Signal, bool) { return Signal{}, !c.Gone })
	})
	done.Go(func() {
		follow(cancelPrefix, 0, func(c store.Change) (Signal, bool) {
			return Signal{Cancel: strings.TrimPrefix(c.Key, cancelPrefix), By: string(c.Value)}, !c.Gone
		})
	})
	go func() {
		done.Wait()
		close(out)
	}()
	return out, nil
}
