package catalog

import (
	"context"

	"ken/capability"
)

// A Memory is a source in memory that can be changed. Its Load does not fail.
type Memory interface {
	capability.Source
	Put(capability.Capability, capability.Detail) bool
	Remove(capability.ID) bool
}

// Live changes one source of a catalog while the program runs. Source must be
// among the sources of Catalog.
type Live struct {
	Catalog *Catalog
	Source  Memory
}

// Put adds a capability, or replaces the one with its id. It reports whether it
// was taken: one that lives only as long as a session is not.
func (l Live) Put(c capability.Capability, d capability.Detail) bool {
	taken := l.Source.Put(c, d)
	l.replace()
	return taken
}

// Remove removes what Put added, and reports whether it was there.
func (l Live) Remove(id capability.ID) bool {
	had := l.Source.Remove(id)
	l.replace()
	return had
}

func (l Live) replace() {
	batch, _ := l.Source.Load(context.Background()) // it does not fail
	l.Catalog.Replace(l.Source.Name(), batch)
}
