package catalog

import (
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/glob"
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
	shared := map[string][]*Entry{}               // those that have a name; not tools of other MCP servers
	var names []string
	for _, e := range entries {
		first, twice := best[e.Name]
		if !twice {
			names = append(names, e.Name)
			best[e.Name] = e
			shared[e.Name] = append(shared[e.Name], e)
			continue
		}
		// Two servers of one kind offer the same tools. Both are told apart by
		// their servers wherever they are shown.
		if !fromServer(e) || !fromServer(first) || e.Category == first.Category {
			shared[e.Name] = append(shared[e.Name], e)
		}
		if e.Trust > first.Trust {
			best[e.Name] = e
		}
	}
	known := untrusted.NewNames(names)
	for _, name := range names {
		e := best[name]
		if len(shared[name]) > 1 {
			problems = append(problems, capability.Problem{
				Severity: capability.Warning, Code: "same-name", Subject: e.ID, Origin: e.Origin,
				Message: fmt.Sprintf("the name %q of %s is also that of %s", name, e.ID, others(shared[name], e)),
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

// others lists the ids of up to three entries without one of them, and counts
// the rest.
func others(entries []*Entry, without *Entry) string {
	const most = 3
	var ids []string
	for _, e := range entries {
		if e != without {
			ids = append(ids, string(e.ID))
		}
	}
	if more := len(ids) - most; more > 0 {
		return strings.Join(ids[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(ids, " and ")
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
		if m.Pattern && s.matches(string(m.ID)) {
			continue
		}
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

// matches reports whether a pattern matches the id or the name of an entry.
func (s *Snapshot) matches(pattern string) bool {
	return slices.ContainsFunc(s.entries, func(e *Entry) bool {
		return glob.Name(pattern, string(e.ID), false) || glob.Name(pattern, e.Name, false)
	})
}
