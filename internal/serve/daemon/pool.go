package daemon

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// An Opened is what a [Pool] keeps open for one workspace.
type Opened interface {
	comparable
	Watch(context.Context) error // keeps it up to date until the context ends
	Close() error
}

// A Pool keeps something open for clients that work in different folders: one T
// for each folder and set of flags. Those with equal flags can share what the
// first of them, their owner, has started. Its methods are safe for concurrent
// use.
type Pool[T Opened] struct {
	ctx  context.Context
	idle time.Duration
	warn func(of T, message string, err error)

	mu         sync.Mutex
	closed     bool
	workspaces map[Key]*workspace[T]
	work       sync.WaitGroup
}

// A Key names a workspace.
type Key struct{ Folder, Flags string }

// A workspace is one T and the number of its users.
type workspace[T Opened] struct {
	ready chan struct{} // closed when value or err is set
	value T
	err   error
	stop  func() // ends the watching, and waits for that
	users int
	owner bool        // others share what it started, so it stays open
	leave *time.Timer // closes it, while it has no users
}

// NewPool returns a Pool that watches what it opens until ctx ends. What had no
// users for the time idle is closed; zero keeps everything. warn is told what
// fails while no caller waits for it.
func NewPool[T Opened](ctx context.Context, idle time.Duration, warn func(of T, message string, err error)) *Pool[T] {
	return &Pool[T]{ctx: ctx, idle: idle, warn: warn, workspaces: map[Key]*workspace[T]{}}
}

// Enter returns what is open for a key. For the first user it calls open, with
// the owner for these flags, or the zero T if the new one is the owner or the
// owner could not be opened. The caller must call done when it is finished.
func (p *Pool[T]) Enter(ctx context.Context, key Key, open func(ctx context.Context, owner T) (T, error)) (value T, done func(), err error) {
	var none T
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return none, nil, errors.New("the program is closing; ask again in a moment")
	}
	w, there := p.workspaces[key]
	if !there {
		w = &workspace[T]{ready: make(chan struct{})}
		p.workspaces[key] = w
	}
	w.users++
	if w.leave != nil {
		w.leave.Stop()
		w.leave = nil
	}
	p.mu.Unlock()
	if !there {
		p.work.Go(func() { p.open(key, w, open) })
	}
	select {
	case <-w.ready:
	case <-ctx.Done():
		p.exit(key, w)
		return none, nil, context.Cause(ctx)
	}
	if w.err != nil {
		p.exit(key, w)
		return none, nil, w.err
	}
	return w.value, sync.OnceFunc(func() { p.exit(key, w) }), nil
}

// open opens a workspace. The first with its flags is the owner.
func (p *Pool[T]) open(key Key, w *workspace[T], open func(context.Context, T) (T, error)) {
	defer func() {
		close(w.ready)
		p.mu.Lock()
		defer p.mu.Unlock()
		if w.users == 0 { // its users have given up
			p.unused(key, w)
		}
	}()
	var shared T
	if owner := p.owner(w, key.Flags); owner != nil {
		<-owner.ready
		shared = owner.value
	}
	if w.value, w.err = open(p.ctx, shared); w.err != nil {
		return
	}
	ctx, cancel := context.WithCancel(p.ctx)
	watched := make(chan struct{})
	w.stop = func() { cancel(); <-watched }
	p.work.Go(func() {
		defer close(watched)
		if err := w.value.Watch(ctx); err != nil {
			p.warn(w.value, "watching the catalog ended", err)
		}
	})
}

// owner returns the owner for flags, or makes w the owner and returns nil.
func (p *Pool[T]) owner(w *workspace[T], flags string) *workspace[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, other := range p.workspaces {
		if other.owner && key.Flags == flags {
			return other
		}
	}
	w.owner = true
	return nil
}

// exit is called once for each user that leaves.
func (p *Pool[T]) exit(key Key, w *workspace[T]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.users--
	select {
	case <-w.ready:
		if w.users == 0 {
			p.unused(key, w)
		}
	default: // it is still being opened; open looks at it then
	}
}

// unused decides what happens to a workspace without users. p.mu is held.
func (p *Pool[T]) unused(key Key, w *workspace[T]) {
	switch {
	case p.closed:
	case w.err != nil: // the next user tries again
		delete(p.workspaces, key)
	case w.owner || p.idle <= 0:
	default:
		w.leave = time.AfterFunc(p.idle, func() { p.remove(key, w) })
	}
}

func (p *Pool[T]) remove(key Key, w *workspace[T]) {
	p.mu.Lock()
	if w.users > 0 || p.workspaces[key] != w || p.closed {
		p.mu.Unlock()
		return
	}
	delete(p.workspaces, key)
	p.mu.Unlock()
	w.stop()
	if err := w.value.Close(); err != nil {
		p.warn(w.value, "closing a workspace ended badly", err)
	}
}

// Close closes everything, the owners last. There may be no users any more.
func (p *Pool[T]) Close() error {
	p.mu.Lock()
	p.closed = true
	var all []*workspace[T]
	for _, w := range p.workspaces {
		if w.leave != nil {
			w.leave.Stop()
		}
		all = append(all, w)
	}
	p.mu.Unlock()
	for _, w := range all {
		<-w.ready
		if w.stop != nil {
			w.stop()
		}
	}
	p.work.Wait()
	slices.SortFunc(all, func(a, b *workspace[T]) int {
		switch {
		case a.owner == b.owner:
			return 0
		case a.owner:
			return 1
		}
		return -1
	})
	var errs []error
	var none T
	for _, w := range all {
		if w.value != none {
			errs = append(errs, w.value.Close())
		}
	}
	return errors.Join(errs...)
}
