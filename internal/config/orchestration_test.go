package config

import (
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/policy"
)

// TestS343ScopesNarrow: the scopes of the work at hand bound what a model may
// change (S3.43, S3.U08), and a file that cannot be read leaves nothing.
func TestS343ScopesNarrow(t *testing.T) {
	const work = `active_intents:
  - id: INT-001
    name: Login page
    status: IN_PROGRESS
    owned_scope: ["src/auth/**", docs/]
    constraints: [no new dependencies]
    acceptance_criteria: [tests pass]
  - id: INT-002
    status: COMPLETED
    owned_scope: ["**"]
  - id: INT-003
    status: in progress
`
	tests := []struct {
		name, text string
		file       string
		origin     capability.Caller
		refused    string
	}{
		{"no file", "", "main.go", capability.ByModel, ""},
		{"in scope", work, "src/auth/login.go", capability.ByModel, ""},
		{"in a folder", work, "docs/login.md", capability.ByModel, ""},
		{"outside", work, "main.go", capability.ByModel, "REQ-001: the file is outside the scope of INT-001"},
		{"a person", work, "main.go", capability.ByPerson, ""},
		{"nothing owned", "active_intents: [{id: a}]", "main.go", capability.ByModel, ""},
		{"not YAML", "active_intents: [", "src/auth/login.go", capability.ByModel, "cannot be read"},
		{"wrong type", "active_intents: [{id: a, owned_scope: {x: 1}}]", "main.go", capability.ByModel, "cannot be read"},
		{"no pattern", "active_intents: [{id: a, owned_scope: ['src/../x']}]", "main.go", capability.ByModel, "cannot be read"},
		{"not a list", "active_intents: soon", "main.go", capability.ByModel, "cannot be read"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			places, _, workspace := at(t)
			if tt.text != "" {
				write(t, filepath.Join(workspace, ".orchestration", "active_intents.yaml"), tt.text)
			}
			c, err := Load(places, "")
			if err != nil {
				t.Fatal(err)
			}
			rules, err := policy.Compile(c.Policy)
			if err != nil {
				t.Fatal(err)
			}
			d := rules.Decide(&policy.Request{
				Principal: capability.Principal{ID: "ada"}, Intent: "WRITE_FILE", Origin: tt.origin, Surface: policy.SurfaceChat,
				Capability: policy.Capability{ID: "tool:write_to_file", Name: "write_to_file", Class: policy.Write, Trust: capability.TrustBuiltin},
				Facts:      policy.Facts{Paths: []policy.Path{{Name: tt.file, Write: true}}},
			})
			if refused := d.Effect == policy.Deny; refused != (tt.refused != "") || !strings.Contains(d.Reason.Text, tt.refused) {
				t.Errorf("Decide(%s) = %v, %+v; want %q", tt.file, d.Effect, d.Reason, tt.refused)
			}
			if tt.refused != "" && !strings.Contains(d.Reason.Knob, ".orchestration/active_intents.yaml") {
				t.Errorf("knob = %q, want the file", d.Reason.Knob)
			}
		})
	}
	held := Default()
	held.Policy.Scope = &policy.WriteScope{Globs: []string{"src/**"}, Work: []string{"INT-001"}, Where: "x"}
	held.Policy.Rules = []policy.Rule{{ID: "may", Effect: policy.Allow, Capabilities: []string{"tool:shell"}}}
	rules, err := policy.Compile(held.Policy)
	if err != nil {
		t.Fatal(err)
	}
	shell := policy.Request{
		Principal: capability.Principal{ID: "ada"}, Intent: "EXECUTE", Surface: policy.SurfaceChat,
		Capability: policy.Capability{ID: "tool:shell", Name: "shell", Class: policy.Exec, Trust: capability.TrustBuiltin, Declared: policy.Permit(policy.PermExec), Required: policy.Permit(policy.PermExec)},
		Facts:      policy.Facts{Commands: [][]string{{"ls"}}},
	}
	if d := rules.Decide(&shell); d.Effect != policy.Ask || d.Reason.Rule != "scope.exec" {
		t.Errorf("a program under a scope: %v, %+v; want that a person is asked, whatever a rule allows", d.Effect, d.Reason)
	}
	shell.Origin = capability.ByPerson
	if d := rules.Decide(&shell); d.Effect != policy.Allow {
		t.Errorf("a person's own program under a scope: %v, %+v", d.Effect, d.Reason)
	}
	places, _, workspace := at(t)
	write(t, filepath.Join(places.Home, "ken.yaml"), "trace: {orchestration: off}\n")
	write(t, filepath.Join(workspace, ".orchestration", "active_intents.yaml"), work)
	if c, err := Load(places, ""); err != nil || c.Policy.Scope != nil {
		t.Errorf("with trace.orchestration off the scope is %+v, %v; want none", c.Policy.Scope, err)
	}
}
