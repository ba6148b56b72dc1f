package config

import "maps"

// Adopt returns the configuration with some of its keys as another has them, and
// with where that was said. What no key of ken.yaml says, the rules, the work at
// hand and the files among it, is the other's. Neither of the two is changed.
func (c Config) Adopt(from Config, which func(key string) bool) Config {
	out, origins := c, maps.Clone(c.origins)
	for _, s := range settings() {
		if !which(s.name) {
			continue
		}
		s.take(&out, &from)
		if where, said := from.origins[s.name]; said {
			origins[s.name] = where
		} else {
			delete(origins, s.name)
		}
	}
	out.Policy, out.spoken, out.Work, out.files, out.origins = from.Policy, from.spoken, from.Work, from.files, origins
	if which("experiment.config") {
		out.other = from.other
	}
	return out
}
