package index

import (
	"hash/maphash"
	"iter"
	"strings"

	"ken/capability"
)

var nameSeed = maphash.MakeSeed()

func nameKey(name string) uint64 { return maphash.String(nameSeed, strings.ToLower(name)) }

// nameKeys gives what a capability can be called by.
func nameKeys(c *capability.Capability) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		name, id := nameKey(c.Name), nameKey(string(c.ID))
		if !yield(name) || id != name && !yield(id) {
			return
		}
		for _, a := range c.Aliases {
			if key := nameKey(a); key != name && key != id && !yield(key) {
				return
			}
		}
	}
}

// called reports whether name is what a capability is called, whatever the
// case. It makes sure of what nameKey says.
func called(c *capability.Capability, name string) bool {
	if strings.EqualFold(c.Name, name) || strings.EqualFold(string(c.ID), name) {
		return true
	}
	for _, a := range c.Aliases {
		if strings.EqualFold(a, name) {
			return true
		}
	}
	return false
}
