package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ken/internal/run/sandbox/confine"
)

// Start starts one program and returns once it runs. An error means that it
// does not: a [*Refusal], or ctx's. Ctx is for the whole of its life, not for
// the start alone: when it ends, the tool is stopped as [Limits.Grace] says,
// and everything it made with it. Should this process die, they all die too.
//
// Start may be called from many goroutines at once.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s, err := spec.filled()
	if err != nil {
		return nil, &Refusal{Layer: "spec", Cause: err}
	}
	iso := Isolation{Profile: None}
	if s.Require != Off {
		found := Probe(ctx)
		if found.Unclear != "" {
			return nil, &Refusal{
				Layer: "probe", Cause: errors.New(found.Unclear), Isolation: found.Isolation,
				Fix: "free files, memory or disk space (of TMPDIR) on this machine; the next call tries again",
			}
		}
		iso = found.Isolation
	}
	return startUnder(ctx, s, iso)
}

// startUnder starts a filled spec under a profile that is known to hold here.
func startUnder(ctx context.Context, s Spec, found Isolation) (*Process, error) {
	iso, err := promise(s, found)
	if err != nil {
		return nil, err
	}
	r := &run{spec: s, iso: iso, absent: s.absent(), up: make(chan struct{})}
	if s.Egress != nil {
		r.egress.ctx, r.egress.stop = context.WithCancel(ctx)
	}
	if err := r.start(); err != nil {
		r.release()
		return nil, r.refusal("start", err)
	}
	p := &Process{pid: r.helper.Pid, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer r.release()
		p.outcome, p.err = r.supervise(ctx)
	}()
	select {
	case <-r.up:
		p.isolation = r.iso
	case <-p.done:
		if p.err != nil {
			return nil, p.err
		}
		p.isolation = p.outcome.Isolation
	}
	return p, nil
}

// runUnder runs a filled spec under a profile that is known to hold here.
func runUnder(ctx context.Context, s Spec, found Isolation) (Outcome, error) {
	p, err := startUnder(ctx, s, found)
	if err != nil {
		return Outcome{}, err
	}
	return p.Wait()
}

// promise says what will hold a run, and refuses when that is too little.
func promise(s Spec, found Isolation) (Isolation, error) {
	full := found.Profile == Full
	iso := Isolation{
		Profile: found.Profile, LandlockABI: found.LandlockABI, Seccomp: found.Seccomp,
		NetNS: full, PidNS: full, ReadOnly: full,
		Cgroup: "none", Missing: slices.Clone(found.Missing), Required: s.Require,
	}
	if layer := iso.unmet(); layer != "" {
		return iso, &Refusal{
			Layer: layer, Isolation: iso,
			Cause: fmt.Errorf("%s is set, but this machine supports only profile %q%s", s.Require, iso.Profile, because(iso.Missing)),
			Fix:   "see `ken doctor`; let the kernel provide it, or lower sandbox.require",
		}
	}
	iso = iso.With(s.Open)
	if full {
		return iso, nil
	}
	if s.Open.UnixSockets && found.Profile == Landlock {
		return iso, &Refusal{
			Layer: "sockets", Isolation: iso, Cause: errors.New("the tool needs unix sockets, and without a root of its own it would reach those of the machine"),
			Fix: "allow user namespaces, as the full profile needs them",
		}
	}
	type gap struct{ layer, missing, cause, allow string }
	var gaps []gap
	if s.Egress != nil {
		gaps = append(gaps, gap{"egress", "without a network namespace a tool can bypass the proxy",
			"the network was granted only through the proxy, but this machine cannot enforce that", "network"})
	}
	if names := strings.Join(s.Protect, ", "); names != "" {
		gaps = append(gaps, gap{"protect", "without mounts of its own the tool can change " + names,
			names + " must not change, but this machine cannot enforce that", "user"})
	}
	if names := strings.Join(s.Mask, ", "); names != "" {
		gaps = append(gaps, gap{"mask", "without mounts of its own the tool can read " + names,
			names + " must not be read, but this machine cannot enforce that", "user"})
	}
	for _, g := range gaps {
		iso.Missing = append(iso.Missing, g.layer+": "+g.missing)
		if s.Require == RequireFull || s.Require == RequireLandlock {
			return iso, &Refusal{
				Layer: g.layer, Isolation: iso, Cause: errors.New(g.cause),
				Fix: "allow " + g.allow + " namespaces, or set sandbox.require to best-effort",
			}
		}
	}
	return iso, nil
}

func because(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s)", missing[0])
}

// A run is one run on its way.
type run struct {
	spec    Spec
	iso     Isolation
	absent  []string // protected names that are not there
	launch  *launch
	group   *group
	control *os.File
	helper  *os.Process
	begun   time.Time
	up      chan struct{} // closed when the tool runs; iso does not change after

	stdin   *os.File
	streams outputStreams
	egress  egressServer

	over   chan End
	told   bool // the helper was told to sweep
	refill bool // a spare is to be made once the tool runs
	buried bool // its end is seen to
}

// outputStreams are standard output and standard error of a tool, which are read
// until they end.
type outputStreams struct {
	out     [2]*os.File
	kept    [2]*capture
	total   atomic.Int64 // bytes of both
	drains  int          // streams that are read
	drained chan struct{}
}

// An egressServer is the tool's way to the network.
type egressServer struct {
	ctx     context.Context // nil: there is none
	stop    context.CancelFunc
	serving sync.WaitGroup
}

func (r *run) refusal(layer string, cause error) *Refusal {
	return &Refusal{Layer: layer, Cause: cause, Isolation: r.iso, Fix: "the tool was not started"}
}

func (r *run) release() {
	if r.egress.stop != nil {
		r.egress.stop()
		r.egress.serving.Wait() // what passed it is told before the end is
	}
	if r.launch != nil {
		r.launch.close()
	}
	for _, f := range []*os.File{r.stdin, r.streams.out[0], r.streams.out[1]} {
		if f != nil {
			f.Close()
		}
	}
	if r.group != nil && !r.buried {
		r.group.remove()
	}
}

// start starts the helper and everything that serves it.
func (r *run) start() (err error) {
	s := r.spec
	r.group = openGroup(s.Limits, r.iso.Profile, s.Open, confine.LandlockABI)
	coming := r.hire()
	if r.launch, err = newLaunch(s, r.iso.Profile, r.group); err != nil {
		(<-coming).dismiss() // it may be using the group until then
		return err
	}
	r.account()
	files, closeFiles, err := r.pipes()
	defer closeFiles()
	h := <-coming
	if err = errors.Join(err, h.err); err != nil {
		h.dismiss()
		return err
	}
	r.helper, r.control, r.begun = h.process, h.control, time.Now()
	if err := h.send(&r.launch.order, files, r.launch.files); err != nil && !errors.Is(err, unix.EPIPE) {
		h.dismiss() // where it is gone already, what it said tells why
		return err
	}
	if h.spare {
		go spares.refill(r.iso.Profile)
	} else {
		r.refill = r.spareable()
	}
	return nil
}

// hired is the helper of a run, or why there is none.
type hired struct {
	*helper
	spare bool // it was waiting
	err   error
}

func (h hired) dismiss() {
	if h.helper != nil {
		h.helper.dismiss()
	}
}

// spareable reports whether a helper that waits serves this run: it is in no
// cgroup, and in namespaces that leave nothing open.
func (r *run) spareable() bool {
	return len(r.group.dirs) == 0 && shape(r.iso.Profile, r.spec.Open) == shape(r.iso.Profile, Open{})
}

// hire gets a helper for a run, a waiting one where it can be, while the run is
// made ready.
func (r *run) hire() <-chan hired {
	c := make(chan hired, 1)
	go func() {
		if r.spareable() {
			if h := spares.take(r.iso.Profile); h != nil {
				c <- hired{helper: h, spare: true}
				return
			}
		}
		h, err := startHelper(shape(r.iso.Profile, r.spec.Open), r.group)
		c <- hired{helper: h, err: err}
	}()
	return c
}

// account writes down which limits hold, and which cannot be had.
func (r *run) account() {
	r.iso.Cgroup = r.group.name()
	r.iso.Rlimits = limitNames(&r.launch.order)
	r.iso.Missing = append(r.iso.Missing, r.launch.missing...)
	if r.spec.Limits.Memory > 0 && !r.group.has("memory") {
		r.iso.Missing = append(r.iso.Missing, "memory: no cgroup, so what a call uses is watched, and may be passed for a moment")
	}
	if r.spec.Limits.Processes > 0 && r.launch.order.Processes == 0 && !r.group.has("pids") {
		r.iso.Missing = append(r.iso.Missing, "processes: root is not bound without a user namespace or a cgroup")
	}
}

// pipes makes the tool's three streams and starts reading them.
func (r *run) pipes() (files []*os.File, closeAll func(), err error) {
	closeAll = func() {
		for _, f := range files {
			f.Close()
		}
	}
	in, err := r.input()
	if err != nil {
		return files, closeAll, err
	}
	files = append(files, in)
	r.over, r.streams.drained = make(chan End, 1), make(chan struct{}, 2)
	r.streams.kept[0], r.streams.kept[1] = newCapture(r.spec.Limits.Output), newCapture(r.spec.Limits.Output)
	var live *shared
	if r.spec.Live != nil {
		live = &shared{w: r.spec.Live}
	}
	for i, own := range []io.Writer{r.spec.Stdout, r.spec.Stderr} {
		if i == 0 && r.spec.StdoutFile != nil {
			f, err := sameFile(r.spec.StdoutFile)
			if err != nil {
				return files, closeAll, err
			}
			files = append(files, f)
			continue
		}
		from, to, err := os.Pipe()
		if err != nil {
			return files, closeAll, err
		}
		if r.spec.Limits.Wall > 0 {
			// Fewer turns for a flood; best effort. There is not so much of it
			// that those who live long could have it.
			unix.FcntlInt(to.Fd(), unix.F_SETPIPE_SZ, mib)
		}
		files = append(files, to)
		r.streams.out[i] = from
		r.streams.drains++
		d := &drain{from: from, kept: r.streams.kept[i], total: &r.streams.total, stop: r.spec.Limits.OutputStop,
			over: func() { r.tooMuch(OverOutput) }}
		if live != nil {
			d.to = append(d.to, live)
		}
		if own != nil {
			d.to = append(d.to, own)
		}
		go func() {
			d.run()
			r.streams.drained <- struct{}{}
		}()
	}
	return files, closeAll, nil
}

func (r *run) tooMuch(end End) {
	select {
	case r.over <- end:
	default:
	}
}

// input is the tool's stdin. Where there is a reader it is copied by a
// goroutine that ends with the pipe, or with the reader's next byte.
func (r *run) input() (*os.File, error) {
	if r.spec.StdinFile != nil {
		return sameFile(r.spec.StdinFile)
	}
	if r.spec.Stdin == nil {
		return os.Open(os.DevNull)
	}
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	r.stdin = to
	go func() {
		io.Copy(to, r.spec.Stdin) // the tool may stop reading at any time
		to.Close()
	}()
	return from, nil
}

// sameFile is another handle of a file. As for any program that is started, it
// does not block the less for what the runtime does with its own.
func sameFile(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}

// signalName names a signal as people write it.
func signalName(n int) string {
	if name := unix.SignalName(syscall.Signal(n)); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", n)
}
