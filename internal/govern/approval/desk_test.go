package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// A clock is a time that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

var ctx = context.Background()

func manyPending() int { return 1 << 20 }

func newDesk(t testing.TB, s *store.Store, c approval.Config) *approval.Desk {
	t.Helper()
	if c.Pending == nil {
		c.Pending = manyPending // few tests are about the bound
	}
	return testkit.Must(approval.New(s, c))(t)
}

func fresh(t testing.TB) (*approval.Desk, *clock) {
	t.Helper()
	c := newClock()
	return newDesk(t, storetest.Open(t, storetest.SQLite(t)), approval.Config{
		Now: c.Now, Approvers: []string{"operator"},
		Redact: func(name, value string) string {
			if strings.Contains(name, "token") {
				return "[redacted]"
			}
			return value
		},
	}), c
}

var (
	ann = capability.Principal{ID: "ann", Tenant: "acme"}
	bob = capability.Principal{ID: "bob", Tenant: "acme"}
	eve = capability.Principal{ID: "ann", Tenant: "evil"}
	pia = capability.Principal{ID: "pia", Tenant: "acme", Roles: []string{"operator"}}
)

// callOf is a call of ann's in session s1.
func callOf(args string) capability.Call {
	return capability.Call{
		Target: "tool:git", Action: "push", Arguments: json.RawMessage(args), Principal: ann, Session: "s1", CapabilityHash: "h1",
	}
}

func ask(t testing.TB, d *approval.Desk, q approval.Question) approval.Ticket {
	t.Helper()
	ticket, err := d.Ask(ctx, q)
	if err != nil {
		t.Fatalf("Ask(%s %s) = %v", q.Call.Target, q.Call.Arguments, err)
	}
	return ticket
}

func settle(t testing.TB, d *approval.Desk, id string, a approval.Answer) approval.Ticket {
	t.Helper()
	if a.By.ID == "" {
		a.By = ann
	}
	ticket, err := d.Settle(ctx, id, a)
	if err != nil {
		t.Fatalf("Settle(%s, %+v) = %v", id, a, err)
	}
	return ticket
}

// yes returns a grant; if it is for more than one call, it covers any
// arguments.
func yes(scope approval.Scope) approval.Answer {
	a := approval.Answer{By: ann, Effect: approval.Yes, Scope: scope}
	if scope != approval.Once {
		a.Covers = approval.CoverTool
	}
	return a
}

func no(scope approval.Scope) approval.Answer {
	return approval.Answer{By: ann, Effect: approval.No, Scope: scope}
}

func about(call capability.Call) approval.Question {
	return approval.Question{Call: call, Widest: approval.Session, Rule: "personal.exec", Why: "because"}
}

// requestOf is what a runner would have policy judge.
func requestOf(t testing.TB, c capability.Call) *policy.Request {
	t.Helper()
	digest := testkit.Must(c.Digest())(t)
	return &policy.Request{
		Principal: c.Principal, Action: c.Action, Session: c.Session, Digest: digest,
		Capability: policy.Capability{ID: c.Target, Hash: c.CapabilityHash},
	}
}

func grantsFor(t testing.TB, d *approval.Desk, c capability.Call) []policy.Grant {
	t.Helper()
	grants, err := d.Grants(ctx, requestOf(t, c))
	if err != nil {
		t.Fatalf("Grants(%+v) = %v", c, err)
	}
	return grants
}

func wantGrants(t testing.TB, when string, d *approval.Desk, c capability.Call, n int) {
	t.Helper()
	if got := grantsFor(t, d, c); len(got) != n {
		t.Errorf("%s: Grants = %+v, want %d", when, got, n)
	}
}

func wantState(t testing.TB, what string, d *approval.Desk, id string, want approval.State) {
	t.Helper()
	if got, err := d.Get(ctx, id); err != nil || got.State != want {
		t.Errorf("%s: Get = %s, %v; want %s", what, got.State, err, want)
	}
}

// wantHeld and wantList check how many grants, and tickets in some states, there are.
func wantHeld(t testing.TB, d *approval.Desk, n int) {
	t.Helper()
	if held, err := d.Held(ctx, approval.Filter{Tenant: "acme"}); err != nil || len(held) != n {
		t.Errorf("Held = %+v, %v; want %d", held, err, n)
	}
}

func wantList(t testing.TB, d *approval.Desk, n int, states ...approval.State) {
	t.Helper()
	if list, err := d.List(ctx, approval.Filter{Tenant: "acme", States: states}); err != nil || len(list) != n {
		t.Errorf("List(%v) = %d, %v; want %d", states, len(list), err, n)
	}
}

// TestAskKeepsAll: what is read back, by another desk on the same store too, is
// what was asked, byte for byte; the same open question has one ticket.
func TestAskKeepsAll(t *testing.T) {
	address := storetest.Address(t)
	c := newClock()
	d := newDesk(t, storetest.Open(t, address), approval.Config{Now: c.Now})
	call := callOf(` { "b":"<&>\u00e4",  "a": 1.00, "long": "` + strings.Repeat("x", 1<<16) + `" }` + "\n")
	call.Intent, call.Mode, call.Origin = "EXECUTE", "code", capability.ByModel
	call.Answers = map[string]json.RawMessage{"consent": json.RawMessage(`"x"`)}
	q := approval.About(call, policy.SurfaceMCP, policy.Decision{
		Effect: policy.Ask, Risk: policy.Risk{Score: 65, Effect: 40, Trust: 5, Reach: 20},
		Needs: policy.Consent{Needed: true, Scope: policy.Session, Rule: "personal.exec", Why: "Starting a process"},
	})
	q.Argv = []string{"git", "push", "a b\xff", "\u202e", ""}
	q.Command = "git push \xfe"
	q.Justification = "to publish"
	asked := ask(t, d, q)
	if asked.State != approval.Pending || !asked.Expires.Equal(c.now.Add(24*time.Hour)) {
		t.Errorf("Ask = %s until %v, want pending for a day", asked.State, asked.Expires)
	}
	if digest, _ := call.Digest(); asked.Digest != digest {
		t.Errorf("digest = %s, want %s", asked.Digest, digest)
	}
	again := newDesk(t, storetest.Open(t, address), approval.Config{Now: c.Now})
	got := testkit.Must(again.Get(ctx, asked.ID))(t)
	want := q
	want.Call.Answers = nil
	if !reflect.DeepEqual(got.Question, want) {
		t.Errorf("Get = %+v\nwant %+v", got.Question, want)
	}
	call.Arguments = json.RawMessage(strings.Replace(string(call.Arguments), "  ", " ", 1)) // the same, otherwise spelled
	if same := ask(t, again, about(call)); same.ID != asked.ID {
		t.Errorf("the same question got ticket %s, want %s", same.ID, asked.ID)
	}
	call.Session = "s2"
	if other := ask(t, again, about(call)); other.ID == asked.ID {
		t.Error("another session's question got the same ticket")
	}
}

func TestAskRefuses(t *testing.T) {
	d, _ := fresh(t)
	edit := func(f func(*approval.Question)) approval.Question {
		q := about(callOf(`{}`))
		f(&q)
		return q
	}
	tests := []struct {
		name string
		q    approval.Question
		want string
		is   error
	}{
		{"too large", edit(func(q *approval.Question) { q.Command = strings.Repeat("x", store.MaxValue) }), "never truncates", approval.ErrTooLarge},
		{"no hash", edit(func(q *approval.Question) { q.Call.CapabilityHash = "" }), "no capability hash", nil},
		{"nobody", edit(func(q *approval.Question) { q.Call.Principal = capability.Principal{} }), "no principal", nil},
		{"nothing", edit(func(q *approval.Question) { q.Call.Target = "" }), "no capability", nil},
		{"not JSON", edit(func(q *approval.Question) { q.Call.Arguments = json.RawMessage(`{`) }), "arguments", nil},
		{"a name twice", edit(func(q *approval.Question) { q.Call.Arguments = json.RawMessage(`{"a":1,"a":2}`) }), "arguments", nil},
		{"not valid UTF-8", edit(func(q *approval.Question) { q.Call.Session = "s\xff" }), "not valid UTF-8", nil},
		{"no such scope", edit(func(q *approval.Question) { q.Widest = approval.Always }), "widest", nil},
		{"no time", edit(func(q *approval.Question) { q.For = -1 }), "positive", nil},
	}
	for _, test := range tests {
		_, err := d.Ask(ctx, test.q)
		if err == nil || !strings.Contains(err.Error(), test.want) || test.is != nil && !errors.Is(err, test.is) || capability.KindOf(err) != capability.Invalid {
			t.Errorf("%s: Ask = %v (%v), want %q", test.name, err, capability.KindOf(err), test.want)
		}
	}
	wantList(t, d, 0)
}

// TestMostPending: a principal for whom too many requests wait gets no more of them,
// until some are answered or have expired. The same call asked again is no new one.
// Desks that know nothing of each other's questions keep the bound together.
func TestMostPending(t *testing.T) {
	c := newClock()
	a, b, _ := twoDesks(t, approval.Config{Now: c.Now, Pending: func() int { return 3 }})
	call := func(i int) approval.Question { return about(callOf(fmt.Sprintf(`{"n":%d}`, i))) }
	var ids []string
	for i, d := range []*approval.Desk{a, b, a} {
		grantsFor(t, d, callOf(`{}`))
		ids = append(ids, ask(t, d, call(i)).ID)
	}
	full := func(q approval.Question) {
		t.Helper()
		_, err := b.Ask(ctx, q)
		e, ok := errors.AsType[*capability.Error](err)
		if !ok || e.Kind != capability.Denied || e.Rule != "approval.pending" || !strings.Contains(err.Error(), "3 approval requests of ann are already waiting") || !strings.Contains(e.Fix, "ken approve deny --all") {
			t.Fatalf("Ask with three open = %v, want a denial that names approval.pending and how to clear it", err)
		}
	}
	full(call(3))
	other := callOf(`{}`)
	other.Session, other.Target = "s2", "tool:other"
	full(about(other))
	if again := ask(t, b, call(1)); again.ID != ids[1] || again.State != approval.Pending {
		t.Errorf("the same call asked again = %v", again.State)
	}
	other.Principal = bob
	ask(t, a, about(other))
	settle(t, a, ids[0], no(approval.Once))
	ask(t, a, call(3))
	full(call(4))
	c.advance(25 * time.Hour)
	ask(t, a, call(4))
}

func TestSettleRefuses(t *testing.T) {
	d, c := fresh(t)
	wide := ask(t, d, about(callOf(`{}`)))
	narrowQ := about(callOf(`{"force":true}`))
	narrowQ.Widest = ""
	narrow := ask(t, d, narrowQ)
	sessionless := callOf(`{}`)
	sessionless.Session = ""
	alone := ask(t, d, about(sessionless))
	with := func(a approval.Answer, f func(*approval.Answer)) approval.Answer { f(&a); return a }
	by := func(a approval.Answer, p capability.Principal) approval.Answer { a.By = p; return a }
	tests := []struct {
		name string
		id   string
		a    approval.Answer
		is   error
		kind capability.ErrorKind
	}{
		{"no answer", wide.ID, approval.Answer{By: ann}, approval.ErrScope, capability.Invalid},
		{"no scope", wide.ID, approval.Answer{By: ann, Effect: approval.Yes}, approval.ErrScope, capability.Invalid},
		{"until without a time", wide.ID, yes(approval.Until), approval.ErrScope, capability.Invalid},
		{"until the past", wide.ID, with(yes(approval.Until), func(a *approval.Answer) { a.Until = c.Now() }), approval.ErrScope, capability.Invalid},
		{"a time for once", wide.ID, with(yes(approval.Once), func(a *approval.Answer) { a.Until = c.Now().Add(1) }), approval.ErrScope, capability.Invalid},
		{"never again", wide.ID, no(approval.Always), approval.ErrScope, capability.Invalid},
		{"wider than the rule", narrow.ID, yes(approval.Session), approval.ErrScope, capability.Invalid},
		{"always against the rule", narrow.ID, yes(approval.Always), approval.ErrScope, capability.Invalid},
		{"a session that is none", alone.ID, yes(approval.Session), approval.ErrScope, capability.Invalid},
		{"nobody", wide.ID, by(yes(approval.Once), capability.Principal{Tenant: "acme"}), approval.ErrNotYours, capability.Denied},
		{"somebody else", wide.ID, by(yes(approval.Once), bob), approval.ErrNotYours, capability.Denied},
		{"another tenant", wide.ID, by(yes(approval.Once), eve), approval.ErrNoTicket, capability.NotFound},
		{"no such ticket", "nonesuch", yes(approval.Once), approval.ErrNoTicket, capability.NotFound},
		{"not an id", "../grant/x", yes(approval.Once), approval.ErrNoTicket, capability.NotFound},
	}
	for _, test := range tests {
		_, err := d.Settle(ctx, test.id, test.a)
		if !errors.Is(err, test.is) || capability.KindOf(err) != test.kind {
			t.Errorf("%s: Settle = %v (%v), want %v (%v)", test.name, err, capability.KindOf(err), test.is, test.kind)
		}
	}
	wantList(t, d, 3, approval.Pending)
	if settle(t, d, wide.ID, by(yes(approval.Once), pia)).Answer.By.ID != "pia" {
		t.Error("an operator could not answer")
	}
	_, err := d.Settle(ctx, wide.ID, no(approval.Once))
	if !errors.Is(err, approval.ErrSettled) || !strings.Contains(err.Error(), "granted by pia at 2030-01-02T03:04:05Z") || capability.KindOf(err) != capability.Conflict {
		t.Errorf("a second Settle = %v", err)
	}
}

// TestLargeQuestion: the largest question that can be asked can be answered.
func TestLargeQuestion(t *testing.T) {
	testkit.CI(t, "writes the largest value that a store takes")
	d, _ := fresh(t)
	size := (store.MaxValue - 64<<10) / 4 * 3 // as base64
	q := about(callOf(`{}`))
	var ticket approval.Ticket
	for err := error(approval.ErrTooLarge); err != nil; size -= 512 {
		q.Command = strings.Repeat("x", size)
		if ticket, err = d.Ask(ctx, q); err != nil && !errors.Is(err, approval.ErrTooLarge) {
			t.Fatal(err)
		}
	}
	a := yes(approval.Always)
	a.Note = strings.Repeat("\u0001", 4096) // six bytes each in JSON
	settle(t, d, ticket.ID, a)
	if got, err := d.Get(ctx, ticket.ID); err != nil || got.Question.Command != q.Command {
		t.Errorf("Get = %d bytes, %v; want %d", len(got.Question.Command), err, len(q.Command))
	}
	a.Note += "x"
	other := callOf(`{}`)
	other.Action = "pull"
	fails(d.Settle(ctx, ask(t, d, about(other)).ID, a))(t, approval.ErrScope)
}

// TestGrantCoversItsScope: of all calls that differ in one thing, a grant covers
// those that its scope says, for the desk and for policy.
func TestGrantCoversItsScope(t *testing.T) {
	base := callOf(`{"branch":"main"}`)
	variants := map[string]func(*capability.Call){
		"same":       func(*capability.Call) {},
		"spelling":   func(c *capability.Call) { c.Arguments = json.RawMessage(` {"branch" : "main"} `) },
		"argument":   func(c *capability.Call) { c.Arguments = json.RawMessage(`{"branch":"prod"}`) },
		"intent":     func(c *capability.Call) { c.Intent = "EXECUTE" },
		"action":     func(c *capability.Call) { c.Action = "pull" },
		"capability": func(c *capability.Call) { c.Target = "tool:hg" },
		"text":       func(c *capability.Call) { c.CapabilityHash = "h2" },
		"session":    func(c *capability.Call) { c.Session = "s2" },
		"principal":  func(c *capability.Call) { c.Principal = bob },
		"tenant":     func(c *capability.Call) { c.Principal = eve },
	}
	tests := []struct {
		scope approval.Scope
		want  []string
	}{
		{approval.Once, []string{"same", "spelling"}},
		{approval.Session, []string{"argument", "intent", "same", "spelling"}},
		{approval.Until, []string{"argument", "intent", "same", "session", "spelling"}},
		{approval.Always, []string{"argument", "intent", "same", "session", "spelling"}},
	}
	for _, test := range tests {
		d, c := fresh(t)
		a := yes(test.scope)
		if test.scope == approval.Until {
			a.Until = c.Now().Add(time.Hour)
		}
		settle(t, d, ask(t, d, about(base)).ID, a)
		var got []string
		for name, change := range variants {
			call := base
			change(&call)
			if grants := grantsFor(t, d, call); len(grants) > 0 {
				got = append(got, name)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("a grant for %s covers %v, want %v", test.scope, got, test.want)
		}
	}
}

// TestConsume: a grant for one call is used once, others as often as one likes,
// none after it was revoked; the ticket tells.
func TestConsume(t *testing.T) {
	d, _ := fresh(t)
	call := callOf(`{}`)
	consume := func(id string, want error, words string) {
		t.Helper()
		if _, err := d.Consume(ctx, id); !errors.Is(err, want) || want != nil && (!strings.Contains(err.Error(), words) || capability.KindOf(err) != capability.Conflict) {
			t.Errorf("Consume(%s) = %v, want %v that says %q", id, err, want, words)
		}
	}
	revoke := func(id string, by capability.Principal, why string, want error) {
		t.Helper()
		if err := d.Revoke(ctx, id, by, why); !errors.Is(err, want) {
			t.Errorf("Revoke(%s) by %v = %v, want %v", id, by, err, want)
		}
	}
	once := settle(t, d, ask(t, d, about(call)).ID, yes(approval.Once))
	consume(once.Grant, nil, "")
	consume(once.Grant, approval.ErrEnded, "spent at 2030")
	revoke(once.ID, ann, "", approval.ErrEnded)
	spare := settle(t, d, ask(t, d, about(call)).ID, yes(approval.Once))
	wide := about(callOf(`{"n":1}`))
	always := settle(t, d, ask(t, d, wide).ID, yes(approval.Always))
	if got := grantsFor(t, d, call); len(got) != 2 || got[0].ID != always.Grant || got[1].ID != spare.Grant {
		t.Errorf("Grants = %+v, want the wide one first: the one for this call is not used up", got)
	}
	for range 3 {
		consume(always.Grant, nil, "")
	}
	revoke(always.ID, bob, "", approval.ErrNotYours)
	revoke(always.ID, eve, "", approval.ErrNoGrant)
	for tenant, want := range map[string]int{"acme": 2, "": 0} {
		if held, err := d.Held(ctx, approval.Filter{Tenant: tenant, Session: "s1"}); err != nil || len(held) != want {
			t.Errorf("Held of tenant %q = %v, %v; want %d", tenant, held, err, want)
		}
	}
	revoke(always.Grant, pia, "a new policy", nil)
	consume(always.Grant, approval.ErrEnded, "revoked at 2030-01-02T03:04:05Z by pia: a new policy")
	if got, err := d.Get(ctx, always.ID); err != nil || got.State != approval.Granted || got.Ended == nil || got.Ended.By != "pia" {
		t.Errorf("Get after Revoke = %+v, %v", got.Ended, err)
	}
	for _, id := range []string{"", "x", "a.b.c", "a/b.c", once.ID, strings.Repeat("a", 600) + ".b"} {
		if _, err := d.Consume(ctx, id); err == nil {
			t.Errorf("Consume(%q) = nil", id)
		}
	}
}

// TestDenial: a call that comes with its ticket gets the answer, in the words of
// whoever gave it; without, it is a new question.
func TestDenial(t *testing.T) {
	d, _ := fresh(t)
	q := about(callOf(`{"n":1}`))
	first := ask(t, d, q)
	a := no(approval.Once)
	a.Note = "not on Fridays"
	settle(t, d, first.ID, a)
	if got := ask(t, d, q); got.ID == first.ID || got.State != approval.Pending || capability.KindOf(got.Err()) != capability.Unapproved {
		t.Errorf("the same call = %s %s, want a new question", got.ID, got.State)
	}
	q.Again = first.ID
	if got := ask(t, d, q); got.ID != first.ID || capability.KindOf(got.Err()) != capability.Denied || !strings.Contains(got.Err().Error(), "not on Fridays") {
		t.Errorf("the same call with its ticket = %s %s, %v", got.ID, got.State, got.Err())
	}
}

// TestChangedTextVoids: a grant for an older text of the capability holds for
// nothing, is ended with the next question, and the question says so.
func TestChangedTextVoids(t *testing.T) {
	d, _ := fresh(t)
	call := callOf(`{}`)
	old := settle(t, d, ask(t, d, about(call)).ID, yes(approval.Always))
	call.CapabilityHash = "h2"
	wantGrants(t, "for the new text", d, call, 0)
	ticket := ask(t, d, about(call))
	if len(ticket.Voided) != 1 || ticket.Voided[0].Grant != old.Grant || !strings.Contains(ticket.Voided[0].Why, "has changed since ann approved it (always)") {
		t.Errorf("Voided = %+v", ticket.Voided)
	}
	call.CapabilityHash = "h1"
	wantGrants(t, "after the text changed back: what is void stays void", d, call, 0)
	if _, err := d.Consume(ctx, old.Grant); !errors.Is(err, approval.ErrEnded) || !strings.Contains(err.Error(), "void") {
		t.Errorf("Consume of a void grant = %v", err)
	}
}

func TestLines(t *testing.T) {
	d, _ := fresh(t)
	q := about(callOf(`{"x": 1}`))
	q.Argv = []string{"git", "push", "a b", "it's", "\u202eevil\n", "ä", ""}
	q.Risk = policy.Risk{Score: 65, Effect: 40, Trust: 5, Reach: 20}
	q.Justification = strings.Repeat("ü", 1001)
	var b strings.Builder
	for _, l := range ask(t, d, q).Lines() {
		if l.Name != "digest" && l.Name != "ticket" {
			fmt.Fprintf(&b, "%s: %s\n", l.Name, l.Text)
		}
	}
	want := `argv: git push 'a b' 'it'\''s' "\u202eevil\n" 'ä' ''
arguments: {"x": 1}
capability: tool:git
action: push
risk: medium, 65 of 100 (effect 40, trust 5, reach 20)
why: because
rule: personal.exec
justification: ` + strings.Repeat("ü", 1000) + ` … (1 more characters)
principal: ann
tenant: acme
session: s1
origin: model
answers: deny, grant once, deny for the session; for the exact call or the tool: grant for the session, grant until a time, grant always
covers: call: this exact call, in every session, for 30 days
covers: tool: every call of tool:git push with any arguments, in every session, for 30 days; for example: tool:git push {any arguments}
asked: 2030-01-02T03:04:05Z
expires: 2030-01-03T03:04:05Z
state: pending
hash: h1
`
	if b.String() != want {
		t.Errorf("Lines =\n%s\nwant\n%s", b.String(), want)
	}
}

// TestNewerRecords: what another version wrote is refused, by name; a list shows
// the rest; such a grant can be revoked.
func TestNewerRecords(t *testing.T) {
	s := storetest.Open(t, storetest.SQLite(t))
	d := newDesk(t, s, approval.Config{})
	call := callOf(`{}`)
	ticket := settle(t, d, ask(t, d, about(call)).ID, yes(approval.Always))
	good := ask(t, d, about(capability.Call{Target: "tool:other", Principal: ann, CapabilityHash: "h"}))
	rewrite := func(prefix, old, new string) {
		for item, err := range s.Scan(ctx, prefix, store.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(item.Value), old) {
				continue
			}
			var b store.Batch
			b.Put(item.Key, []byte(strings.Replace(string(item.Value), old, new, 1)))
			for mark, err := range s.Scan(ctx, "approval/mark/", store.Range{}) {
				if err != nil {
					t.Fatal(err)
				}
				b.Put(mark.Key, mark.Value)
			}
			testkit.Must(s.Apply(ctx, &b))(t)
		}
	}
	rewrite("approval/grant/", `"scope":"always"`, `"scope":"always","hours":"9-17"`)
	if got, err := d.Grants(ctx, requestOf(t, call)); err == nil || !strings.Contains(err.Error(), "hours") || !strings.Contains(err.Error(), "approval/grant/") {
		t.Errorf("Grants with a word of a newer version = %v, %v; want an error", got, err)
	}
	if _, err := d.Consume(ctx, ticket.Grant); err == nil {
		t.Error("Consume of it = nil")
	}
	if _, err := d.Held(ctx, approval.Filter{Tenant: "acme"}); err == nil {
		t.Error("Held does not tell of it")
	}
	if err := d.Revoke(ctx, ticket.ID, ann, ""); err != nil {
		t.Errorf("Revoke of it = %v", err)
	}
	wantGrants(t, "after Revoke", d, call, 0)
	rewrite("approval/ticket/"+ticket.ID, `"v":1`, `"v":2`)
	list, err := d.List(ctx, approval.Filter{Tenant: "acme"})
	if err == nil || !strings.Contains(err.Error(), "version 2") || len(list) != 1 || list[0].ID != good.ID {
		t.Errorf("List = %d tickets, %v; want the one that can be read and an error", len(list), err)
	}
}

// TestSettleAfter: what must come first comes first, and its failure settles
// nothing.
func TestSettleAfter(t *testing.T) {
	d, _ := fresh(t)
	ticket := ask(t, d, about(callOf(`{}`)))
	state := func() approval.State {
		now := testkit.Must(d.Get(t.Context(), ticket.ID))(t)
		return now.State
	}
	_, err := d.SettleAfter(t.Context(), ticket.ID, yes(approval.Once), func(approval.Ticket) error { return errors.New("no paper") })
	if err == nil || state() != approval.Pending {
		t.Errorf("SettleAfter with a step that fails = %v, and the ticket is %v; want an error and a question that waits", err, state())
	}
	var shown string
	_, err = d.SettleAfter(t.Context(), ticket.ID, yes(approval.Once), func(s approval.Ticket) error {
		if shown = s.ID; state() != approval.Pending {
			t.Errorf("the ticket is %v before the step has returned", state())
		}
		return nil
	})
	if err != nil || shown != ticket.ID || state() != approval.Granted {
		t.Errorf("SettleAfter = %v, having shown %q; the ticket is %v", err, shown, state())
	}
}

// fails checks that an error is the one that it must be.
func fails[T any](_ T, err error) func(t testing.TB, want error) {
	return func(t testing.TB, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("error = %v, want %v", err, want)
		}
	}
}
