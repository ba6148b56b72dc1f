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
	"time"
)

// noIsolation is what this system gives: nothing but limits of time and output.
func noIsolation() Isolation {
	return Isolation{Profile: None, Cgroup: "none", Required: BestEffort, Missing: []string{
		"sandbox: " + runtime.GOOS + " has none here; only the environment, wall time and output are bounded"}}
}

func probed() Report { return Report{Isolation: noIsolation()} }

// Run runs one program to its end; see the package comment for what holds on
// this system. A requirement of any isolation is refused. Processes that a
// tool leaves behind may survive it.
func Run(ctx context.Context, spec Spec) (Outcome, error) {
	if err := ctx.Err(); err != nil {
		return Outcome{}, err
	}
	s, err := spec.filled()
	if err != nil {
		return Outcome{}, &Refusal{Layer: "spec", Cause: err}
	}
	iso := noIsolation()
	iso.Required = s.Require
	if layer := iso.unmet(); layer != "" {
		return Outcome{}, &Refusal{Layer: layer, Cause: errors.New(iso.Missing[0]), Isolation: iso,
			Fix: "run on Linux, or set isolation to best-effort or off"}
	}
	if s.Egress != nil {
		iso.Missing = append(iso.Missing, "egress: the network is not bounded")
	}
	if len(s.Protect) > 0 {
		iso.Missing = append(iso.Missing, "protect: nothing keeps the tool from changing "+strings.Join(s.Protect, ", "))
	}
	return runPlain(ctx, s, iso)
}

func runPlain(ctx context.Context, s Spec, iso Isolation) (Outcome, error) {
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if s.Limits.Wall > 0 {
		defer time.AfterFunc(s.Limits.Wall, func() { cancel(errWall) }).Stop()
	}
	var total atomic.Int64
	kept := [2]*capture{newCapture(s.Limits.Output), newCapture(s.Limits.Output)}
	var live *shared
	if s.Live != nil {
		live = &shared{w: s.Live}
	}
	cmd := exec.CommandContext(limited, s.Path)
	cmd.Args, cmd.Env, cmd.Dir, cmd.Stdin, cmd.WaitDelay = s.Args, s.Env, s.Dir, s.Stdin, 2*time.Second
	for i, own := range []io.Writer{s.Stdout, s.Stderr} {
		d := &drain{kept: kept[i], total: &total, stop: s.Limits.OutputStop, over: func() { cancel(errOutput) }}
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
	if s.Limits.Disk > 0 {
		go watchDisk(limited, s.Work, s.Limits.Disk, func() { cancel(errDisk) })
	}
	absent, start := s.absent(), time.Now()
	err := cmd.Run()
	if cmd.ProcessState == nil {
		return Outcome{}, &Refusal{Layer: "exec", Cause: err, Isolation: iso}
	}
	o := Outcome{End: Exited, ExitCode: cmd.ProcessState.ExitCode(), Duration: time.Since(start), Isolation: iso,
		Stdout: kept[0].output(), Stderr: kept[1].output(), Unfinished: errors.Is(err, exec.ErrWaitDelay), Made: s.made(absent)}
	o.Used.UserCPU, o.Used.SystemCPU = cmd.ProcessState.UserTime(), cmd.ProcessState.SystemTime()
	switch cause := context.Cause(limited); {
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
	return o, nil
}

var (
	errWall   = errors.New("wall time is over")
	errOutput = errors.New("too much output")
	errDisk   = errors.New("too much disk")
)
