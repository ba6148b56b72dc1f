package shim

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
)

// pass copies until both directions have ended. The daemon's first line says
// whether we are served at all.
func (l *line) pass() error {
	// Through a descriptor of its own: a write to a closed stdout is an error
	// to end on then, not a signal that kills.
	out, err := syscall.Dup(1)
	if err != nil {
		return err
	}
	syscall.CloseOnExec(out)
	stdout := os.NewFile(uintptr(out), "stdout")

	var closed atomic.Bool // by the client
	go func() {
		// A stdin that breaks has ended too.
		if wrote, _ := copyBytes(l.file, os.Stdin); wrote {
			closed.Store(true)
			syscall.Shutdown(l.fd, syscall.SHUT_WR)
			// Whoever reads the last answers may go before they come.
			if hungUp(out) {
				os.Exit(0)
			}
		}
	}()
	b, rest, err := readLine(l.file, MaxReply)
	if err == nil {
		var r Reply
		if r, err = parseReply(b); err == nil && !r.OK {
			return errors.New(r.Error)
		}
	}
	if err == nil {
		if _, err := stdout.Write(rest); err != nil {
			return nil // the client is gone
		}
		var wrote bool
		if wrote, err = copyBytes(stdout, l.file); !wrote {
			return nil
		}
	}
	return l.outcome(closed.Load(), err)
}

// copyBytes is io.Copy with a buffer of its own and no cleverness: it tells
// errors of the reader, nil at its end, from those of the writer.
func copyBytes(w io.Writer, r io.Reader) (wrote bool, err error) {
	buf := make([]byte, copyRoom)
	for {
		n, rerr := r.Read(buf)
		if n > 0 {
			if _, err := w.Write(buf[:n]); err != nil {
				return false, err
			}
		}
		if rerr == io.EOF {
			return true, nil
		}
		if rerr != nil {
			return true, rerr
		}
	}
}
