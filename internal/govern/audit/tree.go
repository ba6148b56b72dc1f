package audit

import "golang.org/x/mod/sumdb/tlog"

// A frontier is the right edge of a Merkle tree (RFC 6962): the roots of its
// complete subtrees, largest first. It is all that is needed to add a record
// and to give the root, so neither writing nor verifying keeps the tree.
// The zero value is the empty tree.
type frontier struct {
	size  int64
	nodes []tlog.Hash
}

func (f *frontier) add(leaf tlog.Hash) {
	f.nodes = append(f.nodes, leaf)
	for n := f.size; n&1 == 1; n >>= 1 {
		last := len(f.nodes) - 1
		f.nodes[last-1] = tlog.NodeHash(f.nodes[last-1], f.nodes[last])
		f.nodes = f.nodes[:last]
	}
	f.size++
}

// root is the root of the tree so far; of the empty tree, zero.
func (f *frontier) root() tlog.Hash {
	if len(f.nodes) == 0 {
		return tlog.Hash{}
	}
	h := f.nodes[len(f.nodes)-1]
	for i := len(f.nodes) - 2; i >= 0; i-- {
		h = tlog.NodeHash(f.nodes[i], h)
	}
	return h
}

// set makes f a copy of other.
func (f *frontier) set(other *frontier) {
	f.size, f.nodes = other.size, append(f.nodes[:0], other.nodes...)
}
