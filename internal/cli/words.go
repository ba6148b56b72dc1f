package cli

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/cli/output"
	"ken/internal/door"
	"ken/internal/spelling"
)

// catalogWords are the words by which capabilities can be chosen.
type catalogWords struct{ kinds, categories, sources map[string]bool }

// wordsOf returns the kinds that Ken knows, and what the capabilities have.
func wordsOf(list iter.Seq[*door.Entry]) catalogWords {
	w := catalogWords{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, k := range capability.Kinds() {
		w.kinds[string(k)] = true
	}
	for e := range list {
		w.kinds[string(e.Kind)], w.categories[strings.ToLower(e.Category)], w.sources[e.Origin.Source] = true, true, true
	}
	return w
}

// checkFilter refuses unknown kinds and categories. It goes through the catalog only
// where one was given.
func checkFilter(view door.View, kinds []string, category string) error {
	if len(kinds) == 0 && category == "" {
		return nil
	}
	words := wordsOf(view.All())
	for _, k := range kinds {
		if err := checkWord("kind", k, words.kinds); err != nil {
			return err
		}
	}
	return checkWord("category", strings.ToLower(category), words.categories)
}

// mostWords is how many values of a flag an error lists.
const mostWords = 30

// checkWord returns an error that names the known values if value is not one of
// them. Empty values are not checked, and nothing is if there are no known values.
func checkWord(flag, value string, known map[string]bool) error {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(known)), func(s string) bool { return s == "" })
	if value == "" || len(names) == 0 || known[value] {
		return nil
	}
	if near := spelling.Nearest(value, names); near != "" {
		return usageError{fmt.Errorf("--%s %s: unknown %s; did you mean %s?", flag, output.Line(value), flag, output.Line(near))}
	}
	more := ""
	if extra := len(names) - mostWords; extra > 0 {
		names, more = names[:mostWords], fmt.Sprintf(" and %d more", extra)
	}
	return usageError{fmt.Errorf("--%s %s: unknown %s; want one of %s%s", flag, output.Line(value), flag, output.Line(strings.Join(names, ", ")), more)}
}

// kindNames returns the kinds that Ken knows, as help shows them.
func kindNames() string {
	var names []string
	for _, k := range capability.Kinds() {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}
