package config

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
	KillSwitchOff     KillSwitch = "off"     // not checked
)

// A LogLevel says how much is logged of what was shown.
type LogLevel string

const (
	LogNone     LogLevel = "none"
	LogSummary  LogLevel = "summary"
	LogDetailed LogLevel = "detailed"
)

func capabilitiesSettings() []setting[Config] {
	return []setting[Config]{
		entry("capabilities.enabled", "Whether capability cards are shown.",
			func(c *Config) *bool { return &c.Capabilities.Enabled }, boolean()),
		entry("capabilities.maxTokens", "Maximum tokens of all cards of one prompt.",
			func(c *Config) *int { return &c.Capabilities.MaxTokens }, whole(0, mostTokens)).byProfile(),
		entry("capabilities.confidenceThreshold", "Minimum relevance of a card, 0 to 1; null uses each card's own threshold.",
			func(c *Config) **float64 { return &c.Capabilities.ConfidenceThreshold }, optionalFraction()),
		entry("capabilities.forceInclude", "Ids of cards that are always shown.",
			func(c *Config) *[]string { return &c.Capabilities.ForceInclude }, ids("ids", subset, nil)),
		entry("capabilities.exclude", "Ids of cards that are never shown; this wins over forceInclude.",
			func(c *Config) *[]string { return &c.Capabilities.Exclude }, ids("ids", anything[[]string], union)),
		entry("capabilities.scorer", "How a card's relevance is computed: evidence, or seed (the literal formula of the first seed design).",
			func(c *Config) *Scorer { return &c.Capabilities.Scorer }, word(ScorerEvidence, ScorerSeed).fixed()).byProfile(),
		entry("capabilities.budgetPolicy", "If a card does not fit: skip (try the next one) or stop.",
			func(c *Config) *BudgetPolicy { return &c.Capabilities.BudgetPolicy }, word(BudgetStop, BudgetSkip)).byProfile(),
		entry("capabilities.rollout", "Where results are added to prompts: full (everywhere), soft (in the session types of rolloutSessionTypes) or monitor (only in the log).",
			func(c *Config) *Rollout { return &c.Capabilities.Rollout }, word(RolloutMonitor, RolloutSoft, RolloutFull)),
		sessionTypes(entry("capabilities.rolloutSessionTypes", "Session types for rollout soft, such as [main, isolated].",
			func(c *Config) *[]string { return &c.Capabilities.RolloutSessionTypes }, texts("session types", nil, nil))),
		entry("capabilities.killSwitch", "If cards trigger too often: warn, disable (stop showing them) or off.",
			func(c *Config) *KillSwitch { return &c.Capabilities.KillSwitch }, word(KillSwitchDisable, KillSwitchWarn, KillSwitchOff)),
		entry("capabilities.logLevel", "What is logged about the cards shown: none, summary or detailed.",
			func(c *Config) *LogLevel { return &c.Capabilities.LogLevel }, word(LogDetailed, LogSummary, LogNone)),
		entry("capabilities.allowWorkspaceCards", "Allow texts of workspace and remote capabilities in prompts, inside a fence.",
			func(c *Config) *bool { return &c.Capabilities.AllowWorkspaceCards }, boolean()),
	}
}

// sessionTypes makes a list of types say nothing where all of them are meant.
func sessionTypes(s setting[Config]) setting[Config] {
	s.noWider = func(a, b *Config) bool {
		return b.Capabilities.Rollout == RolloutFull || subset(a.Capabilities.RolloutSessionTypes, b.Capabilities.RolloutSessionTypes)
	}
	return s
}
