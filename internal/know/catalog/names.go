package catalog

import (
	"fmt"

	"ken/capability"
	"ken/internal/untrusted"
)

// formatMCP is the format of what a connected server brought.
const formatMCP = "mcp"

// fromServer reports whether a capability is what an MCP server offers.
func fromServer(e *Entry) bool { return e.Origin.Format == formatMCP }

// nameProblems reports names that several capabilities share, and names that
// look alike without being the same, which is how one tool passes for another.
func nameProblems(entries []*Entry) []capability.Problem {
	var problems []capability.Problem
	best := make(map[string]*Entry, len(entries)) // the most trusted of each name
	shared := map[string]int{}                    // how many more have the name; not by tools of other MCP servers
	var names []string
	for _, e := range entries {
		first, twice := best[e.Name]
		if !twice {
			names = append(names, e.Name)
			best[e.Name] = e
			continue
		}
		// Two servers of one kind offer the same tools. Both are told apart by
		// their servers wherever they are shown.
		if !fromServer(e) || !fromServer(first) || e.Category == first.Category {
			shared[e.Name]++
		}
		if e.Trust > first.Trust {
			best[e.Name] = e
		}
	}
	known := untrusted.NewNames(names)
	for _, name := range names {
		e := best[name]
		if n := shared[name]; n > 0 {
			problems = append(problems, capability.Problem{
				Severity: capability.Warning, Code: "same-name", Subject: e.ID, Origin: e.Origin,
				Message: fmt.Sprintf("the name %q of %s is shared by %d more", name, e.ID, n),
				Fix:     "call them by their ids",
			})
		}
		for _, im := range known.Imitations(name) {
			model := best[im.Known]
			if e.Trust == capability.TrustBuiltin && model.Trust == capability.TrustBuiltin {
				continue // both are part of this program
			}
			if imitates(e, model, im.Why) {
				problems = append(problems, capability.Problem{
					Severity: capability.Warning, Code: "looks-alike", Subject: e.ID, Origin: e.Origin,
					Message: fmt.Sprintf("the name %q of %s looks like %q of %s (%s)", name, e.ID, model.Name, model.ID, im.Why),
					Fix:     "rename it if both are yours; remove it if it is not what it seems",
				})
			}
		}
	}
	return problems
}

// imitates decides which of two names that look alike is the imitation, so that
// a pair is reported once: the one with the prefix, the less trusted, the later.
func imitates(e, model *Entry, why untrusted.Why) bool {
	switch {
	case why == untrusted.WhyNamespace:
		return true
	case e.Trust != model.Trust:
		return e.Trust < model.Trust
	}
	return e.Name > model.Name
}

// unknownNames reports ids that presets and settings name and that are nowhere.
func (s *Snapshot) unknownNames() []capability.Problem {
	var problems []capability.Problem
	report := func(name string, origin capability.Origin, by string) {
		fix := "remove it, or correct it"
		if near := s.near(name, nil, nil); len(near) > 0 {
			fix = "did you mean " + near[0] + "?"
		}
		problems = append(problems, capability.Problem{
			Severity: capability.Warning, Code: "unknown-name", Origin: origin,
			Message: fmt.Sprintf("%s names %s, which is not in the catalog", by, name), Fix: fix,
		})
	}
	for _, m := range s.mentions {
		if _, err := s.Lookup(string(m.ID)); err != nil {
			report(string(m.ID), capability.Origin{Path: m.Origin}, m.By)
		}
	}
	for _, p := range s.presets {
		for _, member := range p.Members {
			if _, err := s.Lookup(member); capability.KindOf(err) == capability.NotFound && err != nil {
				report(member, p.Origin, "the preset "+p.Name)
			}
		}
	}
	return problems
}
