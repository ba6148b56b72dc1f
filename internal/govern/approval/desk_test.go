package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/store"
	"ken/internal/testkit/storetest"
)

func TestMain(m *testing.M) {
	if job, ok := jobs[os.Getenv(childJob)]; ok {
		if err := serve(job); err != nil {
			fmt.Fprintln(os.Stderr, "child:", err)
			os.Exit(1)
		}
		return
	}
	status := m.Run()
	if status == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, "goroutines are left:", err)
			status = 1
		}
	}
	os.Exit(status)
}

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
	d, err := approval.New(s, c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func fresh(t testing.TB) (*approval.Desk, *clock) {
	t.Helper()
	c := newClock()
	return newDesk(t, storetest.Open(t, storetest.Address(t)), approval.Config{
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
	digest, err := c.Digest()
	if err != nil {
		t.Fatal(err)
	}
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

// TestAskKeepsAll: what is read back, by another desk on the same store too, is
// what was asked, byte for byte; the same open question has one ticket.
func TestAskKeepsAll(t *testing.T) {
	address := storetest.Address(t)
	c := newClock()
	d := newDesk(t, storetest.Open(t, address), approval.Config{Now: c.Now})
	call := callOf(` { "b":"<&>\u00e4",  "a": 1.00, "long": "` + strings.Repeat("x", 1<<20) + `" }` + "\n")
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
	got, err := again.Get(ctx, asked.ID)
	if err != nil {
		t.Fatal(err)
	}
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
	if list, err := d.List(ctx, approval.Filter{Tenant: "acme"}); len(list) != 0 || err != nil {
		t.Errorf("List after refusals = %v, %v", list, err)
	}
}

// TestMostPending: a principal for whom too many requests wait gets no more of them,
// until some are answered or have expired. The same call asked again is no new one.
func TestMostPending(t *testing.T) {
	c := newClock()
	d := newDesk(t, storetest.Open(t, storetest.Address(t)), approval.Config{Now: c.Now, Pending: func() int { return 3 }})
	call := func(i int) approval.Question { return about(callOf(fmt.Sprintf(`{"n":%d}`, i))) }
	var first approval.Ticket
	for i := range 3 {
		if got := ask(t, d, call(i)); i == 0 {
			first = got
		}
	}
	full := func(q approval.Question) {
		t.Helper()
		_, err := d.Ask(ctx, q)
		e, ok := errors.AsType[*capability.Error](err)
		if !ok || e.Kind != capability.Denied || e.Rule != "approval.pending" || !strings.Contains(err.Error(), "3 approval requests of ann are already waiting") || !strings.Contains(e.Fix, "ken approve deny --all") {
			t.Fatalf("Ask with three open = %v, want a denial that names approval.pending and how to clear it", err)
		}
	}
	full(call(3))
	other := callOf(`{}`)
	other.Session, other.Target = "s2", "tool:other"
	full(about(other))
	if again := ask(t, d, call(1)); again.State != approval.Pending {
		t.Errorf("the same call asked again = %v", again.State)
	}
	other.Principal = bob
	ask(t, d, about(other))
	settle(t, d, first.ID, no(approval.Once))
	ask(t, d, call(3))
	full(call(4))
	c.advance(25 * time.Hour)
	ask(t, d, call(4))
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
	list, err := d.List(ctx, approval.Filter{Tenant: "acme", States: []approval.State{approval.Pending}})
	if err != nil || len(list) != 3 {
		t.Errorf("List = %d pending, %v; want 3", len(list), err)
	}
	if settle(t, d, wide.ID, by(yes(approval.Once), pia)).Answer.By.ID != "pia" {
		t.Error("an operator could not answer")
	}
	_, err = d.Settle(ctx, wide.ID, no(approval.Once))
	if !errors.Is(err, approval.ErrSettled) || !strings.Contains(err.Error(), "granted by pia at 2030-01-02T03:04:05Z") || capability.KindOf(err) != capability.Conflict {
		t.Errorf("a second Settle = %v", err)
	}
}

// TestLargest: the largest question that can be asked can be answered.
func TestLargest(t *testing.T) {
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
	if _, err := d.Settle(ctx, ask(t, d, about(other)).ID, a); !errors.Is(err, approval.ErrScope) {
		t.Errorf("Settle with a longer note = %v", err)
	}
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
	d, c := fresh(t)
	call := callOf(`{}`)
	once := settle(t, d, ask(t, d, about(call)).ID, yes(approval.Once))
	if g, err := d.Consume(ctx, once.Grant); err != nil || g.Scope != approval.Once || g.Ticket != once.ID {
		t.Errorf("Consume = %+v, %v", g, err)
	}
	_, err := d.Consume(ctx, once.Grant)
	if !errors.Is(err, approval.ErrEnded) || !strings.Contains(err.Error(), "spent at 2030") || capability.KindOf(err) != capability.Conflict {
		t.Errorf("a second Consume = %v, want spent", err)
	}
	if got := grantsFor(t, d, call); len(got) != 0 {
		t.Errorf("Grants after use = %v", got)
	}
	if err := d.Revoke(ctx, once.ID, ann, ""); !errors.Is(err, approval.ErrEnded) {
		t.Errorf("Revoke of a used grant = %v", err)
	}
	always := settle(t, d, ask(t, d, about(call)).ID, yes(approval.Always))
	for range 3 {
		if _, err := d.Consume(ctx, always.Grant); err != nil {
			t.Errorf("Consume = %v", err)
		}
	}
	for by, want := range map[*capability.Principal]error{&bob: approval.ErrNotYours, &eve: approval.ErrNoGrant} {
		if err := d.Revoke(ctx, always.ID, *by, ""); !errors.Is(err, want) {
			t.Errorf("Revoke by %v = %v, want %v", *by, err, want)
		}
	}
	if held, err := d.Held(ctx, approval.Filter{Tenant: "acme", Session: "any"}); err != nil || len(held) != 1 || held[0].ID != always.Grant {
		t.Errorf("Held = %v, %v", held, err)
	}
	if held, err := d.Held(ctx, approval.Filter{}); err != nil || len(held) != 0 {
		t.Errorf("Held of another tenant = %v, %v", held, err)
	}
	if err := d.Revoke(ctx, always.Grant, pia, "a new policy"); err != nil {
		t.Errorf("Revoke = %v", err)
	}
	if _, err := d.Consume(ctx, always.Grant); !errors.Is(err, approval.ErrEnded) || !strings.Contains(err.Error(), "revoked at 2030-01-02T03:04:05Z by pia: a new policy") {
		t.Errorf("Consume after Revoke = %v", err)
	}
	if got := grantsFor(t, d, call); len(got) != 0 {
		t.Errorf("Grants after Revoke = %v", got)
	}
	if got, err := d.Get(ctx, always.ID); err != nil || got.State != approval.Granted || got.Ended == nil || got.Ended.By != "pia" {
		t.Errorf("Get after Revoke = %+v, %v", got.Ended, err)
	}
	until := yes(approval.Until)
	until.Until = c.Now().Add(time.Minute)
	timed := settle(t, d, ask(t, d, about(call)).ID, until)
	c.advance(time.Minute)
	if _, err := d.Consume(ctx, timed.Grant); !errors.Is(err, approval.ErrEnded) {
		t.Errorf("Consume after its time = %v", err)
	}
	for _, id := range []string{"", "x", "a.b.c", "a/b.c", once.ID, strings.Repeat("a", 600) + ".b"} {
		if _, err := d.Consume(ctx, id); err == nil {
			t.Errorf("Consume(%q) = nil", id)
		}
	}
}

// TestDenial: a denial ends the question and not the next one, unless the person
// wants no more of them; a call that comes with its ticket gets the answer.
func TestDenial(t *testing.T) {
	d, _ := fresh(t)
	call := callOf(`{"n":1}`)
	first := ask(t, d, about(call))
	if err := first.Err(); capability.KindOf(err) != capability.Unapproved {
		t.Errorf("pending: Err = %v, want unapproved", err)
	}
	a := no(approval.Once)
	a.Note = "not on Fridays"
	settle(t, d, first.ID, a)
	q := about(call)
	q.Again = first.ID
	got := ask(t, d, q)
	if got.ID != first.ID || got.State != approval.Denied || capability.KindOf(got.Err()) != capability.Denied || !strings.Contains(got.Err().Error(), "not on Fridays") {
		t.Errorf("the same call with its ticket = %s %s, %v", got.ID, got.State, got.Err())
	}
	second := ask(t, d, about(call))
	if second.ID == first.ID || second.State != approval.Pending {
		t.Errorf("the same call without = %s %s, want a new question", second.ID, second.State)
	}
	settle(t, d, second.ID, no(approval.Session))
	other := callOf(`{"n":2}`)
	other.CapabilityHash = "h2" // a new text does not get around it
	if got := ask(t, d, about(other)); got.ID != second.ID || !strings.Contains(got.Err().Error(), "for the rest of this session") {
		t.Errorf("after \"do not ask again\" = %s %s", got.ID, got.State)
	}
	other.Session = "s2"
	if got := ask(t, d, about(other)); got.State != approval.Pending {
		t.Errorf("another session = %s", got.State)
	}
	if err := d.Revoke(ctx, second.ID, ann, ""); err != nil {
		t.Errorf("Revoke of the denial = %v", err)
	}
	if got := ask(t, d, about(call)); got.State != approval.Pending {
		t.Errorf("after Revoke = %s, want pending", got.State)
	}
	if err := d.Revoke(ctx, first.ID, ann, ""); capability.KindOf(err) != capability.Invalid {
		t.Errorf("Revoke of a denial for once = %v", err)
	}
}

// TestSettledAlong: one answer for a session settles the questions that it
// covers and no others.
func TestSettledAlong(t *testing.T) {
	d, _ := fresh(t)
	var same []approval.Ticket
	for i := range 5 {
		same = append(same, ask(t, d, about(callOf(fmt.Sprintf(`{"n":%d}`, i)))))
	}
	narrow := about(callOf(`{"n":100}`))
	narrow.Widest = approval.Once
	session, text, action := callOf(`{}`), callOf(`{}`), callOf(`{}`)
	session.Session, text.CapabilityHash, action.Action = "s2", "h2", "pull"
	others := []approval.Ticket{ask(t, d, narrow), ask(t, d, about(session)), ask(t, d, about(text)), ask(t, d, about(action))}
	first := settle(t, d, same[2].ID, yes(approval.Session))
	for _, ticket := range same {
		got, err := d.Get(ctx, ticket.ID)
		if err != nil || got.State != approval.Granted || got.Grant != first.Grant {
			t.Errorf("%s = %s by grant %q, %v; want granted by %s", ticket.Question.Call.Arguments, got.State, got.Grant, err, first.Grant)
		} else if ticket.ID != first.ID && got.Answer.With != first.ID {
			t.Errorf("%s was settled with %q, want %s", ticket.ID, got.Answer.With, first.ID)
		}
	}
	for _, ticket := range others {
		if got, err := d.Get(ctx, ticket.ID); err != nil || got.State != approval.Pending {
			t.Errorf("%+v = %s, %v; want pending", got.Question.Call, got.State, err)
		}
	}
	// One that was decided before the answer and asks after it.
	if late := ask(t, d, about(callOf(`{"n":7}`))); late.ID != first.ID || late.State != approval.Granted {
		t.Errorf("a late question = %s %s, want %s", late.ID, late.State, first.ID)
	}
	held, err := d.Held(ctx, approval.Filter{Tenant: "acme"})
	if err != nil || len(held) != 1 {
		t.Errorf("Held = %d, %v; want 1", len(held), err)
	}
}

// TestChangedTextVoids: a grant for an older text of the capability holds for
// nothing, is ended with the next question, and the question says so.
func TestChangedTextVoids(t *testing.T) {
	d, _ := fresh(t)
	call := callOf(`{}`)
	old := settle(t, d, ask(t, d, about(call)).ID, yes(approval.Always))
	call.CapabilityHash = "h2"
	if got := grantsFor(t, d, call); len(got) != 0 {
		t.Errorf("Grants for the new text = %v", got)
	}
	ticket := ask(t, d, about(call))
	if len(ticket.Voided) != 1 || ticket.Voided[0].Grant != old.Grant || !strings.Contains(ticket.Voided[0].Why, "has changed since ann approved it (always)") {
		t.Errorf("Voided = %+v", ticket.Voided)
	}
	call.CapabilityHash = "h1"
	if got := grantsFor(t, d, call); len(got) != 0 {
		t.Errorf("Grants after the text changed back = %v: what is void stays void", got)
	}
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
	s := storetest.Open(t, storetest.Address(t))
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
			if _, err := s.Apply(ctx, &b); err != nil {
				t.Fatal(err)
			}
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
	if got := grantsFor(t, d, call); len(got) != 0 {
		t.Errorf("Grants after Revoke = %v", got)
	}
	rewrite("approval/ticket/"+ticket.ID, `"v":1`, `"v":2`)
	list, err := d.List(ctx, approval.Filter{Tenant: "acme"})
	if err == nil || !strings.Contains(err.Error(), "version 2") || len(list) != 1 || list[0].ID != good.ID {
		t.Errorf("List = %d tickets, %v; want the one that can be read and an error", len(list), err)
	}
}

func TestNew(t *testing.T) {
	s := storetest.Open(t, storetest.Address(t))
	if _, err := approval.New(nil, approval.Config{}); err == nil {
		t.Error("New(nil) = nil")
	}
	if _, err := approval.New(s, approval.Config{OnceFor: -1}); err == nil || !strings.Contains(err.Error(), "OnceFor") {
		t.Errorf("New(OnceFor: -1) = %v", err)
	}
}

// TestOpenTicketFollowsTheRules: a question that waits is the one that the rules
// put now, under the same ticket.
func TestOpenTicketFollowsTheRules(t *testing.T) {
	d, _ := fresh(t)
	call := callOf(`{"n":1}`)
	q := about(call)
	q.Widest, q.Rule, q.Why = approval.Once, "risk.askAbove", "risky"
	first := ask(t, d, q)
	q.Widest, q.Rule, q.Why = approval.Session, "rules.mine", "expensive"
	second := ask(t, d, q)
	if second.ID != first.ID || second.Question.Rule != "rules.mine" || second.Question.Why != "expensive" {
		t.Errorf("asked again = %s %+v, want the same ticket with the new rule", second.ID, second.Question)
	}
	settle(t, d, first.ID, yes(approval.Session))
}

// TestSettleAfter: what must come first comes first, and its failure settles
// nothing.
func TestSettleAfter(t *testing.T) {
	d, _ := fresh(t)
	ticket := ask(t, d, about(callOf(`{}`)))
	state := func() approval.State {
		now, err := d.Get(t.Context(), ticket.ID)
		if err != nil {
			t.Fatal(err)
		}
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
