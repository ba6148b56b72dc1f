package wholefile

import (
	"errors"
	"time"
)

// ErrHeld is in the error of a lock that others held for all the time that one
// was ready to wait. It is right to try again.
var ErrHeld = errors.New("another program holds the lock")

// pause is how long those who wait for a lock look away.
const pause = 5 * time.Millisecond
