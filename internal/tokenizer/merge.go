package tokenizer

import (
	"math"
	"slices"
	"unicode/utf8"
)

// Joining starts from the single bytes of a piece and joins, again and again,
// the two neighbours whose bytes together are the token of the lowest rank, the
// leftmost of them first, until no neighbours are a token together.

const (
	// small is how many parts a piece may have for the next joining to be found
	// by looking at all of them. Most words are small. Beyond that a queue finds
	// it, and beyond medium the queue and the rest are on the heap.
	small, medium = 48, 256
)

// merge counts the tokens of a piece of valid UTF-8 that is not one token.
func merge(piece string) int {
	if len(piece) < small {
		var room [small]int32
		return mergeSmall(piece, parts(piece, room[:0]))
	}
	var room [medium]int32
	at := parts(piece, room[:0])
	switch n := len(at); {
	case n <= small:
		return mergeSmall(piece, at)
	case n <= medium:
		return mergeMedium(piece, at)
	}
	count, _ := mergeLong(piece, at)
	return count
}

// parts appends to at where the parts of piece begin from which joining starts,
// and the end of the piece.
//
// A character of several bytes is one part already if it is a token and no
// token that begins or ends within a character can reach across either of its
// ends. Its bytes are then joined with nothing but each other, and whatever it
// is joined with later has a higher rank than it has itself (TestTables makes
// sure), so doing this first changes nothing and saves most of the joinings.
func parts(piece string, at []int32) []int32 {
	for i := 0; i < len(piece); {
		if piece[i] < utf8.RuneSelf {
			at = append(at, int32(i))
			i++
			continue
		}
		r, width := utf8.DecodeRuneInString(piece[i:])
		end := i + width
		if (i == 0 || !torn(piece[i-1], piece[i])) && (end == len(piece) || !torn(piece[end-1], piece[end])) && isToken(r) {
			at = append(at, int32(i))
			i = end
			continue
		}
		for ; i < end; i++ {
			at = append(at, int32(i))
		}
	}
	return append(at, int32(len(piece)))
}

// together returns the rank of piece[start:end], two parts side by side.
func together(piece string, start, end int32) uint32 {
	if end-start == 2 {
		return pair(piece[start], piece[start+1])
	}
	return rank(piece[start:end])
}

// mergeSmall joins the parts that begin at at, where the last is the end of the
// piece, and counts what is left. There are at most small.
func mergeSmall(piece string, at []int32) int {
	const dead = math.MaxUint32
	var (
		room       [small]uint32
		next, prev [small]uint8
	)
	keys := room[:len(at)]
	last := len(at) - 1
	// The key of a part has the rank of it with the next part above its number,
	// so the least key is the leftmost joining of the lowest rank.
	key := func(i, end uint8) uint32 {
		if r := together(piece, at[i], at[end]); r != none {
			return r<<8 | uint32(i)
		}
		return dead
	}
	for i := range keys {
		next[i], prev[i] = uint8(i+1), uint8(i-1)
		keys[i] = dead
		if i+2 <= last {
			keys[i] = key(uint8(i), uint8(i+2))
		}
	}
	for count := last; ; count-- {
		least := slices.Min(keys)
		if least == dead {
			return count
		}
		i := uint8(least)
		gone := next[i]
		after := next[gone]
		keys[gone], keys[i] = dead, dead
		next[i], prev[after] = after, i
		if int(after) < last {
			keys[i] = key(i, next[after])
		}
		if i > 0 {
			before := prev[i]
			keys[before] = key(before, after)
		}
	}
}

func mergeMedium(piece string, at []int32) int {
	var next, prev [medium]int32
	var ranks [medium]uint32
	var queue [medium]uint64
	c := chain{piece, at, next[:len(at)], prev[:len(at)], ranks[:len(at)]}
	return c.merge(queue[:0])
}

// mergeLong also gives, for each part that is left, beginning with next[0], the
// one that follows it.
func mergeLong(piece string, at []int32) (count int, next []int32) {
	n := len(at)
	c := chain{piece, at, make([]int32, n), make([]int32, n), make([]uint32, n)}
	return c.merge(nil), c.next
}

// A chain does what mergeSmall does for any number of parts, in time that grows
// little faster than their number.
type chain struct {
	piece      string
	at         []int32
	next, prev []int32
	ranks      []uint32 // of each part with the next
}

// merge counts what is left. The queue is only room.
func (c *chain) merge(queue heap) (count int) {
	last := int32(len(c.at) - 1)
	for i := range last + 1 {
		c.next[i], c.prev[i], c.ranks[i] = i+1, i-1, none
		if i+2 <= last {
			c.ranks[i] = together(c.piece, c.at[i], c.at[i+2])
		}
	}
	for i := range last {
		queue = c.offer(queue, i)
	}
	count = int(last)
	for len(queue) > 0 {
		least := queue[0]
		queue = queue.pop()
		i := int32(uint32(least))
		if c.ranks[i] != uint32(least>>32) {
			continue // one of the two was joined with another in the meantime
		}
		count--
		gone := c.next[i]
		after := c.next[gone]
		c.ranks[gone], c.ranks[i] = none, none
		c.next[i], c.prev[after] = after, i
		if after < last {
			c.ranks[i] = together(c.piece, c.at[i], c.at[c.next[after]])
			queue = c.offer(queue, after)
		}
		if before := c.prev[i]; before >= 0 {
			c.ranks[before] = together(c.piece, c.at[before], c.at[after])
			queue = c.offer(queue, before)
			if c.prev[before] >= 0 {
				queue = c.offer(queue, c.prev[before])
			}
		}
		queue = c.offer(queue, i)
	}
	return count
}

// offer puts the joining of part i into the queue if it goes before those to
// its left and right. The least of all does, so it is always there, and the
// queue stays short where many are of one rank.
func (c *chain) offer(queue heap, i int32) heap {
	r := c.ranks[i]
	if r != none && r <= c.ranks[c.next[i]] && (c.prev[i] < 0 || r < c.ranks[c.prev[i]]) {
		return queue.push(uint64(r)<<32 | uint64(i))
	}
	return queue
}

// A heap has its least number first. Unlike the standard one it does not
// allocate for every number, and may lie on the stack.
type heap []uint64

func (h heap) push(x uint64) heap {
	h = append(h, x)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent] <= x {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = x
	return h
}

// pop takes out the least number.
func (h heap) pop() heap {
	x := h[len(h)-1]
	h = h[:len(h)-1]
	if len(h) == 0 {
		return h
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if x <= h[child] {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = x
	return h
}
