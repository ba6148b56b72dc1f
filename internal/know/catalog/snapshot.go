package catalog

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/text/unicode/norm"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/spelling"
	"ken/internal/untrusted"
)

// A Snapshot is the catalog at one moment. It never changes.
type Snapshot struct {
	version   uint64
	entries   []*Entry // sorted by id, shadowed ones not among them
	shadowed  []*Entry
	presets   []capability.Preset
	documents []capability.Document
	reported  [][]capability.Problem // by the sources, as they gave them
	problems  []capability.Problem   // found while putting them together
	changes   []Change
	edges     int
	mentions  []Mention

	attached atomic.Pointer[Attachment] // nil: none yet

	// Made when first asked for.
	allProblems func() []capability.Problem

	nameOnce sync.Once
	names    map[string][]int // made with the first look; see Named
}

// A Change is one difference from the snapshot before.
type Change struct {
	ID   capability.ID `json:"id"`
	What string        `json:"what"` // "added", "updated" or "removed"
	From string        `json:"from,omitempty"`
	To   string        `json:"to,omitempty"`
	Note string        `json:"note,omitempty"` // the capability's own word to users of From
}

// Stats count what a snapshot holds.
type Stats struct {
	Capabilities int    `json:"capabilityCount"` // shadowed ones not among them
	Active       int    `json:"active"`
	Available    int    `json:"available"` // see [Entry.Ready]
	Quarantined  int    `json:"quarantined"`
	Shadowed     int    `json:"shadowed"`
	Errors       int    `json:"errors"` // problems that cost something
	GraphNodes   int    `json:"graphNodes"`
	GraphEdges   int    `json:"graphEdges"` // dependencies and presets; tags and categories are not stored as edges
	Version      uint64 `json:"indexVersion"`
}

func emptySnapshot() *Snapshot {
	s := &Snapshot{}
	s.allProblems = sync.OnceValue(func() []capability.Problem {
		all := slices.Concat(append(slices.Clip(s.reported), s.problems, nameProblems(s.entries), s.unknownNames())...)
		sortProblems(all)
		return all
	})
	return s
}

// Version grows by one with each change.
func (s *Snapshot) Version() uint64 { return s.version }

// Len counts the entries, shadowed ones not among them.
func (s *Snapshot) Len() int { return len(s.entries) }

// Entries returns the entries in the order of their ids, which is the order of
// the index's ordinals. The slice must not be changed.
func (s *Snapshot) Entries() []*Entry { return s.entries }

// An Attachment is what another package makes of a snapshot and keeps with it: the
// search index. Snapshot and index are so always of the same entries.
type Attachment interface {
	// Next returns the attachment of the snapshot that comes after this one. It is
	// called while the catalog is locked, so it must not wait.
	Next() Attachment
}

// Attach returns the attachment of the snapshot. Where there is none yet, it becomes
// what first returns, and those of later snapshots follow from it.
func (s *Snapshot) Attach(first func() Attachment) Attachment {
	if a := s.attached.Load(); a != nil {
		return *a
	}
	a := first()
	if s.attached.CompareAndSwap(nil, &a) {
		return a
	}
	return *s.attached.Load()
}

// follow gives the snapshot the attachment that comes after another's.
func (s *Snapshot) follow(before *Snapshot) {
	if a := before.attached.Load(); a != nil {
		next := (*a).Next()
		s.attached.Store(&next)
	}
}

// All returns the entries in the order of their ids.
func (s *Snapshot) All() iter.Seq[*Entry] { return slices.Values(s.entries) }

// CallableIDs returns every id by which an entry can be called: its own and those
// of its aliases.
func (s *Snapshot) CallableIDs() []capability.ID {
	var out []capability.ID
	for _, e := range s.entries {
		out = append(out, e.ID)
		for _, alias := range e.Aliases {
			out = append(out, capability.MakeID(e.Kind, alias))
		}
	}
	return out
}

// Shadowed returns the capabilities that another of the same id stands before.
func (s *Snapshot) Shadowed() iter.Seq[*Entry] { return slices.Values(s.shadowed) }

// Ordinal finds the position of an entry in [Snapshot.Entries]. The id may be in
// any Unicode form.
func (s *Snapshot) Ordinal(id capability.ID) (int, bool) {
	id = capability.ID(norm.NFC.String(string(id)))
	return slices.BinarySearchFunc(s.entries, id, func(e *Entry, id capability.ID) int {
		return strings.Compare(string(e.ID), string(id))
	})
}

// Get finds an entry by its id.
func (s *Snapshot) Get(id capability.ID) (*Entry, bool) {
	i, ok := s.Ordinal(id)
	if !ok {
		return nil, false
	}
	return s.entries[i], true
}

// Lookup finds an entry as a person would name it: by id, or by a name that
// means one entry. The error lists what was probably meant.
func (s *Snapshot) Lookup(name string) (*Entry, error) { return s.LookupAmong(name, nil) }

// LookupAmong is Lookup among the entries whose ordinals sees accepts; the
// others are as if they were not there. Nil accepts all.
func (s *Snapshot) LookupAmong(name string, sees func(ordinal int) bool) (*Entry, error) {
	if i, ok := s.Ordinal(capability.ID(name)); ok && (sees == nil || sees(i)) {
		return s.entries[i], nil
	}
	var named []*Entry
	for _, i := range s.Named(name) {
		if sees == nil || sees(i) {
			named = append(named, s.entries[i])
		}
	}
	if e := meant(named); e != nil {
		return e, nil
	}
	unknown := &Unknown{Near: s.near(name, named, sees)}
	// The name may be a model's own, with line ends and no end.
	err := &capability.Error{Kind: capability.NotFound, Op: "find", Target: untrusted.Line(name, 200), Err: unknown}
	if len(named) > 1 {
		err.Kind = capability.Invalid
		err.Err = fmt.Errorf("%d capabilities have this name", len(named))
	}
	if len(unknown.Near) > 0 {
		err.Fix = "use one of: " + strings.Join(unknown.Near, ", ")
	} else {
		err.Fix = "see ken catalog list"
	}
	return nil, err
}

// Unknown is the cause of an error about a name that no entry has.
type Unknown struct {
	Near []string // ids that were probably meant
}

func (*Unknown) Error() string { return "no capability has this id or name" }

// Named returns the ordinals of the entries that have a name, in order. The name
// may be in any Unicode form. The list is the snapshot's own and must not be changed.
func (s *Snapshot) Named(name string) []int {
	s.nameOnce.Do(func() {
		s.names = make(map[string][]int, len(s.entries))
		for i, e := range s.entries {
			s.names[e.Name] = append(s.names[e.Name], i)
		}
	})
	return s.names[norm.NFC.String(name)]
}

func (s *Snapshot) near(name string, named []*Entry, sees func(ordinal int) bool) []string {
	var out []string
	for _, e := range named[:min(len(named), 5)] {
		out = append(out, string(e.ID))
	}
	if len(out) > 0 {
		return out
	}
	var words []string
	for i, e := range s.entries {
		if sees == nil || sees(i) {
			words = append(words, string(e.ID), e.Name)
		}
	}
	if near := spelling.NearestID(name, words); near != "" {
		out = append(out, near)
	}
	return out
}

// Presets returns the named combinations that sources brought.
func (s *Snapshot) Presets() []capability.Preset { return slices.Clone(s.presets) }

// Document returns the document of a role with the highest precedence among those
// whose place is trusted at least so far.
func (s *Snapshot) Document(role capability.DocumentRole, least capability.Trust) (capability.Document, bool) {
	for _, d := range slices.Backward(s.documents) {
		if d.Role == role && d.Trust >= least {
			return d, true
		}
	}
	return capability.Document{}, false
}

// Problems returns all that is wrong, gravest first, in a fixed order.
func (s *Snapshot) Problems() []capability.Problem { return slices.Clone(s.allProblems()) }

// Changes returns the differences from the snapshot before this one.
func (s *Snapshot) Changes() []Change { return slices.Clone(s.changes) }

// Stats counts what the snapshot holds.
func (s *Snapshot) Stats() Stats {
	st := Stats{
		Capabilities: len(s.entries), Shadowed: len(s.shadowed),
		GraphNodes: len(s.entries), GraphEdges: s.edges, Version: s.version,
	}
	for _, list := range append(slices.Clip(s.reported), s.problems) {
		for _, p := range list { // names that look alike are never grave
			if p.Severity == capability.Grave {
				st.Errors++
			}
		}
	}
	for _, e := range s.entries {
		if e.Ready() {
			st.Available++
		}
		switch e.State {
		case Active:
			st.Active++
		case Quarantined:
			st.Quarantined++
		}
	}
	return st
}

func sortProblems(ps []capability.Problem) {
	coldsort.Stable(ps, func(a, b capability.Problem) int {
		return cmp.Or(
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Origin.Path, b.Origin.Path),
			cmp.Compare(a.Origin.Line, b.Origin.Line),
			cmp.Compare(a.Code, b.Code),
			cmp.Compare(a.Subject, b.Subject),
		)
	})
}
