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

// spareTime is how long a helper is kept ready for the next run.
const spareTime = 30 * time.Second

// helperEnv spares the helper's Go runtime what a life of milliseconds does
// not need: collecting garbage and looking for CPU quotas.
var helperEnv = []string{"GOMAXPROCS=2", "GOGC=off", "GODEBUG=containermaxprocs=0,updatemaxprocs=0"}

// A helper is a process in its namespaces that waits for an order.
type helper struct {
	process *os.Process
	control *os.File
}

func startHelper(p Profile, g *group) (*helper, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		return nil, err
	}
	ours := os.NewFile(uintptr(pair[0]), "control")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		ours.Close()
		return nil, err
	}
	defer null.Close()
	process, err := os.StartProcess(selfExe, []string{confine.Name}, &os.ProcAttr{
		Dir: "/", Env: helperEnv, Files: []*os.File{null, null, null, theirs}, Sys: attributes(p, g),
	})
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

// dismiss ends a helper that has no tool.
func (h *helper) dismiss() {
	h.control.Close()
	h.process.Kill()
	h.process.Wait()
}

// send gives the helper its order, the tool's three streams, and the handles
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
		return fmt.Errorf("%d paths are granted by handle and %d can be: grant their common directory", len(handles), confine.MaxHandles-4)
	}
	raw, err := h.control.SyscallConn()
	if err != nil {
		return err
	}
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		sendErr = unix.Sendmsg(int(fd), []byte{confine.SayGo}, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
		return !errors.Is(sendErr, unix.EAGAIN) && !errors.Is(sendErr, unix.EINTR)
	})
	return errors.Join(err, sendErr)
}

// spares keeps one helper of each profile ready, so that a run does not wait
// for a process and its namespaces to be made. Each serves one run only.
var spares spareRoom

type spareRoom struct {
	mu   sync.Mutex
	have map[Profile]*spare
}

type spare struct {
	*helper
	expiry *time.Timer
}

// take returns a ready helper, or nil.
func (s *spareRoom) take(p Profile) *helper {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.have[p]
	delete(s.have, p)
	if sp == nil || !sp.expiry.Stop() {
		return nil
	}
	return sp.helper
}

// refill makes a spare where there is none. Failing to is no matter: the next
// run will say why.
func (s *spareRoom) refill(p Profile) {
	s.mu.Lock()
	missing := s.have[p] == nil
	s.mu.Unlock()
	if !missing {
		return
	}
	h, err := startHelper(p, new(group))
	if err != nil {
		return
	}
	s.keep(p, h)
}

// keep puts a helper aside for a while, unless one is there already.
func (s *spareRoom) keep(p Profile, h *helper) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.have == nil {
		s.have = make(map[Profile]*spare)
	}
	if s.have[p] != nil {
		go h.dismiss()
		return
	}
	sp := &spare{helper: h}
	sp.expiry = time.AfterFunc(spareTime, func() {
		s.mu.Lock()
		if s.have[p] == sp {
			delete(s.have, p)
		}
		s.mu.Unlock()
		h.dismiss()
	})
	s.have[p] = sp
}

// hire returns a helper for a run: a ready one where it needs no cgroup.
func hire(p Profile, g *group) (*helper, error) {
	if len(g.dirs) == 0 {
		if h := spares.take(p); h != nil {
			return h, nil
		}
	}
	return startHelper(p, g)
}
