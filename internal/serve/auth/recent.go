package auth

import (
	"container/list"
	"sync"
)

// A recent keeps the values that were last asked for, by key, and no more than
// most of them. Its methods may be called by many goroutines.
type recent[K comparable, V any] struct {
	most int

	mu    sync.Mutex
	byKey map[K]*list.Element
	order list.List // of *kept[K, V], the last asked for first
}

type kept[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](most int) *recent[K, V] {
	return &recent[K, V]{most: most, byKey: map[K]*list.Element{}}
}

func (r *recent[K, V]) get(key K) (value V, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.byKey[key]
	if !ok {
		return value, false
	}
	r.order.MoveToFront(e)
	return e.Value.(*kept[K, V]).value, true
}

// orMake returns the value of a key, which is made where there is none.
func (r *recent[K, V]) orMake(key K, fresh func() V) V {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.byKey[key]; ok {
		r.order.MoveToFront(e)
		return e.Value.(*kept[K, V]).value
	}
	value := fresh()
	r.add(key, value)
	return value
}

func (r *recent[K, V]) put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.byKey[key]; ok {
		e.Value.(*kept[K, V]).value = value
		r.order.MoveToFront(e)
		return
	}
	r.add(key, value)
}

func (r *recent[K, V]) add(key K, value V) {
	if r.order.Len() >= r.most {
		last := r.order.Back()
		delete(r.byKey, r.order.Remove(last).(*kept[K, V]).key)
	}
	r.byKey[key] = r.order.PushFront(&kept[K, V]{key, value})
}
