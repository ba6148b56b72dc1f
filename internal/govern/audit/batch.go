package audit

import "fmt"

// A batch is what one fsync makes durable.
type batch struct {
	lines []byte
	count int
	asked int           // of callers: without the one about a gap
	gap   *gap          // told by its first line; nil: none
	sign  bool          // one of its callers waits for a signed head
	end   chainPosition // after all its lines, when it is taken
	views []viewLine
	done  chan struct{} // closed when err is set
	err   error
}

// enqueue numbers the records, ties them to the chain and puts them into the
// batch that waits. All this happens while the batch before is being synced.
func (l *Log) enqueue(items []item, sign bool) (b *batch, seq int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.poisoned {
		return nil, 0, l.failure
	}
	if l.closing {
		return nil, 0, fmt.Errorf("record in the audit log: %w", ErrClosed)
	}
	if err := l.needBatch(); err != nil {
		return nil, 0, err
	}
	b, seq = l.queue.pending, l.tree.size
	l.link(b, items)
	b.asked += len(items)
	b.sign = b.sign || sign
	if l.queue.want > 0 && b.count >= l.queue.want {
		l.queue.want = 0
		l.queue.full <- struct{}{} // has room: want is set once for each reading of it
	}
	return b, seq, nil
}

// needBatch makes the batch that waits where there is none. Its first line
// tells of a gap, if there was one. l.mu is held.
func (l *Log) needBatch() error {
	if l.queue.pending != nil {
		return nil
	}
	b := &batch{done: make(chan struct{})}
	if n := len(l.queue.spare); n > 0 {
		b.lines, l.queue.spare = l.queue.spare[n-1][:0], l.queue.spare[:n-1]
	}
	if l.gap != nil {
		it, err := l.prepare(l.gap.record())
		if err != nil {
			return err
		}
		l.link(b, []item{it})
		bodies.Put(it.pooled)
		b.gap, l.gap, b.sign = l.gap, nil, true
	}
	l.queue.pending = b
	return nil
}

// link ties items to the chain and puts their lines into b; l.mu is held.
func (l *Log) link(b *batch, items []item) {
	now := l.cfg.now()
	clock := ""
	switch ms := now.UnixMilli(); {
	case ms > l.newest.lastMS || l.newest.last == "":
		l.newest.last, l.newest.lastMS = formatTime(now), ms
	case ms < l.newest.lastMS:
		// A clock that was set back does not turn the order of a chain around:
		// time stands still until it has caught up, and the record says so.
		clock = formatTime(now)
	}
	at := l.newest.last
	mono := now.Sub(l.opened).Microseconds()
	for _, it := range items {
		start := len(b.lines)
		b.lines = appendLine(b.lines, at, it.body, mono, clock, l.tree.size, l.prev)
		l.prev = l.recordHash(b.lines[start:])
		l.tree.add(l.prev)
		b.lines = append(b.lines, '\n')
		b.count++
		if l.views.on() {
			it.view.at = at
			b.views = append(b.views, it.view)
		}
	}
}

// take returns the waiting batch, and whether the log closes.
func (l *Log) take() (*batch, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.queue.pending
	if b != nil {
		b.end.tree.set(&l.tree)
		b.end.prev = l.prev
		l.queue.pending = nil
	}
	return b, l.closing
}

// expect says that the writer waits for n records, and whether there is
// something to wait for; 0 takes it back.
func (l *Log) expect(n int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n == 0 && l.queue.want == 0 {
		<-l.queue.full // they came at the last moment
	}
	l.queue.want = 0
	if n > 0 && !l.closing && l.queue.pending != nil && l.queue.pending.count < n {
		l.queue.want = n
	}
	return l.queue.want > 0
}

// waiting is how many records wait for the next commit.
func (l *Log) waiting() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queue.pending == nil || l.closing {
		return 0
	}
	return l.queue.pending.count
}
