package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// A Step is one line of the table, and the names behind it.
type Step struct {
	Name    string
	Seconds float64
	CPU     float64  // processor time in seconds of all programs that it waited for
	Passed  []string // the leaves among the tests that passed, as "package Name"
	Failed  []Test
	Skipped []Test
	Ran     []string // every test that ran to an end, parents included
	Slow    []Slow   // its slowest leaves, the slowest first
}

// A Test is one test, or one check, that did not simply pass.
type Test struct {
	Name   string // "package TestName"
	Reason string
}

// Slow is a test and how long it took, including waiting for other tests.
type Slow struct {
	Name    string
	Seconds float64
}

// mostSlow is how many of the slowest tests are kept and shown in the table.
const mostSlow = 10

func slowest(list []Slow) []Slow {
	slices.SortStableFunc(list, func(a, b Slow) int { return cmp.Compare(b.Seconds, a.Seconds) })
	return list[:min(len(list), mostSlow)]
}

// allowed says which skips may stand.
type allowed struct {
	all    bool     // outside CI every skip may stand; it is only said
	prefix []string // in CI, those whose reason begins so
}

// left begins the reason of a test that belongs to another command: see testkit.
const left = "left for make "

// allowance is the policy of this project: under CI=true a skip is a failure
// unless the machine itself forbids the test, or a corpus that nobody can
// install was not given.
func allowance() allowed {
	a := allowed{all: os.Getenv("CI") != "true", prefix: []string{"cannot here: "}}
	for _, name := range []string{"KEN_BENCH", "KEN_ATTACKS"} {
		if os.Getenv(name) == "" {
			a.prefix = append(a.prefix, name+" is not set")
		}
	}
	return a
}

func (a allowed) allows(reason string) bool {
	return a.all || slices.ContainsFunc(a.prefix, func(p string) bool { return strings.HasPrefix(reason, p) })
}

// report prints the steps where there are several, every failure, every skip with
// its reason, and the closing line, and says whether the run as a whole is good.
// Each test counts once: failed if any step saw it fail, skipped only if no step
// ran it.
func report(w io.Writer, c command, steps []*Step, a allowed, took time.Duration) bool {
	var processor float64
	var slow []Slow
	fmt.Fprintf(w, "\n%-16s %9s %11s %8s %8s %8s\n", "step", "time", "processor", "passed", "failed", "skipped")
	for _, s := range steps {
		fmt.Fprintf(w, "%-16s %7.0f s %9.0f s %8d %8d %8d\n", s.Name, s.Seconds, s.CPU, len(s.Passed), len(s.Failed), len(s.Skipped))
		processor += s.CPU
		slow = append(slow, s.Slow...)
	}
	fmt.Fprintf(w, "%-16s %7.0f s %9.0f s\n", "in all", took.Seconds(), processor)
	if c.next != "ci" { // a newcomer does not look for slow tests
		list(w, "slowest:", lines(slowest(slow)))
	}
	e := settle(steps, a)
	list(w, "skipped:", e.skipped)
	list(w, "FAILED:", e.failed)

	said := []string{fmt.Sprintf("%d passed", e.passed)}
	if len(e.failed) > 0 {
		said = append(said, fmt.Sprintf("%d FAILED", len(e.failed)))
	}
	if len(e.skipped) > 0 {
		said = append(said, fmt.Sprintf("%d skipped for the reasons above", len(e.skipped)))
	}
	if c.next != "" {
		said = append(said, fmt.Sprintf("%d left for make %s", e.left, c.next))
	}
	fmt.Fprintf(w, "\n%s: %s, in %s\n", c.name, strings.Join(said, ", "), span(took))
	return len(e.failed) == 0 && len(steps) > 0
}

// span is a duration as people say it.
func span(d time.Duration) string {
	if s := int(d.Seconds()); s >= 60 {
		return fmt.Sprintf("%d min %d s", s/60, s%60)
	}
	return fmt.Sprintf("%d s", int(d.Seconds()))
}

func lines(slow []Slow) []Test {
	var out []Test
	for _, s := range slow {
		out = append(out, Test{s.Name, fmt.Sprintf("%.1f s", s.Seconds)})
	}
	return out
}

// outcome is how the tests of all steps ended.
type outcome struct {
	passed, left    int
	failed, skipped []Test
}

func settle(steps []*Step, a allowed) outcome {
	var e outcome
	seen := map[string]bool{}
	for _, s := range steps {
		for _, t := range s.Failed {
			if !seen[t.Name] {
				seen[t.Name] = true
				e.failed = append(e.failed, t)
			}
		}
	}
	for _, s := range steps {
		for _, name := range s.Passed {
			if !seen[name] {
				seen[name] = true
				e.passed++
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
			case strings.HasPrefix(t.Reason, left):
				e.left++
			case a.allows(t.Reason):
				e.skipped = append(e.skipped, t)
			default:
				e.failed = append(e.failed, Test{t.Name, "skipped, and under CI=true that is a failure: " + t.Reason})
			}
			seen[t.Name] = true
		}
	}
	return e
}

func list(w io.Writer, title string, tests []Test) {
	if len(tests) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", title)
	for _, t := range tests {
		fmt.Fprintf(w, "  %s: %s\n", t.Name, t.Reason)
	}
}
