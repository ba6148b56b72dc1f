package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ken/internal/run/sandbox/confine"
)

const (
	// sweepTime is how long a helper without namespaces may take to kill
	// everything before it is killed itself.
	sweepTime = 2 * time.Second
	// drainTime is how long output is waited for once the tool is gone.
	drainTime = 2 * time.Second
)

// supervise sees a started helper through to its end.
func (r *run) supervise(ctx context.Context) (Outcome, error) {
	said := make(chan confine.Message)
	go r.hear(said)
	watch, stopWatch := context.WithCancel(ctx)
	defer stopWatch()
	if limit := r.spec.Limits.Disk; limit > 0 {
		go watchDisk(watch, r.spec.Work, limit, func() { r.tooMuch(OverDisk) })
	}
	c := r.follow(ctx, said)
	duration := time.Since(r.begun)
	stopWatch()
	var state *os.ProcessState
	starved := r.group.starved()
	if c.ended == nil {
		state = r.bury()
		starved = starved || r.group.starved()
	} else {
		go r.bury() // its namespaces take their time
	}
	r.buried = true
	go drop(said)
	switch {
	case c.failed != nil:
		return Outcome{}, r.explain(c.failed)
	case !c.started && c.end == "":
		return Outcome{}, r.refusal("helper", fmt.Errorf("ended before the tool began: %v", state))
	}
	// Stopped before it could say so, the tool may have started all the same:
	// that is an outcome too.
	o := Outcome{End: c.end, ExitCode: -1, Duration: duration, Isolation: r.iso, Made: r.spec.made(r.absent)}
	o.Unfinished = !r.drain()
	o.Stdout, o.Stderr = r.streams.kept[0].output(), r.streams.kept[1].output()
	r.judge(&o, c.ended, state, starved)
	return o, nil
}

// A course is how a run went: what the helper said of it, and why it was
// stopped, if it was.
type course struct {
	started bool
	failed  *confine.Failed
	ended   *confine.Ended
	end     End
}

// follow listens to the helper until it has no more to say, and stops the tool
// when its time, its room or ctx ends.
func (r *run) follow(ctx context.Context, said <-chan confine.Message) (c course) {
	var wall <-chan time.Time
	if r.spec.Limits.Wall > 0 {
		t := time.NewTimer(r.spec.Limits.Wall)
		defer t.Stop()
		wall = t.C
	}
	var (
		last <-chan time.Time // when patience ends
		done = ctx.Done()
		over = r.over
	)
	stop := func(why End) {
		c.end = why
		done, wall, over = nil, nil, nil
		last = r.stop(r.spec.Limits.Grace)
	}
	for {
		select {
		case m, ok := <-said:
			switch {
			case !ok:
				return c
			case m.Failed != nil:
				c.failed = m.Failed
			case m.Started != nil:
				c.started = true
				r.begins(m.Started)
			case m.Ended != nil:
				c.ended = m.Ended
				return c // all are dead but the helper
			}
		case <-done:
			stop(Cancelled)
		case <-wall:
			stop(TimedOut)
		case why := <-over:
			stop(why)
		case <-last:
			last = r.kill()
		}
	}
}

// begins notes what holds the tool, which runs from now on.
func (r *run) begins(s *confine.Started) {
	r.iso.LandlockABI, r.iso.Seccomp = s.LandlockABI, s.Seccomp
	r.iso.Missing = slices.Clip(append(r.iso.Missing, s.Missing...))
	close(r.up)
	if r.refill {
		go spares.refill(r.iso.Profile)
	}
}

// bury waits for the helper's end and takes its cgroups away.
func (r *run) bury() *os.ProcessState {
	state, err := r.helper.Wait()
	r.group.kill() // nothing should be left; nothing will be
	r.group.remove()
	r.control.Close()
	if err != nil {
		return nil
	}
	return state
}

// drop lets a listener go on until it ends by itself.
func drop(said <-chan confine.Message) {
	for range said {
	}
}

// judge fills in how the tool ended and what it used.
func (r *run) judge(o *Outcome, ended *confine.Ended, state *os.ProcessState, starved bool) {
	signal := int(unix.SIGKILL)
	if ended != nil {
		starved = starved || ended.Starved
		o.Used.UserCPU = time.Duration(ended.UserUS) * time.Microsecond
		o.Used.SystemCPU = time.Duration(ended.SysUS) * time.Microsecond
		o.Used.MaxRSS = ended.RSSKB << 10
		signal = ended.Signal
	} else if state != nil {
		o.Used.UserCPU, o.Used.SystemCPU = state.UserTime(), state.SystemTime()
		if ru, ok := state.SysUsage().(*syscall.Rusage); ok {
			o.Used.MaxRSS = ru.Maxrss << 10
		}
	}
	if signal != 0 {
		o.Signal = signalName(signal)
	}
	if limit := r.spec.Limits.Disk; limit > 0 {
		o.Used.Disk = diskUsed(context.Background(), r.spec.Work, 1<<62)
		if o.End == "" && o.Used.Disk > limit {
			o.End = OverDisk // it was done before anyone looked
		}
	}
	switch o.End {
	case TimedOut:
		o.Limit = "wall"
	case OverOutput:
		o.Limit = "output"
	case OverDisk:
		o.Limit = "disk"
	case "":
		o.End, o.ExitCode = Exited, 0
		if ended != nil {
			o.ExitCode = ended.Code
		}
		if signal != 0 {
			o.End, o.ExitCode = Signalled, -1
		}
		o.Limit = r.kernelLimit(signal, o.Used, starved)
	}
}

// kernelLimit guesses from a signal which limit the kernel enforced.
func (r *run) kernelLimit(signal int, used Usage, starved bool) string {
	cpu := r.spec.Limits.CPU
	switch {
	case signal == int(unix.SIGXCPU):
		return "cpu"
	case signal == int(unix.SIGXFSZ):
		return "file-size"
	case starved:
		return "memory"
	case signal == int(unix.SIGKILL) && cpu > 0 && used.UserCPU+used.SystemCPU >= cpu:
		return "cpu"
	}
	return ""
}

// hear reads what the helper says until it is gone.
func (r *run) hear(said chan<- confine.Message) {
	defer close(said)
	raw, err := r.control.SyscallConn()
	if err != nil {
		return
	}
	data, oob := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4))
	for {
		var n, oobn int
		var rerr error
		err := raw.Read(func(fd uintptr) bool {
			n, oobn, _, _, rerr = unix.Recvmsg(int(fd), data, oob, unix.MSG_CMSG_CLOEXEC)
			return !errors.Is(rerr, unix.EAGAIN) && !errors.Is(rerr, unix.EINTR)
		})
		if errors.Is(rerr, unix.ECONNRESET) {
			continue // it left without reading all we said; what it said is still to come
		}
		if err != nil || rerr != nil || n == 0 {
			return
		}
		m, err := confine.DecodeMessage(data[:n])
		if err != nil {
			return
		}
		if m.Listening != nil {
			r.serve(oob[:oobn])
			continue
		}
		said <- *m
	}
}

// serve hands the listener in the tool's network to the egress.
func (r *run) serve(oob []byte) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return
	}
	f := os.NewFile(uintptr(fds[0]), "egress")
	if r.spec.Egress == nil || r.egress.ctx == nil {
		f.Close()
		return
	}
	r.egress.serving.Go(func() {
		r.spec.Egress.Serve(r.egress.ctx, f)
		f.Close()
	})
}

// stop begins the end: politely where there is grace. It returns when to lose
// patience.
func (r *run) stop(grace time.Duration) <-chan time.Time {
	if grace <= 0 {
		return r.kill()
	}
	r.control.Write([]byte{confine.SayTerm})
	return time.After(grace)
}

// kill ends everything. In namespaces killing the helper, their init, is
// enough; without, the helper is told to sweep, and when called again, killed
// with what a cgroup can reach.
func (r *run) kill() <-chan time.Time {
	if r.iso.Profile == Full || r.told {
		r.group.kill()
		r.helper.Kill()
		return nil
	}
	r.told = true
	raw, err := r.control.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
	if err != nil {
		r.helper.Kill()
	}
	return time.After(sweepTime)
}

// drain waits for the rest of the output and reports whether all of it came.
func (r *run) drain() bool {
	for left, late := r.streams.drains, time.After(drainTime); left > 0; {
		select {
		case <-r.streams.drained:
			left--
		case <-late:
			return false
		}
	}
	return true
}

// explain turns a helper's failure into a refusal.
func (r *run) explain(f *confine.Failed) *Refusal {
	ref := r.refusal(f.Layer, errors.New(f.Cause))
	if f.Errno != 0 {
		ref.Cause = fmt.Errorf("%s (%w)", f.Cause, syscall.Errno(f.Errno))
		if f.Cause == syscall.Errno(f.Errno).Error() {
			ref.Cause = syscall.Errno(f.Errno)
		}
	}
	if f.Layer == "work directory" {
		ref.Fix = fmt.Sprintf("check that %s is a directory that the tool may enter", r.spec.Dir)
	}
	if f.Layer == "exec" {
		ref.Fix = fmt.Sprintf("check that %s exists, is executable, and that its interpreter is readable", r.spec.Path)
	}
	return ref
}
