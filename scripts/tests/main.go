// Tests runs the tests of the tree and says what they did:
//
//	go run ./scripts/tests test       what a newcomer waits for; needs Go and nothing else
//	go run ./scripts/tests ci         what must hold before a change lands
//	go run ./scripts/tests nightly    the rest: programs of others, chaos, installed packages, fuzzing
//
// Names of steps behind the word run only those steps. A step that fails does
// not end the run, so that one run shows everything that is wrong. Under CI=true
// a test that is skipped because something is missing has failed.
package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("which of %s?", commandNames()))
	}
	ok, err := run(os.Args[1], os.Args[2:])
	if err != nil {
		fail(err)
	}
	if !ok {
		os.Exit(1) // the table has said all; its closing line stays the last
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "tests:", err)
	os.Exit(2)
}

// A command is a word of the command line with its steps.
type command struct {
	name  string
	next  string // the command that has what this one leaves out
	steps []step
}

// A step is one line of the table.
type step struct {
	name string
	take func(*place, *Step)
}

func commandNames() string {
	var names []string
	for _, c := range commands {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

func run(word string, only []string) (ok bool, err error) {
	i := slices.IndexFunc(commands, func(c command) bool { return c.name == word })
	if i < 0 {
		return false, fmt.Errorf("%q is none of %s", word, commandNames())
	}
	c := commands[i]
	for _, name := range only {
		if !slices.ContainsFunc(c.steps, func(s step) bool { return s.name == name }) {
			var names []string
			for _, s := range c.steps {
				names = append(names, s.name)
			}
			return false, fmt.Errorf("%s has no step %q: it has %s", word, name, strings.Join(names, ", "))
		}
	}
	p, err := newPlace(os.Stdout)
	if err != nil {
		return false, err
	}
	defer p.remove()
	var done []*Step
	for _, s := range c.steps {
		if len(only) > 0 && !slices.Contains(only, s.name) {
			continue
		}
		fmt.Fprintf(p.out, "== %s\n", s.name)
		r := &Step{Name: s.name}
		began := time.Now()
		s.take(p, r)
		r.Seconds = time.Since(began).Seconds()
		done = append(done, r)
	}
	return report(p.out, c, done, allowance(), time.Since(p.began)), nil
}

// A place is where a run of this program works: a folder that is removed at its
// end, whatever happens.
type place struct {
	dir   string
	out   io.Writer
	began time.Time
}

func newPlace(out io.Writer) (*place, error) {
	dir, err := os.MkdirTemp("", "ken-tests-")
	if err != nil {
		return nil, err
	}
	// As root, the tests run programs as other users, who must get there.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	p := &place{dir: dir, out: out, began: time.Now()}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ended
		p.remove()
		os.Exit(130)
	}()
	return p, nil
}

func (p *place) remove() {
	if err := os.RemoveAll(p.dir); err != nil {
		fmt.Fprintln(os.Stderr, "tests: remove", p.dir+":", err)
	}
}

// file names a file of the run's own folder.
func (p *place) file(name string) string { return filepath.Join(p.dir, name) }

// command returns a program whose temporary files are the run's. All that is built
// without the race detector is built alike, so that a package is compiled once for
// vet, for tests and for the program.
func (p *place) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+p.dir, "GOTMPDIR="+p.dir, "CGO_ENABLED=0",
		"GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -trimpath -buildvcs=false"),
		// A program that looks for races sleeps a second at its end, by default.
		"GORACE="+strings.TrimSpace("atexit_sleep_ms=0 "+os.Getenv("GORACE")))
	return cmd
}

// check runs a program whose success is the whole result; with silent, one that
// also prints nothing.
func (p *place) check(s *Step, silent bool, cmd *exec.Cmd) bool {
	out, err := output(cmd)
	s.CPU += processorTime(cmd)
	if silent && err == nil && len(out) > 0 {
		err = fmt.Errorf("it should print nothing")
	}
	name := s.Name + " " + strings.Join(cmd.Args, " ")
	if err != nil {
		fmt.Fprintf(p.out, "%s%s: %v\n", out, name, err)
		s.Failed = append(s.Failed, Test{name, err.Error()})
		return false
	}
	s.Passed = append(s.Passed, name)
	s.Ran = append(s.Ran, name)
	return true
}

// output runs a program and returns all it said, less what it says to a Stderr of its own.
func output(cmd *exec.Cmd) ([]byte, error) {
	if cmd.Stderr != nil {
		return cmd.Output()
	}
	return cmd.CombinedOutput()
}

func processorTime(cmd *exec.Cmd) float64 {
	if cmd.ProcessState == nil { // it did not start
		return 0
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}

// goTest runs a program that prints what go test -json does and counts the tests.
// Its exit status counts as one more failure only when no test explains it.
func (p *place) goTest(s *Step, cmd *exec.Cmd, packages int) {
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.Failed = append(s.Failed, Test{s.Name, err.Error()})
		return
	}
	before := len(s.Ran) + len(s.Skipped) + len(s.Failed)
	readErr := count(s, out, p.out, packages)
	err = cmd.Wait()
	s.CPU += processorTime(cmd)
	switch {
	case readErr != nil:
		s.Failed = append(s.Failed, Test{s.Name, readErr.Error()})
	case err != nil && len(s.Failed) == 0:
		s.Failed = append(s.Failed, Test{s.Name, err.Error()})
	case len(s.Ran)+len(s.Skipped)+len(s.Failed) == before:
		s.Failed = append(s.Failed, Test{s.Name, "no test ran: the tests this step is for do not exist"})
	}
}

// packages returns the packages of the module.
func (p *place) packages(s *Step) []string {
	out, err := p.command("go", "list", "./...").Output()
	if err != nil {
		s.Failed = append(s.Failed, Test{s.Name, "go list ./...: " + err.Error()})
		return nil
	}
	return strings.Fields(string(out))
}

// program returns the path of ken, built once for a run.
func (p *place) program(s *Step, name string, flags []string, env ...string) string {
	file := p.file(name)
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
	if _, err := os.Stat(file); err == nil {
		return file
	}
	cmd := p.command("go", slices.Concat([]string{"build", "-o", file}, flags, []string{"./cmd/ken"})...)
	cmd.Env = append(cmd.Env, env...)
	p.check(s, false, cmd)
	return file
}
