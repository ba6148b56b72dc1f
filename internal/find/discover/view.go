package discover

import (
	"sync"
	"sync/atomic"

	"ken/capability"
	"ken/internal/find/card"
	"ken/internal/find/graph"
	"ken/internal/find/show"
	"ken/internal/know/catalog"
	"ken/internal/know/index"
	"ken/internal/tokenizer"
)

// ready is what finding needs of one snapshot, whoever asks. It is made once.
type ready struct {
	snapshot *catalog.Snapshot
	graph    func() *graph.Graph
	briefs   []atomic.Pointer[show.Brief] // by ordinal; made when first shown
	count    tokenizer.Counter
}

func newReady(s *catalog.Snapshot, count tokenizer.Counter) *ready {
	return &ready{
		snapshot: s, count: count, briefs: make([]atomic.Pointer[show.Brief], s.Len()),
		graph: sync.OnceValue(func() *graph.Graph { return graph.Build(s.Entries(), s.Presets()) }),
	}
}

func (r *ready) brief(ordinal int) show.Brief {
	if b := r.briefs[ordinal].Load(); b != nil {
		return *b
	}
	b := show.MakeBrief(r.snapshot.Entries()[ordinal], r.count)
	r.briefs[ordinal].Store(&b)
	return b
}

// A View is what one class of principals sees of one snapshot. It never
// changes but to hold what was made of it; it is safe for any number of
// goroutines.
type View struct {
	*ready
	visible index.Bits // by ordinal
	held    index.Bits // what would be visible but for its state
	shown   int        // how many are visible
	sheet   func() *show.Map
	cards   func() *card.Set // how telling a keyword is depends on who has it, so nobody hidden is in it

	mu     sync.Mutex
	search atomic.Pointer[searchable]
}

// searchable is the search index as this view sees it.
type searchable struct {
	indexed *catalog.Indexed
	view    *index.View
	vectors int // how many visible entries have one
}

// newView narrows a snapshot to the entries that may be shown and that visible
// accepts; nil accepts all.
func newView(r *ready, visible func(*catalog.Entry) bool) *View {
	n := r.snapshot.Len()
	v := &View{ready: r, visible: index.NewBits(n), held: index.NewBits(n)}
	for i, e := range r.snapshot.Entries() {
		switch {
		case visible != nil && !visible(e):
		case e.State != catalog.Active:
			v.held.Set(i)
		default:
			v.visible.Set(i)
			v.shown++
		}
	}
	v.sheet = sync.OnceValue(func() *show.Map {
		return show.MakeMap(v.entries, document(r.snapshot), r.count)
	})
	v.cards = sync.OnceValue(func() *card.Set {
		list := make([]*capability.Capability, n)
		for i, e := range r.snapshot.Entries() {
			if v.visible.Has(i) {
				list[i] = e.Capability
			}
		}
		return card.Compile(list)
	})
	return v
}

// Snapshot gives the snapshot that the view narrows.
func (v *View) Snapshot() *catalog.Snapshot { return v.snapshot }

// Len counts what is visible.
func (v *View) Len() int { return v.shown }

// Sees reports whether an entry of the snapshot is visible.
func (v *View) Sees(ordinal int) bool { return v.visible.Has(ordinal) }

func (v *View) entries(yield func(*catalog.Entry) bool) {
	for i, e := range v.snapshot.Entries() {
		if v.visible.Has(i) && !yield(e) {
			return
		}
	}
}

// ordinalOf finds a visible entry by its id.
func (v *View) ordinalOf(id capability.ID) (int, bool) {
	i, ok := v.snapshot.Ordinal(id)
	return i, ok && v.visible.Has(i)
}

// searchable gives the index of the view. It is made anew when the snapshot's
// index gained vectors.
func (v *View) searchable() *searchable {
	indexed := v.snapshot.Index()
	if s := v.search.Load(); s != nil && s.indexed == indexed {
		return s
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.search.Load(); s != nil && s.indexed == indexed {
		return s
	}
	part := index.Part{Segment: indexed.Segment}
	model, vectors := indexed.Segment.Vectors()
	if v.shown < v.snapshot.Len() {
		part.Visible, vectors = index.NewBits(indexed.Segment.Len()), 0
		for i := range v.snapshot.Entries() {
			if !v.visible.Has(i) {
				continue
			}
			part.Visible.Set(indexed.Slot(i))
			if indexed.Segment.HasVector(model, indexed.Slot(i)) {
				vectors++
			}
		}
	}
	s := &searchable{indexed: indexed, view: index.NewView(part), vectors: vectors}
	v.search.Store(s)
	return s
}

// document is the map that somebody wrote, where its place is trusted that far.
func document(s *catalog.Snapshot) string {
	d, ok := s.Document(capability.Map)
	if !ok || d.Trust < capability.TrustUser {
		return ""
	}
	return d.Text
}
