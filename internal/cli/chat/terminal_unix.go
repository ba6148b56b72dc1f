//go:build unix

package chat

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readInput passes on what is read until stop is called or the input ends; then
// it closes the channel. When stop returns, the reading goroutine has ended.
func readInput(f *os.File) (input <-chan []byte, stop func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe to wake the reader: %w", err)
	}
	out, stopped := make(chan []byte), make(chan struct{})
	go func() {
		defer close(out)
		defer r.Close()
		for {
			if ok, err := readable(int(f.Fd()), int(r.Fd())); err != nil || !ok {
				return
			}
			b := make([]byte, 4096)
			n, err := f.Read(b)
			if n > 0 {
				select {
				case out <- b[:n]:
				case <-stopped:
					return
				}
			}
			if err != nil && !errors.Is(err, syscall.EINTR) && !errors.Is(err, syscall.EAGAIN) {
				return
			}
		}
	}()
	return out, func() {
		close(stopped)
		w.Close()
		for range out { // until the reader is gone
		}
	}, nil
}

// readable waits for input and reports whether it came before the other end of
// wake was closed.
func readable(in, wake int) (bool, error) {
	if max(in, wake) >= unix.FD_SETSIZE {
		return false, fmt.Errorf("wait for input: file descriptor %d is too large", max(in, wake))
	}
	for {
		var set unix.FdSet
		set.Set(in)
		set.Set(wake)
		_, err := unix.Select(max(in, wake)+1, &set, nil, nil, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, err
		case set.IsSet(wake):
			return false, nil
		case set.IsSet(in):
			return true, nil
		}
	}
}

// resized tells of new sizes of the terminal, until stop is called.
func resized() (<-chan os.Signal, func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGWINCH)
	return c, func() { signal.Stop(c) }
}

// stopping is how long it may take until the program stands still.
const stopping = 300 * time.Millisecond

// suspend stops the program as Ctrl-Z does, until it is taken up again. Where no
// shell is above it that could do so, nothing stops.
func suspend() error {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGCONT)
	defer signal.Stop(c)
	if err := syscall.Kill(0, syscall.SIGTSTP); err != nil {
		return fmt.Errorf("suspend: %w", err)
	}
	for range 2 { // the first wait may have been over while it stood still
		select {
		case <-c:
			return nil
		case <-time.After(stopping):
		}
	}
	return errors.New("suspend: no shell is there to resume it")
}
