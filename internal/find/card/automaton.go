package card

import "slices"

// An automaton finds every occurrence of many strings in one pass over a text
// (Aho and Corasick). Nodes with many ways on have a row of the table; the
// rest, nearly all of them, list theirs, which keeps large sets small.
type automaton struct {
	class [256]uint8 // bytes by class; 0 for those in no pattern
	width int32      // number of classes
	rows  []int32
	nodes []node
	label []byte // of the edges; edge e leads to node e+1
}

type node struct {
	fail  int32 // the longest proper suffix that is a node
	row   int32 // start of its row, or -1
	edge  int32 // its ways on, label[edge:last]
	last  int32
	out   int32 // the pattern that ends here, or -1
	emits int32 // the nearest node on the chain of suffixes, itself first, with an out; or -1
}

// maxListed is how many ways on a node may have without a row.
const maxListed = 3

// newAutomaton takes distinct, non-empty, sorted patterns of valid UTF-8; they
// are reported by their position in the list.
func newAutomaton(patterns []string) automaton {
	var a automaton
	if len(patterns) == 0 {
		return a
	}
	a.width = 1
	for _, p := range patterns {
		for i := range len(p) {
			if a.class[p[i]] == 0 { // valid UTF-8 has fewer than 256 bytes
				a.class[p[i]] = uint8(a.width)
				a.width++
			}
		}
	}
	a.link(a.trie(patterns))
	return a
}

// trie makes the nodes in breadth-first order with their ways on, and returns
// each one's parent.
func (a *automaton) trie(patterns []string) (parent []int32) {
	type span struct{ lo, hi, depth int } // patterns with one prefix
	queue := []span{{0, len(patterns), 0}}
	parent = []int32{0}
	for i := 0; i < len(queue); i++ {
		s := queue[i]
		n := node{row: -1, out: -1, emits: -1, edge: int32(len(a.label))}
		lo := s.lo
		if len(patterns[lo]) == s.depth { // sorted, so the shortest is first
			n.out = int32(lo)
			lo++
		}
		for lo < s.hi {
			b := patterns[lo][s.depth]
			hi := lo + 1
			for hi < s.hi && patterns[hi][s.depth] == b {
				hi++
			}
			a.label = append(a.label, b)
			queue = append(queue, span{lo, hi, s.depth + 1})
			parent = append(parent, int32(i))
			lo = hi
		}
		n.last = int32(len(a.label))
		a.nodes = append(a.nodes, n)
	}
	return parent
}

// link sets suffixes, outputs and rows, in breadth-first order so that what a
// node needs is there already.
func (a *automaton) link(parent []int32) {
	for i := range a.nodes {
		n := &a.nodes[i]
		if i > 0 && parent[i] > 0 {
			n.fail = a.next(a.nodes[parent[i]].fail, a.label[i-1])
		}
		switch {
		case n.out >= 0:
			n.emits = int32(i)
		case i > 0:
			n.emits = a.nodes[n.fail].emits
		}
		if i == 0 || parent[i] == 0 || n.last-n.edge > maxListed {
			a.addRow(int32(i))
		}
	}
	a.rows, a.label = slices.Clip(a.rows), slices.Clip(a.label)
}

func (a *automaton) addRow(i int32) {
	n := &a.nodes[i]
	row := make([]int32, a.width)
	if i > 0 {
		for b := range 256 {
			if c := a.class[b]; c != 0 {
				row[c] = a.next(n.fail, byte(b))
			}
		}
	}
	for e := n.edge; e < n.last; e++ {
		row[a.class[a.label[e]]] = e + 1
	}
	n.row = int32(len(a.rows))
	a.rows = append(a.rows, row...)
}

// next returns the node after one more byte. The root has a row, so it ends.
func (a *automaton) next(at int32, b byte) int32 {
	c := a.class[b]
	if c == 0 {
		return 0
	}
	for {
		n := &a.nodes[at]
		if n.row >= 0 {
			return a.rows[n.row+int32(c)]
		}
		for e := n.edge; e < n.last; e++ {
			if a.label[e] == b {
				return e + 1
			}
		}
		at = n.fail
	}
}
