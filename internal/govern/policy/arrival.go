package policy

import (
	"context"
	"time"
)

type arrivalKey struct{}

// Arriving returns the context of a call that came in at a moment. What was found out
// about the rules since then is good for deciding on this call. A zero time ends that
// for the calls that this one makes.
func Arriving(ctx context.Context, at time.Time) context.Context {
	return context.WithValue(ctx, arrivalKey{}, at)
}

// Arrived returns when the call of a context came in. It is zero if that is not known.
func Arrived(ctx context.Context) time.Time {
	at, _ := ctx.Value(arrivalKey{}).(time.Time)
	return at
}
