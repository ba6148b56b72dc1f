package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/run/executor"
	"ken/internal/run/sandbox"
)

// A plan is a call made out: all that is needed to run it.
type plan struct {
	capability *capability.Capability
	extension  string
	argv       []string
	program    executor.Program
	env        []string
	limits     sandbox.Limits
	ok         []int
	dir        string // of the package, where the program is the package's own
	input      []byte // what the program reads; nil: nothing
}

func (p *plan) describe(meta map[string]string) {
	meta["tool"] = filepath.Base(p.program.Path)
	meta["program"] = p.program.Path
	meta["program_sha256"] = p.program.SHA256
	meta["args_count"] = strconv.Itoa(len(p.argv) - 1)
	meta["work_dir"] = p.extension + "/work"
	meta["extension_id"] = p.extension
}

// named returns the files of the workspace that arguments name, alone or behind
// an equals sign. What a program makes of its arguments is unknown; what is
// there by that name it may well mean.
func (e *Executor) named(args []string, write bool) []executor.Path {
	if e.cfg.Workspace == "" {
		return nil
	}
	var out []executor.Path
	for _, arg := range args {
		if _, value, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = value
		}
		if filepath.IsAbs(arg) {
			rel, err := filepath.Rel(e.cfg.Workspace, arg)
			if err != nil {
				continue
			}
			arg = rel
		}
		if !filepath.IsLocal(arg) || len(arg) > 4096 {
			continue
		}
		if _, err := os.Lstat(filepath.Join(e.cfg.Workspace, arg)); err == nil && arg != "." {
			out = append(out, executor.Path{Name: filepath.ToSlash(filepath.Clean(arg)), Write: write})
		}
	}
	return out
}

// code returns what decides what a plan does. Scripts are looked up in the folders
// where the program may start.
func (e *Executor) code(p *plan) executor.Code {
	dirs := []string{filepath.Join(e.cfg.Extensions, p.extension, "work")}
	if e.cfg.Workspace != "" {
		dirs = append(dirs, e.cfg.Workspace)
	}
	if p.dir != "" {
		dirs = append(dirs, p.dir)
	}
	return e.programs.Code(executor.Task{Commands: [][]string{p.argv}, Dirs: dirs})
}

// gitRuns returns what makes git in a plan's command run programs of the
// project.
func (e *Executor) gitRuns(p *plan) string {
	top := filepath.Join(e.cfg.Extensions, p.extension, "work")
	dirs := []string{top}
	if e.cfg.Workspace != "" {
		top, dirs = e.cfg.Workspace, append(dirs, e.cfg.Workspace)
	}
	return executor.GitPrograms([][]string{p.argv}, top, dirs...)
}

// args counts the arguments that the command was given, without its action.
func (p *plan) args() int {
	n := len(p.argv) - 1
	if run := p.capability.Run; len(run.Argv) == 0 && run.Action != "" {
		n--
	}
	return n
}

func (e *Executor) plan(ctx context.Context, call capability.Call) (*plan, error) {
	c, detail, err := e.cfg.Lookup(ctx, call.Target)
	if err != nil {
		return nil, err
	}
	if call.CapabilityHash != "" && call.CapabilityHash != c.Hash {
		return nil, executor.Outdated("run", call)
	}
	invalid := func(err error, fix string) error {
		return &capability.Error{Kind: capability.Invalid, Op: "build the command of", Target: string(call.Target), Err: err, Fix: fix}
	}
	if c.Run == nil || !strings.HasPrefix(c.Run.Runner, "exec.") {
		return nil, invalid(errors.New("missing runner"), "add runner: to its manifest, as in runner: exec.git")
	}
	p := &plan{capability: c, limits: e.limits(c.Run), ok: c.Run.OKStatus}
	if p.extension, err = executor.WorkName(c); err != nil {
		return nil, invalid(err, "rename the extension")
	}
	s, err := e.schema(c, detail.Schema)
	switch {
	case err == nil && c.Run.Input != "":
		p.argv, p.input, err = s.input(c, call.Arguments)
	case err == nil:
		p.argv, err = s.argv(c, call.Arguments)
	}
	if err != nil {
		return nil, executor.BadArguments(call, err, "")
	}
	find := e.programs.Find
	program := p.argv[0]
	if c.Run.Program != "" {
		if program, err = e.own(call, p); err != nil {
			return nil, err
		}
		if program != p.argv[0] { // a file of the package
			find = e.inside.Find
		}
	}
	if p.program, err = find(program); err != nil {
		fix := "install the program, or correct the manifest's runner"
		if closed, ok := errors.AsType[*sandbox.ClosedError](err); ok {
			fix = closed.Fix()
		}
		return nil, &capability.Error{Kind: capability.Unavailable, Op: "run", Target: string(call.Target), Err: err, Fix: fix}
	}
	if pin := c.Run.ProgramSHA256; pin != "" && !strings.EqualFold(pin, p.program.SHA256) {
		return nil, &capability.Error{Kind: capability.Denied, Op: "run", Target: string(call.Target), Rule: "program_sha256",
			Err: errors.New("the installed program differs from the one pinned in the manifest"), Fix: "review the program, then correct the manifest"}
	}
	if p.env, err = e.environment(c); err != nil {
		return nil, invalid(err, "take it out of env_extras or env_values")
	}
	return p, nil
}

// limits lowers the caps to what a recipe asks for.
func (e *Executor) limits(r *capability.Recipe) sandbox.Limits {
	l := e.cfg.Limits
	if t := time.Duration(r.TimeoutSec) * time.Second; t > 0 {
		l.Wall = min(l.Wall, t)
	}
	if n := int64(r.MaxOutputSize); n > 0 {
		l.Output = min(l.Output, n)
	}
	return l
}
