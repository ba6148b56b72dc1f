package policyfile

import (
	"fmt"

	"ken/internal/govern/policy"
	"ken/internal/yamldoc"
)

// ParseClientRules reads client-rules.json, which "ken connect" writes: the rules
// that were in the settings of clients, each for the agents that it names. A rule
// that names none would be about everybody, and is refused. A rule with a folder
// is left out where applies reports false for it.
func ParseClientRules(name string, data []byte, applies func(folder string) bool) ([]policy.Rule, error) {
	root, err := readJSON(data, 1<<20)
	if err != nil {
		return nil, refusal("read client rules", name, err)
	}
	r := yamldoc.NewReader(root)
	var rules []policy.Rule
	if f, ok := r.Field("rules"); ok {
		items, isList := f.Value.Any.([]yamldoc.Value)
		if !isList {
			r.Issue(f.Line, "rules is "+f.Value.Kind()+", want a list", "")
		}
		for i, item := range items {
			m, isMap := item.Any.(*yamldoc.Map)
			if !isMap {
				r.Issue(item.Line, fmt.Sprintf("rules[%d] is %s, want a map", i, item.Kind()), "")
				continue
			}
			one := yamldoc.NewReader(m)
			folder := one.String("folder")
			one.String("entry") // for ken connect
			rule := readRule(one, name, i)
			if len(rule.Agents) == 0 {
				one.Issue(item.Line, "rule "+rule.ID+" has no agents", "connect the client again, or remove the rule")
			}
			if err := joined(one.Issues()); err != nil {
				return nil, refusal("read client rules", name, err)
			}
			rule.Knob = "the client's own settings, then ken connect " + rule.Agents[0]
			if folder == "" || applies(folder) {
				rules = append(rules, rule)
			}
		}
	}
	r.RefuseRest()
	if err := joined(r.Issues()); err != nil {
		return nil, refusal("read client rules", name, err)
	}
	return rules, nil
}
