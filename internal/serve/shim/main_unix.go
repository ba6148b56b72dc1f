//go:build linux || darwin

package shim

import (
	"errors"
	"os"
	"strconv"
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

// outcome says how a connection that was passed on has ended. closed: the client
// has closed its end; err is the socket's.
func (l *line) outcome(closed bool, err error) error {
	switch {
	case closed && (err == nil || gone(err)):
		return nil
	case err == nil || gone(err):
		return errors.New("the daemon (process " + strconv.Itoa(l.greeting.PID) + ") ended the connection; start this server again to have a new one")
	}
	return err
}

// copyRoom is the buffer of each direction.
const copyRoom = 64 << 10
