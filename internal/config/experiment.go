package config

import (
	"maps"
	"strings"
)

// with gives the configuration with the Capabilities and the Discovery of
// another.
func (c Config) with(b Config) Config {
	ofB := func(key string, _ saying) bool {
		return strings.HasPrefix(key, "capabilities.") || strings.HasPrefix(key, "discovery.")
	}
	origins := maps.Clone(c.origins)
	maps.DeleteFunc(origins, ofB)
	for key, where := range b.origins {
		if ofB(key, where) {
			origins[key] = where
		}
	}
	c.Capabilities, c.Discovery, c.files, c.origins = b.Capabilities, b.Discovery, b.files, origins
	return c
}

// VariantB gives the other configuration of the experiment, and false where
// there is no experiment. Only its Capabilities and Discovery are its own: one
// process has one catalog and one address. What the project's file narrows is
// narrowed in both. [Config.ForAgent] comes after it.
func (c Config) VariantB() (Config, bool) {
	if c.other == nil {
		return Config{}, false
	}
	return *c.other, true
}
