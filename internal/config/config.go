// Package config reads ken.yaml, strictly, and knows the places that Ken
// reads and writes.
//
// [Load] puts the layers together: the built-in [Default], the user's file,
// the project's file. A file with anything wrong in it is refused whole, with
// everything that is wrong in it at once: a typing error in a setting must
// never mean "allow". A project's file came with the project; it may narrow
// what the user has, and what would widen it is refused.
//
// [Set] edits one key of a file, atomically, and leaves comments, order and
// every other key as they are. [Init] writes a commented file and a small
// catalog to begin with.
package config

import (
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/govern/policy"
)

// Config is everything that ken.yaml says. It is plain data and never changes
// once loaded. The zero Config has everything off and is for nobody; begin
// with [Default].
type Config struct {
	Capabilities Capabilities
	Catalog      Catalog
	Discovery    Discovery
	Experiment   Experiment
	Serve        Serve
	MCP          MCP

	// Model is what conversations are led with, as PROVIDER/NAME. Default none:
	// then there are commands and no answers. Providers adds to those that are
	// known, see [Config.Provider]. Default none.
	Model     string
	Providers []Provider

	Chat   Chat
	Skills Skills
	Trace  Trace

	// Hooks are asked before calls, in this order. Default none.
	Hooks []Hook

	// Work is what .orchestration says is under way. No file of Ken's says it.
	Work []Work

	// Policy is what rules are made of: the profile's settings, and over them
	// what files say. Default policy.Defaults(policy.Personal); the zero value
	// refuses nearly everything.
	Policy policy.Settings

	Limits     Limits
	Sandbox    Sandbox
	Shell      Shell
	Extensions Extensions
	Approval   Approval
	Audit      Audit
	Results    Results

	// Store is the postgres:// address of the database that keeps state, and
	// perhaps holds a password: it is not for showing. Empty, the default,
	// means a file in the state directory.
	Store string

	spoken  policyText
	files   []string
	origins map[string]saying // by key; what is not there is the profile's or the default
	other   *Config           // the experiment's B
}

// A saying is where the value of a key was said.
type saying struct {
	where string
	own   bool // the user's file says something about the key too
}

// Capabilities says how capability cards are shown.
type Capabilities struct {
	// Enabled shows cards at all. Default true; false shows none.
	Enabled bool

	// MaxTokens caps what all cards of one prompt may take. Default 1500;
	// zero leaves room for none.
	MaxTokens int

	// ConfidenceThreshold replaces every card's own threshold, 0–1. Nil, the
	// default, means that each card's own counts.
	ConfidenceThreshold *float64

	// ForceInclude lists cards that are always shown, Exclude those that never
	// are; Exclude wins. Default none.
	ForceInclude []string
	Exclude      []string

	// LogLevel says how much is logged of what was shown. Default summary;
	// the zero value means the same.
	LogLevel LogLevel

	// AllowWorkspaceCards lets the texts of capabilities that came with a
	// project, or from an address, into the prompt. Default false.
	AllowWorkspaceCards bool

	// Scorer says how a card's relevance is judged. Default evidence; the zero
	// value means the same.
	Scorer Scorer

	// BudgetPolicy says what happens at the first item that does not fit.
	// Default skip; the zero value means the same.
	BudgetPolicy BudgetPolicy

	// Rollout says where what was found goes into prompts; with soft, in
	// sessions of RolloutSessionTypes only, and an empty list is none. Defaults
	// full, none; the zero value of Rollout means monitor.
	Rollout             Rollout
	RolloutSessionTypes []string

	// KillSwitch says what happens when cards trigger too often. Default warn;
	// the zero value means the same.
	KillSwitch KillSwitch
}

// A Scorer is a way to judge the relevance of a card.
type Scorer string

const (
	ScorerEvidence Scorer = "evidence"
	ScorerSeed     Scorer = "seed" // the literal formula of the first seed document
)

// A BudgetPolicy says what happens at the first item that does not fit.
type BudgetPolicy string

const (
	BudgetSkip BudgetPolicy = "skip" // it is passed over for what does
	BudgetStop BudgetPolicy = "stop" // nothing comes after it
)

// A Rollout says where what was found goes into prompts. It is logged in any
// case.
type Rollout string

const (
	RolloutFull    Rollout = "full"
	RolloutSoft    Rollout = "soft"    // in sessions of some types
	RolloutMonitor Rollout = "monitor" // nowhere
)

// A KillSwitch says what happens when cards trigger too often.
type KillSwitch string

const (
	KillSwitchWarn    KillSwitch = "warn"
	KillSwitchDisable KillSwitch = "disable" // no cards are shown any more
	KillSwitchOff     KillSwitch = "off"     // nobody looks
)

// A LogLevel says how much is logged of what was shown.
type LogLevel string

const (
	LogNone     LogLevel = "none"
	LogSummary  LogLevel = "summary"
	LogDetailed LogLevel = "detailed"
)

// Catalog says where capabilities come from.
type Catalog struct {
	// Starter decides about the catalog inside the program. Default auto;
	// the zero value means the same.
	Starter Starter

	// Sources are read besides the directories of [Places.Catalog]. Names are
	// distinct, paths absolute. Default none.
	Sources []Source

	// Watch reads changed files again without a restart, once they have been
	// quiet for Debounce; where the system cannot tell of changes, files are
	// looked at every Poll. Defaults true, 500ms, 2s.
	Watch    bool
	Debounce time.Duration
	Poll     time.Duration

	// CompatibilityPaths reads the directories of other programs too. Default
	// true.
	CompatibilityPaths bool

	// Pins release quarantined capabilities: the one of that id counts as
	// looked at while its content hash is exactly this. Default none.
	Pins map[capability.ID]string

	// Sanitizer says what happens to suspicious text. Default reveal; the
	// zero value means the same.
	Sanitizer Sanitizer
}

// Starter decides about the catalog inside the program.
type Starter string

const (
	StarterAuto Starter = "auto" // only while the user has no tools of their own
	StarterOn   Starter = "on"
	StarterOff  Starter = "off"
)

// Sanitizer says what happens to suspicious text.
type Sanitizer string

const (
	SanitizeReveal Sanitizer = "reveal" // shown for what it is, fenced, never rewritten silently
	SanitizeSeed   Sanitizer = "seed"   // the literal rules of the first seed document
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

// Experiment divides sessions between this configuration, A, and another, B.
// There is one while both fields are set; see [Config.VariantB].
type Experiment struct {
	// Name tells experiments apart. Default empty.
	Name string

	// Config is the absolute path of B's ken.yaml. Default empty.
	Config string
}

// Default gives the configuration of a machine without any file.
func Default() Config {
	return Config{
		Capabilities: Capabilities{
			Enabled: true, MaxTokens: 1500, LogLevel: LogSummary, Scorer: ScorerEvidence, BudgetPolicy: BudgetSkip,
			Rollout: RolloutFull, KillSwitch: KillSwitchWarn,
		},
		Catalog: Catalog{
			Starter: StarterAuto, Watch: true, Debounce: 500 * time.Millisecond, Poll: 2 * time.Second,
			CompatibilityPaths: true, Sanitizer: SanitizeReveal,
		},
		Discovery: Discovery{
			Profile:          ProfileStandard,
			Tier0TokenBudget: 200, Tier1TokenBudget: 800, Tier2TokenBudget: 2000, TotalTokenBudget: 3000,
			Tier1TopK: 5, Tier2TopK: 2, StickyTopK: 3, Tier1MinRelevance: 0.3, Tier1TailRelevance: 0.02, Tier2MinRelevance: 0.1,
			UseGraphReranking: true, GraphBoostFactor: 0.15, PromptMode: PromptFull, Tokenizer: TokenizerO200k,
			CollectionName: "capability_index", EmbeddingTimeout: 50 * time.Millisecond,
		},
		Serve:      defaultServe(),
		MCP:        MCP{Surface: SurfaceAuto, New: PinQuarantine, Changed: PinQuarantine, Idle: 10 * time.Minute},
		Chat:       defaultChat(),
		Trace:      Trace{Orchestration: OrchestrationAuto},
		Policy:     policy.Defaults(policy.Personal),
		Limits:     defaultLimits(),
		Sandbox:    defaultSandbox(),
		Extensions: Extensions{Review: ReviewRequired},
		Approval:   Approval{Wait: day, OnceFor: time.Hour, SessionFor: 30 * day, Retain: 90 * day},
		Audit:      Audit{SegmentBytes: 64 * mib},
		Results:    Results{Keep: day, PerSession: 64, MaxBytes: 64 * mib, MaxTotal: 2 * gib},
	}
}

// A Setting is one key with the value in force and where it was said.
type Setting struct {
	Key    string `json:"key"`
	Value  string `json:"value"`  // as ken.yaml would have it, on one line
	Origin string `json:"origin"` // "file:line", several with ", " between, "profile lean" or "default"
	Doc    string `json:"doc"`    // one line about the key
}

const fromDefault = "default"

// Settings lists every key, in the order of [Sample].
func (c Config) Settings() []Setting {
	var out []Setting
	for _, s := range settings() {
		out = append(out, Setting{Key: s.name, Value: flow(s.show(&c)), Origin: c.origin(s), Doc: s.doc})
	}
	return out
}

// Files names the files that were read, the user's before the project's.
func (c Config) Files() []string { return slices.Clone(c.files) }

// Explain gives the value of one key as ken.yaml would have it, and where it
// was said: "file:line", "profile lean" or "default". A single pin is
// "catalog.pins.ID".
func (c Config) Explain(key string) (value, origin string, err error) {
	if id, ok := strings.CutPrefix(key, pinPrefix); ok {
		if hash, ok := c.Catalog.Pins[capability.ID(id)]; ok {
			return flow(hash), c.said("catalog.pins"), nil
		}
		return "", "", invalid("get", key, "no such pin", "`ken config get catalog.pins` lists them")
	}
	s, err := settingOf("get", key)
	if err != nil {
		return "", "", err
	}
	return flow(s.show(&c)), c.origin(s), nil
}

func (c Config) origin(s setting[Config]) string {
	if _, said := c.origins[s.name]; said {
		return c.said(s.name)
	}
	if s.governed {
		return "profile " + c.Policy.Profile.String()
	}
	if standard := Default(); s.profiled && flow(s.show(&c)) != flow(s.show(&standard)) {
		return "profile " + string(c.Discovery.Profile)
	}
	return fromDefault
}

// said gives where a key was said.
func (c Config) said(key string) string {
	if o, ok := c.origins[key]; ok {
		return o.where
	}
	return fromDefault
}

// An Error says everything that is wrong with the configuration. Nothing of
// it was taken.
type Error struct {
	Problems []capability.Problem // at least one
}

func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}
