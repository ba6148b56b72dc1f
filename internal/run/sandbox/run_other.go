//go:build !linux

package sandbox

import (
	"context"
	"errors"
	"io"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// noIsolation is what this system gives: nothing but limits of time and output.
func noIsolation() Isolation {
	return Isolation{Profile: None, Cgroup: "none", Required: BestEffort, Missing: []string{
		"sandbox: " + runtime.GOOS + " has none here; only the environment, wall time and output are bounded"}}
}

func probed() Report { return Report{Isolation: noIsolation()} }

// Start starts one program and returns once it runs. Ctx is for the whole of
// its life: when it ends, the tool is stopped as [Limits.Grace] says.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := spec.filled()
	if err != nil {
		return nil, &Refusal{Layer: "spec", Cause: err}
	}
	iso := noIsolation()
	iso.Required = s.Require
	if layer := iso.unmet(); layer != "" {
		return nil, &Refusal{Layer: layer, Cause: errors.New(iso.Missing[0]), Isolation: iso,
			Fix: "run on Linux, or set sandbox.require to best-effort or off"}
	}
	if s.Egress != nil {
		iso.Missing = append(iso.Missing, "egress: the network is not bounded")
	}
	if len(s.Protect) > 0 {
		iso.Missing = append(iso.Missing, "protect: nothing keeps the tool from changing "+strings.Join(s.Protect, ", "))
	}
	if len(s.Mask) > 0 {
		iso.Missing = append(iso.Missing, "mask: nothing keeps the tool from reading "+strings.Join(s.Mask, ", "))
	}
	if len(s.Open.Hide) > 0 {
		iso.Missing = append(iso.Missing, "hide: nothing keeps the tool from "+strings.Join(s.Open.Hide, ", "))
	}
	return startPlain(ctx, s, iso)
}

// A plain is a run that nothing holds but its limits.
type plain struct {
	spec    Spec
	iso     Isolation
	cmd     *exec.Cmd
	limited context.Context
	kept    [2]*capture
	absent  []string
	begun   time.Time
}

func startPlain(ctx context.Context, s Spec, iso Isolation) (*Process, error) {
	limited, cancel := context.WithCancelCause(ctx)
	r := &plain{spec: s, iso: iso, limited: limited, absent: s.absent()}
	r.command(cancel)
	r.begun = time.Now()
	if err := r.cmd.Start(); err != nil {
		cancel(nil)
		return nil, &Refusal{Layer: "exec", Cause: err, Isolation: iso}
	}
	p := &Process{pid: r.cmd.Process.Pid, isolation: iso, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer cancel(nil)
		if s.Limits.Wall > 0 {
			defer time.AfterFunc(s.Limits.Wall, func() { cancel(errWall) }).Stop()
		}
		if s.Limits.Disk > 0 {
			go watchDisk(limited, s.Work, s.Limits.Disk, func() { cancel(errDisk) })
		}
		p.outcome = r.judge(r.cmd.Wait())
	}()
	return p, nil
}

// command makes the command and its streams.
func (r *plain) command(cancel context.CancelCauseFunc) {
	s := r.spec
	total := new(atomic.Int64)
	r.kept = [2]*capture{newCapture(s.Limits.Output), newCapture(s.Limits.Output)}
	var live *shared
	if s.Live != nil {
		live = &shared{w: s.Live}
	}
	cmd := exec.CommandContext(r.limited, s.Path)
	r.cmd = cmd
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdin, cmd.WaitDelay = s.Args, s.Env, s.Dir, s.Stdin, 2*time.Second
	if s.StdinFile != nil {
		cmd.Stdin = s.StdinFile
	}
	if s.Limits.Grace > 0 {
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		cmd.WaitDelay = s.Limits.Grace // and then it is killed
	}
	for i, own := range []io.Writer{s.Stdout, s.Stderr} {
		d := &drain{kept: r.kept[i], total: total, stop: s.Limits.OutputStop, over: func() { cancel(errOutput) }}
		if live != nil {
			d.to = append(d.to, live)
		}
		if own != nil {
			d.to = append(d.to, own)
		}
		if i == 0 {
			cmd.Stdout = d
		} else {
			cmd.Stderr = d
		}
	}
	if s.StdoutFile != nil {
		cmd.Stdout = s.StdoutFile
	}
}

// judge tells how it ended.
func (r *plain) judge(err error) Outcome {
	state := r.cmd.ProcessState
	o := Outcome{End: Exited, ExitCode: state.ExitCode(), Duration: time.Since(r.begun), Isolation: r.iso,
		Stdout: r.kept[0].output(), Stderr: r.kept[1].output(), Unfinished: errors.Is(err, exec.ErrWaitDelay), Made: r.spec.made(r.absent)}
	o.Used.UserCPU, o.Used.SystemCPU = state.UserTime(), state.SystemTime()
	switch cause := context.Cause(r.limited); {
	case cause == nil && o.ExitCode < 0:
		o.End = Signalled
	case errors.Is(cause, errWall):
		o.End, o.Limit, o.ExitCode = TimedOut, "wall", -1
	case errors.Is(cause, errOutput):
		o.End, o.Limit, o.ExitCode = OverOutput, "output", -1
	case errors.Is(cause, errDisk):
		o.End, o.Limit, o.ExitCode = OverDisk, "disk", -1
	case cause != nil:
		o.End, o.ExitCode = Cancelled, -1
	}
	return o
}

var (
	errWall   = errors.New("wall time is over")
	errOutput = errors.New("too much output")
	errDisk   = errors.New("too much disk")
)
