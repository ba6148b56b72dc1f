#include "textflag.h"

// ADD adds eight numbers of a row, times the scale in Y8, to R.
#define ADD(AT, R, T) \
	VPMOVZXBD AT, T; \
	VPMULLD   Y8, T, T; \
	VPADDD    T, R, R

// func addRowsAVX2(sums *uint32, blocks int, rows *byte, terms *term, n int)
TEXT ·addRowsAVX2(SB), NOSPLIT, $0-40
	MOVQ sums+0(FP), DI
	MOVQ blocks+8(FP), BX
	MOVQ rows+16(FP), SI

block: // of 64 numbers
	MOVQ  terms+24(FP), DX
	MOVQ  n+32(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7

next:
	MOVQ         (DX), AX        // where the row begins
	VPBROADCASTD 8(DX), Y8       // the lower half of the scale, which is below 1<<16
	ADD(0(SI)(AX*1), Y0, Y9)
	ADD(8(SI)(AX*1), Y1, Y10)
	ADD(16(SI)(AX*1), Y2, Y11)
	ADD(24(SI)(AX*1), Y3, Y12)
	ADD(32(SI)(AX*1), Y4, Y9)
	ADD(40(SI)(AX*1), Y5, Y10)
	ADD(48(SI)(AX*1), Y6, Y11)
	ADD(56(SI)(AX*1), Y7, Y12)
	ADDQ         $16, DX
	DECQ         CX
	JNE          next

	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	VMOVDQU Y4, 128(DI)
	VMOVDQU Y5, 160(DI)
	VMOVDQU Y6, 192(DI)
	VMOVDQU Y7, 224(DI)
	ADDQ    $256, DI
	ADDQ    $64, SI
	DECQ    BX
	JNE     block
	VZEROUPPER
	RET
