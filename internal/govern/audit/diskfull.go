package audit

import (
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"ken/capability"
)

// A chainPosition is where a chain stands: what the next record is tied to.
type chainPosition struct {
	tree frontier
	prev tlog.Hash // of the newest line
}

// A gap is a time in which the disk had no room for records.
type gap struct {
	since   time.Time
	cause   error
	refused int // records of callers who were told
}

// record is how the trail itself tells of a gap. It stands before the first
// record that found room again.
func (g *gap) record() Record {
	return Record{
		Event: Resumed, Error: new(g.cause.Error()),
		Metadata: Metadata{Notes: map[string]string{"since": formatTime(g.since), "refused": strconv.Itoa(g.refused)}},
	}
}

// fail makes err the answer to those who wait. Where the disk has no room the
// next append tries again, after mend; any other error poisons the log: what
// reached the disk is not known then, and nothing is touched again.
func (l *Log) fail(op, path string, err error) error {
	room := noRoom(err)
	fix := "no call runs until it can be recorded: fix the disk, then restart the program"
	if room {
		fix = "no call runs until it can be recorded: free space on the disk; the next call tries again"
	}
	if of, ok := err.(*fs.PathError); ok && of.Path == path {
		err = of.Err // the path is said already
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.poisoned {
		return l.failure
	}
	l.poisoned, l.torn = !room, room
	l.failure = &capability.Error{Kind: capability.Unavailable, Op: op, Target: path, Err: fmt.Errorf("%w: %w", ErrPoisoned, err), Fix: fix}
	return l.failure
}

// rewind takes back what was tied to the chain after its last durable record:
// a batch that could not be committed, and the one that waits behind it.
func (l *Log) rewind(b *batch) {
	l.mu.Lock()
	l.tree.set(&l.safe.tree)
	l.prev = l.safe.prev
	behind := l.queue.pending
	l.queue.pending = nil
	g := b.gap
	if g == nil {
		g = &gap{since: l.cfg.now(), cause: b.err}
	}
	g.refused += b.asked
	if behind != nil {
		g.refused += behind.asked
	}
	if l.safe.tree.size > 0 { // else Open was refused: a chain begins with no other record than its own
		l.gap = g
	}
	l.mu.Unlock()
	if behind != nil {
		behind.err = b.err
		close(behind.done)
	}
}

// mend brings the files back to what was acknowledged, after the disk had no
// room. The head goes first: it must never promise more than there is.
func (l *Log) mend() error {
	if !l.torn {
		return nil
	}
	if l.heads.note != nil {
		if err := l.heads.again(); err != nil {
			return l.fail("repair audit checkpoint", l.cfg.CheckpointDir, err)
		}
		l.unsynced = false
	}
	if err := l.segment.Truncate(l.bytes); err != nil {
		return l.fail("repair audit log", l.path, err)
	}
	if err := l.segment.Sync(); err != nil {
		return l.fail("repair audit log", l.path, err)
	}
	// What readers saw of the torn end is not overwritten under them: the chain
	// goes on in a file of its own.
	l.torn, l.renew = false, l.begun
	return nil
}
