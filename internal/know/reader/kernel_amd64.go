package reader

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// class returns the kernels that this processor can run.
func class() *kernels {
	x := cpu.X86
	switch {
	case !x.HasAVX2 || !x.HasFMA:
		return nil
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512VNNI:
		return vnni
	case x.HasAVXVNNI:
		return avxVNNI
	}
	return avx2
}

var (
	vnni    = &kernels{"vnni", 64, unsignedBytes, tileVNNI, &tallTiles{32, tile8VNNI, tile12VNNI}, mostAVX2, bytesAVX2, geluAVX2, sharesAVX2, scoresAVX2, mixAVX2, normAVX2, nil}
	avxVNNI = &kernels{"avx-vnni", 16, unsignedBytes, tileAVXVNNI, nil, mostAVX2, bytesAVX2, geluAVX2, sharesAVX2, scoresAVX2, mixAVX2, normAVX2, nil}
	avx2    = &kernels{"avx2", 16, unsignedBytes, tileAVX2, nil, mostAVX2, bytesAVX2, geluAVX2, sharesAVX2, scoresAVX2, mixAVX2, normAVX2, &pairs{heaviestAVX2, peaksAVX2}}
)

//go:noescape
func tileVNNI(t *tile)

//go:noescape
func tile8VNNI(t *tile)

//go:noescape
func tile12VNNI(t *tile)

//go:noescape
func tileAVXVNNI(t *tile)

//go:noescape
func tileAVX2(t *tile)

//go:noescape
func mostAVX2(x *float32, n int) float32

//go:noescape
func bytesAVX2(x *float32, n int, factor float32, into *byte)

//go:noescape
func heaviestAVX2(w *byte, n int, out *byte)

//go:noescape
func peaksAVX2(x *byte, step, n int, peaks *byte)

//go:noescape
func geluAVX2(x *float32, n int, table *float32)

//go:noescape
func sharesAVX2(x *float32, n int) float32

//go:noescape
func scoresAVX2(q, k *float32, step, n int, out *float32)

//go:noescape
func mixAVX2(p, v *float32, step, n int, factor float32, out *float32)

//go:noescape
func normAVX2(x, y *float32, n int, weight, bias *float32)

// The assembly relies on the layout of tile.
var _ = [1]struct{}{}[unsafe.Offsetof(tile{}.limits)-96]
