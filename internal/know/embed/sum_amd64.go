package embed

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// addRowsAVX2 writes the sums of n terms, 64 numbers to a block.
//
//go:noescape
func addRowsAVX2(sums *uint32, blocks int, rows *byte, terms *term, n int)

func addRows(sums []uint32, rows string, terms []term) {
	if !cpu.X86.HasAVX2 || len(terms) == 0 || len(sums) == 0 || len(sums)%64 != 0 {
		addPairs(sums, rows, terms)
		return
	}
	for _, t := range terms {
		_ = rows[t.at : t.at+len(sums)] // every row is there
	}
	addRowsAVX2(&sums[0], len(sums)/64, unsafe.StringData(rows), &terms[0], len(terms))
}
