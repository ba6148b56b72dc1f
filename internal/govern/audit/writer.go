package audit

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"ken/internal/wholefile"
)

// writer is where the chain is. Log.committing guards it.
type writer struct {
	segment  segmentFile
	path     string
	number   int   // of the segment
	bytes    int64 // in the segment
	begun    bool  // readers may have seen something in it, taken back since or not
	heads    headFile
	unkept   int           // records since a head went into the history
	unsynced bool          // the newest head is not durable yet
	safe     chainPosition // after the last record that is durable
	unsigned bool          // records before that are not under the newest head
	torn     bool          // the files may have more than that: mend
	renew    bool          // the next batch begins a segment

	crowd int           // how many were writing at the last commit
	took  time.Duration // how long it took
	due   *time.Timer   // runs while the newest head is not durable
	armed bool          // it does

	sign  *time.Timer // runs after a batch that was not signed
	signs bool        // it does
}

const (
	// signWithin is how long an announced record waits for a signature.
	signWithin = 10 * time.Millisecond

	maxGather = 500 * time.Microsecond

	// maxLead is how long the last commit may have taken for a caller to make the
	// next one itself. A caller that waits for the writing goroutine can give up.
	maxLead = 5 * time.Millisecond
)

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
		return fmt.Errorf("lock %s: %w", path, err)
	}
	if err := wholefile.SyncFolder(l.cfg.CheckpointDir); err != nil {
		f.Close()
		return err
	}
	l.heads = headFile{f: f, signer: l.cfg.Key.signer}
	if l.cfg.wrapHeads != nil {
		l.heads.f = l.cfg.wrapHeads(f)
	}
	l.prev = genesis(l.chain)
	l.safe.prev = l.prev
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
	l.segment, l.path, l.bytes, l.begun = f, path, 0, false
	l.number++
	return nil
}

// run is the writing goroutine: it commits batches until the log closes.
func (l *Log) run() {
	defer close(l.exited)
	for {
		select {
		case <-l.queue.wake:
			if l.next() {
				return
			}
		case <-l.due.C:
			l.committing.Lock()
			l.armed = false
			l.syncHead()
			l.committing.Unlock()
		case <-l.sign.C:
			l.committing.Lock()
			l.signs = false
			if !l.torn { // the next batch repairs that first, and signs
				_ = l.signHead() // Err says why
			}
			l.committing.Unlock()
		}
	}
}

// next commits the batch that waits. It reports whether the log is closed.
func (l *Log) next() (closed bool) {
	l.committing.Lock()
	defer l.committing.Unlock()
	l.gather()
	b, closing := l.take()
	if b != nil {
		l.carryOut(b)
	}
	if closing {
		l.due.Stop()
		l.sign.Stop()
		l.finish()
	}
	return closing
}

// lead commits the batch that waits on the goroutine of its first caller, which
// saves waking the writing goroutine and being woken by it. Where several write, or
// the disk is slow, or the caller has given up, the writing goroutine does it.
func (l *Log) lead(ctx context.Context) {
	if ctx.Err() == nil && l.leads() {
		return
	}
	select {
	case l.queue.wake <- struct{}{}:
	default:
	}
}

// leads reports whether it committed the batch that waits, if any.
func (l *Log) leads() bool {
	if !l.committing.TryLock() {
		return false
	}
	defer l.committing.Unlock()
	if l.crowd >= 2 || l.took >= maxLead {
		return false
	}
	if b, _ := l.take(); b != nil {
		l.carryOut(b)
	}
	return true
}

// carryOut settles a batch, and sees to it that its head is durable in time.
func (l *Log) carryOut(b *batch) {
	l.settle(b)
	l.crowd = b.count + l.waiting()
	l.arm()
}

// arm starts the timers of what the newest head lacks.
func (l *Log) arm() {
	if l.unsynced && !l.armed {
		l.armed = true
		l.due.Reset(l.cfg.SyncInterval)
	}
	if l.unsigned && !l.signs {
		l.signs = true
		l.sign.Reset(signWithin)
	}
}

// gather waits a moment for those whom the last commit woke: they are about to
// ask again, and one sync for all beats two for half each. It waits only where
// there were several, and never longer than a sync takes: a later caller
// is as well served by the next.
func (l *Log) gather() {
	if l.crowd < 2 || !l.expect(l.crowd) {
		return
	}
	timer := time.NewTimer(min(l.took, maxGather))
	defer timer.Stop()
	select {
	case <-l.queue.full:
	case <-timer.C:
		l.expect(0)
	}
}

// settle commits a batch, tells those who wait, and then does what need not
// hold them up.
func (l *Log) settle(b *batch) {
	if b.err = l.ready(); b.err == nil {
		b.err = l.commit(b)
	}
	if b.err != nil {
		l.rewind(b)
		close(b.done)
		_ = l.mend() // a torn end takes room; where this fails, the next batch tries again
		return
	}
	close(b.done)
	l.views.add(b.views)
	l.reuse(b.lines)
	_ = l.keepHead()
}

// ready says why nothing can be committed now, having mended what can be.
func (l *Log) ready() error {
	l.mu.Lock()
	failure, poisoned := l.failure, l.poisoned
	l.mu.Unlock()
	if poisoned {
		return failure
	}
	if err := l.mend(); err != nil {
		return err
	}
	return l.keepHead() // where there was no room for it before
}

// keepHead adds the newest head to the history when it is time.
func (l *Log) keepHead() error {
	if l.unkept < l.cfg.CheckpointEvery {
		return nil
	}
	if err := l.heads.keep(); err != nil {
		return l.fail("keep audit checkpoint", l.cfg.CheckpointDir, err)
	}
	l.unkept, l.unsynced = 0, false
	return nil
}

// commit writes a batch, makes it durable and, if one of its callers waits for
// that, signs the head over it. After an error nothing of what it did is relied
// upon again.
func (l *Log) commit(b *batch) error {
	if l.renew || l.bytes > 0 && l.bytes+int64(len(b.lines)) > l.cfg.SegmentBytes {
		if err := l.signHead(); err != nil { // a head ends in the newest segment
			return err
		}
		if err := l.nextSegment(); err != nil {
			return l.fail("rotate audit log", l.cfg.Dir, err)
		}
		l.renew = false
	}
	// The head is signed while the disk works where several wait, and written only
	// when the records are durable: it must never promise more than there is.
	start := time.Now()
	var sealed func() signedHead
	if b.sign {
		sealed = l.seal(l.headOver(&b.end.tree, l.bytes+int64(len(b.lines))))
	}
	n, err := l.segment.Write(b.lines)
	l.begun = l.begun || n > 0
	if err == nil && n < len(b.lines) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return l.fail("write audit log", l.path, err)
	}
	if err := l.segment.Sync(); err != nil {
		return l.fail("sync audit log", l.path, err)
	}
	l.took = time.Since(start)
	if sealed == nil {
		l.unsigned = true
		l.succeed(nil)
	} else if err := l.putHead(sealed()); err != nil {
		return l.fail("write audit checkpoint", l.cfg.CheckpointDir, err)
	}
	l.bytes += int64(n)
	l.unkept += b.count
	l.safe.tree.set(&b.end.tree)
	l.safe.prev = b.end.prev
	return nil
}

// seal signs a head beside what the caller does, and returns how to get it. For one
// caller alone it is signed when it is asked for: a goroutine costs more than the
// time that it saves.
func (l *Log) seal(next head) func() signedHead {
	if l.crowd < 2 {
		return func() signedHead { return next.sealed(l.heads.signer) }
	}
	signed := make(chan signedHead, 1)
	go func() { signed <- next.sealed(l.heads.signer) }()
	return func() signedHead { return <-signed }
}

// headOver is the head over a tree that ends at a byte of the segment.
func (l *Log) headOver(tree *frontier, end int64) head {
	return head{chain: l.chain, size: tree.size, root: tree.root(), segment: l.number, offset: end, time: l.cfg.now()}
}

// reuse keeps a buffer for a later batch.
func (l *Log) reuse(buf []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cap(buf) <= 4<<20 && len(l.queue.spare) < 2 {
		l.queue.spare = append(l.queue.spare, buf)
	}
}

func (l *Log) putHead(s signedHead) error {
	if err := l.heads.put(s); err != nil {
		return err
	}
	l.unsynced, l.unsigned = true, false
	l.succeed(l.heads.note)
	return nil
}

// succeed forgets the last failure. A head that is not nil is the newest.
func (l *Log) succeed(head []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failure = nil
	if head != nil {
		l.newest.signed = head
	}
}

// signHead signs what was announced and is not under a head yet.
func (l *Log) signHead() error {
	if !l.unsigned {
		return nil
	}
	if err := l.putHead(l.headOver(&l.safe.tree, l.bytes).sealed(l.heads.signer)); err != nil {
		return l.fail("write audit checkpoint", l.cfg.CheckpointDir, err)
	}
	l.arm()
	return nil
}

// syncHead makes the newest head durable after a while without a kept one.
func (l *Log) syncHead() {
	if !l.unsynced || l.torn { // what is torn is synced when it is mended
		return
	}
	if err := l.heads.f.Sync(); err != nil {
		_ = l.fail("sync audit checkpoint", l.cfg.CheckpointDir, err)
		return
	}
	l.unsynced = false
}

// finish signs the closing head, unless records were refused and there is
// still no room to say so: such a chain stays open for all to see.
func (l *Log) finish() {
	if err := l.tellGap(); err == nil && l.tree.size > 0 { // nothing is added to it any more
		last := l.headOver(&l.tree, l.bytes)
		last.closed = true
		if err := l.putHead(last.sealed(l.heads.signer)); err != nil {
			_ = l.fail("write audit checkpoint", l.cfg.CheckpointDir, err)
		} else if err := l.heads.keep(); err != nil {
			_ = l.fail("keep audit checkpoint", l.cfg.CheckpointDir, err)
		}
	}
	_ = l.segment.Close()
	_ = l.heads.f.Close()
	l.views.close()
}

// tellGap writes the record about a gap that no other record came after. It
// gives why the chain cannot be closed.
func (l *Log) tellGap() error {
	l.mu.Lock()
	told := l.gap == nil || l.poisoned
	var err error
	if !told {
		err = l.needBatch()
	}
	l.mu.Unlock()
	if told {
		return l.ready()
	}
	if err != nil {
		return err
	}
	b, _ := l.take()
	l.settle(b)
	return b.err
}
