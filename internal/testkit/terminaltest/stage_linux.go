package terminaltest

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ken/internal/testkit"
)

// Pair opens both ends of a new terminal: what a person sees and types at, and what
// a program has.
func Pair() (screen, line *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	screen = os.NewFile(uintptr(fd), "/dev/ptmx")
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)); err == nil {
		line, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, screen.Close())
	}
	return screen, line, nil
}

// A Stage is a program on a terminal, with somebody who looks and types.
type Stage struct {
	t      testing.TB
	screen *os.File           // what a person sees and types at
	line   *os.File           // what the program has
	Stop   context.CancelFunc // ends the program
	Ended  chan error         // what the program ended with; a test that takes it puts it back
	over   bool
	read   chan struct{}

	mu sync.Mutex
	vt *VT
}

// Open runs a program on a terminal of so many columns and rows, until the test ends.
func Open(t testing.TB, width, height int, columns func(rune) int, run func(ctx context.Context, line *os.File) error) *Stage {
	t.Helper()
	screen, line, err := Pair()
	if err != nil {
		t.Skipf("cannot here: open a terminal: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s := &Stage{t: t, screen: screen, line: line, Stop: stop, Ended: make(chan error, 1), read: make(chan struct{}), vt: NewVT(width, height, columns)}
	if err := s.size(width, height); err != nil {
		t.Fatal(err)
	}
	go s.watch()
	go func() { s.Ended <- run(ctx, line) }()
	t.Cleanup(func() {
		stop()
		if !s.over {
			<-s.Ended
		}
		s.line.Close()
		s.screen.Close()
		<-s.read
	})
	return s
}

// control has a function use the descriptor of the screen. Fd would make reading it
// uninterruptible.
func (s *Stage) control(do func(fd int) error) error {
	conn, err := s.screen.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) { failed = do(int(fd)) })
	return errors.Join(err, failed)
}

func (s *Stage) size(width, height int) error {
	return s.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: uint16(height)})
	})
}

// watch shows what comes.
func (s *Stage) watch() {
	defer close(s.read)
	b := make([]byte, 4096)
	for {
		n, err := s.screen.Read(b)
		s.mu.Lock()
		_, _ = s.vt.Write(b[:n])
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Until waits for the terminal to be as wanted.
func (s *Stage) Until(what string, is func(v *VT) bool) {
	s.t.Helper()
	if !testkit.Until(func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return is(s.vt)
	}) {
		s.t.Fatalf("the terminal never shows %s; it shows\n%s", what, s.Text())
	}
}

// Shows waits until a text is there.
func (s *Stage) Shows(text string) {
	s.t.Helper()
	s.Until(strconv.Quote(text), func(v *VT) bool { return strings.Contains(v.Text(), text) })
}

// Hides waits until a text is not there.
func (s *Stage) Hides(text string) {
	s.t.Helper()
	s.Until("less than "+strconv.Quote(text), func(v *VT) bool { return !strings.Contains(v.Text(), text) })
}

// Types types a text.
func (s *Stage) Types(text string) {
	s.t.Helper()
	if _, err := s.screen.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// Resize makes the terminal of another size and tells the program.
func (s *Stage) Resize(width, height int) {
	s.t.Helper()
	s.mu.Lock()
	s.vt.Resize(width, height)
	s.mu.Unlock()
	if err := errors.Join(s.size(width, height), syscall.Kill(os.Getpid(), syscall.SIGWINCH)); err != nil {
		s.t.Fatal(err)
	}
}

// Ends waits for the program to be over and returns all that is on the terminal.
func (s *Stage) Ends() string {
	s.t.Helper()
	if !testkit.Until(func() bool { return len(s.Ended) > 0 }) {
		s.t.Fatalf("the program does not end; the terminal shows\n%s", s.Text())
	}
	if err := <-s.Ended; err != nil {
		s.t.Errorf("Run() = %v", err)
	}
	s.over = true
	// A mark of our own shows that all before it was read.
	if _, err := s.line.WriteString("\x1b[?77h"); err != nil {
		s.t.Fatal(err)
	}
	s.Until("the end", func(v *VT) bool { return v.Modes["77"] })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.vt.Unknown) > 0 || s.vt.Above || s.vt.Modes["2004"] || !s.vt.Modes["25"] {
		s.t.Errorf("unknown to terminals: %v; moved above the screen: %v; modes left: %v", s.vt.Unknown, s.vt.Above, s.vt.Modes)
	}
	mode, err := unix.IoctlGetTermios(int(s.line.Fd()), unix.TCGETS)
	if err != nil || mode.Lflag&unix.ECHO == 0 || mode.Oflag&unix.OPOST == 0 {
		s.t.Errorf("the terminal was not given back as it was: %v", err)
	}
	return s.vt.Text()
}

// Text is all that is on the terminal.
func (s *Stage) Text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vt.Text()
}
