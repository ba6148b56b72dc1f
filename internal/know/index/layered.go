package index

import (
	"iter"
	"maps"
)

// A layered map is a large map that is never changed with a small one on top,
// so that a changed copy costs what is small.
type layered[K comparable, V any] struct{ base, top map[K]V }

func (m layered[K, V]) Get(k K) (V, bool) {
	if v, ok := m.top[k]; ok {
		return v, true
	}
	v, ok := m.base[k]
	return v, ok
}

// len counts the keys, those that are in both twice.
func (m layered[K, V]) len() int { return len(m.base) + len(m.top) }

// All returns every key and value, in no order.
func (m layered[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for k, v := range m.top {
			if !yield(k, v) {
				return
			}
		}
		for k, v := range m.base {
			if _, covered := m.top[k]; !covered && !yield(k, v) {
				return
			}
		}
	}
}

// A layer is a layered map while it is being changed.
type layer[K comparable, V any] struct {
	layered[K, V]
	owned bool // top is ours
}

// changed begins a changed copy.
func (m layered[K, V]) changed() *layer[K, V] { return &layer[K, V]{layered: m} }

// done returns the changed map.
func (l *layer[K, V]) done() layered[K, V] {
	if len(l.base) == 0 {
		return layered[K, V]{base: l.top}
	}
	return l.layered
}

// room makes room for so many keys in a map that is still empty.
func (l *layer[K, V]) room(n int) {
	if len(l.base)+len(l.top) == 0 {
		l.top, l.owned = make(map[K]V, n), true
	}
}

func (l *layer[K, V]) set(k K, v V) {
	if !l.owned {
		if len(l.top) > 1024+len(l.base)/8 { // time to make one map of both
			all := make(map[K]V, len(l.base)+len(l.top))
			maps.Copy(all, l.base)
			maps.Copy(all, l.top)
			l.base, l.top = all, nil
		}
		top := make(map[K]V, len(l.top)+16)
		maps.Copy(top, l.top)
		l.top, l.owned = top, true
	}
	l.top[k] = v
}
