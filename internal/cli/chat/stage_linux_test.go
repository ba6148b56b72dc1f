package chat

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A stage is a chat on a real terminal, with somebody who looks and types.
type stage struct {
	t      *testing.T
	screen *os.File // what a person sees and types at
	line   *os.File // what the program has
	stop   context.CancelFunc
	ended  chan error
	read   chan struct{}

	mu      sync.Mutex
	vt      *vt
	changed chan struct{}
}

// open begins a chat of so many columns and rows.
func open(t *testing.T, width, height int, cfg Config) *stage {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skipf("cannot here: open a terminal: %v", err)
	}
	s := &stage{t: t, screen: os.NewFile(uintptr(fd), "/dev/ptmx"), ended: make(chan error, 1), read: make(chan struct{}), vt: newVT(width, height), changed: make(chan struct{}, 1)}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), s.size(width, height)); err != nil {
		t.Fatal(err)
	}
	s.line, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("cannot here: open the other end of a terminal: %v", err)
	}
	go s.watch()
	cfg.In, cfg.Out = s.line, s.line
	if cfg.Getenv == nil {
		cfg.Getenv = func(name string) string { return map[string]string{"TERM": "xterm-256color"}[name] }
	}
	ctx, stop := context.WithCancel(t.Context())
	s.stop = stop
	go func() { s.ended <- Run(ctx, cfg) }()
	t.Cleanup(func() {
		stop()
		if s.ended != nil {
			<-s.ended
		}
		s.line.Close()
		s.screen.Close()
		<-s.read
	})
	return s
}

func (s *stage) size(width, height int) error {
	conn, err := s.screen.SyscallConn() // Fd would make reading it uninterruptible
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: uint16(height)})
	})
	return errors.Join(err, failed)
}

// watch shows what comes.
func (s *stage) watch() {
	defer close(s.read)
	b := make([]byte, 4096)
	for {
		n, err := s.screen.Read(b)
		s.mu.Lock()
		_, _ = s.vt.Write(b[:n])
		s.mu.Unlock()
		select {
		case s.changed <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// until waits for the terminal to be as wanted.
func (s *stage) until(what string, is func(v *vt) bool) {
	s.t.Helper()
	late := time.After(2 * time.Minute)
	for {
		s.mu.Lock()
		ok, text := is(s.vt), s.vt.text()
		s.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-s.changed:
		case <-late:
			s.t.Fatalf("the terminal never shows %s; it shows\n%s", what, text)
		}
	}
}

func (s *stage) shows(text string) {
	s.t.Helper()
	s.until(strconv.Quote(text), func(v *vt) bool { return strings.Contains(v.text(), text) })
}

func (s *stage) hides(text string) {
	s.t.Helper()
	s.until("less than "+strconv.Quote(text), func(v *vt) bool { return !strings.Contains(v.text(), text) })
}

// prompts waits until the line with the cursor is this one, up to it; an empty
// one when nothing runs any more.
func (s *stage) prompts(line string) {
	s.t.Helper()
	s.until("the cursor after "+strconv.Quote(line), func(v *vt) bool {
		return v.line() == line && v.modes["25"] && (line != "❯ " || !strings.Contains(v.text(), "Ctrl-C e"))
	})
}

func (s *stage) types(text string) {
	s.t.Helper()
	if _, err := s.screen.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// resize makes the terminal of another size and tells the program.
func (s *stage) resize(width, height int) {
	s.t.Helper()
	s.mu.Lock()
	s.vt.resize(width, height)
	s.mu.Unlock()
	if err := errors.Join(s.size(width, height), syscall.Kill(os.Getpid(), syscall.SIGWINCH)); err != nil {
		s.t.Fatal(err)
	}
}

// ends waits for the chat to be over and gives all that is on the terminal.
func (s *stage) ends() string {
	s.t.Helper()
	select {
	case err := <-s.ended:
		if err != nil {
			s.t.Errorf("Run() = %v", err)
		}
		s.ended = nil
	case <-time.After(2 * time.Minute):
		s.t.Fatalf("the chat does not end; the terminal shows\n%s", s.text())
	}
	// A mark of our own shows that all before it was read.
	if _, err := s.line.WriteString("\x1b[?77h"); err != nil {
		s.t.Fatal(err)
	}
	s.until("the end", func(v *vt) bool { return v.modes["77"] })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.vt.unknown) > 0 || s.vt.above || s.vt.modes["2004"] || !s.vt.modes["25"] {
		s.t.Errorf("unknown to terminals: %v; moved above the screen: %v; modes left: %v", s.vt.unknown, s.vt.above, s.vt.modes)
	}
	mode, err := unix.IoctlGetTermios(int(s.line.Fd()), unix.TCGETS)
	if err != nil || mode.Lflag&unix.ECHO == 0 || mode.Oflag&unix.OPOST == 0 {
		s.t.Errorf("the terminal was not given back as it was: %v", err)
	}
	return s.vt.text()
}

func (s *stage) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vt.text()
}
