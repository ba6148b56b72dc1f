//go:build !linux && !darwin

package shim

import (
	"errors"
	"os"
)

// Supported says that there is no daemon where the peer of a socket cannot be
// known: ken mcp always stands alone.
const Supported = false

const maxPath = 103

// errUnsupported says that there is no daemon on this system.
var errUnsupported = errors.New("the daemon is not supported on this system; use ken mcp --standalone")

// Main says that there is no daemon here.
func Main([]string) (status int) {
	os.Stderr.WriteString("ken: " + errUnsupported.Error() + "\n")
	return 1
}

// Peer cannot know.
func Peer(int) (uid, pid int, err error) { return -1, 0, errUnsupported }

// Ask finds no daemon.
func Ask(Place) (Greeting, error) { return Greeting{}, ErrAbsent }

// Retire finds no daemon, which is no error.
func Retire(Place) error { return nil }
