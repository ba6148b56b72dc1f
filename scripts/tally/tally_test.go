package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
	goTest(s, []string{"./..."}, &out)

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
	goTest(s, []string{"-run", "NoTestHasThisName", "."}, io.Discard)
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
	if err := count(s, strings.NewReader(events), &out); err != nil {
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
		check(s, tt.silent, tt.command, io.Discard)
		if len(s.Passed) != tt.passed || len(s.Failed) != 1-tt.passed {
			t.Errorf("check(silent=%v, %q): %q passed, %q failed, want %d passed", tt.silent, tt.command, s.Passed, s.Failed, tt.passed)
		}
	}
}

func TestTable(t *testing.T) {
	steps := []*Step{
		{Name: "1 unit", Passed: []string{"p A", "p B"}, Slow: []Slow{{"p B", 9.5}}, Ran: []string{"p A", "p B"}, Skipped: []Test{
			{"p Postgres", "KEN_TEST_POSTGRES is not set"}, // ran later: not a skip
			{"p Disk", "cannot here: needs ext4"},
			{"p Tool", "tool is not installed"},
		}},
		{Name: "3 postgres", Passed: []string{"p Postgres/x", "p A"}, Ran: []string{"p Postgres", "p Postgres/x", "p A"}, Skipped: []Test{
			{"p Disk", "cannot here: needs ext4"}, // the same one again
		}},
	}
	tests := []struct {
		name    string
		a       allowed
		closing string
		ok      bool
	}{
		{"at home", allowed{all: true}, "3 passed, 0 failed, 2 skipped\n", true},
		{"in CI", allowed{prefix: []string{"cannot here: "}}, "3 passed, 1 failed, 1 skipped\n", false},
		{"in CI, all allowed", allowed{prefix: []string{"cannot here: ", "tool"}}, "3 passed, 0 failed, 2 skipped\n", true},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		err := table(&out, steps, tt.a)
		if !strings.HasSuffix(out.String(), "\n"+tt.closing) || (err == nil) != tt.ok {
			t.Errorf("%s: table ends %q, err %v, want %q, ok %v", tt.name, lastLine(out.String()), err, tt.closing, tt.ok)
		}
		for _, want := range []string{"9.5 s  p B", "p Tool", "tool is not installed", "needs ext4"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: table does not say %q:\n%s", tt.name, want, out.String())
			}
		}
	}
	if err := table(io.Discard, nil, allowed{all: true}); err == nil {
		t.Error("table of no steps: no error")
	}
	failed := []*Step{
		{Name: "1 unit", Failed: []Test{{"p A", "see above"}}, Ran: []string{"p A"}},
		{Name: "3 postgres", Passed: []string{"p A"}, Failed: []Test{{"p B", "see above"}}, Ran: []string{"p A", "p B"}},
	}
	var out bytes.Buffer
	err := table(&out, failed, allowed{all: true})
	if want := "0 passed, 2 failed, 0 skipped"; !errors.Is(err, errFailed) || lastLine(out.String()) != want {
		t.Errorf("table of failed steps ends %q, err %v, want %q and an error", lastLine(out.String()), err, want)
	}
}

func TestAllowance(t *testing.T) {
	tests := []struct {
		ci, bench, reason string
		want              bool
	}{
		{"", "", "anything", true},
		{"true", "", "anything", false},
		{"true", "", "no reason given", false},
		{"true", "", "cannot here: no /dev/kvm", true},
		{"true", "", "soak: an hour of kill -9", true},
		{"true", "", "KEN_BENCH is not set: no catalog", true},
		{"true", "/corpus", "KEN_BENCH is not set: no catalog", false},
		{"true", "", "KEN_TEST_POSTGRES is not set: no server", false},
	}
	for _, tt := range tests {
		t.Setenv("CI", tt.ci)
		t.Setenv("KEN_BENCH", tt.bench)
		if got := allowance().allows(tt.reason); got != tt.want {
			t.Errorf("CI=%q KEN_BENCH=%q: allows(%q) = %v, want %v", tt.ci, tt.bench, tt.reason, got, tt.want)
		}
	}
}

func TestStepsKeepTheirOrder(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for i := range 12 {
		name := string(rune('l' - i))
		want = append(want, name)
		if err := (&Step{Name: name}).save(dir); err != nil {
			t.Fatal(err)
		}
	}
	steps, err := load(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		got = append(got, s.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("load after save = %q, want %q", got, want)
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

// TestStepsAtTheSameTime: steps that end together are all kept, in the order of
// their layers, and the time in all counts a second once.
func TestStepsAtTheSameTime(t *testing.T) {
	dir, start := t.TempDir(), time.Now()
	var all sync.WaitGroup
	for i := range 40 {
		all.Go(func() {
			s := &Step{Name: fmt.Sprintf("%d step %d", i%4, i), Start: start.Add(time.Duration(i) * time.Second), Seconds: 10}
			if err := s.save(dir); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	steps, err := load(dir)
	if err != nil || len(steps) != 40 {
		t.Fatalf("load: %d steps, %v; want 40", len(steps), err)
	}
	if !slices.IsSortedFunc(steps, func(a, b *Step) int { return a.layer() - b.layer() }) {
		t.Error("the steps are not in the order of their layers")
	}
	if got := elapsed(steps); got < 48.9 || got > 49.1 {
		t.Errorf("%.1f seconds in all, want 49", got)
	}
}
