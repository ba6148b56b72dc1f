package policy_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/govern/policyfile"
)

// compile makes rules of settings that are right.
func compile(t testing.TB, s policy.Settings) *policy.Rules {
	t.Helper()
	r, err := policy.Compile(s)
	if err != nil {
		t.Fatalf("Compile = %v", err)
	}
	return r
}

// parse makes rules of a policy section that is right.
func parse(t testing.TB, text string) *policy.Rules {
	t.Helper()
	s, err := policyfile.ParseYAML("ken.yaml", []byte(text))
	if err != nil {
		t.Fatalf("ParseYAML = %v", err)
	}
	return compile(t, s)
}

// tool is a capability of this program by one of the seeds' names, with the
// permissions that it needs.
func tool(name string) policy.Capability {
	c := policy.Of(&capability.Capability{ID: capability.MakeID(capability.KindTool, name), Kind: capability.KindTool, Name: name, Trust: capability.TrustBuiltin})
	c.Declared = c.Required
	return c
}

func made(class policy.Class, trust capability.Trust) policy.Capability {
	return policy.Capability{ID: "tool:x", Name: "x", Kind: capability.KindTool, Class: class, Trust: trust}
}

func who(roles ...string) capability.Principal {
	return capability.Principal{ID: "ann", Tenant: "acme", Roles: roles}
}

func ask(c policy.Capability) *policy.Request {
	return &policy.Request{Principal: who(), Capability: c, Surface: policy.SurfaceChat, Session: "s1", Time: time.Unix(1000, 0)}
}

// seedTools are the names that the seed's matrix has.
var seedTools = []string{"read_file", "write_to_file", "apply_diff", "run_command"}

// TestS326IntentMatrix: the seed's map, as it is written there, is what
// decides, for every intent and every tool.
func TestS326IntentMatrix(t *testing.T) {
	raw, err := os.ReadFile("testdata/intent_tool_map.ts")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\s*([A-Z_]+): \[(.*)\],$`).FindAllStringSubmatch(string(raw), -1)
	if len(rows) != len(policy.Intents()) {
		t.Fatalf("the fixture has %d intents, want %d", len(rows), len(policy.Intents()))
	}
	for _, profile := range []policy.Profile{policy.Seed, policy.Personal, policy.Team} {
		r := compile(t, policy.Defaults(profile))
		for _, row := range rows {
			var allowed []string
			if err := json.Unmarshal([]byte("["+row[2]+"]"), &allowed); err != nil {
				t.Fatal(err)
			}
			for _, name := range seedTools {
				q := ask(tool(name))
				q.Intent = row[1]
				q.Facts = factsFor(name)
				d := r.Decide(q)
				if want := slices.Contains(allowed, name); (d.Effect != policy.Deny) != want {
					t.Errorf("%s: Decide(%s under %s) = %v (%s), want allowed %v", profile, name, row[1], d.Effect, d.Reason.Rule, want)
				} else if !want && d.Reason.Text != "Tool not allowed under selected intent" {
					t.Errorf("%s: Decide(%s under %s) says %q", profile, name, row[1], d.Reason.Text)
				} else if !want && !strings.Contains(d.Message(), "select_active_intent") {
					t.Errorf("%s: Decide(%s under %s) does not say what to do: %q", profile, name, row[1], d.Message())
				}
			}
		}
	}
}

// factsFor returns arguments that no other check minds.
func factsFor(name string) policy.Facts {
	if name == "run_command" {
		return policy.Facts{Commands: [][]string{{"echo", "hi"}}}
	}
	return policy.Facts{Paths: []policy.Path{{Name: "src/a.go", Write: name != "read_file"}}}
}

// TestS324NoIntent: without an intent every effect is refused and every
// meta-tool works.
func TestS324NoIntent(t *testing.T) {
	r := compile(t, policy.Defaults(policy.Seed))
	for _, name := range seedTools {
		q := ask(tool(name))
		q.Facts = factsFor(name)
		if d := r.Decide(q); d.Effect != policy.Deny || d.Reason.Text != "Intent must be selected before executing tools" {
			t.Errorf("Decide(%s without intent) = %v %q", name, d.Effect, d.Reason.Text)
		}
	}
	metas := []string{
		"select_active_intent", "discover_capabilities", "list_capabilities", "describe_capability", "invoke_capability",
		"read_result", "ask_user", "finish",
	}
	for _, name := range metas { // K3.01, C18
		for _, intent := range append(policy.Intents(), "") {
			q := ask(tool(name))
			q.Intent = intent
			if d := r.Decide(q); d.Effect != policy.Allow {
				t.Errorf("Decide(%s under %q) = %v %q, want allow", name, intent, d.Effect, d.Reason.Text)
			}
		}
	}
}

// TestK313Relaxed: reads run under an implied READ_FILE that is told, and
// nothing else does.
func TestK313Relaxed(t *testing.T) {
	r := parse(t, "intents: relaxed")
	for _, test := range []struct {
		tool, intent string
		want         policy.Effect
		implied      policy.Intent
	}{
		{"read_file", "", policy.Allow, policy.ReadFile},
		{"read_file", "CODE", policy.Allow, policy.ReadFile},
		{"read_file", "ANALYZE", policy.Allow, policy.NoIntent},
		{"write_to_file", "", policy.Deny, policy.NoIntent},
		{"run_command", "", policy.Deny, policy.NoIntent},
		{"write_to_file", "CODE", policy.Ask, policy.NoIntent},
	} {
		q := ask(tool(test.tool))
		q.Intent, q.Facts = test.intent, factsFor(test.tool)
		if d := r.Decide(q); d.Effect != test.want || d.Implied != test.implied {
			t.Errorf("Decide(%s under %q) = %v implied %v, want %v implied %v", test.tool, test.intent, d.Effect, d.Implied, test.want, test.implied)
		}
	}
}

// TestIntentsBySurface: personal wants intents in chat and not at MCP and the
// proxy, and never from a person (C32).
func TestIntentsBySurface(t *testing.T) {
	r := compile(t, policy.Defaults(policy.Personal))
	for _, test := range []struct {
		surface policy.Surface
		origin  capability.Caller
		want    policy.Effect
	}{
		{policy.SurfaceChat, capability.ByModel, policy.Deny},
		{"", capability.ByModel, policy.Deny},
		{policy.SurfaceMCP, capability.ByModel, policy.Allow},
		{"proxy", capability.ByModel, policy.Deny}, // no such surface
		{policy.SurfaceChat, capability.ByPerson, policy.Allow},
		{"pigeon", capability.ByPerson, policy.Deny},
		{policy.SurfaceMCP, "cat", policy.Deny},
	} {
		q := ask(tool("read_file"))
		q.Surface, q.Origin = test.surface, test.origin
		if d := r.Decide(q); d.Effect != test.want {
			t.Errorf("Decide(read_file at %q by %q) = %v %q, want %v", test.surface, test.origin, d.Effect, d.Reason.Text, test.want)
		}
	}
}

// TestUnknownWordsDeny: nothing that is not known is allowed, and the reason
// names it.
func TestUnknownWordsDeny(t *testing.T) {
	r := compile(t, policy.Defaults(policy.Seed))
	tests := map[string]func(*policy.Request){
		"unknown-intent":     func(q *policy.Request) { q.Intent = "HACK" },
		"unknown-mode":       func(q *policy.Request) { q.Mode = "HACK" },
		"unknown-permission": func(q *policy.Request) { q.Capability.Declared = policy.ParsePermissions([]string{"HACK"}) },
		"unknown-surface":    func(q *policy.Request) { q.Surface = "HACK" },
		"unknown-origin":     func(q *policy.Request) { q.Origin = "HACK" },
	}
	for rule, change := range tests {
		q := ask(tool("finish"))
		if d := r.Decide(q); d.Effect != policy.Allow {
			t.Fatalf("control: Decide(finish) = %v %q, want allow", d.Effect, d.Reason.Text)
		}
		change(q)
		d := r.Decide(q)
		if d.Effect != policy.Deny || d.Reason.Rule != rule || !strings.Contains(d.Reason.Text, "HACK") {
			t.Errorf("Decide(%s) = %v %+v", rule, d.Effect, d.Reason)
		}
	}
	for rule, change := range map[string]func(*policy.Request){
		"nobody":         func(q *policy.Request) { q.Principal.ID = "" },
		"no-capability":  func(q *policy.Request) { q.Capability.ID = "" },
		"unknown-effect": func(q *policy.Request) { q.Capability.Class = 99 },
		"disabled":       func(q *policy.Request) { q.Capability.Disabled = "The extension was not reviewed" },
	} {
		q := ask(tool("finish"))
		change(q)
		if d := r.Decide(q); d.Effect != policy.Deny || d.Reason.Rule != rule {
			t.Errorf("Decide(%s) = %v %+v", rule, d.Effect, d.Reason)
		}
	}
}

// TestZeroDenies: nothing that was left out allows anything.
func TestZeroDenies(t *testing.T) {
	var none *policy.Rules
	q := ask(tool("finish"))
	if d := none.Decide(q); d.Effect != policy.Deny || d.Reason.Rule != "no-rules" {
		t.Errorf("nil rules: Decide = %v %+v", d.Effect, d.Reason)
	}
	if none.Visible(&policy.Viewer{Principal: who()}, &q.Capability) {
		t.Error("nil rules: Visible = true")
	}
	if none.Tool("shell").Enabled {
		t.Error("nil rules: the shell is enabled")
	}
	var zero policy.Decision
	if zero.Effect != policy.Deny || zero.Err("tool:x") == nil {
		t.Errorf("the zero Decision is %v", zero.Effect)
	}
	if d := compile(t, policy.Defaults(policy.Seed)).Decide(&policy.Request{}); d.Effect != policy.Deny {
		t.Errorf("Decide(zero) = %v", d.Effect)
	}
	r := compile(t, policy.Settings{})
	for class := policy.Read; class <= policy.Network; class++ {
		q := ask(made(class, capability.TrustBuiltin))
		q.Origin = capability.ByPerson
		if d := r.Decide(q); d.Effect != policy.Deny {
			t.Errorf("zero Settings: Decide(%v) = %v", class, d.Effect)
		}
	}
}
