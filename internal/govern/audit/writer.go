package audit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// writer is the state of the one goroutine that writes: where the chain is.
type writer struct {
	segment  segmentFile
	path     string
	number   int   // of the segment
	bytes    int64 // in the segment
	heads    headFile
	unkept   int  // records since a head went into the history
	unsynced bool // the newest head is not durable yet

	crowd int           // how many were writing at the last commit
	took  time.Duration // how long it took
}

const maxGather = 500 * time.Microsecond

// create makes the checkpoint file, held for the life of the process, and the
// first segment.
func (l *Log) create() error {
	path := filepath.Join(l.cfg.CheckpointDir, l.chain+headSuffix)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := lockFile(f); err != nil {
		f.Close()
		return fmt.Errorf("hold %s: %w", path, err)
	}
	if err := syncDir(l.cfg.CheckpointDir); err != nil {
		f.Close()
		return err
	}
	l.heads = headFile{f: f, signer: l.cfg.Key.signer}
	if l.cfg.wrapHeads != nil {
		l.heads.f = l.cfg.wrapHeads(f)
	}
	l.prev = genesis(l.chain)
	if err := l.nextSegment(); err != nil {
		f.Close()
		return err
	}
	return nil
}

func (l *Log) nextSegment() error {
	path := filepath.Join(l.cfg.Dir, segmentName(l.chain, l.number+1))
	f, err := l.cfg.createSegment(path)
	if err != nil {
		return err
	}
	if l.segment != nil {
		// Everything in it is synced; an error of close has nothing to say.
		_ = l.segment.Close()
	}
	l.segment, l.path, l.bytes = f, path, 0
	l.number++
	return nil
}

// run is the writing goroutine: it commits batches until the log closes.
func (l *Log) run() {
	defer close(l.exited)
	var due <-chan time.Time // runs while the newest head is not durable
	for {
		select {
		case <-l.wake:
		case <-due:
			due = nil
			if l.Err() == nil {
				l.syncHead()
			}
			continue
		}
		l.gather()
		b, closing := l.take()
		if b != nil {
			l.settle(b)
			l.crowd = b.count + l.waiting()
			if l.unsynced && due == nil {
				due = time.After(l.cfg.SyncInterval)
			}
		}
		if closing {
			l.finish()
			return
		}
	}
}

// gather waits a moment for those whom the last commit woke: they are about to
// ask again, and one sync for all beats two for half each. It waits only where
// there were several, and never longer than a sync takes: whoever comes later
// is as well served by the next.
func (l *Log) gather() {
	if l.crowd < 2 || !l.expect(l.crowd) {
		return
	}
	timer := time.NewTimer(min(l.took, maxGather))
	defer timer.Stop()
	select {
	case <-l.full:
	case <-timer.C:
		l.expect(0)
	}
}

// settle commits a batch, tells those who wait, and then does what need not
// hold them up.
func (l *Log) settle(b *batch) {
	if b.err = l.Err(); b.err == nil {
		b.err = l.commit(b)
	}
	close(b.done)
	if b.err != nil {
		return
	}
	l.views.add(b.views)
	l.reuse(b.lines)
	if l.unkept >= l.cfg.CheckpointEvery {
		if err := l.heads.keep(); err != nil {
			_ = l.poison("keep audit checkpoint", l.cfg.CheckpointDir, err)
			return
		}
		l.unkept, l.unsynced = 0, false
	}
}

// commit writes a batch, makes it durable and signs the head over it. After an
// error nothing of what it did is relied upon again.
func (l *Log) commit(b *batch) error {
	if l.bytes > 0 && l.bytes+int64(len(b.lines)) > l.cfg.SegmentBytes {
		if err := l.nextSegment(); err != nil {
			return l.poison("rotate audit log", l.cfg.Dir, err)
		}
	}
	// The head is signed while the disk works, and written only when the
	// records are durable: it must never promise more than there is.
	signed := make(chan signedHead, 1)
	next := l.headOver(&b.tree, l.bytes+int64(len(b.lines)))
	go func() { signed <- next.sealed(l.heads.signer) }()
	start := time.Now()
	n, err := l.segment.Write(b.lines)
	if err == nil && n < len(b.lines) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return l.poison("write audit log", l.path, err)
	}
	if err := l.segment.Sync(); err != nil {
		return l.poison("sync audit log", l.path, err)
	}
	l.took = time.Since(start)
	l.bytes += int64(n)
	l.unkept += b.count
	if err := l.putHead(<-signed); err != nil {
		return l.poison("write audit checkpoint", l.cfg.CheckpointDir, err)
	}
	return nil
}

// headOver is the head over a tree that ends at a byte of the segment.
func (l *Log) headOver(tree *frontier, end int64) head {
	return head{chain: l.chain, size: tree.size, root: tree.root(), segment: l.number, offset: end, time: l.cfg.now()}
}

// reuse keeps a buffer for a later batch.
func (l *Log) reuse(buf []byte) {
	if cap(buf) <= 4<<20 {
		l.mu.Lock()
		l.spare = buf
		l.mu.Unlock()
	}
}

func (l *Log) putHead(s signedHead) error {
	if err := l.heads.put(s); err != nil {
		return err
	}
	l.unsynced = true
	l.mu.Lock()
	l.signed = l.heads.note
	l.mu.Unlock()
	return nil
}

// syncHead makes the newest head durable after a while without a kept one.
func (l *Log) syncHead() {
	if !l.unsynced {
		return
	}
	if err := l.heads.f.Sync(); err != nil {
		_ = l.poison("sync audit checkpoint", l.cfg.CheckpointDir, err)
		return
	}
	l.unsynced = false
}

// finish signs the closing head, unless the log is poisoned: such a chain
// stays open for all to see.
func (l *Log) finish() {
	if l.Err() == nil && l.tree.size > 0 { // nobody adds to it any more
		last := l.headOver(&l.tree, l.bytes)
		last.closed = true
		if err := l.putHead(last.sealed(l.heads.signer)); err != nil {
			_ = l.poison("write audit checkpoint", l.cfg.CheckpointDir, err)
		} else if err := l.heads.keep(); err != nil {
			_ = l.poison("keep audit checkpoint", l.cfg.CheckpointDir, err)
		}
	}
	_ = l.segment.Close()
	_ = l.heads.f.Close()
	l.views.close()
}
