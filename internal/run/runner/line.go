package runner

import "slices"

// A line is who waits, as a tree: principals, their sessions, and the extensions
// that those call. The kids of a line take turns. A leaf has a queue in their
// place. The zero line is the root of an empty tree.
type line struct {
	key     string
	parent  *line
	order   []*line // kids with somebody waiting, the next to be served first
	by      map[string]*line
	waiting int // here and below

	lane  *lane     // of a leaf
	queue []*waiter // of a leaf, the first first
}

// kid returns the kid of a name, the last in turn where it is new. One to which
// nothing is added must not be made.
func (n *line) kid(key string) *line {
	k := n.by[key]
	if k == nil {
		k = &line{key: key, parent: n}
		if n.by == nil {
			n.by = map[string]*line{}
		}
		n.by[key] = k
		n.order = append(n.order, k)
	}
	return k
}

// add puts a waiter at the end of a leaf.
func (n *line) add(w *waiter) {
	n.queue = append(n.queue, w)
	n.lane.waiting++
	for at := n; at != nil; at = at.parent {
		at.waiting++
	}
}

// remove takes a waiter out of a leaf, and what is empty then out of the tree.
func (n *line) remove(w *waiter) {
	i := slices.Index(n.queue, w)
	n.queue = slices.Delete(n.queue, i, i+1)
	n.lane.waiting--
	for at := n; at != nil; at = at.parent {
		at.waiting--
		if at.waiting == 0 && at.parent != nil {
			delete(at.parent.by, at.key)
			at.parent.order = slices.DeleteFunc(at.parent.order, func(k *line) bool { return k == at })
		}
	}
}

// next takes the waiter out whose turn it is, of those whose extension has fewer
// than most calls running, or returns nil. Each line on the way to it goes to the
// end of its row.
func (n *line) next(most int) *waiter {
	if n.lane != nil {
		if n.lane.running >= most {
			return nil
		}
		w := n.queue[0]
		n.remove(w)
		return w
	}
	for _, k := range n.order {
		w := k.next(most)
		if w == nil {
			continue
		}
		if i := slices.Index(n.order, k); i >= 0 { // somebody waits there still
			n.order = append(slices.Delete(n.order, i, i+1), k)
		}
		return w
	}
	return nil
}
