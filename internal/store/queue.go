package store

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A queue lets the batches that wait while one transaction is written share
// the next one.
type queue struct {
	commit  func(context.Context, *group) error
	written func(*group)

	requests chan *request
	ctx      context.Context // ends when the queue closes
	stop     context.CancelFunc
	done     sync.WaitGroup
}

// A request is a batch that waits for its turn. Exactly one of its caller, who
// may give up, and the group, which begins to write, gets to move its state.
type request struct {
	batch   *Batch
	state   atomic.Int32
	done    chan struct{} // closed when version and err are set
	version int64
	err     error
}

const (
	waiting int32 = iota
	taken
	withdrawn
)

const (
	groupRequests = 64
	groupBytes    = 4 << 20 // a batch that is larger goes alone or comes last
)

func newQueue(commit func(context.Context, *group) error, written func(*group)) *queue {
	q := &queue{commit: commit, written: written, requests: make(chan *request)}
	q.ctx, q.stop = context.WithCancel(context.Background())
	q.done.Go(q.run)
	return q
}

func (q *queue) close() {
	q.stop()
	q.done.Wait()
}

func (q *queue) do(ctx context.Context, b *Batch) (int64, error) {
	r := &request{batch: b, done: make(chan struct{})}
	select {
	case q.requests <- r:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-q.ctx.Done():
		return 0, cause(ErrClosed, nil, "open it again")
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		for look := time.NewTicker(10 * time.Millisecond); ; { // a group that could not be written lets go of it
			if r.state.CompareAndSwap(waiting, withdrawn) {
				look.Stop()
				return 0, ctx.Err()
			}
			select {
			case <-look.C:
				continue
			case <-r.done:
			}
			look.Stop()
			break
		}
	}
	return r.version, r.err
}

func (q *queue) run() {
	for {
		select {
		case <-q.ctx.Done():
			return
		case r := <-q.requests:
			q.write(q.gather(r))
		}
	}
}

// gather adds what waits at this moment.
func (q *queue) gather(first *request) *group {
	g := &group{requests: []*request{first}}
	for size := first.size(); len(g.requests) < groupRequests && size < groupBytes; {
		select {
		case r := <-q.requests:
			g.requests = append(g.requests, r)
			size += r.size()
		default:
			return g
		}
	}
	return g
}

func (q *queue) write(g *group) {
	all := g.requests
	err := q.commit(q.ctx, g)
	if err != nil {
		for _, r := range all { // a conflict too: it may be with one that is now not written
			r.version, r.err = 0, err
		}
	}
	for _, r := range all {
		close(r.done)
	}
	if err == nil && len(g.writes) > 0 {
		q.written(g)
	}
}

// take keeps the requests that were not withdrawn; from now on they cannot be.
func take(requests []*request) []*request {
	var kept []*request
	for _, r := range requests {
		if r.state.CompareAndSwap(waiting, taken) {
			kept = append(kept, r)
		}
	}
	return kept
}

func (r *request) size() int {
	n := 0
	for _, w := range r.batch.writes {
		n += len(w.value)
	}
	return n
}
