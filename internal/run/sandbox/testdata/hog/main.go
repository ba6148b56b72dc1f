// Command hog uses memory in the way that its arguments name, waits, and prints
// "done":
//
//	hog KIND MEGABYTES WAIT OWNER
//
// A segment of kind sysv outlives it. That is longer by OWNER bytes, so that its
// owner knows it.
//
// It is a program of its own so that the race detector, which reserves memory for
// its bookkeeping, is not part of what a limit must hold.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("done")
}

func run(args []string) error {
	if len(args) != 4 {
		return fmt.Errorf("usage: hog KIND MEGABYTES WAIT OWNER")
	}
	mb, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	wait, err := time.ParseDuration(args[2])
	if err != nil {
		return err
	}
	owner, err := strconv.Atoi(args[3])
	if err != nil {
		return err
	}
	if err := use(args[0], mb, owner); err != nil {
		return err
	}
	time.Sleep(wait)
	return nil
}

func use(kind string, mb, owner int) error {
	switch kind {
	case "private", "shared":
		flags := unix.MAP_ANON | unix.MAP_PRIVATE
		if kind == "shared" {
			flags = unix.MAP_ANON | unix.MAP_SHARED
		}
		b, err := unix.Mmap(-1, 0, mb<<20, unix.PROT_READ|unix.PROT_WRITE, flags)
		if err != nil {
			return err
		}
		touch(b)
	case "memfd":
		fd, err := unix.MemfdCreate("hog", 0)
		if err != nil {
			return err
		}
		block := make([]byte, 1<<20)
		for range mb {
			if _, err := unix.Write(fd, block); err != nil {
				return err
			}
		}
	case "sysv":
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, mb<<20+owner, unix.IPC_CREAT|0o600)
		if err != nil {
			return err
		}
		b, err := unix.SysvShmAttach(id, 0, 0)
		if err != nil {
			return err
		}
		touch(b)
		return unix.SysvShmDetach(b)
	case "six": // processes, each alone within the limit
		ended := make(chan error, 6)
		for range 6 {
			c := exec.Command("/proc/self/exe", "private", strconv.Itoa(mb/6), os.Args[3], os.Args[4])
			c.Stderr = os.Stderr
			if err := c.Start(); err != nil {
				return err
			}
			go func() { ended <- c.Wait() }()
		}
		for range 6 {
			if err := <-ended; err != nil { // the kernel may kill one of them only
				return err
			}
		}
	default:
		return fmt.Errorf("unknown kind of memory %q", kind)
	}
	return nil
}

// touch writes to every page, so that it is really there.
func touch(b []byte) {
	for i := 0; i < len(b); i += 4096 {
		b[i] = 1
	}
}
