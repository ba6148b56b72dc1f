package sources

import (
	"maps"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/know/catalog"
)

// Mentions returns the ids that ken.yaml names, so that the catalog can report
// those that do not exist.
func Mentions(settings config.Config) []catalog.Mention {
	var out []catalog.Mention
	add := func(key string, ids ...string) {
		if len(ids) == 0 {
			return
		}
		_, origin, _ := settings.Explain(key) // the key exists
		for _, id := range ids {
			out = append(out, catalog.Mention{ID: capability.ID(id), By: key, Origin: origin})
		}
	}
	add("capabilities.forceInclude", settings.Capabilities.ForceInclude...)
	add("capabilities.exclude", settings.Capabilities.Exclude...)
	for _, id := range slices.Sorted(maps.Keys(settings.Catalog.Pins)) {
		add("catalog.pins", string(id))
	}
	return out
}

// RuleMentions returns the capabilities that rules, tool access and skills of
// ken.yaml name. One that does not exist is likely a typing error, by which a
// rule does nothing. Tools of MCP servers come and go, and are left out. skills
// are the names of skills that are part of the program.
func RuleMentions(settings config.Config, skills []string) []catalog.Mention {
	var out []catalog.Mention
	add := func(by, origin, name string) {
		if strings.HasPrefix(name, "mcp:") || capability.IsOwnTool(name) {
			return
		}
		out = append(out, catalog.Mention{ID: capability.ID(name), By: by, Origin: origin, Pattern: true})
	}
	for _, r := range settings.Policy.Rules {
		for _, name := range r.Capabilities {
			add("the rule "+r.ID+" of policy.rules", r.Where, name)
		}
	}
	_, origin, _ := settings.Explain("policy.toolAccess") // the key exists
	for _, name := range slices.Sorted(maps.Keys(settings.Policy.Access.Tools)) {
		if settings.Policy.Access.Tools[name].Line > 0 {
			add("policy.toolAccess", origin, name)
		}
	}
	for _, name := range settings.Policy.Access.Allowed {
		add("policy.toolAccess", origin, name)
	}
	named := func(key string, names []string) {
		_, origin, _ := settings.Explain(key) // the key exists
		for _, name := range names {
			if kind, bare, ok := strings.Cut(name, ":"); !slices.Contains(skills, name) && !(ok && kind == "skill" && slices.Contains(skills, bare)) {
				add(key, origin, name)
			}
		}
	}
	named("skills.off", settings.Skills.Off)
	named("skills.always", settings.Skills.Always)
	return out
}
