// Package tune turns the settings of ken.yaml into those of a search: by agent,
// and by the side of an experiment that a session is on.
package tune

import (
	"sync/atomic"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/find/card"
	"ken/internal/find/discover"
	"ken/internal/find/graph"
	"ken/internal/find/outcome"
	"ken/internal/find/show"
)

// Settings are those of one search.
type Settings struct {
	discover.Config
	Experiment, Variant string // empty: none runs
}

// A Tuner returns settings of searches. It is safe for concurrent use.
type Tuner struct {
	Current func() *config.Config // the settings in force

	made atomic.Pointer[made] // for the settings that were in force last
}

type made struct {
	settings *config.Config
	find     func(capability.Scope) Settings
}

// For returns the settings of a search for a message of a scope.
func (t *Tuner) For(scope capability.Scope) Settings {
	now, with := t.Current(), t.made.Load()
	if with == nil || with.settings != now {
		with = &made{now, settingsFor(*now)}
		t.made.Store(with)
	}
	return with.find(scope)
}

// settingsFor returns how to find for a message from somewhere: by its agent,
// and by the side of an experiment that its session is on.
func settingsFor(said config.Config) func(capability.Scope) Settings {
	sides := map[string]config.Config{outcome.VariantA: said}
	if other, ok := said.VariantB(); ok {
		sides[outcome.VariantB] = other
	}
	name := said.Experiment.Name
	made := map[[2]string]discover.Config{}
	for side, settings := range sides {
		made[[2]string{side, ""}] = findConfig(settings)
		for agent := range settings.Discovery.Agents {
			made[[2]string{side, agent}] = findConfig(settings.ForAgent(agent))
		}
	}
	return func(scope capability.Scope) Settings {
		s := Settings{}
		side := outcome.VariantA
		if len(sides) > 1 && scope.Session != "" {
			side = outcome.Assign(scope.Session, name)
			s.Experiment, s.Variant = name, side
		}
		cfg, ok := made[[2]string{side, scope.Agent}]
		if !ok {
			cfg = made[[2]string{side, ""}]
		}
		s.Config = cfg
		return s
	}
}

// findConfig turns what ken.yaml says into what finding needs.
func findConfig(settings config.Config) discover.Config {
	d, cards := settings.Discovery, settings.Capabilities
	return discover.Config{
		TopK: d.Tier1TopK, FullK: d.Tier2TopK, StickyK: d.StickyTopK,
		MinRelevance: d.Tier1MinRelevance, LowConfidence: d.LowConfidence, TailRelevance: d.Tier1TailRelevance, FullRelevance: d.Tier2MinRelevance,
		Graph: graph.Config{Use: d.UseGraphReranking, Boost: d.GraphBoostFactor, Literal: d.GraphLiteral},
		Budget: show.Budget{
			Map: d.Tier0TokenBudget, Briefs: d.Tier1TokenBudget, Fulls: d.Tier2TokenBudget, Cards: cards.MaxTokens,
			Total: d.TotalTokenBudget, Ceiling: d.MaxTokenBudget, Stop: cards.BudgetPolicy == config.BudgetStop, Mode: showMode(d.PromptMode),
		},
		Cards: cards.Enabled, Card: card.Config{Scorer: string(cards.Scorer), Threshold: cards.ConfidenceThreshold},
		ForceInclude: ids(cards.ForceInclude), Exclude: ids(cards.Exclude), EmbedTimeout: d.EmbeddingTimeout,
	}
}

func showMode(m config.PromptMode) show.Mode {
	if m == config.PromptFull {
		return show.Full
	}
	return show.Mode(m)
}

func ids(names []string) []capability.ID {
	var out []capability.ID
	for _, name := range names {
		out = append(out, capability.ID(name))
	}
	return out
}
