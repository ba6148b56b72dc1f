// Package lazy makes values when they are first needed.
package lazy

import (
	"sync"
	"sync/atomic"
)

// A Value is made by the first Get that succeeds. A Build that fails is tried
// again at the next Get. Set Build before the first use; a Value must not be
// copied after that. Its methods are safe for concurrent use.
type Value[T any] struct {
	Build func() (T, error)

	mu   sync.Mutex // held while Build runs
	made atomic.Pointer[T]
}

// Get returns the value, and makes it if nobody has.
func (v *Value[T]) Get() (T, error) {
	if made, ok := v.Peek(); ok {
		return made, nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if made, ok := v.Peek(); ok {
		return made, nil
	}
	made, err := v.Build()
	if err == nil {
		v.made.Store(&made)
	}
	return made, err
}

// Peek returns the value and true if it was made. It never waits and never makes
// the value, so Build may call it.
func (v *Value[T]) Peek() (T, bool) {
	if made := v.made.Load(); made != nil {
		return *made, true
	}
	var none T
	return none, false
}
