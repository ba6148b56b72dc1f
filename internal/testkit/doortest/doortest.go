// Package doortest opens doors over catalogs and rules that a test makes.
package doortest

import (
	"context"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/discover"
	"ken/internal/govern/policy"
	"ken/internal/know/catalog"
)

// Config says what is behind a door.
type Config struct {
	Source capability.Source
	Own    capability.Source      // the program's own tools; may be nil
	Rules  func(*policy.Settings) // changes the rules of a person; may be nil
	Find   func()                 // is called before anything is found; may be nil
	Runner func(context.Context) (capability.Invoker, error)
}

// A World is a door with what is behind it.
type World struct {
	*door.Door
	Catalog, Tools *catalog.Catalog // Tools are the program's own
	Rules          *policy.Rules    // in force; a test may set others, or nil
}

// Open opens a door.
func Open(t testing.TB, cfg Config) *World {
	t.Helper()
	rules := policy.Defaults(policy.Personal)
	if cfg.Rules != nil {
		cfg.Rules(&rules)
	}
	compiled, err := policy.Compile(rules)
	if err != nil {
		t.Fatal(err)
	}
	w := &World{Catalog: Load(t, cfg.Source), Rules: compiled}
	if cfg.Own != nil {
		w.Tools = Load(t, cfg.Own)
	}
	w.Door = door.New(door.Config{
		Catalog: w.Catalog, Own: w.Tools, Rules: func() *policy.Rules { return w.Rules },
		Finder: discover.NewFinder(discover.Parts{Source: w.Catalog}), Runner: cfg.Runner,
		Find: func(capability.Scope) door.Settings {
			if cfg.Find != nil {
				cfg.Find()
			}
			return door.Settings{Config: discover.Defaults()}
		},
	})
	return w
}

// Load reads a source into a catalog.
func Load(t testing.TB, s capability.Source) *catalog.Catalog {
	t.Helper()
	c, err := catalog.New(catalog.Config{Sources: []capability.Source{s}, Machine: catalog.ThisMachine()})
	if err == nil {
		err = c.Load(context.Background())
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}
