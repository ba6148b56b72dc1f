package mcptest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// A suite is a version of the official conformance suite, and one of the sets
// of scenarios that it can run.
type suite struct {
	pkg          string
	requirements string // empty: what the suite runs on its own
	server       int    // how many scenarios are scored
	client       int
}

var suites = map[string]suite{
	"0.1":            {pkg: "@modelcontextprotocol/conformance", server: 30, client: 18},
	"0.2/2025-11-25": {pkg: "conformance-next", requirements: "2025-11-25", server: 30, client: 18},
	"0.2/2026-07-28": {pkg: "conformance-next", requirements: "2026-07-28", server: 37, client: 32},
}

// conformTo runs single scenarios of the newest suite. No check may fail, and none
// about skills may be skipped.
func conformTo(t *testing.T, scenarios []string, args ...string) {
	t.Helper()
	for _, scenario := range scenarios {
		out := t.TempDir()
		all := append([]string{script(t, "conformance-next", "conformance")}, append(args, "--scenario", scenario, "-o", out)...)
		cmd := exec.CommandContext(t.Context(), node(t), all...)
		cmd.WaitDelay = time.Second
		log, _ := cmd.CombinedOutput() // a warning ends it with an error, too
		found := results(t, out)
		for name, v := range found {
			if len(v.failed) > 0 || v.passed == 0 || v.skipped > 0 && strings.HasPrefix(scenario, "sep-") {
				t.Errorf("%s: %d checks passed, %d were skipped, these failed:\n%s\n%s", name, v.passed, v.skipped, strings.Join(v.failed, "\n"), tail(log, 3000))
			}
			for _, w := range v.warned {
				t.Logf("%s warns: %s", name, w)
			}
			t.Logf("%s: %d checks passed", name, v.passed)
		}
		if len(found) != 1 {
			t.Errorf("%s: %d results, want one\n%s", scenario, len(found), tail(log, 3000))
		}
	}
}

// conform runs every suite with the arguments of one side.
func conform(t *testing.T, args func(suite) []string) {
	for name, s := range suites {
		t.Run(name, func(t *testing.T) { s.run(t, args(s)...) })
	}
}

// run runs one side of a suite and fails for each scored scenario that has a
// failed check, or none that succeeded.
func (s suite) run(t *testing.T, args ...string) {
	t.Helper()
	out := t.TempDir()
	scored, want := s.scored(t, args[0]), s.server
	if args[0] == "client" {
		want = s.client
	}
	args = append([]string{script(t, s.pkg, "conformance")}, append(args, "-o", out)...)
	switch {
	case s.requirements != "":
		args = append(args, "--requirements", s.requirements)
	case args[1] == "client":
		args = append(args, "--suite", "core")
	}
	if args[1] == "client" {
		args = append(args, "--timeout", "240000") // all of them run at once, and a machine may be slow
	}
	cmd := exec.CommandContext(t.Context(), node(t), args...)
	cmd.WaitDelay = time.Second
	log, err := cmd.CombinedOutput()

	var checks, seen, warned int
	for scenario, result := range results(t, out) {
		counts := scored == nil || slices.Contains(scored, scenario)
		checks += result.passed
		if counts {
			seen++
		}
		switch {
		case counts && (len(result.failed) > 0 || result.passed == 0):
			t.Errorf("%s: %d checks passed, these failed:\n%s", scenario, result.passed, strings.Join(result.failed, "\n"))
		case len(result.failed) > 0:
			t.Logf("%s is not scored: %d checks passed, %d failed", scenario, result.passed, len(result.failed))
		}
		warned += len(result.warned)
		for _, w := range result.warned {
			t.Logf("%s warns: %s", scenario, w)
		}
	}
	if seen != want {
		t.Errorf("%d scored scenarios have results, want %d", seen, want)
	}
	if _, exited := errors.AsType[*exec.ExitError](err); exited && warned > 0 && !t.Failed() {
		err = nil // a warning alone, such as a slow response, also ends it with this status
	}
	if err != nil || t.Failed() {
		t.Errorf("%s: %v\n%s", strings.Join(args, " "), err, tail(log, 4000))
	}
	t.Logf("%d scored scenarios; %d checks passed in all", seen, checks)
}

// scored reads which scenarios a side of the requirements names; nil means all.
func (s suite) scored(t *testing.T, side string) []string {
	t.Helper()
	if s.requirements == "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(npmDir(t), s.pkg, "requirements", s.requirements+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	var section string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\n")
		if name, ok := strings.CutPrefix(line, "  - "); ok && section == side {
			out = append(out, name)
		} else if name, ok := strings.CutSuffix(line, ":"); ok && !strings.HasPrefix(line, " ") {
			section = name
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s %s: no scenario of side %s", s.pkg, s.requirements, side)
	}
	return out
}

// A verdict is what the checks of one scenario say.
type verdict struct {
	passed, skipped int
	failed, warned  []string
}

// results reads the folder of a run: one folder for each scenario, named after
// it and the time, with its checks.
func results(t *testing.T, dir string) map[string]verdict {
	t.Helper()
	out := map[string]verdict{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() != "checks.json" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(data, &checks); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		var v verdict
		for _, c := range checks {
			switch c.Status {
			case "SUCCESS":
				v.passed++
			case "SKIPPED":
				v.skipped++
			case "FAILURE":
				v.failed = append(v.failed, c.ID+": "+c.ErrorMessage)
			case "WARNING":
				v.warned = append(v.warned, c.ID+": "+c.ErrorMessage)
			}
		}
		name, err := filepath.Rel(dir, filepath.Dir(path))
		name = stamp.ReplaceAllString(strings.TrimPrefix(name, "server-"), "")
		if strings.HasPrefix(name, "auth/") { // a login has no room for less
			v.failed, v.warned = append(v.failed, v.warned...), nil
		}
		out[name] = v
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// tail returns the last part of a text.
func tail(text []byte, most int) []byte {
	if len(text) > most {
		text = text[len(text)-most:]
	}
	return bytes.TrimSpace(text)
}

var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[0-9-]+Z$`)
