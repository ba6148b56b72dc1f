package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/govern/policy"
)

// policyFile draws the section policy of a ken.yaml, most of the time without
// what a project may not say when it is meant for one.
func policyFile(t *rapid.T, project bool) string {
	words := func(w ...string) *rapid.Generator[string] { return rapid.SampledFrom(w) }
	narrow := project && rapid.IntRange(0, 3).Draw(t, "wide") > 0
	either := func(narrower, wider *rapid.Generator[string]) *rapid.Generator[string] {
		if narrow {
			return narrower
		}
		return wider
	}
	effect := either(words("deny", "ask"), words("deny", "ask", "allow"))
	grade := rapid.Custom(func(t *rapid.T) string {
		return fmt.Sprint(rapid.SampledFrom([]int{0, 20, 40, 60, 80, 100}).Draw(t, "grade"))
	})
	permissions := rapid.Custom(func(t *rapid.T) string {
		return "{" + some(t, [][2]any{{"exec", effect}, {"network", effect}, {"fs_read", effect}, {"filesystem.write", effect}}, ", ") + "}"
	})
	mode := words("{groups: [read]}", "{groups: [read, edit], files: ['*.md']}", "{groups: [read, edit, command, mcp]}", "{groups: []}")
	modes := rapid.Custom(func(t *rapid.T) string {
		names := [][2]any{{"y", mode}, {"ask", mode}, {"x", mode}}
		if narrow {
			names = names[:1]
		}
		return "{" + some(t, names, ", ") + "}"
	})
	tool := words("{enabled: false}", "{mode: off}", "{mode: full}", "{mode: allowlist, allowedPrefixes: [git]}", "{mode: allowlist, allowedPrefixes: [git log, rm]}")
	access := rapid.Custom(func(t *rapid.T) string {
		return "{global: " + words("{}", "{mode: allowlist, allowedTools: [read_file, shell]}", "{mode: allowlist, allowedTools: ['*']}").Draw(t, "global") +
			", tools: {" + some(t, [][2]any{{"shell", tool}, {"read_file", tool}}, ", ") + "}}"
	})
	about := words("capabilities: [tool:x]", "effects: [exec, network]", "effects: [read]", "argv: [git, rm]", "paths: [src/**]", "trust: [workspace]", "modes: [ask]", "origins: [model]")
	rules := rapid.Custom(func(t *rapid.T) string {
		var out []string
		for i := range rapid.IntRange(0, 2).Draw(t, "rules") {
			out = append(out, fmt.Sprintf("{id: %s, effect: %s, scope: %s, %s}", fmt.Sprint(either(words("p", "q"), words("a", "b", "c")).Draw(t, "id"), i),
				effect.Draw(t, "effect"), words("once", "session").Draw(t, "scope"), about.Draw(t, "about")))
		}
		return "[" + strings.Join(out, ", ") + "]"
	})
	return "policy: {" + some(t, [][2]any{
		{"profile", either(words("personal", "locked"), words("personal", "team", "locked", "seed"))}, {"deployment", words("local_open", "local_locked", "remote_exposed")},
		{"intents", either(words("strict"), words("strict", "relaxed", "off", "off"))},
		{"intentSurfaces", either(words("[chat, run, api, library, mcp]", "[chat, run, api, mcp, library]"), words("[]", "[chat]", "[chat, run, api, library]"))},
		{"intentMap", either(words("{}"), words("{}", "{PLAN: [exec]}", "{EXECUTE: []}"))}, {"modes", modes}, {"permissions", permissions},
		{"protect", words("[]", "['*.go']")}, {"secrets", words("[]", "[src/**]")},
		{"readRoots", either(words("[]"), words("[]", "[/srv]"))}, {"writeRoots", either(words("[]"), words("[]", "[/srv]"))},
		{"askAbove", either(words("0", "20", "40"), grade)}, {"denyAbove", either(words("40", "60", "90"), grade)}, {"toolAccess", access}, {"rules", rules},
	}, ", ") + "}\n"
}

// policyCall draws a call.
func policyCall(t *rapid.T) *policy.Request {
	c := policy.Capability{
		ID: "tool:x", Name: rapid.SampledFrom([]string{"x", "read_file", "shell"}).Draw(t, "name"), Kind: capability.KindTool,
		Trust:       rapid.SampledFrom([]capability.Trust{capability.TrustBuiltin, capability.TrustUser, capability.TrustWorkspace, capability.TrustRemote}).Draw(t, "trust"),
		Class:       rapid.SampledFrom([]policy.Class{policy.Meta, policy.Read, policy.Write, policy.Edit, policy.Exec, policy.Network}).Draw(t, "class"),
		ReadOnly:    rapid.Bool().Draw(t, "readOnly"),
		Destructive: rapid.Bool().Draw(t, "destructive"),
	}
	c.Required = policy.Permit(rapid.SampledFrom([]policy.Permission{policy.PermExec, policy.PermNetwork, policy.PermRead, policy.PermWrite}).Draw(t, "needs"))
	c.Declared = c.Required
	return &policy.Request{
		Principal: capability.Principal{ID: "ann", Tenant: "acme"}, Capability: c, Session: "s", Time: time.Unix(1000, 0),
		Surface: rapid.SampledFrom([]policy.Surface{policy.SurfaceChat, policy.SurfaceRun, policy.SurfaceMCP}).Draw(t, "surface"),
		Intent:  rapid.SampledFrom(append(policy.Intents(), "", "")).Draw(t, "intent"),
		Mode:    rapid.SampledFrom([]string{"", "", "ask", "code"}).Draw(t, "mode"), // not one that only the project has
		Facts: rapid.SampledFrom([]policy.Facts{
			{}, {Paths: []policy.Path{{Name: "src/a.go"}}}, {Paths: []policy.Path{{Name: "src/a.go", Write: true}}}, {Paths: []policy.Path{{Name: "/srv/x", Write: true}}},
			{Commands: [][]string{{"git", "log"}}}, {Commands: [][]string{{"rm", "-rf", "x"}}}, {Hosts: []string{"example.com"}},
		}).Draw(t, "facts"),
	}
}

// TestProjectNeverWidensPolicy: whatever the two files say, no call is decided
// more generously with the project's file than without it (S3.41).
func TestProjectNeverWidensPolicy(t *testing.T) {
	taken := 0
	rapid.Check(t, func(t *rapid.T) {
		user, project := policyFile(t, false), policyFile(t, true)
		layered := func(c *Config, text string, workspace bool) bool {
			r := &reading{file: fmt.Sprintf("/%v/ken.yaml", workspace), dir: "/f", workspace: workspace, project: "/f", ownFile: "/h/ken.yaml"}
			if l := r.decode([]byte(text)); workspace {
				c.narrow(l, r)
				r.distinctRules(c.Policy.Rules)
			} else {
				c.over(l, r)
			}
			return len(r.problems) == 0
		}
		without := Default()
		without.origins = map[string]saying{}
		if !layered(&without, user, false) {
			return
		}
		with := without
		with.origins = map[string]saying{}
		for key, said := range without.origins {
			with.origins[key] = said
		}
		if !layered(&with, project, true) {
			return
		}
		taken++
		a, err := policy.Compile(with.Policy)
		if err != nil {
			t.Fatalf("Compile = %v\n%s%s", err, user, project)
		}
		b, err := policy.Compile(without.Policy)
		if err != nil {
			t.Fatalf("Compile = %v\n%s", err, user)
		}
		for range 20 {
			q := policyCall(t)
			now, was := a.Decide(q), b.Decide(q)
			if now.Effect > was.Effect || now.Effect == policy.Ask && was.Effect == policy.Ask && now.Needs.Scope > was.Needs.Scope {
				t.Fatalf("%+v is %v by %s with the project's file and %v by %s without it\n%s%s", q, now.Effect, now.Reason.Rule, was.Effect, was.Reason.Rule, user, project)
			}
		}
	})
	t.Logf("%d projects' files were taken", taken)
	if taken == 0 {
		t.Error("no project's file was taken")
	}
}
