package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cedar-policy/cedar-go"
	"github.com/cedar-policy/cedar-go/types"
	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/testkit"
)

// reference decides by Cedar alone: the printed policies are parsed again, and
// every one of them is evaluated for every combination of arguments, with the
// whole context. Where a forbid decides, its id comes with the effect.
func reference(t *rapid.T, r *Rules, q *Request) (effect Effect, rule string) {
	v := Viewer{Principal: q.Principal, Mode: q.Mode, Origin: q.Origin, Surface: q.Surface}
	if _, ok := r.sane(&v, &q.Capability); !ok {
		return Deny, ""
	}
	intent, ok := ParseIntent(q.Intent)
	if !ok {
		return Deny, ""
	}
	list, err := cedar.NewPolicyListFromBytes("printed", r.Cedar())
	if err != nil {
		t.Fatalf("what Cedar() prints does not parse: %v", err)
	}
	seen := r.look(&q.Facts, q.Capability.Class != Read && q.Capability.Class != Meta, nil)
	key := planKey{
		tenant: q.Principal.Tenant, user: q.Principal.ID, agent: q.Principal.Agent, mode: q.Mode, origin: q.Origin, surface: q.Surface, intent: intent, action: q.Action,
		ident: ident{string(q.Capability.ID), knownName(&q.Capability)}, anyProgram: q.Capability.AnyProgram, source: q.Capability.Source, kind: string(q.Capability.Kind),
		trust: q.Capability.Trust, class: q.Capability.Class, readOnly: q.Capability.ReadOnly, destructive: q.Capability.Destructive,
		mcp: q.Capability.MCP, declared: q.Capability.Declared.set, required: q.Capability.Required.set,
	}
	if key.class == Exec {
		key.required |= PermExec
	}
	user, thing := types.NewEntityUID("User", types.String(key.user)), types.NewEntityUID("Capability", types.String(key.id))
	j := judgement{
		rules: r, q: q, seen: &seen, risk: riskOf(&q.Capability).with(&q.Facts, &seen),
		plan: &plan{static: r.staticContext(&key), entities: types.EntityMap{user: principalEntity(user, &key, q.Principal.Roles), thing: resourceEntity(thing, &key)}},
	}
	matched := map[string]bool{} // "forbid", "forbid once", "permit", "permit session", …
	for _, p := range list {
		any, all := false, true
		for i := range max(1, len(q.Facts.Paths)) {
			for k := range max(1, len(q.Facts.Hosts)) {
				for n := range max(1, len(q.Facts.Commands)) {
					context := types.RecordMap{}
					for _, name := range contextNames {
						context[name] = j.attribute(name, i, k, n)
					}
					_, diag := cedar.Authorize(cedar.PolicyMap{"x": p}, j.plan.entities, cedar.Request{
						Principal: user, Action: callAction(), Resource: thing, Context: types.NewRecord(context),
					})
					if len(diag.Errors) > 0 {
						return Deny, ""
					}
					any, all = any || len(diag.Reasons) > 0, all && len(diag.Reasons) > 0
				}
			}
		}
		kind := "permit"
		if p.Effect() == cedar.Forbid {
			kind = "forbid"
		}
		if kind == "forbid" && any || kind == "permit" && all {
			if _, asks := p.Annotations()["ask"]; kind == "forbid" && !asks && rule == "" {
				rule = string(p.Annotations()["id"])
			}
			matched[strings.TrimSpace(kind+" "+string(p.Annotations()["ask"]))] = true
		}
	}
	needs := func(scope Scope) Effect {
		for i := range q.Grants {
			if q.Grants[i].covers(q, scope) {
				return Allow
			}
		}
		return Ask
	}
	permitted := matched["permit"] || matched["permit once"] || matched["permit session"]
	switch {
	case matched["forbid"] || !permitted:
		return Deny, rule
	case matched["forbid once"] || !matched["permit"] && matched["permit once"]:
		return needs(Once), ""
	case matched["forbid session"] || !matched["permit"]:
		return needs(Session), ""
	}
	return Allow, ""
}

var (
	someNames = []string{"shell", "run_command", "git", "web", "x1"}
	someRoles = []string{"dev", "intern", "operator"}
	somePaths = []string{"src/a.go", "vendor/b.go", "README.md", "../x", "/etc/passwd", "Vendor/c", ".env", "AGENTS.md"}
	someHosts = []string{"example.com", "a.example.com", "10.0.0.1", "localhost"}
	someLines = []string{"git push", "git status", "sudo git push", "rm -rf x", "ls", "make all"}
)

func some[T any](of []T) *rapid.Generator[[]T] { return rapid.SliceOfN(rapid.SampledFrom(of), 0, 2) }

func genRule(i int, arguments bool) *rapid.Generator[Rule] {
	return rapid.Custom(func(t *rapid.T) Rule {
		r := Rule{
			ID: fmt.Sprintf("rule%d", i), Effect: Effect(rapid.IntRange(0, 2).Draw(t, "effect")), Scope: Scope(rapid.IntRange(0, 1).Draw(t, "scope")),
			Capabilities: some(append(slices.Clone(someNames), "tool:g*", "w*", "tool:x1")).Draw(t, "capabilities"),
			Roles:        some(someRoles).Draw(t, "roles"), Tenants: some([]string{"acme", "other"}).Draw(t, "tenants"),
			Principals: some([]string{"ann", "bob"}).Draw(t, "principals"),
			Agents:     some([]string{"claude", "codex"}).Draw(t, "agents"),
			Classes:    some([]Class{Read, Write, Exec, Network}).Draw(t, "classes"),
			Trust:      some([]capability.Trust{0, 1, 2, 3}).Draw(t, "trust"),
			Modes:      some([]string{"ask", "code"}).Draw(t, "modes"), Intents: some([]Intent{Plan, Code, Execute}).Draw(t, "intents"),
			Origins: some([]capability.Caller{capability.ByModel, capability.ByPerson}).Draw(t, "origins"),
		}
		if len(r.Capabilities) > 0 {
			r.Except = some([]string{"git", "tool:g*", "*1"}).Draw(t, "except")
		}
		r.Destructive = r.Effect == Allow && rapid.Bool().Draw(t, "destructive")
		if !arguments {
			return r
		}
		r.Actions = some([]string{"push", "get"}).Draw(t, "actions")
		r.Paths = some([]string{"src/**", "vendor/**", "*.md", "**/*.go", "README.md", "**/a.*", "s*/*"}).Draw(t, "paths")
		r.Hosts = some([]string{"*.example.com", "example.com", "10.0.0.0/8", "*"}).Draw(t, "hosts")
		for _, line := range some([]string{"git push", "git", "rm", "l*"}).Draw(t, "argv") {
			p, _ := parsePattern(line)
			r.Argv = append(r.Argv, p)
		}
		return r
	})
}

func genSettings(t *rapid.T, arguments bool) Settings {
	s := Defaults(Profile(rapid.IntRange(0, 3).Draw(t, "profile")))
	s.Deployment = Deployment(rapid.IntRange(0, 2).Draw(t, "deployment"))
	s.Intents = IntentPolicy(rapid.IntRange(0, 2).Draw(t, "intents"))
	s.AskAbove, s.DenyAbove = rapid.IntRange(0, 50).Draw(t, "ask"), rapid.IntRange(50, 100).Draw(t, "deny")
	n := rapid.IntRange(0, 25).Draw(t, "rules")
	for i := range n {
		s.Rules = append(s.Rules, genRule(i, arguments).Draw(t, "rule"))
	}
	if arguments && rapid.Bool().Draw(t, "many") { // enough for an index
		for i := range 40 {
			r := genRule(n+i, true).Draw(t, "plain rule")
			s.Rules = append(s.Rules, Rule{ID: r.ID, Effect: r.Effect, Paths: r.Paths, Hosts: r.Hosts, Argv: r.Argv})
		}
	}
	if rapid.Bool().Draw(t, "cedar") {
		s.Cedar = []CedarFile{{Name: "org.cedar", Text: []byte(orgCedar)}}
	}
	return s
}

const orgCedar = `
@id("org.secret") forbid (principal, action, resource) when { context.path like "vendor/*" && context.writes };
@id("org.host") @ask("once") forbid (principal, action, resource) when { context.host like "*.example.com" };
@id("org.interns") forbid (principal in Role::"intern", action, resource in Class::"exec");
@id("org.x1") permit (principal, action, resource == Capability::"tool:x1") when { context.program == "" && context.path like "src/*" };
@id("org.bob") @ask("session") permit (principal == User::"bob", action, resource) unless { resource.destructive };
`

func genRequest(t *rapid.T) *Request {
	name := rapid.SampledFrom(someNames).Draw(t, "name")
	q := &Request{
		Principal: capability.Principal{ID: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "who"), Tenant: "acme", Roles: some(someRoles).Draw(t, "roles"), Agent: rapid.SampledFrom([]string{"", "claude"}).Draw(t, "agent")},
		Capability: Capability{
			ID: capability.ID("tool:" + name), Name: name, Kind: capability.KindTool, Trust: capability.Trust(rapid.IntRange(0, 3).Draw(t, "trust")),
			Class: Class(rapid.IntRange(1, 6).Draw(t, "class")), Destructive: rapid.Bool().Draw(t, "destructive"), AnyProgram: rapid.Bool().Draw(t, "any program"), MCP: rapid.Bool().Draw(t, "mcp"),
			Declared: Permit(PermExec, PermNetwork),
		},
		Session: "s", Digest: "d", Time: time.Unix(100, 0),
	}
	genCall(t, q)
	q.Mode = rapid.SampledFrom([]string{"", "ask", "architect", "code"}).Draw(t, "mode")
	q.Origin = rapid.SampledFrom([]capability.Caller{capability.ByModel, capability.ByPerson}).Draw(t, "origin")
	q.Surface = rapid.SampledFrom([]Surface{"", SurfaceChat, SurfaceMCP}).Draw(t, "surface")
	return q
}

// genCall fills in what Visible does not know.
func genCall(t *rapid.T, q *Request) {
	q.Intent = rapid.SampledFrom(intentNames[:]).Draw(t, "intent")
	q.Action = rapid.SampledFrom([]string{"", "push", "get"}).Draw(t, "action")
	q.Facts = Facts{Hosts: some(someHosts).Draw(t, "hosts"), Destructive: rapid.Bool().Draw(t, "destroys")}
	for _, p := range some(somePaths).Draw(t, "paths") {
		q.Facts.Paths = append(q.Facts.Paths, Path{Name: p, Write: rapid.Bool().Draw(t, "write")})
	}
	for _, line := range some(someLines).Draw(t, "lines") {
		q.Facts.Commands = append(q.Facts.Commands, strings.Fields(line))
	}
	q.Grants = nil
	if rapid.Bool().Draw(t, "grant") {
		q.Grants = []Grant{{ID: "g", Principal: "ann", Tenant: "acme", Capability: q.Capability.ID, Action: q.Action, Session: "s"}}
	}
}

func mustCompile(t *rapid.T, s Settings) *Rules {
	r, err := Compile(s)
	if err != nil {
		t.Fatalf("Compile = %v", err)
	}
	return r
}

// TestSameAsCedar: what the plans decide is what Cedar decides over all
// policies with the whole context, and does not depend on what was asked
// before.
func TestSameAsCedar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := mustCompile(t, genSettings(t, true))
		for range 4 {
			q := genRequest(t)
			want, rule := reference(t, r, q)
			got := r.Decide(q)
			if got.Effect != want || rule != "" && got.Reason.Rule != rule {
				t.Fatalf("Decide = %v by %s (%s), Cedar = %v by %s\n%+v", got.Effect, got.Reason.Rule, got.Reason.Text, want, rule, q)
			}
			if again := r.Decide(q); again != got {
				t.Fatalf("Decide = %+v, then %+v", got, again)
			}
		}
	})
}

// TestDenyMonotone: one more refusal never allows more, and one more question
// never makes a refusal anything else.
func TestDenyMonotone(t *testing.T) {
	testkit.CI(t, "compiles rules hundreds of times")
	rapid.Check(t, func(t *rapid.T) {
		s := genSettings(t, true)
		before := mustCompile(t, s)
		extra := genRule(99, true).Draw(t, "extra")
		extra.Effect, extra.Destructive = Effect(rapid.IntRange(0, 1).Draw(t, "extraEffect")), false
		s.Rules = append(slices.Clone(s.Rules), extra)
		after := mustCompile(t, s)
		for range 4 {
			q := genRequest(t)
			a, b := before.Decide(q), after.Decide(q)
			if b.Effect > a.Effect {
				t.Fatalf("with one more %v rule Decide went from %v to %v by %s", extra.Effect, a.Effect, b.Effect, b.Reason.Rule)
			}
		}
	})
}

// TestHiddenIsDenied: whatever is not visible is refused at the call.
func TestHiddenIsDenied(t *testing.T) {
	hidden := 0
	rapid.Check(t, func(t *rapid.T) {
		r := mustCompile(t, genSettings(t, true))
		q := genRequest(t)
		v := Viewer{Principal: q.Principal, Mode: q.Mode, Origin: q.Origin, Surface: q.Surface}
		if r.Visible(&v, &q.Capability) {
			return
		}
		hidden++
		for range 8 {
			genCall(t, q)
			if d := r.Decide(q); d.Effect != Deny {
				t.Fatalf("hidden, and Decide = %v by %s", d.Effect, d.Reason.Rule)
			}
		}
	})
	if hidden == 0 {
		t.Error("nothing was hidden, so nothing was tried")
	}
}

// TestDeniedIsHidden: whatever is refused for every intent and without
// arguments, where rules ask for none, is not visible.
func TestDeniedIsHidden(t *testing.T) {
	testkit.CI(t, "compiles rules hundreds of times")
	rapid.Check(t, func(t *rapid.T) {
		s := genSettings(t, false)
		s.Cedar = nil
		s.Access.Tools = nil
		r := mustCompile(t, s)
		q := genRequest(t)
		q.Facts, q.Action, q.Mode = Facts{}, "", rapid.SampledFrom([]string{"", "ask", "code"}).Draw(t, "plain mode")
		v := Viewer{Principal: q.Principal, Mode: q.Mode, Origin: q.Origin, Surface: q.Surface}
		callable := false
		for _, q.Intent = range intentNames {
			callable = callable || r.Decide(q).Effect != Deny
		}
		if got := r.Visible(&v, &q.Capability); got != callable {
			t.Fatalf("Visible = %v, callable %v", got, callable)
		}
	})
}

// TestPlansAreBounded: any number of principals and names leaves memory
// bounded and the answers right.
func TestPlansAreBounded(t *testing.T) {
	s := Defaults(Seed)
	s.Intents = Off
	s.Rules = []Rule{{ID: "odd", Effect: Deny, Roles: []string{"role1"}}, {ID: "all", Effect: Deny, Capabilities: []string{"never-*"}}}
	r, err := Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	q := &Request{Principal: capability.Principal{ID: "a"}, Capability: Capability{ID: "x", Name: "x", Class: Read}}
	for i := range mostPlans + 10 {
		role := fmt.Sprintf("role%d", i%(mostPlans+5))
		q.Principal.Roles = []string{role}
		want := Allow
		if role == "role1" {
			want = Deny
		}
		if i%4096 > 4 && i < mostPlans {
			r.rolesID(q.Principal.Roles)
			continue
		}
		if d := r.Decide(q); d.Effect != want {
			t.Fatalf("Decide(%s) = %v, want %v", role, d.Effect, want)
		}
	}
	if len(r.roles) > mostPlans || len(r.plans) > mostPlans || len(r.idents) > mostPlans {
		t.Errorf("roles %d, plans %d, idents %d; want at most %d", len(r.roles), len(r.plans), len(r.idents), mostPlans)
	}
}
