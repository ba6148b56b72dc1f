package auditshare

import (
	"context"
	"iter"
	"sync"
	"time"

	"ken/internal/govern/audit"
)

// Follow returns the new records of all other machines that a filter chooses, until ctx
// ends. They come about two seconds after they were written. What is written on this
// machine is for [audit.Tail]. It is ranged over once.
func (s *Shared) Follow(ctx context.Context, f audit.Filter) iter.Seq2[audit.Entry, error] {
	return func(yield func(audit.Entry, error) bool) {
		ctx, stop := context.WithCancel(ctx)
		news := make(chan entry)
		var beside sync.WaitGroup
		beside.Go(func() { s.watch(ctx, f, news, &beside) })
		defer beside.Wait()
		defer stop()
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-news:
				if !yield(e.Entry, e.err) {
					return
				}
			}
		}
	}
}

type entry struct {
	audit.Entry
	err error
}

// watch brings the copies up to date every second, and follows the chains of each
// machine from when it is first seen.
func (s *Shared) watch(ctx context.Context, f audit.Filter, news chan<- entry, beside *sync.WaitGroup) {
	tell := func(e audit.Entry, err error) bool {
		select {
		case news <- entry{e, err}:
			return true
		case <-ctx.Done():
			return false
		}
	}
	began, seen, failing := time.Now(), map[string]bool{}, false
	first := true
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		machines, err := s.Fetch(ctx)
		if err != nil && ctx.Err() == nil && !failing {
			tell(audit.Entry{}, err)
		}
		failing = err != nil
		for _, m := range machines {
			if seen[m.Home] {
				continue
			}
			seen[m.Home] = true
			from := f
			if !first && from.Since.IsZero() { // all of it is new
				from.Since = began
			}
			beside.Go(func() {
				for e, err := range audit.Tail(ctx, m.Dir, from) {
					if !tell(e, err) {
						return
					}
				}
			})
		}
		first = first && err != nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
