package sandbox

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testBegins = regexp.MustCompile(`^=== (?:RUN|PAUSE|CONT|NAME) +(\S*)\n$`)
	testEnds   = regexp.MustCompile(`^ *--- (PASS|SKIP|FAIL): (\S+) \(`)
)

// What is printed of one test, and of a run. A run that hangs prints every goroutine.
const (
	mostOfTest = 1500
	mostOfRun  = 6000
)

// failures returns what a verbose run of tests printed for those that failed or
// did not end, and what no test logged, such as a panic or a data race. The names
// of those that failed come last.
func failures(out string) string {
	texts, passed := map[string]string{}, map[string]bool{}
	var names, failed []string // names: in the order of their first line
	name, raw := "", true      // raw: the lines are not of the log of a test
	for line := range strings.Lines(out) {
		if begin := testBegins.FindStringSubmatch(line); begin != nil {
			name, raw = begin[1], false
			continue
		}
		if end := testEnds.FindStringSubmatch(line); end != nil {
			name, raw = end[2], false
			if passed[name] = end[1] != "FAIL"; !passed[name] {
				failed = append(failed, name)
			}
		}
		if raw = raw || !strings.HasPrefix(strings.TrimLeft(line, " "), "--- ") && !strings.HasPrefix(line, "    "); raw {
			name = "" // it may be about any test
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		texts[name] += line
	}
	var b strings.Builder
	for _, name := range names {
		if !passed[name] {
			fmt.Fprintln(&b, shortened(texts[name], mostOfTest))
		}
	}
	return shortened(b.String(), mostOfRun) + "\nfailed: " + shortened(strings.Join(failed, " "), mostOfTest)
}

// shortened returns the first and the last part of a text.
func shortened(text string, most int) string {
	text = strings.TrimRight(text, "\n")
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s\n… %d bytes …\n%s", text[:most/2], len(text)-most, text[len(text)-most/2:])
}

func TestFailures(t *testing.T) {
	const run = `=== RUN   TestGood
    good_test.go:1: fine
--- PASS: TestGood (0.00s)
=== RUN   TestBad
=== RUN   TestBad/one
=== PAUSE TestBad/one
=== RUN   TestBad/two
=== PAUSE TestBad/two
=== CONT  TestBad/one
=== CONT  TestBad/two
    bad_test.go:2: two is good
=== NAME  TestBad/one
    bad_test.go:3: one is bad
        in two lines
==================
WARNING: DATA RACE
      /bad.go:1 +0x44
==================
--- FAIL: TestBad (0.00s)
    --- PASS: TestBad/two (0.00s)
    --- FAIL: TestBad/one (0.00s)
=== RUN   TestHangs
    bad_test.go:4: last words
panic: test timed out after 1s
`
	const want = `    bad_test.go:3: one is bad
        in two lines
    --- FAIL: TestBad/one (0.00s)
==================
WARNING: DATA RACE
      /bad.go:1 +0x44
==================
panic: test timed out after 1s
--- FAIL: TestBad (0.00s)
    bad_test.go:4: last words
failed: TestBad TestBad/one`
	if got := failures(run); got != want {
		t.Errorf("failures() = %s\nwant %s", got, want)
	}
	if got := failures(run + strings.Repeat("goroutine 1\n", 1000)); len(got) > mostOfRun || !strings.HasSuffix(got, "failed: TestBad TestBad/one") {
		t.Errorf("failures() of much output = %d bytes, %s", len(got), got)
	}
}
