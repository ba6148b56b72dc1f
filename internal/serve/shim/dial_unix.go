//go:build linux || darwin

package shim

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"
)

// patience is how long a daemon may take to say a line.
const patience = 10 * time.Second

// A line is a connection to a daemon that has greeted.
type line struct {
	file     *os.File
	fd       int // of file, which stays in its hands
	greeting Greeting
}

func (l *line) close() { l.file.Close() }

// dial connects and has the daemon's greeting. The error is ErrAbsent where it
// makes sense to start one.
func dial(p Place, deadline time.Time) (*line, error) {
	if err := checkFolder(p); errors.Is(err, fs.ErrNotExist) {
		return nil, ErrAbsent
	} else if err != nil {
		return nil, err
	}
	fd, err := connect(p.Socket)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET):
		return nil, ErrAbsent
	case err != nil:
		return nil, wrap("connect to the daemon at "+p.Socket, err, "")
	}
	uid, pid, err := Peer(fd)
	if err != nil || uid != os.Geteuid() {
		syscall.Close(fd)
		if err == nil {
			err = errors.New("run by user " + strconv.Itoa(uid) + ", not by " + strconv.Itoa(os.Geteuid()))
		}
		return nil, wrap("trust the daemon at "+p.Socket, err, "remove it, or set KEN_HOME to a folder of your own")
	}
	l := &line{file: os.NewFile(uintptr(fd), p.Socket), fd: fd}
	l.file.SetDeadline(deadline)
	b, _, err := readLine(l.file, MaxGreeting)
	if err == nil {
		l.greeting, err = parseGreeting(b)
	}
	if err != nil {
		l.close()
		if gone(err) {
			return nil, ErrAbsent
		}
		return nil, wrap("hear from the daemon at "+p.Socket, plainErr(err), "it is process "+strconv.Itoa(pid)+", end that, or use ken mcp --standalone")
	}
	l.file.SetDeadline(time.Time{})
	return l, nil
}

func connect(path string) (int, error) {
	// A system without SOCK_CLOEXEC must not fork between the two.
	syscall.ForkLock.RLock()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(fd)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return -1, err
	}
	// Reads then wait in Go and may have deadlines; to connect does not wait.
	if err = syscall.SetNonblock(fd, true); err == nil {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
	}
	if err != nil {
		syscall.Close(fd)
		return -1, err
	}
	return fd, nil
}

// gone reports whether the other end closed.
func gone(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func plainErr(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return errors.New("does not answer")
	}
	return err
}

// readLine reads up to the end of a line of at most limit bytes. What came
// behind it is rest.
func readLine(r io.Reader, limit int) (b, rest []byte, err error) {
	buf := make([]byte, 0, 1<<10)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := r.Read(buf[len(buf):min(cap(buf), limit)])
		at := bytes.IndexByte(buf[len(buf):len(buf)+n], '\n')
		if at >= 0 {
			end := len(buf) + at
			return buf[:end], buf[end+1 : len(buf)+n], nil
		}
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF && len(buf) > 0:
			return nil, nil, io.ErrUnexpectedEOF
		case err != nil:
			return nil, nil, err
		case len(buf) >= limit:
			return nil, nil, errors.New("a line is longer than " + strconv.Itoa(limit) + " bytes")
		}
	}
}

// checkFolder refuses a socket's folder in which another user could put one.
// A home may be a symbolic link, as of those who keep such folders elsewhere:
// then the link must be the user's or the system's, and where it leads is held
// to what any folder is.
func checkFolder(p Place) error {
	dir := path.Dir(p.Socket)
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	refuse := func(why, fix string) error { return wrap("trust the folder "+dir, errors.New(why), fix) }
	const other = "set KEN_HOME to a folder of your own"
	named := ""
	if info.Mode()&fs.ModeSymlink != 0 {
		if p.Private {
			return refuse("it is a symbolic link", "remove it")
		}
		if uid := owner(info); uid != os.Geteuid() && uid != 0 {
			return refuse("it is a symbolic link of another user", other)
		}
		if info, err = os.Stat(dir); err != nil {
			return refuse("it is a symbolic link to what cannot be read: "+err.Error(), "make the folder that it means, or remove it")
		}
		named = "the folder that it links to: "
	}
	switch mode := info.Mode(); {
	case !info.IsDir():
		return refuse(named+"it is no folder", other)
	case owner(info) != os.Geteuid():
		return refuse(named+"it belongs to another user", other)
	case p.Private && mode.Perm()&0o077 != 0:
		return refuse("its mode is "+mode.Perm().String()+" and others can look into it", "chmod 700 "+dir)
	case mode.Perm()&0o022 != 0:
		return refuse(named+"its mode is "+mode.Perm().String()+" and others can change it", "chmod go-w "+dir)
	}
	return nil
}

// owner is the user to whom a file belongs; -1: it is not known.
func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// MakeFolder makes the folder of the socket where it is missing, and refuses
// one in which another user could put a socket.
func (p Place) MakeFolder() error {
	dir := path.Dir(p.Socket)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return wrap("make the folder of the daemon's socket", err, "set KEN_HOME to a folder that can be written")
	}
	return checkFolder(p)
}

// Ask has the greeting of the daemon that runs, if one does; the error is
// [ErrAbsent] otherwise.
func Ask(p Place) (Greeting, error) {
	l, err := dial(p, time.Now().Add(patience))
	if err != nil {
		return Greeting{}, err
	}
	defer l.close()
	return l.greeting, nil
}

// Retire asks the daemon that runs to make room: when Retire returns, the
// socket is free, and the daemon goes on until its clients are done. That none
// runs is no error.
func Retire(p Place) error {
	l, err := dial(p, time.Now().Add(patience))
	if errors.Is(err, ErrAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	defer l.close()
	return l.retire()
}

func (l *line) retire() error {
	const what = "ask the daemon to make room"
	end := "it is process " + strconv.Itoa(l.greeting.PID) + ", end that"
	h := Hello{V: Protocol, Do: DoRetire, PID: os.Getpid()}
	h.Build, h.Made = Build()
	l.file.SetDeadline(time.Now().Add(patience))
	_, err := l.file.Write(h.line())
	var answer []byte
	if err == nil {
		answer, _, err = readLine(l.file, MaxReply)
	}
	switch {
	case err != nil && gone(err):
		return nil // it went by itself
	case err != nil:
		return wrap(what, plainErr(err), end)
	}
	if r, err := parseReply(answer); err != nil || !r.OK {
		return wrap(what, errors.New("unexpected answer "+visible(string(answer))), end)
	}
	return nil
}

// visible makes foreign text one line that cannot steer a terminal.
func visible(s string) string {
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, []byte(s)))
}
