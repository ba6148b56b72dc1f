package output

import (
	"io"

	"ken/internal/untrusted"
)

// Live passes the output of a running call on as it comes. On a terminal it
// removes what the terminal would act on.
type Live struct {
	W     io.Writer
	Clean bool   // W is a terminal
	Err   *Live  // standard error of the call; nil if this is it
	Begun func() // called before the first output

	written bool
	newline bool // the last byte was one
}

// Stderr makes it a capability.Streams.
func (l *Live) Stderr() io.Writer { return l.Err }

// Shown reports whether anything was printed, on either stream.
func (l *Live) Shown() bool { return l != nil && (l.written || l.Err.written) }

// Unfinished reports whether the last line on the terminal has no end.
func (l *Live) Unfinished() bool { return l != nil && l.Clean && l.written && !l.newline }

// Write implements [io.Writer].
func (l *Live) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if !l.written {
		l.Begun()
	}
	l.written, l.newline = true, b[len(b)-1] == '\n'
	if !l.Clean {
		return l.W.Write(b)
	}
	if _, err := io.WriteString(l.W, untrusted.Terminal(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
