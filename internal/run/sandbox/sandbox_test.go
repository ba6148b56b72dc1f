//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ken/internal/run/sandbox/confine"
	"ken/internal/testkit"
)

// TestMain lets more tests run at once than there are cores: what runs in
// parallel here mostly waits for other processes.
func TestMain(m *testing.M) {
	if name := os.Getenv(underFilter); name != "" {
		if err := filtered(name); err != nil {
			panic(err)
		}
		return
	}
	if os.Getenv(asShielded) != "" {
		if err := Shield(); err != nil {
			panic(err)
		}
	}
	if err := flag.Set("test.parallel", "6"); err != nil { // before the command line, which may say otherwise
		panic(err)
	}
	os.Exit(m.Run())
}

// The users as whom tests run again. They are two because both runs go on at the
// same time, and a limit of processes counts all that a user has.
const (
	nobody     = 65534
	nobodyElse = 65533
)

// asNobody, in the environment, marks a test binary run again without rights.
const asNobody = "KEN_TEST_AS_NOBODY"

// asShielded, in the environment, marks a test binary that is shielded first, as Ken does.
const asShielded = "KEN_TEST_SHIELDED"

// TestAsNobody runs the tests of this package again as an ordinary user, when
// it is root who runs them.
func TestAsNobody(t *testing.T) { testAsNobody(t, nobody, 20) }

// TestAsShielded runs those again that start programs, as an ordinary user in a
// shielded process: that is how Ken runs.
func TestAsShielded(t *testing.T) {
	testAsNobody(t, nobodyElse, 10, asShielded+"=1", "-test.run=^Test(Shield|Nest|Run|Probe|Canary|Escape|Process|Memory|Limits$|Mask|Protect|Unheld|Open|Start|Stopped|View)")
}

func testAsNobody(t *testing.T, uid uint32, least int, more ...string) {
	if os.Getuid() != 0 {
		t.Skip("cannot here: not root, the tests run as an ordinary user as it is")
	}
	testkit.Nightly(t, "the whole package again")
	t.Parallel()
	dir, err := os.MkdirTemp("", "sandbox-nobody-") // t.TempDir lies below a closed directory
	must(t, err)
	defer os.RemoveAll(dir)
	must(t, os.Chmod(dir, 0o777))
	data, err := os.ReadFile("/proc/self/exe")
	must(t, err)
	binary := filepath.Join(dir, "sandbox.test")
	if err := writeProgram(func() error { return os.WriteFile(binary, data, 0o755) }); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "-test.v", "-test.timeout="+(4*testkit.Patience).String(), fmt.Sprintf("-test.short=%v", testing.Short()))
	cmd.Dir = dir
	cmd.Env = []string{asNobody + "=1", "TMPDIR=" + dir, "PATH=/usr/bin:/bin", "HOME=" + dir, "GORACE=" + os.Getenv("GORACE"), hogBinary + "=" + buildHog(t)}
	for _, word := range more {
		if strings.HasPrefix(word, "-") {
			cmd.Args = append(cmd.Args, word)
		} else {
			cmd.Env = append(cmd.Env, word)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	if n := bytes.Count(out, []byte("--- PASS")); err != nil || n < least {
		t.Errorf("the tests as uid %d: %v, %d passed, want at least %d\n%s", uid, err, n, least, out)
	}
}

// writeProgram writes a file that is to be run. No process is started meanwhile:
// it would have the file open for writing for a moment, in which the kernel
// refuses to run it.
func writeProgram(write func() error) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return write()
}

// runIn runs a spec under a certain profile.
func runIn(ctx context.Context, p Profile, s Spec) (Outcome, error) {
	s, err := s.filled()
	if err != nil {
		return Outcome{}, err
	}
	found := Isolation{Profile: p}
	if p != None {
		found.LandlockABI, found.Seccomp = 1, true
	}
	return runUnder(ctx, s, found)
}

// inside opens a new work directory.
func inside(t testing.TB) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}

// shell is a spec for a script of /bin/sh.
func shell(work *os.Root, script string) Spec {
	return Spec{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Work: work, Require: BestEffort}
}

// mustRun runs a spec that must start.
func mustRun(t testing.TB, p Profile, s Spec) Outcome {
	t.Helper()
	o, err := runIn(context.Background(), p, s)
	if err != nil {
		t.Fatalf("Run(%s, %q) = %v, want an outcome", p, s.Args, err)
	}
	return o
}

// must ends the test at the first error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// says wants a tool to have written that to its output.
func says(t testing.TB, o Outcome, want string) {
	t.Helper()
	if got := o.Stdout.Text(); got != want {
		t.Errorf("Run under %s = %s %q %q, want %q", o.Isolation.Profile, o.End, got, o.Stderr.Text(), want)
	}
}

var profiles = []Profile{Full, Landlock, None}

func eachProfile(t *testing.T, f func(t *testing.T, p Profile)) {
	for _, p := range profiles {
		t.Run(string(p), func(t *testing.T) { f(t, p) })
	}
}

func TestRun(t *testing.T) {
	eachProfile(t, func(t *testing.T, p Profile) {
		tests := []struct {
			name, script string
			env          []string
			stdin        string
			want         string // stdout
			stderr       string
			code         int
		}{
			{name: "output", script: "echo out; echo err >&2", want: "out\n", stderr: "err\n"},
			{name: "status", script: "exit 3", code: 3},
			{name: "stdin", script: "cat", stdin: "fed\xff\n", want: "fed\xff\n"},
			{name: "no stdin", script: "cat", want: ""},
			{name: "environment", script: "env | grep -v -e ^PWD= -e ^_= -e ^HOME= -e ^SHLVL= -e ^OLDPWD= | sort", env: []string{"A=1", "PATH=/usr/bin:/bin"}, want: "A=1\nPATH=/usr/bin:/bin\n"},
			{name: "home is work", script: `[ "$HOME" = "$PWD" ] && echo same`, want: "same\n"},
			{name: "null device", script: "echo x >/dev/null && echo ok", want: "ok\n"},
			{name: "writes", script: "mkdir -p a/b && echo x >a/b/c && mv a/b/c d && cat d", want: "x\n"},
			{name: "no terminal", script: "[ -t 0 ] || [ -t 1 ] || echo none", want: "none\n"},
			{name: "no new privileges", script: "grep NoNewPrivs /proc/self/status || echo 'NoNewPrivs:	1'", want: "NoNewPrivs:\t1\n"},
		}
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				s := shell(inside(t), tt.script)
				s.Env = tt.env
				if tt.stdin != "" {
					s.Stdin = strings.NewReader(tt.stdin)
				}
				o := mustRun(t, p, s)
				if o.End != Exited || o.ExitCode != tt.code || string(o.Stdout.Head) != tt.want ||
					!strings.Contains(o.Stderr.Text(), tt.stderr) {
					t.Errorf("Run(%q) = %s %d %q %q, want exited %d %q %q", tt.script,
						o.End, o.ExitCode, o.Stdout.Text(), o.Stderr.Text(), tt.code, tt.want, tt.stderr)
				}
			})
		}
	})
}

// TestOwner shows that files made by a tool belong to the directory's owner,
// though as root the tool was someone else.
func TestOwner(t *testing.T) {
	work := inside(t)
	o := mustRun(t, Full, shell(work, "echo x >made; id -u; id -G"))
	st, err := work.Stat("made")
	must(t, err)
	if uid := st.Sys().(*syscall.Stat_t).Uid; int(uid) != os.Getuid() {
		t.Errorf("owner of a file made = %d, want %d", uid, os.Getuid())
	}
	want := fmt.Sprintf("%d\n%d\n", os.Getuid(), os.Getgid())
	if os.Getuid() == 0 {
		want = fmt.Sprintf("%d\n%d\n", confine.ToolUID, confine.ToolUID)
	}
	if os.Getenv(asNobody) != "" || os.Getuid() == 0 {
		if o.Stdout.Text() != want {
			t.Errorf("id = %q, want %q", o.Stdout.Text(), want)
		}
	}
}

// TestRefused lists what never starts, and that it did not.
func TestRefused(t *testing.T) {
	work := inside(t)
	touch := Spec{Path: "/usr/bin/touch", Args: []string{"touch", "ran"}, Work: work}
	tests := []struct {
		name  string
		found Isolation
		edit  func(*Spec)
		layer string
	}{
		{"full is not there", Isolation{Profile: Landlock, LandlockABI: 7, Seccomp: true}, func(s *Spec) { s.Require = RequireFull }, "namespaces"},
		{"nothing is there", Isolation{Profile: None}, func(s *Spec) { s.Require = "" }, "landlock"},
		{"no landlock in full", Isolation{Profile: Full, Seccomp: true}, func(s *Spec) { s.Require = RequireFull }, "landlock"},
		{"no seccomp", Isolation{Profile: Landlock, LandlockABI: 7}, func(s *Spec) { s.Require = RequireLandlock }, "seccomp"},
		{"network without namespaces", Isolation{Profile: Landlock, LandlockABI: 7, Seccomp: true},
			func(s *Spec) { s.Egress = noEgress{} }, "egress"},
		{"no such program", Isolation{Profile: Full, LandlockABI: 7, Seccomp: true}, func(s *Spec) { s.Path = "/usr/bin/no-such" }, "exec"},
		{"no such program, without isolation", Isolation{Profile: None}, func(s *Spec) { s.Path, s.Require = "/usr/bin/no-such", Off }, "exec"},
		{"a directory", Isolation{Profile: Full, LandlockABI: 7, Seccomp: true}, func(s *Spec) { s.Path = "/usr/bin" }, "exec"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := touch
			tt.edit(&s)
			s, err := s.filled()
			must(t, err)
			_, err = runUnder(context.Background(), s, tt.found)
			var r *Refusal
			if !errors.As(err, &r) || r.Layer != tt.layer {
				t.Errorf("Run = %v, want a refusal for %s", err, tt.layer)
			}
			if _, err := work.Stat("ran"); err == nil {
				t.Error("the tool ran")
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(ctx, touch); !errors.Is(err, context.Canceled) {
		t.Errorf("Start with a dead context = %v, want its error", err)
	}
	mustRun(t, Full, touch)
	if _, err := work.Stat("ran"); err != nil {
		t.Errorf("control: the tool did not run: %v", err)
	}
}

// TestSpecRefused lists specs that make no sense, or contradict themselves.
func TestSpecRefused(t *testing.T) {
	work := inside(t)
	good := func() Spec { return Spec{Path: "/bin/true", Args: []string{"true"}, Work: work} }
	type table map[string]func(*Spec)
	tests := table{
		"relative program":         func(s *Spec) { s.Path = "true" },
		"unclean program":          func(s *Spec) { s.Path = "/usr/../bin/true" },
		"no arguments":             func(s *Spec) { s.Args = nil },
		"no work directory":        func(s *Spec) { s.Work = nil },
		"all of the disk":          func(s *Spec) { s.Write = []string{"/"} },
		"relative grant":           func(s *Spec) { s.Read = []string{"../x"} },
		"unknown requirement":      func(s *Spec) { s.Require = "require-nothing" },
		"environment without name": func(s *Spec) { s.Env = []string{"=x"} },
		"environment twice":        func(s *Spec) { s.Env = []string{"A=1", "A=2"} },
		"environment with NUL":     func(s *Spec) { s.Env = []string{"A=\x00"} },
		"hidden, granted":          func(s *Spec) { s.Open = Open{Network: true, Hide: []string{"/usr/share"}} },
	}
	for name, list := range map[string][]string{
		"protect": {"", ".", "..", "../x", "/etc/passwd", "d/", "a/../b", "x\xff"},
		"mask":    {"", ".", "..", "/etc/passwd", "a/../b"},
		"dir":     {"..", "a/../..", "/etc", "/usr", "/", "a\xff"},
	} {
		for _, value := range list {
			tests[name+" "+value] = func(s *Spec) {
				switch name {
				case "protect":
					s.Protect = []string{value}
				case "mask":
					s.Mask = []string{value}
				case "dir":
					s.Dir = value
				}
			}
		}
	}
	inOpen := table{
		"relative":     func(s *Spec) { s.Open.Hide = []string{"x"} },
		"root":         func(s *Spec) { s.Open.Hide = []string{"/"} },
		"starts in it": func(s *Spec) { s.Open.Hide, s.Dir = []string{"/usr"}, "/usr/bin" },
		"lies in it":   func(s *Spec) { s.Open.Hide = []string{"/bin"} },
		"protect":      func(s *Spec) { s.Work, s.Protect = work, []string{"x"} },
		"egress":       func(s *Spec) { s.Egress = noEgress{} },
		"disk":         func(s *Spec) { s.Limits.Disk = 1 },
		"two stdins":   func(s *Spec) { s.Stdin, s.StdinFile = strings.NewReader(""), os.Stdin },
		"two stdouts":  func(s *Spec) { s.Stdout, s.StdoutFile = os.Stdout, os.Stdout },
	}
	check := func(list table, good func() Spec) {
		s := good()
		if _, err := s.filled(); err != nil {
			t.Errorf("control: filled() = %v", err)
		}
		for name, edit := range list {
			s := good()
			edit(&s)
			if _, err := s.filled(); err == nil {
				t.Errorf("%q: filled() = nil, want an error", name)
			}
		}
	}
	check(tests, good)
	check(inOpen, func() Spec { return open("true") })
}

// TestUnheld: what a profile cannot give is refused where isolation is required,
// and else said.
func TestUnheld(t *testing.T) {
	for _, tt := range []struct {
		layer   string
		require Requirement
		edit    func(s *Spec, dir string)
	}{
		{"egress", RequireLandlock, func(s *Spec, _ string) { s.Egress = noEgress{} }},
		{"protect", RequireLandlock, func(s *Spec, _ string) { s.Protect = []string{"f"} }},
		{"mask", RequireLandlock, func(s *Spec, _ string) { s.Mask = []string{"f"} }},
		{"hide", RequireFull, func(s *Spec, dir string) { *s = open("echo evil >"+dir+"/f", dir) }},
	} {
		for _, p := range []Profile{Landlock, None} {
			work := inside(t)
			must(t, work.WriteFile("f", []byte("good"), 0o644))
			s := shell(work, "echo evil >f")
			tt.edit(&s, work.Name())
			s.Require = tt.require
			var r *Refusal
			if _, err := runIn(t.Context(), p, s); !errors.As(err, &r) || p == Landlock && tt.require == RequireLandlock && r.Layer != tt.layer {
				t.Errorf("%s, %s: Run = %v, want a refusal", tt.layer, p, err)
			}
			if data, _ := work.ReadFile("f"); string(data) != "good" {
				t.Errorf("%s, %s: it ran all the same", tt.layer, p)
			}
			s.Require = BestEffort
			o := mustRun(t, p, s)
			if data, _ := work.ReadFile("f"); string(data) != "evil\n" || !strings.Contains(strings.Join(o.Isolation.Missing, "\n"), tt.layer+": ") {
				t.Errorf("%s, %s: f is %q, missing %q; want the gap to be one, and said", tt.layer, p, data, o.Isolation.Missing)
			}
		}
	}
	// What is not there can be made, which is said.
	dir := t.TempDir()
	s := open("echo ran", dir+"/absent")
	s.Require = RequireFull
	if text := strings.Join(mustRun(t, Full, s).Isolation.Missing, "\n"); !strings.Contains(text, "absent is not there") {
		t.Errorf("hide: Missing = %q, want the absent name", text)
	}
	work := inside(t)
	s = shell(work, "mkdir -p new && echo evil >new/name && cat new/name; mkdir d")
	s.Protect = []string{"new/name"}
	o := mustRun(t, Full, s)
	if text := strings.Join(o.Isolation.Missing, "\n"); !strings.Contains(text, "new/name is not there") || o.Stdout.Text() != "evil\n" {
		t.Errorf("protect: Run = %q, missing %q, want the absent name told of", o.Stdout.Text(), text)
	}
	// A way through a link is refused.
	must(t, work.Symlink("d", "way"))
	s.Protect = []string{"way/f"}
	if _, err := runIn(t.Context(), Full, s); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("Run with a name behind a link = %v, want a refusal that says so", err)
	}
}

type noEgress struct{}

func (noEgress) Serve(context.Context, *os.File) error { return nil }

// TestIsolationReported compares the report with what the kernel says.
func TestIsolationReported(t *testing.T) {
	work := inside(t)
	host, _ := os.Readlink("/proc/self/ns/pid")
	o := mustRun(t, Full, shell(work, "readlink /proc/self/ns/pid; grep -E '^(Seccomp|CapEff|CapBnd):' /proc/self/status"))
	text := o.Stdout.Text()
	if strings.Contains(text, host) || !strings.Contains(text, "Seccomp:\t2") ||
		strings.Count(text, "\t0000000000000000") != 2 {
		t.Errorf("inside full: %s (host pid namespace %s)", text, host)
	}
	i := o.Isolation
	if i.Profile != Full || i.LandlockABI < 1 || !i.Seccomp || !i.NetNS || !i.PidNS || !i.ReadOnly || len(i.Rlimits) < 4 {
		t.Errorf("Isolation = %+v, want everything", i)
	}
	o = mustRun(t, None, shell(work, "readlink /proc/self/ns/pid"))
	if i := o.Isolation; i.Profile != None || i.LandlockABI != 0 || i.Seccomp || i.NetNS || !strings.Contains(o.Stdout.Text(), host) {
		t.Errorf("Isolation without any = %+v", i)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// TestGrace shows that a tool can tidy up, and that one that will not is killed.
func TestGrace(t *testing.T) {
	t.Parallel() // it is mostly waiting
	testkit.CI(t, "waits for the ends of runs")
	eachProfile(t, func(t *testing.T, p Profile) {
		s := shell(inside(t), `trap 'echo tidy; exit 7' TERM; echo up; while :; do sleep 0.01; done`)
		s.Limits = Limits{Wall: 5 * time.Second, Grace: time.Minute}
		if o := mustRun(t, p, s); o.End != TimedOut || o.Stdout.Text() != "up\ntidy\n" || o.Limit != "wall" {
			t.Errorf("with grace = %s %q, want timed-out after tidying", o.End, o.Stdout.Text())
		}
		s = shell(inside(t), `trap '' TERM; echo up; while :; do sleep 0.01; done`)
		s.Limits = Limits{Wall: 5 * time.Second, Grace: 100 * time.Millisecond}
		if o := mustRun(t, p, s); o.End != TimedOut || o.Stdout.Text() != "up\n" || o.Signal != "SIGKILL" {
			t.Errorf("deaf tool = %s %s %q, want it killed", o.End, o.Signal, o.Stdout.Text())
		}
	})
}

// TestRunChoosesProfile runs by the front door, which probes.
func TestRunChoosesProfile(t *testing.T) {
	found := Probe(context.Background()).Isolation
	for _, req := range []Requirement{RequireFull, RequireLandlock, BestEffort, Off, ""} {
		s := shell(inside(t), "echo x")
		s.Require = req
		o, err := Run(context.Background(), s)
		want := found.Profile
		if req == Off {
			want = None
		}
		if err != nil || o.Isolation.Profile != want || o.Stdout.Text() != "x\n" {
			t.Errorf("Run(%q) = %s, %v, want profile %s", req, o.Isolation.Profile, err, want)
		}
		if req == "" {
			req = RequireLandlock
		}
		if o.Isolation.Required != req {
			t.Errorf("Required = %q, want %q", o.Isolation.Required, req)
		}
	}
}
