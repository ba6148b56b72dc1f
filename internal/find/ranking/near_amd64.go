package ranking

import (
	"golang.org/x/sys/cpu"

	"ken/internal/know/index"
)

// differentAVX2 is different for processors with AVX2.
//
//go:noescape
func differentAVX2(page, query *uint64, distance *uint16)

func different(page *[4 * index.VectorsPerPage]uint64, query *[4]uint64, distance *[index.VectorsPerPage]uint16) {
	if cpu.X86.HasAVX2 {
		differentAVX2(&page[0], &query[0], &distance[0])
		return
	}
	differentBits(page, query, distance)
}
