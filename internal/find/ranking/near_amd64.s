#include "textflag.h"

// How many bits are set in each number from 0 to 15.
DATA bitsOf<>+0(SB)/8, $0x0302020102010100
DATA bitsOf<>+8(SB)/8, $0x0403030203020201
GLOBL bitsOf<>(SB), RODATA|NOPTR, $16

DATA fours<>+0(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA fours<>+8(SB)/8, $0x0f0f0f0f0f0f0f0f
GLOBL fours<>(SB), RODATA|NOPTR, $16

// DIFFERENT leaves in each 64 bits of R how many of the row's bits there differ from
// the query's.
#define DIFFERENT(ROW, R, T) \
	VPXOR   ROW, Y15, R; \
	VPAND   Y13, R, T; \
	VPSRLW  $4, R, R; \
	VPAND   Y13, R, R; \
	VPSHUFB T, Y14, T; \
	VPSHUFB R, Y14, R; \
	VPADDB  T, R, R; \
	VPSADBW Y12, R, R

// func differentAVX2(page, query *uint64, distance *uint16)
TEXT ·differentAVX2(SB), NOSPLIT, $0-24
	MOVQ           page+0(FP), SI
	MOVQ           query+8(FP), DX
	MOVQ           distance+16(FP), DI
	VMOVDQU        (DX), Y15
	VBROADCASTI128 bitsOf<>(SB), Y14
	VBROADCASTI128 fours<>(SB), Y13
	VPXOR          Y12, Y12, Y12
	VPCMPEQW       X11, X11, X11
	VPSRLW         $15, X11, X11 // ones
	MOVQ           $16, CX

rows:
	DIFFERENT(0(SI), Y0, Y4)
	DIFFERENT(32(SI), Y1, Y5)
	DIFFERENT(64(SI), Y2, Y6)
	DIFFERENT(96(SI), Y3, Y7)

	// The counts of four rows side by side in each 64 bits, which are then added up.
	VPSLLQ       $16, Y1, Y1
	VPSLLQ       $32, Y2, Y2
	VPSLLQ       $48, Y3, Y3
	VPOR         Y1, Y0, Y0
	VPOR         Y3, Y2, Y2
	VPOR         Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDW       X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPADDW       X1, X0, X0
	VPADDW       X11, X0, X0
	VMOVQ        X0, (DI)

	ADDQ $128, SI
	ADDQ $8, DI
	DECQ CX
	JNE  rows
	VZEROUPPER
	RET
