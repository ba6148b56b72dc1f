package files

import (
	"context"

	"ken/capability"
	"ken/internal/run/executor"
)

var _ executor.Checker = (*Executor)(nil)

// Check says whether a change must fail: the file is not what was read, the diff
// does not fit it, or a link, a folder or something else that is no plain file
// is in the way. It does not wait for a call that writes.
func (e *Executor) Check(ctx context.Context, call capability.Call) (capability.Result, error) {
	t, err := find(call)
	if err != nil || t.check == nil {
		return capability.Result{}, err
	}
	return e.carry(ctx, call, t.name, t.check)
}

func (e *Executor) checkWrite(_ context.Context, call capability.Call) (capability.Result, error) {
	in, p, err := e.writeInput(call)
	if err != nil {
		return capability.Result{}, err
	}
	if _, err := e.expected(in, p); err != nil {
		return trouble("write", p, err)
	}
	return capability.Result{}, nil
}

func (e *Executor) checkDiff(ctx context.Context, call capability.Call) (capability.Result, error) {
	in, changes, err := e.diffInput(call)
	if err != nil {
		return capability.Result{}, err
	}
	_, why, err := e.prepareAll(ctx, changes, in.Expect)
	return why, err
}
