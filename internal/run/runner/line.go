package runner

import "slices"

// A line holds the waiting calls as a tree: principals, who calls for them (the
// person, or one of their agents), sessions, and the extensions that these call. The children of a line take turns. A leaf
// has a queue instead. The zero line is the root of an empty tree.
type line struct {
	key     string
	parent  *line
	order   []*line // children with waiting calls, in the order of their turns
	by      map[string]*line
	waiting int // calls waiting here and below

	loads [kinds]*load // of a leaf
	queue []*waiter    // of a leaf, the oldest first
}

// kid returns the child with a name, and creates it as the last in turn if it
// is new. A call must be added to a new child.
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

// child returns the child with a name, or nil.
func (n *line) child(key string) *line {
	if n == nil {
		return nil
	}
	return n.by[key]
}

// of returns how many calls wait here and below, in total or of one extension.
func (n *line) of(extension string) int {
	switch {
	case n == nil:
		return 0
	case extension == "":
		return n.waiting
	case n.loads[byExtension] != nil:
		if n.loads[byExtension].name == extension {
			return n.waiting
		}
		return 0
	}
	sum := 0
	for _, k := range n.order {
		sum += k.of(extension)
	}
	return sum
}

// leaf returns a leaf of a line in which calls wait. All leaves of a principal have its
// loads.
func (n *line) leaf() *line {
	for len(n.order) > 0 {
		n = n.order[0]
	}
	return n
}

// all returns the waiting calls of one load.
func (n *line) all(l *load) (out []*waiter) {
	if n.loads[l.kind] == l {
		return slices.Clone(n.queue)
	}
	for _, k := range n.order {
		out = append(out, k.all(l)...)
	}
	return out
}

// add appends a waiter to a leaf.
func (n *line) add(w *waiter) {
	n.queue = append(n.queue, w)
	for _, l := range n.loads {
		l.waiting++
	}
	for at := n; at != nil; at = at.parent {
		at.waiting++
	}
}

// remove removes a waiter from a leaf, and lines that become empty from the
// tree.
func (n *line) remove(w *waiter) {
	i := slices.Index(n.queue, w)
	n.queue = slices.Delete(n.queue, i, i+1)
	for _, l := range n.loads {
		l.waiting--
	}
	for at := n; at != nil; at = at.parent {
		at.waiting--
		if at.waiting == 0 && at.parent != nil {
			delete(at.parent.by, at.key)
			at.parent.order = slices.DeleteFunc(at.parent.order, func(k *line) bool { return k == at })
		}
	}
}

// next removes and returns the waiter whose turn it is among those whose
// loads have room, or nil. Each line on the path to
// it moves to the end of its parent's order.
func (n *line) next(room func(*[kinds]*load) bool) *waiter {
	if n.queue != nil {
		if !room(&n.loads) {
			return nil
		}
		w := n.queue[0]
		n.remove(w)
		return w
	}
	for _, k := range n.order {
		w := k.next(room)
		if w == nil {
			continue
		}
		if i := slices.Index(n.order, k); i >= 0 { // calls still wait there
			n.order = append(slices.Delete(n.order, i, i+1), k)
		}
		return w
	}
	return nil
}
