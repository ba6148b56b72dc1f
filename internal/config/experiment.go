package config

import (
	"maps"
	"strings"
)

// Experiment divides sessions between this configuration, A, and another, B.
// There is one while both fields are set; see [Config.VariantB].
type Experiment struct {
	// Name tells experiments apart. Default empty.
	Name string

	// Config is the absolute path of B's ken.yaml. Default empty.
	Config string
}

func experimentSettings() []setting[Config] {
	return []setting[Config]{
		entry("experiment.name", "A name for the experiment. Half of the sessions use this configuration, the other half experiment.config.",
			func(c *Config) *string { return &c.Experiment.Name }, text(nil)),
		entry("experiment.config", "The ken.yaml for the other half of the sessions. The experiment runs only if both keys are set.",
			func(c *Config) *string { return &c.Experiment.Config }, path()),
	}
}

// with returns the configuration with the Capabilities and the Discovery of
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

// VariantB returns the other configuration of the experiment, and false where
// there is no experiment. Only its Capabilities and Discovery are its own: one
// process has one catalog and one address. What the project's file narrows is
// narrowed in both. [Config.ForAgent] comes after it.
func (c Config) VariantB() (Config, bool) {
	if c.other == nil {
		return Config{}, false
	}
	return *c.other, true
}
