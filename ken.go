// Package ken is the capability layer for AI agents, as a library. It loads
// capabilities (tools, skills, APIs, Go functions) into one live catalog, finds
// the few that fit a message, and carries out calls under rules, within limits,
// and with an audit log.
//
//	k, err := ken.Open(ctx, ken.Config{Home: "/var/lib/bot", Catalogs: []string{"./skills"}})
//	if err != nil {
//		return err
//	}
//	defer k.Close()
//	found, err := k.Find(ctx, "open an issue about the login page")
//
// Capabilities, calls and results are types of package capability; models and
// embedders are those of package llm; package plugin extends what Ken knows,
// runs and says.
//
// Errors that a program can act on are [*capability.Error]. Its Kind is the
// class of failure, its Fix says what to change.
package ken

import (
	"context"
	"fmt"
	"os"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/door"
	"ken/llm"
	"ken/plugin"
)

// Config says what to open. One of Home and UserHome is required, unless the
// environment variable KEN_HOME is set. All else is optional: without Catalogs
// the capabilities are those of the home folder, those of the working
// directory, and the starter catalog (catalog.starter in ken.yaml).
type Config struct {
	// Home is the folder of the program: its ken.yaml, capabilities, state,
	// audit log and secrets. It is made when something is first written to it.
	// A relative name is relative to the working directory. Home counts before
	// KEN_HOME.
	Home string

	// UserHome uses the folders of the command ken instead of Home: KEN_HOME,
	// the XDG folders, or ~/.ken. The program then shares configuration,
	// approvals, secrets and audit log with the user's own agent.
	UserHome bool

	// ConfigFile is read instead of the ken.yaml of the home folder and of the
	// working directory.
	ConfigFile string

	// Catalogs are directories or files of capabilities that replace every
	// other source.
	Catalogs []string

	// Sources are read in addition to all others and take precedence over them.
	Sources []capability.Source

	// Overrides change how capabilities are found, over what the configuration
	// says. Those of a query count before these.
	Overrides Overrides

	// CardScorer, if not nil, returns how relevant a card is, 0–1, instead of
	// the scorer that the configuration names. Messages are oldest first, the
	// current one last. It is called by several goroutines at once.
	CardScorer func(c *capability.Capability, messages []Message, scope capability.Scope) float64

	// Embedder, if not nil, makes vectors of capabilities and messages, so that
	// meaning counts in addition to words. If it fails or is slow, only words
	// count.
	Embedder llm.Embedder

	// Functions are Go functions that can be found and called like tools.
	Functions []*Function

	// Model, if not nil, answers in [Ken.Turn] instead of the one that the
	// configuration names.
	Model llm.Model

	// Plugins add to what Ken knows, runs and says, in this order.
	Plugins []plugin.Plugin
}

// A Ken is an open catalog and what runs its capabilities. Its methods may be
// called by any number of goroutines.
type Ken struct{ app *app.App }

// Open reads the configuration and loads the catalog. An invalid configuration
// is an error. A broken capability is not; see [Ken.Problems]. The caller must
// call [Ken.Close].
func Open(ctx context.Context, cfg Config) (*Ken, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	made, err := functions(cfg.Functions)
	if err != nil {
		return nil, err
	}
	open := app.Config{
		Home: cfg.Home, ConfigFile: cfg.ConfigFile, Catalogs: cfg.Catalogs, Sources: cfg.Sources, Override: door.Override(cfg.Overrides),
		Embedder: cfg.Embedder, Functions: made, Model: cfg.Model, Plugins: cfg.Plugins,
	}
	if score := cfg.CardScorer; score != nil {
		open.CardScorer = func(c *capability.Capability, x door.CardContext) float64 {
			messages := make([]Message, len(x.Messages))
			for i, m := range x.Messages {
				messages[i] = Message(m)
			}
			return score(c, messages, x.Scope)
		}
	}
	a, err := app.Open(ctx, open)
	if err != nil {
		return nil, openError(err)
	}
	a.Vectors.StartKnown(ctx)
	return &Ken{a}, nil
}

// check returns an error for what would fail later, or silently do something
// else than the program meant.
func (cfg *Config) check() error {
	switch {
	case cfg.Home != "" && cfg.UserHome:
		return invalid("open", "Config has both Home and UserHome", "set one of them")
	case cfg.Home == "" && !cfg.UserHome && os.Getenv("KEN_HOME") == "":
		return invalid("open", "Config has no Home", "set Home to a folder of the program, or UserHome to share the folder of the command ken")
	}
	if err := door.Override(cfg.Overrides).Check(); err != nil {
		return invalid("open", "Config.Overrides: "+err.Error(), "")
	}
	for i, s := range cfg.Sources {
		if s == nil {
			return invalid("open", fmt.Sprintf("Config.Sources[%d] is nil", i), "leave it out")
		}
	}
	for i, p := range cfg.Plugins {
		if p == nil {
			return invalid("open", fmt.Sprintf("Config.Plugins[%d] is nil", i), "leave it out")
		}
	}
	return nil
}

// Home returns the folder that k reads its ken.yaml and capabilities from.
func (k *Ken) Home() string { return k.app.Places.Home }

// Put adds a capability that the program made while it runs, or replaces the
// one with the same id. It is checked like every other; see [Ken.Problems]. Put
// reports whether it was added: one whose Meta has "tier": "session" is not.
func (k *Ken) Put(c capability.Capability, d capability.Detail) bool { return k.app.Live.Put(c, d) }

// Remove removes what Put added and reports whether it was there.
func (k *Ken) Remove(id capability.ID) bool { return k.app.Live.Remove(id) }

// Watch keeps the catalog up to date with its sources until ctx ends.
func (k *Ken) Watch(ctx context.Context) error { return k.app.Watch(ctx) }

// Close ends running calls and releases what Open took. It may be called more
// than once.
func (k *Ken) Close() error { return k.app.Close() }
