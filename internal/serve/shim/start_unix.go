//go:build linux || darwin

package shim

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path"
	"strconv"
	"syscall"
	"time"
)

const (
	startWait = time.Minute           // total time for a daemon to come up; a dead daemon is not waited for
	pauseMin  = time.Millisecond      // between looks at whether it is
	pauseMax  = 50 * time.Millisecond // they grow to this

	starting = "start the daemon"

	maxLog = 8 << 20 // of a log, before it is put aside at a start
)

// A starter finds the daemon or makes one. It serves one join.
type starter struct {
	place    Place
	exe      string // what to start
	build    string // of this program
	made     int64
	deadline time.Time

	child  int   // the daemon that we started and that lives, or 0
	starts int   // how many we started
	from   int64 // where in the log the child's words begin
}

// join says hello to a daemon that suits. Of many shims that find none, one at
// a time may start one: it holds the lock until its own hello is heard, so
// that no other sees the new daemon without clients and replaces it. The others
// go on as soon as it answers, lock or not.
func (s *starter) join(hello []byte) (*line, error) {
	unlock := func() {}
	defer func() { unlock() }()
	locked := false
	for pause := pauseMin; ; pause = min(2*pause, pauseMax) {
		l, err := dial(s.place, s.deadline)
		switch {
		case err == nil && s.suits(l.greeting):
			if err = l.say(hello); err == nil {
				if locked {
					s.settle()
				}
				return l, nil
			}
			l.close()
			if !gone(err) {
				return nil, err
			} // else it went between its greeting and our hello
		case err != nil && !errors.Is(err, ErrAbsent) && !errors.Is(err, syscall.EAGAIN):
			return nil, err
		case !locked:
			if err == nil {
				l.close()
			}
			free, err := s.lock()
			if err != nil {
				return nil, err
			}
			if locked = free != nil; locked {
				unlock = free
				continue // it may be there by now
			}
		case err == nil:
			err = l.retire()
			l.close()
			if err != nil {
				return nil, err
			}
		case errors.Is(err, ErrAbsent):
			if err := s.start(); err != nil {
				return nil, err
			}
		} // else so many call that we must wait to
		if time.Now().After(s.deadline) {
			return nil, s.late()
		}
		time.Sleep(pause)
	}
}

// settle waits until the daemon has a client, which we are. It is no promise:
// a daemon replaced for nothing serves its client to the end all the same.
func (s *starter) settle() {
	const most = 100 // looks
	for range most {
		l, err := dial(s.place, s.deadline)
		if err != nil {
			return
		}
		l.close()
		if l.greeting.Clients > 0 {
			return
		}
		time.Sleep(pauseMin)
	}
}

// suits reports whether to use a daemon. One of another build makes room when
// it is older or has no client. A newer one with clients stays: two builds in
// use do not replace each other forever.
func (s *starter) suits(g Greeting) bool {
	if g.Build == s.build {
		return true
	}
	return g.V == Protocol && g.Clients > 0 && g.Made >= s.made
}

func (l *line) say(hello []byte) error {
	const what = "join the daemon"
	if l.greeting.Error != "" {
		return wrap(what, errors.New(l.greeting.Error), "")
	}
	if l.greeting.V != Protocol {
		return wrap(what, errors.New("speaks version "+strconv.Itoa(l.greeting.V)+" of the protocol, not "+strconv.Itoa(Protocol)), "use one build of ken everywhere, or --standalone")
	}
	l.file.SetDeadline(time.Now().Add(patience))
	_, err := l.file.Write(hello)
	l.file.SetDeadline(time.Time{})
	return err
}

// lock returns nil where another has the lock. The file stays: taking it away
// would let two have two locks. The system frees the lock of a process that
// died.
func (s *starter) lock() (unlock func(), err error) {
	if err := s.place.MakeFolder(); err != nil {
		return nil, err
	}
	return TryLock(s.place.Socket + ".start")
}

// TryLock takes the lock of a file, which is made where it is missing, until
// unlock is called or the process ends. It returns nil if another has it.
func TryLock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, wrap("lock", err, "see that its folder can be written")
	}
	for {
		raw, cerr := f.SyscallConn()
		if cerr != nil {
			err = cerr
		} else if cerr := raw.Control(func(fd uintptr) { err = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB) }); cerr != nil {
			err = cerr
		}
		switch {
		case err == nil:
			return func() {
				// A child that is being started may have the descriptor for a
				// moment: closing alone would not free the lock.
				_ = raw.Control(func(fd uintptr) { _ = syscall.Flock(int(fd), syscall.LOCK_UN) })
				f.Close()
			}, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			f.Close()
			return nil, nil
		default:
			f.Close()
			return nil, wrap("lock "+name, err, "keep the folder on a file system that has locks")
		}
	}
}

// start sees to it that a daemon is starting.
func (s *starter) start() error {
	const tries = 3
	if s.child != 0 {
		var status syscall.WaitStatus
		if pid, err := syscall.Wait4(s.child, &status, syscall.WNOHANG, nil); err != nil || pid != s.child {
			return nil // it lives; give it time
		}
		s.child = 0
		// With status 0 it found another daemon, which has gone since.
		if !status.Exited() || status.ExitStatus() != 0 || s.starts == tries {
			return wrap(starting, errors.New("ended at once"+s.said()), s.way())
		}
	}
	s.starts++
	return s.spawn()
}

// spawn starts a daemon that outlives us: it has a session of its own, the log
// for its streams, and nothing else of what we were given.
func (s *starter) spawn() error {
	log, err := openLog(s.place.Log)
	if err != nil {
		return err
	}
	defer log.Close()
	if s.from, err = log.Seek(0, io.SeekEnd); err != nil {
		return wrap(starting, err, "")
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return wrap(starting, err, "")
	}
	defer null.Close()
	keepDescriptors()
	p, err := os.StartProcess(s.exe, []string{"ken", "serve", "--daemon"}, &os.ProcAttr{
		Dir: "/", Env: s.environ(os.Environ()), Files: []*os.File{null, log, log}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return wrap(starting, err, s.way())
	}
	s.child = p.Pid
	return p.Release()
}

// environ is what the daemon is told: all that we were, but a KEN_HOME that
// means the same from another working directory.
func (s *starter) environ(own []string) []string {
	out := append([]string(nil), own...)
	for i, e := range out {
		if name := []byte("KEN_HOME="); bytes.HasPrefix([]byte(e), name) && len(e) > len(name) {
			out[i] = string(name) + s.place.Home
		}
	}
	return out
}

// late says why there is still no daemon.
func (s *starter) late() error {
	what := "others have been starting it"
	if s.child != 0 {
		what = "process " + strconv.Itoa(s.child) + " does not listen"
	}
	return wrap(starting, errors.New(what+" for "+strconv.Itoa(int(startWait/time.Second))+" s"+s.said()), s.way())
}

// way says where to look and how to go on.
func (s *starter) way() string {
	return "its log is " + s.place.Log + ", and ken mcp --standalone works without it"
}

func openLog(name string) (*os.File, error) {
	if err := os.MkdirAll(path.Dir(name), 0o700); err != nil {
		return nil, wrap(starting, err, "the folder of its log must be one that can be written")
	}
	if info, err := os.Lstat(name); err == nil && info.Size() > maxLog {
		_ = os.Rename(name, name+".old") // a long log is better than no daemon
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, wrap(starting, err, "its log must be a file that can be written")
	}
	return f, nil
}

// said returns the last line of the log since the daemon was started.
func (s *starter) said() string {
	if s.starts == 0 {
		return ""
	}
	f, err := os.Open(s.place.Log)
	if err != nil {
		return ""
	}
	defer f.Close()
	const most = 4 << 10
	from := s.from
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		from = max(from, size-most)
	}
	b := make([]byte, most)
	n, _ := f.ReadAt(b, from) // what there is
	b = bytes.TrimSpace(b[:n])
	if last := bytes.TrimSpace(b[bytes.LastIndexByte(b, '\n')+1:]); len(last) > 0 {
		return " (" + string(last) + ")"
	}
	return ""
}
