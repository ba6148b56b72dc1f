package approval

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"ken/capability"
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
	for {
		got, err := d.ask(ctx, t)
		if !errors.Is(err, store.ErrConflict) {
			return got, err
		}
		// What this was based on has changed: look again.
	}
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
		return fail("invalid waiting time %v; use a positive time, or 0 for the default", q.For)
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

// ask is one try, based on what is in the store at its mark.
func (d *Desk) ask(ctx context.Context, t Ticket) (Ticket, error) {
	call := &t.Question.Call
	subject := subjectOf(call.Principal, call.Target)
	mark, _, err := d.read(ctx, markKey(subject))
	if err != nil {
		return Ticket{}, err
	}
	if old, ok, err := d.standing(ctx, &t, subject); ok || err != nil {
		return old, err
	}
	open := openKey(&t)
	pointer, there, err := d.read(ctx, open)
	if err != nil {
		return Ticket{}, err
	}
	if there {
		old, err := d.Get(ctx, string(pointer.Value))
		if err != nil && !errors.Is(err, ErrNoTicket) {
			return Ticket{}, err
		}
		if err == nil && old.State == Pending && old.Digest == t.Digest {
			return d.refresh(ctx, old, &t.Question)
		}
	}
	var b store.Batch
	b.At(markKey(subject), mark.Version) // no answer has come meanwhile
	if t.Voided, err = d.void(ctx, &b, &t.Question, subject); err != nil {
		return Ticket{}, err
	}
	if t.Before, err = d.before(ctx, &t); err != nil {
		return Ticket{}, err
	}
	t.ID = newID()
	data, err := encodeTicket(&t)
	if err != nil {
		return Ticket{}, err
	}
	if err := d.checkRoom(ctx, call, len(data)); err != nil {
		return Ticket{}, err
	}
	keep := t.Expires.Sub(t.Asked) + d.times().Retain
	if err := d.keepTime(ctx, &b, t.Asked); err != nil {
		return Ticket{}, err
	}
	b.At(open, pointer.Version)
	b.Absent(ticketKey(t.ID))
	b.PutFor(ticketKey(t.ID), data, keep)
	b.PutFor(open, []byte(t.ID), keep)
	b.PutFor(waitingKey(call.Principal, t.ID), strconv.AppendInt(nil, int64(len(data)), 10), t.Expires.Sub(t.Asked))
	t.version, err = d.store.Apply(ctx, &b)
	if err != nil {
		return Ticket{}, err
	}
	t.Offers = offers(&t.Question, d.times())
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
func (d *Desk) standing(ctx context.Context, t *Ticket, subject string) (Ticket, bool, error) {
	quiet, there, err := d.read(ctx, quietKey(&t.Question))
	if err != nil {
		return Ticket{}, false, err
	}
	now := d.now()
	if there {
		old, err := d.Get(ctx, string(quiet.Value))
		if err != nil && !errors.Is(err, ErrNoTicket) || err == nil && now.Before(old.Answer.At.Add(d.times().SessionFor)) {
			return old, true, err
		}
	}
	held, err := d.held(ctx, subject)
	if err != nil {
		return Ticket{}, false, err
	}
	last, err := d.latest(ctx)
	if err != nil {
		return Ticket{}, false, err
	}
	for i := range held {
		g := &held[i]
		if !g.covers(&t.Question, t.Digest) || g.over(now, last) || g.Scope != Once && t.Question.Widest != Session {
			continue
		}
		old, err := d.Get(ctx, g.Ticket)
		if err == nil || !errors.Is(err, ErrNoTicket) {
			return old, true, err
		}
	}
	return Ticket{}, false, nil
}

// newID returns 60 bits of chance in letters that people can type.
func newID() string { return strings.ToLower(rand.Text()[:12]) }
