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
			Err: errors.New("its arguments hold a secret that Ken knows (" + strings.Join(found, ", ") + "), and they are stored in the clear"),
			Fix: "leave it out, and let the capability declare the secret: it is given to the program then",
		}
	}
	return nil
}
