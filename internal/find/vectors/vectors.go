// Package vectors chooses the embedder that finds capabilities by meaning, and
// keeps the vectors of the capabilities complete with it.
package vectors

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/find/ranking"
	"ken/internal/know/catalog"
	"ken/internal/know/embed"
	"ken/internal/know/embed/remote"
	"ken/internal/know/reader"
	"ken/llm"
)

// Config says which embedder is used.
type Config struct {
	Given   llm.Embedder  // by the program; nil: that of ken.yaml
	Start   config.Config // the settings that Ken was opened with
	Getenv  func(string) string
	Dir     string                  // where vectors are kept
	Catalog func() *catalog.Catalog // whose capabilities get vectors; called after New

	// Stays says that the process has time for what it has not read before.
	Stays bool

	// OnClose receives functions to call when Ken closes.
	OnClose func(func() error)
}

// A Keeper keeps the vectors of capabilities. Its methods are safe for concurrent
// use.
type Keeper struct {
	cfg          Config
	messages     llm.Embedder // nil: the model inside the program, or none
	capabilities llm.Embedder // the same, with vectors that are kept
	trouble      func() error // with keeping vectors; nil: none can occur
	local        bool         // the embedder is the second reader inside the program

	asked atomic.Int64 // when the last search began, in nanoseconds since 1970
	once  sync.Once
	tried <-chan struct{} // closed once the embedder was asked for all vectors; nil: there is none
}

// New returns a Keeper with the embedder that the program was given, or that the
// configuration names. It asks for no vectors.
func New(cfg Config) (*Keeper, error) {
	k := &Keeper{cfg: cfg, messages: cfg.Given, capabilities: cfg.Given}
	if cfg.Given != nil {
		return k, nil
	}
	d := cfg.Start.Discovery
	refuse := func(message, fix string) (*Keeper, error) {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "read the configuration", Err: errors.New(message), Fix: fix}
	}
	switch {
	case d.EmbeddingModelID != config.NoEmbedding && strings.EqualFold(strings.TrimSpace(d.EmbeddingModelID), config.NoEmbedding):
		return refuse("discovery.embeddingModelId is "+strconv.Quote(d.EmbeddingModelID), "write none, or the name of a model")
	case d.EmbeddingModelID == "" || d.EmbeddingModelID == config.NoEmbedding:
		if d.EmbeddingURL != "" {
			return refuse("discovery.embeddingUrl is set, and discovery.embeddingModelId names no model of that service",
				"set discovery.embeddingModelId to one of its models, or remove discovery.embeddingUrl")
		}
		if d.EmbeddingModelID == "" && d.Reader == config.ReaderAuto && reader.Supported() {
			var from time.Time
			if cfg.Stays {
				from = time.Now().Add(readAfter)
			}
			r := newCapabilityReader(cfg.Dir, from, &k.asked)
			messages := messageReader{rest: new(rest)}
			cfg.OnClose(messages.rest.stop)
			// An Embed that is under way when Ken closes is not waited for.
			cfg.OnClose(func() error { return r.kept().Close() })
			k.messages, k.capabilities, k.local = messages, r, true
			k.trouble = func() error { return r.kept().Trouble() }
		}
		return k, nil
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
		return nil, err
	}
	cfg.OnClose(e.Close)
	cache := remote.NewCache(e, cfg.Dir)
	cfg.OnClose(cache.Close)
	k.messages, k.capabilities, k.trouble = e, cache, cache.Trouble
	return k, nil
}

// Embedder returns what makes the vectors of messages; nil: the model inside the
// program, or none.
func (k *Keeper) Embedder() llm.Embedder { return k.messages }

// Local reports whether that is the second reader inside the program. It cannot
// fail, and its time is that of the processor.
func (k *Keeper) Local() bool { return k.local }

// Searching says that a search begins: capabilities that are not read yet wait for a
// moment.
func (k *Keeper) Searching() { k.asked.Store(time.Now().UnixNano()) }

// Index returns the model that the index makes vectors with; nil: words alone
// answer.
func (k *Keeper) Index() *embed.Model {
	if k.cfg.Given == nil && k.cfg.Start.Discovery.EmbeddingModelID == config.NoEmbedding {
		return nil
	}
	return embed.Builtin()
}

// embedAgain is how long an embedder rests that failed to make vectors of
// capabilities.
const embedAgain = 30 * time.Second

// Start starts to keep the vectors of capabilities complete in the
// background; later calls start nothing. It is called only before a search:
// listing a catalog sends nothing anywhere. The channel it returns is closed when
// the embedder was asked for all of them; nil means that there is no embedder.
func (k *Keeper) Start() <-chan struct{} {
	k.once.Do(func() {
		if k.capabilities != nil {
			k.tried = k.embed(k.capabilities)
		}
	})
	return k.tried
}

func (k *Keeper) embed(e llm.Embedder) <-chan struct{} {
	ctx, cancel := context.WithCancel(context.Background())
	done, tried := make(chan struct{}), make(chan struct{})
	first := sync.OnceFunc(func() { close(tried) })
	go func() {
		defer close(done)
		defer first()
		for version := uint64(0); ; {
			s, err := k.cfg.Catalog().Next(ctx, version)
			if err != nil {
				return
			}
			// An embedder that fails is asked again after a while; until then
			// answers say how many capabilities have vectors.
			err = ranking.Embed(ctx, k.cfg.Catalog(), e)
			first()
			if err == nil {
				if k.local {
					giveBack() // what a message needs comes back with the first one
				}
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
	k.cfg.OnClose(func() error {
		cancel()
		<-done
		return nil
	})
	return tried
}

// Wait waits until the embedder, where there is one, has made the vectors of all
// capabilities or has failed, at most until ctx ends.
func (k *Keeper) Wait(ctx context.Context) {
	tried := k.Start()
	if tried == nil {
		return
	}
	select {
	case <-tried:
	case <-ctx.Done():
	}
}

const (
	// longestWait is how long one answer waits for an embedding service to make
	// the vectors of a catalog. What it made is kept for the next.
	longestWait = 30 * time.Second

	// mostReadAtOnce is how many capabilities the second reader reads for one
	// answer: those of a second. More are left to programs that keep running.
	mostReadAtOnce = 32
)

// WaitBriefly is Wait for a command that answers once. An embedding service has
// some time. The second reader is waited for only if it has read almost all
// capabilities before: until then the small model answers.
func (k *Keeper) WaitBriefly(ctx context.Context) {
	if r, ok := k.capabilities.(capabilityReader); ok && r.unread(ranking.TextsWithout(k.cfg.Catalog(), r), mostReadAtOnce) > mostReadAtOnce {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	k.Wait(ctx)
}

// mostKnown is how large a catalog StartKnown looks at: more would take longer
// than opening it.
const mostKnown = 256

// StartKnown is Start for a program that searches at once. Where a catalog is
// small and the second reader has nothing to read, because it is part of the
// program or was read before, it waits for these milliseconds: so a first search
// gives what a later one does.
func (k *Keeper) StartKnown(ctx context.Context) {
	if r, ok := k.capabilities.(capabilityReader); ok {
		c := k.cfg.Catalog()
		if len(c.Snapshot().Entries()) <= mostKnown && r.unread(ranking.TextsWithout(c, r), 0) == 0 {
			k.Wait(ctx)
			return
		}
	}
	k.Start()
}

// Check says what finds capabilities by meaning, or why nothing does. A
// service is asked for one vector.
func (k *Keeper) Check(ctx context.Context) (string, error) {
	e := k.messages
	switch {
	case e == nil && k.cfg.Start.Discovery.EmbeddingModelID == config.NoEmbedding:
		return "words alone, as discovery.embeddingModelId says", nil
	case e == nil && k.cfg.Start.Discovery.Reader == config.ReaderAuto:
		return "the model inside the program, " + embed.Builtin().Model() + " (discovery.reader is auto; this processor cannot run the second one)", nil
	case e == nil:
		return "the model inside the program, " + embed.Builtin().Model(), nil
	case k.local:
		return "the models inside the program, " + embed.Builtin().Model() + " and " + e.Model(), k.trouble()
	}
	if _, err := e.Embed(ctx, []string{"is anybody there"}); err != nil {
		return "", err
	}
	if k.trouble != nil {
		if err := k.trouble(); err != nil {
			return "", err
		}
	}
	return e.Model(), nil
}
