package source

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"ken/capability"
)

// recordLocked reads one record of a larger file again, by its place. What
// stands there by now is used only if it is what was scanned and hashed.
func (t *Tree) recordLocked(p string, c *capability.Capability) (capability.Detail, error) {
	changed := func(err error) error {
		return &capability.Error{
			Kind: capability.Conflict, Op: "read", Target: string(c.ID),
			Err: fmt.Errorf("%s changed since it was loaded: %w", c.Origin, err), Fix: "reload the catalog",
		}
	}
	raw, err := t.root.readRange(p, c.Origin.Offset, c.Origin.Length)
	if errors.Is(err, fs.ErrNotExist) {
		return capability.Detail{}, &capability.Error{
			Kind: capability.NotFound, Op: "read", Target: string(c.ID),
			Err: fmt.Errorf("%s is no longer there", c.Origin), Fix: "reload the catalog",
		}
	}
	if err != nil {
		return capability.Detail{}, changed(err)
	}
	rows := rowReader{mcp: c.Origin.Format == mcpListName}
	r, err := rows.read(raw)
	if err != nil {
		return capability.Detail{}, changed(err)
	}
	return r.Detail, unchanged(c, r.Detail)
}

// readRange reads a part of a regular file, no more than the longest record.
func (r *root) readRange(p string, offset, length int64) ([]byte, error) {
	if offset < 0 || length < 0 || length > tableLimit {
		return nil, fmt.Errorf("%d bytes at %d are no record", length, offset)
	}
	f, err := r.open(p)
	if err != nil {
		return nil, explainOpen(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, explainOpen(err)
	}
	if err := r.admit(info, catalogLimit); err != nil {
		return nil, err
	}
	if offset+length > info.Size() {
		return nil, errors.New("the file has become shorter")
	}
	if seeker, ok := f.(io.Seeker); ok {
		_, err = seeker.Seek(offset, io.SeekStart)
	} else {
		_, err = io.CopyN(io.Discard, f, offset)
	}
	if err != nil {
		return nil, explainOpen(err)
	}
	raw := make([]byte, length)
	if _, err := io.ReadFull(f, raw); err != nil {
		return nil, explainOpen(err)
	}
	return raw, nil
}
