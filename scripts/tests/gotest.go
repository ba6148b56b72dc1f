package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is one line of `go test -json` (see `go doc test2json`), with the
// fields of `go build -json` that go test mixes in.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// counter holds what is known of the packages still running.
type counter struct {
	step  *Step
	w     io.Writer
	state map[string]map[string]string // package → test → last action
	took  map[string]float64           // "package test" → seconds
	lines map[string][]string          // "package test" → its output, until it passes

	done, packages int // packages that are settled, and those that will be; 0 where that is not known
}

// count reads go test's events, prints one line per package and the output of
// what failed, and fills the step. Only leaves of the tree of subtests are
// counted, and a failed parent only when none of its children failed.
func count(s *Step, r io.Reader, w io.Writer, packages int) error {
	c := &counter{step: s, w: w, packages: packages, state: map[string]map[string]string{}, took: map[string]float64{}, lines: map[string][]string{}}
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			var e event
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				fmt.Fprint(w, line) // not an event: go test itself speaks
			} else {
				c.see(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
	}
}

func (c *counter) see(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(c.w, e.Output)
	case "output":
		if !strings.HasPrefix(e.Output, "=== ") {
			c.lines[key] = append(c.lines[key], e.Output)
		}
	case "run":
		c.mark(e)
	case "pass", "fail", "skip":
		if e.Test == "" {
			c.finish(e)
			return
		}
		c.mark(e)
		c.took[key] = e.Elapsed
		switch e.Action {
		case "pass":
			delete(c.lines, key)
		case "fail":
			fmt.Fprint(c.w, strings.Join(c.lines[key], ""))
		}
	}
}

func (c *counter) mark(e event) {
	tests := c.state[e.Package]
	if tests == nil {
		tests = map[string]string{}
		c.state[e.Package] = tests
	}
	tests[e.Test] = e.Action
}

// finish settles a package: e is its own pass, fail or skip (no test files).
func (c *counter) finish(e event) {
	tests := c.state[e.Package]
	names := make([]string, 0, len(tests))
	for name := range tests {
		names = append(names, name)
	}
	slices.Sort(names)
	failed := len(c.step.Failed)
	for _, name := range names {
		c.settle(e.Package, name, tests)
		delete(c.took, e.Package+" "+name)
	}
	c.step.Slow = slowest(c.step.Slow)
	if e.Action == "fail" && len(c.step.Failed) == failed {
		// A build that broke, a panic between tests, a race found at the end.
		c.step.Failed = append(c.step.Failed, Test{e.Package, "the package failed: see its output above"})
	}
	own := c.lines[e.Package+" "]
	if e.Action == "fail" {
		fmt.Fprint(c.w, strings.Join(own, ""))
	}
	c.done++
	if len(names) > 0 || e.Action == "fail" {
		at := ""
		if c.packages > 0 {
			at = fmt.Sprintf("%3d/%d ", c.done, c.packages)
		}
		fmt.Fprintf(c.w, "%s%-5s %-50s %6.1f s\n", at, e.Action, e.Package, e.Elapsed)
	}
	delete(c.state, e.Package)
	delete(c.lines, e.Package+" ")
}

func (c *counter) settle(pkg, name string, tests map[string]string) {
	full := pkg + " " + name
	parent := false
	below := "" // the last action of a child that did not end well
	for other, action := range tests {
		if strings.HasPrefix(other, name+"/") {
			parent = true
			if action == "fail" || action == "run" {
				below = action
			}
		}
	}
	switch tests[name] {
	case "pass":
		c.step.Ran = append(c.step.Ran, full)
		if !parent {
			c.step.Passed = append(c.step.Passed, full)
			c.step.Slow = append(c.step.Slow, Slow{full, c.took[full]})
		}
	case "skip":
		c.step.Skipped = append(c.step.Skipped, Test{full, reason(c.lines[full])})
	case "fail":
		c.step.Ran = append(c.step.Ran, full)
		if below == "" {
			c.step.Failed = append(c.step.Failed, Test{full, "see its output above"})
		}
	default:
		if below == "" {
			fmt.Fprint(c.w, strings.Join(c.lines[full], ""))
			c.step.Failed = append(c.step.Failed, Test{full, "it did not finish"})
		}
	}
	delete(c.lines, full)
}

var (
	logged   = regexp.MustCompile(`^\s*[^\s:]+\.go:\d+: (.*)`)
	scripted = regexp.MustCompile(`^\s*> (?:\[\S+\] )*skip ?(.*)`)
)

// reason is the last thing a skipped test logged. A script logs what it did, and
// last the line that skipped it.
func reason(lines []string) string {
	text := strings.Split(strings.TrimSpace(strings.Join(lines, "")), "\n")
	for _, line := range slices.Backward(text) {
		if m := scripted.FindStringSubmatch(line); m != nil {
			return strings.Trim(m[1], "'")
		}
	}
	for _, line := range slices.Backward(text) {
		if m := logged.FindStringSubmatch(line); m != nil {
			return strings.TrimSpace(m[1])
		}
	}
	return "no reason given"
}

// progress counts the packages that go build -v names, and now and then says how
// many there were, so that a long silence shows that something moves. All else that
// the program says it passes on.
type progress struct {
	w    io.Writer
	seen int
}

func (c *progress) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if bytes.ContainsAny(line, " #") {
			c.w.Write(line)
		} else if c.seen++; c.seen%100 == 0 {
			fmt.Fprintf(c.w, "compiled %d packages\n", c.seen)
		}
	}
	return len(p), nil
}
