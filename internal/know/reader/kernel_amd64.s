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
#define TILE_PEAKS  88
#define TILE_LIMITS 96

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

// One token of a step: four inputs of it with 32 outputs.
#define DOTS32(x, a, b) \
	VPBROADCASTD x, Z26       \
	VPDPBUSD     Z24, Z26, a  \
	VPDPBUSD     Z25, Z26, b

// Four tokens of a step, from the one at x.
#define FOUR(x, a0, b0, a1, b1, a2, b2, a3, b3) \
	DOTS32((x), a0, b0)         \
	DOTS32((x)(R9*1), a1, b1)   \
	DOTS32((x)(R9*2), a2, b2)   \
	DOTS32((x)(R10*1), a3, b3)

// The 32 results of one token: (acc - excess) * scale * xScale + bias.
#define RESULTS(a, b, xs, y0, y1) \
	VPSUBD       Z24, a, a   \
	VPSUBD       Z25, b, b   \
	VCVTDQ2PS    a, a        \
	VCVTDQ2PS    b, b        \
	VBROADCASTSS xs, Z30     \
	VMULPS       Z26, a, a   \
	VMULPS       Z27, b, b   \
	VMULPS       Z30, a, a   \
	VMULPS       Z30, b, b   \
	VADDPS       Z28, a, a   \
	VADDPS       Z29, b, b   \
	VMOVUPS      a, y0       \
	VMOVUPS      b, y1

// The results of four tokens, to y.
#define FINISH4(xs, y, a0, b0, a1, b1, a2, b2, a3, b3) \
	RESULTS(a0, b0, 0+xs(SI), (y), 64(y))                   \
	RESULTS(a1, b1, 4+xs(SI), (y)(R9*1), 64(y)(R9*1))       \
	RESULTS(a2, b2, 8+xs(SI), (y)(R9*2), 64(y)(R9*2))       \
	RESULTS(a3, b3, 12+xs(SI), (y)(R10*1), 64(y)(R10*1))

// What a tile of 32 outputs begins with: R8, R11 and R12 have the activations of tokens
// 0, 4 and 8, R9 the step to the next token and R10 three of these; SI has the
// weights of 16 outputs, and those of the other 16 are AX bytes behind them; DI
// has the weights of the next tile.
#define BEGIN32 \
	MOVQ t+0(FP), DX          \
	MOVQ TILE_X(DX), R8       \
	MOVQ TILE_XSTEP(DX), R9   \
	LEAQ (R9)(R9*2), R10      \
	LEAQ (R8)(R9*4), R11      \
	LEAQ (R8)(R9*8), R12      \
	MOVQ TILE_W(DX), SI       \
	MOVQ TILE_WSTEP(DX), AX   \
	LEAQ (SI)(AX*2), DI       \
	MOVQ TILE_STEPS(DX), CX

// What it ends with: scale, bias and excess of 32 outputs; DI, R11, R12, R9 and R10
// are for the results what R8, R11, R12, R9 and R10 were for the activations.
#define END32 \
	MOVQ TILE_SCALE(DX), R8     \
	VMOVUPS (R8), Z26           \
	VMOVUPS 64(R8), Z27         \
	MOVQ TILE_BIAS(DX), R8      \
	VMOVUPS (R8), Z28           \
	VMOVUPS 64(R8), Z29         \
	MOVQ TILE_EXCESS(DX), R8    \
	VMOVDQU32 (R8), Z24         \
	VMOVDQU32 64(R8), Z25       \
	MOVQ TILE_XSCALE(DX), SI    \
	MOVQ TILE_Y(DX), DI         \
	MOVQ TILE_YSTEP(DX), R9     \
	LEAQ (R9)(R9*2), R10        \
	LEAQ (DI)(R9*4), R11        \
	LEAQ (DI)(R9*8), R12

#define CLEAR4(a0, b0, a1, b1, a2, b2, a3, b3) \
	VPXORQ a0, a0, a0 \
	VPXORQ b0, b0, b0 \
	VPXORQ a1, a1, a1 \
	VPXORQ b1, b1, b1 \
	VPXORQ a2, a2, a2 \
	VPXORQ b2, b2, b2 \
	VPXORQ a3, a3, a3 \
	VPXORQ b3, b3, b3

// func tile12VNNI(t *tile)
//
// Twelve tokens, 32 outputs. While it computes, the weights of the next 32
// outputs are fetched.
TEXT ·tile12VNNI(SB), NOSPLIT, $0-8
	BEGIN32
	CLEAR4(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	CLEAR4(Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	CLEAR4(Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)

tile12Step:
	VMOVDQU64 (SI), Z24
	VMOVDQU64 (SI)(AX*1), Z25
	PREFETCHT0 (DI)
	PREFETCHT0 (DI)(AX*1)
	FOUR(R8, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	FOUR(R11, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	FOUR(R12, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $4, R8
	ADDQ $4, R11
	ADDQ $4, R12
	DECQ CX
	JNZ  tile12Step

	END32
	FINISH4(0, DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	FINISH4(16, R11, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	FINISH4(32, R12, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)
	VZEROUPPER
	RET

// func tile8VNNI(t *tile)
//
// Eight tokens, 32 outputs.
TEXT ·tile8VNNI(SB), NOSPLIT, $0-8
	BEGIN32
	CLEAR4(Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	CLEAR4(Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)

tile8Step:
	VMOVDQU64 (SI), Z24
	VMOVDQU64 (SI)(AX*1), Z25
	PREFETCHT0 (DI)
	PREFETCHT0 (DI)(AX*1)
	FOUR(R8, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	FOUR(R11, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $4, R8
	ADDQ $4, R11
	DECQ CX
	JNZ  tile8Step

	END32
	FINISH4(0, DI, Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7)
	FINISH4(16, R11, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
	VZEROUPPER
	RET

// VPDPBUSD in its form without AVX-512, which the assembler does not know: the
// bytes of Y10 with those of Y8 or of Y9 are added to Y0 to Y7, by the last byte.
#define DOT8(last) BYTE $0xC4; BYTE $0xC2; BYTE $0x2D; BYTE $0x50; BYTE $last

// One token of a step: four inputs of it with 16 outputs.
#define DOTS16(x, a, b) \
	VPBROADCASTD (x)(BX*1), Y10 \
	DOT8(a)                     \
	DOT8(b)

// Eight outputs of one token: (acc - excess) * scale * xScale + bias.
#define RESULT8(a, excess, scale, bias, xs, y) \
	VPSUBD       excess, a, a \
	VCVTDQ2PS    a, a         \
	VMULPS       scale, a, a  \
	VBROADCASTSS xs, Y10      \
	VMULPS       Y10, a, a    \
	VADDPS       bias, a, a   \
	VMOVUPS      a, y

// What a tile of four tokens and 16 outputs in Y0 to Y7 ends with.
#define END16 \
	MOVQ TILE_EXCESS(DX), R8 \
	VMOVDQU (R8), Y8 \
	VMOVDQU 32(R8), Y9 \
	MOVQ TILE_SCALE(DX), R8 \
	VMOVUPS (R8), Y11 \
	VMOVUPS 32(R8), Y12 \
	MOVQ TILE_BIAS(DX), R8 \
	VMOVUPS (R8), Y13 \
	VMOVUPS 32(R8), Y14 \
	MOVQ TILE_XSCALE(DX), SI \
	MOVQ TILE_Y(DX), DI \
	MOVQ TILE_YSTEP(DX), AX \
	LEAQ (DI)(AX*1), R11 \
	LEAQ (R11)(AX*1), R12 \
	LEAQ (R12)(AX*1), R13 \
	RESULT8(Y0, Y8, Y11, Y13, 0(SI), (DI)) \
	RESULT8(Y1, Y9, Y12, Y14, 0(SI), 32(DI)) \
	RESULT8(Y2, Y8, Y11, Y13, 4(SI), (R11)) \
	RESULT8(Y3, Y9, Y12, Y14, 4(SI), 32(R11)) \
	RESULT8(Y4, Y8, Y11, Y13, 8(SI), (R12)) \
	RESULT8(Y5, Y9, Y12, Y14, 8(SI), 32(R12)) \
	RESULT8(Y6, Y8, Y11, Y13, 12(SI), (R13)) \
	RESULT8(Y7, Y9, Y12, Y14, 12(SI), 32(R13)) \
	VZEROUPPER

// func tileAVXVNNI(t *tile)
//
// Four tokens, 16 outputs. Activations are bytes from 1 to 255. While it
// computes, the weights of the next outputs are fetched.
TEXT ·tileAVXVNNI(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), DX
	MOVQ TILE_X(DX), R8
	MOVQ TILE_XSTEP(DX), AX
	LEAQ (R8)(AX*1), R9
	LEAQ (R9)(AX*1), R10
	LEAQ (R10)(AX*1), R11
	MOVQ TILE_W(DX), SI
	MOVQ TILE_WSTEP(DX), AX
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

avxvnniStep:
	VMOVDQU (SI), Y8
	VMOVDQU 32(SI), Y9
	PREFETCHT0 (SI)(AX*1)
	DOTS16(R8, 0xC0, 0xC9)
	DOTS16(R9, 0xD0, 0xD9)
	DOTS16(R10, 0xE0, 0xE9)
	DOTS16(R11, 0xF0, 0xF9)
	ADDQ $64, SI
	ADDQ $4, BX
	DECQ CX
	JNZ  avxvnniStep

	END16
	RET

DATA ones<>+0(SB)/4, $0x01010101
GLOBL ones<>(SB), RODATA, $4
DATA oneWords<>+0(SB)/4, $0x00010001
GLOBL oneWords<>(SB), RODATA, $4
DATA halves<>+0(SB)/8, $0x7F7F7F7F7F7F7F7F
DATA halves<>+8(SB)/8, $0x7F7F7F7F7F7F7F7F
DATA halves<>+16(SB)/8, $0x7F7F7F7F7F7F7F7F
DATA halves<>+24(SB)/8, $0x7F7F7F7F7F7F7F7F
GLOBL halves<>(SB), RODATA, $32

// One token of a step: four inputs of it, at some bytes behind (x)(BX*1), with 16
// outputs. VPMADDUBSW adds two products as a number of 16 bits and VPMADDWD two of
// these.
#define PAIRS(at, x, a, b) \
	VPBROADCASTD at(x)(BX*1), Y10 \
	VPMADDUBSW   Y8, Y10, Y11     \
	VPMADDUBSW   Y9, Y10, Y12     \
	VPMADDWD     Y15, Y11, Y11    \
	VPMADDWD     Y15, Y12, Y12    \
	VPADDD       Y11, a, a        \
	VPADDD       Y12, b, b

// What PAIRS should have added to a, less what it has: the sum of the products of
// the two parts of activations in Y11 and Y12, less the one that 16 bits hold. The
// difference fits into them. w has the weights.
#define REPAIR(w, a) \
	VPMADDUBSW w, Y11, Y13   \
	VPMADDUBSW w, Y12, Y14   \
	VPADDSW    Y13, Y14, Y10 \
	VPADDW     Y13, Y14, Y13 \
	VPSUBW     Y10, Y13, Y13 \
	VPMADDWD   Y15, Y13, Y13 \
	VPADDD     Y13, a, a

// One token of a step that is repaired. No part of an activation is above 128.
#define REPAIRS(x, a, b) \
	VPBROADCASTD (x)(R13*4), Y10        \
	VPMINUB      halves<>(SB), Y10, Y11 \
	VPSUBB       Y11, Y10, Y12          \
	REPAIR(Y8, a)                       \
	REPAIR(Y9, b)

// func tileAVX2(t *tile)
//
// Four tokens, 16 outputs. Activations are bytes from 1 to 255. While it
// computes, the weights of the next outputs are fetched. The sum of two products
// that 16 bits cannot hold becomes the nearest number that they can, so steps with
// a peak above their limit are repaired afterwards.
TEXT ·tileAVX2(SB), NOSPLIT, $0-8
	MOVQ t+0(FP), DX
	MOVQ TILE_X(DX), R8
	MOVQ TILE_XSTEP(DX), AX
	LEAQ (R8)(AX*1), R9
	LEAQ (R9)(AX*1), R10
	LEAQ (R10)(AX*1), R11
	MOVQ TILE_W(DX), SI
	MOVQ TILE_WSTEP(DX), AX
	MOVQ TILE_STEPS(DX), CX
	XORQ BX, BX
	VPBROADCASTD oneWords<>(SB), Y15
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7

avx2Steps:
	VMOVDQU (SI), Y8
	VMOVDQU 32(SI), Y9
	PREFETCHT0 (SI)(AX*1)
	PAIRS(0, R8, Y0, Y1)
	PAIRS(0, R9, Y2, Y3)
	PAIRS(0, R10, Y4, Y5)
	PAIRS(0, R11, Y6, Y7)
	VMOVDQU 64(SI), Y8
	VMOVDQU 96(SI), Y9
	PREFETCHT0 64(SI)(AX*1)
	PAIRS(4, R8, Y0, Y1)
	PAIRS(4, R9, Y2, Y3)
	PAIRS(4, R10, Y4, Y5)
	PAIRS(4, R11, Y6, Y7)
	SUBQ $-128, SI
	ADDQ $8, BX
	SUBQ $2, CX
	JNZ  avx2Steps

	MOVQ TILE_W(DX), SI
	MOVQ TILE_STEPS(DX), CX
	MOVQ TILE_PEAKS(DX), DI
	MOVQ TILE_LIMITS(DX), R12
	XORQ BX, BX // the first of 16 steps

avx2Check:
	VMOVDQU (R12)(BX*1), X10
	VPMAXUB (DI)(BX*1), X10, X11
	VPCMPEQB X10, X11, X11
	VPMOVMSKB X11, AX
	XORL $0xFFFF, AX
	JZ   avx2Checked

avx2Repair:
	BSFL AX, R13
	ADDQ BX, R13
	MOVQ R13, CX
	SHLQ $6, CX
	VMOVDQU (SI)(CX*1), Y8
	VMOVDQU 32(SI)(CX*1), Y9
	REPAIRS(R8, Y0, Y1)
	REPAIRS(R9, Y2, Y3)
	REPAIRS(R10, Y4, Y5)
	REPAIRS(R11, Y6, Y7)
	LEAL -1(AX), CX
	ANDL CX, AX
	JNZ  avx2Repair

avx2Checked:
	ADDQ $16, BX
	CMPQ BX, TILE_STEPS(DX)
	JLT  avx2Check

	END16
	RET

// func peaksAVX2(x *byte, step, n int, peaks *byte)
//
// The largest of four bytes of four tokens that are step bytes apart, for n bytes
// of each, a multiple of 64.
TEXT ·peaksAVX2(SB), NOSPLIT, $0-32
	MOVQ x+0(FP), SI
	MOVQ step+8(FP), AX
	MOVQ n+16(FP), CX
	MOVQ peaks+24(FP), DI
	LEAQ (SI)(AX*1), R8
	LEAQ (R8)(AX*1), R9
	LEAQ (R9)(AX*1), R10
	VMOVDQU order<>(SB), Y10
	VPCMPEQD Y9, Y9, Y9
	VPSRLD $24, Y9, Y9
	XORQ BX, BX

peaksStep:
	VMOVDQU (SI)(BX*1), Y0
	VMOVDQU 32(SI)(BX*1), Y1
	VPMAXUB (R8)(BX*1), Y0, Y0
	VPMAXUB 32(R8)(BX*1), Y1, Y1
	VPMAXUB (R9)(BX*1), Y0, Y0
	VPMAXUB 32(R9)(BX*1), Y1, Y1
	VPMAXUB (R10)(BX*1), Y0, Y0
	VPMAXUB 32(R10)(BX*1), Y1, Y1
	VPSRLD $16, Y0, Y2
	VPSRLD $16, Y1, Y3
	VPMAXUB Y2, Y0, Y0
	VPMAXUB Y3, Y1, Y1
	VPSRLD $8, Y0, Y2
	VPSRLD $8, Y1, Y3
	VPMAXUB Y2, Y0, Y0
	VPMAXUB Y3, Y1, Y1
	VPAND Y9, Y0, Y0
	VPAND Y9, Y1, Y1
	VPACKUSDW Y1, Y0, Y0
	VPACKUSWB Y0, Y0, Y0
	VPERMD Y0, Y10, Y0
	VMOVDQU X0, (DI)
	ADDQ $16, DI
	ADDQ $64, BX
	CMPQ BX, CX
	JLT  peaksStep
	VZEROUPPER
	RET

// func heaviestAVX2(w *byte, n int, out *byte)
//
// For each of n groups of 64 weights, the largest sum of two neighbours, of which
// those of the other sign count as zero; the sign is left out.
TEXT ·heaviestAVX2(SB), NOSPLIT, $0-24
	MOVQ w+0(FP), SI
	MOVQ n+8(FP), CX
	MOVQ out+16(FP), DI
	VPBROADCASTD ones<>(SB), Y8
	VPXOR Y9, Y9, Y9
	VPCMPEQD X10, X10, X10

heaviestStep:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VPABSB Y0, Y2
	VPABSB Y1, Y3
	VPMAXSB Y9, Y0, Y0
	VPMAXSB Y9, Y1, Y1
	VPSUBB Y0, Y2, Y2
	VPSUBB Y1, Y3, Y3
	VPMADDUBSW Y8, Y0, Y0
	VPMADDUBSW Y8, Y1, Y1
	VPMADDUBSW Y8, Y2, Y2
	VPMADDUBSW Y8, Y3, Y3
	VPMAXSW Y1, Y0, Y0
	VPMAXSW Y3, Y2, Y2
	VPMAXSW Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPMAXSW X1, X0, X0
	VPXOR X10, X0, X0
	VPHMINPOSUW X0, X0
	VPXOR X10, X0, X0
	VPEXTRB $0, X0, (DI)
	ADDQ $64, SI
	INCQ DI
	DECQ CX
	JNZ  heaviestStep
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

// func mixAVX2(p, v *float32, step, n int, factor float32, out *float32)
//
// The sum of n values of 32 numbers, step bytes apart, each times its share; the
// sum times a factor.
TEXT ·mixAVX2(SB), NOSPLIT, $0-48
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), SI
	MOVQ step+16(FP), DX
	MOVQ n+24(FP), CX
	MOVQ out+40(FP), DI
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
	VBROADCASTSS factor+32(FP), Y4
	VMULPS Y4, Y0, Y0
	VMULPS Y4, Y1, Y1
	VMULPS Y4, Y2, Y2
	VMULPS Y4, Y3, Y3
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

DATA reach<>+0(SB)/4, $6.0
GLOBL reach<>(SB), RODATA, $4
DATA lowest<>+0(SB)/4, $-6.0
GLOBL lowest<>(SB), RODATA, $4
DATA fine<>+0(SB)/4, $128.0
GLOBL fine<>(SB), RODATA, $4

// Two numbers of the table and the next of each.
#define NEIGHBOURS(first, second, x) \
	MOVL    first, R8              \
	MOVL    second, R9             \
	VMOVSD  (DX)(R8*4), x          \
	VMOVHPS (DX)(R9*4), x, x

// func geluAVX2(x *float32, n int, table *float32)
//
// The activation function, by the table of [geluTable], n a multiple of 8. Two
// neighbours of the table are loaded at once. Gather instructions would do this,
// but took three times as long on the Skylake where it was measured.
TEXT ·geluAVX2(SB), NOSPLIT, $32-24
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
	VMOVDQU Y2, indexes-32(SP)
	NEIGHBOURS(indexes-32(SP), indexes-28(SP), X3)
	NEIGHBOURS(indexes-24(SP), indexes-20(SP), X4)
	NEIGHBOURS(indexes-16(SP), indexes-12(SP), X5)
	NEIGHBOURS(indexes-8(SP), indexes-4(SP), X6)
	VINSERTF128 $1, X5, Y3, Y3
	VINSERTF128 $1, X6, Y4, Y4
	VSHUFPS $0x88, Y4, Y3, Y5
	VSHUFPS $0xDD, Y4, Y3, Y6
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

// The constants of exp: log2(e), a half, ln(2), the factors of the series, and
// the least that counts.
DATA expNumbers<>+0(SB)/4, $1.4426950408889634
DATA expNumbers<>+4(SB)/4, $0.5
DATA expNumbers<>+8(SB)/4, $0.6931471805599453
DATA expNumbers<>+12(SB)/4, $0.001388888888888889
DATA expNumbers<>+16(SB)/4, $0.008333333333333333
DATA expNumbers<>+20(SB)/4, $0.041666666666666664
DATA expNumbers<>+24(SB)/4, $0.16666666666666666
DATA expNumbers<>+28(SB)/4, $1.0
DATA expNumbers<>+32(SB)/4, $127
GLOBL expNumbers<>(SB), RODATA, $36
DATA expLeast<>+0(SB)/8, $0xC2A00000C2A00000
DATA expLeast<>+8(SB)/8, $0xC2A00000C2A00000
DATA expLeast<>+16(SB)/8, $0xC2A00000C2A00000
DATA expLeast<>+24(SB)/8, $0xC2A00000C2A00000
GLOBL expLeast<>(SB), RODATA, $32
DATA infinite<>+0(SB)/4, $0xFF800000
GLOBL infinite<>(SB), RODATA, $4

#define SERIES(factor) \
	VMULPS Y3, Y2, Y3     \
	VADDPS factor, Y3, Y3

// Adds eight numbers to the four parts of a sum, in the order of plain Go.
#define PARTS(y, x, sum) \
	VADDPS x, sum, sum        \
	VEXTRACTF128 $1, y, x     \
	VADDPS x, sum, sum

// Adds the four parts of a sum.
#define WHOLE(sum) \
	VHADDPS sum, sum, sum \
	VHADDPS sum, sum, sum

// func sharesAVX2(x *float32, n int) float32
//
// See plainShares. There is room for a multiple of 8 numbers; those behind n become
// zero.
TEXT ·sharesAVX2(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	LEAQ 7(CX), DX
	ANDQ $~7, DX
	MOVQ CX, BX

sharesFill:
	CMPQ BX, DX
	JGE  sharesFilled
	MOVL $0xFF800000, (SI)(BX*4)
	INCQ BX
	JMP  sharesFill

sharesFilled:
	VBROADCASTSS infinite<>(SB), Y15
	XORQ BX, BX

sharesMost:
	VMAXPS (SI)(BX*4), Y15, Y15
	ADDQ $8, BX
	CMPQ BX, DX
	JLT  sharesMost
	VEXTRACTF128 $1, Y15, X0
	VMAXPS X0, X15, X15
	VPSHUFD $0x4E, X15, X0
	VMAXPS X0, X15, X15
	VPSHUFD $0xB1, X15, X0
	VMAXPS X0, X15, X15
	VBROADCASTSS X15, Y15

	VXORPS Y14, Y14, Y14
	VBROADCASTSS expNumbers<>+0(SB), Y13
	VBROADCASTSS expNumbers<>+4(SB), Y12
	VBROADCASTSS expNumbers<>+8(SB), Y11
	VBROADCASTSS expNumbers<>+12(SB), Y10
	VBROADCASTSS expNumbers<>+16(SB), Y9
	VBROADCASTSS expNumbers<>+20(SB), Y8
	VBROADCASTSS expNumbers<>+24(SB), Y7
	VBROADCASTSS expNumbers<>+28(SB), Y6
	VPBROADCASTD expNumbers<>+32(SB), Y5
	XORQ BX, BX

sharesStep:
	VMOVUPS (SI)(BX*4), Y0
	VSUBPS Y15, Y0, Y0
	VCMPPS $0x0D, expLeast<>(SB), Y0, Y4 // at least the least
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
	VMOVUPS Y3, (SI)(BX*4)
	PARTS(Y3, X3, X14)
	ADDQ $8, BX
	CMPQ BX, DX
	JLT  sharesStep
	WHOLE(X14)
	VDIVSS X14, X6, X6
	VMOVSS X6, ret+16(FP)
	VZEROUPPER
	RET

DATA normNumbers<>+0(SB)/8, $1e-12
DATA normNumbers<>+8(SB)/8, $1.0
GLOBL normNumbers<>(SB), RODATA, $16

// func normAVX2(x, y *float32, n int, weight, bias *float32)
//
// See plainNorm. n is a multiple of 8.
TEXT ·normAVX2(SB), NOSPLIT, $0-40
	MOVQ x+0(FP), SI
	MOVQ y+8(FP), DI
	MOVQ n+16(FP), CX
	MOVQ weight+24(FP), R8
	MOVQ bias+32(FP), R9
	VXORPS X0, X0, X0
	XORQ BX, BX

normSum:
	VMOVUPS (SI)(BX*4), Y1
	VADDPS (DI)(BX*4), Y1, Y1
	VMOVUPS Y1, (SI)(BX*4)
	PARTS(Y1, X1, X0)
	ADDQ $8, BX
	CMPQ BX, CX
	JLT  normSum
	WHOLE(X0)
	VXORPS X3, X3, X3
	VCVTSI2SSQ CX, X3, X3
	VDIVSS X3, X0, X0
	VBROADCASTSS X0, Y4
	VXORPS X5, X5, X5
	XORQ BX, BX

normSquares:
	VMOVUPS (SI)(BX*4), Y1
	VSUBPS Y4, Y1, Y1
	VMULPS Y1, Y1, Y1
	PARTS(Y1, X1, X5)
	ADDQ $8, BX
	CMPQ BX, CX
	JLT  normSquares
	WHOLE(X5)
	VCVTSS2SD X5, X5, X5
	VXORPS X6, X6, X6
	VCVTSI2SDQ CX, X6, X6
	VDIVSD X6, X5, X5
	VADDSD normNumbers<>+0(SB), X5, X5
	VSQRTSD X5, X5, X5
	VMOVSD normNumbers<>+8(SB), X7
	VDIVSD X5, X7, X5
	VCVTSD2SS X5, X5, X5
	VBROADCASTSS X5, Y5
	XORQ BX, BX

normStep:
	VMOVUPS (SI)(BX*4), Y1
	VSUBPS Y4, Y1, Y1
	VMULPS Y5, Y1, Y1
	VMULPS (R8)(BX*4), Y1, Y1
	VADDPS (R9)(BX*4), Y1, Y1
	VMOVUPS Y1, (SI)(BX*4)
	ADDQ $8, BX
	CMPQ BX, CX
	JLT  normStep
	VZEROUPPER
	RET
