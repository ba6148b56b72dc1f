package config

import (
	"maps"
	"slices"
	"strings"

	"ken/internal/yamldoc"
)

// An Agent is what discovery.agents says about one agent; see
// [Config.ForAgent]. The zero Agent changes nothing.
type Agent struct {
	// Profile replaces discovery.profile. Empty, the default, leaves it.
	Profile Profile

	// ForceInclude and Exclude are added to the lists of Capabilities. Default
	// none.
	ForceInclude []string
	Exclude      []string
}

const agentsKey = "discovery.agents"

func agentSettings() []setting[Agent] {
	return []setting[Agent]{
		entry("profile", "", func(a *Agent) *Profile { return &a.Profile }, profileKind()),
		entry("forceInclude", "", func(a *Agent) *[]string { return &a.ForceInclude }, ids("ids", nil, nil)),
		entry("exclude", "", func(a *Agent) *[]string { return &a.Exclude }, ids("ids", nil, nil)),
	}
}

// agents maps names to what holds for them; see agentsOfProject for the rest.
func agents() kind[map[string]Agent] {
	return kind[map[string]Agent]{
		empty: true,
		form:  mapForm(tableForm(agentSettings())),
		parse: parseAgents,
		show: func(m map[string]Agent) any {
			out := &yamldoc.Map{}
			for _, name := range slices.Sorted(maps.Keys(m)) {
				out.Fields = append(out.Fields, yamldoc.Field{Key: name, Value: yamldoc.Value{Any: m[name].show()}})
			}
			return out
		},
	}
}

func (a Agent) show() *yamldoc.Map {
	m := &yamldoc.Map{}
	for _, s := range agentSettings() {
		v := s.show(&a)
		if list, isList := v.([]yamldoc.Value); v == "" || isList && len(list) == 0 {
			continue
		}
		m.Fields = append(m.Fields, yamldoc.Field{Key: s.name, Value: yamldoc.Value{Any: v}})
	}
	return m
}

func parseAgents(r *reading, at spot, v yamldoc.Value) (map[string]Agent, bool) {
	if v.Any == nil {
		return nil, true
	}
	m, ok := v.Any.(*yamldoc.Map)
	if !ok {
		r.mistyped(at, v, "a map of agents, as in {helper: {profile: lean}}")
		return nil, false
	}
	before := len(r.problems)
	var out map[string]Agent
	for _, f := range m.Fields {
		where := spot{at.key + "." + plain(f.Key), f.Line}
		about, isMap := f.Value.Any.(*yamldoc.Map)
		var a Agent
		switch {
		case f.Key == "" || len(f.Key) > longestText || strings.ContainsFunc(f.Key, unseen):
			r.fault(where, "bad-value", "write a name of printable characters", "%s is not the name of an agent", where.key)
			continue
		case isMap:
			decode(r, where.key+".", about, agentSettings(), &a)
		case f.Value.Any != nil: // nil: its keys are all commented out
			r.mistyped(where, f.Value, "a map, as in {profile: lean}")
		}
		if out == nil {
			out = make(map[string]Agent, len(m.Fields))
		}
		out[f.Key] = a
	}
	return out, len(r.problems) == before
}

// agentsOfProject sets the rules of a key for a project's file: what that
// excludes is added, and a narrower profile or list of forceInclude replaces
// the user's. A profile that is wider than the user's, but not than the
// standard, is passed over.
func agentsOfProject(s setting[Config]) setting[Config] {
	s.noWider = func(a, b *Config) bool {
		for name, now := range a.Discovery.Agents {
			if now.Profile != "" && !now.Profile.noWider(b.profileOf(name)) && !now.Profile.noWider(ProfileStandard) ||
				!subset(now.ForceInclude, union(b.Capabilities.ForceInclude, b.Discovery.Agents[name].ForceInclude)) {
				return false
			}
		}
		return true
	}
	s.joins = true
	s.join = func(into, from *Config) {
		joined := make(map[string]Agent, len(into.Discovery.Agents)+len(from.Discovery.Agents))
		maps.Copy(joined, into.Discovery.Agents)
		for name, now := range from.Discovery.Agents {
			a := joined[name]
			if now.Profile != "" && now.Profile.noWider(into.profileOf(name)) {
				a.Profile = now.Profile
			}
			if len(now.ForceInclude) > 0 {
				a.ForceInclude = now.ForceInclude
			}
			a.Exclude = union(a.Exclude, now.Exclude)
			joined[name] = a
		}
		if len(joined) > 0 {
			into.Discovery.Agents = joined
		}
	}
	return s
}

// profileOf returns the profile that holds for an agent.
func (c *Config) profileOf(name string) Profile {
	if p := c.Discovery.Agents[name].Profile; p != "" {
		return p
	}
	return c.Discovery.Profile
}
