package approval

import (
	"context"
	"fmt"

	"ken/capability"
	"ken/internal/store"
)

// What may wait of one principal for one capability. A model asks as often as it
// likes, in sessions of any name; a person could not find the requests that
// matter, and each is kept for months.
const (
	mostPending      = 256
	mostPendingBytes = 16 << 20
)

// room returns an error if too many questions of a subject wait already for one
// more of this size. It adds to the batch that what points to expired ones is
// forgotten.
func (d *Desk) room(ctx context.Context, b *store.Batch, t *Ticket, subject string, size int) error {
	last, err := d.latest(ctx)
	if err != nil {
		return err
	}
	now, n, expired := d.now(), 0, 0
	for pointer, err := range d.scan(ctx, openPrefix+subject+"/", 0) {
		if err != nil {
			return err
		}
		item, there, err := d.read(ctx, ticketKey(string(pointer.Value)))
		if err != nil {
			return err
		}
		if !there {
			continue
		}
		old, err := decodeTicket(string(pointer.Value), item)
		if err == nil && old.stateAt(now, last) == Expired {
			if pointer.Key != openKey(t) && expired < mostPending {
				expired++
				b.At(pointer.Key, pointer.Version)
				b.Delete(pointer.Key)
			}
			continue
		}
		n, size = n+1, size+len(item.Value)
	}
	if n < mostPending && size <= mostPendingBytes {
		return nil
	}
	return &capability.Error{
		Kind: capability.Unavailable, Op: "request approval of", Target: string(t.Question.Call.Target), Rule: "approval.wait",
		Err: fmt.Errorf("%d requests for it wait for an answer; no more than %d do, with %d MiB in all", n, mostPending, mostPendingBytes>>20),
		Fix: "answer them (ken approve list), or wait until they end (approval.wait)",
	}
}
