package catalog

import (
	"fmt"

	"ken/capability"
)

// nameProblems reports names that several capabilities share, and names that look
// alike without being the same, which is how one tool passes for another.
func nameProblems(entries []*Entry) []capability.Problem {
	var problems []capability.Problem
	first := make(map[string]*Entry, len(entries))
	same := map[*Entry]int{}
	for _, e := range entries {
		key := e.skeleton
		other, seen := first[key]
		if !seen {
			first[key] = e
			continue
		}
		if other.Name == e.Name {
			same[other]++
			continue
		}
		suspect, model := e, other
		if other.Trust < e.Trust {
			suspect, model = other, e
		}
		problems = append(problems, capability.Problem{
			Severity: capability.Warning, Code: "looks-alike", Subject: suspect.ID, Origin: suspect.Origin,
			Message: fmt.Sprintf("the name %q of %s looks like %q of %s", suspect.Name, suspect.ID, model.Name, model.ID),
			Fix:     "rename it if both are yours; remove it if it is not what it seems",
		})
	}
	for e, others := range same {
		problems = append(problems, capability.Problem{
			Severity: capability.Warning, Code: "same-name", Subject: e.ID, Origin: e.Origin,
			Message: fmt.Sprintf("the name %q of %s is shared by %d more", e.Name, e.ID, others),
			Fix:     "call them by their ids",
		})
	}
	return problems
}
