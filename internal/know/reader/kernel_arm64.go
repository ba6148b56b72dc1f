package reader

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// class returns the kernels that this processor can run: those of NEON want its
// instructions for products of bytes, which processors have since 2018.
func class() *kernels {
	if !cpu.ARM64.HasASIMDDP {
		return nil
	}
	return neon
}

var neon = &kernels{"neon", 16, signedBytes, tileNEON, nil, mostNEON, bytesNEON, plainGelu, sharesNEON, scoresNEON, mixAndScale, plainNorm, nil}

//go:noescape
func tileNEON(t *tile)

//go:noescape
func mostNEON(x *float32, n int) float32

//go:noescape
func bytesNEON(x *float32, n int, factor float32, into *byte)

//go:noescape
func expsNEON(x *float32, n int, most float32)

//go:noescape
func scoresNEON(q, k *float32, step, n int, out *float32)

//go:noescape
func mixNEON(p, v *float32, step, n int, out *float32)

func sharesNEON(x *float32, n int) float32 { return plainShares(x, n, expsNEON) }

func mixAndScale(p, v *float32, step, n int, factor float32, out *float32) {
	mixNEON(p, v, step, n, out)
	sums := unsafe.Slice(out, headSize)
	for i := range sums {
		sums[i] *= factor
	}
}

// plainGelu is the activation function without assembly: NEON cannot look up
// several numbers of a table at once. Conversions keep the compiler from
// rounding a product and a sum together, as the others do not.
func plainGelu(x *float32, n int, table *float32) {
	values := unsafe.Slice(table, 2*geluReach*geluFine+2)
	list := unsafe.Slice(x, n)
	for i, v := range list {
		if v > geluReach {
			continue
		}
		at := float32((max(v, -geluReach) + geluReach) * geluFine)
		k := int(at)
		low := values[k]
		list[i] = low + float32((at-float32(k))*(values[k+1]-low))
	}
}

// The assembly relies on the layout of tile.
var _ = [1]struct{}{}[unsafe.Offsetof(tile{}.yStep)-80]
