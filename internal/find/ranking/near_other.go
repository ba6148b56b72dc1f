//go:build !amd64

package ranking

import "ken/internal/know/index"

func different(page *[4 * index.VectorsPerPage]uint64, query *[4]uint64, distance *[index.VectorsPerPage]uint16) {
	differentBits(page, query, distance)
}
