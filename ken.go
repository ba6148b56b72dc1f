// Package ken is the capability layer for AI agents, as a library: it knows
// every capability in one live catalog and finds the few that matter for a
// message.
//
//	k, err := ken.Open(ctx, ken.Config{Catalogs: []string{"./skills"}})
//	if err != nil {
//		return err
//	}
//	defer k.Close()
//	found, err := k.Find(ctx, "open an issue about the login page")
//
// The words it speaks in are those of package capability.
package ken

import (
	"context"
	"iter"

	"ken/capability"
	"ken/internal/app"
)

// Config says what to open. The zero value is what the program ken would use
// here: this user's configuration and capabilities, this directory's, and the
// starter catalog while there are none.
type Config struct {
	// ConfigFile is read instead of the usual ken.yaml files.
	ConfigFile string

	// Catalogs are directories or files of capabilities that replace every
	// other source.
	Catalogs []string

	// Sources are read besides all others and stand before them.
	Sources []capability.Source
}

// A Ken is an open catalog. It is safe for any number of goroutines.
type Ken struct{ app *app.App }

// Open reads the configuration and loads the catalog. A mistake in the
// configuration is an error; a broken capability is not, see [Ken.Problems].
func Open(ctx context.Context, cfg Config) (*Ken, error) {
	a, err := app.Open(ctx, app.Config{ConfigFile: cfg.ConfigFile, Catalogs: cfg.Catalogs, Sources: cfg.Sources})
	if err != nil {
		return nil, err
	}
	return &Ken{a}, nil
}

// Found is a capability that fits a message.
type Found struct {
	Capability *capability.Capability // shared; not to be changed
	Relevance  float64                // 0–1
	Brief      string                 // one line about it, fit for a prompt
	Why        []string               // what made it fit
	Available  bool                   // whether it can be used here
	Missing    []string               // what it lacks where not
}

// Find gives the capabilities that fit a message, best first. Nothing fitting
// is an empty answer, not an error.
func (k *Ken) Find(ctx context.Context, message string) ([]Found, error) {
	view := k.app.View()
	sel, err := k.app.Door.Find(ctx, view, message)
	if err != nil {
		return nil, err
	}
	found := make([]Found, 0, len(sel.Briefs))
	for _, b := range sel.Briefs {
		e, err := view.Lookup(string(b.ID))
		if err != nil {
			return nil, err
		}
		found = append(found, Found{
			Capability: e.Capability, Relevance: b.Score, Brief: b.Text, Why: b.Why,
			Available: e.Available, Missing: e.Missing,
		})
	}
	return found, nil
}

// Describe reads the schema and the text of a capability, by its id or name,
// as far as they may be shown to a model.
func (k *Ken) Describe(ctx context.Context, name string) (capability.Detail, error) {
	d, err := k.app.Door.Describe(ctx, k.app.View(), name)
	return d.Detail, err
}

// All gives every capability that may be shown, in the order of their ids.
func (k *Ken) All() iter.Seq[*capability.Capability] {
	return func(yield func(*capability.Capability) bool) {
		for _, e := range k.app.View().List().Capabilities {
			if e.State == "active" && !yield(e.Capability) {
				return
			}
		}
	}
}

// Problems gives what is wrong with the catalog, gravest first.
func (k *Ken) Problems() []capability.Problem { return k.app.View().List().Problems }

// Reference reads the deep reference of the instance (SYSTEM_ARCHITECTURE.md),
// which is never shown by itself.
func (k *Ken) Reference() (string, error) { return k.app.Door.Reference(k.app.View()) }

// Put adds a capability that the program made while it runs, or replaces the
// one of its id; it is scanned like every other. It reports whether it was
// taken: one whose Meta says that its "tier" is "session" is not.
func (k *Ken) Put(c capability.Capability, d capability.Detail) bool { return k.app.Put(c, d) }

// Remove takes out what Put added and reports whether it was there.
func (k *Ken) Remove(id capability.ID) bool { return k.app.Remove(id) }

// Watch keeps the catalog up to date until ctx ends.
func (k *Ken) Watch(ctx context.Context) error { return k.app.Watch(ctx) }

// Close releases what Open took.
func (k *Ken) Close() error { return k.app.Close() }
