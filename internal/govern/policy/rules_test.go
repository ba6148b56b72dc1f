package policy_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/policy"
)

// wants is one row of a table of decisions.
type wants struct {
	name   string
	change func(*policy.Request)
	effect policy.Effect
	rule   string // that decides; empty for any
}

// judge runs a table over copies of one request.
func judge(t *testing.T, r *policy.Rules, base *policy.Request, rows []wants) {
	t.Helper()
	for _, row := range rows {
		q := *base
		row.change(&q)
		d := r.Decide(&q)
		if d.Effect != row.effect || row.rule != "" && d.Reason.Rule != row.rule {
			t.Errorf("%s: Decide = %v by %s (%s), want %v by %s", row.name, d.Effect, d.Reason.Rule, d.Reason.Text, row.effect, row.rule)
		}
		if d.Effect != policy.Allow {
			res := d.Result()
			if !res.Failed || len(res.Parts) == 0 || !strings.Contains(res.Parts[0].Text, d.Reason.Text) || d.Reason.Text == "" || d.Reason.Rule == "" || d.Reason.Stage == "" {
				t.Errorf("%s: the refusal says too little: %+v", row.name, res)
			}
		}
	}
}

func command(argv ...string) func(*policy.Request) {
	return func(q *policy.Request) { q.Facts.Commands = [][]string{argv} }
}

func file(name string) func(*policy.Request) {
	return func(q *policy.Request) {
		q.Facts.Paths = []policy.Path{{Name: name, Write: q.Capability.Class != policy.Read}}
	}
}

func hosts(names ...string) func(*policy.Request) {
	return func(q *policy.Request) { q.Facts.Hosts = names }
}

// TestProfiles pins what DESIGN says of each profile.
func TestProfiles(t *testing.T) {
	const y, a, n = policy.Allow, policy.Ask, policy.Deny
	caps := map[string]policy.Capability{
		"read": made(policy.Read, capability.TrustUser), "write": made(policy.Write, capability.TrustUser),
		"exec": made(policy.Exec, capability.TrustUser), "net": made(policy.Network, capability.TrustUser),
		"remoteRead": made(policy.Read, capability.TrustRemote), "destroy": made(policy.Write, capability.TrustUser),
	}
	for name, c := range caps {
		c.Declared = policy.Permit(policy.PermExec)
		c.Destructive = name == "destroy"
		caps[name] = c
	}
	for profile, want := range map[policy.Profile]map[string]policy.Effect{
		policy.Personal: {"read": y, "write": a, "exec": a, "net": a, "remoteRead": y, "destroy": a},
		policy.Team:     {"read": y, "write": a, "exec": a, "net": a, "remoteRead": a, "destroy": n},
		policy.Locked:   {"read": y, "write": n, "exec": n, "net": n, "remoteRead": n, "destroy": n},
		policy.Seed:     {"read": y, "write": y, "exec": y, "net": y, "remoteRead": y, "destroy": y},
	} {
		s := policy.Defaults(profile)
		s.Intents = policy.Off
		r := compile(t, s)
		for name, c := range caps {
			d := r.Decide(ask(c))
			if d.Effect != want[name] {
				t.Errorf("%v: Decide(%s) = %v by %s, want %v", profile, name, d.Effect, d.Reason.Rule, want[name])
			}
			if profile == policy.Personal && d.Effect == a {
				scope := policy.Once
				if name == "write" || name == "exec" {
					scope = policy.Session
				}
				if !d.Needs.Needed || d.Needs.Scope != scope {
					t.Errorf("personal: Decide(%s) needs %+v, want %v", name, d.Needs, scope)
				}
			}
		}
		if lines := policy.Describe(r); len(lines) < 20 || lines[0].Text != profile.String() {
			t.Errorf("Describe(%v) = %d lines, first %+v", profile, len(lines), lines[0])
		}
	}
	q := ask(caps["write"])
	q.Origin = capability.ByPerson
	if d := compile(t, policy.Defaults(policy.Personal)).Decide(q); d.Effect != y {
		t.Errorf("personal: a person's own write = %v by %s, want allow", d.Effect, d.Reason.Rule)
	}
}

// TestT12Permissions: a permission that is needed and not declared refuses, for
// every permission, and nothing declared is nothing given (K5.01).
func TestT12Permissions(t *testing.T) {
	all := []policy.Permission{policy.PermExec, policy.PermNetwork, policy.PermRead, policy.PermWrite, policy.PermBrowser, policy.PermLLM}
	names := []string{"exec", "network", "filesystem.read", "filesystem.write", "browser", "llm"}
	r := compile(t, policy.Defaults(policy.Seed))
	for i, needed := range all {
		for j, declared := range append(all, 0) {
			c := made(policy.Network, capability.TrustUser)
			c.Required, c.Declared = policy.Permit(needed), policy.Permit(declared)
			q := ask(c)
			q.Intent = "EXECUTE"
			d := r.Decide(q)
			if want := i == j; (d.Effect == policy.Allow) != want {
				t.Errorf("Decide(needs %s, declares %s) = %v by %s, want allow %v", c.Required, c.Declared, d.Effect, d.Reason.Rule, want)
			} else if !want && (d.Reason.Rule != "permissions.declared."+names[i] || !strings.Contains(d.Reason.Text, names[i])) {
				t.Errorf("Decide(needs %s) says %+v", c.Required, d.Reason)
			}
		}
	}
	c := made(policy.Exec, capability.TrustBuiltin) // an executor that forgot to say so
	q := ask(c)
	q.Intent = "EXECUTE"
	if d := r.Decide(q); d.Effect != policy.Deny || d.Reason.Rule != "permissions.declared.exec" {
		t.Errorf("Decide(exec, nothing declared) = %v by %s", d.Effect, d.Reason.Rule)
	}
}

// TestC22PermissionAliases: the seed's names and its program's.
func TestC22PermissionAliases(t *testing.T) {
	got := policy.ParsePermissions([]string{"exec_shell", "network_http", "fs_read", "fs_write", "browser", "llm"})
	want := policy.ParsePermissions([]string{"exec", "network", "filesystem.read", "filesystem.write", "browser", "llm"})
	if got != want || got.Unknown() != "" || len(got.Names()) != 6 {
		t.Errorf("ParsePermissions(aliases) = %v, want %v", got, want)
	}
	raw, err := os.ReadFile("testdata/permissions.txt") // the seed's table, S5.24–29
	if err != nil {
		t.Fatal(err)
	}
	var table []string
	for line := range strings.Lines(string(raw)) {
		table = append(table, strings.Fields(strings.Trim(line, "│"))[0])
	}
	if p := policy.ParsePermissions(table); p != want || !slices.Equal(p.Names(), table) {
		t.Errorf("ParsePermissions(%v) = %v, want %v in the seed's order", table, p.Names(), want)
	}
	if p := policy.ParsePermissions([]string{"exec", ""}); p.Unknown() == "" {
		t.Error("ParsePermissions: an empty word is not unknown")
	}
}

// TestPermissionKnobs: the settings may refuse or ask for a permission.
func TestPermissionKnobs(t *testing.T) {
	r := parse(t, "profile: seed\nintents: off\npermissions: {browser: deny, llm: ask, network: allow}")
	c := made(policy.Network, capability.TrustUser)
	need := func(p policy.Permission) func(*policy.Request) {
		return func(q *policy.Request) {
			q.Capability.Required, q.Capability.Declared = policy.Permit(p), policy.Permit(p)
		}
	}
	judge(t, r, ask(c), []wants{
		{"browser", need(policy.PermBrowser), policy.Deny, "permissions.browser"},
		{"llm", need(policy.PermLLM), policy.Ask, "permissions.llm"},
		{"network", need(policy.PermNetwork), policy.Allow, "seed.all"},
	})
	declare := func(p policy.Permission) func(*policy.Request) {
		return func(q *policy.Request) {
			q.Capability.Required, q.Capability.Declared = policy.Permit(policy.PermExec), policy.Permit(policy.PermExec, p)
		}
	}
	r = parse(t, "profile: seed\nintents: off\npermissions: {browser: deny, filesystem.write: deny, filesystem.read: ask}")
	judge(t, r, ask(made(policy.Exec, capability.TrustUser)), []wants{
		{"declares browser", declare(policy.PermBrowser), policy.Deny, "permissions.browser"},
		{"declares write", declare(policy.PermWrite), policy.Deny, "permissions.filesystem.write"},
		{"declares read", declare(policy.PermRead), policy.Ask, "permissions.filesystem.read"},
		{"declares network", declare(policy.PermNetwork), policy.Allow, "seed.all"},
	})
}

// TestDeployments: shell and write are denied in locked and remote (S5.U10).
func TestDeployments(t *testing.T) {
	for name, open := range map[string]bool{"local_open": true, "local_locked": false, "remote_exposed": false} {
		r := parse(t, "profile: seed\nintents: off\ndeployment: "+name)
		for _, tl := range []string{"write_to_file", "apply_diff", "shell", "read_file"} {
			q := ask(tool(tl))
			q.Facts = factsFor(map[string]string{"shell": "run_command"}[tl] + strings.TrimPrefix(tl, "shell"))
			want := open || tl == "read_file"
			if d := r.Decide(q); (d.Effect == policy.Allow) != want {
				t.Errorf("%s: Decide(%s) = %v by %s, want allow %v", name, tl, d.Effect, d.Reason.Rule, want)
			}
		}
	}
}

// TestS3U05Modes: groups, file patterns over every path, always-available
// tools, and disabled tools before everything.
func TestS3U05Modes(t *testing.T) {
	r := parse(t, `
profile: seed
intents: off
modes:
  docs: {groups: [read, [edit, {fileRegex: '\.md$', description: Markdown}]]}
  notes: {groups: [{edit: {fileRegex: '^notes/'}}], files: ["*.txt"]}
  none: {groups: []}
toolAccess: {tools: {list_files: {enabled: false}}}
`)
	in := func(mode string, c policy.Capability, paths ...string) *policy.Request {
		q := ask(c)
		q.Mode = mode
		for _, p := range paths {
			q.Facts.Paths = append(q.Facts.Paths, policy.Path{Name: p, Write: c.Class != policy.Read})
		}
		return q
	}
	mcp := made(policy.Read, capability.TrustRemote)
	mcp.MCP = true
	for _, test := range []struct {
		q    *policy.Request
		want bool
	}{
		{in("docs", tool("read_file"), "a.go"), true},
		{in("docs", tool("write_to_file"), "a.md"), true},
		{in("docs", tool("write_to_file"), "a.go"), false},
		{in("docs", tool("apply_diff"), "a.md", "b.go"), false}, // every path inside a patch
		{in("docs", tool("apply_diff"), "a.md", "b.md"), true},
		{in("docs", tool("write_to_file")), false}, // no path known
		{in("docs", tool("shell")), false},
		{in("docs", mcp), false},
		{in("ask", mcp), true},
		{in("notes", tool("write_to_file"), "notes/x.go"), true},
		{in("notes", tool("write_to_file"), "x.txt"), true},
		{in("notes", tool("write_to_file"), "x.go"), false},
		{in("notes", tool("read_file"), "x.go"), false},
		{in("architect", tool("write_to_file"), "plan.md"), true},
		{in("architect", tool("write_to_file"), "plan.go"), false},
		{in("none", tool("finish")), true},
		{in("none", tool("ask_user")), true},
		{in("none", tool("read_file"), "a"), false},
		{in("code", tool("list_files"), "a"), false},
		{in("", tool("list_files"), "a"), false},
		{in("", tool("write_to_file"), "a.go"), true},
	} {
		if d := r.Decide(test.q); (d.Effect == policy.Allow) != test.want {
			t.Errorf("mode %q: Decide(%s %v) = %v by %s, want allow %v", test.q.Mode, test.q.Capability.Name, test.q.Facts.Paths, d.Effect, d.Reason.Rule, test.want)
		}
	}
}

// TestT06Paths: what names another file than it seems to is refused before any
// rule is asked, and what lies outside is never written.
func TestT06Paths(t *testing.T) {
	r := parse(t, "profile: seed\nintents: off\nwriteRoots: [/srv/data]\nreadRoots: [/srv/data]")
	rows := []wants{}
	for name, rule := range map[string]string{
		"../x": "arguments.malformed", "a/../../x": "arguments.malformed", "a/..": "arguments.malformed", "..": "arguments.malformed",
		`a\..\..\x`: "arguments.malformed", "/srv/data/../etc": "arguments.malformed",
		"a\x00b": "arguments.malformed", "": "arguments.malformed", strings.Repeat("a", 5000): "arguments.malformed",
		"/etc/passwd": "arguments.outsideWrite", "/srv/data2/x": "arguments.outsideWrite", "/srv/datax": "arguments.outsideWrite",
		"/srv": "arguments.outsideWrite", "~/.ssh/id_rsa": "arguments.outsideWrite", `C:\Windows\x`: "arguments.outsideWrite",
		"//etc/x": "arguments.outsideWrite",
	} {
		rows = append(rows, wants{name, file(name), policy.Deny, rule})
	}
	for _, name := range []string{"a..b", "a/..b", "...", "./a", "a//b", "/srv/data/x", "/srv/data", "/srv/data/./x", "src/x.go"} {
		rows = append(rows, wants{name, file(name), policy.Allow, ""})
	}
	judge(t, r, ask(tool("write_to_file")), rows)
	q := ask(tool("write_to_file"))
	q.Facts.Paths = []policy.Path{{Name: "x/../../y", Write: true}}
	if d := r.Decide(q); d.Reason.Text != "Path traversal detected" { // S5.36
		t.Errorf("Decide(..) says %q", d.Reason.Text)
	}
}

// TestMalformedAdvice: the advice is about what is malformed.
func TestMalformedAdvice(t *testing.T) {
	t.Parallel()
	r := parse(t, "profile: seed\nintents: off")
	for name, tt := range map[string]struct {
		facts   policy.Facts
		instead string
	}{
		"path":    {policy.Facts{Paths: []policy.Path{{Name: "../x"}}}, "Name files below the workspace, without .."},
		"command": {policy.Facts{Commands: [][]string{{}}}, "Name the program to run"},
		"host":    {policy.Facts{Hosts: []string{"bücher.example"}}, "Write the host in ASCII, as in xn--bcher-kva.example"},
	} {
		q := ask(tool("write_to_file"))
		q.Facts = tt.facts
		if d := r.Decide(q); d.Reason.Rule != "arguments.malformed" || d.Reason.Instead != tt.instead {
			t.Errorf("%s: rule %q advises %q, want arguments.malformed and %q", name, d.Reason.Rule, d.Reason.Instead, tt.instead)
		}
	}
}

// TestProtectedFiles: files that govern need consent to write, files with
// secrets to read, in any case of letters.
func TestProtectedFiles(t *testing.T) {
	r := parse(t, "intents: off\nprotect: [Makefile]\nsecrets: ['vault/**']\nrules: [{id: all, effect: allow}]")
	rows := []wants{{"control", file("src/a.go"), policy.Allow, "all"}}
	for _, name := range []string{"AGENTS.md", "docs/agents.MD", "ken.yaml", ".ken/x", "a/.git/hooks/pre-commit", ".Git/Hooks/x", "x/SKILL.md", "Makefile", ".github/workflows/ci.yml"} {
		rows = append(rows, wants{name, file(name), policy.Ask, "arguments.protected"})
	}
	judge(t, r, ask(tool("write_to_file")), rows)
	rows = []wants{{"control", file("src/a.go"), policy.Allow, "all"}}
	for _, name := range []string{".env", "deploy/.env.prod", "a/.ssh/config", "key.PEM", "vault/x"} {
		rows = append(rows, wants{name, file(name), policy.Ask, "arguments.secret"})
	}
	judge(t, r, ask(tool("read_file")), rows)
}

// TestArgumentRules: a refusal holds for any argument that matches, a
// permission only where all do.
func TestArgumentRules(t *testing.T) {
	r := parse(t, `
intents: off
toolAccess: {tools: {shell: {mode: full}}}
rules:
  - {id: no-push, effect: deny, argv: ["git push", [npm, [publish, unpublish]]], match: ["git push origin", "npm publish"], notMatch: ["git status"], reason: Releases are made by CI, instead: Open a pull request}
  - {id: git-ok, effect: allow, capabilities: [shell], argv: [git status, git log, git diff]}
  - {id: no-prod, effect: deny, hosts: ["*.prod.example.com", 10.0.0.0/8]}
  - {id: docs, effect: allow, hosts: [docs.example.com, "*.docs.example.com"]}
  - {id: no-vendor, effect: deny, paths: ["vendor/**"], access: write}
  - {id: src, effect: allow, paths: ["src/**", "*.md"], match: [src/a/b.go, x/y.md], notMatch: [test/a.go]}
`)
	judge(t, r, ask(tool("shell")), []wants{
		{"plain", command("git", "push"), policy.Deny, "no-push"},
		{"by path", command("/usr/bin/git", "push", "-f"), policy.Deny, "no-push"},
		{"options first", command("git", "-C", "/x", "push"), policy.Deny, "no-push"},
		{"flag first", command("git", "--no-pager", "push"), policy.Deny, "no-push"},
		{"through env", command("env", "A=b", "git", "push"), policy.Deny, "no-push"},
		{"through sudo", command("sudo", "-u", "x", "git", "push"), policy.Deny, "no-push"},
		{"alternative", command("npm", "unpublish", "x"), policy.Deny, "no-push"},
		{"another word", command("git", "status", "push"), policy.Allow, "git-ok"},
		{"allowed", command("git", "log", "-3"), policy.Allow, "git-ok"},
		{"planted", command("./git", "log"), policy.Ask, "personal.exec"},
		{"hazardous flag", command("git", "diff", "--ext-diff"), policy.Ask, "personal.exec"},
		{"hazardous output", command("git", "log", "--output=/x"), policy.Ask, "personal.exec"},
		{"other", command("make"), policy.Ask, "personal.exec"},
		{"destroys", command("rm", "-rf", "x"), policy.Ask, "arguments.destructive"},
		{"chain", func(q *policy.Request) { q.Facts.Commands = [][]string{{"git", "log"}, {"id"}} }, policy.Ask, "personal.exec"},
		{"chain denied", func(q *policy.Request) { q.Facts.Commands = [][]string{{"git", "log"}, {"git", "push"}} }, policy.Deny, "no-push"},
		{"opaque", func(q *policy.Request) {
			q.Facts.Commands, q.Facts.Opaque = [][]string{{"git", "log"}}, "command substitution"
		}, policy.Ask, "personal.exec"},
		{"empty", command(), policy.Deny, "arguments.malformed"},
	})
	net := made(policy.Network, capability.TrustUser)
	judge(t, r, ask(net), []wants{
		{"any", hosts("docs.example.com", "db.prod.example.com"), policy.Deny, "no-prod"},
		{"case and dot", hosts("DB.Prod.Example.com."), policy.Deny, "no-prod"},
		{"range", hosts("10.1.2.3"), policy.Deny, "no-prod"},
		{"mapped", hosts("[::ffff:10.1.2.3]"), policy.Deny, "no-prod"},
		{"all", hosts("docs.example.com", "a.docs.example.com"), policy.Allow, "docs"},
		{"one is not", hosts("docs.example.com", "other.com"), policy.Ask, "personal.outbound"},
		{"suffix is not", hosts("evildocs.example.com"), policy.Ask, "personal.outbound"},
		{"none", hosts(), policy.Ask, "personal.outbound"},
		{"metadata", hosts("169.254.169.254"), policy.Deny, "arguments.metadata"},
		{"not ascii", hosts("①②⑦.⓪.⓪.①"), policy.Deny, "arguments.malformed"},
	})
	judge(t, r, ask(tool("write_to_file")), []wants{
		{"vendor", file("vendor/x/y.go"), policy.Deny, "no-vendor"},
		{"vendor in capitals", file("Vendor/x.go"), policy.Deny, "no-vendor"},
		{"src", file("src/x.go"), policy.Allow, "src"},
		{"Src is another folder", file("Src/x.go"), policy.Ask, "personal.write"},
		{"markdown", file("a/b.md"), policy.Allow, "src"},
		{"one of two", func(q *policy.Request) {
			q.Facts.Paths = []policy.Path{{Name: "src/a", Write: true}, {Name: "b", Write: true}}
		}, policy.Ask, "personal.write"},
	})
}

// TestStrictest: a refusal beats a question, a question a permission, and the
// narrowest question wins.
func TestStrictest(t *testing.T) {
	r := parse(t, `
intents: off
rules:
  - {id: may, effect: allow, capabilities: [a, b, c, d]}
  - {id: must-ask, effect: ask, scope: session, capabilities: [b, c, d]}
  - {id: ask-each, effect: ask, capabilities: [c, d]}
  - {id: never, effect: deny, capabilities: [d]}
`)
	for name, want := range map[string]struct {
		effect policy.Effect
		rule   string
		scope  policy.Scope
	}{
		"a": {policy.Allow, "may", policy.Once}, "b": {policy.Ask, "must-ask", policy.Session},
		"c": {policy.Ask, "ask-each", policy.Once}, "d": {policy.Deny, "never", policy.Once},
	} {
		c := made(policy.Write, capability.TrustUser)
		c.Name = name
		d := r.Decide(ask(c))
		if d.Effect != want.effect || d.Reason.Rule != want.rule || d.Needs.Scope != want.scope {
			t.Errorf("Decide(%s) = %v by %s scope %v, want %+v", name, d.Effect, d.Reason.Rule, d.Needs.Scope, want)
		}
	}
}

// TestSelectors: each selector narrows a rule.
func TestSelectors(t *testing.T) {
	for selector, change := range map[string]func(*policy.Request){
		"capabilities: [other]":      func(q *policy.Request) { q.Capability.Name = "other" },
		"capabilities: ['oth*']":     func(q *policy.Request) { q.Capability.Name = "other" },
		"capabilities: [tool:other]": func(q *policy.Request) { q.Capability.ID = "tool:other" },
		"capabilities: [run_command]": func(q *policy.Request) {
			q.Capability.Name = "execute_command" // names of one tool, C17
		},
		"capabilities: [\"tool:cre\u0300me\"]": func(q *policy.Request) { q.Capability.ID = "tool:cr\u00e8me" },
		"capabilities: [\"cre\u0300*\"]":       func(q *policy.Request) { q.Capability.Name = "cr\u00e8me" },
		"actions: [push]":                      func(q *policy.Request) { q.Action = "push" },
		"kinds: [command]":                     func(q *policy.Request) { q.Capability.Kind = "command" },
		"sources: [acme]":                      func(q *policy.Request) { q.Capability.Source = "acme" },
		"effects: [network]":                   func(q *policy.Request) { q.Capability.Class = policy.Network },
		"trust: [remote]":                      func(q *policy.Request) { q.Capability.Trust = capability.TrustRemote },
		"tenants: [evil]":                      func(q *policy.Request) { q.Principal.Tenant = "evil" },
		"roles: [intern]":                      func(q *policy.Request) { q.Principal.Roles = []string{"dev", "intern"} },
		"principals: [bob]":                    func(q *policy.Request) { q.Principal.ID = "bob" },
		"modes: [ask]":                         func(q *policy.Request) { q.Mode = "ask" },
		"intents: [PLAN]":                      func(q *policy.Request) { q.Intent = "PLAN" },
		"origins: [person]":                    func(q *policy.Request) { q.Origin = capability.ByPerson },
		"surfaces: [mcp]":                      func(q *policy.Request) { q.Surface = policy.SurfaceMCP },
		"paths: ['x/**']":                      file("x/y"),
		"argv: [id]":                           command("id"),
		"hosts: [evil.example]":                hosts("evil.example"),
	} {
		r := parse(t, "profile: seed\nintents: off\nrules: [{id: it, effect: deny, "+selector+"}]")
		q := ask(made(policy.Read, capability.TrustUser))
		if d := r.Decide(q); d.Effect != policy.Allow {
			t.Errorf("%s: control = %v by %s", selector, d.Effect, d.Reason.Rule)
		}
		change(q)
		if d := r.Decide(q); d.Effect != policy.Deny || d.Reason.Rule != "it" {
			t.Errorf("%s: Decide = %v by %s, want a refusal", selector, d.Effect, d.Reason.Rule)
		}
	}
}
