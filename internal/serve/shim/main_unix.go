//go:build linux || darwin

package shim

import (
	"errors"
	"os"
	"time"
)

// Supported says that ken mcp joins a daemon on this system.
const Supported = true

// Main is the shim's whole life: it serves stdin and stdout by the user's
// daemon, and returns the status to exit with. args are the flags of ken mcp,
// for the daemon to read.
//
// The status is 0 when the client closed its end, and 1 when no daemon could be
// reached. When the daemon goes away before that, the shim joins or starts
// another; see relay for what becomes of the session and of calls under way.
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
	build, made := Build()
	return carry(func() (*line, error) {
		s := starter{place: place, exe: self(), build: build, made: made, deadline: time.Now().Add(startWait)}
		return s.join(hello)
	})
}
