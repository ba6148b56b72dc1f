package app

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/know/embed"
	"ken/internal/know/embed/remote"
	"ken/llm"
)

// An embedding is an embedder other than the one inside the program: for
// messages, and for capabilities, whose vectors are kept. Both are nil where
// there is none.
type embedding struct {
	messages     llm.Embedder
	capabilities llm.Embedder
	trouble      func() error // with keeping vectors
}

// newEmbedding returns the embedder that the program was given, or that the
// configuration names.
func (a *App) newEmbedding(cfg Config) (embedding, error) {
	if cfg.Embedder != nil {
		return embedding{messages: cfg.Embedder, capabilities: cfg.Embedder}, nil
	}
	d := a.Settings.Discovery
	refuse := func(message, fix string) (embedding, error) {
		return embedding{}, &capability.Error{Kind: capability.Invalid, Op: "read the configuration", Err: errors.New(message), Fix: fix}
	}
	switch {
	case d.EmbeddingModelID != config.NoEmbedding && strings.EqualFold(strings.TrimSpace(d.EmbeddingModelID), config.NoEmbedding):
		return refuse("discovery.embeddingModelId is "+strconv.Quote(d.EmbeddingModelID), "write none, or the name of a model")
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
	cache := remote.NewCache(e, filepath.Join(a.Places.Cache, "vectors"))
	return embedding{messages: e, capabilities: cache, trouble: cache.Trouble}, nil
}

// embedAgain is how long an embedder rests that failed to make vectors of
// capabilities.
const embedAgain = 30 * time.Second

// StartEmbedding starts to keep the vectors of capabilities complete in the
// background; later calls start nothing. It is called only before a search:
// listing a catalog sends nothing anywhere. The channel it returns is closed when
// the embedder was asked for all of them; nil means that there is no embedder.
func (a *App) StartEmbedding() <-chan struct{} {
	a.embedOnce.Do(func() {
		if e := a.embedding.capabilities; e != nil {
			a.embedded = a.embed(e)
		}
	})
	return a.embedded
}

func (a *App) embed(e llm.Embedder) <-chan struct{} {
	ctx, cancel := context.WithCancel(context.Background())
	done, tried := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(tried) })
	go func() {
		defer close(done)
		defer first()
		for version := uint64(0); ; {
			s, err := a.catalog.Next(ctx, version)
			if err != nil {
				return
			}
			// An embedder that fails is asked again after a while; until then
			// answers say how many capabilities have vectors.
			err = a.catalog.Embed(ctx, e)
			first()
			if err == nil {
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
	return tried
}

// Embedded waits until the embedding service, where there is one, has made the
// vectors of all capabilities or has failed, at most until ctx ends. A command
// that answers once calls it first; a program that keeps running finds by words
// meanwhile.
func (a *App) Embedded(ctx context.Context) {
	tried := a.StartEmbedding()
	if tried == nil {
		return
	}
	select {
	case <-tried:
	case <-ctx.Done():
	}
}

// Meaning says what finds capabilities by meaning, or why nothing does. A
// service is asked for one vector.
func (a *App) Meaning(ctx context.Context) (string, error) {
	e := a.embedding.messages
	switch {
	case e == nil && a.Settings.Discovery.EmbeddingModelID == config.NoEmbedding:
		return "words alone, as discovery.embeddingModelId says", nil
	case e == nil:
		return "the model inside the program, " + embed.Builtin().Model(), nil
	}
	if _, err := e.Embed(ctx, []string{"is anybody there"}); err != nil {
		return "", err
	}
	if a.embedding.trouble != nil {
		if err := a.embedding.trouble(); err != nil {
			return "", err
		}
	}
	return e.Model(), nil
}
