package scripttest

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"ken/internal/testkit"
	"ken/internal/testkit/terminaltest"
)

// tty STATUS [PROMPT ANSWER]… -- ARGS…: runs "ken ARGS…" on a terminal of its
// own. When the terminal shows PROMPT, an expression, for the first time after
// the last answer, ANSWER is typed; ^C interrupts, and hidden:ANSWER waits until
// the terminal would not show it. What was shown is stdout.
func tty(ts *testscript.TestScript, neg bool, args []string) {
	cut := slices.Index(args, "--")
	if neg || cut < 1 || cut%2 == 0 || cut+1 == len(args) {
		ts.Fatalf("usage: tty STATUS [PROMPT ANSWER]… -- ARGS…")
	}
	screen, line, err := terminaltest.Pair()
	ts.Check(err)
	defer screen.Close()
	cmd := program(ts, args[cut+1:]...)
	cmd.Env = append(cmd.Env, "TERM=xterm")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = line, line, line
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	line.Close()
	ts.Check(err)
	shown := &display{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(shown, screen) // ends with EIO, as terminals do
	}()
	from := 0
	for i := 1; i < cut; i += 2 {
		pattern, err := regexp.Compile(args[i])
		ts.Check(err)
		if !testkit.Until(func() bool { return ended(read) || pattern.MatchString(shown.String()[from:]) }) || ended(read) {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			ts.Fatalf("the terminal never showed %q:\n%s", args[i], shown)
		}
		from = len(shown.String())
		answer, hidden := strings.CutPrefix(args[i+1], "hidden:")
		if hidden && !testkit.Until(func() bool { return silent(screen) }) {
			ts.Fatalf("the terminal would show what is typed after %q", args[i])
		}
		answer += "\n"
		if args[i+1] == "^C" {
			answer = "\x03"
		}
		_, err = screen.WriteString(answer)
		ts.Check(err)
	}
	if !testkit.Until(func() bool { return ended(read) }) {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		ts.Fatalf("ken %s does not end:\n%s", strings.Join(args[cut+1:], " "), shown)
	}
	got := statusOf(ts, cmd.Wait())
	_, _ = io.WriteString(ts.Stdout(), strings.ReplaceAll(shown.String(), "\r\n", "\n"))
	if got != args[0] {
		ts.Fatalf("ken %s: status %s, want %s\n%s", strings.Join(args[cut+1:], " "), got, args[0], shown)
	}
}

// silent reports whether a terminal does not show what is typed.
func silent(screen *os.File) bool {
	conn, err := screen.SyscallConn() // Fd would make reading it uninterruptible
	if err != nil {
		return false
	}
	var mode *unix.Termios
	_ = conn.Control(func(fd uintptr) { mode, err = unix.IoctlGetTermios(int(fd), unix.TCGETS) })
	return err == nil && mode != nil && mode.Lflag&unix.ECHO == 0
}

// A display is what a terminal has shown so far.
type display struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (d *display) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buf.Write(b)
}

func (d *display) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buf.String()
}
