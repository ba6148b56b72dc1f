package store

import (
	"errors"
	"fmt"
	"strings"
)

// The kinds of failure, for errors.Is. The text around them names the store,
// the cause and what to do.
var (
	// ErrConflict is the kind of every [Conflict].
	ErrConflict = errors.New("the key is not as expected")
	// ErrInvalid: a key, value, batch or address that no store takes.
	ErrInvalid = errors.New("not valid")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
	// ErrBusy: other processes kept the store locked for too long. Nothing was
	// written; it is right to try again.
	ErrBusy = errors.New("the store is locked by another process")
	// ErrFull: there is no room left. Nothing was written.
	ErrFull = errors.New("the disk is full")
	// ErrReadOnly: this process may read the store but not write it.
	ErrReadOnly = errors.New("the store is read-only")
	// ErrUnavailable: the store cannot be reached. Nothing was written.
	ErrUnavailable = errors.New("the store cannot be reached")
	// ErrUncertain: contact was lost while writing, and whether the batch is
	// there could not be found out. Read the keys before going on.
	ErrUncertain = errors.New("the outcome is not known")
	// ErrDamaged: what is stored is not a store, or no longer one.
	ErrDamaged = errors.New("the store is damaged")
	// ErrNewer: a newer version of Ken has changed the store's tables.
	ErrNewer = errors.New("the store was written by a newer version of Ken")
	// ErrRestored: the store is older than this process has seen it: it was put back to
	// an earlier state. Nothing was written.
	ErrRestored = errors.New("the store was put back to an earlier state")
	// ErrLagged ends a Watch that fell so far behind that deletions it has not
	// seen were swept away. Watch again from the start.
	ErrLagged = errors.New("the watch fell too far behind")
)

// A Conflict is a precondition that did not hold; nothing of its batch was
// written. It is found with errors.As, and is [ErrConflict].
type Conflict struct {
	Key  string // or the prefix of [Batch.AtMost], which ends in a slash
	Want int64  // the version asked for; 0: absent. With a prefix: how many keys may be there
	Have int64  // the version there is; 0: absent. With a prefix: how many keys are there
}

func (c *Conflict) Error() string {
	switch {
	case strings.HasSuffix(c.Key, "/"):
		return fmt.Sprintf("%d keys begin with %s, at most %d were expected; read them and decide again", c.Have, c.Key, c.Want)
	case c.Want == 0:
		return fmt.Sprintf("the key %s is already there, at version %d; read it and decide again", c.Key, c.Have)
	case c.Have == 0:
		return fmt.Sprintf("the key %s is not there, version %d was expected; read it and decide again", c.Key, c.Want)
	}
	return fmt.Sprintf("the key %s is at version %d, version %d was expected; read it and decide again", c.Key, c.Have, c.Want)
}

// Is makes every Conflict an [ErrConflict].
func (c *Conflict) Is(target error) bool { return target == ErrConflict }

// cause is an error of a kind with what was underneath and the mend.
func cause(kind, err error, mend string) error {
	if err == nil {
		return fmt.Errorf("%w; %s", kind, mend)
	}
	return fmt.Errorf("%w: %w; %s", kind, err, mend)
}

// hasKind says that an error was already given its kind.
func hasKind(err error) bool {
	for _, kind := range []error{ErrClosed, ErrBusy, ErrFull, ErrReadOnly, ErrUnavailable, ErrUncertain, ErrDamaged, ErrNewer, ErrRestored} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
