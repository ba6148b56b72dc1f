#include "textflag.h"

// func vfork() uintptr
//
// The return address is in a register: nothing of ours is on the stack that
// the child could overwrite.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-8
	MOVD	$0x4111, R0 // CLONE_VFORK | CLONE_VM | SIGCHLD
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	MOVD	$220, R8 // clone
	SVC
	MOVD	R0, ret+0(FP)
	RET
