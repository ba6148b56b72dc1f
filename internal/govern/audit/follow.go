package audit

import (
	"context"
	"iter"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Follow is [Tail] for those who read the trail before they follow it: what is
// written after Follow has returned is given, however much later the iteration
// begins. It is ranged over once.
func Follow(ctx context.Context, dir string, f Filter) (iter.Seq2[Entry, error], error) {
	t, err := newFollower(dir, f)
	if err != nil {
		return nil, err
	}
	return func(yield func(Entry, error) bool) { t.follow(ctx, yield) }, nil
}

// follow yields the entries that are written after the scan.
func (t *follower) follow(ctx context.Context, yield func(Entry, error) bool) {
	// Where the file system tells nothing, looking every second remains.
	var events chan fsnotify.Event
	if w, err := fsnotify.NewWatcher(); err == nil {
		defer w.Close()
		if w.Add(t.dir) == nil {
			events = w.Events
			go func() {
				for range w.Errors { // the rescan makes up for them
				}
			}()
		}
	}
	tick := time.NewTicker(rescan)
	defer tick.Stop()
	ready, err := t.scan(false)
	for {
		if err != nil && !yield(Entry{}, err) || !merge(ready, yield) {
			return
		}
		ready, err = nil, nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			ready, err = t.scan(false)
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			ready = t.changed(e, events)
		}
	}
}
