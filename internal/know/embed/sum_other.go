//go:build !amd64

package embed

func addRows(sums []uint32, rows string, terms []term) { addPairs(sums, rows, terms) }
