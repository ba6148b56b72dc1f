package app

import "sync"

// A part of the program is made when it is first asked for: listing a catalog
// opens no store. One that could not be made is tried again at the next call.
type part[T any] struct {
	mu    sync.Mutex
	made  bool
	value T
	build func() (T, error)
}

func (p *part[T]) get() (T, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made {
		return p.value, nil
	}
	v, err := p.build()
	if err == nil {
		p.value, p.made = v, true
	}
	return v, err
}

// there gives the part if it was made.
func (p *part[T]) there() (T, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.value, p.made
}
