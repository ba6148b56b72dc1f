package catalog

import (
	"sync"
	"sync/atomic"

	"ken/capability"
	"ken/internal/know/index"
)

// Indexed is a snapshot made ready for search. A capability that stayed from
// one snapshot to the next keeps its slot in the segment, so ordinals, which
// shift with every insertion, are mapped to slots and back.
type Indexed struct {
	Segment  *index.Segment
	slots    []int32 // by ordinal
	ordinals []int32 // by slot; -1: free
	entries  []*Entry
}

// Slot returns the slot of an entry.
func (x *Indexed) Slot(ordinal int) int { return int(x.slots[ordinal]) }

// Ordinal returns the position in [Snapshot.Entries] of what is in a slot.
func (x *Indexed) Ordinal(slot int) int { return int(x.ordinals[slot]) }

// An Indexer makes segments, or takes one that was made before from where it
// is kept. It may be nil.
type Indexer interface {
	Build(list []*capability.Capability) *index.Segment
}

// indexing makes the index of a snapshot when it is first needed: out of that
// of an earlier snapshot where there is one.
type indexing struct {
	mu      sync.Mutex // held while an index is built; readers of made do not wait
	made    atomic.Pointer[Indexed]
	earlier atomic.Pointer[Indexed]
	making  *indexing // of the snapshot before, which was at it when this one came
	indexer Indexer
}

// after starts from the index of the snapshot before, which may still be in the
// making: then it is waited for when this one is needed, and not before.
func (x *indexing) after(before *indexing) {
	if made := before.made.Load(); made != nil {
		x.earlier.Store(made)
		return
	}
	if !before.mu.TryLock() {
		x.making = before
		return
	}
	defer before.mu.Unlock()
	x.earlier.Store(before.latest())
}

func (x *indexing) latest() *Indexed {
	if made := x.made.Load(); made != nil {
		return made
	}
	return x.earlier.Load()
}

func (x *indexing) of(entries []*Entry) *Indexed {
	if made := x.made.Load(); made != nil {
		return made
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if made := x.made.Load(); made != nil {
		return made
	}
	if before := x.making; before != nil {
		before.mu.Lock() // until it is made
		x.earlier.Store(before.latest())
		before.mu.Unlock()
		x.making = nil
	}
	var made *Indexed
	if earlier := x.earlier.Load(); earlier != nil && related(earlier.entries, entries) {
		made = earlier.changed(entries)
	} else {
		made = indexOf(entries, x.indexer)
	}
	x.made.Store(made)
	x.earlier.Store(nil)
	return made
}

// replace puts another index of the same entries in place, one with vectors.
func (x *indexing) replace(was, now *Indexed) bool { return x.made.CompareAndSwap(was, now) }

func indexOf(entries []*Entry, indexer Indexer) *Indexed {
	list := make([]*capability.Capability, len(entries))
	for i, e := range entries {
		list[i] = e.Capability
	}
	x := &Indexed{entries: entries, slots: make([]int32, len(entries)), ordinals: make([]int32, len(entries))}
	for i := range entries {
		x.slots[i], x.ordinals[i] = int32(i), int32(i)
	}
	if indexer != nil {
		x.Segment = indexer.Build(list)
	} else {
		x.Segment = index.Build(list)
	}
	return x
}

// related reports whether two lists of entries have enough in common for a
// change to be cheaper than a new index.
func related(old, now []*Entry) bool {
	n := 0
	one := func(int) { n++ }
	walk(old, now, step{gone: one, added: one, changed: func(_, _ int) { n += 2 }, stayed: func(_, _ int) {}})
	return n*4 <= len(now)+16
}

// A step is what to do about each id of two lists, by its places in them.
type step struct {
	gone, added     func(i int)
	changed, stayed func(i, j int) // the id is the same; the capability another, or the same
}

// walk compares two lists of entries, both sorted by id.
func walk(old, now []*Entry, do step) {
	i, j := 0, 0
	for i < len(old) || j < len(now) {
		switch {
		case j == len(now) || i < len(old) && old[i].ID < now[j].ID:
			do.gone(i)
			i++
		case i == len(old) || now[j].ID < old[i].ID:
			do.added(j)
			j++
		default:
			if old[i].Capability == now[j].Capability {
				do.stayed(i, j)
			} else {
				do.changed(i, j)
			}
			i++
			j++
		}
	}
}

// changed makes the index of a list of entries out of that of an earlier one.
func (x *Indexed) changed(entries []*Entry) *Indexed {
	next := &Indexed{entries: entries, slots: make([]int32, len(entries))}
	var removed []int
	var add []*capability.Capability
	var where []int
	gone := func(i int) { removed = append(removed, int(x.slots[i])) }
	added := func(j int) {
		add = append(add, entries[j].Capability)
		where = append(where, j)
	}
	walk(x.entries, entries, step{
		gone: gone, added: added,
		changed: func(i, j int) { gone(i); added(j) },
		stayed:  func(i, j int) { next.slots[j] = x.slots[i] },
	})
	if len(add) == 0 && len(removed) == 0 {
		next.Segment, next.ordinals = x.Segment, x.ordinals
		return next
	}
	segment, slots := x.Segment.Change(add, removed)
	for i, j := range where {
		next.slots[j] = int32(slots[i])
	}
	if segment.Worn() {
		rebuilt, to := segment.Anew()
		for j, slot := range next.slots {
			next.slots[j] = to[slot]
		}
		segment = rebuilt
	}
	next.Segment, next.ordinals = segment, make([]int32, segment.Len())
	for i := range next.ordinals {
		next.ordinals[i] = -1
	}
	for ordinal, slot := range next.slots {
		next.ordinals[slot] = int32(ordinal)
	}
	return next
}
