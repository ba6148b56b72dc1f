package reload

import (
	"strings"

	"ken/internal/config"
	"ken/internal/govern/policy"
)

// A BuiltinSkill is a skill that is part of the program, with the tools that
// belong to it.
type BuiltinSkill struct {
	ID    string
	Tools []string // ids of capabilities
}

// BuiltinSkills returns the skills that are part of the program. They are on
// unless skills.off names them.
func BuiltinSkills() []BuiltinSkill {
	return []BuiltinSkill{
		{ID: "files", Tools: []string{"tool:read_file", "tool:list_files", "tool:search_files", "tool:write_to_file", "tool:apply_diff"}},
		{ID: "shell", Tools: []string{"tool:shell"}},
	}
}

// skillRules returns the rules that deny what skills.off names. A skill that is
// part of the program takes its tools with it.
func skillRules(settings config.Config) []policy.Rule {
	_, where, _ := settings.Explain("skills.off") // the key is one of ours
	var out []policy.Rule
	for _, name := range settings.Skills.Off {
		kind, bare, ok := strings.Cut(name, ":")
		if !ok {
			kind, bare = "skill", name
		}
		rule := policy.Rule{
			ID: "skills.off." + bare, Effect: policy.Deny, Capabilities: []string{kind + ":" + bare}, Where: where,
			Reason: "The skill " + bare + " is off", Knob: "skills.off",
		}
		for _, s := range BuiltinSkills() {
			if s.ID == bare && kind == "skill" {
				rule.Capabilities = append(rule.Capabilities, s.Tools...)
			}
		}
		out = append(out, rule)
	}
	return out
}
