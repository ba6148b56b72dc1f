package runner

import (
	"context"
	"errors"
	"strings"

	"ken/capability"
)

// CheckStored says what is wrong with a call that is to be stored and made later,
// as far as that does not change: whether its arguments fit, and that they hold
// no secret that Ken knows. Nothing is decided, recorded or called. The call is
// checked in full when it is made.
func (r *Runner) CheckStored(ctx context.Context, call capability.Call) error {
	call, t, err := r.resolve(ctx, call)
	if err != nil {
		return err
	}
	if _, err := r.validate(ctx, call, t, r.bounds(), &notes{}); err != nil {
		return err
	}
	if found := r.secrets.named(call.Arguments); len(found) > 0 {
		return &capability.Error{
			Kind: capability.Denied, Op: "store call of", Target: string(call.Target),
			Err: errors.New("the arguments contain a secret that Ken knows (" + strings.Join(found, ", ") + "), and stored arguments are not encrypted"),
			Fix: "remove the value and declare the secret in the capability; Ken then passes it to the program",
		}
	}
	return nil
}
