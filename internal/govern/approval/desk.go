package approval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/duration"
	"ken/internal/store"
)

// A Config is what a desk may be told. The zero value works.
type Config struct {
	For        time.Duration // how long a question waits; 0: a day
	OnceFor    time.Duration // how long a grant for one call waits to be used; 0: an hour
	SessionFor time.Duration // how long an answer for a session holds; 0: 30 days
	AlwaysFor  time.Duration // how long an answer for every session holds; 0: 30 days
	Retain     time.Duration // how long what is over can be looked up; 0: 90 days

	// Pending, when not nil, returns how many requests of one principal may wait
	// for an answer; 0: 100.
	Pending func() int

	// Approvers are the roles that may answer for others of their tenant.
	// Without any, everybody answers for himself alone.
	Approvers []string

	// Folder is the workspace of the calls that are asked about here, absolute and
	// without symbolic links. A grant holds in the workspace of its call only.
	Folder string

	// Redact takes secrets out of a value that is shown in a [Difference]; name
	// is the member or the argument before it. Without it no values are shown
	// there.
	Redact func(name, value string) string

	Now func() time.Time // nil: time.Now

	// Times, when not nil, are asked for whenever one is needed, instead of
	// the five above.
	Times func() Times
}

// A Desk keeps questions and answers in a store. Its methods may be used by any
// number of goroutines, and any number of processes may have a desk on the same
// store. It holds nothing that needs closing.
type Desk struct {
	store *store.Store
	conf  Config
	views views
}

// New returns the desk of a store. The store stays the caller's.
func New(s *store.Store, c Config) (*Desk, error) {
	given := Times{c.For, c.OnceFor, c.SessionFor, c.Retain, c.AlwaysFor}
	times := given.filled()
	for _, d := range []struct {
		name         string
		given, usual time.Duration
	}{
		{"For", given.For, times.For}, {"OnceFor", given.OnceFor, times.OnceFor},
		{"SessionFor", given.SessionFor, times.SessionFor}, {"Retain", given.Retain, times.Retain},
		{"AlwaysFor", given.AlwaysFor, times.AlwaysFor},
	} {
		if d.given < 0 {
			return nil, fmt.Errorf("open approvals: invalid %s %s; use a positive time, or 0 for %s", d.name, duration.Text(d.given), duration.Text(d.usual))
		}
	}
	if c.Times == nil {
		c.Times = func() Times { return times }
	}
	if s == nil {
		return nil, errors.New("open approvals: missing store")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Approvers = slices.Clone(c.Approvers)
	return &Desk{store: s, conf: c}, nil
}

// times returns how long things last, as it is now.
func (d *Desk) times() Times { return d.conf.Times().filled() }

// now is what is written down: without a monotonic clock, which no other
// process has, and without what JSON would not keep.
func (d *Desk) now() time.Time { return d.conf.Now().UTC().Truncate(time.Microsecond) }

// Get reads one ticket. It looks at no rights: what it gives holds another
// principal's arguments, and a surface shows it to those for whom
// [Desk.MaySettle] is true.
func (d *Desk) Get(ctx context.Context, id string) (Ticket, error) {
	t, _, err := d.get(ctx, id)
	return t, err
}

// get is Get with the clock.
func (d *Desk) get(ctx context.Context, id string) (Ticket, look, error) {
	if !plainID(id) {
		return Ticket{}, nil, noTicket(id)
	}
	l, err := d.look(ctx, ticketKey(id), clockKey, pastKey(id))
	if err != nil {
		return Ticket{}, nil, err
	}
	item, there := l.item(ticketKey(id))
	if !there {
		return Ticket{}, nil, noTicket(id)
	}
	t, err := d.complete(ctx, id, item, l)
	return t, l, err
}

// complete adds to a ticket what is not stored in it.
func (d *Desk) complete(ctx context.Context, id string, item store.Item, l look) (Ticket, error) {
	t, err := decodeTicket(id, item)
	if err != nil {
		return Ticket{}, err
	}
	last, err := l.latest()
	if err != nil {
		return Ticket{}, err
	}
	if t.State = t.stateAt(d.now(), last); t.State == Expired {
		d.expire(ctx, &t)
	}
	if t.State == Pending {
		t.Offers = offers(&t.Question, d.times())
	}
	if t.Grant != "" {
		from, _, _ := splitGrant(t.Grant)
		if from == id {
			t.Ended, err = l.ended(from)
		} else {
			t.Ended, err = d.ended(ctx, from)
		}
		if err != nil {
			return Ticket{}, err
		}
	}
	return t, nil
}

func noTicket(id string) error {
	return &capability.Error{
		Kind: capability.NotFound, Op: "read approval request", Target: fmt.Sprintf("%.64q", id), Err: ErrNoTicket,
		Fix: "see ken approve list; old requests are removed (approval.retain)",
	}
}

// MaySettle reports whether a person may answer a ticket: the one who is asked,
// and approvers of the same tenant.
func (d *Desk) MaySettle(by capability.Principal, t *Ticket) bool {
	asked := &t.Question.Call.Principal
	if by.ID == "" || by.Tenant != asked.Tenant {
		return false
	}
	return by.ID == asked.ID || slices.ContainsFunc(by.Roles, func(r string) bool { return slices.Contains(d.conf.Approvers, r) })
}

// A Filter narrows a list. The tenant always counts; of the others those that
// are set.
type Filter struct {
	Tenant     string
	Principal  string
	Session    string
	Capability capability.ID
	States     []State // of tickets
}

func (f *Filter) matches(p capability.Principal, session string, target capability.ID) bool {
	return p.Tenant == f.Tenant && (f.Principal == "" || f.Principal == p.ID) &&
		(f.Session == "" || f.Session == session) && (f.Capability == "" || f.Capability == target)
}

// List returns tickets, the oldest first. Asked for the pending ones alone, it
// reads no others. What cannot be read is in the error and hides only itself.
func (d *Desk) List(ctx context.Context, f Filter) ([]Ticket, error) {
	var list []Ticket
	var errs []error
	for t, err := range d.tickets(ctx, len(f.States) == 1 && f.States[0] == Pending) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		c := &t.Question.Call
		if f.matches(c.Principal, c.Session, c.Target) && (len(f.States) == 0 || slices.Contains(f.States, t.State)) {
			list = append(list, t)
		}
	}
	coldsort.By(list, func(a, b Ticket) int {
		return cmp.Or(a.Asked.Compare(b.Asked), cmp.Compare(a.ID, b.ID))
	})
	return list, errors.Join(errs...)
}

// Waiting counts the pending tickets of all tenants.
func (d *Desk) Waiting(ctx context.Context) (n int, err error) {
	for t, err := range d.tickets(ctx, true) {
		if err != nil {
			return 0, err
		}
		if t.State == Pending {
			n++
		}
	}
	return n, nil
}

// tickets reads those of all tenants: all of them, or only those that are open,
// some of which may have expired.
func (d *Desk) tickets(ctx context.Context, open bool) iter.Seq2[Ticket, error] {
	prefix, read := ticketPrefix, func(item store.Item) (Ticket, error) {
		id := strings.TrimPrefix(item.Key, ticketPrefix)
		l, err := d.look(ctx, clockKey, pastKey(id))
		if err != nil {
			return Ticket{}, err
		}
		return d.complete(ctx, id, item, l)
	}
	if open {
		prefix, read = openPrefix, func(item store.Item) (Ticket, error) { return d.Get(ctx, string(item.Value)) }
	}
	return func(yield func(Ticket, error) bool) {
		for item, err := range d.scan(ctx, prefix, 0) {
			var t Ticket
			if err == nil {
				t, err = read(item)
			}
			if errors.Is(err, ErrNoTicket) {
				continue // its time came just now
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// Wait returns the ticket as soon as it is no longer pending: settled by any
// process, or expired. It is for surfaces; nothing below one waits.
func (d *Desk) Wait(ctx context.Context, id string) (Ticket, error) {
	for {
		t, err := d.Get(ctx, id)
		if err != nil || t.State != Pending {
			return t, err
		}
		if err := d.watch(ctx, &t); err != nil {
			return Ticket{}, fmt.Errorf("wait for ticket %s: %w", id, err)
		}
	}
}

// watch returns when a pending ticket has changed or its time is over.
func (d *Desk) watch(ctx context.Context, t *Ticket) error {
	timed, cancel := context.WithTimeout(ctx, t.Expires.Sub(d.now()))
	defer cancel()
	for c, err := range d.store.Watch(timed, ticketKey(t.ID), t.version) {
		switch {
		case err == nil && c.Key == ticketKey(t.ID):
			return nil
		case err != nil && ctx.Err() != nil:
			return ctx.Err()
		case err != nil && timed.Err() != nil:
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}
