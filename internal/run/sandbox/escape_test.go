//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ken/internal/run/sandbox/confine"
	"ken/internal/testkit"
)

// TestEscapes is the escape matrix: what a canary gets done in each profile,
// by what it says and by what the things it reached for saw. Without any
// sandbox it must get everything done, or the attempt shows nothing.
func TestEscapes(t *testing.T) {
	t.Parallel()
	outside := []string{"read", "symlink-read", "append", "chmod", "utime", "setuid", "stat", "tcp", "udp", "unix", "datagram",
		"shm", "limit", "signal", "environ", "userns"}
	// Looking into a process of root needs its capabilities, which are given
	// up even where nothing else is.
	asked := slices.DeleteFunc(slices.Clone(outside), func(n string) bool { return n == "environ" && os.Getuid() == 0 })
	tests := []struct {
		profile Profile
		escapes []string
	}{
		{Full, nil},
		{Landlock, []string{"stat"}},
		{None, asked},
	}
	for _, tt := range tests {
		t.Run(string(tt.profile), func(t *testing.T) {
			r, err := release(tt.profile)
			must(t, err)
			compare(t, r.Attempts, tt.escapes)
		})
	}
	t.Run("control", func(t *testing.T) {
		compare(t, loose(t), append(outside, "big-file", "daemon"))
	})
}

func compare(t *testing.T, got []Attempt, escapes []string) {
	t.Helper()
	for _, a := range got {
		if want := !slices.Contains(escapes, a.Name); a.Stopped != want {
			t.Errorf("%s stopped = %v, want %v (%s)", a.Name, a.Stopped, want, a.Detail)
		}
	}
}

// loose runs the canary with no sandbox at all. Of the attempts it leaves out
// those that would harm the machine.
func loose(t *testing.T) []Attempt {
	trap, err := newTrap()
	must(t, err)
	defer trap.close()
	args := slices.DeleteFunc(trap.attempts(), func(a string) bool { return a == "mount" || a == "ptrace" })
	cmd := exec.Command(selfExe)
	cmd.Args = append([]string{confine.CanaryName}, args...)
	out, err := cmd.Output()
	must(t, err)
	if data, err := trap.work.ReadFile("lock"); err == nil {
		if pid, err := strconv.Atoi(string(data)); err == nil && pid > 1 {
			defer unix.Kill(pid, unix.SIGKILL)
		}
	}
	out = append(out, []byte("{\"name\":\"mount\",\"stopped\":\"left out\"}\n{\"name\":\"ptrace\",\"stopped\":\"left out\"}\n")...)
	list, err := trap.judge(out)
	must(t, err)
	return list
}

func TestProbe(t *testing.T) {
	r := Probe(context.Background())
	if r.Isolation.Profile == None {
		t.Errorf("Probe = %+v, want a profile", r)
	}
	if len(r.Attempts) < 12 {
		t.Errorf("Probe made %d attempts, want a dozen", len(r.Attempts))
	}
	if again := Probe(context.Background()); &again.Attempts[0] != &r.Attempts[0] {
		t.Error("Probe probed twice")
	}
	t.Logf("%+v", r.Isolation)
}

// TestT10TreeKilled leaves processes behind in every way, killed and by an
// early exit, and looks for them in the whole of /proc.
func TestT10TreeKilled(t *testing.T) {
	testkit.CI(t, "starts dozens of processes")
	t.Parallel()
	ways := []struct{ name, script string }{
		{"child", "sleep $N & "},
		{"setsid", "setsid sleep $N & "},
		{"double fork", "(setsid sh -c 'sleep $N & sleep $N' &) "},
		{"nohup", "nohup sleep $N >/dev/null 2>&1 & "},
		{"closed streams", "setsid sleep $N <&- >&- 2>&- & "},
	}
	eachProfile(t, func(t *testing.T, p Profile) {
		mark := func(i int) string {
			return strconv.Itoa(700000+os.Getpid()%10000*10+i) + "." + strconv.Itoa(len(p))
		}
		// leaves runs a script that says when it has begun, and looks for what it
		// leaves behind when it is killed, or ends by itself once there is a file
		// seen: everything of marks is there meanwhile, and nothing then.
		leaves := func(t *testing.T, killed bool, script string, env []string, marks ...string) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			work := inside(t)
			s := shell(work, script)
			s.Env = env
			s.Live = writerFunc(func([]byte) {
				for _, m := range marks {
					testkit.Wait(t, "a process is there: "+m, func() bool { return len(processes(t, m)) > 0 })
				}
				if killed {
					cancel()
				} else if err := work.WriteFile("seen", nil, 0o644); err != nil {
					t.Error(err)
				}
			})
			o, err := runIn(ctx, p, s)
			must(t, err)
			for _, m := range marks {
				if left := processes(t, m); len(left) > 0 {
					t.Errorf("%s left %v behind", o.End, left)
				}
			}
		}
		t.Run("all, killed", func(t *testing.T) {
			t.Parallel() // it is mostly waiting
			script := ""
			var env, marks []string
			for i, way := range ways {
				n := "N" + strconv.Itoa(i)
				script += strings.ReplaceAll(way.script, "$N", "$"+n) + "\n"
				env, marks = append(env, n+"="+mark(i)), append(marks, mark(i))
			}
			leaves(t, true, script+"echo up; read x; wait; sleep 1000", env, marks...)
		})
		for i, way := range ways {
			t.Run(way.name, func(t *testing.T) {
				t.Parallel()
				m := mark(len(ways) + i)
				leaves(t, false, way.script+"\necho up; while [ ! -e seen ]; do sleep 0.01; done", []string{"N=" + m}, m)
			})
		}
	})
}

// processes lists those whose command line ends in mark.
func processes(t *testing.T, mark string) []string {
	t.Helper()
	var list []string
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	must(t, err)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err == nil && bytes.HasSuffix(bytes.TrimRight(data, "\x00"), []byte("\x00"+mark)) {
			list = append(list, filepath.Base(filepath.Dir(f)))
		}
	}
	return list
}

// TestWorkExchanged moves the work directory away after it was opened and puts
// a link to somewhere else in its place.
func TestWorkExchanged(t *testing.T) {
	for _, p := range []Profile{Full, Landlock} {
		t.Run(string(p), func(t *testing.T) {
			dir := t.TempDir()
			work, victim := filepath.Join(dir, "work"), filepath.Join(dir, "victim")
			for _, d := range []string{work, victim} {
				must(t, os.Mkdir(d, 0o755))
			}
			root, err := os.OpenRoot(work)
			must(t, err)
			defer root.Close()
			must(t, os.Rename(work, work+".old"), os.Symlink(victim, work))
			_, err = runIn(context.Background(), p, shell(root, "echo x >made"))
			var r *Refusal
			if err != nil && (!errors.As(err, &r) || !strings.Contains(err.Error(), "replaced since")) {
				t.Errorf("Run = %v, want it to run in the opened directory or say that it was replaced", err)
			}
			if _, statErr := os.Stat(filepath.Join(victim, "made")); statErr == nil {
				t.Error("the tool wrote in the directory put in place of its own")
			}
			if _, statErr := root.Stat("made"); err == nil && statErr != nil {
				t.Errorf("it ran, and not in the opened directory: %v", statErr)
			}
		})
	}
}

// TestOddFiles has the quota look at what would hang or mislead it: a FIFO, a
// link that leads in circles, one that leads out to a large tree.
func TestOddFiles(t *testing.T) {
	s := shell(inside(t), "mkfifo pipe; ln -s . circle; ln -s /usr out; mkdir -p a/b/c; echo done")
	s.Limits.Disk = 4 * mib
	if o := mustRun(t, Full, s); o.End != Exited || o.Stdout.Text() != "done\n" || o.Used.Disk > mib {
		t.Errorf("Run = %s %q with %d bytes of disk", o.End, o.Stdout.Text(), o.Used.Disk)
	}
}
