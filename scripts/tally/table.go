package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// errFailed is table's verdict on a run that is not good.
var errFailed = errors.New("something failed")

// allowed says which skips may stand.
type allowed struct {
	all    bool     // outside CI every skip may stand; it is only said loudly
	prefix []string // in CI, those whose reason begins so
}

// allowance is the policy of this project: under CI=true a skip is a failure
// unless the machine itself forbids the test, the test belongs to `make soak`,
// or a corpus that nobody can install was not given.
func allowance() allowed {
	a := allowed{all: os.Getenv("CI") != "true", prefix: []string{"cannot here: ", "soak: "}}
	for _, name := range []string{"KEN_BENCH", "KEN_ATTACKS"} {
		if os.Getenv(name) == "" {
			a.prefix = append(a.prefix, name+" is not set")
		}
	}
	return a
}

func (a allowed) allows(reason string) bool {
	for _, p := range a.prefix {
		if strings.HasPrefix(reason, p) {
			return true
		}
	}
	return a.all
}

// table prints the steps, every skip with its reason, every failure, and the
// closing line; it returns an error when the run as a whole is not good. The
// closing line counts each test once: failed if any step saw it fail, skipped
// only if no step ran it.
func table(w io.Writer, steps []*Step, a allowed) error {
	if len(steps) == 0 {
		return fmt.Errorf("no step was recorded in TALLY_DIR")
	}
	var processor float64
	var slow []Slow
	fmt.Fprintf(w, "\n%-20s %9s %11s %8s %8s %8s\n", "layer and step", "time", "processor", "passed", "failed", "skipped")
	for _, s := range steps {
		fmt.Fprintf(w, "%-20s %7.1f s %9.1f s %8d %8d %8d\n", s.Name, s.Seconds, s.CPU, len(s.Passed), len(s.Failed), len(s.Skipped))
		processor += s.CPU
		slow = append(slow, s.Slow...)
	}
	fmt.Fprintf(w, "%-20s %7.1f s %9.1f s\n", "in all", elapsed(steps), processor)
	if slow = slowest(slow); len(slow) > 0 {
		fmt.Fprintf(w, "\nslowest:\n")
	}
	for _, s := range slow {
		fmt.Fprintf(w, "  %6.1f s  %s\n", s.Seconds, s.Name)
	}

	passed, failed, skipped := settleAll(steps, a)
	list(w, "SKIPPED, not tested here:", skipped)
	list(w, "FAILED:", failed)
	fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", passed, len(failed), len(skipped))
	if len(failed) > 0 {
		return errFailed
	}
	return nil
}

// elapsed returns the seconds from the start of the first step to the end of the
// last. It is less than their sum where steps ran at the same time.
func elapsed(steps []*Step) float64 {
	first, last := steps[0].Start, time.Time{}
	for _, s := range steps {
		if s.Start.Before(first) {
			first = s.Start
		}
		if end := s.Start.Add(time.Duration(s.Seconds * float64(time.Second))); end.After(last) {
			last = end
		}
	}
	return last.Sub(first).Seconds()
}

// settleAll gives each test of all steps its one ending.
func settleAll(steps []*Step, a allowed) (passed int, failed, skipped []Test) {
	seen := map[string]bool{}
	for _, s := range steps {
		for _, t := range s.Failed {
			if !seen[t.Name] {
				seen[t.Name] = true
				failed = append(failed, t)
			}
		}
	}
	for _, s := range steps {
		for _, name := range s.Passed {
			if !seen[name] {
				seen[name] = true
				passed++
			}
		}
	}
	for _, s := range steps {
		for _, name := range s.Ran {
			seen[name] = true
		}
	}
	for _, s := range steps {
		for _, t := range s.Skipped {
			switch {
			case seen[t.Name]:
			case a.allows(t.Reason):
				skipped = append(skipped, t)
			default:
				failed = append(failed, Test{t.Name, "skipped, and under CI=true that is a failure: " + t.Reason})
			}
			seen[t.Name] = true
		}
	}
	return passed, failed, skipped
}

func list(w io.Writer, title string, tests []Test) {
	if len(tests) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	for _, t := range tests {
		fmt.Fprintf(w, "  %s\n      %s\n", t.Name, t.Reason)
	}
}
