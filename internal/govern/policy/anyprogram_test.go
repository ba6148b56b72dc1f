package policy_test

import (
	"testing"

	"ken/capability"
	"ken/internal/govern/policy"
)

func decideShell(t *testing.T, tool policy.Tool, c capability.Capability, argv ...string) policy.Decision {
	t.Helper()
	s := policy.Defaults(policy.Personal)
	s.Access.Tools = map[string]policy.Tool{"shell": tool}
	rules, err := policy.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	q := policy.Request{
		Principal: capability.Principal{ID: "ann"}, Capability: policy.Of(&c), Origin: capability.ByPerson, Surface: policy.SurfaceRun,
	}
	if len(argv) > 0 {
		q.Facts.Commands = [][]string{argv}
	}
	return rules.Decide(&q)
}

// TestAnyProgramObeysTheShell: a tool that runs any program its caller names is
// no way around the settings of the shell.
func TestAnyProgramObeysTheShell(t *testing.T) {
	recipe := func(argv ...string) capability.Capability {
		return capability.Capability{
			ID: "tool:x", Kind: capability.KindTool, Name: "x", Trust: capability.TrustBuiltin, Permissions: []string{"exec"},
			Run: &capability.Recipe{Runner: "exec." + argv[0], Argv: argv},
		}
	}
	off := policy.Tool{Enabled: true, Mode: policy.AccessOff}
	list := policy.Tool{Enabled: true, Mode: policy.AccessAllowlist, AllowedPrefixes: []string{"git status"}}
	full := policy.Tool{Enabled: true, Mode: policy.AccessFull}
	anything := recipe("env", "--", "{program}", "{args...}")
	tests := []struct {
		what string
		tool policy.Tool
		c    capability.Capability
		argv []string
		want policy.Effect
	}{
		{"off", off, anything, []string{"env", "--", "bash", "-c", "id"}, policy.Deny},
		{"list", list, anything, []string{"env", "--", "bash", "-c", "id"}, policy.Deny},
		{"list, on it", list, anything, []string{"env", "--", "git", "status"}, policy.Allow},
		{"full", full, anything, []string{"env", "--", "bash", "-c", "id"}, policy.Allow},
		{"a shell's own code", off, recipe("bash", "-c", "{code}"), []string{"bash", "-c", "id"}, policy.Deny},
		{"a script of the caller's", off, recipe("python3", "{file}"), []string{"python3", "x.py"}, policy.Deny},
		{"a program of its own", off, recipe("git", "log", "{args...}"), []string{"git", "log"}, policy.Allow},
		{"a script of its own", off, recipe("python3", "/opt/x.py", "{name}"), []string{"python3", "/opt/x.py", "n"}, policy.Allow},
	}
	for _, test := range tests {
		if got := decideShell(t, test.tool, test.c, test.argv...); got.Effect != test.want {
			t.Errorf("%s: %v: %s; want %v", test.what, got.Effect, got.Message(), test.want)
		}
	}
}

// TestServersMayNameTheirTools: only Ken's own shell is judged by that name.
func TestServersMayNameTheirTools(t *testing.T) {
	for _, name := range []string{"shell", "run_command", "execute_command", "bash"} {
		c := capability.Capability{
			ID: capability.ID("mcp:box/" + name), Kind: capability.KindTool, Name: name, Trust: capability.TrustUser,
			Origin: capability.Origin{Source: "mcp:box", Format: "mcp"}, Run: &capability.Recipe{Runner: "mcp.box"},
			Effects: capability.Effects{Destructive: capability.No, OpenWorld: capability.No},
		}
		for _, tool := range []policy.Tool{policy.DefaultToolAccess().Tools["shell"], {Enabled: false}} {
			if got := decideShell(t, tool, c); got.Effect == policy.Deny {
				t.Errorf("%s of a server: %s", name, got.Message())
			}
		}
	}
	own := capability.Capability{
		ID: "tool:shell", Kind: capability.KindTool, Name: "shell", Trust: capability.TrustBuiltin, Permissions: []string{"exec"}, Run: &capability.Recipe{Runner: "shell"},
	}
	if got := decideShell(t, policy.Tool{Enabled: false}, own, "ls"); got.Effect != policy.Deny {
		t.Errorf("Ken's own shell that is off: %v", got.Effect)
	}
}
