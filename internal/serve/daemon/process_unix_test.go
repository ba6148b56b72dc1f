//go:build linux || darwin

package daemon_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
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
	"sync"
	"syscall"
	"testing"
	"time"

	"ken/internal/serve/daemon"
	"ken/internal/serve/shim"
	_ "ken/internal/serve/shim/entry" // this program with the argument mcp is the shim
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
	if why, err := os.ReadFile(filepath.Join(place.Home, "refuse")); err == nil {
		fmt.Fprintf(os.Stderr, "%s\n", why)
		return 3
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

// fakeHandler answers each line with the process it runs in and the line, and a
// request of JSON-RPC as one; that of the method hold has no answer. What it gets
// of those is in the file heard.
func fakeHandler(ctx context.Context, h shim.Hello, conn net.Conn) error {
	if len(h.Args) > 0 && h.Args[0] == "--config=broken" {
		return errors.New("ken.yaml: line 3: \x1b[31mno such key")
	}
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if lines.Text()[0] == '{' {
			if err := answer(conn, h, lines.Bytes()); err != nil {
				return err
			}
			continue
		}
		if _, err := fmt.Fprintf(conn, "%d %s %s\n", os.Getpid(), h.Dir, lines.Text()); err != nil {
			return err
		}
	}
	return nil
}

func answer(conn net.Conn, h shim.Hello, line []byte) error {
	heard, err := os.OpenFile(filepath.Join(h.Env["KEN_HOME"], "heard"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer heard.Close()
	if _, err := fmt.Fprintf(heard, "%d %s\n", os.Getpid(), line); err != nil {
		return err
	}
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if err := json.Unmarshal(line, &m); err != nil || m.ID == nil || m.Method == "hold" {
		return err
	}
	_, err = fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","pid":%d}}`+"\n", m.ID, os.Getpid())
	return err
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
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	h := &home{dir: filepath.Join(dir, "home"), exe: exe}
	t.Cleanup(func() {
		for _, pid := range h.starts(t) {
			end(pid)
		}
		os.RemoveAll(dir)
	})
	return h
}

// end kills a daemon and waits until it is gone.
func end(pid int) {
	syscall.Kill(pid, syscall.SIGKILL)
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
		syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // ours only when its shim died before it
		if syscall.Kill(pid, 0) != nil {
			return
		}
		if b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); err == nil && bytes.Contains(b, []byte(") Z ")) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (h *home) place(t testing.TB) shim.Place {
	t.Helper()
	p, err := shim.Where(func(name string) string {
		if name == "KEN_HOME" {
			return h.dir
		}
		return ""
	}, "/")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (h *home) starts(t testing.TB) (pids []int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(h.dir, "starts"))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
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
	in, err := w.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
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

func (w *window) say(t testing.TB, line string) {
	t.Helper()
	if _, err := io.WriteString(w.in, line+"\n"); err != nil {
		t.Fatalf("say: %v; stderr %s", err, w.stderr.String())
	}
}

func (w *window) line(t testing.TB) string {
	t.Helper()
	line, err := w.out.ReadString('\n')
	if err != nil {
		w.cmd.Process.Kill()
		w.cmd.Wait()
		t.Fatalf("hear: %v; stderr %s", err, w.stderr.String())
	}
	return line
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
	if got := w.cmd.ProcessState.ExitCode(); got != status {
		t.Errorf("ken mcp = %d, want %d; stderr %s", got, status, w.stderr.String())
	}
	return string(b)
}

func TestFiveWindowsStartOneDaemon(t *testing.T) {
	h := newHome(t)
	pids := make([]int, 5)
	windows := make([]*window, 5)
	for i := range windows {
		windows[i] = h.open(t)
	}
	var asked sync.WaitGroup
	for i, w := range windows {
		asked.Go(func() { pids[i] = w.ask(t, "who") })
	}
	asked.Wait()
	for _, pid := range pids {
		if pid != pids[0] {
			t.Errorf("five windows have the daemons %v, want one", pids)
		}
	}
	if got := h.starts(t); len(got) != 1 {
		t.Errorf("%d daemons were started, want 1", len(got))
	}
	for _, w := range windows {
		w.close(t, 0)
	}
	info, err := os.Stat(h.place(t).Socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket is %v, %v; want mode 0600", info, err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(h.exe, "mcp")
	cmd.Env, cmd.Stdout = h.environ(), out
	cmd.Dir = filepath.Dir(h.dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out.Close()
	r.Close()
	io.WriteString(in, "who\n") // it may be gone already
	if err := cmd.Wait(); err != nil {
		t.Errorf("ken mcp whose client is gone = %v, want status 0", err)
	}
	in.Close()
}

// TestDaemonKilled: a window outlives its daemon.
func TestDaemonKilled(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			h := newHome(t)
			windows := []*window{h.open(t), h.open(t), h.open(t)}
			first := windows[0].ask(t, "who")
			for _, w := range windows[1:] {
				w.ask(t, "who")
			}
			if err := syscall.Kill(first, sig); err != nil {
				t.Fatal(err)
			}
			second := 0
			for i, w := range windows {
				w.say(t, `{"jsonrpc":"2.0","id":1,"method":"who"}`)
				for {
					line := w.line(t)
					var m struct{ Result struct{ PID int } }
					err := json.Unmarshal([]byte(line), &m)
					if strings.Contains(line, `"outcome":"unknown"`) || m.Result.PID == first { // it went to the first
						w.say(t, `{"jsonrpc":"2.0","id":1,"method":"who"}`)
						continue
					}
					if err != nil || m.Result.PID == 0 || i > 0 && m.Result.PID != second {
						t.Fatalf("window %d hears %q, %v; want the second daemon", i, line, err)
					}
					second = m.Result.PID
					break
				}
			}
			for _, w := range windows {
				w.close(t, 0)
				if got := w.stderr.String(); !strings.Contains(got, fmt.Sprintf("process %d) ended the connection", first)) || !strings.Contains(got, fmt.Sprintf("joined the daemon (process %d)", second)) {
					t.Errorf("stderr = %q, want both daemons", got)
				}
			}
			if got := h.starts(t); len(got) != 2 {
				t.Errorf("%d daemons were started, want 2", len(got))
			}
		})
	}
}

// TestSessionGoesOn: a new daemon gets the client's handshake, and nothing that
// the dead one got.
func TestSessionGoesOn(t *testing.T) {
	h := newHome(t)
	w := h.open(t)
	w.say(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}`)
	w.line(t)
	w.say(t, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	w.say(t, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	w.line(t)
	w.say(t, `{"jsonrpc":"2.0","id":"a<b","method":"hold"}`)
	w.say(t, `{"jsonrpc":"2.0","id":2,"method":"hold"}`)
	w.say(t, `{"jsonrpc":"2.0","id":3,"method":"ping"}`) // then the others were read
	w.line(t)
	first := h.starts(t)[0]
	end(first)
	for _, id := range []string{`"a<b"`, "2"} {
		if got := w.line(t); !strings.Contains(got, `"id":`+id+`,"error":{"code":-32000,"message":"hold with id `) || !strings.Contains(got, `"outcome":"unknown"`) {
			t.Errorf("the call %s has the answer %q, want that nothing is known", id, got)
		}
	}
	if got := w.line(t); !strings.Contains(got, "notifications/tools/list_changed") {
		t.Errorf("after the restart comes %q, want that the list may be another", got)
	}
	w.say(t, `{"jsonrpc":"2.0","id":4,"method":"tools/call"}`)
	if got := w.line(t); !strings.Contains(got, `"id":4,"result"`) {
		t.Errorf("the next call has the answer %q", got)
	}
	w.close(t, 0)
	b, err := os.ReadFile(filepath.Join(h.dir, "heard"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), `"id":3,"method":"ping"}`+"\n")
	var methods []string
	for line := range strings.Lines(after) {
		var m struct{ Method string }
		if err := json.Unmarshal([]byte(line[strings.IndexByte(line, '{'):]), &m); err != nil {
			t.Fatal(err)
		}
		methods = append(methods, m.Method)
	}
	if got, want := strings.Join(methods, " "), "initialize notifications/initialized tools/call"; got != want {
		t.Errorf("the second daemon hears %q, want %q", got, want)
	}
}

// TestNoDaemonAgain: where no daemon can be started any more, the window says so
// and ends, and what was asked has an answer.
func TestNoDaemonAgain(t *testing.T) {
	h := newHome(t)
	w := h.open(t)
	w.say(t, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.line(t)
	if err := os.WriteFile(filepath.Join(h.dir, "refuse"), []byte("the disk is full"), 0o600); err != nil {
		t.Fatal(err)
	}
	end(h.starts(t)[0])
	w.say(t, `{"jsonrpc":"2.0","id":2,"method":"tools/call"}`)
	if got := w.line(t); !strings.Contains(got, `"id":2,"error"`) {
		t.Errorf("the call has the answer %q, want an error", got)
	}
	w.cmd.Wait()
	if got := w.stderr.String(); w.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(got, "(the disk is full)") || !strings.Contains(got, "start this server again") {
		t.Errorf("ken mcp = %d; stderr %q, want 1 and why", w.cmd.ProcessState.ExitCode(), got)
	}
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
	if rest := w.close(t, 1); rest != "" {
		t.Errorf("stdout = %q, want nothing", rest)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(h.exe, "mcp")
	cmd.Env, cmd.Dir, cmd.ExtraFiles = h.environ(), filepath.Dir(h.dir), []*os.File{leaked}
	cmd.Stdin = strings.NewReader("who\n")
	out, err := cmd.Output()
	if err != nil || len(out) == 0 {
		t.Fatalf("ken mcp = %q, %v", out, err)
	}
	leaked.Close()
	if err := r.SetReadDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the pipe after the shim's end: %v, want EOF", err)
	}
	if g, err := shim.Ask(h.place(t)); err != nil {
		t.Errorf("Ask = %v, %v; want a daemon that runs", g, err)
	}
}

func BenchmarkWindow(b *testing.B) {
	h := &home{dir: filepath.Join(b.TempDir(), "h")}
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	h.exe = exe
	first := h.open(b)
	pid := first.ask(b, "who")
	defer end(pid)
	defer first.close(b, 0)
	var rss int
	for b.Loop() {
		w := h.open(b)
		w.ask(b, "who")
		b.StopTimer()
		rss = max(rss, highWater(b, w.cmd.Process.Pid))
		w.close(b, 0)
		b.StartTimer()
	}
	b.ReportMetric(float64(rss)/1024, "MB")
}

// highWater is the most memory that a process had, in KiB.
func highWater(t testing.TB, pid int) int {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("cannot here: there is no /proc")
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.Fields(rest)[0])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
