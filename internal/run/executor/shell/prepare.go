package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"ken/capability"
	"ken/internal/run/executor"
)

var _ executor.Checker = (*Executor)(nil)

// A prepared line is one that nothing stands against, as far as can be told
// without running it.
type prepared struct {
	request
	argv    []string
	program executor.Program
	work    *os.Root // to be closed
	env     []string
}

// prepare looks for all that a line needs. Where the program is missing it gives
// the result that says so.
func (e *Executor) prepare(call capability.Call, get func(string) (string, bool)) (p prepared, missing capability.Result, err error) {
	if p.request, err = e.read(call); err != nil {
		return p, missing, err
	}
	if e.cfg.Guard != nil {
		if err := e.cfg.Guard(call); err != nil {
			return p, missing, err
		}
	}
	p.argv = []string{"/bin/sh", "-c", p.cmd}
	if p.settings.Mode == Allowlist {
		p.argv = p.line.commands[0]
	}
	if p.program, err = e.programs.Find(p.argv[0]); err != nil {
		return p, failed(p.argv[0], err), nil
	}
	env, refused := executor.Environment(e.programs.List(), e.cfg.Env, get)
	if p.env = env; len(refused) > 0 {
		return p, missing, denied(call, "shell.env", fmt.Errorf("variable %s controls which code a program loads, so Ken never passes it on", refused[0]), "take it off the list")
	}
	p.work, err = e.open(call, p.cwd)
	return p, missing, err
}

// Check says whether a line must fail before it starts: no such program, no such
// folder, or a folder that no program is given. It reads no variable.
func (e *Executor) Check(_ context.Context, call capability.Call) (capability.Result, error) {
	p, missing, err := e.prepare(call, nil)
	if p.work != nil {
		p.work.Close()
	}
	return missing, err
}

// failed is what a model reads when there is no such program.
func failed(name string, err error) capability.Result {
	text := err.Error()
	if builtin(name) {
		text = name + " is a shell built-in, and no shell runs this line; use cwd to choose a folder"
	}
	return capability.Result{Failed: true, Parts: []capability.Part{{Text: text}}, Meta: map[string]string{"end": "not-started", "tool": "shell", "truncated": "false"}}
}

func builtin(name string) bool {
	switch name {
	case "cd", "export", "source", ".", "alias", "set", "unset", "eval", "exec", "exit", "ulimit", "umask", "type", "trap", "read", "history", "pushd", "popd", "wait", "jobs", "fg", "bg":
		return true
	}
	return false
}

// open opens the folder that a command may write to: the workspace, or the one
// that a call names outside it. A folder of the workspace must be there, and no
// link lead to it.
func (e *Executor) open(call capability.Call, cwd string) (*os.Root, error) {
	var work *os.Root
	var err error
	if filepath.IsAbs(cwd) {
		work, err = os.OpenRoot(cwd)
	} else if work, err = executor.OpenDir(e.root, cwd, 0); err == nil && cwd != "." {
		work.Close()
		work, err = e.root.OpenRoot(".")
	}
	if err != nil {
		if link, ok := errors.AsType[*executor.LinkError](err); ok {
			return nil, denied(call, "tools.shell.allowAnyCwd", link, "name the folder itself")
		}
		return nil, executor.BadArguments(call, errors.New("cwd is not a folder that can be opened"), "name a folder of the workspace")
	}
	return work, nil
}
