package app

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/know/embed/remote"
	"ken/llm"
)

// An embedding is an embedder other than the one inside the program: for
// messages, and for capabilities, whose vectors are kept. Both are nil where
// there is none.
type embedding struct{ messages, capabilities llm.Embedder }

// embedding gives the embedder that the program was given, or that the
// configuration names.
func (a *App) embedding(cfg Config) (embedding, error) {
	if cfg.Embedder != nil {
		return embedding{cfg.Embedder, cfg.Embedder}, nil
	}
	d := a.Settings.Discovery
	refuse := func(message, fix string) (embedding, error) {
		return embedding{}, &capability.Error{Kind: capability.Invalid, Op: "read the configuration", Err: errors.New(message), Fix: fix}
	}
	switch {
	case d.EmbeddingModelID == "" || d.EmbeddingModelID == config.NoEmbedding:
		if d.EmbeddingURL != "" {
			return refuse("discovery.embeddingUrl is set, and discovery.embeddingModelId names no model of that service",
				"set discovery.embeddingModelId to one of its models, or remove discovery.embeddingUrl")
		}
		return embedding{}, nil
	case d.EmbeddingURL == "":
		return refuse("discovery.embeddingModelId names "+d.EmbeddingModelID+", and discovery.embeddingUrl does not say where it is",
			"set discovery.embeddingUrl, as in http://127.0.0.1:11434/v1, or remove discovery.embeddingModelId")
	}
	key := ""
	if d.EmbeddingKeyEnv != "" {
		if key = cfg.Getenv(d.EmbeddingKeyEnv); key == "" {
			return refuse("discovery.embeddingKeyEnv names "+d.EmbeddingKeyEnv+", which is empty here",
				"set that environment variable, or remove discovery.embeddingKeyEnv")
		}
	}
	e, err := remote.New(remote.Config{URL: d.EmbeddingURL, Model: d.EmbeddingModelID, APIKey: remote.NewKey(key)})
	if err != nil {
		return embedding{}, err
	}
	a.closeLater(e.Close)
	return embedding{e, remote.NewCache(e, filepath.Join(a.Places.Cache, "vectors"))}, nil
}

// embedAgain is how long an embedder rests that failed to make vectors of
// capabilities.
const embedAgain = 30 * time.Second

// embed keeps the vectors of capabilities complete, beside everything else.
func (a *App) embed(e llm.Embedder) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for version := uint64(0); ; {
			s, err := a.catalog.Next(ctx, version)
			if err != nil {
				return
			}
			// An embedder that fails is asked again after a while; until then
			// answers say how many capabilities have vectors.
			if a.catalog.Embed(ctx, e) == nil {
				version = s.Version()
				continue
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(embedAgain):
			}
		}
	}()
	a.closeLater(func() error {
		cancel()
		<-done
		return nil
	})
}
