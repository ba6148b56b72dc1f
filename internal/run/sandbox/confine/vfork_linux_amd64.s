#include "textflag.h"

// func vfork() uintptr
//
// The child runs on our stack while we are suspended, and overwrites what lies
// below its caller's frame: our return address among it. It waits in a register.
TEXT ·vfork(SB),NOSPLIT|NOFRAME,$0-8
	MOVQ	$0x4111, DI // CLONE_VFORK | CLONE_VM | SIGCHLD
	MOVQ	$0, SI
	MOVQ	$0, DX
	MOVQ	$0, R10
	MOVQ	$0, R8
	MOVQ	$0, R9
	MOVQ	$56, AX // clone
	POPQ	R12
	SYSCALL
	PUSHQ	R12
	MOVQ	AX, ret+0(FP)
	RET
