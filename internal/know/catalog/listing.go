package catalog

import (
	"slices"

	"ken/capability"
)

// A Listing is a snapshot as JSON shows it.
type Listing struct {
	Capabilities []*Entry             `json:"capabilities"`
	Problems     []capability.Problem `json:"problems"`
	Stats        Stats                `json:"stats"`
}

// Listing gives everything the snapshot holds, shadowed entries at the end.
func (s *Snapshot) Listing() Listing {
	return Listing{
		Capabilities: append(slices.Clone(s.entries), s.shadowed...),
		Problems:     append([]capability.Problem{}, s.allProblems()...),
		Stats:        s.Stats(),
	}
}
