// Tally runs the steps of `make test`, counts what they did and says so at the
// end; it also prints the table of `make bench` and keeps both outputs in
// docs/measured.md.
//
//	tally check [-silent] STEP -- COMMAND…   one check: the command must succeed (and print nothing)
//	tally test STEP -- ARGUMENTS…            go test -json with these arguments, counted test by test
//	tally skip STEP REASON                   a step that could not be taken here
//	tally fail STEP REASON                   a step that went wrong before it began
//	tally table                              all steps, all skips, and the closing line
//	tally bench BARS                         benchmark output on stdin, compared with the file BARS
//	tally keep FILE SECTION                  stdin replaces a marked section of FILE
//
// The first five share the directory named by TALLY_DIR. A step that fails is
// recorded, not returned: only table's exit status says whether all is well,
// so that one run shows everything that is wrong.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("which of check, test, skip, fail, table, bench, keep?"))
	}
	if err := run(os.Args[1], os.Args[2:]); errors.Is(err, errFailed) {
		os.Exit(1) // the table has said all; its closing line stays the last
	} else if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "tally:", err)
	os.Exit(1)
}

func run(verb string, args []string) error {
	dir := os.Getenv("TALLY_DIR")
	switch {
	case verb == "check" && len(args) > 2:
		silent := args[0] == "-silent"
		if silent {
			args = args[1:]
		}
		return record(dir, args[0], func(s *Step) { check(s, silent, args[2:], os.Stdout) })
	case verb == "test" && len(args) > 2:
		return record(dir, args[0], func(s *Step) { goTest(s, args[2:], os.Stdout) })
	case verb == "skip" && len(args) == 2:
		return record(dir, args[0], func(s *Step) {
			s.Skipped = []Test{{Name: s.Name, Reason: args[1]}}
			fmt.Println("skipped:", args[1])
		})
	case verb == "fail" && len(args) == 2:
		return record(dir, args[0], func(s *Step) {
			s.Failed = []Test{{Name: s.Name, Reason: args[1]}}
		})
	case verb == "table" && len(args) == 0:
		steps, err := load(dir)
		if err != nil {
			return err
		}
		return table(os.Stdout, steps, allowance())
	case verb == "bench" && len(args) == 1:
		return bench(os.Stdin, args[0], os.Stdout)
	case verb == "keep" && len(args) == 2:
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		return keep(args[0], args[1], string(text))
	}
	return fmt.Errorf("%s %q: see the package comment for the arguments", verb, args)
}

// record takes one step, with its time, and writes it down in dir.
func record(dir, name string, take func(*Step)) error {
	fmt.Printf("\n== %s\n", name)
	s := &Step{Name: name, Start: time.Now()}
	take(s)
	s.Seconds = time.Since(s.Start).Seconds()
	fmt.Printf("== %s: %s, %.1f s\n", name, s.verdict(), s.Seconds)
	return s.save(dir)
}

// check runs a command whose success is the whole result.
func check(s *Step, silent bool, command []string, w io.Writer) {
	s.Ran = []string{s.Name}
	cmd := exec.Command(command[0], command[1:]...)
	out, err := cmd.CombinedOutput()
	s.CPU = processorTime(cmd)
	if silent && err == nil && len(out) > 0 {
		err = fmt.Errorf("it named the files above")
	}
	if err != nil {
		fmt.Fprintf(w, "%s%v: %v\n", out, command, err)
		s.Failed = []Test{{Name: s.Name, Reason: err.Error()}}
		return
	}
	s.Passed = []string{s.Name}
}

func processorTime(cmd *exec.Cmd) float64 {
	if cmd.ProcessState == nil { // it did not start
		return 0
	}
	return (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
}

// goTest runs go test and counts its tests. Its exit status counts as one more
// failure only when no test explains it.
func goTest(s *Step, args []string, w io.Writer) {
	cmd := exec.Command("go", slices.Concat([]string{"test", "-json"}, args)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.Failed = []Test{{Name: s.Name, Reason: err.Error()}}
		return
	}
	readErr := count(s, out, w)
	err = cmd.Wait()
	s.CPU = processorTime(cmd)
	switch {
	case readErr != nil:
		s.Failed = append(s.Failed, Test{Name: s.Name, Reason: readErr.Error()})
	case err != nil && len(s.Failed) == 0:
		s.Failed = append(s.Failed, Test{Name: s.Name, Reason: err.Error()})
	case len(s.Ran)+len(s.Skipped)+len(s.Failed) == 0:
		s.Failed = append(s.Failed, Test{Name: s.Name, Reason: "no test ran: the tests this step is for do not exist"})
	}
}
