package door

import (
	"runtime"
	"testing"

	"ken/internal/govern/policy"
	"ken/internal/testkit"
)

// TestViewFollowsTheRules: new rules may be allocated at the address of
// collected ones, and must still count as different rules.
func TestViewFollowsTheRules(t *testing.T) {
	d := open(t, nil)
	var now *policy.Rules
	d.cfg.Rules = func() *policy.Rules { return now }
	stale := 0
	for i := range 200 {
		s := policy.Defaults(policy.Personal)
		hide := i%2 == 0
		if hide {
			s.Rules = []policy.Rule{{ID: "hide", Where: "test", Effect: policy.Deny, Capabilities: []string{"tool:weather"}}}
		}
		rules := testkit.Must(policy.Compile(s))(t)
		now = rules
		if _, err := d.View(somebody).Lookup("tool:weather"); (err != nil) != hide {
			stale++
		}
		now, rules = nil, nil
		runtime.GC()
	}
	if stale > 0 {
		t.Errorf("%d of 200 views show what earlier rules allowed", stale)
	}
}
