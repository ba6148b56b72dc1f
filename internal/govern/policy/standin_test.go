package policy_test

import (
	"fmt"
	"testing"

	"ken/capability"
	"ken/internal/govern/policy"
	"ken/internal/testkit"
)

// TestPatternsShareNoAnswer: what rules say about one capability does not depend on
// which others they were asked about before. Names that the same patterns match
// share what was worked out; all others do not.
func TestPatternsShareNoAnswer(t *testing.T) {
	testkit.CI(t, "compiles rules hundreds of times")
	s := policy.Defaults(policy.Personal)
	for i, r := range []policy.Rule{
		{Effect: policy.Allow, Capabilities: []string{"mcp:many/*"}},
		{Effect: policy.Deny, Capabilities: []string{"mcp:many/delete_*"}},
		{Effect: policy.Deny, Capabilities: []string{"mcp:many/tool_7", "tool_5"}},
		{Effect: policy.Ask, Capabilities: []string{"*_1"}},
		{Effect: policy.Deny, Capabilities: []string{"tool_?*"}},
		{Effect: policy.Deny, Capabilities: []string{"mcp:*/tool_3*"}, Roles: []string{"intern"}},
		{Effect: policy.Deny, Capabilities: []string{"*"}, Classes: []policy.Class{policy.Exec}},
	} {
		r.ID, r.Where = fmt.Sprint("r", i), "test:1"
		s.Rules = append(s.Rules, r)
	}
	var list []policy.Capability
	for _, server := range []string{"many", "other"} {
		for _, name := range []string{"tool_1", "tool_2", "tool_3", "tool_31", "tool_5", "tool_7", "tool_?", "tool_?x", "delete_1", "delete_2", "read_file", "*", ""} {
			for class := policy.Read; class <= policy.Exec; class++ {
				c := made(class, capability.TrustUser)
				c.ID, c.Name, c.MCP = capability.ID("mcp:"+server+"/"+name), name, true
				list = append(list, c)
			}
		}
	}
	for _, forward := range []bool{true, false} {
		shared := compile(t, s)
		viewing := map[string]func(*policy.Capability) bool{}
		for _, role := range []string{"dev", "intern"} {
			viewing[role] = shared.Viewing(&policy.Viewer{Principal: who(role), Surface: policy.SurfaceMCP})
		}
		for i := range list {
			c := list[i]
			if !forward {
				c = list[len(list)-1-i]
			}
			alone := compile(t, s)
			for _, role := range []string{"dev", "intern"} {
				v := &policy.Viewer{Principal: who(role), Surface: policy.SurfaceMCP}
				q := ask(c)
				q.Principal = v.Principal
				got, want := shared.Decide(q), alone.Decide(q)
				if got.Effect != want.Effect || got.Reason.Rule != want.Reason.Rule {
					t.Errorf("%s, class %v, role %s: %v by %s, and alone %v by %s", c.ID, c.Class, role, got.Effect, got.Reason.Rule, want.Effect, want.Reason.Rule)
				}
				if got, want := shared.Visible(v, &c), alone.Visible(v, &c); got != want {
					t.Errorf("%s, class %v, role %s: visible %t, and alone %t", c.ID, c.Class, role, got, want)
				}
				off := c
				off.Disabled = "switched off"
				if viewing[role](&off) {
					t.Errorf("%s, class %v, role %s: visible although it is disabled", c.ID, c.Class, role)
				}
				if got, want := viewing[role](&c), alone.Visible(v, &c); got != want {
					t.Errorf("%s, class %v, role %s: visible %t among others, and alone %t", c.ID, c.Class, role, got, want)
				}
			}
		}
	}
}
