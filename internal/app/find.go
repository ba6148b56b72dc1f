package app

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/dirs"
	"ken/internal/door"
	"ken/internal/find/discover"
	"ken/internal/find/eval"
	"ken/internal/find/outcome"
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
	finder := discover.NewFinder(discover.Parts{Source: c, Embedder: a.Vectors.Embedder(), Local: a.Vectors.Local(), Begins: a.Vectors.Searching, Key: fenceKey(a.Places), Count: count})
	a.recorder = a.newRecorder()
	a.recorder.Count = count
	var off door.Switches
	if a.Extensions.Required() {
		off = a.Extensions.Switches()
	}
	return door.New(door.Config{
		Switches: off,
		Starting: a.Servers.Starting, Await: a.Servers.Await, Absent: a.Servers.Absent,
		Catalog: c, Own: a.own, Finder: finder, Recorder: a.recorder, Rules: a.Rules, RulesFor: a.loader.RulesFor, NoRules: a.noRules, Runner: a.invoker,
		Find: func(scope capability.Scope) door.Settings {
			s := door.Settings(a.tuner.For(scope))
			s.Card.Custom = cfg.CardScorer
			s.Priors = a.recorder.Priors(scope)
			s.Config = cfg.Override.Apply(s.Config)
			return s
		},
	}), nil
}

func (a *App) newRecorder() *door.Recorder {
	return &door.Recorder{
		Recording: func() door.Recording {
			cards := a.effective().Capabilities
			return door.Recording{Mode: outcome.Mode(cards.Rollout), SessionTypes: cards.RolloutSessionTypes, Level: outcome.Level(cards.LogLevel)}
		},
		Now: time.Now,
		OnEvent: func(e outcome.Event) {
			if count := a.counter.Load(); count != nil {
				(*count)(e)
			}
		},
		Text: &outcome.TextFile{Path: filepath.Join(a.Places.Logs, "capabilities.log")},
		Open: sync.OnceValues(func() (*outcome.Log, *outcome.Switch) {
			log, err := outcome.Open(filepath.Join(a.Places.State, "outcomes"), outcome.Config{})
			if err == nil {
				a.closers.Add(log.Close)
			}
			a.closers.Add(func() error {
				ctx, cancel := context.WithTimeout(context.Background(), learningEnds)
				defer cancel()
				return a.recorder.Close(ctx)
			})
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

// indexer keeps the search index of large catalogs, with the vectors of a model.
func indexer(model *embed.Model, d config.Discovery, places dirs.Places) *index.Cache {
	c := &index.Cache{Name: d.CollectionName, Model: model}
	dir := filepath.Join(places.Cache, "index")
	if (&parsecache.Cache{Dir: dir}).Check() == nil {
		c.Dir = dir // without it the index is built from scratch
	}
	return c
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
