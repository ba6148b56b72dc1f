package discover

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/untrusted"
)

const (
	mapNames      = 4  // names shown of each category
	mapCategories = 12 // categories shown before the rest is counted
)

// mapText is what is always shown: the map that somebody wrote, where its place
// is trusted that far, and a summary by category.
func mapText(s *catalog.Snapshot) string {
	summary := mapOf(s)
	d, ok := s.Document(capability.Map)
	if !ok || d.Trust < capability.TrustUser {
		return summary
	}
	return strings.TrimSpace(untrusted.Terminal(d.Text)) + "\n\n" + summary
}

// mapOf summarises the catalog by category, largest first.
func mapOf(s *catalog.Snapshot) string {
	names := map[string][]string{}
	for e := range s.All() {
		if e.State != catalog.Quarantined {
			names[e.Category] = append(names[e.Category], e.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	categories := make([]string, 0, len(names))
	for c := range names {
		categories = append(categories, c)
	}
	slices.SortFunc(categories, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(names[b]), len(names[a])), cmp.Compare(a, b))
	})
	var b strings.Builder
	b.WriteString("Available capability categories:\n")
	for _, c := range categories[:min(len(categories), mapCategories)] {
		list := names[c]
		fmt.Fprintf(&b, "- %s: ", capitalised(untrusted.Line(c, 40)))
		for i, name := range list[:min(len(list), mapNames)] {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(untrusted.Line(name, 40))
		}
		if more := len(list) - mapNames; more > 0 {
			fmt.Fprintf(&b, " (+%d more)", more)
		}
		fmt.Fprintf(&b, " (%d)\n", len(list))
	}
	if more := len(categories) - mapCategories; more > 0 {
		fmt.Fprintf(&b, "(+%d categories)\n", more)
	}
	b.WriteString("Use discover_capabilities tool to get details on any capability.")
	return b.String()
}

func capitalised(s string) string {
	r := []rune(s)
	if len(r) == 0 {
		return s
	}
	return strings.ToUpper(string(r[:1])) + string(r[1:])
}
