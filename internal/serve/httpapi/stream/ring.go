package stream

import (
	"slices"
	"sort"
)

const (
	itemBytes  = 192      // of an item besides its texts, about
	mostRun    = 16 << 10 // of text in one run
	foldAt     = 32       // fragments that stand alone, at most
	pieceBytes = 4        // of an end in a run
)

// A ring has the newest events of a session, in order. The fragments of an
// answer are many and small: but for the newest they are joined into runs, which
// know where each fragment ended, so that a client that has seen some of them gets
// exactly the rest.
//
// What it gives out is never changed later.
type ring struct {
	items []item
	last  int64 // N of the newest event
	lost  int64 // N of the newest event that is no longer here
	bytes int
	most  int
	loose int // fragments of one kind at the end that are in no run
}

// An item is an event, or a run of fragments.
type item struct {
	last  int64 // N of it, or of its newest fragment
	frame Frame
	part  fragment // where the event is one
	run   *run
}

// A fragment is a piece of an answer, or of a thought.
type fragment struct {
	kind kind
	text string
}

type kind byte

const (
	whole   kind = iota // no fragment
	text                // of the answer
	thought             // of what the model thinks
)

type run struct {
	kind  kind
	first int64
	text  []byte
	ends  []int32 // where each fragment ends
}

func newRing(last int64, most int) ring { return ring{last: last, lost: last, most: most} }

func (i *item) size() int {
	if i.run != nil {
		return itemBytes + cap(i.run.text) + pieceBytes*cap(i.run.ends)
	}
	return itemBytes + len(i.frame.Data) + len(i.part.text)
}

// add takes the next event in.
func (r *ring) add(f Frame, part fragment) {
	r.last++
	if part.kind == whole || len(part.text) > mostRun/4 {
		part = fragment{}
	}
	if r.loose > 0 && (r.loose >= foldAt || part.kind != r.items[len(r.items)-1].part.kind) {
		r.fold()
	}
	r.push(item{last: r.last, frame: f, part: part})
	if part.kind != whole {
		r.loose++
	}
	for r.bytes > r.most {
		r.drop()
	}
}

func (r *ring) push(i item) {
	r.items = append(r.items, i)
	r.bytes += i.size()
}

// drop lets go of the oldest.
func (r *ring) drop() {
	r.bytes -= r.items[0].size()
	r.lost = r.items[0].last
	r.items[0] = item{} // the array outlives it
	r.items = r.items[1:]
	r.loose = min(r.loose, len(r.items))
}

// fold joins the fragments at the end into runs.
func (r *ring) fold() {
	loose := slices.Clone(r.items[len(r.items)-r.loose:])
	for i := range loose {
		r.bytes -= loose[i].size()
	}
	clear(r.items[len(r.items)-r.loose:])
	r.items = r.items[:len(r.items)-r.loose]
	r.loose = 0
	for _, i := range loose {
		to := r.openRun(i)
		r.bytes -= to.size()
		to.run.text = append(to.run.text, i.part.text...) // beyond what was given out
		to.run.ends = append(to.run.ends, int32(len(to.run.text)))
		to.last = i.last
		r.bytes += to.size()
	}
}

// openRun returns the run to which a fragment belongs.
func (r *ring) openRun(i item) *item {
	if n := len(r.items); n > 0 {
		if last := &r.items[n-1]; last.run != nil && last.run.kind == i.part.kind && len(last.run.text)+len(i.part.text) <= mostRun {
			return last
		}
	}
	r.push(item{last: i.last, run: &run{kind: i.part.kind, first: i.last}})
	return &r.items[len(r.items)-1]
}

// A piece is what a follower gets: an event, or the rest of a run.
type piece struct {
	last  int64
	frame Frame
	kind  kind
	text  []byte
}

// read returns what comes after a cursor, as much as fits into out. It is lost
// where some of it is no longer here.
func (r *ring) read(cursor int64, out []piece) (n int, lost bool) {
	if cursor < r.lost || cursor > r.last {
		return 0, true
	}
	at := sort.Search(len(r.items), func(i int) bool { return r.items[i].last > cursor })
	for ; at < len(r.items) && n < len(out); at++ {
		out[n] = r.items[at].after(cursor)
		n++
	}
	return n, false
}

// after is what of an item comes after a cursor.
func (i *item) after(cursor int64) piece {
	if i.run == nil {
		return piece{last: i.last, frame: i.frame}
	}
	from := int32(0)
	if seen := cursor - i.run.first; seen >= 0 {
		from = i.run.ends[seen]
	}
	to := len(i.run.text)
	return piece{last: i.last, kind: i.run.kind, text: i.run.text[from:to:to]}
}
