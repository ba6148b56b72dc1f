// Package config reads ken.yaml, strictly, and edits it.
//
// [Load] puts the layers together: the built-in [Default], the user's file,
// the project's file. A file with anything wrong in it is refused whole, with
// everything that is wrong in it at once: a typing error in a setting must
// never mean "allow". A project's file came with the project; it may narrow
// what the user has, and what would widen it is refused.
//
// [Set] edits one key of a file, atomically, and leaves comments, order and
// every other key as they are. [Sample] is a commented file to begin with.
package config

import (
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/config/orchestration"
	"ken/internal/govern/policy"
)

// Config is everything that ken.yaml says. It is plain data and never changes
// once loaded. The zero Config has everything off and is not meant for use; begin
// with [Default].
type Config struct {
	Capabilities Capabilities
	Catalog      Catalog
	Discovery    Discovery
	Experiment   Experiment
	Serve        Serve
	MCP          MCP

	// Databases can be asked by name. Default none.
	Databases []Database

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
	Work []orchestration.Work

	// Policy is what rules are made of: the profile's settings, and over them
	// what files say. Default policy.Defaults(policy.Personal); the zero value
	// refuses nearly everything.
	Policy policy.Settings

	Limits     Limits
	Requests   Requests
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

// Default returns the configuration of a machine without any file.
func Default() Config {
	return Config{
		Capabilities: Capabilities{
			Enabled: true, MaxTokens: 1500, LogLevel: LogSummary, Scorer: ScorerEvidence, BudgetPolicy: BudgetSkip,
			Rollout: RolloutFull, KillSwitch: KillSwitchWarn,
		},
		Catalog: Catalog{
			Starter: StarterOn, Watch: true, Debounce: 500 * time.Millisecond, Poll: 2 * time.Second,
			CompatibilityPaths: true, Sanitizer: SanitizeReveal,
		},
		Discovery: Discovery{
			Profile:          ProfileStandard,
			Tier0TokenBudget: 200, Tier1TokenBudget: 800, Tier2TokenBudget: 2000, TotalTokenBudget: 3000,
			Tier1TopK: 5, Tier2TopK: 2, StickyTopK: 3, Tier1MinRelevance: 0.3, LowConfidence: 0.6, Tier1TailRelevance: 0.02, Tier2MinRelevance: 0.1,
			UseGraphReranking: true, GraphBoostFactor: 0.15, PromptMode: PromptFull, Tokenizer: TokenizerO200k, Reader: ReaderAuto,
			CollectionName: "capability_index", EmbeddingTimeout: 50 * time.Millisecond,
		},
		Serve:      defaultServe(),
		MCP:        MCP{Surface: SurfaceAuto, New: PinQuarantine, Changed: PinQuarantine, Idle: 10 * time.Minute, Instructions: 500, Registry: "https://registry.modelcontextprotocol.io", MaxTools: 10_000},
		Chat:       defaultChat(),
		Trace:      Trace{Orchestration: OrchestrationAuto},
		Policy:     policy.Defaults(policy.Personal),
		Limits:     defaultLimits(),
		Requests:   Requests{Bytes: 8 * mib, Rate: 10, Retries: 2, Pages: 20},
		Sandbox:    defaultSandbox(),
		Extensions: Extensions{Review: ReviewRequired},
		Approval:   Approval{Wait: day, OnceFor: time.Hour, SessionFor: 30 * day, AlwaysFor: 30 * day, Retain: 90 * day, Pending: 100},
		Audit:      Audit{SegmentBytes: 64 * mib},
		Results:    Results{Keep: day, PerSession: 64, MaxBytes: 64 * mib, MaxTotal: 2 * gib},
	}
}

// Files names the files that were read, the user's before the project's.
func (c Config) Files() []string { return slices.Clone(c.files) }

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
