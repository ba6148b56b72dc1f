package approval

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/store"
)

// Settle answers a ticket. It succeeds for exactly one caller among all
// processes; the others get the ticket as it was settled, with [ErrSettled] and
// by whom and when. An answer that reaches further than one call also settles
// the other open questions that it covers.
//
// Who By is, and that it is a person, is for the surface to know. A ticket of
// another tenant is not found.
func (d *Desk) Settle(ctx context.Context, id string, a Answer) (Ticket, error) {
	return d.SettleAfter(ctx, id, a, nil)
}

// SettleAfter is Settle with something that must happen before the answer holds,
// as its record: first is given the ticket as it will be, once the answer is
// known to fit. With its error nothing is settled. Without one the answer may
// still not hold, because another answer was faster or the store failed; the
// error of SettleAfter says so.
func (d *Desk) SettleAfter(ctx context.Context, id string, a Answer, first func(Ticket) error) (Ticket, error) {
	for try := 0; ; try++ {
		t, err := d.settle(ctx, id, a, first, try > 0)
		if errors.Is(err, store.ErrConflict) {
			continue // it was settled meanwhile: see how
		}
		if err == nil && t.Answer.Scope != Once {
			d.settleAlong(ctx, &t)
		}
		return t, err
	}
}

// settle is one try. Unless everything is to be read, it assumes that the pointer to
// the ticket is as old as the ticket, as it usually is.
func (d *Desk) settle(ctx context.Context, id string, a Answer, first func(Ticket) error, all bool) (Ticket, error) {
	t, l, err := d.get(ctx, id)
	if err != nil {
		return Ticket{}, err
	}
	call := &t.Question.Call
	if a.By.Tenant != call.Principal.Tenant {
		return Ticket{}, noTicket(id)
	}
	refuse := func(kind capability.ErrorKind, err error, fix string) (Ticket, error) {
		return t, &capability.Error{Kind: kind, Op: "answer approval request", Target: id, Err: err, Fix: fix}
	}
	now := d.now()
	switch {
	case !d.MaySettle(a.By, &t):
		t = Ticket{}
		return refuse(capability.Denied, ErrNotYours, "only the person who was asked, or a person with a role in approval.approvers, can answer")
	case t.State == Expired:
		return refuse(capability.Conflict, fmt.Errorf("%w at %s", ErrExpired, stamp(t.Expires)), "make the call again to ask again")
	case t.State != Pending:
		return refuse(capability.Conflict, fmt.Errorf("%w: %s by %s at %s", ErrSettled, t.State, t.Answer.By.ID, stamp(t.Answer.At)), "see ken approve list --all; revoke a grant with ken approve revoke")
	}
	if err := a.check(&t.Question, now); err != nil {
		return refuse(capability.Invalid, err, "see ken approve list for the valid answers")
	}
	a.At, a.Until, a.With = now, a.Until.UTC().Truncate(time.Microsecond), ""
	a.By.Roles, a.Covers = nil, a.covers()

	var b store.Batch
	subject := subjectOf(call.Principal, call.Target)
	t.Answer = &a
	if a.Effect == Yes {
		g := newGrant(&t, subject, d)
		t.Grant = g.ID
		data, err := encodeGrant(&g)
		if err != nil {
			return Ticket{}, err
		}
		put(&b, grantKey(subject, t.ID), data, d.grantLife(&g))
	} else if a.Scope == Session {
		b.PutFor(quietKey(&t.Question), []byte(t.ID), d.times().SessionFor+grace)
	}
	b.Put(markKey(subject), []byte(present))
	open := openKey(&t)
	l[open] = store.Item{Key: open, Value: []byte(t.ID), Version: t.version}
	if all {
		if l, err = d.look(ctx, clockKey, open); err != nil {
			return Ticket{}, err
		}
	}
	if err := l.keepTime(&b, now); err != nil {
		return Ticket{}, err
	}
	if err := d.close(&b, &t, l); err != nil {
		return Ticket{}, err
	}
	if first != nil {
		if err := first(t); err != nil {
			return Ticket{}, err
		}
	}
	version, err := d.store.Apply(ctx, &b)
	d.views.forget(subject)
	if err != nil {
		return Ticket{}, err
	}
	t.version, t.Offers, t.State = version, nil, t.stateAt(now, latest{})
	return t, nil
}

// close adds to a batch that a ticket is answered and no longer open.
func (d *Desk) close(b *store.Batch, t *Ticket, l look) error {
	data, err := encodeTicket(t)
	if err != nil {
		return err
	}
	open := openKey(t)
	pointer, there := l.item(open)
	if there && string(pointer.Value) == t.ID {
		b.At(open, pointer.Version)
		b.Delete(open)
	}
	b.Delete(waitingKey(t.Question.Call.Principal, t.ID))
	b.At(ticketKey(t.ID), t.version)
	put(b, ticketKey(t.ID), data, d.ticketLife(t.Answer))
	b.PutFor(kinKey(t), []byte(t.ID), d.times().Retain)
	return nil
}

// settleAlong settles the other open tickets that an answer covers: those of
// the same capability, text, action and workspace, and for a session of that
// session, whose rules are content with such an answer. The answer is on disk by now, and moved
// the mark, so every ticket that does not know of it is already there to be
// found. One that cannot be settled here stays open and can be answered by
// itself, so errors change nothing for the caller.
func (d *Desk) settleAlong(ctx context.Context, first *Ticket) {
	call := &first.Question.Call
	for item, err := range d.scan(ctx, openPrefix+subjectOf(call.Principal, call.Target)+"/", 0) {
		if err != nil {
			return
		}
		t, err := d.Get(ctx, string(item.Value))
		if err != nil || t.State != Pending || !sameMatter(first, &t) {
			continue
		}
		a := *first.Answer
		a.With = first.ID
		t.Answer, t.Grant = &a, first.Grant
		var b store.Batch
		if l, err := d.look(ctx, openKey(&t)); err == nil && d.close(&b, &t, l) == nil {
			_, _ = d.store.Apply(ctx, &b) // a conflict: it was settled by itself
		}
	}
}

func sameMatter(first, t *Ticket) bool {
	a, b := &first.Question.Call, &t.Question.Call
	if a.Principal.ID != b.Principal.ID || a.Principal.Tenant != b.Principal.Tenant || a.Target != b.Target || a.Action != b.Action ||
		first.Question.Folder != t.Question.Folder {
		return false
	}
	if first.Answer.Scope == Session && a.Session != b.Session {
		return false
	}
	// A denial is about the action, whatever its text says by now.
	if first.Answer.Effect == No {
		return true
	}
	if t.Question.Widest != Session || a.CapabilityHash != b.CapabilityHash || policy.ChangedFile(first.Question.Files, t.Question.Files) != nil {
		return false
	}
	switch first.Answer.Covers {
	case CoverCall:
		return Exact(*a) == Exact(*b)
	case CoverPrefix:
		return slices.Equal(first.Question.Prefix, t.Question.Prefix) && policy.NewFile(first.Question.Files, t.Question.Files) == nil
	}
	return len(first.Question.Files) > 0 || len(t.Question.Files) == 0
}

// ticketLife is how long a ticket is kept: as long as its answer counts, and
// then as long as what is over is kept. 0 is for good.
func (d *Desk) ticketLife(a *Answer) time.Duration {
	switch a.Scope {
	case Always:
		return d.times().Retain + d.times().AlwaysFor
	case Session:
		return d.times().Retain + d.times().SessionFor
	case Until:
		return d.times().Retain + a.Until.Sub(a.At)
	}
	return d.times().Retain + d.times().OnceFor
}

// grace is how much longer than it holds a thing is stored: when it ends is for
// the desk's own clock to say.
const grace = time.Hour

func put(b *store.Batch, key string, value []byte, life time.Duration) {
	if life > 0 {
		b.PutFor(key, value, life)
	} else {
		b.Put(key, value)
	}
}
