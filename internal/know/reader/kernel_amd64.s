#include "textflag.h"

// The fields of a tile.
#define TILE_X      0
#define TILE_W      8
#define TILE_STEPS  16
#define TILE_XSTEP  24
#define TILE_WSTEP  32
#define TILE_SCALE  40
#define TILE_BIAS   48
#define TILE_EXCESS 56
#define TILE_XSCALE 64
#define TILE_Y      72
#define TILE_YSTEP  80

// One token of a step: four inputs of it with 64 outputs.
#define DOTS(x, a, b, c, d) \
	VPBROADCASTD (x)(BX*1), Z20 \
	VPDPBUSD     Z16, Z20, a    \
	VPDPBUSD     Z17, Z20, b    \
	VPDPBUSD     Z18, Z20, c    \
	VPDPBUSD     Z19, Z20, d

// One group of 16 outputs of four tokens, from whole numbers to the result:
// (acc - excess) * scale * xScale + bias.
#define FINISH(at, a, b, c, d) \
	VMOVDQU32 at(R10), Z16       \
	VMOVUPS   at(R8), Z17        \
	VMOVUPS   at(R9), Z18        \
	RESULT(at, a, Z20, DI)       \
	RESULT(at, b, Z21, R11)      \
	RESULT(at, c, Z22, R12)      \
	RESULT(at, d, Z23, R13)

#define RESULT(at, a, xs, y) \
	VPSUBD    Z16, a, a \
	VCVTDQ2PS a, a      \
	VMULPS    Z17, a, a \
	VMULPS    xs, a, a  \
	VADDPS    Z18, a, a \
	VMOVUPS   a, at(y)

// func tileVNNI(t *tile)
//
// Four tokens, 64 outputs. Activations are bytes from 1 to 255.
TEXT ·tileVNNI(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), DX
	MOVQ TILE_X(DX), R8
	MOVQ TILE_XSTEP(DX), AX
	LEAQ (R8)(AX*1), R9
	LEAQ (R9)(AX*1), R10
	LEAQ (R10)(AX*1), R11
	MOVQ TILE_W(DX), SI
	MOVQ TILE_WSTEP(DX), AX
	LEAQ (SI)(AX*1), DI
	LEAQ (DI)(AX*1), R12
	LEAQ (R12)(AX*1), R13
	MOVQ TILE_STEPS(DX), CX
	XORQ BX, BX
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3
	VPXORQ Z4, Z4, Z4
	VPXORQ Z5, Z5, Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7
	VPXORQ Z8, Z8, Z8
	VPXORQ Z9, Z9, Z9
	VPXORQ Z10, Z10, Z10
	VPXORQ Z11, Z11, Z11
	VPXORQ Z12, Z12, Z12
	VPXORQ Z13, Z13, Z13
	VPXORQ Z14, Z14, Z14
	VPXORQ Z15, Z15, Z15

vnniStep:
	VMOVDQU64 (SI), Z16
	VMOVDQU64 (DI), Z17
	VMOVDQU64 (R12), Z18
	VMOVDQU64 (R13), Z19
	DOTS(R8, Z0, Z1, Z2, Z3)
	DOTS(R9, Z4, Z5, Z6, Z7)
	DOTS(R10, Z8, Z9, Z10, Z11)
	DOTS(R11, Z12, Z13, Z14, Z15)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $64, R12
	ADDQ $64, R13
	ADDQ $4, BX
	DECQ CX
	JNZ  vnniStep

	MOVQ TILE_SCALE(DX), R8
	MOVQ TILE_BIAS(DX), R9
	MOVQ TILE_EXCESS(DX), R10
	MOVQ TILE_XSCALE(DX), SI
	VBROADCASTSS 0(SI), Z20
	VBROADCASTSS 4(SI), Z21
	VBROADCASTSS 8(SI), Z22
	VBROADCASTSS 12(SI), Z23
	MOVQ TILE_Y(DX), DI
	MOVQ TILE_YSTEP(DX), AX
	LEAQ (DI)(AX*1), R11
	LEAQ (R11)(AX*1), R12
	LEAQ (R12)(AX*1), R13
	FINISH(0, Z0, Z4, Z8, Z12)
	FINISH(64, Z1, Z5, Z9, Z13)
	FINISH(128, Z2, Z6, Z10, Z14)
	FINISH(192, Z3, Z7, Z11, Z15)
	VZEROUPPER
	RET

// One token of a step: four inputs of it with eight outputs. A sum has two
// parts, side by side.
#define DOTS2(x, a, b) \
	VPBROADCASTQ (x)(BX*1), Y10 \
	VPMADDWD     Y8, Y10, Y11   \
	VPADDD       Y11, a, a      \
	VPMADDWD     Y9, Y10, Y12   \
	VPADDD       Y12, b, b

// Eight outputs of one token: the two parts of each sum are added and come in
// the order of the outputs; then acc * scale * xScale + bias.
#define FINISH2(a, b, xs, y) \
	VPHADDD      b, a, a      \
	VPERMQ       $0xD8, a, a  \
	VCVTDQ2PS    a, a         \
	VMULPS       Y8, a, a     \
	VBROADCASTSS xs, Y10      \
	VMULPS       Y10, a, a    \
	VADDPS       Y9, a, a     \
	VMOVUPS      a, (y)

// func tileAVX2(t *tile)
//
// Four tokens, 8 outputs. Activations are 16-bit numbers from -127 to 127.
TEXT ·tileAVX2(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), DX
	MOVQ TILE_X(DX), R8
	MOVQ TILE_XSTEP(DX), AX
	LEAQ (R8)(AX*1), R9
	LEAQ (R9)(AX*1), R10
	LEAQ (R10)(AX*1), R11
	MOVQ TILE_W(DX), SI
	MOVQ TILE_STEPS(DX), CX
	XORQ BX, BX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7

avx2Step:
	VPMOVSXBW (SI), Y8
	VPMOVSXBW 16(SI), Y9
	DOTS2(R8, Y0, Y1)
	DOTS2(R9, Y2, Y3)
	DOTS2(R10, Y4, Y5)
	DOTS2(R11, Y6, Y7)
	ADDQ $64, SI
	ADDQ $8, BX
	DECQ CX
	JNZ  avx2Step

	MOVQ TILE_SCALE(DX), R8
	MOVQ TILE_BIAS(DX), R9
	MOVQ TILE_XSCALE(DX), SI
	MOVQ TILE_Y(DX), DI
	MOVQ TILE_YSTEP(DX), AX
	LEAQ (DI)(AX*1), R11
	LEAQ (R11)(AX*1), R12
	LEAQ (R12)(AX*1), R13
	VMOVUPS (R8), Y8
	VMOVUPS (R9), Y9
	FINISH2(Y0, Y1, 0(SI), DI)
	FINISH2(Y2, Y3, 4(SI), R11)
	FINISH2(Y4, Y5, 8(SI), R12)
	FINISH2(Y6, Y7, 12(SI), R13)
	VZEROUPPER
	RET

#define SCORE(at, a) \
	VMULPS      (at), Y0, a     \
	VFMADD231PS 32(at), Y1, a   \
	VFMADD231PS 64(at), Y2, a   \
	VFMADD231PS 96(at), Y3, a

// func scoresAVX2(q, k *float32, step, n int, out *float32)
//
// The products of one query of 32 numbers with n keys, n a multiple of four,
// that are step bytes apart.
TEXT ·scoresAVX2(SB), NOSPLIT, $0-40
	MOVQ q+0(FP), AX
	MOVQ k+8(FP), SI
	MOVQ step+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ out+32(FP), DI
	VMOVUPS (AX), Y0
	VMOVUPS 32(AX), Y1
	VMOVUPS 64(AX), Y2
	VMOVUPS 96(AX), Y3

scoresStep:
	LEAQ (SI)(DX*1), R8
	LEAQ (R8)(DX*1), R9
	LEAQ (R9)(DX*1), R10
	SCORE(SI, Y4)
	SCORE(R8, Y5)
	SCORE(R9, Y6)
	SCORE(R10, Y7)
	VHADDPS Y5, Y4, Y4
	VHADDPS Y7, Y6, Y6
	VHADDPS Y6, Y4, Y4
	VEXTRACTF128 $1, Y4, X5
	VADDPS X5, X4, X4
	VMOVUPS X4, (DI)
	ADDQ $16, DI
	LEAQ (R10)(DX*1), SI
	SUBQ $4, CX
	JNZ  scoresStep
	VZEROUPPER
	RET

// func mixAVX2(p, v *float32, step, n int, out *float32)
//
// The sum of n values of 32 numbers, step bytes apart, each times its share.
TEXT ·mixAVX2(SB), NOSPLIT, $0-40
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), SI
	MOVQ step+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ out+32(FP), DI
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

mixStep:
	VBROADCASTSS (AX), Y4
	VFMADD231PS (SI), Y4, Y0
	VFMADD231PS 32(SI), Y4, Y1
	VFMADD231PS 64(SI), Y4, Y2
	VFMADD231PS 96(SI), Y4, Y3
	ADDQ $4, AX
	ADDQ DX, SI
	DECQ CX
	JNZ  mixStep
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	VMOVUPS Y2, 64(DI)
	VMOVUPS Y3, 96(DI)
	VZEROUPPER
	RET

DATA signs<>+0(SB)/4, $0x7FFFFFFF
GLOBL signs<>(SB), RODATA, $4
DATA middle<>+0(SB)/4, $0x80808080
GLOBL middle<>(SB), RODATA, $4
DATA order<>+0(SB)/8, $0x0000000400000000
DATA order<>+8(SB)/8, $0x0000000500000001
DATA order<>+16(SB)/8, $0x0000000600000002
DATA order<>+24(SB)/8, $0x0000000700000003
GLOBL order<>(SB), RODATA, $32

// func mostAVX2(x *float32, n int) float32
//
// The largest absolute value of n numbers, n a multiple of 32.
TEXT ·mostAVX2(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VBROADCASTSS signs<>(SB), Y8
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

mostStep:
	VANDPS (SI), Y8, Y4
	VANDPS 32(SI), Y8, Y5
	VANDPS 64(SI), Y8, Y6
	VANDPS 96(SI), Y8, Y7
	VMAXPS Y4, Y0, Y0
	VMAXPS Y5, Y1, Y1
	VMAXPS Y6, Y2, Y2
	VMAXPS Y7, Y3, Y3
	ADDQ $128, SI
	SUBQ $32, CX
	JNZ  mostStep
	VMAXPS Y1, Y0, Y0
	VMAXPS Y3, Y2, Y2
	VMAXPS Y2, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPSHUFD $0x4E, X0, X1
	VMAXPS X1, X0, X0
	VPSHUFD $0xB1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func bytesAVX2(x *float32, n int, factor float32, into *byte)
//
// The nearest whole numbers to x * factor, plus 128, n a multiple of 32.
TEXT ·bytesAVX2(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VBROADCASTSS factor+16(FP), Y8
	MOVQ into+24(FP), DI
	VPBROADCASTD middle<>(SB), Y9
	VMOVDQU order<>(SB), Y10

bytesStep:
	VMULPS (SI), Y8, Y0
	VMULPS 32(SI), Y8, Y1
	VMULPS 64(SI), Y8, Y2
	VMULPS 96(SI), Y8, Y3
	VCVTPS2DQ Y0, Y0
	VCVTPS2DQ Y1, Y1
	VCVTPS2DQ Y2, Y2
	VCVTPS2DQ Y3, Y3
	VPACKSSDW Y1, Y0, Y0
	VPACKSSDW Y3, Y2, Y2
	VPACKSSWB Y2, Y0, Y0
	VPERMD Y0, Y10, Y0
	VPXOR Y9, Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $128, SI
	ADDQ $32, DI
	SUBQ $32, CX
	JNZ  bytesStep
	VZEROUPPER
	RET

// func wordsAVX2(x *float32, n int, factor float32, into *byte)
//
// The nearest whole numbers to x * factor, of 16 bits, n a multiple of 16.
TEXT ·wordsAVX2(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VBROADCASTSS factor+16(FP), Y8
	MOVQ into+24(FP), DI

wordsStep:
	VMULPS (SI), Y8, Y0
	VMULPS 32(SI), Y8, Y1
	VCVTPS2DQ Y0, Y0
	VCVTPS2DQ Y1, Y1
	VPACKSSDW Y1, Y0, Y0
	VPERMQ $0xD8, Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $64, SI
	ADDQ $32, DI
	SUBQ $16, CX
	JNZ  wordsStep
	VZEROUPPER
	RET

DATA reach<>+0(SB)/4, $6.0
GLOBL reach<>(SB), RODATA, $4
DATA lowest<>+0(SB)/4, $-6.0
GLOBL lowest<>(SB), RODATA, $4
DATA fine<>+0(SB)/4, $128.0
GLOBL fine<>(SB), RODATA, $4

// func geluAVX2(x *float32, n int, table *float32)
//
// The activation function, by the table of [geluTable], n a multiple of 8.
TEXT ·geluAVX2(SB), NOSPLIT, $0-24
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ table+16(FP), DX
	VBROADCASTSS reach<>(SB), Y8
	VBROADCASTSS lowest<>(SB), Y9
	VBROADCASTSS fine<>(SB), Y10

geluStep:
	VMOVUPS (SI), Y0
	VMINPS Y8, Y0, Y1
	VMAXPS Y9, Y1, Y1
	VADDPS Y8, Y1, Y1
	VMULPS Y10, Y1, Y1
	VCVTTPS2DQ Y1, Y2
	VCVTDQ2PS Y2, Y3
	VSUBPS Y3, Y1, Y1
	VPCMPEQD Y4, Y4, Y4
	VGATHERDPS Y4, (DX)(Y2*4), Y5
	VPCMPEQD Y4, Y4, Y4
	VGATHERDPS Y4, 4(DX)(Y2*4), Y6
	VSUBPS Y5, Y6, Y6
	VMULPS Y6, Y1, Y1
	VADDPS Y5, Y1, Y1
	VCMPPS $0x1E, Y8, Y0, Y7
	VBLENDVPS Y7, Y0, Y1, Y1
	VMOVUPS Y1, (SI)
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ  geluStep
	VZEROUPPER
	RET

// The constants of exp: the least that counts, log2(e), a half, ln(2), and the
// factors of the series.
DATA expNumbers<>+0(SB)/4, $-80.0
DATA expNumbers<>+4(SB)/4, $1.4426950408889634
DATA expNumbers<>+8(SB)/4, $0.5
DATA expNumbers<>+12(SB)/4, $0.6931471805599453
DATA expNumbers<>+16(SB)/4, $0.001388888888888889
DATA expNumbers<>+20(SB)/4, $0.008333333333333333
DATA expNumbers<>+24(SB)/4, $0.041666666666666664
DATA expNumbers<>+28(SB)/4, $0.16666666666666666
DATA expNumbers<>+32(SB)/4, $1.0
DATA expNumbers<>+36(SB)/4, $127
GLOBL expNumbers<>(SB), RODATA, $40

#define SERIES(factor) \
	VMULPS Y3, Y2, Y3     \
	VADDPS factor, Y3, Y3

// func expsAVX2(x *float32, n int, most float32)
//
// e to the power of each of n numbers less most, n a multiple of 8. The steps are
// those of exp.
TEXT ·expsAVX2(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VBROADCASTSS most+16(FP), Y15
	VBROADCASTSS expNumbers<>+0(SB), Y14
	VBROADCASTSS expNumbers<>+4(SB), Y13
	VBROADCASTSS expNumbers<>+8(SB), Y12
	VBROADCASTSS expNumbers<>+12(SB), Y11
	VBROADCASTSS expNumbers<>+16(SB), Y10
	VBROADCASTSS expNumbers<>+20(SB), Y9
	VBROADCASTSS expNumbers<>+24(SB), Y8
	VBROADCASTSS expNumbers<>+28(SB), Y7
	VBROADCASTSS expNumbers<>+32(SB), Y6
	VPBROADCASTD expNumbers<>+36(SB), Y5

expsStep:
	VMOVUPS (SI), Y0
	VSUBPS Y15, Y0, Y0
	VCMPPS $0x0D, Y14, Y0, Y4 // at least the least
	VMULPS Y13, Y0, Y0
	VSUBPS Y12, Y0, Y1
	VCVTTPS2DQ Y1, Y1
	VCVTDQ2PS Y1, Y2
	VSUBPS Y2, Y0, Y2
	VMULPS Y11, Y2, Y2
	VMULPS Y10, Y2, Y3
	VADDPS Y9, Y3, Y3
	SERIES(Y8)
	SERIES(Y7)
	SERIES(Y12)
	SERIES(Y6)
	SERIES(Y6)
	VPADDD Y5, Y1, Y1
	VPSLLD $23, Y1, Y1
	VMULPS Y1, Y3, Y3
	VANDPS Y4, Y3, Y3
	VMOVUPS Y3, (SI)
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ  expsStep
	VZEROUPPER
	RET
