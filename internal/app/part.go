package app

import (
	"sync"
	"sync/atomic"
)

// A part of the program is made when it is first asked for: listing a catalog
// opens no store. One that could not be made is tried again at the next call.
type part[T any] struct {
	mu    sync.Mutex // held while it is made
	value atomic.Pointer[T]
	build func() (T, error)
}

func (p *part[T]) get() (T, error) {
	if v, made := p.there(); made {
		return v, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if v, made := p.there(); made {
		return v, nil
	}
	v, err := p.build()
	if err == nil {
		p.value.Store(&v)
	}
	return v, err
}

// there returns the part if it was made. It never waits, so that whoever makes the
// part may ask too.
func (p *part[T]) there() (T, bool) {
	if v := p.value.Load(); v != nil {
		return *v, true
	}
	var none T
	return none, false
}
