package ranking

import (
	"sync"
	"sync/atomic"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/know/index"
)

// An Index is the search index of a snapshot. A capability that stayed from
// one snapshot to the next keeps its slot in the segment, so ordinals, which
// shift with every insertion, are mapped to slots and back.
type Index struct {
	Segment  *index.Segment
	slots    []int32 // by ordinal
	ordinals []int32 // by slot; -1: free
	entries  []*catalog.Entry
}

// IndexOf returns the search index of a snapshot. The first call makes it, from the
// index of an earlier snapshot where there is one. The index stays with the snapshot.
func IndexOf(s *catalog.Snapshot) *Index { return attached(s).of(s.Entries()) }

func attached(s *catalog.Snapshot) *lazyIndex {
	return s.Attach(func() catalog.Attachment { return &lazyIndex{builds: &builds{}} }).(*lazyIndex)
}

// Slot returns the slot of an entry.
func (x *Index) Slot(ordinal int) int { return int(x.slots[ordinal]) }

// Ordinal returns the position in [catalog.Snapshot.Entries] of what is in a slot.
func (x *Index) Ordinal(slot int) int { return int(x.ordinals[slot]) }

// An Indexer makes segments, or takes one that was made before from where it
// is kept.
type Indexer interface {
	Build(list []*capability.Capability) *index.Segment
}

// IndexedBy returns the first attachment of a catalog whose indexes an Indexer makes,
// for [catalog.Config]. Without one they are made by [index.Build].
func IndexedBy(i Indexer) catalog.Attachment { return &lazyIndex{indexer: i, builds: &builds{}} }

// lazyIndex makes the index of a snapshot when it is first needed: out of that
// of an earlier snapshot where there is one.
type lazyIndex struct {
	mu      sync.Mutex // held while an index is built; readers of made do not wait
	made    atomic.Pointer[Index]
	earlier atomic.Pointer[Index]
	making  *lazyIndex // of the snapshot before, which was at it when this one came
	indexer Indexer    // may be nil
	builds  *builds    // shared by all snapshots of a catalog
}

// builds lets one whole index be made at a time. A catalog that has just started
// often has a second snapshot, with the tools of a server, before the first search
// has its index; and an index of 100,000 capabilities takes ten seconds to make.
// An index that was changed is not kept on disk: the next start makes its own out of
// the one that was kept, see [index.Cache.Build].
type builds struct {
	mu   sync.Mutex            // held while a whole index is made
	last atomic.Pointer[Index] // the one that was made last
}

// Next implements [catalog.Attachment]. What it returns starts from the index of
// this snapshot, which may still be in the making: then it is waited for when the
// next one is needed, and not before.
func (x *lazyIndex) Next() catalog.Attachment {
	next := &lazyIndex{indexer: x.indexer, builds: x.builds}
	if made := x.made.Load(); made != nil {
		next.earlier.Store(made)
		return next
	}
	if !x.mu.TryLock() {
		next.making = x
		return next
	}
	defer x.mu.Unlock()
	next.earlier.Store(x.latest())
	return next
}

func (x *lazyIndex) latest() *Index {
	if made := x.made.Load(); made != nil {
		return made
	}
	return x.earlier.Load()
}

func (x *lazyIndex) of(entries []*catalog.Entry) *Index {
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
	var made *Index
	if earlier := x.earlier.Load(); earlier != nil && related(earlier.entries, entries) {
		made = earlier.changed(entries)
	} else {
		made = x.whole(entries)
	}
	x.builds.last.Store(made)
	x.made.Store(made)
	x.earlier.Store(nil)
	return made
}

// whole makes an index without an earlier one, unless another snapshot has got one
// meanwhile.
func (x *lazyIndex) whole(entries []*catalog.Entry) *Index {
	x.builds.mu.Lock()
	defer x.builds.mu.Unlock()
	if last := x.builds.last.Load(); last != nil && related(last.entries, entries) {
		return last.changed(entries)
	}
	made := indexOf(entries, x.indexer)
	x.builds.last.Store(made)
	return made
}

// replace puts another index of the same entries in place, one with vectors.
func (x *lazyIndex) replace(was, now *Index) bool {
	x.builds.last.CompareAndSwap(was, now)
	return x.made.CompareAndSwap(was, now)
}

func indexOf(entries []*catalog.Entry, indexer Indexer) *Index {
	list := make([]*capability.Capability, len(entries))
	for i, e := range entries {
		list[i] = e.Capability
	}
	x := &Index{entries: entries, slots: make([]int32, len(entries)), ordinals: make([]int32, len(entries))}
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
func related(old, now []*catalog.Entry) bool {
	n := 0
	one := func(int) { n++ }
	catalog.Compare(old, now, catalog.Difference{Gone: one, Added: one, Changed: func(_, _ int) { n += 2 }, Stayed: func(_, _ int) {}})
	return n*4 <= len(now)+16
}

// changed makes the index of a list of entries out of that of an earlier one.
func (x *Index) changed(entries []*catalog.Entry) *Index {
	next := &Index{entries: entries, slots: make([]int32, len(entries))}
	var removed []int
	var add []*capability.Capability
	var where []int
	gone := func(i int) { removed = append(removed, int(x.slots[i])) }
	added := func(j int) {
		add = append(add, entries[j].Capability)
		where = append(where, j)
	}
	catalog.Compare(x.entries, entries, catalog.Difference{
		Gone: gone, Added: added,
		Changed: func(i, j int) { gone(i); added(j) },
		Stayed:  func(i, j int) { next.slots[j] = x.slots[i] },
	})
	if len(add) == 0 && len(removed) == 0 {
		next.Segment, next.ordinals = x.Segment, x.ordinals
		return next
	}
	segment, slots := x.Segment.Change(add, removed)
	for i, j := range where {
		next.slots[j] = int32(slots[i])
	}
	if segment.Fragmented() {
		rebuilt, to := segment.Rebuilt()
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
