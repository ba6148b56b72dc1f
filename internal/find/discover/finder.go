package discover

import (
	"context"
	"sync"

	"ken/capability"
	"ken/internal/find/show"
	"ken/internal/know/catalog"
	"ken/internal/tokenizer"
	"ken/llm"
)

// A Source reads what a capability holds beyond its description, as far as a
// model may see it.
type Source interface {
	Detail(ctx context.Context, e *catalog.Entry) (capability.Detail, error)

	// Reference reads the deep reference of the instance.
	Reference() (string, error)
}

// A Finder finds in the snapshots of one catalog. It is safe for any number of
// goroutines.
type Finder struct {
	source  Source
	key     []byte // of the fences around foreign text
	count   tokenizer.Counter
	vectors *messageVectors
	begins  func()
	pages   pageCache
	lines   lines

	mu    sync.Mutex
	ready *ready // of the latest snapshot seen
	views map[string]*View
}

// Parts are what a Finder is made of. Only Source is needed.
type Parts struct {
	Source   Source
	Embedder llm.Embedder      // nil: none but the model of the index
	Local    bool              // Embedder is the second reader inside the program
	Begins   func()            // called when a search begins; nil: not needed
	Key      []byte            // of the fences around foreign text; the same key gives the same bytes
	Count    tokenizer.Counter // nil: exact
}

// NewFinder makes a Finder.
func NewFinder(p Parts) *Finder {
	if p.Count == nil {
		p.Count = tokenizer.Count
	}
	if p.Begins == nil {
		p.Begins = func() {}
	}
	return &Finder{source: p.Source, begins: p.Begins, key: p.Key, count: p.Count, vectors: newMessageVectors(p.Embedder, p.Local), views: map[string]*View{}}
}

// mostViews is how many classes of principals are remembered of a snapshot.
const mostViews = 256

// See narrows a snapshot for a class of principals: visible says which entries
// one of them may see, nil that all of them. Two calls with one snapshot and
// class give the same view, so visible must depend on nothing else. It is called
// for one entry after the other, and not after See has returned.
func (f *Finder) See(s *catalog.Snapshot, class string, visible func(*catalog.Entry) bool) *View {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := f.ready
	switch {
	case r == nil || s.Version() > r.snapshot.Version() || s.Version() == r.snapshot.Version() && s != r.snapshot:
		r = newReady(s, f.count)
		f.ready = r
		clear(f.views)
	case s != r.snapshot: // the caller holds an older one: its view is not kept
		return newView(newReady(s, f.count), visible)
	}
	v, ok := f.views[class]
	if !ok {
		v = newView(r, visible)
		if len(f.views) >= mostViews {
			clear(f.views)
		}
		f.views[class] = v
	}
	return v
}

// page returns the full text of an entry.
func (f *Finder) page(ctx context.Context, e *catalog.Entry) (*show.Page, error) {
	if p := f.pages.get(e); p != nil {
		return p, nil
	}
	d, err := f.source.Detail(ctx, e)
	if err != nil {
		return nil, err
	}
	p := show.MakePage(e, d, f.key, f.count)
	f.pages.put(e, p)
	return p, nil
}

// A pageCache keeps the pages that were shown lately. The zero value is empty.
type pageCache struct {
	mu         sync.Mutex
	young, old map[*catalog.Entry]*show.Page
	size       int // of the young ones, in bytes
}

// mostPages is how much is kept at least, in bytes, and half of how much at
// most: a thousand pages or two.
const mostPages = 3 << 20

func (c *pageCache) get(e *catalog.Entry) *show.Page {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.young[e]; p != nil {
		return p
	}
	p := c.old[e]
	if p != nil {
		c.keep(e, p)
	}
	return p
}

func (c *pageCache) put(e *catalog.Entry, p *show.Page) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(e, p)
}

func (c *pageCache) keep(e *catalog.Entry, p *show.Page) {
	size := 2*len(p.Text()) + 512 // the text, and what is known of its parts
	if c.young == nil || c.size+size > mostPages {
		c.old, c.young, c.size = c.young, map[*catalog.Entry]*show.Page{}, 0
	}
	c.young[e] = p
	c.size += size
}
