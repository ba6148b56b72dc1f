package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestCountGoTest runs go test for real on a small module in which every kind
// of ending happens.
func TestCountGoTest(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                  "module m\n\ngo 1.26\n",
		"none/none.go":            "package none\n",
		"broken/broken.go":        "package broken\n\nvar x int = \"\"\n",
		"broken/broken_test.go":   "package broken\n",
		"exits/exits_test.go":     "package exits\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestMain(m *testing.M) { m.Run(); os.Exit(1) }\n\nfunc TestFine(t *testing.T) {}\n",
		"endings/endings_test.go": endings,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	t.Setenv("GOFLAGS", "")
	t.Setenv("GOWORK", "off")

	var out bytes.Buffer
	s := &Step{Name: "1 unit"}
	(&place{dir: t.TempDir(), out: &out}).goTest(s, exec.Command("go", "test", "-json", "./..."), 0)

	slices.Sort(s.Passed)
	if want := []string{"m/endings TestPass", "m/endings TestTree/good", "m/exits TestFine"}; !slices.Equal(s.Passed, want) {
		t.Errorf("passed = %q, want %q", s.Passed, want)
	}
	want := []string{"m/broken", "m/endings TestPanic", "m/endings TestTree/bad", "m/exits"}
	if got := names(s.Failed); !slices.Equal(got, want) {
		t.Errorf("failed = %q, want %q", got, want)
	}
	wantSkips := []Test{
		{"m/endings TestSkip", "the reason: given"},
		{"m/endings TestSkipSilently", "no reason given"},
		{"m/endings TestTree/skipped", "as a child"},
	}
	if !slices.Equal(s.Skipped, wantSkips) {
		t.Errorf("skipped = %q, want %q", s.Skipped, wantSkips)
	}
	for _, want := range []string{"a child's complaint", "cannot use", "boom"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("output lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "chatter") {
		t.Errorf("output repeats what a passing test logged:\n%s", out.String())
	}
}

const endings = `package endings

import "testing"

func TestPass(t *testing.T) { t.Log("chatter") }

func TestSkip(t *testing.T) { t.Log("first"); t.Skip("the reason: given") }

func TestSkipSilently(t *testing.T) { t.SkipNow() }

func TestTree(t *testing.T) {
	t.Run("good", func(t *testing.T) { t.Parallel() })
	t.Run("bad", func(t *testing.T) { t.Error("a child's complaint") })
	t.Run("skipped", func(t *testing.T) { t.Skip("as a child") })
}

func TestPanic(t *testing.T) { panic("boom") }
`

func TestGoTestThatRunsNothingFails(t *testing.T) {
	s := &Step{Name: "2 scripts"}
	(&place{out: io.Discard}).goTest(s, exec.Command("go", "test", "-json", "-run", "NoTestHasThisName", "."), 0)
	if len(s.Failed) != 1 || !strings.Contains(s.Failed[0].Reason, "no test ran") {
		t.Errorf("failed = %q, want one that says no test ran", s.Failed)
	}
}

func TestCountUnfinished(t *testing.T) {
	// What go test prints when a test binary is killed.
	const events = `{"Action":"run","Package":"p","Test":"TestHang"}
{"Action":"output","Package":"p","Test":"TestHang","Output":"last words\n"}
{"Action":"fail","Package":"p","Elapsed":1}
`
	var out bytes.Buffer
	s := &Step{}
	if err := count(s, strings.NewReader(events), &out, 0); err != nil {
		t.Fatal(err)
	}
	if want := []Test{{"p TestHang", "it did not finish"}}; !slices.Equal(s.Failed, want) {
		t.Errorf("failed = %q, want %q", s.Failed, want)
	}
	if !strings.Contains(out.String(), "last words") {
		t.Errorf("output = %q, want the test's last words", out.String())
	}
}

func TestCheck(t *testing.T) {
	tests := []struct {
		silent  bool
		command []string
		passed  int
	}{
		{false, []string{"go", "version"}, 1},
		{true, []string{"go", "version"}, 0},
		{true, []string{"go", "help", "no-such-topic"}, 0},
		{false, []string{"no-such-command-at-all"}, 0},
	}
	for _, tt := range tests {
		s := &Step{Name: "0 check"}
		(&place{out: io.Discard}).check(s, tt.silent, exec.Command(tt.command[0], tt.command[1:]...))
		if len(s.Passed) != tt.passed || len(s.Failed) != 1-tt.passed {
			t.Errorf("check(silent=%v, %q): %q passed, %q failed, want %d passed", tt.silent, tt.command, s.Passed, s.Failed, tt.passed)
		}
	}
}

func TestReport(t *testing.T) {
	steps := []*Step{
		{Name: "race", Passed: []string{"p A", "p B"}, Slow: []Slow{{"p B", 9.5}}, Ran: []string{"p A", "p B"}, Skipped: []Test{
			{"p Browser/x", "KEN_NPM is not set"}, // ran later: not a skip
			{"p Disk", "cannot here: needs ext4"},
			{"p Tool", "tool is not installed"},
			{"p Chaos", "left for make nightly: takes minutes"},
		}},
		{Name: "browser", Passed: []string{"p Browser/x", "p A"}, Ran: []string{"p Browser", "p Browser/x", "p A"}, Skipped: []Test{
			{"p Disk", "cannot here: needs ext4"}, // the same one again
		}},
	}
	failed := []*Step{
		{Name: "race", Failed: []Test{{"p A", "see above"}}, Ran: []string{"p A"}},
		{Name: "browser", Passed: []string{"p A"}, Failed: []Test{{"p B", "see above"}}, Ran: []string{"p A", "p B"}},
	}
	ci, nightly := command{name: "ci", next: "nightly"}, command{name: "nightly"}
	tests := []struct {
		name    string
		c       command
		steps   []*Step
		a       allowed
		closing string
		ok      bool
	}{
		{"at home", ci, steps, allowed{all: true}, "ci: 3 passed, 2 skipped for the reasons above, 1 left for make nightly, in 1 min 5 s", true},
		{"in CI", ci, steps, allowed{prefix: []string{"cannot here: "}}, "ci: 3 passed, 1 FAILED, 1 skipped for the reasons above, 1 left for make nightly, in 1 min 5 s", false},
		{"the last command", nightly, steps[1:], allowed{}, "nightly: 2 passed, 1 FAILED, in 1 min 5 s", false},
		{"failed", ci, failed, allowed{all: true}, "ci: 0 passed, 2 FAILED, 0 left for make nightly, in 1 min 5 s", false},
		{"nothing ran", nightly, nil, allowed{all: true}, "nightly: 0 passed, in 1 min 5 s", false},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		ok := report(&out, tt.c, tt.steps, tt.a, 65*time.Second)
		if got := lastLine(out.String()); got != tt.closing || ok != tt.ok {
			t.Errorf("%s: %v, ends %q, want %v and %q", tt.name, ok, got, tt.ok, tt.closing)
		}
		if tt.name == "at home" {
			for _, want := range []string{"p B: 9.5 s", "p Tool: tool is not installed", "p Disk: cannot here: needs ext4"} {
				if strings.Count(out.String(), want) != 1 {
					t.Errorf("%s: does not say %q once:\n%s", tt.name, want, out.String())
				}
			}
		}
	}
}

func TestReason(t *testing.T) {
	for _, tt := range []struct{ log, want string }{
		{"    x_test.go:7: first\n    x_test.go:8: the reason: given\n", "the reason: given"},
		{"    testscript.go:584: # a story (0.0s)\n        > [!bench] skip 'there is no corpus'\n    testscript.go:584: WORK=$WORK\n", "there is no corpus"},
		{"", "no reason given"},
	} {
		if got := reason(strings.SplitAfter(tt.log, "\n")); got != tt.want {
			t.Errorf("reason(%q) = %q, want %q", tt.log, got, tt.want)
		}
	}
}

func TestAllowance(t *testing.T) {
	tests := []struct {
		ci, bench, reason string
		want              bool
	}{
		{"", "", "anything", true},
		{"true", "", "anything", false},
		{"true", "", "cannot here: no /dev/kvm", true},
		{"true", "", "KEN_BENCH is not set: no catalog", true},
		{"true", "/corpus", "KEN_BENCH is not set: no catalog", false},
	}
	for _, tt := range tests {
		t.Setenv("CI", tt.ci)
		t.Setenv("KEN_BENCH", tt.bench)
		if got := allowance().allows(tt.reason); got != tt.want {
			t.Errorf("CI=%q KEN_BENCH=%q: allows(%q) = %v, want %v", tt.ci, tt.bench, tt.reason, got, tt.want)
		}
	}
}

func TestUnknownWords(t *testing.T) {
	for _, args := range [][]string{{"tset"}, {"ci", "rcae"}} {
		if _, err := run(args[0], args[1:]); err == nil {
			t.Errorf("run(%q): no error", args)
		}
	}
}

func names(tests []Test) []string {
	var out []string
	for _, t := range tests {
		out = append(out, t.Name)
	}
	slices.Sort(out)
	return out
}

func lastLine(s string) string {
	s = strings.TrimSuffix(s, "\n")
	return s[strings.LastIndex(s, "\n")+1:]
}
