package store

import (
	"errors"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// ConnectError returns an error of the driver whose text has each cause of a failed
// connection once, on one line. The driver tries an address several times, with
// and without TLS, and repeats what all tries said. Every other error is returned
// as it is.
func ConnectError(err error) error {
	if pooler := PoolerError(err); pooler != nil {
		return pooler
	}
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
	return &shortError{strings.Join(causes, "; "), e}
}

// PoolerError returns an error that says that a connection pooler, such as PgBouncer,
// refused the settings of a session, or nil if err is about something else. Ken
// relies on these settings, so a pooler that leaves them out is of no use.
func PoolerError(err error) error {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || !strings.HasPrefix(e.Message, "unsupported startup parameter") {
		return nil
	}
	return &shortError{"a connection pooler such as PgBouncer answers, and does not pass settings on (" + e.Message + "); name the PostgreSQL server itself", err}
}

type shortError struct {
	text string
	err  error
}

func (e *shortError) Error() string { return e.text }
func (e *shortError) Unwrap() error { return e.err }
