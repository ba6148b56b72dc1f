package seal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"ken/capability"
)

// hash covers everything that a source says of a capability: all that a model
// may see, and all that decides how a call runs. Where it came from is not
// part of it. The order is part of the format: a change of it is a new version.
func hash(c *capability.Capability, d capability.Detail) string {
	room := texts.Get().(*[]byte)
	defer texts.Put(room)
	text := slices.Grow((*room)[:0], 1024+len(c.Description)+len(d.Schema)+len(d.Body)+len(d.Usage))
	put := func(parts ...string) {
		for _, s := range parts {
			// The length before each part keeps neighbours apart.
			text = append(strconv.AppendInt(text, int64(len(s)), 10), ':')
			text = append(text, s...)
		}
		text = append(text, '\n')
	}
	put("ken.capability.v1", string(c.ID), string(c.Kind), c.Name, c.DisplayName, c.Description, c.Category)
	put(c.Tags...)
	put(c.Aliases...)
	put(c.RequiredTools...)
	put(c.RequiredBins...)
	put(c.RequiredSecrets...)
	put(c.RequiredPlatforms...)
	put(c.Permissions...)
	put(c.Unavailable, c.Version, strconv.Itoa(c.Priority), strconv.Itoa(c.TokenBudget), strconv.Itoa(c.MaxChars))
	for _, m := range c.Migrations {
		put(m.From, m.To, m.Note)
	}
	if c.Triggers != nil {
		triggers, _ := json.Marshal(c.Triggers) // plain data cannot fail
		put(string(triggers))
	}
	for _, p := range c.Parameters {
		put(p.Name, p.Type, p.Description, strconv.FormatBool(p.Required))
	}
	e := c.Said()
	text = append(text, '0'+byte(e.ReadOnly), '0'+byte(e.Destructive), '0'+byte(e.Idempotent), '0'+byte(e.OpenWorld), '\n')
	if c.Run != nil {
		recipe, _ := json.Marshal(c.Run) // plain data cannot fail
		put(string(recipe))
	}
	put(string(d.Schema), d.Body, d.Usage)
	// Some of it decides how a call runs: where an argument goes, which files
	// come with a skill.
	for _, key := range slices.Sorted(maps.Keys(c.Meta)) {
		put(key, c.Meta[key])
	}
	if cap(text) <= mostRoom {
		*room = text
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// texts lends memory for what is hashed, up to mostRoom: a large catalog is hashed row
// by row.
var texts = sync.Pool{New: func() any { return new([]byte) }}

const mostRoom = 64 << 10

// Outdated returns the error that says that a capability is listed as it was last read, and can no
// longer be read.
func Outdated(c *capability.Capability) error {
	return &capability.Error{
		Kind: capability.Conflict, Op: "read", Target: string(c.ID),
		Err: fmt.Errorf("%s can no longer be read as it was", c.Origin), Fix: "fix the file; the catalog says what is wrong with it",
	}
}

// Unchanged fails with [capability.Conflict] when d is not the detail that c was
// sealed with, so that no text is used that was not scanned.
func Unchanged(c *capability.Capability, d capability.Detail) error {
	if hash(c, d) == c.Hash {
		return nil
	}
	return &capability.Error{
		Kind: capability.Conflict, Op: "read", Target: string(c.ID),
		Err: fmt.Errorf("%s changed since it was loaded", c.Origin), Fix: "reload the catalog",
	}
}
