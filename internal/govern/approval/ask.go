package approval

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/duration"
	"ken/internal/store"
)

// Ask puts a question on the desk and gives its ticket. The same call of the
// same principal, session and workspace, asked again while the question is open,
// gets the same ticket, from any process.
//
// The ticket that comes back need not be pending: it is denied where a person
// said not to be asked again in this session, and granted where a person has
// just given a consent that covers the call. A caller who then decides again
// and is still told to ask must not go round a second time.
func (d *Desk) Ask(ctx context.Context, q Question) (Ticket, error) {
	t, err := d.newTicket(q)
	if err != nil {
		return Ticket{}, err
	}
	if old, ok, err := d.again(ctx, &t, q.Again); ok || err != nil {
		return old, err
	}
	p := t.place()
	v := d.views.get(p.subject)
	if v != nil && (v.asked[p.open] || v.kin[p.kin].large) {
		v = nil
	}
	for counted := false; ; v = nil {
		var got Ticket
		if v != nil {
			got, err = d.askKnown(ctx, t, p, v)
		} else {
			got, err = d.ask(ctx, t, p, counted)
		}
		changed, ok := errors.AsType[*store.Conflict](err)
		if !ok {
			return got, err
		}
		// What this was based on has changed: look again.
		d.views.forget(p.subject)
		if changed.Key == q.Unless {
			return Ticket{}, ErrHappened
		}
		counted = changed.Key == waitingKey(t.Question.Call.Principal, "")
	}
}

// askKnown puts a question on the desk. As far as is known here, no grant and no other
// question bears on it. The store is not read for that: the batch fails if it is no
// longer so.
func (d *Desk) askKnown(ctx context.Context, t Ticket, p place, v *view) (Ticket, error) {
	var b store.Batch
	b.Absent(p.quiet)
	relatives, known := v.kin[p.kin]
	if !known {
		b.AtMost(kinPrefix(p.kin), 0)
	}
	last, err := v.last()
	if err != nil {
		return Ticket{}, err
	}
	if slices.ContainsFunc(v.grants, func(g Grant) bool { return g.answers(&t, d.now(), last) }) {
		return Ticket{}, &store.Conflict{Key: markKey(p.subject)} // it is to be read
	}
	return d.open(ctx, &b, t, p, v, look{clockKey: v.clock}, relatives, false)
}

const longestJustification = 1000

func (d *Desk) newTicket(q Question) (Ticket, error) {
	fail := func(format string, args ...any) (Ticket, error) {
		return Ticket{}, &capability.Error{Kind: capability.Invalid, Op: "request approval of", Target: string(q.Call.Target), Err: fmt.Errorf(format, args...)}
	}
	q.Call.Answers, q.Call.Live, q.Folder = nil, nil, d.conf.Folder
	digest, err := q.Call.Digest()
	switch {
	case err != nil:
		return fail("%w", err)
	case q.Call.Target == "" || q.Call.Principal.ID == "":
		return fail("the call has no capability or no principal; an approval needs both")
	case q.Call.CapabilityHash == "":
		return fail("the call has no capability hash; resolve the capability first, because an approval applies to one version of it")
	case q.Widest != "" && q.Widest != Once && q.Widest != Session:
		return fail("invalid widest scope %q; use %s or %s", q.Widest, Once, Session)
	case q.For < 0:
		return fail("invalid waiting time %s; use a positive time, or 0 for the default", duration.Text(q.For))
	}
	if n := utf8.RuneCountInString(q.Justification); n > longestJustification {
		q.Justification = string([]rune(q.Justification)[:longestJustification]) + fmt.Sprintf(" … (%d more characters)", n-longestJustification)
	}
	wait := cmp.Or(q.For, d.times().For)
	q.For = 0
	now := d.now()
	t := Ticket{State: Pending, Question: q, Digest: digest, Asked: now, Expires: now.Add(wait)}
	// What is read back must be the call that was asked about.
	data, err := encodeTicket(&t)
	if err != nil {
		return Ticket{}, err
	}
	back, err := decodeTicket("", store.Item{Key: "question", Value: data})
	if err != nil {
		return Ticket{}, err
	}
	if again, err := back.Question.Call.Digest(); err != nil || again != digest {
		return fail("a name in the call is not valid UTF-8")
	}
	return t, nil
}

// again returns the ticket of an earlier try of the same call, where that is the
// answer.
func (d *Desk) again(ctx context.Context, t *Ticket, id string) (Ticket, bool, error) {
	if id == "" {
		return Ticket{}, false, nil
	}
	old, err := d.Get(ctx, id)
	if errors.Is(err, ErrNoTicket) {
		return Ticket{}, false, nil
	}
	same := err == nil && old.Digest == t.Digest && old.Question.Folder == t.Question.Folder
	return old, err != nil || same && (old.State == Denied || old.State == Expired), err
}

// ask is one try, based on what is in the store at its mark. counted says that the
// store counted too many open questions, some of which may be over.
func (d *Desk) ask(ctx context.Context, t Ticket, p place, counted bool) (Ticket, error) {
	v, l, err := d.see(ctx, p)
	if err != nil {
		return Ticket{}, err
	}
	if old, ok, err := d.standing(ctx, &t, v, l); ok || err != nil {
		return old, err
	}
	pointer, there := l.item(p.open)
	if there {
		old, err := d.Get(ctx, string(pointer.Value))
		if err != nil && !errors.Is(err, ErrNoTicket) {
			return Ticket{}, err
		}
		if err == nil && old.State == Pending && old.Digest == t.Digest {
			return d.refresh(ctx, old, &t.Question)
		}
	}
	return d.open(ctx, &store.Batch{}, t, p, v, l, v.kin[p.kin], counted)
}

// open puts a ticket on the desk, in a batch that may have preconditions already.
func (d *Desk) open(ctx context.Context, b *store.Batch, t Ticket, p place, v *view, l look, relatives kin, counted bool) (Ticket, error) {
	call := &t.Question.Call
	b.At(markKey(p.subject), v.mark) // no answer has come meanwhile
	last, err := l.latest()
	if err != nil {
		return Ticket{}, err
	}
	if t.Voided, err = d.void(b, &t.Question, p.subject, v.grants, last); err != nil {
		return Ticket{}, err
	}
	if t.Before, err = d.before(&t, relatives.tickets); err != nil {
		return Ticket{}, err
	}
	t.ID = newID()
	data, err := encodeTicket(&t)
	if err != nil {
		return Ticket{}, err
	}
	if most := d.mostPending(); counted || len(data) > mostPendingBytes/most {
		if err := d.checkRoom(ctx, call, len(data)); err != nil {
			return Ticket{}, err
		}
	} else {
		b.AtMost(waitingKey(call.Principal, ""), most-1)
	}
	keep := t.Expires.Sub(t.Asked) + d.times().Retain
	if err := l.keepTime(b, t.Asked); err != nil {
		return Ticket{}, err
	}
	if t.Question.Unless != "" {
		b.Absent(t.Question.Unless)
	}
	pointer, _ := l.item(p.open)
	b.At(p.open, pointer.Version)
	b.Absent(ticketKey(t.ID))
	b.PutFor(ticketKey(t.ID), data, keep)
	b.PutFor(p.open, []byte(t.ID), keep)
	b.PutFor(waitingKey(call.Principal, t.ID), strconv.AppendInt(nil, int64(len(data)), 10), t.Expires.Sub(t.Asked))
	t.version, err = d.store.Apply(ctx, b)
	if err != nil {
		return Ticket{}, err
	}
	if d.views.ask(p.subject, p.open); len(t.Voided) > 0 {
		d.views.forget(p.subject)
	}
	t.Offers = offers(&t.Question, d.times())
	d.views.open(t, len(data))
	return t, nil
}

// refresh brings an open ticket up to date where the rules want the consent for
// another reason by now, or count another answer.
func (d *Desk) refresh(ctx context.Context, old Ticket, q *Question) (Ticket, error) {
	was := &old.Question
	if was.Rule == q.Rule && was.Why == q.Why && was.Widest == q.Widest && was.Risk == q.Risk {
		return old, nil
	}
	was.Rule, was.Why, was.Widest, was.Risk = q.Rule, q.Why, q.Widest, q.Risk
	data, err := encodeTicket(&old)
	if err != nil {
		return Ticket{}, err
	}
	var b store.Batch
	b.At(ticketKey(old.ID), old.version)
	b.PutFor(ticketKey(old.ID), data, old.Expires.Sub(d.now())+d.times().Retain)
	old.version, err = d.store.Apply(ctx, &b)
	return old, err
}

// standing returns the ticket whose answer already covers the question.
func (d *Desk) standing(ctx context.Context, t *Ticket, v *view, l look) (Ticket, bool, error) {
	quiet, there := l.item(quietKey(&t.Question))
	now := d.now()
	if there {
		old, err := d.Get(ctx, string(quiet.Value))
		if err != nil && !errors.Is(err, ErrNoTicket) || err == nil && now.Before(old.Answer.At.Add(d.times().SessionFor)) {
			return old, true, err
		}
	}
	last, err := l.latest()
	if err != nil {
		return Ticket{}, false, err
	}
	for i := range v.grants {
		if !v.grants[i].answers(t, now, last) {
			continue
		}
		old, err := d.Get(ctx, v.grants[i].Ticket)
		if err == nil || !errors.Is(err, ErrNoTicket) {
			return old, true, err
		}
	}
	return Ticket{}, false, nil
}

// answers reports whether a question need not be asked because the grant covers it.
func (g *Grant) answers(t *Ticket, now time.Time, last latest) bool {
	return g.covers(&t.Question, t.Digest) && !g.over(now, last) && (g.Scope == Once || t.Question.Widest == Session)
}

// newID returns 60 bits of chance in letters that people can type.
func newID() string { return strings.ToLower(rand.Text()[:12]) }
