package index

import "math/bits"

// Bits is a set of slots. Nil is the empty set. A set that is shared is not
// changed.
type Bits []uint64

// NewBits makes an empty set with room for the slots below n.
func NewBits(n int) Bits { return make(Bits, (n+63)/64) }

// Has reports whether i is in the set.
func (b Bits) Has(i int) bool { return i>>6 < len(b) && b[i>>6]&(1<<(i&63)) != 0 }

// Set puts i into the set, which must have room for it.
func (b Bits) Set(i int) { b[i>>6] |= 1 << (i & 63) }

// Count returns the number of slots in the set.
func (b Bits) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}
