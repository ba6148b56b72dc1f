package connect

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"

	"ken/capability"
)

// Apply does what a plan says to the client's files; merging its servers and
// storing its secrets is the caller's, and comes first. The files as they were
// are kept before any is written. It refuses with [capability.Conflict] when a
// file is no longer what [Prepare] read, and then nothing was changed. Each
// file is replaced as a whole; when one cannot be written, those before it are
// put back.
//
// Connecting a client again keeps what [Undo] needs to restore the first state.
func Apply(ctx context.Context, p *Plan, keep Keep) error {
	if len(p.Files) == 0 {
		return nil
	}
	old, err := loadRecord(ctx, keep, p.Client)
	if err != nil {
		return err
	}
	next := &record{Version: recordVersion, Client: p.Client, Entry: recordEntry{p.entry.Command, p.entry.URL}}
	for _, f := range p.Files {
		if err := unchanged(f.Path, f.Exists, f.Before); err != nil {
			return err
		}
		kept, err := f.keep(old)
		if err != nil {
			return err
		}
		next.Files = append(next.Files, kept)
	}
	if old != nil {
		next.Sealed = slices.Clone(old.Sealed)
	}
	for _, s := range p.Secrets {
		if !s.Value.Empty() && !slices.Contains(next.Sealed, s.Name) {
			next.Sealed = append(next.Sealed, s.Name)
		}
	}
	if old != nil {
		for _, f := range old.Files {
			if next.file(f.Path) == nil {
				next.Files = append(next.Files, f)
			}
		}
	}
	if err := saveRecord(ctx, keep, next); err != nil {
		return err
	}
	for i, f := range p.Files {
		private := p.entry.Token != "" && bytes.Contains(f.After, []byte(p.entry.Token)) // its reader can use the token
		err := replaceFile(f.Target, f.After, private, func() error { return unchanged(f.Path, f.Exists, f.Before) })
		if err != nil {
			return errors.Join(unwritten(f.Path, err), p.rollBack(ctx, i, old, keep))
		}
	}
	return nil
}

// rollBack puts the first n files back, and what was kept before.
func (p *Plan) rollBack(ctx context.Context, n int, old *record, keep Keep) error {
	var all []error
	for _, f := range p.Files[:n] {
		all = append(all, restore(f.Path, f.Target, f.Exists, f.Before, f.After))
	}
	if err := errors.Join(all...); err != nil {
		return err // what is kept is still needed
	}
	if old != nil {
		return saveRecord(ctx, keep, old)
	}
	return keep.Delete(ctx, recordKey(p.Client))
}

// restore puts a file back that holds what we wrote.
func restore(path, target string, existed bool, before, after []byte) error {
	check := func() error { return unchanged(path, true, after) }
	if existed {
		if err := replaceFile(target, before, false, check); err != nil {
			return unwritten(path, err)
		}
		return nil
	}
	if err := check(); err != nil {
		return err
	}
	if err := os.Remove(target); err != nil {
		return unwritten(path, err)
	}
	return nil
}

func unwritten(path string, err error) error {
	if _, ours := errors.AsType[*capability.Error](err); ours {
		return err
	}
	return &capability.Error{Kind: capability.Unavailable, Op: "write", Target: path, Err: err, Fix: "see that its folder can be written and has room"}
}

// unchanged reports whether a file still is what it was.
func unchanged(path string, exists bool, want []byte) error {
	conflict := &capability.Error{
		Kind: capability.Conflict, Op: "write", Target: path,
		Err: errors.New("file was changed in the meantime"), Fix: "close the client and try again",
	}
	if isThere(path) != exists {
		return conflict
	}
	data, _, err := readFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(data, want) {
		return conflict
	}
	return nil
}

// keep returns what has to be kept of a file. When it was connected before, that
// is its first state, with what others changed since.
func (c Change) keep(old *record) (recordedFile, error) {
	fresh := recordedFile{Path: c.Path, Existed: c.Exists, Original: c.Before, Applied: hashOf(c.After), Tables: c.tables()}
	before := old.file(c.Path)
	if before == nil || !c.Exists || bytes.Equal(c.Before, before.Original) {
		return fresh, nil
	}
	fresh.Existed = before.Existed
	fresh.Tables = joinTables(before.Tables, fresh.Tables)
	if hashOf(c.Before) == before.Applied {
		fresh.Original = before.Original
		return fresh, nil
	}
	first, _, err := before.putBack(c.client, old.Entry, c.Before)
	if err != nil {
		return fresh, &capability.Error{
			Kind: capability.Conflict, Op: "connect", Target: c.Path, Err: err,
			Fix: "ken disconnect " + c.client.Name + " first",
		}
	}
	fresh.Original, fresh.Existed = first, true
	return fresh, nil
}
