//go:build !unix

package chat

import (
	"errors"
	"os"
)

// readInput passes on what is read until the input ends. The reader stays
// behind when stop is closed, and goes with the process.
func readInput(f *os.File, stop <-chan struct{}) (<-chan []byte, error) {
	out := make(chan []byte)
	go func() {
		defer close(out)
		for {
			b := make([]byte, 4096)
			n, err := f.Read(b)
			if n > 0 {
				select {
				case out <- b[:n]:
				case <-stop:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	return out, nil
}

// resized tells nothing: there is no such signal here.
func resized() (<-chan os.Signal, func()) { return nil, func() {} }

func suspend() error { return errors.ErrUnsupported }
