package index

import "slices"

// list returns a copy of a list of a doc.
func (w *writer) list(numbers []uint32) []uint32 {
	if len(numbers) == 0 {
		return nil
	}
	out := carve(w, &w.numbers, len(numbers))
	copy(out, numbers)
	return out
}

const largestPiece = 1 << 16 // numbers

// carve returns room for n numbers. That of a new segment is cut from a piece, which
// grows with the segment; what is added to a segment later may be removed alone.
func carve[T uint32 | uint64](w *writer, piece *[]T, n int) []T {
	if !w.postings.fresh {
		return make([]T, n)
	}
	if n > len(*piece) {
		*piece = make([]T, max(n, min(32*len(w.next.Docs), largestPiece)))
	}
	out := (*piece)[:n:n]
	*piece = (*piece)[n:]
	return out
}

// firsts adds each term once to an empty list, in the order of the text: sums over them
// must not depend on how terms came to be numbered.
func firsts(out, terms []uint32) []uint32 {
	const few = 32
	if len(terms) <= few {
		for _, t := range terms {
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
		return out
	}
	seen := make(map[uint32]bool, len(terms))
	for _, t := range terms {
		if !seen[t] {
			seen[t] = true
			out = append(out, t)
		}
	}
	return out
}

// pairsOf adds the hash of each pair of neighbouring terms to an empty list, ascending.
func pairsOf(out, run []uint32) []uint32 {
	for i := range len(run) - 1 {
		out = append(out, PairOf(run[i], run[i+1]))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
