package cli

import (
	"io"

	"ken/internal/untrusted"
)

// liveOutput passes output on as it comes: to a terminal without what it would
// act on, anywhere else as it is.
type liveOutput struct {
	w       io.Writer
	clean   bool
	err     *liveOutput // nil: of standard error itself
	begun   func()      // called before the first output
	written bool
	newline bool // the last byte was one
}

// Stderr makes it a capability.Streams.
func (l *liveOutput) Stderr() io.Writer { return l.err }

func (l *liveOutput) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if !l.written {
		l.begun()
	}
	l.written, l.newline = true, b[len(b)-1] == '\n'
	if !l.clean {
		return l.w.Write(b)
	}
	if _, err := io.WriteString(l.w, untrusted.Terminal(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
