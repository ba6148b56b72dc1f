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

// Follow follows the keys of jobs.
func (q *Stored) Follow(ctx context.Context, id string) (<-chan Job, error) {
	out := make(chan Job)
	send := func(j Job) {
		select {
		case out <- j:
		case <-ctx.Done():
		}
	}
	each := func(c store.Change) {
		if j, err := decode(c.Item); err == nil {
			send(j)
		}
	}
	prefixes := []string{jobPrefix + id}
	if id != "" {
		prefixes = append(prefixes, store.Key("jobs", "progress", id))
		each = func(c store.Change) {
			if c.Key != prefixes[0] && c.Key != prefixes[1] {
				return // the run of a schedule, whose id begins with that of the schedule
			}
			if j, err := q.Get(ctx, id); err == nil {
				send(j)
			}
		}
	}
	var done sync.WaitGroup
	for _, prefix := range prefixes {
		changes := q.store.Watch(ctx, prefix, store.FromNow) // from when Follow is called
		done.Go(func() {
			for ctx.Err() == nil {
				for c, err := range changes {
					if err != nil && !errors.Is(err, store.ErrLagged) {
						return // ctx has ended, or the store is closed
					}
					if err == nil && !c.Gone {
						each(c)
					}
				}
				changes = q.store.Watch(ctx, prefix, store.FromNow) // it was too slow: some changes are not told
			}
		})
	}
	go func() {
		done.Wait()
		close(out)
	}()
	return out, nil
}
