package config

import (
	"time"

	"ken/capability"
)

// Catalog says where capabilities come from.
type Catalog struct {
	// Starter says whether the built-in starter catalog is used. Default on;
	// the zero value means the same.
	Starter Starter

	// Sources are read besides the directories of [dirs.Places.Catalog]. Names are
	// distinct, paths absolute. Default none.
	Sources []Source

	// Watch reads changed files again without a restart, once they have been
	// quiet for Debounce; where the system cannot tell of changes, files are
	// looked at every Poll. Defaults true, 500ms, 2s.
	Watch    bool
	Debounce time.Duration
	Poll     time.Duration

	// CompatibilityPaths reads the directories of other programs too. Default
	// true.
	CompatibilityPaths bool

	// Pins release quarantined capabilities: the one of that id counts as
	// looked at while its content hash is exactly this. Default none.
	Pins map[capability.ID]string

	// Overrides lists, by id, the content hash with which a project's
	// capability may replace another of the same id. Default none.
	Overrides map[capability.ID]string

	// Sanitizer says what happens to suspicious text. Default reveal; the
	// zero value means the same.
	Sanitizer Sanitizer
}

// Starter decides about the catalog inside the program.
type Starter string

const (
	StarterAuto Starter = "auto" // only while the user has no tools of their own
	StarterOn   Starter = "on"
	StarterOff  Starter = "off"
)

// Sanitizer says what happens to suspicious text.
type Sanitizer string

const (
	SanitizeReveal Sanitizer = "reveal" // shown for what it is, fenced, never rewritten silently
	SanitizeSeed   Sanitizer = "seed"   // the literal rules of the first seed document
)

func catalogSettings() []setting[Config] {
	return []setting[Config]{
		entry("catalog.starter", "The built-in catalog: on, off, or auto (only while you have no tools of your own).",
			func(c *Config) *Starter { return &c.Catalog.Starter }, word(StarterOff, StarterAuto, StarterOn)),
		entry("catalog.sources", "More sources, each with one of path, url and database, as in [{name: team, path: ~/team}].",
			func(c *Config) *[]Source { return &c.Catalog.Sources }, sources()),
		entry("catalog.watch", "Read files again when they change, without a restart.",
			func(c *Config) *bool { return &c.Catalog.Watch }, boolean()),
		entry("catalog.debounce", "How long a changed file must stay unchanged before it is read.",
			func(c *Config) *time.Duration { return &c.Catalog.Debounce }, duration(time.Millisecond, time.Minute, noLess)),
		entry("catalog.poll", "Polling interval if the system reports no file changes.",
			func(c *Config) *time.Duration { return &c.Catalog.Poll }, duration(100*time.Millisecond, time.Hour, noLess)),
		entry("catalog.compatibilityPaths", "Read the directories of other programs too, such as .claude/skills.",
			func(c *Config) *bool { return &c.Catalog.CompatibilityPaths }, boolean()),
		entry("catalog.pins", `Texts of capabilities that you have reviewed, by id and hash, as in {"tool:x": "sha256:…"}. Ken shows such a text although it was quarantined, and quarantines it if it changes.`,
			func(c *Config) *map[capability.ID]string { return &c.Catalog.Pins }, pins()),
		entry("catalog.overrides", `Capabilities of a project that may replace another with the same id, by id, with their hash, as in {"tool:x": "sha256:…"}.`,
			func(c *Config) *map[capability.ID]string { return &c.Catalog.Overrides }, pins()),
		entry("catalog.sanitizer", "What happens to suspicious text: reveal (show it as it is, made safe) or seed (the literal sanitizer of the first seed design).",
			func(c *Config) *Sanitizer { return &c.Catalog.Sanitizer }, word(SanitizeReveal, SanitizeSeed).fixed()),
	}
}
