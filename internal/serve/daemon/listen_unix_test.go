//go:build linux || darwin

package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"ken/internal/serve/daemon"
	"ken/internal/serve/shim"
	"ken/internal/testkit"
)

func echo(_ context.Context, _ shim.Hello, conn net.Conn) error {
	_, err := io.Copy(conn, conn)
	return err
}

// serve runs a daemon in this process until the test ends.
func serve(t *testing.T, p shim.Place, h daemon.Handler) {
	t.Helper()
	l := testkit.Must(daemon.Listen(p))(t)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- l.Serve(ctx, daemon.Config{}, h) }()
	t.Cleanup(func() {
		cancel()
		testkit.Equal(t, "Serve", <-served, nil)
	})
}

// call is a whole short visit.
func call(path string) error {
	c, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	defer c.Close()
	r := bufio.NewReader(c)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	var g shim.Greeting
	if err := json.Unmarshal(line, &g); err != nil {
		return err
	}
	fmt.Fprintln(c, `{"v":1,"do":"serve","cwd":"/"}`)
	fmt.Fprintln(c, "ping")
	if err := c.(*net.UnixConn).CloseWrite(); err != nil {
		return err
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "{\"ok\":true}\nping\n" {
		return fmt.Errorf("answer %q, %w", got, err)
	}
	return nil
}

func TestThousandVisits(t *testing.T) {
	p := newHome(t).place(t)
	serve(t, p, echo)
	testkit.OK(t, call(p.Socket))
	files, goroutines := openFiles(t), runtime.NumGoroutine()
	for range 50 {
		var visits sync.WaitGroup
		for i := range 20 {
			visits.Go(func() {
				switch i {
				case 0, 1, 2: // that say nothing, or go in the middle
					c, err := net.Dial("unix", p.Socket)
					if err != nil {
						t.Error(err)
						return
					}
					fmt.Fprint(c, `{"v":1,"do":"se`[:i*5])
					c.Close()
				default:
					if err := call(p.Socket); err != nil {
						t.Error(err)
					}
				}
			})
		}
		visits.Wait()
	}
	testkit.Wait(t, "files and goroutines as before", func() bool { // the last processes are still exiting
		return openFiles(t) <= files && runtime.NumGoroutine() <= goroutines
	})
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		t.Skip("cannot here: there is no /dev/fd")
	}
	return len(entries)
}

func TestListenTwice(t *testing.T) {
	p := newHome(t).place(t)
	serve(t, p, echo)
	if _, err := daemon.Listen(p); !errors.Is(err, daemon.ErrRunning) {
		t.Errorf("Listen beside a daemon = %v, want ErrRunning", err)
	}
	if err := call(p.Socket); err != nil {
		t.Errorf("the daemon after that: %v", err)
	}
}

// TestNameTaken: a daemon whose socket somebody removed does not take away
// that of the next one.
func TestNameTaken(t *testing.T) {
	p := newHome(t).place(t)
	first := testkit.Must(daemon.Listen(p))(t)
	testkit.OK(t, os.Remove(p.Socket))
	serve(t, p, echo)
	testkit.Equal(t, "Close", first.Close(), nil)
	if err := call(p.Socket); err != nil {
		t.Errorf("the second daemon after the first has closed: %v", err)
	}
}

func TestListenRefuses(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(dir string) error // dir does not exist yet
		want  string
	}{
		{"a link to a folder that the group can change", func(dir string) error {
			return errors.Join(os.Mkdir(dir+"2", 0o700), os.Chmod(dir+"2", 0o770), os.Symlink(dir+"2", dir))
		}, "links to: its mode"},
		{"a link to a file", func(dir string) error {
			return errors.Join(os.WriteFile(dir+"2", nil, 0o600), os.Symlink(dir+"2", dir))
		}, "folder"},
		{"a link to nothing", func(dir string) error { return os.Symlink(dir+"2", dir) }, "folder"},
		{"a file for a folder", func(dir string) error { return os.WriteFile(dir, nil, 0o600) }, "folder"},
		{"a folder that the group can change", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, 0o770))
		}, "chmod go-w"},
		{"a file for a socket", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "ken.sock"), []byte("mine"), 0o600))
		}, "no socket"},
		{"a link for a lock", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.Symlink("/etc/passwd", filepath.Join(dir, "ken.sock.lock")))
		}, "lock"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHome(t)
			testkit.OK(t, tt.spoil(h.dir))
			if l, err := daemon.Listen(h.place(t)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Listen = %v, %v; want %q", l, err, tt.want)
			}
		})
	}
}

// TestLinkedHome: a home that is a symbolic link to a folder of the user is met
// by both of its names.
func TestLinkedHome(t *testing.T) {
	h := newHome(t)
	p := h.place(t)
	real := h.dir + "2"
	testkit.OK(t, errors.Join(os.Mkdir(real, 0o700), os.Symlink(filepath.Base(real), h.dir)))
	serve(t, p, echo)
	if g, err := shim.Ask(p); err != nil || g.PID != os.Getpid() {
		t.Errorf("Ask(%s) = %v, %v; want this process", p.Socket, g, err)
	}
	if err := call(filepath.Join(real, filepath.Base(p.Socket))); err != nil {
		t.Errorf("a visit by the other name: %v", err)
	}
}

// TestLinkOfAnother: a link that another user made, or that leads to a folder of
// another user, is not followed, nor any link where the folder is a private one
// beside those of others.
func TestLinkOfAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("cannot here: only root can be two users")
	}
	const another = 65534
	for name, c := range map[string]struct {
		link, folder int // owners
		private      bool
		want         string
	}{
		"a link of another":      {another, 0, false, "link of another user"},
		"a folder of another":    {0, another, false, "belongs to another user"},
		"a link among strangers": {0, 0, true, "symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t)
			p := h.place(t)
			p.Private = c.private
			err := errors.Join(os.Mkdir(h.dir+"2", 0o700), os.Symlink(h.dir+"2", h.dir),
				os.Lchown(h.dir, c.link, c.link), os.Chown(h.dir+"2", c.folder, c.folder))
			testkit.OK(t, err)
			if l, err := daemon.Listen(p); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Listen = %v, %v; want %q", l, err, c.want)
			}
			if _, err := shim.Ask(p); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Ask = %v; want %q", err, c.want)
			}
		})
	}
}

// stranger is this program, to be run as another user.
func stranger(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("cannot here: only root can be two users")
	}
	own := testkit.Must(os.Executable())(t)
	b := testkit.Must(os.ReadFile(own))(t)
	dir := testkit.Must(os.MkdirTemp("", "ken"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	exe := filepath.Join(dir, "stranger")
	testkit.OK(t, errors.Join(os.WriteFile(exe, b, 0o755), os.Chmod(exe, 0o755), os.Chmod(dir, 0o755)))
	cmd := exec.Command(exe, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return cmd
}

func TestForeignCaller(t *testing.T) {
	h := newHome(t)
	p := h.place(t)
	cmd := stranger(t, "knock", p.Socket)
	serve(t, p, func(context.Context, shim.Hello, net.Conn) error {
		t.Error("a stranger is served")
		return nil
	})
	// The modes alone keep strangers out; we are to notice without them.
	testkit.OK(t, errors.Join(os.Chmod(filepath.Dir(h.dir), 0o755), os.Chmod(h.dir, 0o755), os.Chmod(p.Socket, 0o666)))
	out, err := cmd.CombinedOutput()
	if err != nil || string(out) != "heard \"\", <nil>\n" {
		t.Errorf("a stranger's connection = %s, %v; want it closed without a word", out, err)
	}
}

func TestForeignDaemon(t *testing.T) {
	h := newHome(t)
	p := h.place(t)
	lair := testkit.Must(os.MkdirTemp("", "ken"))(t)
	defer os.RemoveAll(lair)
	testkit.OK(t, os.Chmod(lair, 0o777))
	theirs := filepath.Join(lair, "s")
	cmd := stranger(t, "squat", theirs)
	in := testkit.Must(cmd.StdinPipe())(t)
	out := testkit.Must(cmd.StdoutPipe())(t)
	testkit.OK(t, cmd.Start())
	defer func() { in.Close(); cmd.Wait() }()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the stranger says %q, %v", line, err)
	}
	testkit.OK(t, errors.Join(os.Mkdir(h.dir, 0o700), os.Rename(theirs, p.Socket)))
	w := h.open(t)
	testkit.Equal(t, "stdout", w.close(t, 1), "")
	if got := w.stderr.String(); !strings.Contains(got, "run by user 65534") {
		t.Errorf("stderr = %q, want the stranger named", got)
	}
	testkit.OK(t, os.Chown(h.dir, 65534, 65534))
	w = h.open(t)
	w.close(t, 1)
	if got := w.stderr.String(); !strings.Contains(got, "belongs to another user") {
		t.Errorf("stderr in a foreign folder = %q, want it refused", got)
	}
}
