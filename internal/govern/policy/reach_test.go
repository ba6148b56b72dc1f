package policy_test

import (
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/policy"
)

// TestIDsReachTheUsersOwn: a rule or a grant by id does not cover a capability
// of a project or a URL with that id, unless it says so. (C12)
func TestIDsReachTheUsersOwn(t *testing.T) {
	s := policy.Defaults(policy.Personal)
	s.Intents = policy.Off
	s.Rules = []policy.Rule{
		{ID: "mark", Effect: policy.Allow, Capabilities: []string{"tool:mark"}, Where: "ken.yaml:1"},
		{ID: "memory", Effect: policy.Allow, Capabilities: []string{"mcp:memory/*"}, Where: "ken.yaml:2"},
		{ID: "build", Effect: policy.Allow, Capabilities: []string{"tool:build"}, Trust: []capability.Trust{capability.TrustWorkspace}, Where: "ken.yaml:3"},
		{ID: "never", Effect: policy.Deny, Capabilities: []string{"tool:wipe"}, Where: "ken.yaml:4"},
	}
	s.Cedar = []policy.CedarFile{{Name: "org.cedar", Text: []byte(`
permit (principal, action, resource == Capability::"tool:org");
permit (principal, action, resource) when { resource.name == "named" };
permit (principal, action, resource == Capability::"tool:everywhere") when { resource.trustLevel >= 1 };
`)}}
	rules := compile(t, s)
	for id, want := range map[capability.ID][3]policy.Effect{ // effects for user, workspace and remote trust
		"tool:mark":        {policy.Allow, policy.Ask, policy.Ask},
		"mcp:memory/extra": {policy.Allow, policy.Ask, policy.Ask},
		"tool:build":       {policy.Ask, policy.Allow, policy.Ask},
		"tool:wipe":        {policy.Deny, policy.Deny, policy.Deny},
		"tool:org":         {policy.Allow, policy.Ask, policy.Ask},
		"tool:named":       {policy.Allow, policy.Ask, policy.Ask},
		"tool:everywhere":  {policy.Allow, policy.Allow, policy.Ask},
	} {
		for i, trust := range []capability.Trust{capability.TrustUser, capability.TrustWorkspace, capability.TrustRemote} {
			c := made(policy.Exec, trust)
			_, name, _ := strings.Cut(string(id), ":")
			c.ID, c.Name, c.Declared = id, name, policy.Permit(policy.PermExec)
			q := &policy.Request{Principal: capability.Principal{ID: "ann"}, Capability: c, Session: "s", Digest: "d"}
			d := rules.Decide(q)
			if d.Effect != want[i] {
				t.Errorf("%s of trust %v: Decide = %v by %s, want %v", id, trust, d.Effect, d.Reason.Rule, want[i])
			}
			if id == "tool:mark" && trust == capability.TrustWorkspace && !strings.Contains(d.Message(), "the rule mark allows this id only for the user's own capabilities. To allow this one, add trust: [workspace] to the rule") {
				t.Errorf("the question %q does not name the rule that was meant", d.Message())
			}
			q.Grants = []policy.Grant{{ID: "g", Principal: "ann", Capability: id, Session: "s"}}
			granted := rules.Decide(q).Effect == policy.Allow
			if wantGranted := want[i] == policy.Allow || want[i] == policy.Ask && trust == capability.TrustUser; granted != wantGranted {
				t.Errorf("%s of trust %v with a grant by id: allowed %v, want %v", id, trust, granted, wantGranted)
			}
			q.Capability.Hash, q.Grants[0].Hash = "sha256:1", "sha256:1"
			if granted := rules.Decide(q).Effect == policy.Allow; granted != (want[i] != policy.Deny) {
				t.Errorf("%s of trust %v with a grant for its text: allowed %v", id, trust, granted)
			}
		}
	}
}
