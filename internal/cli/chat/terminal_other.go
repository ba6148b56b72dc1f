//go:build !unix

package chat

import (
	"errors"
	"os"
)

// readInput passes on what is read until stop is called or the input ends. The
// reader may stay behind after stop, and goes with the process.
func readInput(f *os.File) (input <-chan []byte, stop func(), err error) {
	out, stopped := make(chan []byte), make(chan struct{})
	go func() {
		defer close(out)
		for {
			b := make([]byte, 4096)
			n, err := f.Read(b)
			if n > 0 {
				select {
				case out <- b[:n]:
				case <-stopped:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return out, func() { close(stopped) }, nil
}

// resized tells nothing: there is no such signal here.
func resized() (<-chan os.Signal, func()) { return nil, func() {} }

func suspend() error { return errors.ErrUnsupported }
