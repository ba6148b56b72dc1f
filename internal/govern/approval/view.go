package approval

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/govern/policy"
	"ken/internal/store"
)

// A place is where the store has what bears on a call.
type place struct{ subject, kin, quiet, open string }

func (t *Ticket) place() place {
	c := &t.Question.Call
	return place{subjectOf(c.Principal, c.Target), kinOf(c), quietKey(&t.Question), openKey(t)}
}

func (d *Desk) placeOf(q *policy.Request) place {
	t := Ticket{Digest: q.Digest, Question: Question{Folder: d.conf.Folder, Call: capability.Call{
		Principal: q.Principal, Target: q.Capability.ID, Action: q.Action, Session: q.Session,
	}}}
	return t.place()
}

// A view is what the store had about a subject when it was last read here. It may be
// out of date. So it is used only for batches that pass if the mark is as it was,
// and for nothing that is shown. It is never changed.
type view struct {
	read   time.Time
	mark   int64 // version
	clock  store.Item
	grants []Grant // those that cover most first, so that one for a single call is not used up where another would do
	kin    map[string]kin
	asked  map[string]bool // keys of open tickets: they may be answered by now
}

// A kin is the newest settled tickets of a capability, action and session.
type kin struct {
	tickets []store.Item // by their own keys, the newest first
	large   bool         // they are not kept
}

func (v *view) last() (latest, error) { return look{clockKey: v.clock}.latest() }

// views are those of the subjects that were read last.
type views struct {
	mu     sync.Mutex
	known  map[string]*view
	opened map[string]Ticket // just now, by id
}

const (
	mostViews    = 256
	mostSessions = 16       // whose kin one view has
	largestKin   = 64 << 10 // bytes
)

func (vs *views) get(subject string) *view {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return vs.known[subject]
}

// set keeps a view. What an older one knows of other sessions at the same mark stays.
func (vs *views) set(subject string, v *view) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.known == nil || len(vs.known) >= mostViews {
		vs.known = map[string]*view{}
	}
	old := vs.known[subject]
	if old != nil && old.mark > v.mark {
		return
	}
	if old != nil && old.mark == v.mark && len(old.kin) < mostSessions && len(old.asked) < mostCached {
		merged := *v
		merged.kin, merged.asked = maps.Clone(old.kin), maps.Clone(old.asked)
		maps.Copy(merged.kin, v.kin)
		maps.Copy(merged.asked, v.asked)
		v = &merged
	}
	vs.known[subject] = v
}

// forget drops what is known of a subject, because it has changed.
func (vs *views) forget(subject string) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	delete(vs.known, subject)
}

// ask notes that a ticket is open.
func (vs *views) ask(subject, open string) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if old := vs.known[subject]; old != nil {
		v := *old
		v.asked = maps.Clone(old.asked)
		v.asked[open] = true
		vs.known[subject] = &v
	}
}

// mostOpened is how many tickets are kept for [Desk.Opened].
const mostOpened = 64

func (vs *views) open(t Ticket, size int) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.opened == nil || len(vs.opened) >= mostOpened {
		vs.opened = map[string]Ticket{}
	}
	if size <= largestKin {
		vs.opened[t.ID] = t
	}
}

// Opened is like [Desk.Get] for a ticket that [Desk.Ask] of this desk has just opened,
// which it returns once as it was then, without a trip to the store.
func (d *Desk) Opened(ctx context.Context, id string) (Ticket, error) {
	d.views.mu.Lock()
	t, ok := d.views.opened[id]
	delete(d.views.opened, id)
	d.views.mu.Unlock()
	if ok {
		return t, nil
	}
	return d.Get(ctx, id)
}

// spent notes that a grant was used, which moved the mark from the one of a view.
func (vs *views) spent(subject string, mark, now int64, grant string) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	old := vs.known[subject]
	if old == nil || old.mark != mark {
		return
	}
	v := *old
	v.mark = now
	v.grants = slices.DeleteFunc(slices.Clone(old.grants), func(g Grant) bool { return g.ID == grant })
	vs.known[subject] = &v
}

const mostCached = 1024

// see reads all that bears on a call, in one trip.
func (d *Desk) see(ctx context.Context, p place) (*view, look, error) {
	grants, relatives := grantPrefix+p.subject+"/", kinPrefix(p.kin)
	items, err := d.store.Read(ctx, store.Query{
		Keys:   []string{markKey(p.subject), clockKey, p.quiet, p.open},
		Groups: []store.Group{{Prefix: grants, Limit: mostRead}, {Prefix: relatives, Limit: mostKin, Names: ticketPrefix}},
	})
	if err != nil {
		return nil, nil, err
	}
	l := look(items)
	mark, marked := l.item(markKey(p.subject))
	_, open := l.item(p.open)
	v := &view{read: time.Now(), mark: mark.Version, kin: map[string]kin{}, asked: map[string]bool{p.open: open}}
	v.clock, _ = l.item(clockKey)
	var k kin
	size := 0
	for _, key := range slices.Sorted(maps.Keys(items)) {
		item, there := l.item(key)
		switch {
		case !there:
		case marked && strings.HasPrefix(key, grants):
			g, err := d.grant(item)
			if err != nil {
				return nil, nil, err
			}
			v.grants = append(v.grants, g)
		case strings.HasPrefix(key, relatives):
			if t, there := l.item(ticketKey(string(item.Value))); there {
				k.tickets = append(k.tickets, t)
				size += len(t.Value)
			}
		}
	}
	if len(v.grants) == mostRead {
		if v.grants, err = d.allGrants(ctx, grants); err != nil {
			return nil, nil, err
		}
	}
	order := []Scope{Always, Until, Session, Once}
	coldsort.Stable(v.grants, func(a, b Grant) int {
		return cmp.Compare(slices.Index(order, a.Scope), slices.Index(order, b.Scope))
	})
	v.kin[p.kin] = k
	kept := *v
	if size > largestKin {
		kept.kin = map[string]kin{p.kin: {large: true}}
	}
	d.views.set(p.subject, &kept)
	return v, l, nil
}

// mostRead is how many grants of a subject are read in one trip.
const mostRead = 128

func (d *Desk) allGrants(ctx context.Context, prefix string) (grants []Grant, err error) {
	for item, err := range d.scan(ctx, prefix, 0) {
		if err != nil {
			return nil, err
		}
		g, err := d.grant(item)
		if err != nil {
			return nil, err
		}
		grants = append(grants, g)
	}
	return grants, nil
}

// Known is like [Desk.Grants] without a trip to the store: it returns the grants as
// they were when the store was last read here, and false if they are not known. They
// may be out of date. That is found out by [Desk.Ask], [Desk.Spend] and [Desk.Consume],
// one of which must follow before the call is made.
func (d *Desk) Known(q *policy.Request) ([]policy.Grant, bool) {
	p := d.placeOf(q)
	v := d.views.get(p.subject)
	if v == nil || v.asked[p.open] {
		return nil, false
	}
	last, err := v.last()
	if err != nil {
		return nil, false
	}
	return d.bearing(q, v, last, func(Grant) {}), true
}

// bearing returns the grants of a view that can bear on a request. It reports those
// whose time is over.
func (d *Desk) bearing(q *policy.Request, v *view, last latest, over func(Grant)) (out []policy.Grant) {
	now := d.now()
	for i := range v.grants {
		g := &v.grants[i]
		switch {
		case g.over(now, last):
			over(*g)
		case g.Folder == d.conf.Folder && g.fits(q.Principal, q.Capability.ID, q.Capability.Hash, q.Action, q.Session, q.Digest):
			out = append(out, g.policy())
		}
	}
	return out
}

// A Spending uses a grant for one call in a batch of the caller's: the call and the end
// of its grant are then stored together, or neither.
type Spending struct {
	desk    *Desk
	grant   Grant
	subject string
	mark    int64
	ending  Ending
}

// freshFor is how long a view is good enough to spend a grant of it.
const freshFor = 5 * time.Second

// Spend returns how to use up a grant for one call in a batch of the caller's. It
// reports false for any other grant, and if the store was not read here just before:
// then [Desk.Consume] is right.
func (d *Desk) Spend(id string) (*Spending, bool) {
	_, subject, ok := splitGrant(id)
	v := d.views.get(subject)
	if !ok || v == nil || time.Since(v.read) > freshFor {
		return nil, false
	}
	i := slices.IndexFunc(v.grants, func(g Grant) bool { return g.ID == id })
	last, err := v.last()
	if now := d.now(); i >= 0 && err == nil && v.grants[i].Scope == Once && !v.grants[i].over(now, last) {
		return &Spending{d, v.grants[i], subject, v.mark, Ending{Grant: id, How: howSpent, At: now}}, true
	}
	return nil, false
}

// Shares reports whether the desk keeps its records in a store, so that a [Spending]
// can be part of a batch for it.
func (d *Desk) Shares(s *store.Store) bool { return d.store == s }

// Add adds to a batch that the grant is used up. The batch fails with a conflict if it
// was used or revoked meanwhile.
func (s *Spending) Add(b *store.Batch) error {
	b.At(grantKey(s.subject, s.grant.Ticket), s.grant.version)
	b.At(markKey(s.subject), s.mark)
	b.Put(markKey(s.subject), []byte(present))
	return s.desk.bury(b, &s.grant, s.subject, s.ending)
}

// Failed reports whether a conflict means that the grant is not as it was, and forgets
// what the desk knew of it.
func (s *Spending) Failed(c *store.Conflict) bool {
	if c.Key != grantKey(s.subject, s.grant.Ticket) && c.Key != markKey(s.subject) {
		return false
	}
	s.desk.views.forget(s.subject)
	return true
}

// Done says that the batch was applied, at a version.
func (s *Spending) Done(version int64) {
	s.desk.views.spent(s.subject, s.mark, version, s.grant.ID)
}
