package policy_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/internal/govern/policy"
	"ken/internal/govern/policyfile"
)

func seedAccess(t testing.TB) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/tool-access.json")
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestS420ToolAccess: the file in the seed's shape switches tools, one by one.
func TestS420ToolAccess(t *testing.T) {
	a, err := policyfile.ParseToolAccess("context/tool-access.json", seedAccess(t))
	if err != nil {
		t.Fatal(err)
	}
	s := policy.Defaults(policy.Seed)
	s.Intents, s.Access = policy.Off, a
	r := compile(t, s)
	for name, want := range map[string]bool{"read_file": false, "list_files": true, "write_to_file": true, "finish": true} {
		q := ask(tool(name))
		q.Facts = factsFor(name)
		d := r.Decide(q)
		if (d.Effect == policy.Allow) != want {
			t.Errorf("Decide(%s) = %v by %s, want allow %v", name, d.Effect, d.Reason.Rule, want)
		}
		if !want && (d.Reason.Where != "context/tool-access.json:16" || !strings.Contains(d.Reason.Knob, "tools.read_file.enabled")) {
			t.Errorf("Decide(%s) points at %q, %q", name, d.Reason.Where, d.Reason.Knob)
		}
		v := policy.Viewer{Principal: who()}
		c := tool(name)
		if got := r.Visible(&v, &c); got != want { // C14: neither prompt nor schema
			t.Errorf("Visible(%s) = %v, want %v", name, got, want)
		}
	}
	if timeout, chars := r.Tool("run_command").Limit(time.Hour, 1<<20); timeout != 5*time.Second || chars != 1000 { // K4.02
		t.Errorf("Limit(an hour, 1 MiB) = %v, %d, want the file's", timeout, chars)
	}
	if timeout, chars := r.Tool("shell").Limit(time.Second, 10); timeout != time.Second || chars != 10 {
		t.Errorf("Limit(a second, 10) = %v, %d, want what was asked", timeout, chars)
	}
}

// TestToolAccessGlobal: the global switch, its modes, and tools that are off
// before everything.
func TestToolAccessGlobal(t *testing.T) {
	for text, want := range map[string]map[string]bool{
		`{"global": {"enabled": false}}`:                                   {"read_file": false, "finish": true},
		`{"global": {"mode": "off"}}`:                                      {"read_file": false, "finish": true},
		`{"global": {"mode": "allowlist", "allowedTools": ["read_file"]}}`: {"read_file": true, "list_files": false},
		`{"global": {"mode": "allowlist"}}`:                                {"read_file": false, "finish": true},
		`{"global": {"mode": "allowlist", "allowedTools": ["read_file"]}, "tools": {"read_file": {"enabled": false}}}`: {"read_file": false},
		`{"tools": {"read_file": {"mode": "off"}}}`: {"read_file": false, "list_files": true},
		`{"tools": {"finish": {"enabled": false}}}`: {"finish": false},
		`{}`: {"read_file": true},
	} {
		a, err := policyfile.ParseToolAccess("f", []byte(text))
		if err != nil {
			t.Errorf("ParseToolAccess(%s) = %v", text, err)
			continue
		}
		s := policy.Defaults(policy.Seed)
		s.Intents, s.Access = policy.Off, a
		r := compile(t, s)
		for name, ok := range want {
			q := ask(tool(name))
			q.Facts = factsFor(name)
			if d := r.Decide(q); (d.Effect == policy.Allow) != ok {
				t.Errorf("%s: Decide(%s) = %v by %s, want allow %v", text, name, d.Effect, d.Reason.Rule, ok)
			}
		}
	}
}

// TestS432Env: the seed's environment knobs; without a file they replace the
// defaults, with one they only narrow it, and nonsense is off (C13, C15).
func TestS432Env(t *testing.T) {
	fromFile, err := policyfile.ParseToolAccess("f", seedAccess(t))
	if err != nil {
		t.Fatal(err)
	}
	env := func(pairs ...string) func(string) string {
		return func(key string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == key {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
	for _, test := range []struct {
		file string
		get  func(string) string
		want func(policy.Tool) bool
		bad  bool
	}{
		{"", env("SHELL_TOOL_ENABLED", "false"), func(t policy.Tool) bool { return !t.Enabled }, false},
		{"", env("SHELL_TOOL_MODE", "full"), func(t policy.Tool) bool { return t.Mode == policy.AccessFull }, false},
		{"", env("SHELL_TOOL_MODE", "ful"), func(t policy.Tool) bool { return t.Mode == policy.AccessOff }, true},
		{"", env("SHELL_TOOL_ENABLED", "ja"), func(t policy.Tool) bool { return !t.Enabled }, true},
		{"", env("SHELL_TOOL_TIMEOUT_MS", "999999999"), func(t policy.Tool) bool { return t.Timeout == 2*time.Minute }, false},
		{"", env("SHELL_TOOL_TIMEOUT_MS", "-1"), func(t policy.Tool) bool { return !t.Enabled }, true},
		{"", env("SHELL_TOOL_MAX_OUTPUT_CHARS", "7"), func(t policy.Tool) bool { return t.MaxOutputChars == 7 }, false},
		{"", env("SHELL_TOOL_ALLOWED_PREFIXES", "echo, git"), func(t policy.Tool) bool { return strings.Join(t.AllowedPrefixes, "|") == "echo|git" }, false},
		{"f", env("SHELL_TOOL_MODE", "full"), func(t policy.Tool) bool { return t.Mode == policy.AccessAllowlist }, false},
		{"f", env("SHELL_TOOL_MODE", "off"), func(t policy.Tool) bool { return t.Mode == policy.AccessOff }, false},
		{"f", env("SHELL_TOOL_TIMEOUT_MS", "60000"), func(t policy.Tool) bool { return t.Timeout == 5*time.Second }, false},
		{"f", env("SHELL_TOOL_ALLOWED_PREFIXES", "echo,rm"), func(t policy.Tool) bool { return strings.Join(t.AllowedPrefixes, "|") == "echo" }, false},
		{"f", env(), func(t policy.Tool) bool { return t.Enabled && t.MaxOutputChars == 1000 }, false},
		{"f", env("SHELL_TOOL_MODE", "off"), func(t policy.Tool) bool { return t.By == "the environment variable SHELL_TOOL_MODE" }, false},
		{"f", env("SHELL_TOOL_MODE", "full", "SHELL_TOOL_TIMEOUT_MS", "9"), func(t policy.Tool) bool { return t.By == "" }, false},
		{"", env("SHELL_TOOL_MODE", "full", "SHELL_TOOL_ALLOWED_PREFIXES", "cat"), func(t policy.Tool) bool {
			return t.By == "the environment variables SHELL_TOOL_MODE and SHELL_TOOL_ALLOWED_PREFIXES"
		}, false},
	} {
		a := policy.DefaultToolAccess()
		if test.file != "" {
			a = fromFile
		}
		got, err := a.WithEnv(test.get)
		if !test.want(got.Tool("shell")) || (err != nil) != test.bad {
			t.Errorf("file %q: WithEnv = %+v, %v", test.file, got.Tool("shell"), err)
		}
	}
}

// TestT11ShellAllowlist: with the seed's SHELL_TOOL_ALLOWED_PREFIXES=echo,git a
// command line runs only if all of it does, and nothing runs by a flag.
func TestT11ShellAllowlist(t *testing.T) {
	a, err := policy.DefaultToolAccess().WithEnv(func(key string) string {
		return map[string]string{"SHELL_TOOL_ALLOWED_PREFIXES": "echo,git,find"}[key]
	})
	if err != nil {
		t.Fatal(err)
	}
	s := policy.Defaults(policy.Seed)
	s.Intents, s.Access = policy.Off, a
	rule := "toolAccess.tools.shell.allowedPrefixes"
	opaque := func(why string, argv ...string) func(*policy.Request) {
		return func(q *policy.Request) { q.Facts.Commands, q.Facts.Opaque = [][]string{argv}, why }
	}
	judge(t, compile(t, s), ask(tool("shell")), []wants{
		{"echo", command("echo", "ok"), policy.Allow, ""},
		{"git", command("git", "status"), policy.Allow, ""},
		{"both", func(q *policy.Request) { q.Facts.Commands = [][]string{{"echo", "a"}, {"git", "log"}} }, policy.Allow, ""},
		{"echo ok; id", func(q *policy.Request) { q.Facts.Commands = [][]string{{"echo", "ok"}, {"id"}} }, policy.Deny, rule},
		{"echo $(id)", opaque("command substitution", "echo", "x"), policy.Deny, rule},
		{"echo x > f", opaque("redirection", "echo", "x"), policy.Deny, rule},
		{"A=b git", opaque("assignment", "git", "status"), policy.Deny, rule},
		{"nothing", func(*policy.Request) {}, policy.Deny, rule},
		{"id", command("id"), policy.Deny, rule},
		{"echoes", command("echoes"), policy.Deny, rule},
		{"./echo", command("./echo"), policy.Deny, rule},
		{"git -c", command("git", "-c", "core.pager=id", "log"), policy.Deny, rule},
		{"git --exec-path", command("git", "--exec-path=/tmp", "log"), policy.Deny, rule},
		{"git --upload-pack", command("git", "fetch", "--upload-pack=id"), policy.Deny, rule},
		{"git ext", command("git", "clone", "ext::sh -c id"), policy.Deny, rule},
		{"find -exec", command("find", ".", "-exec", "id", ";"), policy.Deny, rule},
		{"find -delete", command("find", ".", "-delete"), policy.Deny, rule},
		{"env", command("env", "echo"), policy.Deny, rule},
	})
}

func FuzzSection(f *testing.F) {
	for _, s := range []string{
		"profile: team\nrules:\n  - {id: a, effect: deny, argv: [git push, [npm, [a, b]]], match: [git push x]}\n",
		"modes: {docs: {groups: [read, [edit, {fileRegex: '\\.md$'}], {edit: {fileRegex: x}}]}}",
		"toolAccess: {tools: {shell: {mode: off}}}", "intents: off", "permissions: {llm: ask}", "rules: [{id: a, effect: allow, paths: ['a/**/b*?c', x/], hosts: ['*.a', 1.0.0.0/8]}]",
	} {
		f.Add([]byte(s), "src/a.md", "git push x", "a.b")
	}
	f.Fuzz(func(t *testing.T, data []byte, path, line, host string) {
		s, err := policyfile.ParseYAML("f", data)
		if err != nil {
			return
		}
		r, err := policy.Compile(s)
		if err != nil {
			return
		}
		q := ask(tool("shell"))
		q.Facts = policy.Facts{Paths: []policy.Path{{Name: path}}, Commands: [][]string{strings.Fields(line)}, Hosts: []string{host}}
		first := r.Decide(q)
		if again := r.Decide(q); again != first {
			t.Fatalf("Decide = %+v, then %+v", first, again)
		}
		v := policy.Viewer{Principal: q.Principal, Surface: q.Surface}
		if first.Effect != policy.Deny && !r.Visible(&v, &q.Capability) {
			t.Fatalf("a hidden capability may be called: %+v", first)
		}
	})
}

// genAccess draws tool access with entries that cover each other in part.
func genAccess(t *rapid.T) policy.ToolAccess {
	mode := rapid.SampledFrom([]policy.AccessMode{policy.AccessOff, policy.AccessAllowlist, policy.AccessAllowlist, policy.AccessFull, policy.AccessFull})
	tools := rapid.SliceOfN(rapid.SampledFrom([]string{"*", "read_*", "read_file", "*file", "*_file*", "r?ad_*", "shell", "run_*", "run_command", "list_files"}), 0, 3)
	prefixes := rapid.SliceOfN(rapid.SampledFrom([]string{
		"git", "git *", "git log", "git l*", "git -c", "git -c x", "git log -c", "g*", "g?t*", "* log", "find", "find -delete", "env", "env git", "ls",
	}), 0, 3)
	often := rapid.SampledFrom([]bool{true, true, true, false})
	a := policy.DefaultToolAccess()
	a.Name = rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name")
	a.Enabled, a.Mode, a.Allowed = often.Draw(t, "enabled"), mode.Draw(t, "mode"), tools.Draw(t, "allowed")
	for _, name := range []string{"shell", "read_file"} {
		if rapid.Bool().Draw(t, name) {
			a.Tools[name] = policy.Tool{
				Enabled: often.Draw(t, "on"), Mode: mode.Draw(t, "mode"), AllowedPrefixes: prefixes.Draw(t, "prefixes"), AllowAnyCwd: rapid.Bool().Draw(t, "cwd"),
				Timeout: time.Duration(rapid.IntRange(1, 9).Draw(t, "timeout")) * time.Second, MaxOutputChars: rapid.IntRange(1, 9).Draw(t, "chars"),
				Line: rapid.IntRange(0, 9).Draw(t, "line"),
			}
		}
	}
	return a
}

// TestNarrowProperty: what is narrowed never allows what either side refuses,
// in whatever order, and narrowing by itself changes nothing.
func TestNarrowProperty(t *testing.T) {
	under := func(t *rapid.T, a policy.ToolAccess) *policy.Rules {
		s := policy.Defaults(policy.Seed)
		s.Intents, s.Access = policy.Off, a
		r, err := policy.Compile(s)
		if err != nil {
			t.Fatalf("Compile(%+v) = %v", a, err)
		}
		return r
	}
	word := rapid.SampledFrom([]string{"git", "log", "-c", "x", "find", "-delete", "env", "ls", "gut", "l"})
	rapid.Check(t, func(t *rapid.T) {
		a, b := genAccess(t), genAccess(t)
		ab, ba := a.Narrow(b), b.Narrow(a)
		ra, rb, rab, rba, raa := under(t, a), under(t, b), under(t, ab), under(t, ba), under(t, a.Narrow(a))
		for range 40 {
			name := rapid.SampledFrom([]string{"run_command", "run_command", "shell", "read_file", "list_files", "write_to_file"}).Draw(t, "tool")
			q := ask(tool(name))
			q.Facts = factsFor(name)
			if name == "run_command" || name == "shell" {
				q.Facts = policy.Facts{Commands: [][]string{rapid.SliceOfN(word, 1, 4).Draw(t, "argv")}}
			}
			allows := func(r *policy.Rules) bool { return r.Decide(q).Effect == policy.Allow }
			if allows(rab) && !(allows(ra) && allows(rb)) {
				t.Fatalf("Narrow(%+v, %+v) = %+v allows %s %q, which one of them refuses", a, b, ab, name, q.Facts.Commands)
			}
			if allows(rab) != allows(rba) {
				t.Fatalf("Narrow(%+v, %+v) allows %s %q: %v, the other way round %v", a, b, name, q.Facts.Commands, allows(rab), allows(rba))
			}
			if allows(raa) != allows(ra) {
				t.Fatalf("%+v narrowed by itself allows %s %q: %v", a, name, q.Facts.Commands, allows(raa))
			}
		}
		for _, name := range []string{"shell", "read_file", "other"} {
			x, y, n := a.Tool(name), b.Tool(name), ab.Tool(name)
			if n.Timeout != min(x.Timeout, y.Timeout) || n.MaxOutputChars != min(x.MaxOutputChars, y.MaxOutputChars) || n.AllowAnyCwd != (x.AllowAnyCwd && y.AllowAnyCwd) {
				t.Fatalf("Narrow: %s = %+v of %+v and %+v, want the smaller limits", name, n, x, y)
			}
		}
	})
}

// TestNarrowKeeps: what both sides allow stays, where one list covers the
// other.
func TestNarrowKeeps(t *testing.T) {
	shell := func(mode policy.AccessMode, prefixes ...string) policy.ToolAccess {
		a := policy.DefaultToolAccess()
		a.Tools["shell"] = policy.Tool{Enabled: true, Mode: mode, AllowedPrefixes: prefixes, Timeout: time.Second, MaxOutputChars: 1}
		return a
	}
	list := policy.AccessAllowlist
	for _, tt := range []struct {
		a, b policy.ToolAccess
		want string
	}{
		{shell(list, "git", "ls"), shell(list, "git log", "rm"), "git log"},
		{shell(list, "git log"), shell(list, "git log"), "git log"},
		{shell(list, "git l*"), shell(list, "git *", "ls"), "git l*"},
		{shell(policy.AccessFull), shell(list, "make"), "make"},
		{shell(list, "git"), shell(list, "git -c x"), ""},  // which only the longer one names
		{shell(list, "git l*"), shell(list, "git *g"), ""}, // they overlap
		{shell(list, "g?t*"), shell(list, "g*t*"), "g?t*"}, // gt is in the other only
		{shell(policy.AccessOff, "make"), shell(list, "make"), ""},
	} {
		got := tt.a.Narrow(tt.b).Tools["shell"].AllowedPrefixes
		if strings.Join(got, ",") != tt.want {
			t.Errorf("Narrow(%q, %q) = %q, want %q", tt.a.Tools["shell"].AllowedPrefixes, tt.b.Tools["shell"].AllowedPrefixes, got, tt.want)
		}
	}
	a, b := policy.DefaultToolAccess(), policy.DefaultToolAccess()
	a.Mode, a.Allowed = list, []string{"read_*", "shell"}
	b.Mode, b.Allowed = list, []string{"read_file", "*"}
	if got := a.Narrow(b).Allowed; strings.Join(got, ",") != "read_*,shell,read_file" {
		t.Errorf("Narrow: allowed tools = %q", got)
	}
	a.Allowed, b.Allowed = []string{"run_*"}, []string{"run_command"} // which means shell too
	if got := a.Narrow(b).Allowed; len(got) > 0 {
		t.Errorf("Narrow: allowed tools = %q, want none", got)
	}
	a.Name, b.Name = "mine", "theirs"
	if got := a.Narrow(b).Name; got != "mine and theirs" {
		t.Errorf("Narrow: name = %q, want both", got)
	}
}

// TestS4U02Env: TOOLS_ENABLED, TOOLS_MODE and TOOLS_ALLOWED say about all tools
// what the file's global part does; over a file they only narrow.
func TestS4U02Env(t *testing.T) {
	fromFile := policy.ToolAccess{Name: "f", Enabled: true, Mode: policy.AccessAllowlist, Allowed: []string{"shell", "read_file"}, Tools: map[string]policy.Tool{}}
	for _, test := range []struct {
		file       bool
		key, value string
		want       string // enabled, mode, allowed
		bad        bool
	}{
		{false, "TOOLS_ENABLED", "false", "false full ", false},
		{false, "TOOLS_ENABLED", "ja", "false full ", true},
		{false, "TOOLS_MODE", "off", "true off ", false},
		{false, "TOOLS_MODE", "fll", "true off ", true},
		{false, "TOOLS_ALLOWED", "shell, read_file", "true full shell,read_file", false},
		{true, "TOOLS_MODE", "full", "true allowlist shell,read_file", false},
		{true, "TOOLS_ALLOWED", "shell,write_to_file", "true allowlist shell", false},
		{true, "TOOLS_ENABLED", "true", "true allowlist shell,read_file", false},
	} {
		a := policy.DefaultToolAccess()
		if test.file {
			a = fromFile
		}
		got, err := a.WithEnv(func(key string) string {
			if key == test.key {
				return test.value
			}
			return ""
		})
		said := fmt.Sprintf("%v %v %s", got.Enabled, got.Mode, strings.Join(got.Allowed, ","))
		if said != test.want || (err != nil) != test.bad {
			t.Errorf("file %v, %s=%s: %s, %v; want %s", test.file, test.key, test.value, said, err, test.want)
		}
	}
}
