package executors

import (
	"context"
	"sync"

	"ken/capability"
	"ken/internal/know/catalog"
)

// A Lookup finds capabilities by id for executors. It keeps their details for as
// long as the snapshot of the catalog is the same, because a call asks for them
// more than once.
type Lookup struct {
	Catalog *catalog.Catalog
	Builtin *catalog.Catalog // asked for what Catalog does not have

	mu      sync.Mutex
	of      *catalog.Snapshot // of Catalog; that the details belong to
	details map[capability.ID]capability.Detail
}

// Find returns a capability and its detail.
func (l *Lookup) Find(ctx context.Context, id capability.ID) (*capability.Capability, capability.Detail, error) {
	from, s := l.Catalog, l.Catalog.Snapshot()
	e, ok := s.Get(id)
	if !ok {
		from = l.Builtin
		if e, ok = l.Builtin.Snapshot().Get(id); !ok {
			return nil, capability.Detail{}, &capability.Error{Kind: capability.NotFound, Op: "call", Target: string(id)}
		}
	}
	l.mu.Lock()
	if l.of != s {
		l.of, l.details = s, map[capability.ID]capability.Detail{}
	}
	d, ok := l.details[id]
	l.mu.Unlock()
	if ok {
		return e.Capability, d, nil
	}
	d, err := from.Inspect(ctx, e)
	if err == nil {
		l.mu.Lock()
		if l.of == s {
			l.details[id] = d
		}
		l.mu.Unlock()
	}
	return e.Capability, d, err
}
