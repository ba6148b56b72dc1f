package process

import (
	"context"
	"errors"
	"io/fs"

	"ken/capability"
	"ken/internal/run/executor"
)

var _ executor.Checker = (*Executor)(nil)

// Check says whether a program would not be started: it is not there, may not
// have what it needs, or its work directory is none.
func (e *Executor) Check(ctx context.Context, call capability.Call) (capability.Result, error) {
	p, _, err := e.granted(ctx, call)
	if err != nil {
		return capability.Result{}, err
	}
	work, err := e.work(call, p.extension, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return capability.Result{}, nil // Invoke makes it
	}
	if err != nil {
		return capability.Result{}, err
	}
	return capability.Result{}, work.Close()
}
