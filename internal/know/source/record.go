package source

import (
	"errors"
	"fmt"
	"io/fs"

	"ken/capability"
	"ken/internal/know/source/catalogfile"
	"ken/internal/know/source/rows"
	"ken/internal/know/source/seal"
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
	raw, err := t.root.ReadRange(p, c.Origin.Offset, c.Origin.Length)
	if errors.Is(err, fs.ErrNotExist) {
		return capability.Detail{}, &capability.Error{
			Kind: capability.NotFound, Op: "read", Target: string(c.ID),
			Err: fmt.Errorf("%s is no longer there", c.Origin), Fix: "reload the catalog",
		}
	}
	if err != nil {
		return capability.Detail{}, changed(err)
	}
	reader := rows.Reader{MCP: c.Origin.Format == catalogfile.MCPListName}
	r, err := reader.Read(raw)
	if err != nil {
		return capability.Detail{}, changed(err)
	}
	return r.Detail, seal.Unchanged(c, r.Detail)
}
