package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"ken/internal/run/sandbox/confine"
)

// theNest starts helpers for us: cloning a process with a user namespace copies
// the page tables of the one that clones, which for a runtime of 200 MB takes
// longer than everything else about a call. It is built with the first spare
// and lives as long as the runtime.
var theNest nest

// hatchTime is how long the nest is waited for before it is given up.
const hatchTime = 5 * time.Second

type nest struct {
	mu      sync.Mutex
	control *os.File // nil when there is none
	process *os.Process
	useless bool // this kernel cannot: the runtime clones by itself
}

// build starts the nest's process where there is none. That it cannot be is no
// matter.
func (n *nest) build() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.control != nil || n.useless {
		return
	}
	ours, theirs, err := controlPair()
	if err != nil {
		return
	}
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		ours.Close()
		return
	}
	defer null.Close()
	p, err := os.StartProcess(selfExe, []string{confine.NestName}, &os.ProcAttr{
		Dir: "/", Env: confine.Environment(), Files: []*os.File{null, null, null, theirs},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		ours.Close()
		return
	}
	n.control, n.process = ours, p
}

// abandon ends the nest; the next spare builds another.
func (n *nest) abandon() {
	n.control.Close()
	n.process.Kill()
	go n.process.Wait()
	n.control, n.process = nil, nil
}

// hatch asks the nest for a helper; nil means to do without it. The error is that
// it died or did not answer in time, which says nothing about the next one.
func (n *nest) hatch(shape confine.Shape, control *os.File) (*os.Process, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.control == nil {
		return nil, nil
	}
	pid, err := n.ask(shape, control)
	if err != nil {
		n.abandon()
		return nil, fmt.Errorf("the process that starts helpers did not answer (%w): %w", err, unix.EAGAIN)
	}
	if pid <= 0 {
		n.useless = !shielded() // who cannot clone by itself asks again: there may be room for a process then
		n.abandon()
		return nil, nil
	}
	// It is our child, and so its number is its own until we wait for it.
	return os.FindProcess(pid) // where that fails: without its control socket it ends by itself
}

func (n *nest) ask(shape confine.Shape, control *os.File) (pid int, err error) {
	if err := send(n.control, []byte{byte(shape)}, []int{int(control.Fd())}); err != nil {
		return 0, err
	}
	if err := n.control.SetReadDeadline(time.Now().Add(hatchTime)); err != nil {
		return 0, err
	}
	data := make([]byte, 256)
	size, err := n.control.Read(data)
	if err != nil {
		return 0, err
	}
	m, err := confine.DecodeMessage(data[:size])
	if err != nil || m.Hatched == nil {
		return 0, errors.Join(err, errors.New("unexpected message from a nested sandbox"))
	}
	return m.Hatched.PID, nil
}
