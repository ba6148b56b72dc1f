package review

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ken/capability"
	"ken/internal/store"
)

// A State says how an extension stands. Only Enabled lets anything run; there
// is no zero State.
type State string

const (
	Unreviewed State = "new"      // not reviewed yet
	Enabled    State = "enabled"  // a person accepted exactly this
	Disabled   State = "disabled" // a person switched it off
	Differs    State = "changed"  // a person accepted something else
	Unknown    State = "unknown"  // the store does not say
)

// Switches are what people of a tenant said, at one moment. It does not change,
// answers without I/O, and may be used by any number of goroutines. A nil
// *Switches has everything off.
type Switches struct {
	version int64 // of the mark
	all     map[Key]Switch
	on      map[string]Key        // by digest, which also covers the key
	bad     map[string]unreadable // by key in the store
	tenant  string
	err     error // why nothing is known
}

// An unreadable switch is off.
type unreadable struct {
	version int64
	err     error
}

// mostTenants bounds what a desk remembers; past it, it starts from scratch.
const mostTenants = 1024

// Switches returns the switches of a tenant as they are now. It costs one Get
// while nothing changed, and a scan after a change by any process. It never
// fails: where the store does, everything that needs review is off, and
// [Switches.Err] and each reason say so.
func (d *Desk) Switches(ctx context.Context, tenant string) *Switches {
	mark, _, err := d.store.Get(ctx, markOf(tenant))
	if err != nil {
		return &Switches{tenant: tenant, err: err}
	}
	d.mu.Lock()
	have := d.known[tenant]
	d.mu.Unlock()
	if have != nil && have.version == mark.Version {
		return have
	}
	// The mark was read first, so what follows is at least as new: a change
	// meanwhile has a newer mark, and is read at the next call.
	s := &Switches{tenant: tenant, version: mark.Version, all: map[Key]Switch{}, on: map[string]Key{}, bad: map[string]unreadable{}}
	for item, err := range d.store.Scan(ctx, switchesOf(tenant), store.Range{}) {
		if err != nil {
			return &Switches{tenant: tenant, err: err}
		}
		if len(item.Value) == 0 {
			continue
		}
		if one, err := decodeSwitch(item); err != nil {
			s.bad[item.Key] = unreadable{item.Version, err}
		} else {
			s.all[one.Key] = one
			if one.On && one.Digest != "" {
				s.on[one.Digest] = one.Key
			}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= mostTenants {
		clear(d.known)
	}
	// Another goroutine may have read something newer meanwhile.
	if have := d.known[tenant]; have == nil || have.version <= s.version {
		d.known[tenant] = s
	}
	return s
}

// Err says why nothing is known, or nil.
func (s *Switches) Err() error {
	if s == nil {
		return errors.New("the review records were not read")
	}
	return s.err
}

// State says how an extension stands.
func (s *Switches) State(m *Manifest) State {
	if s == nil || s.err != nil {
		return Unknown
	}
	if k, ok := s.on[m.Digest]; ok && k.ID == m.ID && k.Place == m.Place {
		return Enabled
	}
	one, ok := s.all[m.Key()]
	switch {
	case !ok && len(s.bad) > 0 && s.bad[keyOf("switch", s.tenant, m.Key())].err != nil:
		return Unknown
	case !ok:
		return Unreviewed
	case !one.On:
		return Disabled
	}
	return Differs
}

// Off says why a capability may not be used and what to do; an empty reason
// means that it needs no review or that its extension is on. They are what
// policy and runner call Disabled and Fix. The book must be made from the
// catalog that c is of.
func (s *Switches) Off(b *Book, c *capability.Capability) (why, mend string) {
	m, ok := b.Of(c)
	if !ok {
		owner, needed := Owner(c)
		if !needed {
			return "", ""
		}
		return fmt.Sprintf("%s is disabled: package %s has no manifest in the catalog", clean(string(c.ID)), orNone(clean(string(owner)))),
			"fix the package and load the catalog again; ken doctor shows the problem"
	}
	state := s.State(m)
	if state == Enabled {
		return "", ""
	}
	return s.reason(m, state)
}

func (s *Switches) reason(m *Manifest, state State) (why, mend string) {
	name := clean(m.ID)
	word := argument(m.ID)
	both := fmt.Sprintf("see what it asks for with ken extension review %s, then run ken extension enable %s", word, word)
	switch state {
	case Unreviewed:
		return fmt.Sprintf("extension %s is disabled: it has not been reviewed", name), both
	case Disabled:
		one := s.all[m.Key()]
		why = fmt.Sprintf("extension %s is disabled: %s disabled it at %s", name, clean(one.By), one.At.Format(time.RFC3339))
		if one.Why != "" {
			why += ": " + clean(one.Why)
		}
		return why, both
	case Differs:
		return fmt.Sprintf("extension %s is disabled: it differs from the accepted version", name),
			fmt.Sprintf("see what changed with ken extension review %s, then accept it with ken extension enable %s", word, word)
	}
	err := s.Err()
	if err == nil {
		err = s.bad[keyOf("switch", s.tenant, m.Key())].err
	}
	return fmt.Sprintf("extension %s is disabled: cannot read whether it was accepted: %v", name, err),
		"fix the store; ken doctor shows the problem"
}

// Check is the exact form of [Switches.Off], for a call that is about to
// happen: it asks the store, and lets nothing pass that was switched off before
// it began, or while the store fails. The error is of kind Denied, or
// Unavailable where this is unknown.
func (d *Desk) Check(ctx context.Context, tenant string, b *Book, c *capability.Capability) error {
	if _, needed := Owner(c); !needed {
		return nil
	}
	return d.Switches(ctx, tenant).refusal(b, c)
}

func (s *Switches) refusal(b *Book, c *capability.Capability) error {
	why, mend := s.Off(b, c)
	if why == "" {
		return nil
	}
	kind := capability.Denied
	if s.err != nil {
		kind = capability.Unavailable
	}
	return &capability.Error{Kind: kind, Op: "call", Target: string(c.ID), Rule: "review", Err: errors.New(why), Fix: mend}
}

// A Status is all that is known about an extension's standing.
type Status struct {
	State State  `json:"state"`
	Why   string `json:"why,omitempty"`  // empty when enabled
	Fix   string `json:"mend,omitempty"` // what to do about it

	// Shown is what Enable needs when a person agrees to what is shown now.
	Shown Shown `json:"shown"`

	Switch      *Switch      `json:"switch,omitempty"` // what was last said
	Differences []Difference `json:"differences,omitempty"`

	// Elsewhere are other places for which this tenant accepted an extension
	// of the same id.
	Elsewhere []string `json:"elsewhere,omitempty"`
}

// Status says how an extension stands, and where it is not what was accepted
// last, in which way. The error is the store's; the Status beside it is that of
// an extension that is off.
func (d *Desk) Status(ctx context.Context, tenant string, m *Manifest) (Status, error) {
	s := d.Switches(ctx, tenant)
	st := Status{State: s.State(m), Shown: Shown{Digest: m.Digest}}
	if st.State != Enabled {
		st.Why, st.Fix = s.reason(m, st.State)
	}
	if s.err != nil {
		return st, s.err
	}
	var err error
	if one, ok := s.all[m.Key()]; ok {
		st.Switch, st.Shown.Version = &one, one.Version
	} else if bad, ok := s.bad[keyOf("switch", tenant, m.Key())]; ok {
		st.Shown.Version, err = bad.version, bad.err
	}
	if st.State != Enabled {
		accepted, acceptedErr := d.accepted(ctx, tenant, m.Key())
		if acceptedErr == nil && accepted != nil {
			st.Differences = Differences(accepted, m)
		}
		if st.State == Differs && len(st.Differences) == 0 {
			st.Differences = []Difference{{Field: "the extension (the accepted version can no longer be read)"}}
		}
		err = errors.Join(err, acceptedErr)
	}
	for k, other := range s.all {
		if k.ID == m.ID && k != m.Key() && other.On {
			st.Elsewhere = append(st.Elsewhere, k.Place)
		}
	}
	slices.Sort(st.Elsewhere)
	return st, err
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Place, b.Place))
}
