package sandbox

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Shield keeps other processes of the same user from reading the memory, the
// environment and the open files of this one, and from tracing it: it may hold
// secrets. It leaves no core file either. Programs that it starts are not shielded.
// A program does it first of all; nothing takes it back.
//
// The kernel gives the files of a shielded process in /proc to root. So only
// root can set up the user namespace of a process that a shielded one cloned, and
// the nest, which is not shielded and holds no secrets, clones the helpers.
func Shield() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("shield this process: %w", err)
	}
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return fmt.Errorf("shield this process: set the core file limit: %w", err)
	}
	core.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return fmt.Errorf("shield this process: set the core file limit: %w", err)
	}
	return nil
}

// shielded reports whether helpers must come from the nest.
func shielded() bool {
	if os.Getuid() == 0 {
		return false
	}
	yes, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	return err == nil && yes != 1
}
