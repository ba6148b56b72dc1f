package shell

import (
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit/executortest"
)

// TestRefusalSaysWhatToType: each refusal of a mode holds the line that lifts
// it, and nothing of a caller's that a shell would act on.
func TestRefusalSaysWhatToType(t *testing.T) {
	line := func(fields string) string {
		return "ken config set policy.toolAccess '{tools: {shell: {" + fields + "}}}'"
	}
	short := Settings{Mode: Allowlist, AllowedPrefixes: []string{"echo", "git log *"}}
	odd := Settings{Mode: Allowlist, AllowedPrefixes: []string{"echo 'a"}}
	unknown := line("mode: allowlist, allowedPrefixes: [PROGRAM, …]")
	for _, tt := range []struct {
		settings Settings
		call     capability.Call
		want     string
	}{
		{Settings{}, cmd("echo a"), line("enabled: true, mode: allowlist")},
		{short, cmd("git status"), "allowed are: echo, git log *; a person can"},
		{short, cmd("git status"), line("mode: allowlist, allowedPrefixes: [echo, git log *, git]")},
		{short, cmd("true"), line(`mode: allowlist, allowedPrefixes: [echo, git log *, "true"]`)},
		{Settings{Mode: Allowlist}, cmd("make x"), line("mode: allowlist, allowedPrefixes: [make]")},
		{short, cmd(`"rm'; touch x; '" y`), unknown},
		{short, cmd(`"a]}}}, b: {" y`), unknown},
		{short, cmd(`"a: b"`), unknown},
		{short, cmd(`"[1;31mx"`), unknown},
		{odd, cmd("ls"), unknown},
		{short, cmd("echo a; ls"), line("mode: full")},
		{short, cmd("echo a", "cwd", "/"), line("allowAnyCwd: true")},
	} {
		e, _ := newShell(t, tt.settings, nil)
		executortest.Refused(t, e, tt.call, capability.Denied, tt.want)
		_, err := e.Facts(t.Context(), tt.call, nil)
		if err == nil || strings.Contains(err.Error(), "rm'") {
			t.Errorf("Facts(%s) = %v, want no word of the caller's", tt.call.Arguments, err)
		}
	}
}
