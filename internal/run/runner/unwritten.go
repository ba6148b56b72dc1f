package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
)

// The maximum number of closing records that are kept for later, and how many
// are written at once.
const (
	mostUnwritten = 4096
	writtenAtOnce = 64
)

// unwritten keeps closing records that the audit log did not accept. While
// there are any, no call starts. Every call and every [Runner.Ready] first
// tries to write them.
type unwritten struct {
	turn chan struct{} // holds one value during a write

	mu      sync.Mutex
	records []audit.Record
	dropped int               // records lost because there were too many
	cause   *capability.Error // why the last attempt failed; nil if records is empty
}

// why returns why the records could not be written, or nil.
func (u *unwritten) why() *capability.Error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.cause
}

func (u *unwritten) add(cause *capability.Error, records []audit.Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cause = cause
	room := max(0, mostUnwritten-len(u.records))
	if len(records) > room {
		u.dropped += len(records) - room
		records = records[:room]
	}
	u.records = append(u.records, records...)
}

// next returns the records to write next. If some were dropped, the first one
// says so.
func (u *unwritten) next() []audit.Record {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := min(len(u.records), writtenAtOnce)
	if n > 0 && u.dropped > 0 {
		notes := maps.Clone(u.records[0].Metadata.Notes)
		notes["dropped"] = strconv.Itoa(u.dropped) + " more records could not be kept until the audit log could be written"
		u.records[0].Metadata.Notes = notes
	}
	return u.records[:n:n]
}

// wrote drops the first n records, which are in the audit log now.
func (u *unwritten) wrote(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.records, u.dropped = u.records[n:], 0
	if len(u.records) == 0 {
		u.records, u.cause = nil, nil
	}
}

func (u *unwritten) failed(cause *capability.Error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cause = cause
}

// Ready returns why no call can start now, or nil. It tries to write the
// records that the audit log did not accept before, so its answer is the one
// the next call would get.
func (r *Runner) Ready(ctx context.Context) error {
	if r.calls.isClosed() {
		return errors.New("the runner is closed")
	}
	return r.records.catchUp(ctx)
}

// catchUp writes the closing records that the audit log did not accept before.
func (w *recorder) catchUp(ctx context.Context) error {
	u := &w.unwritten
	if u.why() == nil {
		return nil
	}
	select {
	case u.turn <- struct{}{}:
		defer func() { <-u.turn }()
	case <-ctx.Done():
		return gaveUp(ctx)
	}
	// If the caller gave up in the middle, it would be unknown what was
	// written.
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.within)
	defer cancel()
	for {
		records := u.next()
		if len(records) == 0 {
			return nil
		}
		if _, err := w.log.Append(late, records...); err != nil {
			cause := unwritable(err)
			u.failed(cause)
			return cause
		}
		u.wrote(len(records))
	}
}

// degrade keeps the closing records for later, and notes in the result that
// they are missing.
func (w *recorder) degrade(res *capability.Result, records []audit.Record, cause error) {
	for i := range records {
		notes := map[string]string{}
		maps.Copy(notes, records[i].Metadata.Notes)
		notes["late"] = "the audit log could not be written when the call ended, at " + w.now().UTC().Format(time.RFC3339Nano)
		records[i].Metadata.Notes = notes
	}
	w.unwritten.add(unwritable(cause), records)
	res.Meta[MetaAudit] = "degraded"
	res.Parts = append(res.Parts, capability.Part{
		Text: "The end of this call is not in the audit log yet: " + cause.Error() + ". No further call runs until the audit log can be written.",
	})
}

// unwritable is the error of every call while closing records are missing.
func unwritable(cause error) *capability.Error {
	if e, ok := errors.AsType[*capability.Error](cause); ok && errors.Is(e, errUnwritable) {
		return e
	}
	fix, cause := apartFix(cause)
	return &capability.Error{
		Kind: capability.Unavailable, Op: "record", Rule: "audit", Err: fmt.Errorf("%w: %w", errUnwritable, cause), Fix: fix,
	}
}

var errUnwritable = errors.New("the results of earlier calls are not recorded yet, so nothing runs")

// apartFix splits an error of the audit log into the fix and the error without
// it.
func apartFix(cause error) (fix string, bare error) {
	if e, ok := cause.(*capability.Error); ok && e.Fix != "" {
		copied := *e
		copied.Fix = ""
		return e.Fix, &copied
	}
	return "make the audit directory writable, with free space; the next call tries again", cause
}
