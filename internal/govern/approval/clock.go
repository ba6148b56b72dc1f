package approval

import (
	"context"
	"time"

	"ken/internal/store"
)

// A clock may be set back. An ended ticket or grant must not become valid again
// then, so two things are stored: that it was seen after its end, and the
// latest time that any desk of this store has read. A record that was written
// before that time was read, and ends by it, has ended. Later records are not
// affected, so one wrong jump forward does not end new requests.

const clockKey = "approval/clock"

// A latest is the latest time that was read, and the store's version at that
// time.
type latest struct {
	at      time.Time
	version int64
}

func (d *Desk) latest(ctx context.Context) (latest, error) {
	l, err := d.look(ctx, clockKey)
	if err != nil {
		return latest{}, err
	}
	return l.latest()
}

// latest is like [Desk.latest] for a look that has the clock.
func (l look) latest() (latest, error) {
	item, there := l.item(clockKey)
	if !there {
		return latest{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, string(item.Value))
	return latest{at, item.Version}, err
}

// past reports whether a record that was written at a version and ends at a
// time has ended.
func (l latest) past(end time.Time, version int64, now time.Time) bool {
	return !now.Before(end) || version < l.version && !l.at.Before(end)
}

// clockStep is how much later than the latest time a time must be to be stored.
const clockStep = time.Minute

// keepTime adds the time to a batch if it is later than the latest.
func (l look) keepTime(b *store.Batch, now time.Time) error {
	last, err := l.latest()
	if err == nil && now.Sub(last.at) >= clockStep {
		b.At(clockKey, last.version)
		b.Put(clockKey, []byte(now.Format(time.RFC3339Nano)))
	}
	return err
}

// expire records that a ticket was seen after its end. If that cannot be
// written, the ticket has ended all the same, and the next read tries again.
func (d *Desk) expire(ctx context.Context, t *Ticket) {
	if t.Lapsed {
		return
	}
	kept := *t
	kept.Lapsed = true
	data, err := encodeTicket(&kept)
	if err != nil {
		return
	}
	var b store.Batch
	b.At(ticketKey(t.ID), t.version)
	b.PutFor(ticketKey(t.ID), data, d.times().Retain)
	if version, err := d.store.Apply(ctx, &b); err == nil {
		t.Lapsed, t.version = true, version
	}
}

// expireGrant records that a grant was seen after its end, like expire.
func (d *Desk) expireGrant(ctx context.Context, subject string, g Grant) {
	if g.Lapsed {
		return
	}
	g.Lapsed = true
	data, err := encodeGrant(&g)
	if err != nil {
		return
	}
	var b store.Batch
	b.At(grantKey(subject, g.Ticket), g.version)
	put(&b, grantKey(subject, g.Ticket), data, d.grantLife(&g))
	b.Put(markKey(subject), []byte(present))
	_, _ = d.store.Apply(ctx, &b)
	d.views.forget(subject)
}
