package sources

import (
	"maps"
	"slices"

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
