package index

import (
	"hash/maphash"
	"iter"
	"slices"
	"strings"

	"ken/capability"
)

var nameSeed = maphash.MakeSeed()

// NameKey returns the hash of a name, in any case.
func NameKey(name string) uint64 { return maphash.String(nameSeed, strings.ToLower(name)) }

// namesEach is how many keys nearly every capability has: its name and its id.
const namesEach = 2

// nameKeys returns what a capability can be called by.
func nameKeys(c *capability.Capability) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		name, id := NameKey(c.Name), NameKey(string(c.ID))
		if !yield(name) || id != name && !yield(id) {
			return
		}
		for _, a := range c.Aliases {
			if key := NameKey(a); key != name && key != id && !yield(key) {
				return
			}
		}
	}
}

// called are the slots of what has one name: nearly always one.
type called struct {
	first int32    // -1: none
	more  *[]int32 // never changed
}

// with adds a slot. If ours is set, the list is not shared yet and is extended in
// place.
func (c called) with(slot int32, known, ours bool) called {
	switch {
	case !known || c.first < 0:
		return called{first: slot}
	case c.more == nil:
		return called{c.first, &[]int32{slot}}
	}
	if ours {
		*c.more = append(*c.more, slot)
		return c
	}
	more := append(slices.Clone(*c.more), slot)
	return called{c.first, &more}
}

func (c called) without(slot int32) called {
	left := called{first: -1}
	for s := range c.Slots {
		if s != slot {
			left = left.with(s, true, true)
		}
	}
	return left
}

func (c called) Slots(yield func(int32) bool) {
	if c.first < 0 || !yield(c.first) || c.more == nil {
		return
	}
	for _, s := range *c.more {
		if !yield(s) {
			return
		}
	}
}

// IsCalled reports whether name is what a capability is called, whatever the
// case. It makes sure of what NameKey says.
func IsCalled(c *capability.Capability, name string) bool {
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
