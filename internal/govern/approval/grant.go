package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/govern/policy"
	"ken/internal/store"
)

// Times are how long things last at a desk. The fields are those of [Config], a
// zero means the same, and what is less than zero counts as zero.
type Times struct{ For, OnceFor, SessionFor, Retain, AlwaysFor time.Duration }

func (t Times) filled() Times {
	usual := func(d, usual time.Duration) time.Duration { return cmp.Or(max(d, 0), usual) }
	return Times{
		For: usual(t.For, 24*time.Hour), OnceFor: usual(t.OnceFor, time.Hour),
		SessionFor: usual(t.SessionFor, 30*24*time.Hour), Retain: usual(t.Retain, 90*24*time.Hour),
		AlwaysFor: usual(t.AlwaysFor, 30*24*time.Hour),
	}
}

// A Grant is a consent that holds: what policy compares, and where it comes
// from. Every field that is set narrows it.
type Grant struct {
	ID         string        `json:"id"`
	Scope      Scope         `json:"scope"`
	Tenant     string        `json:"tenant,omitempty"`
	Principal  string        `json:"principal"`
	Capability capability.ID `json:"capability"`
	Hash       string        `json:"hash"`
	Action     string        `json:"action,omitempty"`
	Digest     string        `json:"digest,omitempty"`
	Session    string        `json:"session,omitempty"`
	Folder     string        `json:"folder,omitempty"` // the workspace in which it holds
	Until      time.Time     `json:"until,omitzero"`

	// Covers says which calls are covered: the one of Exact, those that begin
	// with Prefix, or every call. It is empty for a grant with the scope Once.
	Covers Cover    `json:"covers,omitempty"`
	Exact  string   `json:"exact,omitempty"`
	Prefix []string `json:"prefix,omitempty"`

	// Files are the programs and scripts of the approved call. A call in which
	// one of them has changed is not covered. With a Prefix, neither is a call
	// that runs others.
	Files []policy.File `json:"files,omitempty"`

	// Call is the approved call in one line, for people.
	Call string `json:"call,omitempty"`

	Ticket string    `json:"ticket"` // that was answered
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Note   string    `json:"note,omitempty"`

	// Lapsed is set once the grant was seen after its end: it stays ended even
	// if the clock is set back.
	Lapsed bool `json:"lapsed,omitempty"`

	version int64 // of its record
}

func newGrant(t *Ticket, subject string, d *Desk) Grant {
	c, a := &t.Question.Call, t.Answer
	g := Grant{
		Covers: a.covers(), Files: t.Question.Files, Folder: t.Question.Folder,
		ID: grantID(t.ID, subject), Scope: a.Scope, Tenant: c.Principal.Tenant, Principal: c.Principal.ID,
		Capability: c.Target, Hash: c.CapabilityHash, Action: c.Action, Ticket: t.ID, By: a.By.ID, At: a.At, Note: a.Note,
	}
	switch g.Covers {
	case CoverCall:
		g.Exact = Exact(*c)
	case CoverPrefix:
		g.Prefix = t.Question.Prefix
	}
	if line := d.line(&t.Question); line != "" {
		g.Call = excerpt(line, 0)
	}
	switch a.Scope {
	case Once:
		g.Digest, g.Session, g.Until = t.Digest, c.Session, a.At.Add(d.times().OnceFor)
	case Session:
		g.Session, g.Until = c.Session, a.At.Add(d.times().SessionFor)
	case Until:
		g.Until = a.Until
	case Always:
		g.Until = a.At.Add(d.times().AlwaysFor)
	}
	return g
}

// Exact returns the digest of a call without session, intent and mode. A grant
// for one call in every session is bound to it. A call without a digest equals
// no other call.
func Exact(c capability.Call) string {
	c.Session, c.Intent, c.Mode = "", "", ""
	if len(c.Arguments) == 0 {
		c.Arguments = json.RawMessage("{}") // missing arguments equal an empty object
	}
	digest, err := c.Digest()
	if err != nil {
		return "none"
	}
	return digest
}

func (g *Grant) policy() policy.Grant {
	return policy.Grant{
		ID: g.ID, Tenant: g.Tenant, Principal: g.Principal, Capability: g.Capability, Hash: g.Hash, Action: g.Action,
		Digest: g.Digest, Session: g.Session, Until: g.Until, Always: g.Scope == Always,
		Exact: g.Exact, Prefix: g.Prefix, Files: g.Files,
	}
}

// over reports whether the grant's time has passed.
func (g *Grant) over(now time.Time, last latest) bool {
	return g.Lapsed || !g.Until.IsZero() && last.past(g.Until, g.version, now)
}

// covers reports whether the grant covers a question. In doubt it does not, and
// the person is asked again.
func (g *Grant) covers(q *Question, digest string) bool {
	c := &q.Call
	return g.Folder == q.Folder && g.fits(c.Principal, c.Target, c.CapabilityHash, c.Action, c.Session, digest) &&
		(g.Exact == "" || g.Exact == Exact(*c)) && (len(g.Prefix) == 0 || slices.Equal(g.Prefix, q.Prefix) && policy.NewFile(g.Files, q.Files) == nil) && g.sameFiles(q.Files)
}

// sameFiles reports whether no file of the approved call has changed. A grant
// for any arguments that lists no files covers no call that runs files.
func (g *Grant) sameFiles(files []policy.File) bool {
	return (len(g.Files) > 0 || len(files) == 0 || g.Digest != "") && policy.ChangedFile(g.Files, files) == nil
}

func (g *Grant) fits(p capability.Principal, target capability.ID, hash, action, session, digest string) bool {
	return g.Tenant == p.Tenant && g.Principal == p.ID && g.Capability == target && g.Hash == hash && g.Action == action &&
		(g.Session == "" || g.Session == session) && (g.Digest == "" || g.Digest == digest)
}

// grantLife is how long a grant is stored; 0 is for good.
func (d *Desk) grantLife(g *Grant) time.Duration {
	if g.Until.IsZero() {
		return 0
	}
	return g.Until.Sub(g.At) + grace
}

type storedGrant struct {
	V     int   `json:"v"`
	Grant Grant `json:"grant"`
}

func encodeGrant(g *Grant) ([]byte, error) { return json.Marshal(storedGrant{formatVersion, *g}) }

func decodeGrant(item store.Item) (Grant, error) {
	var s storedGrant
	err := strict(item, &s)
	s.Grant.version = item.Version
	if g := &s.Grant; g.Covers == "" && g.Scope != Once {
		g.Covers = CoverTool // older grants had no other cover
	}
	return s.Grant, err
}

// grant decodes a grant. An old grant for every session that has no end gets
// the end of a new one, and one that does not say in which workspace it was given
// has ended.
func (d *Desk) grant(item store.Item) (Grant, error) {
	g, err := decodeGrant(item)
	if err == nil && g.Folder == "" && d.conf.Folder != "" {
		g.Lapsed = true
	}
	if err == nil && g.Scope == Always && g.Until.IsZero() {
		g.Until = g.At.Add(d.times().AlwaysFor)
	}
	return g, err
}

// Grants returns the grants that can bear on a request, for its field Grants. Of
// the request it reads principal, capability with hash, action, session and
// digest. A grant that was used, revoked or is over at the moment of the call,
// or was for another text of the capability or in another workspace, is not
// among them.
func (d *Desk) Grants(ctx context.Context, q *policy.Request) ([]policy.Grant, error) {
	if q.Principal.ID == "" || q.Capability.ID == "" || q.Capability.Hash == "" {
		return nil, nil
	}
	p := d.placeOf(q)
	v, l, err := d.see(ctx, p)
	if err != nil {
		return nil, err
	}
	last, err := l.latest()
	if err != nil {
		return nil, err
	}
	return d.bearing(q, v, last, func(g Grant) { d.expireGrant(ctx, p.subject, g) }), nil
}

// Consume confirms the grant that a decision names, directly before the call is
// made: a grant for one call is used up, by exactly one caller among all
// processes; any other is found to hold still. With an error the call must not
// be made; [ErrEnded] says that asking again is right.
func (d *Desk) Consume(ctx context.Context, id string) (Grant, error) {
	if s, ok := d.Spend(id); ok {
		var b store.Batch
		if err := s.Add(&b); err != nil {
			return Grant{}, err
		}
		version, err := d.store.Apply(ctx, &b)
		if err == nil {
			s.Done(version)
			return s.grant, nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return Grant{}, err
		}
		d.views.forget(s.subject)
	}
	return d.end(ctx, id, func(g *Grant, now time.Time, last latest) (*Ending, error) {
		if g.over(now, last) {
			return nil, fmt.Errorf("%w: it expired at %s", ErrEnded, stamp(g.Until))
		}
		if g.Scope != Once {
			return nil, nil
		}
		return &Ending{How: howSpent}, nil
	})
}

// Revoke takes an answer back: the grant of a ticket or of a grant's id, or
// that it is not asked again in a session. What was used up cannot be
// taken back. The same people may revoke who may settle.
func (d *Desk) Revoke(ctx context.Context, id string, by capability.Principal, why string) error {
	ticket, _, _ := strings.Cut(id, ".")
	t, err := d.Get(ctx, ticket)
	if capability.KindOf(err) == capability.NotFound {
		return noGrant(id)
	}
	if err != nil {
		return err
	}
	refuse := func(kind capability.ErrorKind, err error, fix string) error {
		return &capability.Error{Kind: kind, Op: "revoke", Target: id, Err: err, Fix: fix}
	}
	switch {
	case by.Tenant != t.Question.Call.Principal.Tenant:
		return noGrant(id)
	case !d.MaySettle(by, &t):
		return refuse(capability.Denied, ErrNotYours, "only the person who was asked, or a person with a role in approval.approvers, can revoke it")
	case t.State == Denied && t.Answer.Scope == Session:
		return d.unquiet(ctx, &t)
	case t.Grant == "":
		return refuse(capability.Invalid, fmt.Errorf("ticket %s is %s: it has no grant to revoke", t.ID, t.State), "see ken approve list")
	}
	_, err = d.end(ctx, t.Grant, func(*Grant, time.Time, latest) (*Ending, error) {
		return &Ending{How: howRevoked, By: by.ID, Why: why}, nil
	})
	return err
}

// noGrant is the error for a grant that does not exist, and for one of another
// tenant.
func noGrant(id string) error {
	return &capability.Error{
		Kind: capability.NotFound, Op: "revoke", Target: fmt.Sprintf("%.64q", id), Err: ErrNoGrant,
		Fix: "see ken approve list --grants; old grants are removed (approval.retain)",
	}
}

// unquiet lets questions be asked again.
func (d *Desk) unquiet(ctx context.Context, t *Ticket) error {
	var b store.Batch
	b.Delete(quietKey(&t.Question))
	_, err := d.store.Apply(ctx, &b)
	return err
}

// end ends a grant in one batch, if decide gives an ending.
func (d *Desk) end(ctx context.Context, id string, decide func(*Grant, time.Time, latest) (*Ending, error)) (Grant, error) {
	ticket, subject, ok := splitGrant(id)
	fail := func(kind capability.ErrorKind, err error) (Grant, error) {
		return Grant{}, &capability.Error{Kind: kind, Op: "use grant", Target: fmt.Sprintf("%.128s", id), Err: err, Fix: "make the call again to ask again"}
	}
	if !ok {
		return fail(capability.Invalid, errors.New("invalid grant id"))
	}
	key := grantKey(subject, ticket)
	for {
		l, err := d.look(ctx, key, clockKey)
		if err != nil {
			return Grant{}, err
		}
		item, there := l.item(key)
		if !there {
			return fail(capability.Conflict, d.whyGone(ctx, ticket))
		}
		g, unreadable := d.grant(item)
		if unreadable != nil {
			g = Grant{ID: id, Ticket: ticket, Scope: Always}
		}
		last, err := l.latest()
		if err != nil {
			return Grant{}, err
		}
		now := d.now()
		e, err := decide(&g, now, last)
		if unreadable != nil && (e == nil || e.How != howRevoked) {
			return Grant{}, unreadable
		}
		if err != nil {
			return fail(capability.Conflict, err)
		}
		if e == nil {
			return g, nil
		}
		e.Grant, e.At = id, now
		var b store.Batch
		b.At(key, item.Version)
		b.Put(markKey(subject), []byte(present))
		if err := d.bury(&b, &g, subject, *e); err != nil {
			return Grant{}, err
		}
		_, err = d.store.Apply(ctx, &b)
		d.views.forget(subject)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			return Grant{}, err
		}
		return g, nil
	}
}

// bury adds to a batch that a grant has ended.
func (d *Desk) bury(b *store.Batch, g *Grant, subject string, e Ending) error {
	data, err := json.Marshal(storedEnding{formatVersion, e})
	if err != nil {
		return err
	}
	life := d.ticketLife(&Answer{Scope: g.Scope, At: g.At, Until: g.Until})
	put(b, pastKey(g.Ticket), data, life)
	b.Delete(grantKey(subject, g.Ticket))
	return nil
}

type storedEnding struct {
	V      int    `json:"v"`
	Ending Ending `json:"ending"`
}

// ended reads how the grant of a ticket ended, or nil.
func (d *Desk) ended(ctx context.Context, ticket string) (*Ending, error) {
	l, err := d.look(ctx, pastKey(ticket))
	if err != nil {
		return nil, err
	}
	return l.ended(ticket)
}

// ended is like [Desk.ended] for a look that has the ending.
func (l look) ended(ticket string) (*Ending, error) {
	item, there := l.item(pastKey(ticket))
	if !there {
		return nil, nil
	}
	var s storedEnding
	if err := strict(item, &s); err != nil {
		return nil, err
	}
	return &s.Ending, nil
}

func (d *Desk) whyGone(ctx context.Context, ticket string) error {
	e, err := d.ended(ctx, ticket)
	switch {
	case err != nil:
		return errors.Join(ErrEnded, err)
	case e == nil:
		return fmt.Errorf("%w: no grant has this id, or it expired long ago", ErrEnded)
	}
	text := e.How + " at " + stamp(e.At)
	if e.By != "" {
		text += " by " + e.By
	}
	if e.Why != "" {
		text += ": " + e.Why
	}
	return fmt.Errorf("%w: %s", ErrEnded, text)
}

// void adds to a batch that the grants of a call's principal for the same action
// end which were given for another text of the capability than the call has.
func (d *Desk) void(b *store.Batch, q *Question, subject string, held []Grant, last latest) ([]Ending, error) {
	c := &q.Call
	var endings []Ending
	now := d.now()
	for i := range held {
		g := &held[i]
		if g.Action != c.Action || g.Folder != q.Folder || g.over(now, last) || len(endings) == mostVoid {
			continue
		}
		why := g.voided(q)
		if why == "" {
			continue
		}
		e := Ending{Grant: g.ID, How: howVoid, At: now, Why: why}
		if err := d.bury(b, g, subject, e); err != nil {
			return nil, err
		}
		endings = append(endings, e)
	}
	if endings != nil {
		b.Put(markKey(subject), []byte(present))
	}
	return endings, nil
}

// voided says why a grant is no longer valid because its call has changed, or
// "" if it still is.
func (g *Grant) voided(q *Question) string {
	when := fmt.Sprintf("since %s approved it (%s) at %s", g.By, g.Scope, stamp(g.At))
	if hash := q.Call.CapabilityHash; g.Hash != hash {
		return fmt.Sprintf("%s has changed %s: the hash is %.12s, it was %.12s", q.Call.Target, when, hash, g.Hash)
	}
	f := policy.ChangedFile(g.Files, q.Files)
	if f == nil {
		return ""
	}
	was := g.Files[slices.IndexFunc(g.Files, func(a policy.File) bool { return a.Name == f.Name })]
	if was.Path != f.Path {
		return fmt.Sprintf("the program %s is now %s; it was %s %s", f.Name, f.Path, was.Path, when)
	}
	kind := "program"
	if f.Name == f.Path {
		kind = "file"
	}
	return fmt.Sprintf("the %s %s has changed %s: the SHA-256 is %.12s, it was %.12s", kind, f.Path, when, f.SHA256, was.SHA256)
}

// mostVoid is how many grants one question ends; those beyond hold for no
// call either, and wait for the next question.
const mostVoid = 100

// Held lists the grants that hold, the oldest first. What cannot be read is in
// the error and hides only itself.
func (d *Desk) Held(ctx context.Context, f Filter) ([]Grant, error) {
	var list []Grant
	last, err := d.latest(ctx)
	if err != nil {
		return nil, err
	}
	var errs []error
	now := d.now()
	for item, err := range d.scan(ctx, grantPrefix, 0) {
		var g Grant
		if err == nil {
			g, err = d.grant(item)
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		p := capability.Principal{ID: g.Principal, Tenant: g.Tenant}
		if !g.over(now, last) && f.matches(p, cmp.Or(g.Session, f.Session), g.Capability) {
			list = append(list, g)
		}
	}
	coldsort.By(list, func(a, b Grant) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.ID, b.ID))
	})
	return list, errors.Join(errs...)
}
