// Package pgerror makes errors of connections to PostgreSQL readable.
package pgerror

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Connect returns an error of the driver whose text has each cause of a failed
// connection once, on one line. The driver tries an address several times, with
// and without TLS, and repeats what all tries said. Every other error is returned
// as it is.
func Connect(err error) error {
	e, ok := errors.AsType[*pgconn.ConnectError](err)
	if !ok || e.Unwrap() == nil {
		return err
	}
	var causes []string
	for line := range strings.Lines(e.Unwrap().Error()) {
		line = strings.TrimSpace(line)
		if _, dial, found := strings.Cut(line, "dial error: "); found {
			line = dial // it has the address already
		}
		if line != "" && !slices.Contains(causes, line) {
			causes = append(causes, line)
		}
	}
	return &connectError{strings.Join(causes, "; "), e}
}

type connectError struct {
	text string
	err  error
}

func (e *connectError) Error() string { return e.text }
func (e *connectError) Unwrap() error { return e.err }
