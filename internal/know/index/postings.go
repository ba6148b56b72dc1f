package index

import "slices"

const pageSize = 64

// pages are the postings of all terms, by the number of the term. They are
// never changed; a changed copy shares every page that stayed.
type pages struct {
	list  []*page
	Says  []float32 // by term: how much it says, whatever the catalog
	Count int       // terms
}

type page [pageSize][]posting

func (p pages) Of(term uint32) []posting { return p.list[term/pageSize][term%pageSize] }

// A pageWriter is a changed copy of pages.
type pageWriter struct {
	pages
	fresh bool            // nothing is shared
	mine  map[uint32]bool // pages that are ours
	lists map[uint32]bool // lists that are ours
}

func (p pages) changed() *pageWriter {
	return &pageWriter{
		pages: pages{slices.Clone(p.list), slices.Clip(p.Says), p.Count}, fresh: p.Count == 0,
		mine: map[uint32]bool{}, lists: map[uint32]bool{},
	}
}

// grow makes room for one more term and returns its number.
func (w *pageWriter) grow(says float32) uint32 {
	if w.Count%pageSize == 0 {
		w.mine[uint32(len(w.list))] = true
		w.list = append(w.list, new(page))
	}
	w.Says = append(w.Says, says)
	w.Count++
	return uint32(w.Count - 1)
}

// at returns the list of a term, to be changed.
func (w *pageWriter) at(term uint32) *[]posting {
	number := term / pageSize
	if !w.fresh {
		if !w.mine[number] {
			copied := *w.list[number]
			w.list[number], w.mine[number] = &copied, true
		}
		if !w.lists[term] {
			list := &w.list[number][term%pageSize]
			*list, w.lists[term] = slices.Concat(*list, nil), true
		}
	}
	return &w.list[number][term%pageSize]
}

// fill writes the lists of a fresh writer out of the docs.
func (w *writer) fill() {
	p := w.postings
	sizes := make([]int32, p.Count)
	total := 0
	for i := range w.next.Docs {
		total += len(w.next.Docs[i].Terms)
		for _, t := range w.next.Docs[i].Terms {
			sizes[t]++
		}
	}
	all := make([]posting, total)
	for t, size := range sizes {
		p.list[t/pageSize][t%pageSize], all = all[:0:size], all[size:]
	}
	for slot := range w.next.Docs {
		d := &w.next.Docs[slot]
		for i, t := range d.Terms {
			list := &p.list[t/pageSize][t%pageSize]
			*list = append(*list, posting{int32(slot), impact(d.Counts[i], &d.Norm)})
		}
	}
}

// done returns the changed pages.
func (w *pageWriter) done() pages { return w.pages }
