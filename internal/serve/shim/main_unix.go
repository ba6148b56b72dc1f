//go:build linux || darwin

package shim

import (
	"errors"
	"io"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
)

// Supported says that ken mcp joins a daemon on this system.
const Supported = true

// Main is the shim's whole life: it serves stdin and stdout by the user's
// daemon, and returns the status to exit with. args are the flags of ken mcp,
// for the daemon to read.
//
// The status is 0 when the client closed its end, and 1 when the daemon could
// not be reached or went away before that. It does not connect again then: a
// session of MCP is a state of the daemon's, begun by a handshake that the
// shim would have to make in the client's name, and calls under way would be
// lost or made twice. The client knows what it asked; it starts a new shim.
func Main(args []string) (status int) {
	if err := serve(args); err != nil {
		os.Stderr.WriteString("ken: " + visible(err.Error()) + "\n")
		return 1
	}
	return 0
}

func serve(args []string) error {
	cwd, err := os.Getwd()
	if err != nil {
		return errors.New("find Ken's places: the working directory is gone; change to another directory")
	}
	place, err := Where(os.Getenv, cwd)
	if err != nil {
		return err
	}
	hello, lost, err := newHello(cwd, args, os.Environ())
	if err != nil {
		return err
	}
	for _, name := range lost {
		os.Stderr.WriteString("ken: not UTF-8, and so not known to the daemon: " + visible(name) + "\n")
	}
	s := starter{place: place, exe: self(), deadline: time.Now().Add(startWait)}
	s.build, s.made = Build()
	l, err := s.join(hello)
	if err != nil {
		return err
	}
	return l.pass()
}

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
	switch {
	case closed.Load() && (err == nil || gone(err)):
		return nil
	case err == nil || gone(err):
		return errors.New("the daemon (process " + strconv.Itoa(l.greeting.PID) + ") ended the connection; start this server again to have a new one")
	}
	return err
}

// copyBytes is io.Copy with a buffer of its own and no cleverness: it tells
// errors of the reader, nil at its end, from those of the writer.
func copyBytes(w io.Writer, r io.Reader) (wrote bool, err error) {
	buf := make([]byte, 64<<10)
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
