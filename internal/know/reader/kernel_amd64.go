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
	}
	return avx2
}

var (
	vnni = &kernels{"vnni", 64, unsignedBytes, tileVNNI, mostAVX2, bytesAVX2, geluAVX2, expsAVX2, scoresAVX2, mixAVX2}
	avx2 = &kernels{"avx2", 8, words, tileAVX2, mostAVX2, wordsAVX2, geluAVX2, expsAVX2, scoresAVX2, mixAVX2}
)

//go:noescape
func tileVNNI(t *tile)

//go:noescape
func tileAVX2(t *tile)

//go:noescape
func mostAVX2(x *float32, n int) float32

//go:noescape
func bytesAVX2(x *float32, n int, factor float32, into *byte)

//go:noescape
func wordsAVX2(x *float32, n int, factor float32, into *byte)

//go:noescape
func geluAVX2(x *float32, n int, table *float32)

//go:noescape
func expsAVX2(x *float32, n int, most float32)

//go:noescape
func scoresAVX2(q, k *float32, step, n int, out *float32)

//go:noescape
func mixAVX2(p, v *float32, step, n int, out *float32)

// The assembly relies on the layout of tile.
var _ = [1]struct{}{}[unsafe.Offsetof(tile{}.yStep)-80]
