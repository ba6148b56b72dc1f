package catalog

import (
	"slices"

	"ken/capability"
)

// A Listing is a snapshot as JSON shows it.
type Listing struct {
	Capabilities []*Entry              `json:"capabilities"`
	Problems     []capability.Problem  `json:"problems"`
	Presets      []capability.Preset   `json:"presets"`
	Documents    []capability.Document `json:"documents"`
	Stats        Stats                 `json:"stats"`
}

// Listing returns everything the snapshot holds, shadowed entries at the end.
func (s *Snapshot) Listing() Listing {
	return Listing{
		Capabilities: append(slices.Clone(s.entries), s.shadowed...),
		Problems:     append([]capability.Problem{}, s.allProblems()...),
		Presets:      append([]capability.Preset{}, s.presets...),
		Documents:    append([]capability.Document{}, s.documents...),
		Stats:        s.Stats(),
	}
}
