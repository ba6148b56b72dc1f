package sandbox

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ken/internal/run/sandbox/confine"
)

// spareTime is how long a helper is kept ready for the next run: some MB of
// memory against some milliseconds.
const spareTime = 5 * time.Minute

// A helper is a process in its namespaces that waits for an order.
type helper struct {
	process *os.Process
	control *os.File
}

func startHelper(shape confine.Shape, g *group) (*helper, error) {
	ours, theirs, err := controlPair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	process, err := clone(shape, theirs, g)
	if err != nil {
		ours.Close()
		return nil, fmt.Errorf("clone: %w", err)
	}
	h := &helper{process, ours}
	if err := g.join(process.Pid); err != nil {
		h.dismiss()
		return nil, err
	}
	return h, nil
}

// clone makes the helper's process: where that is a whole fork, by the nest.
func clone(shape confine.Shape, control *os.File, g *group) (*os.Process, error) {
	if shape&confine.Namespaces != 0 && shielded() {
		process, err := hatchShielded(shape, control)
		if process != nil && g.unified != nil {
			g.joinsLater()
		}
		if process != nil || err != nil {
			return process, err
		}
		// What is left fails too, and says why.
	}
	if shape&confine.Namespaces != 0 && g.unified == nil {
		if process, _ := theNest.hatch(shape, control); process != nil {
			return process, nil
		}
	}
	process, err := confine.Start(shape, control, g.unified)
	if err != nil && g.unified != nil && (errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)) {
		// A system call filter, such as Docker's, blocks clone3. The helper
		// waits for its order, so it can join the group a moment later.
		if process, again := confine.Start(shape, control, nil); again == nil {
			g.joinsLater()
			return process, nil
		}
	}
	return process, err
}

// hatchShielded has the nest make a helper for a process that cannot do it itself. A
// nest that died is built again.
func hatchShielded(shape confine.Shape, control *os.File) (process *os.Process, err error) {
	for range 2 {
		theNest.build()
		if process, err = theNest.hatch(shape, control); process != nil {
			return process, nil
		}
	}
	return nil, err
}

// shape is how the helper of a run is cloned.
func shape(p Profile, open Open) (s confine.Shape) {
	if p != Full {
		return 0
	}
	s = confine.Namespaces
	if open.Files {
		s |= confine.OpenFiles
	}
	if open.Network {
		s |= confine.OpenNetwork
	}
	return s
}

// controlPair makes a control socket: ours does not block, theirs does.
func controlPair() (ours, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs = os.NewFile(uintptr(pair[1]), "control")
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		theirs.Close()
		return nil, nil, err
	}
	return os.NewFile(uintptr(pair[0]), "control"), theirs, nil
}

// dismiss ends a helper that has no tool.
func (h *helper) dismiss() {
	h.control.Close()
	h.process.Kill()
	h.process.Wait()
}

// send sends the helper its order, the tool's three streams, and the handles that
// the order refers to.
func (h *helper) send(o *confine.Order, streams, handles []*os.File) error {
	order, err := orderFile(o)
	if err != nil {
		return err
	}
	defer order.Close()
	files := append(append(streams[:3:3], order), handles...)
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	if len(fds) > confine.MaxHandles {
		return fmt.Errorf("%d paths are granted by handle, the limit is %d: grant their common directory", len(handles), confine.MaxHandles-4)
	}
	return send(h.control, []byte{confine.SayGo}, fds)
}

// send sends one packet with descriptors on a control socket.
func send(control *os.File, data []byte, fds []int) error {
	raw, err := control.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		sendErr = unix.Sendmsg(int(fd), data, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		return !errors.Is(sendErr, unix.EAGAIN) && !errors.Is(sendErr, unix.EINTR)
	})
	return errors.Join(err, sendErr)
}

// spares keeps one helper of each profile ready, so that a run that leaves
// nothing open does not wait for a process and its namespaces to be made. Each serves one run only. The
// next is made while a run goes on, so that one run right after another finds
// it too.
var spares spareRoom

type spareRoom struct {
	mu   sync.Mutex
	have map[Profile]*spare
}

// A spare is a helper that waits, or one on its way. Who takes it out of the
// room owns it.
type spare struct {
	made   chan struct{} // closed when helper is settled
	helper *helper       // nil: it could not be made
}

// take returns a spare helper, waiting for one on its way: that is sooner there
// than another. It returns nil when there is none.
func (s *spareRoom) take(p Profile) *helper {
	s.mu.Lock()
	sp := s.have[p]
	delete(s.have, p)
	s.mu.Unlock()
	if sp == nil {
		return nil
	}
	<-sp.made
	return sp.helper
}

// refill makes a spare where there is none, for a while. Failing to is no
// matter: the next run will say why.
func (s *spareRoom) refill(p Profile) {
	sp := &spare{made: make(chan struct{})}
	s.mu.Lock()
	if s.have[p] != nil {
		s.mu.Unlock()
		return
	}
	if s.have == nil {
		s.have = make(map[Profile]*spare)
	}
	s.have[p] = sp
	s.mu.Unlock()
	if p == Full {
		theNest.build()
	}
	if h, err := startHelper(shape(p, Open{}), new(group)); err == nil {
		sp.helper = h
		time.AfterFunc(spareTime, func() { s.dismiss(p, sp) })
	} else {
		s.remove(p, sp)
	}
	close(sp.made)
}

// remove takes a certain spare out of the room and reports whether it was
// still there.
func (s *spareRoom) remove(p Profile, sp *spare) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.have[p] != sp {
		return false
	}
	delete(s.have, p)
	return true
}

// dismiss ends an unused spare.
func (s *spareRoom) dismiss(p Profile, sp *spare) {
	if s.remove(p, sp) {
		sp.helper.dismiss()
	}
}
