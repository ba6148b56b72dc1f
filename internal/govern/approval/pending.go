package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ken/capability"
)

const (
	defaultPending   = 100      // requests of one principal that may wait
	mostPendingBytes = 16 << 20 // of all of them; each is kept for months
)

// mostPending is how many requests of one principal may wait.
func (d *Desk) mostPending() int {
	if d.conf.Pending == nil {
		return defaultPending
	}
	return max(1, cmp.Or(d.conf.Pending(), defaultPending))
}

// checkRoom denies a request of size bytes if too many requests of its principal
// wait already. A model asks as often as it likes, in sessions of any name; a
// person could not find the requests that matter. Several requests that are made
// at the same moment may all pass.
func (d *Desk) checkRoom(ctx context.Context, call *capability.Call, size int) error {
	most := d.mostPending()
	prefix := waitingKey(call.Principal, "")
	sizes := map[string]int{} // of the requests that wait, by id
	bytes := size
	for item, err := range d.scan(ctx, prefix, 0) {
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(string(item.Value))
		if err != nil {
			return fmt.Errorf("size of the approval request %s: %w", item.Key, err)
		}
		sizes[strings.TrimPrefix(item.Key, prefix)] = n
		bytes += n
	}
	if len(sizes) < most && bytes <= mostPendingBytes {
		return nil
	}
	waiting := 0
	for id, n := range sizes { // some may be over by the desk's own clock
		switch t, err := d.Get(ctx, id); {
		case err == nil && t.State == Pending:
			waiting++
		case err == nil || errors.Is(err, ErrNoTicket):
			bytes -= n
		default:
			return err
		}
	}
	if waiting < most && bytes <= mostPendingBytes {
		return nil
	}
	why := fmt.Errorf("%d approval requests of %s are already waiting for an answer", waiting, call.Principal.ID)
	if waiting < most {
		why = fmt.Errorf("%w, and together with this one they are larger than %d MiB", why, mostPendingBytes>>20)
	}
	return &capability.Error{
		Kind: capability.Denied, Op: "request approval of", Target: string(call.Target), Rule: "approval.pending", Err: why,
		Fix: "answer the waiting requests (ken approve list), or deny all of them (ken approve deny --all)",
	}
}
