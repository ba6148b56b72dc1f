package review

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/govern/audit"
	"ken/internal/store"
)

// Config is what a desk may be told. The zero value works.
type Config struct {
	// Reviewers are the roles that may switch extensions on and off for their
	// tenant. Without any, every principal may.
	Reviewers []string

	// Log makes a record durable. It is asked before an extension is switched
	// on, which its failing prevents, and after anything was switched off,
	// which it cannot prevent. Nil records nothing.
	Log func(context.Context, audit.Record) error

	Now func() time.Time // nil: time.Now
}

// A Desk keeps what people said about extensions. Its methods may be used by any
// number of goroutines, and any number of processes may have a desk on the same
// store. It holds nothing that needs closing.
type Desk struct {
	store *store.Store
	conf  Config

	mu    sync.Mutex
	known map[string]*Switches // by tenant, as of the mark's version
}

// New returns the desk of a store. The store stays the caller's.
func New(s *store.Store, c Config) (*Desk, error) {
	if s == nil {
		return nil, errors.New("open reviews: missing store")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Reviewers = slices.Clone(c.Reviewers)
	return &Desk{store: s, conf: c, known: map[string]*Switches{}}, nil
}

// A Word is what a person says about an extension.
type Word struct {
	By     capability.Principal
	Origin capability.Caller // must be [capability.ByPerson]: no model reviews
	Why    string
}

// Shown is what a person saw when deciding: [Manifest.Digest] and the Version of
// the [Status] beside it. The zero Version stands for an extension that was not
// has reviewed.
type Shown struct {
	Digest  string `json:"digest"`
	Version int64  `json:"version,omitempty"`
}

var (
	// ErrChanged: the extension is not what the person was shown.
	ErrChanged = errors.New("the extension changed after it was shown")
	// ErrSaid: it was switched meanwhile.
	ErrSaid = errors.New("the extension was enabled or disabled after it was shown")
)

// A Changed is the error of an Enable whose manifest differs from the one that
// was shown. It is ErrChanged. Differences are from what was accepted last,
// where anything was: what was shown is known by its digest only.
type Changed struct {
	Shown, Now  string // digests
	Differences []Difference
}

func (c *Changed) Error() string {
	text := ErrChanged.Error()
	for _, d := range c.Differences {
		text += "; " + d.String()
	}
	return text
}

// Is makes every Changed an ErrChanged.
func (c *Changed) Is(target error) bool { return target == ErrChanged }

// Enable switches an extension on as it is in m, for the tenant of the person who says
// so. It is bound to what was shown: where m is something else the error is
// [Changed], where another has switched it meanwhile ErrSaid, and both are of
// kind Conflict. When it returns without an error every desk on this store sees
// the extension on. Saying it again changes nothing.
func (d *Desk) Enable(ctx context.Context, m *Manifest, shown Shown, w Word) (Switch, error) {
	if err := d.mayReview("enable", m.ID, w); err != nil {
		return Switch{}, err
	}
	refuse := func(kind capability.ErrorKind, err error, fix string) (Switch, error) {
		return Switch{}, &capability.Error{Kind: kind, Op: "enable extension", Target: m.ID, Err: err, Fix: fix}
	}
	again := "review it again: ken extension review " + argument(m.ID)
	// The digest decides, so it is taken from the manifest itself.
	if digest := digestOf(m); digest != m.Digest || shown.Digest != digest {
		changed := &Changed{Shown: shown.Digest, Now: digest}
		if accepted, err := d.accepted(ctx, w.By.Tenant, m.Key()); err == nil && accepted != nil {
			changed.Differences = Differences(accepted, m)
		}
		return refuse(capability.Conflict, changed, again)
	}
	key := keyOf("switch", w.By.Tenant, m.Key())
	now, err := d.get(ctx, w.By.Tenant, m.Key())
	if err != nil && now.Version == 0 {
		return refuse(capability.Unavailable, err, "fix the store, then review the extension again")
	}
	if err == nil && now.On && now.Digest == m.Digest {
		return now, nil
	}
	if now.Version != shown.Version {
		return refuse(capability.Conflict, said(now), again)
	}
	next := Switch{Key: m.Key(), Tenant: w.By.Tenant, On: true, Digest: m.Digest, By: w.By.ID, At: d.now(), Why: w.Why}
	change := Change{Switch: next, Was: now, Package: m.Package}
	if err := d.log(ctx, change.Record()); err != nil {
		return refuse(capability.Unavailable, fmt.Errorf("not enabled, because the audit log could not be written: %w", err), "fix the audit log, then enable it again")
	}
	value, err := json.Marshal(storedManifest{formatVersion, m})
	if err == nil {
		var b store.Batch
		b.At(key, shown.Version)
		b.Put(keyOf("accepted", w.By.Tenant, m.Key()), value)
		next.Version, err = d.write(ctx, &b, next)
	}
	if err != nil {
		change.Err = err
		if logErr := d.log(context.WithoutCancel(ctx), change.Record()); logErr != nil {
			err = errors.Join(err, logErr)
		}
		if errors.Is(err, store.ErrConflict) {
			now, _ = d.get(ctx, w.By.Tenant, m.Key())
			return refuse(capability.Conflict, said(now), again)
		}
		return refuse(capability.Unavailable, err, again)
	}
	change.Switch, change.Done = next, true
	if err := d.log(context.WithoutCancel(ctx), change.Record()); err != nil {
		return next, fmt.Errorf("enable extension %s: enabled, but the second audit record could not be written: %w", m.ID, err)
	}
	return next, nil
}

func said(now Switch) error {
	if now.Version == 0 {
		return fmt.Errorf("%w: its record was removed", ErrSaid)
	}
	word := "off"
	if now.On {
		word = "on"
	}
	text := fmt.Sprintf("%s: %s turned it %s at %s", ErrSaid, clean(orNone(now.By)), word, now.At.Format(time.RFC3339))
	if now.Why != "" {
		text += ": " + clean(now.Why)
	}
	return &saidError{text}
}

type saidError struct{ text string }

func (e *saidError) Error() string        { return e.text }
func (e *saidError) Is(target error) bool { return target == ErrSaid }

// Disable switches an extension off for the tenant of the person who says so; an empty
// Place means all places that have a switch. It waits for no catalog, so an
// extension that is gone or broken can be switched off too. When it returns
// without an error no [Desk.Check] of any process lets the extension pass; calls
// that had passed before may still be running.
func (d *Desk) Disable(ctx context.Context, k Key, w Word) ([]Switch, error) {
	if err := d.mayReview("disable", k.ID, w); err != nil {
		return nil, err
	}
	keys := []Key{k}
	var errs []error
	if k.Place == "" {
		all, err := d.List(ctx, w.By.Tenant)
		keys = nil
		for _, s := range all {
			if s.ID == k.ID {
				keys = append(keys, s.Key)
			}
		}
		if err != nil {
			errs = append(errs, err)
		}
		if len(keys) == 0 && err == nil {
			return nil, &capability.Error{
				Kind: capability.NotFound, Op: "disable extension", Target: k.ID, Err: errors.New("no enabled extension has this id"),
				Fix: "ken extension list shows all extensions",
			}
		}
	}
	var out []Switch
	for _, k := range keys {
		s, err := d.disable(ctx, k, w)
		if err != nil {
			errs = append(errs, err)
		}
		if s.Version > 0 {
			out = append(out, s)
		}
	}
	return out, errors.Join(errs...)
}

func (d *Desk) disable(ctx context.Context, k Key, w Word) (Switch, error) {
	next := Switch{Key: k, Tenant: w.By.Tenant, By: w.By.ID, At: d.now(), Why: w.Why}
	was, _ := d.get(ctx, w.By.Tenant, k) // for the record; off is written whatever was there
	var b store.Batch
	version, err := d.write(ctx, &b, next)
	if err != nil {
		return Switch{}, &capability.Error{
			Kind: capability.Unavailable, Op: "disable extension", Target: k.ID, Err: err,
			Fix: "the extension may still be enabled; fix the store and disable it again",
		}
	}
	next.Version = version
	if err := d.log(context.WithoutCancel(ctx), Change{Switch: next, Was: was, Done: true}.Record()); err != nil {
		return next, fmt.Errorf("disable extension %s: disabled, but the audit log could not be written: %w", k.ID, err)
	}
	return next, nil
}

// write puts a switch, and the mark that makes every desk read it.
func (d *Desk) write(ctx context.Context, b *store.Batch, s Switch) (int64, error) {
	value, err := json.Marshal(storedSwitch{formatVersion, s})
	if err != nil {
		return 0, err
	}
	b.Put(keyOf("switch", s.Tenant, s.Key), value)
	b.Put(markOf(s.Tenant), []byte("1"))
	return d.store.Apply(ctx, b)
}

func (d *Desk) mayReview(verb, id string, w Word) error {
	refuse := func(err error, fix string) error {
		return &capability.Error{Kind: capability.Denied, Op: verb + " extension", Target: id, Err: err, Fix: fix}
	}
	switch {
	case w.Origin != capability.ByPerson:
		return refuse(errors.New("only a person may do this"), "ask a person to run ken extension "+verb+" "+argument(id))
	case w.By.ID == "":
		return refuse(errors.New("missing principal"), "identify the caller")
	case len(d.conf.Reviewers) > 0 && !slices.ContainsFunc(w.By.Roles, func(role string) bool { return slices.Contains(d.conf.Reviewers, role) }):
		return refuse(errors.New("none of your roles may do this"), "ask a person with a role in approval.approvers")
	}
	return nil
}

// get reads a switch; one that was never set is off and has version 0. With
// an error about what it says, the Version is still true.
func (d *Desk) get(ctx context.Context, tenant string, k Key) (Switch, error) {
	item, there, err := d.store.Get(ctx, keyOf("switch", tenant, k))
	if err != nil || !there || len(item.Value) == 0 {
		return Switch{Key: k, Tenant: tenant}, err
	}
	s, err := decodeSwitch(item)
	if err != nil {
		return Switch{Key: k, Tenant: tenant, Version: item.Version}, err
	}
	return s, nil
}

// accepted returns the manifest that was accepted last, or nil.
func (d *Desk) accepted(ctx context.Context, tenant string, k Key) (*Manifest, error) {
	item, there, err := d.store.Get(ctx, keyOf("accepted", tenant, k))
	if err != nil || !there || len(item.Value) == 0 {
		return nil, err
	}
	var m storedManifest
	if err := decode(item, &m); err != nil {
		return nil, err
	}
	if m.Manifest == nil || m.Manifest.Package == nil {
		return nil, fmt.Errorf("read %s: the record has no manifest", item.Key)
	}
	return m.Manifest, nil
}

// List returns all that people of a tenant said, by id and place, also about
// extensions that are gone. What cannot be read is in the error, beside the rest.
func (d *Desk) List(ctx context.Context, tenant string) ([]Switch, error) {
	var out []Switch
	var errs []error
	for item, err := range d.store.Scan(ctx, switchesOf(tenant), store.Range{}) {
		if err != nil {
			return out, errors.Join(append(errs, err)...)
		}
		if len(item.Value) == 0 {
			continue
		}
		s, err := decodeSwitch(item)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, s)
	}
	coldsort.By(out, func(a, b Switch) int { return compareKeys(a.Key, b.Key) })
	return out, errors.Join(errs...)
}

func (d *Desk) log(ctx context.Context, r audit.Record) error {
	if d.conf.Log == nil {
		return nil
	}
	return d.conf.Log(ctx, r)
}

// now is what is written down: without a monotonic clock, which no other process
// has.
func (d *Desk) now() time.Time { return d.conf.Now().UTC().Truncate(time.Microsecond) }
