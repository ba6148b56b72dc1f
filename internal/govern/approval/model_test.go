package approval_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// The model of a desk: plain lists, in one goroutine.
type model struct {
	clock   *clock
	step    int
	tickets []*modelTicket
	grants  []*modelGrant
	quiet   map[string]quiet // by session and action
}

type modelTicket struct {
	id      string
	call    capability.Call
	narrow  bool
	expires time.Time
	answer  *approval.Answer
	grant   *modelGrant
}

type modelGrant struct {
	id     string
	call   capability.Call
	scope  approval.Scope
	until  time.Time
	ended  bool
	digest string
}

type quiet struct {
	ticket string
	until  time.Time
}

func (m *model) state(t *modelTicket) approval.State {
	switch {
	case t.answer != nil && t.answer.Effect == approval.Yes:
		return approval.Granted
	case t.answer != nil:
		return approval.Denied
	case !m.clock.Now().Before(t.expires):
		return approval.Expired
	}
	return approval.Pending
}

func (g *modelGrant) covers(c capability.Call, digest string, now time.Time) bool {
	if g.ended || !g.until.IsZero() && !now.Before(g.until) {
		return false
	}
	if g.call.Action != c.Action || g.call.CapabilityHash != c.CapabilityHash {
		return false
	}
	switch g.scope {
	case approval.Once:
		return g.digest == digest
	case approval.Session:
		return g.call.Session == c.Session
	}
	return true
}

const (
	modelFor     = time.Hour
	modelOnce    = 20 * time.Minute
	modelSession = 2 * time.Hour
)

func digestOf(c capability.Call) string {
	d, err := c.Digest()
	if err != nil {
		panic(err)
	}
	return d
}

// expected returns the ticket that Ask should give, nil for a new one.
func (m *model) expected(c capability.Call, narrow bool) *modelTicket {
	now, digest := m.clock.Now(), digestOf(c)
	if q, ok := m.quiet[c.Session+c.Action]; ok && now.Before(q.until) {
		return m.byID(q.ticket)
	}
	for _, scope := range []approval.Scope{approval.Always, approval.Until, approval.Session, approval.Once} {
		for _, t := range m.tickets {
			if g := t.grant; g != nil && g.scope == scope && g.id == t.id && g.covers(c, digest, now) && (scope == approval.Once || !narrow) {
				return t // one of several would do as well
			}
		}
	}
	for _, t := range m.tickets {
		if m.state(t) == approval.Pending && digestOf(t.call) == digest {
			return t
		}
	}
	return nil
}

func (m *model) byID(id string) *modelTicket {
	i := slices.IndexFunc(m.tickets, func(t *modelTicket) bool { return t.id == id })
	return m.tickets[i]
}

// settle does what a right answer does.
func (m *model) settle(t *modelTicket, a approval.Answer) {
	now := m.clock.Now()
	t.answer = &a
	if a.Effect == approval.Yes {
		g := &modelGrant{id: t.id, call: t.call, scope: a.Scope, digest: digestOf(t.call), until: a.Until}
		switch a.Scope {
		case approval.Once:
			g.until = now.Add(modelOnce)
		case approval.Session:
			g.until = now.Add(modelSession)
		}
		t.grant = g
		m.grants = append(m.grants, g)
	} else if a.Scope == approval.Session {
		m.quiet[t.call.Session+t.call.Action] = quiet{t.id, now.Add(modelSession)}
	}
	if a.Scope == approval.Once {
		return
	}
	for _, o := range m.tickets {
		if m.state(o) == approval.Pending && o.call.Action == t.call.Action &&
			(a.Scope != approval.Session || o.call.Session == t.call.Session) &&
			(a.Effect == approval.No || !o.narrow && o.call.CapabilityHash == t.call.CapabilityHash) {
			o.answer, o.grant = &a, t.grant
		}
	}
}

// TestModel: whatever is done, in whatever order and with restarts between, the
// desk agrees with the model about every ticket and every call's grants.
func TestModel(t *testing.T) {
	testkit.CI(t, "goes through a hundred histories")
	rapid.Check(t, func(r *rapid.T) {
		address := storetest.SQLite(t)
		var desks [2]*approval.Desk // as two processes have
		me := ann
		m := &model{clock: newClock(), quiet: map[string]quiet{}}
		stores := [2]*store.Store{testkit.Must(store.Open(ctx, address, ""))(r), testkit.Must(store.Open(ctx, address, ""))(r)} // closed with each run
		open := func(i int) {
			// The store's own clock stands still beside ours.
			desks[i] = newDesk(t, stores[i], approval.Config{For: modelFor, OnceFor: modelOnce, SessionFor: modelSession, Now: m.clock.Now})
		}
		for i, s := range stores {
			defer s.Close()
			open(i)
		}
		either := func(r *rapid.T) *approval.Desk { return desks[rapid.IntRange(0, 1).Draw(r, "desk")] }
		var pool []capability.Call
		for _, session := range []string{"s1", "s2"} {
			for _, action := range []string{"push", "pull"} {
				for _, hash := range []string{"h1", "h2"} {
					for _, args := range []string{`{"n":1}`, `{"n":2}`} {
						pool = append(pool, capability.Call{Target: "tool:git", Action: action, Arguments: []byte(args), Principal: me, Session: session, CapabilityHash: hash})
					}
				}
			}
		}
		pick := func(r *rapid.T) *modelTicket {
			if len(m.tickets) == 0 {
				r.Skip("no tickets")
			}
			return rapid.SampledFrom(m.tickets).Draw(r, "ticket")
		}
		r.Repeat(map[string]func(*rapid.T){
			"ask": func(r *rapid.T) {
				d := either(r)
				call := rapid.SampledFrom(pool).Draw(r, "call")
				q := about(call)
				narrow := rapid.Bool().Draw(r, "narrow")
				if narrow {
					q.Widest = approval.Once
				}
				want := m.expected(call, narrow)
				got, err := d.Ask(ctx, q)
				if err != nil {
					r.Fatalf("Ask = %v", err)
				}
				if want != nil {
					// Of several grants of one scope any will do.
					if got.ID != want.id && (m.state(want) != approval.Granted || got.State != approval.Granted) {
						r.Fatalf("Ask = %s %s, want %s %s", got.ID, got.State, want.id, m.state(want))
					}
					if got.State == approval.Pending { // it is asked as the rules are now
						want.narrow = narrow
					}
					return
				}
				if got.State != approval.Pending || slices.ContainsFunc(m.tickets, func(t *modelTicket) bool { return t.id == got.ID }) {
					r.Fatalf("Ask = %s %s, want a new ticket", got.ID, got.State)
				}
				void := 0
				for _, g := range m.grants {
					if !g.ended && (g.until.IsZero() || m.clock.Now().Before(g.until)) && g.call.Action == call.Action && g.call.CapabilityHash != call.CapabilityHash {
						g.ended = true
						void++
					}
				}
				if len(got.Voided) != void {
					r.Fatalf("Voided = %d, want %d", len(got.Voided), void)
				}
				m.tickets = append(m.tickets, &modelTicket{id: got.ID, call: call, narrow: narrow, expires: m.clock.Now().Add(modelFor)})
			},
			"settle": func(r *rapid.T) {
				d := either(r)
				ticket := pick(r)
				a := approval.Answer{
					By:     me,
					Effect: rapid.SampledFrom([]approval.Effect{approval.Yes, approval.Yes, approval.No}).Draw(r, "effect"),
					Scope:  rapid.SampledFrom([]approval.Scope{approval.Once, approval.Session, approval.Until, approval.Always}).Draw(r, "scope"),
				}
				if a.Scope != approval.Once && a.Effect == approval.Yes {
					a.Covers = approval.CoverTool
				}
				if a.Scope == approval.Until {
					a.Until = m.clock.Now().Add(45 * time.Minute)
				}
				_, err := d.Settle(ctx, ticket.id, a)
				var want error
				switch {
				case m.state(ticket) == approval.Expired:
					want = approval.ErrExpired
				case m.state(ticket) != approval.Pending:
					want = approval.ErrSettled
				case a.Effect == approval.Yes && a.Scope != approval.Once && ticket.narrow,
					a.Effect == approval.No && a.Scope != approval.Once && a.Scope != approval.Session:
					want = approval.ErrScope
				}
				if !errors.Is(err, want) {
					r.Fatalf("Settle(%s, %+v) = %v, want %v", ticket.id, a, err, want)
				}
				if want == nil {
					m.settle(ticket, a)
				}
			},
			"consume": func(r *rapid.T) {
				d := either(r)
				ticket := pick(r)
				g := ticket.grant
				if g == nil {
					r.Skip("no grant")
				}
				got := testkit.Must(d.Get(ctx, ticket.id))(r)
				holds := !g.ended && (g.until.IsZero() || m.clock.Now().Before(g.until))
				if _, err := d.Consume(ctx, got.Grant); (err == nil) != holds || err != nil && !errors.Is(err, approval.ErrEnded) {
					r.Fatalf("Consume = %v, it holds: %t", err, holds)
				}
				if g.scope == approval.Once && holds {
					g.ended = true
				}
			},
			"revoke": func(r *rapid.T) {
				d := either(r)
				ticket := pick(r)
				err := d.Revoke(ctx, ticket.id, me, "")
				switch {
				case m.state(ticket) == approval.Denied && ticket.answer.Scope == approval.Session:
					if err != nil {
						r.Fatalf("Revoke of a denial = %v", err)
					}
					delete(m.quiet, ticket.call.Session+ticket.call.Action)
				case ticket.grant == nil:
					if capability.KindOf(err) != capability.Invalid {
						r.Fatalf("Revoke without a grant = %v", err)
					}
				case ticket.grant.ended:
					if !errors.Is(err, approval.ErrEnded) {
						r.Fatalf("Revoke of what has ended = %v", err)
					}
				default:
					if err != nil {
						r.Fatalf("Revoke = %v", err)
					}
					ticket.grant.ended = true
				}
			},
			"later": func(r *rapid.T) {
				m.clock.advance(time.Duration(rapid.IntRange(1, 25).Draw(r, "minutes")) * time.Minute)
			},
			"restart": func(r *rapid.T) { open(rapid.IntRange(0, 1).Draw(r, "desk")) },
			"": func(r *rapid.T) {
				d := desks[m.step%2]
				now := m.clock.Now()
				for i := range 5 { // of all calls, in turn
					call := pool[(5*m.step+i)%len(pool)]
					var got, want []string
					grants := testkit.Must(d.Grants(ctx, requestOf(t, call)))(r)
					for _, g := range grants {
						got = append(got, g.ID[:12])
					}
					for _, g := range m.grants {
						if g.covers(call, digestOf(call), now) {
							want = append(want, g.id)
						}
					}
					slices.Sort(got)
					slices.Sort(want)
					if !slices.Equal(got, want) {
						r.Fatalf("Grants(%s %s %s %s) = %v, want %v", call.Session, call.Action, call.CapabilityHash, call.Arguments, got, want)
					}
				}
				m.step++
				list := testkit.Must(d.List(ctx, approval.Filter{Tenant: me.Tenant, States: []approval.State{approval.Pending}}))(r)
				pending := 0
				for _, ticket := range m.tickets {
					if m.state(ticket) == approval.Pending {
						pending++
					}
				}
				if len(list) != pending {
					r.Fatalf("List = %d pending, want %d", len(list), pending)
				}
				if len(m.tickets) > 0 {
					ticket := m.tickets[len(m.tickets)-1]
					if got, err := d.Get(ctx, ticket.id); err != nil || got.State != m.state(ticket) {
						r.Fatalf("Get(%s) = %s, %v; want %s", ticket.id, got.State, err, m.state(ticket))
					}
				}
			},
		})
	})
}
