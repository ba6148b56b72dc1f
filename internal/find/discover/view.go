package discover

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"ken/capability"
	"ken/internal/find/card"
	"ken/internal/find/graph"
	"ken/internal/find/ranking"
	"ken/internal/find/show"
	"ken/internal/know/catalog"
	"ken/internal/know/index"
	"ken/internal/tokenizer"
)

// ready is what finding needs of one snapshot, for every viewer. It is made once.
type ready struct {
	snapshot *catalog.Snapshot
	hasCards func() int                   // entries of kind card
	byName   func() map[string][]int      // ordinals
	briefs   []atomic.Pointer[show.Brief] // by ordinal; made when first shown
	count    tokenizer.Counter
}

func newReady(s *catalog.Snapshot, count tokenizer.Counter) *ready {
	return &ready{
		snapshot: s, count: count, briefs: make([]atomic.Pointer[show.Brief], s.Len()),
		hasCards: sync.OnceValue(func() int {
			n := 0
			for e := range s.All() {
				if e.Kind == capability.KindCard {
					n++
				}
			}
			return n
		}),
		byName: sync.OnceValue(func() map[string][]int {
			names := make(map[string][]int, s.Len())
			for i, e := range s.Entries() {
				names[e.Name] = append(names[e.Name], i)
			}
			return names
		}),
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
	sheets  sheets
	graph   func() *graph.Graph
	cards   func() *card.Set // how much a keyword says depends on which cards have it, so hidden ones are left out

	mu     sync.Mutex
	search atomic.Pointer[searchable]
	kept   sync.Map // see Keep
}

// searchable is the search index as this view sees it.
type searchable struct {
	indexed *ranking.Index
	view    *ranking.View
	vectors int // how many visible entries have one
}

// hidden stands in the place of what a view does not see.
var hidden = &catalog.Entry{Capability: &capability.Capability{}, State: catalog.Shadowed}

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
	// Names, groups and companions are judged among what is visible: what is
	// hidden must not be felt.
	v.graph = sync.OnceValue(func() *graph.Graph {
		entries := slices.Clone(r.snapshot.Entries())
		for i := range entries {
			if !v.visible.Has(i) {
				entries[i] = hidden
			}
		}
		return graph.Build(entries, r.snapshot.Presets())
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

// CardProblems returns the problems with the triggers of visible entries.
func (v *View) CardProblems() []capability.Problem { return v.cards().Problems() }

// Snapshot returns the snapshot that the view narrows.
func (v *View) Snapshot() *catalog.Snapshot { return v.snapshot }

// Len counts what is visible.
func (v *View) Len() int { return v.shown }

// Sees reports whether an entry of the snapshot is visible.
func (v *View) Sees(ordinal int) bool { return v.visible.Has(ordinal) }

// Knows reports whether an entry of the snapshot is visible or would be but
// for its state: that it is in quarantine is no secret.
func (v *View) Knows(ordinal int) bool { return v.visible.Has(ordinal) || v.held.Has(ordinal) }

// sheets are the maps of a view, by what the configuration leaves out of them.
type sheets struct {
	mu   sync.Mutex
	made map[string]*show.Map
}

const mostSheets = 64 // configurations come from a file: there are few

// sheet returns the map without the entries of some ordinals, which are sorted.
func (v *View) sheet(without []int) *show.Map {
	key := fmt.Sprint(without)
	if len(without) == 0 {
		key = ""
	}
	v.sheets.mu.Lock()
	defer v.sheets.mu.Unlock()
	if m, ok := v.sheets.made[key]; ok {
		return m
	}
	if v.sheets.made == nil || len(v.sheets.made) >= mostSheets {
		v.sheets.made = map[string]*show.Map{}
	}
	m := show.MakeMap(v.but(without), document(v.snapshot), v.count)
	v.sheets.made[key] = m
	return m
}

// outline returns everything about the catalog as a whole: the document and the
// richest map.
func (v *View) outline(without []int) string {
	m := v.sheet(without)
	text, tokens := m.Document()
	fitted := m.Fit(listTokens - tokens).Text
	if text == "" || fitted == "" {
		return text + fitted
	}
	return text + "\n\n" + fitted
}

// Whole returns everything that is visible and not excluded: the entries that
// are tools, sorted by id, and a list of the others. It returns false if there
// are more than most of either.
func (v *View) Whole(exclude []capability.ID, tool func(*catalog.Entry) bool, most int) (tools []*catalog.Entry, others show.List, ok bool) {
	var rest []*catalog.Entry
	for e := range v.but(ordinals(v, exclude)) {
		if tool(e) {
			tools = append(tools, e)
		} else {
			rest = append(rest, e)
		}
		if max(len(tools), len(rest)) > most {
			return nil, show.List{}, false
		}
	}
	return tools, show.MakeList(slices.Values(rest), v.count), true
}

// but returns the visible entries except those of some ordinals, which are
// sorted.
func (v *View) but(without []int) iter.Seq[*catalog.Entry] {
	return func(yield func(*catalog.Entry) bool) {
		for i, e := range v.snapshot.Entries() {
			if v.visible.Has(i) && !has(without, i) && !yield(e) {
				return
			}
		}
	}
}

// ordinalOf finds a visible entry by its id.
func (v *View) ordinalOf(id capability.ID) (int, bool) {
	i, ok := v.snapshot.Ordinal(id)
	return i, ok && v.visible.Has(i)
}

// A Relation is how one capability relates to another.
type Relation struct {
	ID     capability.ID  `json:"id"`
	Type   graph.EdgeType `json:"type"`
	Weight float64        `json:"weight"`

	// Needs says, of DEPENDS_ON, that the one asked about needs the other,
	// rather than being needed by it.
	Needs bool `json:"needs,omitempty"`
}

// Related returns what a visible entry relates to among those, the strongest
// first. It works out what is not stored, so it is not for every message.
func (v *View) Related(id capability.ID) []Relation {
	out := []Relation{}
	i, ok := v.ordinalOf(id)
	if !ok {
		return out
	}
	for _, e := range v.graph().Related(i) {
		out = append(out, Relation{v.snapshot.Entries()[e.To].ID, e.Type, e.Weight, e.Outward})
	}
	return out
}

// called returns the visible entries that a configuration or a caller means: the
// one of that id, or else all of that name.
func (v *View) called(id capability.ID) []int {
	if i, ok := v.ordinalOf(id); ok {
		return []int{i}
	}
	var out []int
	for _, i := range v.byName()[string(id)] {
		if v.visible.Has(i) {
			out = append(out, i)
		}
	}
	return out
}

// searchable returns the index of the view. It is made again when the snapshot's
// index gained vectors.
func (v *View) searchable() *searchable {
	indexed := ranking.IndexOf(v.snapshot)
	if s := v.search.Load(); s != nil && s.indexed == indexed {
		return s
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.search.Load(); s != nil && s.indexed == indexed {
		return s
	}
	part := ranking.Part{Segment: indexed.Segment}
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
	s := &searchable{indexed: indexed, view: ranking.NewView(part), vectors: vectors}
	v.search.Store(s)
	return s
}

// document returns the map that was written by hand, if its place is trusted that
// far.
func document(s *catalog.Snapshot) string {
	d, _ := s.Document(capability.Map, capability.TrustUser)
	return d.Text
}
