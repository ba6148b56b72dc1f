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

	"ken/internal/testkit"
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

// TestConformanceFixture shows that the fixture itself is sound, so that what
// fails in front of Ken is Ken's.
func TestConformanceFixture(t *testing.T) {
	testkit.Nightly(t, "runs the conformance suite")
	t.Parallel()
	npmDir(t)
	url := startHTTP(t, fixture(t), "-http", "127.0.0.1:0")
	conform(t, func(s suite) []string { return []string{"server", "--url", url} })
}

// TestConformanceServer tests Ken's side toward clients: everything that the
// suite asks a server for comes from the fixture behind it.
func TestConformanceServer(t *testing.T) {
	testkit.Nightly(t, "runs the conformance suite")
	t.Parallel()
	npmDir(t)
	p := newPlace(t, allowAll+"mcp: {surface: direct, new: accept, changed: accept}\nserve: {auth: off}\n", map[string]definition{"fixture": {Command: fixture(t)}})
	p.prepare("mcp:fixture/test_simple_text")
	url, _ := p.serve()
	conform(t, func(s suite) []string { return []string{"server", "--url", url} })
}

// TestConformanceClient tests Ken's side toward servers.
func TestConformanceClient(t *testing.T) {
	testkit.Nightly(t, "runs the conformance suite")
	t.Parallel()
	npmDir(t)
	client := build(t, "ken/internal/testkit/mcptest/client")
	conform(t, func(s suite) []string { return []string{"client", "--command", client} })
}

// skillScenarios are the scenarios of the newest suite about skills (SEP-2640).
// They belong to an extension, so no set of requirements has them.
var skillScenarios = map[string][]string{
	"server": {"sep-2640-skills-enumeration", "sep-2640-skills-manifest", "sep-2640-skills-directory"},
	"client": {"sep-2640-client-no-prefetch", "sep-2640-client-verify-digest", "sep-2640-client-verify-size", "sep-2640-client-verify-frontmatter"},
}

// loginScenarios are those of the newest suite about logging in that no set of
// requirements has: tokens without a person, tokens that are bound to a key, and
// servers of the first protocol that knew logins.
var loginScenarios = []string{"auth/client-credentials-jwt", "auth/client-credentials-basic", "auth/enterprise-managed-authorization", "auth/wif-jwt-bearer",
	"auth/dpop", "auth/dpop-nonce", "auth/2025-03-26-oauth-metadata-backcompat", "auth/2025-03-26-oauth-endpoint-fallback"}

func TestConformanceLogin(t *testing.T) {
	testkit.Nightly(t, "runs the conformance suite")
	t.Parallel()
	npmDir(t)
	conformTo(t, loginScenarios, "client", "--command", build(t, "ken/internal/testkit/mcptest/client"), "--timeout", "240000")
}

// TestConformanceSkills tests skills on both sides of Ken. The skills of the first
// server come from the fixture behind it, those of the second from local files.
func TestConformanceSkills(t *testing.T) {
	testkit.Nightly(t, "runs the conformance suite")
	t.Parallel()
	npmDir(t)
	t.Run("behind", func(t *testing.T) {
		p := newPlace(t, allowAll+"serve: {auth: off}\n", map[string]definition{"fixture": {Command: fixture(t)}})
		p.prepare("mcp:fixture/skill_pdf-processing")
		url, _ := p.serve()
		conformTo(t, skillScenarios["server"], "server", "--url", url)
	})
	t.Run("own", func(t *testing.T) {
		p := newPlace(t, allowAll+"serve: {auth: off}\n", nil)
		dir := filepath.Join(p.home, "skills", "pdf-processing")
		if err := os.MkdirAll(filepath.Join(dir, "references"), 0o700); err != nil {
			t.Fatal(err)
		}
		p.write("skills/pdf-processing/SKILL.md", []byte("---\nname: pdf-processing\ndescription: Extract and fill PDF documents.\nmetadata: {version: \"2.1\"}\n---\n\nRead references/FORMS.md.\n"))
		p.write("skills/pdf-processing/references/FORMS.md", []byte("# Forms\n"))
		url, _ := p.serve()
		conformTo(t, skillScenarios["server"], "server", "--url", url)
	})
	t.Run("client", func(t *testing.T) {
		conformTo(t, skillScenarios["client"], "client", "--command", build(t, "ken/internal/testkit/mcptest/client"), "--timeout", "240000")
	})
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

var stamp = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[0-9-]+Z$`)

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
