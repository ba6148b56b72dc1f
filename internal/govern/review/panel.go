package review

import (
	"context"
	"sync"
	"time"

	"ken/capability"
)

// A Panel answers for one tenant, over a catalog that changes: for code that lists
// and shows, and cannot wait. It may be used by any number of goroutines.
type Panel struct {
	desk   *Desk
	tenant string
	book   func() *Book

	mu      sync.RWMutex
	on      *Switches
	over    *Book // the book when version was last told
	version uint64
}

// patience bounds how long a panel waits for the store; past it everything that
// needs review is off.
const patience = 2 * time.Second

// Panel returns the panel of a tenant. book gives the book of the latest catalog
// and is called often: it should be made once for each snapshot.
func (d *Desk) Panel(tenant string, book func() *Book) *Panel {
	return &Panel{desk: d, tenant: tenant, book: book}
}

// Version asks the store what was said, and gives a number that is another,
// larger one whenever Off may answer something else than before. It costs one
// Get while nothing changed.
func (p *Panel) Version() uint64 {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	on, book := p.desk.Switches(ctx, p.tenant), p.book()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(on)
	if p.version == 0 || p.over != book {
		p.over = book
		p.version++
	}
	return p.version
}

// take keeps what was read, unless it is older than what is there.
func (p *Panel) take(on *Switches) {
	switch {
	case p.on == on:
		return
	case p.on != nil && p.on.err == nil && on.err == nil && on.version < p.on.version:
		return
	case p.on != nil && p.on.err != nil && on.err != nil && p.on.err.Error() == on.err.Error():
		return
	}
	p.on = on
	p.version++
}

// Off is [Switches.Off] as of the last Version or Check.
func (p *Panel) Off(c *capability.Capability) (why, mend string) {
	p.mu.RLock()
	on := p.on
	p.mu.RUnlock()
	if on == nil {
		p.Version()
		return p.Off(c)
	}
	return on.Off(p.book(), c)
}

// Check is [Desk.Check] for the panel's tenant: exact, for a call that is about
// to happen.
func (p *Panel) Check(ctx context.Context, c *capability.Capability) error {
	if _, needed := Owner(c); !needed {
		return nil
	}
	s := p.desk.Switches(ctx, p.tenant)
	if ctx.Err() == nil { // a caller who gave up says nothing about the store
		p.mu.Lock()
		p.take(s)
		p.mu.Unlock()
	}
	return s.refusal(p.book(), c)
}
