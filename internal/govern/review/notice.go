package review

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/store"
)

// A Change is something that became of a switch, for the audit trail.
type Change struct {
	Switch Switch // what it is now, or is to be
	Was    Switch

	// Package and Differences are set where they are known.
	Package     *capability.Capability
	Differences []Difference
	Found       bool // not switched by a person: the package itself changed

	Done bool  // false: it is about to be done, or could not be
	Err  error // why it could not be
}

// Record returns the audit record of a change. Switching on has one before it and
// one after it.
func (c Change) Record() audit.Record {
	s := &c.Switch
	r := audit.Record{
		Event: audit.Changed, ExtensionID: s.ID, Command: "extension", Action: "disable",
		UserID: s.By, Tenant: s.Tenant, Target: string(capability.MakeID(capability.KindExtension, s.ID)),
		Origin: string(capability.ByPerson), CapabilityHash: s.Digest, Status: audit.Completed,
	}
	notes := map[string]string{"place": s.Place, "why": s.Why, "was": c.Was.Digest}
	switch {
	case c.Found:
		r.Action, r.Origin = "changed", ""
	case s.On:
		r.Action = "enable"
	}
	if p := c.Package; p != nil {
		notes["version"], notes["trust"] = p.Version, p.Trust.String()
		notes["permissions"] = strings.Join(p.Permissions, " ")
	}
	if len(c.Differences) > 0 {
		var lines []string
		for _, d := range c.Differences {
			lines = append(lines, d.String())
		}
		notes["differences"] = strings.Join(lines, "; ")
		notes["difference_count"] = strconv.Itoa(len(lines))
	}
	maps.DeleteFunc(notes, func(_, v string) bool { return v == "" })
	r.Metadata.Notes = notes
	switch success := c.Done && c.Err == nil; {
	case c.Err != nil:
		text := c.Err.Error()
		r.Status, r.Success, r.Error = audit.CallFailed, &success, &text
	case c.Done:
		r.Success = &success
	default:
		r.Status = audit.Running
	}
	return r
}

// Notice records that an extension is no longer what was accepted, once for each
// thing that it became, whichever process sees it first. Call it when the catalog
// has changed; whether the extension is on does not depend on it.
func (d *Desk) Notice(ctx context.Context, tenant string, m *Manifest) (first bool, err error) {
	st, err := d.Status(ctx, tenant, m)
	if err != nil || st.State != Differs {
		return false, err
	}
	key := keyOf("noticed", tenant, m.Key())
	item, _, err := d.store.Get(ctx, key)
	if err != nil || string(item.Value) == m.Digest {
		return false, err
	}
	var b store.Batch
	b.At(key, item.Version)
	b.Put(key, []byte(m.Digest))
	version, err := d.store.Apply(ctx, &b)
	if err != nil {
		return false, notConflict(err)
	}
	c := Change{
		Switch: Switch{Key: m.Key(), Tenant: tenant, Digest: m.Digest}, Was: *st.Switch, Package: m.Package,
		Differences: st.Differences, Found: true, Done: true,
	}
	if err := d.log(ctx, c.Record()); err != nil {
		// Another process records it.
		var back store.Batch
		back.At(key, version)
		back.Delete(key)
		_, backErr := d.store.Apply(context.WithoutCancel(ctx), &back)
		if backErr = notConflict(backErr); backErr != nil {
			return false, backErr
		}
		return false, err
	}
	return true, nil
}

func notConflict(err error) error {
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}
