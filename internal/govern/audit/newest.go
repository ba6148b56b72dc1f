package audit

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/jsonappend"
)

// A Search chooses records as its Filter does, and of those the ones that have
// all else that is set.
type Search struct {
	Filter
	Target   string
	User     string
	Status   Status
	Level    string
	Decision string

	// Text is in the command line, the target or the error. ASCII letters count
	// the same in both cases.
	Text string

	// Of, when not nil, leaves what is not this principal's own.
	Of *capability.Principal

	// Mentions, when not nil, are texts of which one stands in the line as it is
	// stored. They are for ids, whose spelling is one.
	Mentions []string

	// Events, when not nil, are names of which one is the event's, as in
	// [Filter.Event].
	Events []string

	// Chains is for the records of chains themselves too, [Opened] and [Retired].
	Chains bool
}

// A Page is a piece of what [Newest] finds, the newest first.
type Page struct {
	Entries  []Entry
	Problems []error // each about one line or file, which hides only itself

	// Older is where the next page begins; empty: there is no more. A next page
	// may turn out empty.
	Older Cursor
}

// A Cursor is a place in the order of [Newest]. It stays good when records come
// or chains go. It is told to clients, and nothing is believed of it.
type Cursor string

// A mark is a Cursor taken apart. The order is that of [Query]: by time, then
// by chain, then by number.
type mark struct {
	at    string
	chain string
	seq   int64
}

func (s mark) cursor() Cursor {
	return Cursor(s.at + "/" + string(makeID(s.chain, s.seq)))
}

func (c Cursor) mark() (mark, error) {
	if c == "" {
		return mark{}, nil
	}
	at, id, _ := strings.Cut(string(c), "/")
	chain, digits, _ := strings.Cut(id, ":")
	seq, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || len(at) != len(timeLayout) || !chainForm().MatchString(chain) {
		return mark{}, &capability.Error{
			Kind: capability.Invalid, Op: "read audit log", Err: errors.New("invalid cursor"), Fix: "use the cursor of the previous page, or none",
		}
	}
	return mark{at, chain, seq}, nil
}

const (
	lookEvery = 256  // lines between two looks at the context
	lookAhead = 5000 // lines after a full page, to see whether there is another
)

// Newest returns the newest records that s chooses among those before a place, at
// most limit of them: what [Query] gives, from its end. It reads chains from
// their ends and no further than it needs, so that the first page of a long
// trail costs what the first page of a short one does.
//
// When ctx ends it gives what it has by then, which may be nothing, and where to
// go on: a search for what is rare in a long trail can so be made in steps.
func Newest(ctx context.Context, dir string, s Search, before Cursor, limit int) (Page, error) {
	from, err := before.mark()
	if err != nil {
		return Page{}, err
	}
	chains, _, err := listChains(dir)
	if err != nil {
		return Page{}, err
	}
	r := &reverse{choose: newChooser(s), before: from, limit: max(1, limit)}
	bound := r.choose.until
	if from.at != "" && (bound == "" || from.at < bound) {
		bound = from.at
	}
	for _, c := range chains {
		if b := newBackward(dir, c, bound); b != nil && b.at >= r.choose.since {
			r.wait = append(r.wait, b)
		}
	}
	slices.SortFunc(r.wait, func(a, b *backward) int { return b.compare(a) })
	r.run(ctx)
	return r.page, nil
}

// A reverse is one reading of all chains from their ends.
type reverse struct {
	choose *chooser
	before mark
	limit  int
	wait   []*backward // by their last times, the newest first
	open   byAge
	page   Page
	last   mark // of the last record of the page
	ahead  int  // lines since the page was full
}

func (r *reverse) run(ctx context.Context) {
	defer func() {
		for _, b := range r.open {
			b.close()
		}
	}()
	late := false
	for n := 1; len(r.wait) > 0 || len(r.open) > 0; {
		if len(r.wait) > 0 && (len(r.open) == 0 || r.wait[0].compare(r.open[0]) >= 0) {
			b := r.wait[0]
			r.wait = r.wait[1:]
			if b.next() {
				heap.Push(&r.open, b)
			}
			continue
		}
		b := r.open[0]
		if b.at < r.choose.since {
			return // so are all others
		}
		if r.before.at == "" || b.isBefore(r.before) {
			if !r.look(b) {
				r.page.Older = r.last.cursor()
				return
			}
			if n++; n%lookEvery == 0 {
				late = ctx.Err() != nil
			}
			if late && r.pause(b) {
				return
			}
		}
		if b.next() {
			heap.Fix(&r.open, 0)
		} else {
			heap.Pop(&r.open)
		}
	}
}

// look judges the line at hand. It gives false when the page is full and there
// is, or may be, another.
func (r *reverse) look(b *backward) bool {
	full := len(r.page.Entries) == r.limit
	if b.err != nil {
		if !full { // it is told with the next page
			r.page.Problems = append(r.page.Problems, b.err)
		}
		return true
	}
	e, ok, err := r.choose.entry(b)
	if full {
		r.ahead++
		return !ok && r.ahead <= lookAhead
	}
	if err != nil {
		r.page.Problems = append(r.page.Problems, err)
	} else if ok {
		r.page.Entries = append(r.page.Entries, e)
		r.last = mark{b.at, b.files.name, e.Record.Seq}
	}
	return true
}

// pause lets the next page begin after the line at hand. It gives false where
// that line does not tell where it is.
func (r *reverse) pause(b *backward) bool {
	seq, _, ok := links(b.line)
	switch {
	case len(r.page.Entries) == r.limit:
		r.page.Older = r.last.cursor()
		return true
	case ok:
		r.page.Older = mark{b.at, b.files.name, seq}.cursor()
	}
	return ok
}

type byAge []*backward

func (h byAge) Len() int           { return len(h) }
func (h byAge) Less(i, j int) bool { return h[i].compare(h[j]) > 0 }
func (h byAge) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *byAge) Push(x any)        { *h = append(*h, x.(*backward)) }
func (h *byAge) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// A chooser is a Search made ready.
type chooser struct {
	*matcher
	s        Search
	fold     []byte   // Text as the encoder writes it
	mentions [][]byte // one must be there
}

func newChooser(s Search) *chooser {
	c := &chooser{matcher: newMatcher(s.Filter), s: s}
	need := func(name, value string) {
		if value == "" {
			return
		}
		e := encoder{b: []byte(timestampHole)}
		e.string(name, value)
		c.needles = append(c.needles, e.b[len(timestampHole):])
	}
	need("target", s.Target)
	need("user_id", s.User)
	need("status", string(s.Status))
	need("level", s.Level)
	need("decision", s.Decision)
	if s.Of != nil {
		need("user_id", s.Of.ID)
		need("tenant", s.Of.Tenant)
	}
	if s.Text != "" {
		quoted := jsonappend.ASCII(nil, s.Text)
		c.fold = quoted[1 : len(quoted)-1]
	}
	for _, m := range s.Mentions {
		c.mentions = append(c.mentions, []byte(m))
	}
	return c
}

// entry returns the record of the line at hand where it is chosen.
func (c *chooser) entry(b *backward) (Entry, bool, error) {
	var past bool
	if !c.line(b.line, &past) || !holdsFold(b.line, c.fold) {
		return Entry{}, false, nil
	}
	if c.s.Mentions != nil && !slices.ContainsFunc(c.mentions, func(m []byte) bool { return bytes.Contains(b.line, m) }) {
		return Entry{}, false, nil
	}
	r, err := decode(b.line)
	if err != nil {
		return Entry{}, false, fmt.Errorf("%s: byte %d: %w; run audit verify", b.path, b.offset, err)
	}
	if !c.record(&r) || !c.more(&r) {
		return Entry{}, false, nil
	}
	return Entry{
		ID: makeID(b.files.name, r.Seq), File: b.path, Offset: b.offset,
		Line: bytes.Clone(b.line), Record: r, at: b.at,
	}, true, nil
}

// more judges by what a Filter does not have.
func (c *chooser) more(r *Record) bool {
	s := &c.s
	same := func(want, have string) bool { return want == "" || want == have }
	if !same(s.Target, r.Target) || !same(s.User, r.UserID) || !same(string(s.Status), string(r.Status)) ||
		!same(s.Level, r.Level) || !same(s.Decision, r.Decision) {
		return false
	}
	if s.Of != nil && !r.IsOf(*s.Of) || !s.Chains && (r.Event == Opened || r.Event == Retired) {
		return false
	}
	if s.Events != nil && !slices.ContainsFunc(s.Events, func(name string) bool { return slices.Contains(Events(name), r.Event) }) {
		return false
	}
	if s.Text == "" {
		return true
	}
	text := []byte(s.Text)
	fault := ""
	if r.Error != nil {
		fault = *r.Error
	}
	return holdsFold([]byte(r.CommandLine), text) || holdsFold([]byte(r.Target), text) || holdsFold([]byte(fault), text)
}

// IsOf reports whether r is a principal's own: of the same tenant and user.
// There are none.
func (r *Record) IsOf(p capability.Principal) bool {
	return p.ID != "" && r.UserID == p.ID && r.Tenant == p.Tenant
}

// holdsFold reports whether b has a text in it, whatever the case of its ASCII
// letters.
func holdsFold(b, text []byte) bool {
	if len(text) == 0 {
		return true
	}
	first := small(text[0])
	for len(b) >= len(text) {
		if small(b[0]) == first && foldsTo(b[:len(text)], text) {
			return true
		}
		b = b[1:]
	}
	return false
}

func foldsTo(b, text []byte) bool {
	for i := range text {
		if small(b[i]) != small(text[i]) {
			return false
		}
	}
	return true
}

func small(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// Find returns one record by its id. It reads little of its chain. What is not
// there is [capability.NotFound].
func Find(dir string, id ID) (Entry, error) {
	none := &capability.Error{Kind: capability.NotFound, Op: "read audit record", Target: fmt.Sprintf("%.96q", string(id)), Err: errors.New("record not found")}
	chain, seq, err := id.split()
	if err != nil {
		return Entry{}, none
	}
	chains, _, err := listChains(dir)
	if err != nil {
		return Entry{}, err
	}
	i, ok := slices.BinarySearchFunc(chains, chain, func(c chainFiles, name string) int { return cmp.Compare(c.name, name) })
	if !ok {
		return Entry{}, none
	}
	for _, n := range slices.Backward(chains[i].segments) {
		e, err := findIn(filepath.Join(dir, segmentName(chain, n)), chain, seq)
		if err != nil || e.ID != "" {
			return e, err
		}
	}
	return Entry{}, none
}

// Compare orders entries as [Query] does.
func (e Entry) Compare(o Entry) int {
	chain, seq, _ := e.ID.split() // made from them
	other, number, _ := o.ID.split()
	return cmp.Or(cmp.Compare(e.at, o.at), cmp.Compare(chain, other), cmp.Compare(seq, number))
}
