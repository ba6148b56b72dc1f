//go:build !linux && !darwin

package daemon

import (
	"errors"

	"ken/internal/serve/shim"
)

// Listen fails: there is no daemon where the other end of a socket cannot be
// known.
func Listen(shim.Place) (*Listener, error) {
	return nil, errors.New("the daemon is not supported on this system; use ken mcp --standalone")
}

type fileID struct{}

func (l *Listener) letGo() error { return l.ln.Close() }
