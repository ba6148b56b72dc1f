package config

import (
	"errors"
	"net/url"
	"time"

	hosts "ken/internal/address"
)

// Discovery says how much is looked for and shown on a turn. Budgets are in
// tokens; a zero budget or count shows nothing of that tier.
type Discovery struct {
	// Profile gave the values of the keys that no file says; they are in their
	// fields already. Default standard; the zero value means the same.
	Profile Profile

	Tier0TokenBudget int // the map; default 200
	Tier1TokenBudget int // briefs; default 800
	Tier2TokenBudget int // full texts; default 2000
	TotalTokenBudget int // all of them together; default 3000

	// MaxTokenBudget is what TotalTokenBudget may grow to in a long
	// conversation. Zero, the default, or less than that: it does not grow.
	MaxTokenBudget int

	Tier1TopK int // how many briefs; default 5
	Tier2TopK int // how many full texts; default 2

	// StickyTopK is how many capabilities used in the last turns stay shown.
	// Default 3; zero keeps none.
	StickyTopK int

	// Tier1MinRelevance is about the whole answer: the least chance, 0–1, that
	// anything found fits. Default 0.3; zero lets everything pass.
	Tier1MinRelevance float64

	// LowConfidence is about the whole answer too: below this chance, 0–1, that
	// anything found fits, only the best hit is shown, in a brief marked "may
	// not fit". Default 0.6; zero marks nothing.
	LowConfidence float64

	// Tier1TailRelevance is the least relevance, 0–1, of a brief after the
	// first. Default 0.02; zero lets everything pass.
	Tier1TailRelevance float64

	// Tier2MinRelevance is the least relevance, 0–1, of what is shown in full,
	// the best hit excepted. Default 0.1; zero lets everything pass.
	Tier2MinRelevance float64

	// UseGraphReranking raises what is related to the best hits, by
	// GraphBoostFactor, 0–1. Defaults true, 0.15; a zero factor raises nothing.
	// GraphLiteral does it by the literal algorithm of the second seed
	// document. Default false.
	UseGraphReranking bool
	GraphBoostFactor  float64
	GraphLiteral      bool

	// PromptMode says in which form capabilities are shown. Default full; the
	// zero value means the same.
	PromptMode PromptMode

	// Tokenizer says how tokens are counted. Default o200k; the zero value
	// means the same.
	Tokenizer Tokenizer

	// Agents says what holds for the messages of an agent, by its name, besides
	// the rest; see [Config.ForAgent]. Default none.
	Agents map[string]Agent

	// CollectionName names the file in which the index is cached. Default
	// "capability_index"; empty means the same.
	CollectionName string

	// EmbeddingModelID names the embedding model. Empty, the default, means
	// the one inside the program, [NoEmbedding] that words alone answer, and
	// anything else a model of the service at EmbeddingURL.
	EmbeddingModelID string

	// Reader says whether the second model inside the program reads messages and
	// capabilities, too. Default auto; the zero value means fast.
	Reader Reader

	// EmbeddingURL is where a service answers that speaks OpenAI's embeddings
	// interface, as in http://127.0.0.1:11434/v1. Default none.
	EmbeddingURL string

	// EmbeddingKeyEnv names the environment variable that holds the key of
	// the service. Default none.
	EmbeddingKeyEnv string

	// EmbeddingTimeout is how long a message's vector is waited for before
	// words alone answer. Default 50ms.
	EmbeddingTimeout time.Duration
}

// NoEmbedding as a model's name means that none is used.
const NoEmbedding = "none"

// A Reader says which models inside the program find by meaning.
type Reader string

const (
	ReaderAuto Reader = "auto" // both, where the processor can run the second
	ReaderFast Reader = "fast" // the small one alone
)

// A PromptMode says in which form capabilities are shown.
type PromptMode string

const (
	PromptFull    PromptMode = "full"
	PromptCompact PromptMode = "compact" // briefs without parameters and requirements
	PromptNames   PromptMode = "names"   // briefs are names; no cards, no full texts
	PromptLazy    PromptMode = "lazy"    // the map alone
)

// A Tokenizer is a way to count tokens.
type Tokenizer string

const (
	TokenizerO200k    Tokenizer = "o200k"
	TokenizerEstimate Tokenizer = "estimate" // for models of other vocabularies
	TokenizerChars4   Tokenizer = "chars4"   // four characters are one, as the seed documents count
)

func discoverySettings() []setting[Config] {
	return []setting[Config]{
		entry("discovery.profile", "Defaults for keys that are not set: standard, lean, minimal, full or seed.",
			func(c *Config) *Profile { return &c.Discovery.Profile }, profileKind()),
		entry("discovery.tier0TokenBudget", "Maximum tokens of each part of the map, which is always shown: your AGENTS.md, and the summary by category.",
			func(c *Config) *int { return &c.Discovery.Tier0TokenBudget }, whole(0, mostTokens)),
		entry("discovery.tier1TokenBudget", "Maximum tokens of the briefs of a turn.",
			func(c *Config) *int { return &c.Discovery.Tier1TokenBudget }, whole(0, mostTokens)),
		entry("discovery.tier2TokenBudget", "Maximum tokens of the full texts of a turn.",
			func(c *Config) *int { return &c.Discovery.Tier2TokenBudget }, whole(0, mostTokens)).byProfile(),
		entry("discovery.totalTokenBudget", "Maximum tokens of all tiers together.",
			func(c *Config) *int { return &c.Discovery.TotalTokenBudget }, whole(0, mostTokens)).byProfile(),
		entry("discovery.maxTokenBudget", "Maximum that totalTokenBudget may grow to in a long conversation; 0, or less than totalTokenBudget: it does not grow.",
			func(c *Config) *int { return &c.Discovery.MaxTokenBudget }, whole(0, mostTokens)),
		entry("discovery.tier1TopK", "Maximum number of briefs of a turn.",
			func(c *Config) *int { return &c.Discovery.Tier1TopK }, whole(0, mostHits)).byProfile(),
		entry("discovery.tier2TopK", "Maximum number of full texts of a turn.",
			func(c *Config) *int { return &c.Discovery.Tier2TopK }, whole(0, mostHits)).byProfile(),
		entry("discovery.stickyTopK", "How many capabilities used in the last turns stay visible.",
			func(c *Config) *int { return &c.Discovery.StickyTopK }, whole(0, mostHits)),
		entry("discovery.tier1MinRelevance", "Minimum probability, 0 to 1, that anything found fits; below it nothing is shown.",
			func(c *Config) *float64 { return &c.Discovery.Tier1MinRelevance }, fraction(noLess)),
		entry("discovery.lowConfidence", "Below this probability, 0 to 1, that anything found fits, only the best hit is shown, in a brief marked \"may not fit\" and never in full; 0, or tier1MinRelevance 0, turns this off.",
			func(c *Config) *float64 { return &c.Discovery.LowConfidence }, fraction(noLess)).byProfile(),
		entry("discovery.tier1TailRelevance", "Minimum relevance, 0 to 1, of a brief after the first.",
			func(c *Config) *float64 { return &c.Discovery.Tier1TailRelevance }, fraction(noLess)).byProfile(),
		entry("discovery.tier2MinRelevance", "Minimum relevance, 0 to 1, of a full text after the best.",
			func(c *Config) *float64 { return &c.Discovery.Tier2MinRelevance }, fraction(noLess)).byProfile(),
		entry("discovery.useGraphReranking", "Raise capabilities that are related to the best hits.",
			func(c *Config) *bool { return &c.Discovery.UseGraphReranking }, boolean()),
		entry("discovery.graphBoostFactor", "By how much useGraphReranking raises them, 0 to 1.",
			func(c *Config) *float64 { return &c.Discovery.GraphBoostFactor }, fraction(noMore)),
		entry("discovery.graphLiteral", "Use the literal graph algorithm of the second seed design for useGraphReranking.",
			func(c *Config) *bool { return &c.Discovery.GraphLiteral }, boolean().fixed()).byProfile(),
		entry("discovery.promptMode", "What is shown: full, compact (short briefs), names (only the names of briefs, no texts) or lazy (only the map).",
			func(c *Config) *PromptMode { return &c.Discovery.PromptMode }, word(PromptLazy, PromptNames, PromptCompact, PromptFull)),
		entry("discovery.tokenizer", "How tokens are counted: o200k, estimate (for models with other vocabularies) or chars4 (four characters per token).",
			func(c *Config) *Tokenizer { return &c.Discovery.Tokenizer }, word(TokenizerO200k, TokenizerEstimate, TokenizerChars4).fixed()),
		agentsOfProject(entry("discovery.agents", "Settings per agent, as in {helper: {profile: lean, forceInclude: [a], exclude: [b]}}.",
			func(c *Config) *map[string]Agent { return &c.Discovery.Agents }, agents())),
		entry("discovery.collectionName", "Name of the index cache file.",
			func(c *Config) *string { return &c.Discovery.CollectionName }, text(checkCollection)),
		entry("discovery.embeddingModelId", "The embedding model: empty for the built-in one, none for words only, or a model of the service at embeddingUrl.",
			func(c *Config) *string { return &c.Discovery.EmbeddingModelID }, text(nil)),
		entry("discovery.reader", "Which built-in models find by meaning: auto (both, where this processor can run the second reader: better hits, in a few milliseconds) or fast (the small one alone, in a tenth of a millisecond).",
			func(c *Config) *Reader { return &c.Discovery.Reader }, word(ReaderAuto, ReaderFast).fixed()),
		entry("discovery.embeddingUrl", "Where a service with OpenAI's embeddings interface answers, as in http://127.0.0.1:11434/v1. A service on another machine needs https. Ken sends it messages and texts of capabilities.",
			func(c *Config) *string { return &c.Discovery.EmbeddingURL }, text(checkEmbeddingURL)),
		entry("discovery.embeddingKeyEnv", "The environment variable with the service's key.",
			func(c *Config) *string { return &c.Discovery.EmbeddingKeyEnv }, text(nil)),
		entry("discovery.embeddingTimeout", "How long to wait for a message's vector before searching by words only, 1ms to 10s.",
			func(c *Config) *time.Duration { return &c.Discovery.EmbeddingTimeout }, duration(time.Millisecond, 10*time.Second, noMore)),
	}
}

func checkCollection(s string) (fix string, err error) {
	const longest = 128
	if len(s) > longest || !nameOf(s, ".-") {
		return "write a name of letters, digits, _, . and -, such as capability_index", errors.New("is not a name")
	}
	return "", nil
}

// checkEmbeddingURL rejects an address to which messages would be sent
// unencrypted. The embedder reports any other error.
func checkEmbeddingURL(s string) (fix string, err error) {
	if u, err := url.Parse(s); err == nil && u.Host != "" && hosts.Unprotected(u) {
		return "write https://" + u.Host + u.Path, errors.New("would send messages, texts and the key unprotected over the network")
	}
	return "", nil
}
