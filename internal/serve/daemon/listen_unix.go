//go:build linux || darwin

package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"ken/internal/serve/shim"
)

const (
	lockWait  = 2 * time.Second
	lockPause = 5 * time.Millisecond
)

// Listen listens at the place's socket. It makes the folder where it is
// missing, refuses one that others can change, and removes a socket that a
// dead daemon left behind. Where a daemon listens already the error is
// [ErrRunning].
//
// It changes the umask of the process for a moment: call it before anything
// else makes files.
func Listen(p shim.Place) (*Listener, error) {
	if err := p.MakeFolder(); err != nil {
		return nil, err
	}
	unlock, err := lock(p.Socket)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := removeDead(p.Socket); err != nil {
		return nil, err
	}
	mask := syscall.Umask(0o077)
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.Socket, Net: "unix"})
	syscall.Umask(mask)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", p.Socket, err)
	}
	ln.SetUnlinkOnClose(false) // only under the lock, and only our own
	id, err := identity(p.Socket)
	if err == nil {
		err = os.Chmod(p.Socket, 0o600)
	}
	if err != nil {
		ln.Close()
		return nil, fmt.Errorf("listen at %s: %w", p.Socket, err)
	}
	return &Listener{ln: ln, path: p.Socket, id: id, allowed: sameUser}, nil
}

// lock keeps other daemons from coming and going at the same path. It is held
// for moments only. The lock of a process that died is free.
func lock(path string) (unlock func(), err error) {
	for start := time.Now(); ; time.Sleep(lockPause) {
		unlock, err := shim.TryLock(path + ".lock")
		if unlock != nil || err != nil {
			return unlock, err
		}
		if time.Since(start) > lockWait {
			return nil, fmt.Errorf("lock %s.lock: another daemon is coming or going and does not end; end the process that has it open", path)
		}
	}
}

// removeDead removes a socket without a listener.
func removeDead(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("listen at %s: there is something that is no socket; move it away", path)
	}
	conn, err := net.DialTimeout("unix", path, lockWait)
	switch {
	case err == nil:
		conn.Close()
		return fmt.Errorf("listen at %s: %w", path, ErrRunning)
	case !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, syscall.ENOENT):
		// It may live: so many call it that we were not let in, or worse.
		return fmt.Errorf("listen at %s: %w: %w", path, ErrRunning, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of a dead daemon: %w", err)
	}
	return nil
}

// letGo stops listening and takes the name away, if it is still ours: someone
// may have removed it, and another daemon may have it since.
func (l *Listener) letGo() error {
	if unlock, err := lock(l.path); err == nil {
		defer unlock()
		if id, err := identity(l.path); err == nil && id == l.id {
			_ = os.Remove(l.path) // a dead socket is removed by the next one
		}
	} // else the dead socket stays for the next one
	return l.ln.Close()
}

type fileID struct{ dev, ino uint64 }

func identity(path string) (fileID, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return fileID{}, err
	}
	return fileID{uint64(st.Dev), st.Ino}, nil
}

// sameUser refuses connections of other users, and returns the id of the process
// that connected.
func sameUser(conn net.Conn) (pid int, err error) {
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return 0, err
	}
	uid := -1
	if cerr := raw.Control(func(fd uintptr) { uid, pid, err = shim.Peer(int(fd)) }); cerr != nil {
		err = cerr
	}
	if err == nil && uid != os.Geteuid() {
		err = fmt.Errorf("the caller, process %d, is of user %d", pid, uid)
	}
	return pid, err
}
