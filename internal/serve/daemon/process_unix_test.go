//go:build linux || darwin

package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ken/internal/serve/daemon"
	"ken/internal/serve/shim"
	_ "ken/internal/serve/shim/entry" // this program with the argument mcp is the shim
	"ken/internal/testkit"
)

// TestMain makes this program a daemon too, as the shim starts one. What it
// does for a client is in fakeHandler.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 3 && os.Args[1] == "serve" && os.Args[2] == "--daemon":
		os.Exit(fakeDaemon())
	case len(os.Args) == 3 && os.Args[1] == "knock":
		os.Exit(knock(os.Args[2]))
	case len(os.Args) == 3 && os.Args[1] == "squat":
		os.Exit(squat(os.Args[2]))
	}
	os.Exit(m.Run())
}

func fakeDaemon() int {
	if why := os.Getenv("KEN_TEST_REFUSE"); why != "" {
		fmt.Fprintln(os.Stderr, why)
		return 3
	}
	place, err := shim.Where(os.Getenv, "/")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	starts, err := os.OpenFile(filepath.Join(place.Home, "starts"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Fprintln(starts, os.Getpid())
	starts.Close()
	l, err := daemon.Listen(place)
	if errors.Is(err, daemon.ErrRunning) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := l.Serve(ctx, daemon.Config{Idle: 30 * time.Second}, fakeHandler); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// fakeHandler answers each line with the process it runs in and the line.
func fakeHandler(ctx context.Context, h shim.Hello, conn net.Conn) error {
	if len(h.Args) > 0 && h.Args[0] == "--config=broken" {
		return errors.New("ken.yaml: line 3: \x1b[31mno such key")
	}
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if _, err := fmt.Fprintf(conn, "%d %s %s\n", os.Getpid(), h.Dir, lines.Text()); err != nil {
			return err
		}
	}
	return nil
}

// knock connects as a stranger and says what it hears.
func knock(path string) int {
	c, err := net.Dial("unix", path)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	b, err := io.ReadAll(c)
	fmt.Printf("heard %q, %v\n", b, err)
	return 0
}

// squat listens until its stdin ends.
func squat(path string) int {
	l, err := net.Listen("unix", path)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, `{"v":1}`+"\n")
		}
	}()
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// A home is a user's folder with the daemons that were started for it.
type home struct {
	dir, exe string
	env      []string
}

func newHome(t *testing.T) *home {
	t.Helper()
	dir, err := os.MkdirTemp("", "ken") // short: the name of a socket is
	testkit.OK(t, err)
	exe := testkit.Must(os.Executable())(t)
	h := &home{dir: filepath.Join(dir, "home"), exe: exe}
	t.Cleanup(func() {
		for _, pid := range h.starts(t) {
			end(t, pid)
		}
		os.RemoveAll(dir)
	})
	return h
}

// end kills a daemon and waits until it is gone.
func end(t testing.TB, pid int) {
	syscall.Kill(pid, syscall.SIGKILL)
	testkit.Wait(t, "the daemon ends", func() bool {
		syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // ours only when its shim died before it
		return gone(pid)
	})
}

// gone reports whether a process has ended.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return syscall.Kill(pid, 0) != nil || err == nil && bytes.Contains(b, []byte(") Z "))
}

func (h *home) place(t testing.TB) shim.Place {
	t.Helper()
	p, err := shim.Where(func(name string) string {
		if name == "KEN_HOME" {
			return h.dir
		}
		return ""
	}, "/")
	testkit.OK(t, err)
	return p
}

func (h *home) starts(t testing.TB) (pids []int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(h.dir, "starts"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		pid := testkit.Must(strconv.Atoi(strings.TrimSpace(line)))(t)
		pids = append(pids, pid)
	}
	return pids
}

// environ is what a shim sees. The race detector has a program wait a second
// at its end otherwise.
func (h *home) environ() []string {
	return []string{"KEN_HOME=" + h.dir, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
}

// A window is a shim as a client has it.
type window struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

func (h *home) open(t testing.TB, args ...string) *window {
	t.Helper()
	w := &window{cmd: exec.Command(h.exe, append([]string{"mcp"}, args...)...)}
	w.cmd.Env = append(h.environ(), h.env...)
	w.cmd.Dir = filepath.Dir(h.dir)
	w.cmd.Stderr = &w.stderr
	in := testkit.Must(w.cmd.StdinPipe())(t)
	out := testkit.Must(w.cmd.StdoutPipe())(t)
	testkit.OK(t, w.cmd.Start())
	w.in, w.out = in, bufio.NewReader(out)
	return w
}

// ask returns the process that answers.
func (w *window) ask(t testing.TB, line string) (pid int) {
	t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		t.Fatalf("ask: %v; stderr %s", err, w.stderr.String())
	}
	got, err := w.out.ReadString('\n')
	var dir, echo string
	if n, _ := fmt.Sscan(got, &pid, &dir, &echo); n != 3 || err != nil || echo != line || dir != w.cmd.Dir {
		w.cmd.Process.Kill()
		w.cmd.Wait()
		t.Fatalf("ask %q = %q, %v; stderr %s", line, got, err, w.stderr.String())
	}
	return pid
}

// close ends as a client does and gives what came after.
func (w *window) close(t testing.TB, status int) (rest string) {
	t.Helper()
	w.in.Close()
	b, err := io.ReadAll(w.out)
	if err != nil {
		t.Error(err)
	}
	w.cmd.Wait()
	testkit.Equal(t, "ken mcp, whose stderr is "+w.stderr.String(), w.cmd.ProcessState.ExitCode(), status)
	return string(b)
}

// TestClientCloses: what was asked before the end is answered after it.
func TestClientCloses(t *testing.T) {
	h := newHome(t)
	w := h.open(t)
	const lines = 5000
	go func() {
		for i := range lines {
			fmt.Fprintf(w.in, "line-%d-%s\n", i, strings.Repeat("x", 100))
		}
		w.in.Close()
	}()
	got := 0
	for s := bufio.NewScanner(w.out); s.Scan(); got++ {
		if !strings.Contains(s.Text(), fmt.Sprintf(" line-%d-", got)) {
			t.Fatalf("answer %d = %s", got, s.Text())
		}
	}
	if got != lines {
		t.Errorf("%d of %d lines were answered", got, lines)
	}
	w.close(t, 0)
}

func TestNobodyReads(t *testing.T) {
	h := newHome(t)
	r, out, err := os.Pipe()
	testkit.OK(t, err)
	cmd := exec.Command(h.exe, "mcp")
	cmd.Env, cmd.Stdout = h.environ(), out
	cmd.Dir = filepath.Dir(h.dir)
	in := testkit.Must(cmd.StdinPipe())(t)
	testkit.OK(t, cmd.Start())
	out.Close()
	r.Close()
	io.WriteString(in, "who\n") // it may be gone already
	if err := cmd.Wait(); err != nil {
		t.Errorf("ken mcp whose client is gone = %v, want status 0", err)
	}
	in.Close()
}

func TestDaemonDoesNotStart(t *testing.T) {
	h := newHome(t)
	h.env = []string{"KEN_TEST_REFUSE=the disk is \x1b[31mfull"}
	w := h.open(t)
	w.close(t, 1)
	got := w.stderr.String()
	for _, want := range []string{"ended at once (the disk is ?[31mfull)", h.place(t).Log, "--standalone"} {
		if !strings.Contains(got, want) {
			t.Errorf("stderr = %q, want %q in it", got, want)
		}
	}
	if strings.Contains(got, "does not listen") {
		t.Errorf("stderr = %q: it was waited for a daemon that was dead", got)
	}
}

func TestHandlerRefuses(t *testing.T) {
	h := newHome(t)
	w := h.open(t, "--config=broken")
	testkit.Equal(t, "stdout", w.close(t, 1), "")
	if got, want := w.stderr.String(), "ken: ken.yaml: line 3: ?[31mno such key\n"; got != want {
		t.Errorf("stderr = %q, want %q", got, want)
	}
}

// TestRelativeHome: the daemon, which works elsewhere, means the same folder.
func TestRelativeHome(t *testing.T) {
	h := newHome(t)
	h.env = []string{"KEN_HOME=" + filepath.Base(h.dir)}
	w := h.open(t)
	w.ask(t, "who")
	w.close(t, 0)
	if got := h.starts(t); len(got) != 1 {
		t.Errorf("%d daemons were started for the folder, want 1", len(got))
	}
}

// TestDescriptorsStay: a pipe that the client leaked into the shim does not
// stay open in the daemon.
func TestDescriptorsStay(t *testing.T) {
	h := newHome(t)
	r, leaked, err := os.Pipe()
	testkit.OK(t, err)
	cmd := exec.Command(h.exe, "mcp")
	cmd.Env, cmd.Dir, cmd.ExtraFiles = h.environ(), filepath.Dir(h.dir), []*os.File{leaked}
	cmd.Stdin = strings.NewReader("who\n")
	out, err := cmd.Output()
	if err != nil || len(out) == 0 {
		t.Fatalf("ken mcp = %q, %v", out, err)
	}
	leaked.Close()
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the pipe after the shim's end: %v, want EOF", err)
	}
	if g, err := shim.Ask(h.place(t)); err != nil {
		t.Errorf("Ask = %v, %v; want a daemon that runs", g, err)
	}
}
