//go:build unix

package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/serve/doctor"
	"ken/internal/testkit"
)

const anyCall = "policy: {intents: off, rules: [{id: all, effect: allow}], askAbove: 100}\nsandbox: {require: best-effort}\n"

// badServers is an mcp.json with one server of each mode.
func badServers(t *testing.T, folder string, modes ...string) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for _, mode := range modes {
		d := map[string]any{
			"command": exe, "args": []string{"-test.run=^TestServerProcess$"},
			"env": map[string]string{badServerVar: mode, "APP_TEST_FOLDER": folder},
		}
		switch mode {
		case "hangs":
			d["timeout"] = 500
		case "neverReady":
			d["startTimeout"] = 1000
		}
		all[mode] = d
	}
	text, err := json.Marshal(map[string]any{"mcpServers": all})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func examine(t *testing.T, a *App) []doctor.Check {
	t.Helper()
	servers := a.health().Servers(t.Context())
	return doctor.Examine(doctor.Facts{Home: a.Places.Home, Servers: servers, Listing: a.OperatorView().List()})
}

// said finds the check of a server that says something.
func said(checks []doctor.Check, name, text string) (doctor.Check, bool) {
	i := slices.IndexFunc(checks, func(c doctor.Check) bool { return c.Name == name && strings.Contains(c.Message, text) })
	if i < 0 {
		return doctor.Check{}, false
	}
	return checks[i], true
}

func callServer(t *testing.T, a *App, target, arguments string) string {
	t.Helper()
	res, err := a.Door.Invoke(t.Context(), a.View(), capability.Call{Target: capability.ID("mcp:" + target), Arguments: json.RawMessage(arguments)})
	if err != nil {
		return "error: " + err.Error()
	}
	var b strings.Builder
	for _, p := range res.Parts {
		b.WriteString(p.Text)
	}
	return b.String()
}

// TestBadServersAreSeen: whatever a server does wrong, the others work, and both
// the result of the call and the doctor say it (issue 6, bad input).
func TestBadServersAreSeen(t *testing.T) {
	testkit.CI(t, "starts a dozen bad servers")
	t.Parallel()
	folder := t.TempDir()
	modes := []string{"hangs", "dies", "garbles", "floods", "changes", "many", "large", "twice", "longNames", "noStart", "neverReady", "fine"}
	dir, getenv := home(t, map[string]string{".ken/ken.yaml": anyCall, ".ken/mcp.json": badServers(t, folder, modes...)})
	if err := os.Chmod(filepath.Join(dir, ".ken"), 0o700); err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	a := watched(t, Config{Getenv: getenv, Dir: work, Servers: true})

	long := strings.Repeat("n", 300)
	for _, c := range []struct{ target, says string }{
		{"hangs/act", "did not answer in time"},
		{"dies/act", "exit status 7; it printed: the disk is full"},
		{"garbles/act", "violates the protocol"},
		{"floods/act", "done"},
		{"changes/act", "done"},
		{"many/tool_9997", "done"},
		{"many/tool_11999", "error: "},
		{"large/wide", "done"},
		{"twice/act", "done"},
		{"longNames/" + long, "error: "},
		{"longNames/" + strings.Repeat("m", 120), "done"},
		{"noStart/act", "error: "},
		{"neverReady/act", "error: "},
		{"fine/act", "done"},
	} {
		var got string
		testkit.Wait(t, c.target+" has started", func() bool { // on a busy machine that takes longer than its timeout
			got = callServer(t, a, c.target, `{}`)
			return c.says == "error: " || !strings.Contains(got, "still starting")
		})
		if !strings.Contains(got, c.says) {
			t.Errorf("call of %.40s = %.300q, want %q", c.target, got, c.says)
		}
	}
	testkit.Wait(t, "a changed tool is refused", func() bool {
		return strings.Contains(callServer(t, a, "changes/other", `{}`), "error: ")
	})
	second := open(t, Config{Getenv: getenv, Dir: work})
	noted := func(name string, is func(doctor.Troubled) bool) bool {
		return slices.ContainsFunc(second.health().Processes(), func(p doctor.Process) bool {
			return slices.ContainsFunc(p.Servers, func(s doctor.Troubled) bool { return s.Name == name && is(s) })
		})
	}
	testkit.Wait(t, "it is noted how a server died", func() bool {
		return noted("dies", func(s doctor.Troubled) bool { return s.Err != "" })
	})
	callServer(t, a, "dies/other", `{}`) // it is started again, and what was stays known
	testkit.Wait(t, "it is noted that a server was started again, and that another hangs", func() bool {
		return noted("dies", func(s doctor.Troubled) bool { return s.Restarts == 1 && !s.Down }) &&
			noted("hangs", func(s doctor.Troubled) bool { return s.Down && strings.Contains(s.Err, "not responding") })
	})
	checks := examine(t, second)
	for _, want := range []struct {
		name, says string
		grade      doctor.Grade
		fix        string
	}{
		{"mcp:hangs", "not responding: a call timed out", doctor.Bad, "mcp.json"},
		{"mcp:dies", "; it was started again 1 time", doctor.Warn, "mcp.json"},
		{"mcp:garbles", "noise on its output, 1 line: ", doctor.Warn, "log"},
		{"mcp:floods", "noise on its output, ", doctor.Warn, "standard error"},
		{"mcp:changes", "2 tools in quarantine", doctor.Warn, "ken extension review mcp:changes"},
		{"mcp:many", "10000", doctor.Warn, "mcp.json"},
		{"mcp:large", "large schemas: wide (83 KB)", doctor.Warn, "exclude in large in "},
		{"mcp:twice", "duplicate tool act", doctor.Warn, "mcp.json"},
		{"mcp:longNames", "nnn", doctor.Warn, ""},
		{"mcp:longNames", "that clients see shortened: mmm", doctor.Warn, ""},
		{"mcp:noStart", "it does not work: the server ended with exit status 3; it printed: no licence was found", doctor.Bad, "noStart in " + filepath.Join(dir, ".ken", "mcp.json")},
		{"mcp:neverReady", "it does not work: not ready after 1 s", doctor.Bad, "mcp.json"},
		{"mcp:fine", "2 tools over stdio, protocol 2025-06-18; sandbox profile imported", doctor.Good, ""},
	} {
		c, ok := said(checks, want.name, want.says)
		if !ok {
			t.Errorf("the doctor does not say of %s: %q", want.name, want.says)
			continue
		}
		if c.Grade != want.grade || !strings.Contains(c.Fix, want.fix) {
			t.Errorf("%s = %s, fix %q; want %s with %q", c.Name, c.Grade, c.Fix, want.grade, want.fix)
		}
	}
	if t.Failed() {
		for _, c := range checks {
			t.Logf("%s %s: %.600s | %.200s", c.Grade, c.Name, c.Message, c.Fix)
		}
	}
	for _, c := range checks {
		if strings.ContainsRune(c.Message, '\x1b') {
			t.Errorf("%s lets a server steer the terminal: %q", c.Name, c.Message)
		}
	}
}
