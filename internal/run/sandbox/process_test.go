//go:build linux

package sandbox

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ken/internal/testkit"
)

// startIn starts a spec under a certain profile.
func startIn(ctx context.Context, p Profile, s Spec) (*Process, error) {
	s, err := s.filled()
	if err != nil {
		return nil, err
	}
	found := Isolation{Profile: p}
	if p != None {
		found.LandlockABI, found.Seccomp = 1, true
	}
	return startUnder(ctx, s, found)
}

// A conversation is a process and the far ends of its streams.
type conversation struct {
	*Process
	in  *os.File
	out *bufio.Reader
}

// converse starts a program whose streams are files, with our ends of them.
func converse(t testing.TB, ctx context.Context, p Profile, s Spec) *conversation {
	t.Helper()
	var files [4]*os.File
	for i := range 2 {
		r, w, err := os.Pipe()
		must(t, err)
		files[2*i], files[2*i+1] = r, w
	}
	s.StdinFile, s.StdoutFile = files[0], files[3]
	process, err := startIn(ctx, p, s)
	files[0].Close()
	files[3].Close()
	if err != nil {
		t.Fatalf("Start(%s, %q) = %v", p, s.Args, err)
	}
	t.Cleanup(func() {
		files[1].Close()
		files[2].Close()
		process.Wait()
	})
	return &conversation{process, files[1], bufio.NewReaderSize(files[2], 1<<20)}
}

// ask writes a line and reads one.
func (c *conversation) ask(line string) (string, error) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		return "", err
	}
	return c.out.ReadString('\n')
}

// TestStart converses with a tool for as long as it likes, knows what holds it
// meanwhile, and sees it end with its input.
func TestStart(t *testing.T) {
	eachProfile(t, func(t *testing.T, p Profile) {
		for _, files := range []bool{false, true} {
			s := open(`while read -r x; do echo "got $x"; echo noise >&2; done; exit 5`)
			if s.Open.Files = files; !files {
				s.Open.Network, s.Work, s.Dir = false, inside(t), ""
			}
			var stderr strings.Builder
			s.Stderr = &stderr
			c := converse(t, t.Context(), p, s)
			if c.Pid() <= 1 || c.Isolation().Profile != p {
				t.Errorf("Pid, Isolation = %d, %+v, want a process under %s", c.Pid(), c.Isolation(), p)
			}
			for i := range 3 {
				if got, err := c.ask(fmt.Sprint(i)); got != fmt.Sprintf("got %d\n", i) || err != nil {
					t.Fatalf("ask = %q, %v", got, err)
				}
			}
			select {
			case <-c.Done():
				t.Error("Done before its input ended")
			default:
			}
			c.in.Close()
			o, err := c.Wait()
			if again, _ := c.Wait(); err != nil || o.ExitCode != 5 || o.Stdout.Bytes != 0 || o.Stderr.Bytes != 18 || stderr.String() != "noise\nnoise\nnoise\n" || again.ExitCode != 5 {
				t.Errorf("Wait = %+v, %v, stderr %q, want exit 5, no stdout kept and three lines of noise", o, err, stderr.String())
			}
			<-c.Done()
		}
	})
}

// family leaves behind a process of another session, whose parent is gone, that
// ignores polite signals and holds a lock for as long as it or a child lives.
// It says "up" when the lock is held.
const family = `(setsid sh -c '(setsid sh -c "trap \"\" TERM HUP INT; exec 9>\"$L\"; flock 9; echo held >\"$L.up\"; while :; do sleep 100; done" &)' </dev/null >/dev/null 2>&1 &)
while [ ! -e "$L.up" ]; do sleep 0.01; done; echo up; `

// alone waits until no process holds the lock.
func alone(t *testing.T, lock string) {
	t.Helper()
	f, err := os.Open(lock)
	must(t, err)
	defer f.Close()
	testkit.Wait(t, "all of the tool's processes are gone", func() bool {
		return !errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK)
	})
}

// TestStopped ends a context: the tool gets its chance to say good-bye, and
// then all of its family is gone.
func TestStopped(t *testing.T) {
	testkit.CI(t, "waits for the ends of tools")
	tests := []struct {
		name, trap string
		grace      time.Duration
		last       string // the tool's own last word
	}{
		{"polite", `trap "echo bye; exit 0" TERM`, 20 * time.Second, "bye\n"},
		{"stubborn", `trap "" TERM`, 50 * time.Millisecond, ""},
		{"without grace", `trap "echo bye; exit 0" TERM`, 0, ""},
	}
	eachProfile(t, func(t *testing.T, p Profile) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				lock := filepath.Join(t.TempDir(), "lock")
				s := open(tt.trap + "\n" + family + "while :; do sleep 0.01; done")
				s.Env, s.Limits.Grace = []string{"L=" + lock}, tt.grace
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c := converse(t, ctx, p, s)
				if got, err := c.out.ReadString('\n'); got != "up\n" {
					t.Fatalf("the tool said %q, %v", got, err)
				}
				cancel()
				o, err := c.Wait()
				if err != nil || o.End != Cancelled {
					t.Errorf("Wait = %s, %v, want cancelled", o.End, err)
				}
				alone(t, lock)
				if rest, err := io.ReadAll(c.out); string(rest) != tt.last || err != nil {
					t.Errorf("last words = %q, %v, want %q", rest, err, tt.last)
				}
			})
		}
	})
}

// superviseEnv names the profile under which a test binary run again starts a
// family, to be killed over it.
const superviseEnv = "KEN_TEST_SUPERVISE"

// TestSupervisorKilled kills the supervisor of a tool, without a chance to clean
// up: the tool and its descendants die too.
func TestSupervisorKilled(t *testing.T) {
	if p := os.Getenv(superviseEnv); p != "" {
		s := open(family + "sleep 1000")
		s.Env, s.StdoutFile = []string{"L=" + os.Getenv("L")}, os.Stdout
		c, err := startIn(context.Background(), Profile(p), s)
		must(t, err)
		<-c.Done()
		return
	}
	testkit.CI(t, "runs the tests again")
	eachProfile(t, func(t *testing.T, p Profile) {
		lock := filepath.Join(t.TempDir(), "lock")
		cmd := exec.Command("/proc/self/exe", "-test.run=^TestSupervisorKilled$")
		cmd.Env = append(os.Environ(), superviseEnv+"="+string(p), "L="+lock)
		out, err := cmd.StdoutPipe()
		must(t, err)
		must(t, cmd.Start())
		defer cmd.Wait()
		if got, err := bufio.NewReader(out).ReadString('\n'); got != "up\n" {
			t.Fatalf("the tool said %q, %v", got, err)
		}
		must(t, cmd.Process.Signal(syscall.SIGKILL))
		alone(t, lock)
	})
}

// TestNothingLeaks runs tools at once, starts and stops servers, and then counts
// what is left.
func TestNothingLeaks(t *testing.T) {
	testkit.CI(t, "starts dozens of tools")
	count := func() (files, routines int) {
		entries, err := os.ReadDir("/proc/self/fd")
		must(t, err)
		return len(entries), runtime.NumGoroutine()
	}
	work := inside(t)
	round := func(t *testing.T, p Profile) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var tools sync.WaitGroup
		var servers []*Process
		for range 8 {
			tools.Go(func() {
				if o, err := runIn(t.Context(), p, shell(work, "echo $$")); err != nil || o.ExitCode != 0 || o.Stdout.Bytes == 0 {
					t.Errorf("Run = %+v, %v", o, err)
				}
			})
			servers = append(servers, converse(t, ctx, p, open("cat; sleep 1000")).Process)
		}
		tools.Wait()
		cancel()
		for _, server := range servers {
			if o, err := server.Wait(); err != nil || o.End != Cancelled {
				t.Errorf("Wait = %s, %v, want cancelled", o.End, err)
			}
			testkit.Wait(t, "its process is gone", func() bool { return errors.Is(unix.Kill(server.Pid(), 0), unix.ESRCH) })
		}
	}
	for _, p := range profiles {
		t.Run(string(p), func(t *testing.T) {
			t.Run("first", func(t *testing.T) { round(t, p) })
			files, routines := count()
			for range 2 {
				t.Run("again", func(t *testing.T) { round(t, p) })
			}
			testkit.Wait(t, fmt.Sprintf("no more than %d files and %d goroutines", files+4, routines+4), func() bool {
				f, r := count()
				return f <= files+4 && r <= routines+4
			})
		})
	}
}
