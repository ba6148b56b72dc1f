package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/door"
	"ken/internal/find/card"
	"ken/internal/find/discover"
	"ken/internal/find/eval"
	"ken/internal/find/graph"
	"ken/internal/find/outcome"
	"ken/internal/find/show"
	"ken/internal/know/catalog"
	"ken/internal/know/embed"
	"ken/internal/know/index"
	"ken/internal/know/source/parsecache"
	"ken/internal/tokenizer"
)

// finding puts together what finds, shows and records.
func (a *App) finding(cfg Config, c *catalog.Catalog) (*door.Door, error) {
	count, err := tokenizer.Named(string(a.Settings.Discovery.Tokenizer))
	if err != nil {
		return nil, err
	}
	finder := discover.NewFinder(discover.Parts{Source: c, Embedder: a.embedding.messages, Key: a.fenceKey(), Count: count})
	a.recorder = a.newRecorder()
	a.recorder.Count = count
	var off door.Switches
	if a.Extensions.Required() {
		off = a.Extensions.Switches()
	}
	return door.New(door.Config{
		Switches: off,
		Starting: a.Servers.Starting, Await: a.Servers.Await, Absent: a.Servers.Absent,
		Catalog: c, Own: a.own, Finder: finder, Recorder: a.recorder, Rules: a.Rules, NoRules: a.noRules, Runner: a.invoker,
		Find: func(scope capability.Scope) door.Settings {
			s := a.findSettings(scope)
			s.Card.Custom = cfg.CardScorer
			s.Priors = a.recorder.Priors(scope)
			s.Config = cfg.Override.Apply(s.Config)
			return s
		},
	}), nil
}

// foundWith is how to find with some settings, made once for them.
type foundWith struct {
	settings *config.Config
	find     func(capability.Scope) door.Settings
}

// findSettings returns how to find for a message of a scope, with the settings in
// force.
func (a *App) findSettings(scope capability.Scope) door.Settings {
	now, with := a.effective(), a.foundWith.Load()
	if with == nil || with.settings != now {
		with = &foundWith{now, settingsFor(*now)}
		a.foundWith.Store(with)
	}
	return with.find(scope)
}

// settingsFor returns how to find for a message from somewhere: by its agent,
// and by the side of an experiment that its session is on.
func settingsFor(said config.Config) func(capability.Scope) door.Settings {
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
	return func(scope capability.Scope) door.Settings {
		s := door.Settings{}
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

func (a *App) newRecorder() *door.Recorder {
	return &door.Recorder{
		Recording: func() door.Recording {
			cards := a.effective().Capabilities
			return door.Recording{Mode: outcome.Mode(cards.Rollout), SessionTypes: cards.RolloutSessionTypes, Level: outcome.Level(cards.LogLevel)}
		},
		Now: time.Now,
		Told: func(e outcome.Event) {
			if told := a.told.Load(); told != nil {
				(*told)(e)
			}
		},
		Text: &logFile{path: filepath.Join(a.Places.Logs, "capabilities.log")},
		Open: sync.OnceValues(func() (*outcome.Log, *outcome.Switch) {
			log, err := outcome.Open(filepath.Join(a.Places.State, "outcomes"), outcome.Config{})
			if err == nil {
				a.closeLater(log.Close)
			}
			a.closeLater(a.endLearning)
			if err != nil { // the log tells it again when it is asked how it fares
				return log, nil
			}
			// The action is one of the words that ken.yaml may have.
			kill, _ := outcome.NewSwitch(log, outcome.SwitchConfig{Action: outcome.Action(a.Settings.Capabilities.KillSwitch)})
			if kill != nil {
				_, _, _ = kill.Check(time.Now()) // so that a stop outlasts a restart
			}
			return log, kill
		}),
	}
}

// learningEnds is how long the end of the program waits for what is being
// learned from the outcomes.
const learningEnds = 5 * time.Second

func (a *App) endLearning() error {
	ctx, cancel := context.WithTimeout(context.Background(), learningEnds)
	defer cancel()
	return a.recorder.Close(ctx)
}

// indexer keeps the search index of large catalogs, and makes vectors where the
// model inside the program is the one that counts.
func (a *App) indexer(cfg Config) *index.Cache {
	c := &index.Cache{Name: a.Settings.Discovery.CollectionName}
	if cfg.Embedder == nil && a.Settings.Discovery.EmbeddingModelID == "" {
		c.Model = embed.Builtin()
	}
	dir := filepath.Join(a.Places.Cache, "index")
	if (&parsecache.Cache{Dir: dir}).Check() == nil {
		c.Dir = dir // without it the index is built from scratch
	}
	return c
}

// FindFor finds what a model that works for this person would be shown for a
// text. Nothing is recorded.
func (a *App) FindFor(ctx context.Context, text string) (door.Found, error) {
	return a.Door.Find(ctx, a.View(), door.Query{Text: text})
}

// Ranker returns the finder as evaluation needs it: the whole ranking, whatever
// is shown of it.
func (a *App) Ranker() eval.Finder {
	view, floor := a.View(), a.effective().Discovery.Tier1MinRelevance
	return func(ctx context.Context, q eval.Query) (eval.Answer, error) {
		query := door.Query{Text: q.Text}
		for _, m := range q.Before {
			query.Before = append(query.Before, door.Message{Role: m.Role, Text: m.Text})
		}
		found, err := a.Door.Find(ctx, view, query)
		if err != nil {
			return eval.Answer{}, err
		}
		return eval.AnswerOf(found.Selection, floor), nil
	}
}

// A logFile takes lines for people. It opens its file for each write. A file
// that has grown too long is renamed to PATH.1 first.
type logFile struct {
	path string
	mu   sync.Mutex
}

const longestLog = 8 << 20

func (l *logFile) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return 0, err
	}
	if info, err := os.Stat(l.path); err == nil && info.Size() > longestLog {
		_ = os.Rename(l.path, l.path+".1") // a log that cannot be moved grows on
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := f.Write(p)
	return n, errors.Join(err, f.Close())
}
