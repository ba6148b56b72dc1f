package vectors

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// lowPriority lets everything else that wants the processor go before the calling
// goroutine, until that ends. Its thread ends with it, as it cannot have its
// priority back without a permission.
func lowPriority() {
	const nice = 10
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), nice) // an ordinary priority will do
}
