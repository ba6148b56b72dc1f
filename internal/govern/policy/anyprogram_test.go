package policy_test

import (
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/policy"
)

func decideShell(t *testing.T, tool policy.Tool, c capability.Capability, argv ...string) policy.Decision {
	t.Helper()
	s := policy.Defaults(policy.Personal)
	s.Access.Tools = map[string]policy.Tool{"shell": tool}
	rules := compile(t, s)
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
		{"behind a time", off, recipe("timeout", "5", "{args...}"), []string{"timeout", "5", "id"}, policy.Deny},
		{"behind a variable", off, recipe("env", "A=1", "{args...}"), []string{"env", "A=1", "id"}, policy.Deny},
		{"behind an option's value", off, recipe("nice", "-n", "5", "{a}"), []string{"nice", "-n", "5", "id"}, policy.Deny},
		{"behind a file", off, recipe("flock", "/dev/null", "{a}"), []string{"flock", "/dev/null", "id"}, policy.Deny},
		{"behind a word of xargs", off, recipe("xargs", "-I", "X", "{a}"), []string{"xargs", "-I", "X", "id"}, policy.Deny},
		{"behind an unknown starter", off, recipe("setpriv", "--no-new-privs", "{a}"), []string{"setpriv", "--no-new-privs", "id"}, policy.Deny},
		{"on another machine", off, recipe("ssh", "host", "{command}"), []string{"ssh", "host", "id"}, policy.Deny},
		{"a list before the program", off, recipe("env", "{vars...}", "git", "log"), []string{"env", "id", "git", "log"}, policy.Deny},
		{"a part of the code", off, recipe("bash", "-c", "cd x; {code}"), []string{"bash", "-c", "cd x; id"}, policy.Deny},
		{"found and run", off, recipe("find", ".", "-exec", "{a}", ";"), []string{"find", ".", "-exec", "id", ";"}, policy.Deny},
		{"found", off, recipe("find", "{path}", "-name", "{name}"), []string{"find", ".", "-name", "x"}, policy.Allow},
		{"a program of its own behind a time", off, recipe("timeout", "{s}", "git", "log", "{args...}"), []string{"timeout", "5", "git", "log"}, policy.Allow},
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

// TestHiddenPrograms: a call asks, and says why, if git may run a program that
// the project names. A rule for the capability does not cover that, except for
// one that runs anything; a grant for a session does.
func TestHiddenPrograms(t *testing.T) {
	status := capability.Capability{
		ID: "tool:git-status", Kind: capability.KindTool, Name: "git-status", Trust: capability.TrustBuiltin, Permissions: []string{"exec"}, Hash: "h",
		Run: &capability.Recipe{Runner: "exec.git", Argv: []string{"git", "status"}},
	}
	shell := capability.Capability{ID: "tool:shell", Kind: capability.KindTool, Name: "shell", Trust: capability.TrustBuiltin, Permissions: []string{"exec"}, Run: &capability.Recipe{Runner: "shell"}, Hash: "h"}
	s := policy.Defaults(policy.Personal)
	s.Access.Tools = map[string]policy.Tool{"shell": {Enabled: true, Mode: policy.AccessFull}}
	s.Intents = policy.Off
	s.Rules = []policy.Rule{{ID: "status", Effect: policy.Allow, Capabilities: []string{"tool:git-status"}}, {ID: "log", Effect: policy.Allow, Capabilities: []string{"tool:shell"}, Argv: [][][]string{{{"git"}, {"log"}}}}}
	rules := compile(t, s)
	const hidden = "filter.clean in .git/config"
	ask := func(c capability.Capability, facts policy.Facts, grants ...policy.Grant) policy.Decision {
		return rules.Decide(&policy.Request{
			Principal: capability.Principal{ID: "ann"}, Capability: policy.Of(&c), Origin: capability.ByModel, Surface: policy.SurfaceChat, Facts: facts, Session: "s", Grants: grants,
		})
	}
	facts := policy.Facts{Commands: [][]string{{"git", "status"}}}
	if d := ask(status, facts); d.Effect != policy.Allow {
		t.Errorf("a plain repository: %v %s", d.Effect, d.Message())
	}
	facts.Hidden, facts.Opaque = hidden, "git, which may run "+hidden
	d := ask(status, facts)
	if d.Effect != policy.Ask || d.Reason.Rule != "arguments.hidden" || !strings.Contains(d.Message(), hidden) {
		t.Errorf("a repository with a filter: %v %s", d.Effect, d.Message())
	}
	if d := ask(status, facts, policy.Grant{ID: "g", Principal: "ann", Capability: status.ID, Hash: "h", Session: "s"}); d.Effect != policy.Allow {
		t.Errorf("with a grant: %v %s", d.Effect, d.Message())
	}
	facts.Commands = [][]string{{"git", "log"}}
	if d := ask(shell, facts); d.Effect != policy.Ask || d.Reason.Rule != "personal.exec" || !strings.Contains(d.Message(), hidden) {
		t.Errorf("the shell: %v %s %s", d.Effect, d.Reason.Rule, d.Message())
	}
}
