package shim

import (
	"errors"
	"syscall"
	"unsafe"
)

// Events of poll.
const (
	pollIn   = 0x1
	pollOut  = 0x4
	pollErr  = 0x8
	pollHup  = 0x10
	pollNval = 0x20
)

type pollFd struct {
	fd              int32
	events, revents int16
}

// poll waits until something can be done.
func poll(fds []pollFd) error {
	for {
		_, _, errno := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), uintptr(len(fds)), 0, 0, 0, 0)
		switch errno {
		case 0:
			return nil
		case syscall.EINTR:
		default:
			return errno
		}
	}
}

// A way is one direction: what was read and is not written yet.
type way struct {
	buf        []byte
	start, end int
	ended      bool // nothing more is read
}

func (w *way) empty() bool { return w.start == w.end }

// read reads once, where the last was written, and gives an error that is not
// just an end.
func (w *way) read(fd int) error {
	n, err := syscall.Read(fd, w.buf)
	switch {
	case n > 0:
		w.start, w.end = 0, n
	case err == syscall.EINTR || err == syscall.EAGAIN:
	default:
		w.ended = true
		return err
	}
	return nil
}

// write writes as much as is taken at once.
func (w *way) write(fd int) error {
	n, err := syscall.Write(fd, w.buf[w.start:w.end])
	if n > 0 {
		w.start += n
		return nil
	}
	if err == syscall.EINTR || err == syscall.EAGAIN {
		return nil
	}
	return err
}

// pass copies both ways until the daemon has nothing more to say, in one thread
// that waits for all of them: a goroutine for each way costs a window several
// times as much for every message. The daemon's first line says whether we are
// served at all.
func (l *line) pass() error {
	// Through a descriptor of its own: a write to a closed stdout is an error
	// to end on then, not a signal that kills.
	out, err := syscall.Dup(1)
	if err != nil {
		return err
	}
	syscall.CloseOnExec(out)
	// A pipe is ours alone; a terminal is not, and may make us wait.
	var st syscall.Stat_t
	if syscall.Fstat(out, &st) == nil && (st.Mode&syscall.S_IFMT == syscall.S_IFIFO || st.Mode&syscall.S_IFMT == syscall.S_IFSOCK) {
		_ = syscall.SetNonblock(out, true)
	}
	up, down := way{buf: make([]byte, copyRoom)}, way{buf: make([]byte, copyRoom)}
	closed, shut := false, false // by the client; by us
	var reply []byte             // what of its line has come
	replied := false
	for {
		if !down.empty() && !replied {
			if reply, replied, err = l.served(reply, &down); err != nil {
				return err
			}
		}
		if !down.empty() && down.write(out) != nil {
			return nil // the client is gone
		}
		if !up.empty() && up.write(l.fd) != nil {
			shut, up.ended, up.start = true, true, up.end // it takes no more; what it says still counts
		}
		if closed && up.empty() && !shut {
			shut = true
			_ = syscall.Shutdown(l.fd, syscall.SHUT_WR)
		}
		if down.ended && down.empty() {
			return l.outcome(closed, err)
		}
		fds := l.wanted(&up, &down, out)
		if err := poll(fds[:]); err != nil {
			return err
		}
		if fds[2].revents&(pollErr|pollHup|pollNval) != 0 {
			return nil // nobody reads the answers any more
		}
		if fds[0].revents != 0 {
			_ = up.read(0) // a stdin that breaks has ended too
			closed = closed || up.ended
		}
		if fds[1].revents&^pollOut != 0 && down.empty() && !down.ended {
			err = down.read(l.fd)
		}
	}
}

// wanted gives what to wait for.
func (l *line) wanted(up, down *way, out int) [3]pollFd {
	fds := [3]pollFd{{fd: -1}, {fd: -1}, {fd: int32(out)}}
	if up.empty() && !up.ended {
		fds[0] = pollFd{fd: 0, events: pollIn}
	}
	if down.empty() && !down.ended {
		fds[1] = pollFd{fd: int32(l.fd), events: pollIn}
	}
	if !up.empty() {
		fds[1].fd = int32(l.fd)
		fds[1].events |= pollOut
	}
	if !down.empty() {
		fds[2].events = pollOut
	}
	return fds
}

// served takes the daemon's first line out of what it says.
func (l *line) served(reply []byte, down *way) (_ []byte, whole bool, err error) {
	for !down.empty() {
		c := down.buf[down.start]
		down.start++
		if c != '\n' {
			if reply = append(reply, c); len(reply) > MaxReply {
				return nil, false, errors.New("the daemon's answer is too long; it may be of another version")
			}
			continue
		}
		r, err := parseReply(reply)
		if err == nil && !r.OK {
			err = errors.New(r.Error)
		}
		return nil, true, err
	}
	return reply, false, nil
}
