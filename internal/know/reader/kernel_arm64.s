#include "textflag.h"

// The fields of a tile.
#define TILE_X      0
#define TILE_W      8
#define TILE_STEPS  16
#define TILE_XSTEP  24
#define TILE_SCALE  40
#define TILE_BIAS   48
#define TILE_XSCALE 64
#define TILE_Y      72
#define TILE_YSTEP  80

// Instructions that the assembler does not know, on four numbers of 32 bits.
// Registers are given by their numbers: d is the result, n and m the operands.
#define SDOT(lane, d, n, m) WORD $(0x4F80E000 | (lane) | (m)<<16 | (n)<<5 | (d)) // d += four products of bytes of n and of a lane of m
#define FMUL(d, n, m)       WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d))
#define FADD(d, n, m)       WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d))
#define FSUB(d, n, m)       WORD $(0x4EA0D400 | (m)<<16 | (n)<<5 | (d))
#define FCMGE(d, n, m)      WORD $(0x6E20E400 | (m)<<16 | (n)<<5 | (d)) // all bits where n is at least m
#define FCVTZS(d, n)        WORD $(0x4EA1B800 | (n)<<5 | (d))           // to whole numbers, towards zero
#define FMLA(d, n, m)       WORD $(0x4E20CC00 | (m)<<16 | (n)<<5 | (d)) // d += n * m, rounded once
#define FADDP(d, n, m)      WORD $(0x6E20D400 | (m)<<16 | (n)<<5 | (d)) // sums of neighbours in n, then in m
#define FMAX(d, n, m)       WORD $(0x4E20F400 | (m)<<16 | (n)<<5 | (d))
#define FMAXV(d, n)         WORD $(0x6E30F800 | (n)<<5 | (d))           // the largest of n
#define FABS(d, n)          WORD $(0x4EA0F800 | (n)<<5 | (d))
#define SCVTF(d, n)         WORD $(0x4E21D800 | (n)<<5 | (d))           // whole numbers to floats
#define FCVTNS(d, n)        WORD $(0x4E21A800 | (n)<<5 | (d))           // to the nearest whole numbers, halves to the even one
#define SQXTNH(d, n)        WORD $(0x0E614800 | (n)<<5 | (d))           // 32 to 16 bits, the lower half of d
#define SQXTNH2(d, n)       WORD $(0x4E614800 | (n)<<5 | (d))           // the upper half
#define SQXTNB(d, n)        WORD $(0x0E214800 | (n)<<5 | (d))           // 16 to 8 bits, the lower half of d
#define SQXTNB2(d, n)       WORD $(0x4E214800 | (n)<<5 | (d))           // the upper half

// Lanes of SDOT: bits H and L of the instruction.
#define LANE0 0
#define LANE1 0x200000
#define LANE2 0x800
#define LANE3 0x200800

// Four inputs of four tokens with 16 outputs.
#define STEP(lane) \
	VLD1.P 64(R5), [V0.B16, V1.B16, V2.B16, V3.B16] \
	SDOT(lane, 16, 0, 4)  \
	SDOT(lane, 17, 1, 4)  \
	SDOT(lane, 18, 2, 4)  \
	SDOT(lane, 19, 3, 4)  \
	SDOT(lane, 20, 0, 5)  \
	SDOT(lane, 21, 1, 5)  \
	SDOT(lane, 22, 2, 5)  \
	SDOT(lane, 23, 3, 5)  \
	SDOT(lane, 24, 0, 6)  \
	SDOT(lane, 25, 1, 6)  \
	SDOT(lane, 26, 2, 6)  \
	SDOT(lane, 27, 3, 6)  \
	SDOT(lane, 28, 0, 7)  \
	SDOT(lane, 29, 1, 7)  \
	SDOT(lane, 30, 2, 7)  \
	SDOT(lane, 31, 3, 7)

// Four outputs of a token, from whole numbers to the result: acc * scale *
// xScale + bias.
#define RESULT(a, scale, bias) \
	SCVTF(a, a)         \
	FMUL(a, a, scale)   \
	FMUL(a, a, 8)       \
	FADD(a, a, bias)

// 16 outputs of a token.
#define FINISH(a, b, c, d) \
	VLD1R.P 4(R8), [V8.S4] \
	RESULT(a, 0, 4)        \
	RESULT(b, 1, 5)        \
	RESULT(c, 2, 6)        \
	RESULT(d, 3, 7)

// func tileNEON(t *tile)
//
// Four tokens, 16 outputs. Activations are bytes from -127 to 127.
TEXT ·tileNEON(SB), NOSPLIT, $0-8
	MOVD t+0(FP), R0
	MOVD TILE_X(R0), R1
	MOVD TILE_XSTEP(R0), R6
	ADD  R6, R1, R2
	ADD  R6, R2, R3
	ADD  R6, R3, R4
	MOVD TILE_W(R0), R5
	MOVD TILE_STEPS(R0), R7
	VEOR V16.B16, V16.B16, V16.B16
	VEOR V17.B16, V17.B16, V17.B16
	VEOR V18.B16, V18.B16, V18.B16
	VEOR V19.B16, V19.B16, V19.B16
	VEOR V20.B16, V20.B16, V20.B16
	VEOR V21.B16, V21.B16, V21.B16
	VEOR V22.B16, V22.B16, V22.B16
	VEOR V23.B16, V23.B16, V23.B16
	VEOR V24.B16, V24.B16, V24.B16
	VEOR V25.B16, V25.B16, V25.B16
	VEOR V26.B16, V26.B16, V26.B16
	VEOR V27.B16, V27.B16, V27.B16
	VEOR V28.B16, V28.B16, V28.B16
	VEOR V29.B16, V29.B16, V29.B16
	VEOR V30.B16, V30.B16, V30.B16
	VEOR V31.B16, V31.B16, V31.B16

tileStep:
	VLD1.P 16(R1), [V4.B16]
	VLD1.P 16(R2), [V5.B16]
	VLD1.P 16(R3), [V6.B16]
	VLD1.P 16(R4), [V7.B16]
	STEP(LANE0)
	STEP(LANE1)
	STEP(LANE2)
	STEP(LANE3)
	SUBS $4, R7, R7
	BNE  tileStep

	MOVD TILE_SCALE(R0), R1
	MOVD TILE_BIAS(R0), R2
	MOVD TILE_XSCALE(R0), R8
	MOVD TILE_Y(R0), R9
	MOVD TILE_YSTEP(R0), R10
	VLD1 (R1), [V0.B16, V1.B16, V2.B16, V3.B16]
	VLD1 (R2), [V4.B16, V5.B16, V6.B16, V7.B16]
	FINISH(16, 17, 18, 19)
	FINISH(20, 21, 22, 23)
	FINISH(24, 25, 26, 27)
	FINISH(28, 29, 30, 31)
	VST1 [V16.B16, V17.B16, V18.B16, V19.B16], (R9)
	ADD  R10, R9
	VST1 [V20.B16, V21.B16, V22.B16, V23.B16], (R9)
	ADD  R10, R9
	VST1 [V24.B16, V25.B16, V26.B16, V27.B16], (R9)
	ADD  R10, R9
	VST1 [V28.B16, V29.B16, V30.B16, V31.B16], (R9)
	RET

// The products of a query with one key: eight sums of four, in two registers,
// added in the order that AVX2 adds them.
#define SCORE(lo, hi) \
	MOVD R1, R5 \
	VLD1.P 64(R5), [V8.B16, V9.B16, V10.B16, V11.B16] \
	VLD1   (R5), [V12.B16, V13.B16, V14.B16, V15.B16] \
	FMUL(lo, 8, 0)  \
	FMUL(hi, 9, 1)  \
	FMLA(lo, 10, 2) \
	FMLA(hi, 11, 3) \
	FMLA(lo, 12, 4) \
	FMLA(hi, 13, 5) \
	FMLA(lo, 14, 6) \
	FMLA(hi, 15, 7) \
	ADD R2, R1

// func scoresNEON(q, k *float32, step, n int, out *float32)
//
// The products of one query of 32 numbers with n keys, n a multiple of four,
// that are step bytes apart.
TEXT ·scoresNEON(SB), NOSPLIT, $0-40
	MOVD q+0(FP), R0
	MOVD k+8(FP), R1
	MOVD step+16(FP), R2
	MOVD n+24(FP), R3
	MOVD out+32(FP), R4
	VLD1.P 64(R0), [V0.B16, V1.B16, V2.B16, V3.B16]
	VLD1 (R0), [V4.B16, V5.B16, V6.B16, V7.B16]

scoresStep:
	SCORE(16, 20)
	SCORE(17, 21)
	SCORE(18, 22)
	SCORE(19, 23)
	FADDP(16, 16, 17)
	FADDP(18, 18, 19)
	FADDP(16, 16, 18)
	FADDP(20, 20, 21)
	FADDP(22, 22, 23)
	FADDP(20, 20, 22)
	FADD(16, 16, 20)
	VST1.P [V16.B16], 16(R4)
	SUBS $4, R3, R3
	BNE  scoresStep
	RET

// func mixNEON(p, v *float32, step, n int, out *float32)
//
// The sum of n values of 32 numbers, step bytes apart, each times its share.
TEXT ·mixNEON(SB), NOSPLIT, $0-40
	MOVD p+0(FP), R0
	MOVD v+8(FP), R1
	MOVD step+16(FP), R2
	MOVD n+24(FP), R3
	MOVD out+32(FP), R4
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16

mixStep:
	VLD1R.P 4(R0), [V16.S4]
	MOVD R1, R5
	VLD1.P 64(R5), [V8.B16, V9.B16, V10.B16, V11.B16]
	VLD1 (R5), [V12.B16, V13.B16, V14.B16, V15.B16]
	FMLA(0, 8, 16)
	FMLA(1, 9, 16)
	FMLA(2, 10, 16)
	FMLA(3, 11, 16)
	FMLA(4, 12, 16)
	FMLA(5, 13, 16)
	FMLA(6, 14, 16)
	FMLA(7, 15, 16)
	ADD  R2, R1
	SUBS $1, R3, R3
	BNE  mixStep
	VST1.P [V0.B16, V1.B16, V2.B16, V3.B16], 64(R4)
	VST1 [V4.B16, V5.B16, V6.B16, V7.B16], (R4)
	RET

// func mostNEON(x *float32, n int) float32
//
// The largest absolute value of n numbers, n a multiple of 16.
TEXT ·mostNEON(SB), NOSPLIT, $0-20
	MOVD x+0(FP), R0
	MOVD n+8(FP), R1
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16

mostStep:
	VLD1.P 64(R0), [V4.B16, V5.B16, V6.B16, V7.B16]
	FABS(4, 4)
	FABS(5, 5)
	FABS(6, 6)
	FABS(7, 7)
	FMAX(0, 0, 4)
	FMAX(1, 1, 5)
	FMAX(2, 2, 6)
	FMAX(3, 3, 7)
	SUBS $16, R1, R1
	BNE  mostStep
	FMAX(0, 0, 1)
	FMAX(2, 2, 3)
	FMAX(0, 0, 2)
	FMAXV(0, 0)
	FMOVS F0, ret+16(FP)
	RET

// func bytesNEON(x *float32, n int, factor float32, into *byte)
//
// The nearest whole numbers to x * factor, n a multiple of 16.
TEXT ·bytesNEON(SB), NOSPLIT, $0-32
	MOVD x+0(FP), R0
	MOVD n+8(FP), R1
	FMOVS factor+16(FP), F8
	MOVD into+24(FP), R2
	VDUP V8.S[0], V8.S4

bytesStep:
	VLD1.P 64(R0), [V0.B16, V1.B16, V2.B16, V3.B16]
	FMUL(0, 0, 8)
	FMUL(1, 1, 8)
	FMUL(2, 2, 8)
	FMUL(3, 3, 8)
	FCVTNS(0, 0)
	FCVTNS(1, 1)
	FCVTNS(2, 2)
	FCVTNS(3, 3)
	SQXTNH(4, 0)
	SQXTNH2(4, 1)
	SQXTNH(5, 2)
	SQXTNH2(5, 3)
	SQXTNB(6, 4)
	SQXTNB2(6, 5)
	VST1.P [V6.B16], 16(R2)
	SUBS $16, R1, R1
	BNE  bytesStep
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
	FMUL(3, 3, 2)      \
	FADD(3, 3, factor)

// func expsNEON(x *float32, n int, most float32)
//
// e to the power of each of n numbers less most, n a multiple of 4. The steps are
// those of exp.
TEXT ·expsNEON(SB), NOSPLIT, $0-20
	MOVD  x+0(FP), R0
	MOVD  n+8(FP), R1
	FMOVS most+16(FP), F15
	VDUP  V15.S[0], V15.S4
	MOVD  $expNumbers<>(SB), R2
	VLD1R.P 4(R2), [V16.S4]
	VLD1R.P 4(R2), [V17.S4]
	VLD1R.P 4(R2), [V18.S4]
	VLD1R.P 4(R2), [V19.S4]
	VLD1R.P 4(R2), [V20.S4]
	VLD1R.P 4(R2), [V21.S4]
	VLD1R.P 4(R2), [V22.S4]
	VLD1R.P 4(R2), [V23.S4]
	VLD1R.P 4(R2), [V24.S4]
	VLD1R.P 4(R2), [V25.S4]

expsStep:
	VLD1 (R0), [V0.B16]
	FSUB(0, 0, 15)
	FCMGE(4, 0, 16)
	FMUL(0, 0, 17)
	FSUB(1, 0, 18)
	FCVTZS(1, 1)
	SCVTF(2, 1)
	FSUB(2, 0, 2)
	FMUL(2, 2, 19)
	FMUL(3, 2, 20)
	FADD(3, 3, 21)
	SERIES(22)
	SERIES(23)
	SERIES(18)
	SERIES(24)
	SERIES(24)
	VADD V25.S4, V1.S4, V1.S4
	VSHL $23, V1.S4, V1.S4
	FMUL(3, 3, 1)
	VAND V4.B16, V3.B16, V3.B16
	VST1.P [V3.B16], 16(R0)
	SUBS $4, R1, R1
	BNE  expsStep
	RET
