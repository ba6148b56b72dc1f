//go:build linux || darwin

package shim

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"
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

const (
	copyRoom = 64 << 10 // what is read at once

	// A daemon that served for as long as steady counts as a good one. Of those
	// that did not, one after another, so many are replaced; before each but the
	// first there is a pause, which doubles.
	steady   = time.Minute
	restarts = 5
	respite  = 250 * time.Millisecond
)

// errClientGone means that the client reads no more answers.
var errClientGone = errors.New("the client is gone")

// A carrier carries what a relay has between the client and a daemon, in one
// thread that waits for all of them: a goroutine for each way costs a window
// several times as much for every message.
type carrier struct {
	relay
	out  int // where the client reads
	room []byte
}

// carry serves the client until it closes its end. join connects to a daemon;
// it is called again whenever that daemon has gone.
func carry(join func() (*line, error)) error {
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
	c := &carrier{out: out, room: make([]byte, copyRoom)}
	err = c.serve(join)
	if errors.Is(err, errClientGone) {
		return nil
	}
	return err
}

func (c *carrier) serve(join func() (*line, error)) error {
	failures := 0 // one after another
	for {
		l, err := join()
		if err == nil {
			if c.turn > 0 {
				os.Stderr.WriteString("ken: joined the daemon (process " + strconv.Itoa(l.greeting.PID) + ")\n")
			}
			began := time.Now()
			c.joined(l.greeting.PID)
			err = c.pass(l)
			l.close()
			if time.Since(began) >= steady {
				failures = 0
			}
		}
		var end *ended
		switch {
		case err == nil || errors.Is(err, errClientGone):
			return err
		case c.turn == 0 && !errors.As(err, &end):
			return err // it never began
		}
		c.lost()
		if failures++; failures > restarts {
			err = wrap("serve this client", err, "Ken tried "+strconv.Itoa(failures)+" times; start this server again")
			c.drain()
			c.giveUp(err.Error())
			return errors.Join(err, c.flush())
		}
		os.Stderr.WriteString("ken: " + visible(err.Error()) + "\n")
		if err := c.flush(); err != nil {
			return err
		}
		if failures > 1 {
			time.Sleep(respite << (failures - 2))
		}
	}
}

// An ended error is that a daemon which served us has gone.
type ended struct {
	pid int
	err error // nil: it closed the connection
}

func (e *ended) Error() string {
	s := "the daemon (process " + strconv.Itoa(e.pid) + ") ended the connection"
	if e.err != nil {
		s += ": " + e.err.Error()
	}
	return s
}

// pass carries until the connection ends. It returns nil when the client has
// closed its end before that.
func (c *carrier) pass(l *line) error {
	shut := false // our end, or the daemon takes no more
	for {
		if err := c.toClient(); err != nil {
			return err
		}
		if !shut && !c.toDaemon(l.fd) {
			shut = true
		}
		if c.done() && !shut {
			shut = true
			_ = syscall.Shutdown(l.fd, syscall.SHUT_WR)
		}
		fds := [3]pollFd{{fd: -1}, {fd: int32(l.fd)}, {fd: int32(c.out)}}
		if !shut && !c.full() {
			fds[0] = pollFd{fd: 0, events: pollIn}
		}
		if len(c.to) == 0 {
			fds[1].events = pollIn
		} else {
			fds[2].events = pollOut
		}
		if !shut && len(c.next()) > 0 {
			fds[1].events |= pollOut
		}
		if fds[1].events == 0 {
			fds[1].fd = -1
		}
		if err := poll(fds[:], true); err != nil {
			return err
		}
		if fds[2].revents&(pollErr|pollHup|pollNval) != 0 {
			return errClientGone
		}
		if fds[0].revents != 0 {
			c.fromClient()
		}
		if fds[1].revents&^pollOut != 0 && len(c.to) == 0 {
			if over, err := c.fromDaemon(l); over {
				return err
			}
		}
	}
}

// fromClient reads once.
func (c *carrier) fromClient() {
	n, err := syscall.Read(0, c.room)
	switch {
	case n > 0:
		c.says(c.room[:n])
	case err != syscall.EINTR && err != syscall.EAGAIN:
		c.up.closed = true // a stdin that breaks has ended too
	}
}

// drain reads what the client has said while no daemon was there.
func (c *carrier) drain() {
	for !c.up.closed && len(c.up.in) < longest {
		fds := [1]pollFd{{fd: 0, events: pollIn}}
		if poll(fds[:], false) != nil || fds[0].revents == 0 {
			return
		}
		c.fromClient()
	}
}

// fromDaemon reads once, and reports whether the connection is over.
func (c *carrier) fromDaemon(l *line) (over bool, _ error) {
	n, err := syscall.Read(l.fd, c.room)
	switch {
	case n > 0:
		err := c.hears(c.room[:n])
		return err != nil, err
	case err == syscall.EINTR || err == syscall.EAGAIN:
		return false, nil
	case c.up.closed:
		return true, nil
	case err != nil && !gone(err):
		return true, &ended{l.greeting.PID, err}
	}
	return true, &ended{pid: l.greeting.PID}
}

// toDaemon writes what is taken at once; false: it takes no more. What it says
// still counts then.
func (c *carrier) toDaemon(fd int) bool {
	for b := c.next(); len(b) > 0; b = c.next() {
		n, err := syscall.Write(fd, b)
		switch {
		case n > 0:
			c.written(n)
		case err == syscall.EAGAIN:
			return true
		case err != syscall.EINTR:
			return false
		}
	}
	return true
}

// toClient writes what is taken at once.
func (c *carrier) toClient() error {
	for len(c.to) > 0 {
		n, err := syscall.Write(c.out, c.to)
		switch {
		case n > 0:
			c.to = c.to[n:]
		case err == syscall.EAGAIN:
			return nil
		case err != syscall.EINTR:
			return errClientGone
		}
	}
	c.to = nil
	return nil
}

// flush writes all that is for the client.
func (c *carrier) flush() error {
	for {
		if err := c.toClient(); err != nil || len(c.to) == 0 {
			return err
		}
		fds := [1]pollFd{{fd: int32(c.out), events: pollOut}}
		if err := poll(fds[:], true); err != nil {
			return err
		}
	}
}
