package config

import (
	"maps"
	"slices"
)

// A Profile is a name for the values of several keys. They hold where no file
// says the key itself.
type Profile string

const (
	ProfileStandard Profile = "standard" // the defaults
	ProfileLean     Profile = "lean"     // the total that the seed documents promise
	ProfileMinimal  Profile = "minimal"
	ProfileFull     Profile = "full"
	ProfileSeed     Profile = "seed" // every literal rule of the seed documents
)

// base returns the defaults as the profile has them. Every key that differs from
// [Default] is marked byProfile.
func (p Profile) base() Config {
	c := Default()
	switch p {
	case ProfileLean:
		c.Discovery.TotalTokenBudget = 1850
	case ProfileMinimal:
		c.Capabilities.MaxTokens = 500
		c.Discovery.TotalTokenBudget = 700
		c.Discovery.Tier1TopK = 3
		c.Discovery.Tier2TopK = 0
	case ProfileFull:
		c.Discovery.Tier2TokenBudget = 4000
		c.Discovery.TotalTokenBudget = 6000
		c.Discovery.Tier1TopK = 8
		c.Discovery.Tier2TopK = 4
	case ProfileSeed:
		c.Capabilities.Scorer = ScorerSeed
		c.Capabilities.BudgetPolicy = BudgetStop
		c.Discovery.LowConfidence = 0
		c.Discovery.Tier1TailRelevance = 0.3
		c.Discovery.Tier2MinRelevance = 0
		c.Discovery.GraphLiteral = true
	}
	return c
}

// profiledSettings lists the keys that a profile may give.
func profiledSettings() []setting[Config] {
	all := slices.Concat(capabilitiesSettings(), discoverySettings())
	return slices.DeleteFunc(all, func(s setting[Config]) bool { return !s.profiled })
}

// noWider reports whether none of the values of p is wider than that of q.
func (p Profile) noWider(q Profile) bool {
	a, b := p.base(), q.base()
	for _, s := range profiledSettings() {
		if !s.noWider(&a, &b) {
			return false
		}
	}
	return true
}

func profileKind() kind[Profile] {
	k := word(ProfileStandard, ProfileLean, ProfileMinimal, ProfileFull, ProfileSeed)
	k.noWider = Profile.noWider
	return k
}

// fill sets the keys that no file sets to the values of the profile.
func (c *Config) fill() {
	base := c.Discovery.Profile.base()
	for _, s := range profiledSettings() {
		if _, said := c.origins[s.name]; !said {
			s.take(c, &base)
		}
	}
	c.fillPolicy()
}

// ForAgent returns the configuration for the messages of an agent: with the
// agent's profile in place of discovery.profile, and with its forceInclude and
// exclude added to those of all. An agent that the configuration does not name
// has the configuration as it is.
//
// What the user's file says wins over the agent's profile too. What only a
// project's file says does where it is no wider, so that a project never gives
// an agent more than the user does.
//
// It goes by the files: a field that was changed since [Load] and that a
// profile may give is as if it was not. It costs tens of microseconds; its
// result may be kept.
func (c Config) ForAgent(name string) Config {
	a, ok := c.Discovery.Agents[name]
	if !ok {
		return c
	}
	origins := make(map[string]saying, len(c.origins)+1)
	maps.Copy(origins, c.origins)
	c.origins = origins
	here := saying{c.said(agentsKey), c.origins[agentsKey].own}
	if a.Profile != "" {
		base := a.Profile.base()
		for _, s := range profiledSettings() {
			if said, ok := c.origins[s.name]; ok && !said.own && !s.noWider(&c, &base) {
				delete(c.origins, s.name)
			}
		}
		c.Discovery.Profile = a.Profile
		c.origins["discovery.profile"] = here
		c.fill()
	}
	c.add("capabilities.forceInclude", &c.Capabilities.ForceInclude, a.ForceInclude, here)
	c.add("capabilities.exclude", &c.Capabilities.Exclude, a.Exclude, here)
	return c
}

// add puts more ids to those of a key.
func (c *Config) add(key string, list *[]string, more []string, here saying) {
	if subset(more, *list) {
		return
	}
	*list = union(*list, more)
	if was, said := c.origins[key]; said && was.where != here.where {
		here = saying{was.where + ", " + here.where, was.own || here.own}
	}
	c.origins[key] = here
}
