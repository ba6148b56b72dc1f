package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/yamldoc"
)

// A setting is one key of a map that is read into an S: of ken.yaml into a
// Config, of an item of catalog.sources into a Source.
type setting[S any] struct {
	name string
	doc  string
	text bool // a plain word or text: ken config set takes it as typed

	profiled bool // discovery.profile may give the value where no file does
	governed bool // policy.profile gives it

	read    func(r *reading, at spot, v yamldoc.Value, into *S)
	show    func(from *S) any
	noWider func(a, b *S) bool
	take    func(into, from *S)
	join    func(into, from *S) // take, for a project's file
	joins   bool                // join adds to what there is, and never widens it
	exact   bool                // the default excuses nothing: what the user has counts
}

// entry makes the setting for the part of an S that at points to.
func entry[S, T any](name, doc string, at func(*S) *T, k kind[T]) setting[S] {
	s := setting[S]{
		name: name, doc: doc, text: k.text,
		read: func(r *reading, where spot, v yamldoc.Value, into *S) {
			if v.Any == nil && !k.empty {
				r.fault(where, "no-value", "write one, or remove the key", "%s has no value", where.key)
				return
			}
			if x, ok := k.parse(r, where, v); ok {
				*at(into) = x
			}
		},
		show:    func(from *S) any { return k.show(*at(from)) },
		noWider: func(a, b *S) bool { return k.noWider(*at(a), *at(b)) },
		take:    func(into, from *S) { *at(into) = *at(from) },
	}
	s.join = s.take
	if k.join != nil {
		s.joins = true
		s.join = func(into, from *S) { *at(into) = k.join(*at(into), *at(from)) }
	}
	return s
}

// byProfile marks a key whose value a profile may give.
func (s setting[S]) byProfile() setting[S] {
	s.profiled = true
	return s
}

const (
	mostTokens = 1_000_000
	mostHits   = 1000
	pinPrefix  = "catalog.pins."
)

// settings lists every key of ken.yaml, in the order in which people read them.
func settings() []setting[Config] {
	return slices.Concat(modelSettings(), capabilitiesSettings(), catalogSettings(), discoverySettings(), policySettings(),
		mcpSettings(), chatSettings(), limitsSettings(), sandboxSettings(), toolSettings(), recordSettings(), experimentSettings(), serveSettings(), storeSettings())
}

func experimentSettings() []setting[Config] {
	return []setting[Config]{
		entry("experiment.name", "A name for the comparison of this configuration, for half of the sessions, with that of config.",
			func(c *Config) *string { return &c.Experiment.Name }, text(nil)),
		entry("experiment.config", "The ken.yaml of the other half. Nothing is compared while one of the two is empty.",
			func(c *Config) *string { return &c.Experiment.Config }, path()),
	}
}

func storeSettings() []setting[Config] {
	return []setting[Config]{
		entry(storeKey, "Where state is kept: empty for a file in the state directory, or postgres://user@host/database.",
			func(c *Config) *string { return &c.Store }, address()),
	}
}

func capabilitiesSettings() []setting[Config] {
	return []setting[Config]{
		entry("capabilities.enabled", "Show capability cards at all.",
			func(c *Config) *bool { return &c.Capabilities.Enabled }, boolean()),
		entry("capabilities.maxTokens", "The most tokens that all cards of one prompt may take.",
			func(c *Config) *int { return &c.Capabilities.MaxTokens }, whole(0, mostTokens)).byProfile(),
		entry("capabilities.confidenceThreshold", "From 0 to 1, in place of every card's own threshold; null leaves each its own.",
			func(c *Config) **float64 { return &c.Capabilities.ConfidenceThreshold }, optionalFraction()),
		entry("capabilities.forceInclude", "Ids of cards that are always shown.",
			func(c *Config) *[]string { return &c.Capabilities.ForceInclude }, texts("ids", subset, nil)),
		entry("capabilities.exclude", "Ids of cards that are never shown; this wins over forceInclude.",
			func(c *Config) *[]string { return &c.Capabilities.Exclude }, texts("ids", anything[[]string], union)),
		entry("capabilities.scorer", "How a card's relevance is judged: evidence, or the formula of the seed (seed).",
			func(c *Config) *Scorer { return &c.Capabilities.Scorer }, word(ScorerEvidence, ScorerSeed).fixed()).byProfile(),
		entry("capabilities.budgetPolicy", "What does not fit is passed over for what does (skip), or is where it ends (stop).",
			func(c *Config) *BudgetPolicy { return &c.Capabilities.BudgetPolicy }, word(BudgetStop, BudgetSkip)).byProfile(),
		entry("capabilities.rollout", "Where what was found goes into prompts: full (everywhere), soft (some sessions) or monitor (nowhere; it is logged).",
			func(c *Config) *Rollout { return &c.Capabilities.Rollout }, word(RolloutMonitor, RolloutSoft, RolloutFull)),
		sessionTypes(entry("capabilities.rolloutSessionTypes", "The types of session that soft means, as in [main, isolated].",
			func(c *Config) *[]string { return &c.Capabilities.RolloutSessionTypes }, texts("session types", nil, nil))),
		entry("capabilities.killSwitch", "When cards trigger too often: warn, disable (show no more) or off.",
			func(c *Config) *KillSwitch { return &c.Capabilities.KillSwitch }, word(KillSwitchDisable, KillSwitchWarn, KillSwitchOff)),
		entry("capabilities.logLevel", "What is logged of the cards shown: none, summary or detailed.",
			func(c *Config) *LogLevel { return &c.Capabilities.LogLevel }, word(LogDetailed, LogSummary, LogNone)),
		entry("capabilities.allowWorkspaceCards", "Let texts that came with a project, or from an address, into the prompt.",
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

func catalogSettings() []setting[Config] {
	return []setting[Config]{
		entry("catalog.starter", "The built-in catalog: auto (only while you have no tools of your own), on or off.",
			func(c *Config) *Starter { return &c.Catalog.Starter }, word(StarterOff, StarterAuto, StarterOn)),
		entry("catalog.sources", "More sources, each with one of path, url and database, as in [{name: team, path: ~/team}].",
			func(c *Config) *[]Source { return &c.Catalog.Sources }, sources()),
		entry("catalog.watch", "Read files again when they change.",
			func(c *Config) *bool { return &c.Catalog.Watch }, boolean()),
		entry("catalog.debounce", "How long a changed file must be quiet before it is read.",
			func(c *Config) *time.Duration { return &c.Catalog.Debounce }, duration(time.Millisecond, time.Minute, noLess)),
		entry("catalog.poll", "How often files are looked at where the system cannot tell of changes.",
			func(c *Config) *time.Duration { return &c.Catalog.Poll }, duration(100*time.Millisecond, time.Hour, noLess)),
		entry("catalog.compatibilityPaths", "Read the directories of other programs too, such as .claude/skills.",
			func(c *Config) *bool { return &c.Catalog.CompatibilityPaths }, boolean()),
		entry("catalog.pins", `Quarantined capabilities that you have looked at, by id, with their hash, as in {"tool:x": "sha256:…"}.`,
			func(c *Config) *map[capability.ID]string { return &c.Catalog.Pins }, pins()),
		entry("catalog.sanitizer", "Suspicious text is shown for what it is (reveal), or treated by the rules of the seed (seed).",
			func(c *Config) *Sanitizer { return &c.Catalog.Sanitizer }, word(SanitizeReveal, SanitizeSeed).fixed()),
	}
}

func discoverySettings() []setting[Config] {
	return []setting[Config]{
		entry("discovery.profile", "The values of what is not set here: standard, lean, minimal, full or seed.",
			func(c *Config) *Profile { return &c.Discovery.Profile }, profileKind()),
		entry("discovery.tier0TokenBudget", "The most tokens of the map that is always shown.",
			func(c *Config) *int { return &c.Discovery.Tier0TokenBudget }, whole(0, mostTokens)),
		entry("discovery.tier1TokenBudget", "The most tokens of the briefs of a turn.",
			func(c *Config) *int { return &c.Discovery.Tier1TokenBudget }, whole(0, mostTokens)),
		entry("discovery.tier2TokenBudget", "The most tokens of the full texts of a turn.",
			func(c *Config) *int { return &c.Discovery.Tier2TokenBudget }, whole(0, mostTokens)).byProfile(),
		entry("discovery.totalTokenBudget", "The most tokens of all tiers together.",
			func(c *Config) *int { return &c.Discovery.TotalTokenBudget }, whole(0, mostTokens)).byProfile(),
		entry("discovery.maxTokenBudget", "What totalTokenBudget may grow to in a long conversation; 0 means that it does not.",
			func(c *Config) *int { return &c.Discovery.MaxTokenBudget }, whole(0, mostTokens)),
		entry("discovery.tier1TopK", "The most briefs of a turn.",
			func(c *Config) *int { return &c.Discovery.Tier1TopK }, whole(0, mostHits)).byProfile(),
		entry("discovery.tier2TopK", "The most full texts of a turn.",
			func(c *Config) *int { return &c.Discovery.Tier2TopK }, whole(0, mostHits)).byProfile(),
		entry("discovery.stickyTopK", "How many capabilities used in the last turns stay shown.",
			func(c *Config) *int { return &c.Discovery.StickyTopK }, whole(0, mostHits)),
		entry("discovery.tier1MinRelevance", "The least chance, from 0 to 1, that anything found fits; below it nothing is shown.",
			func(c *Config) *float64 { return &c.Discovery.Tier1MinRelevance }, fraction(noLess)),
		entry("discovery.tier1TailRelevance", "The least relevance, from 0 to 1, of a brief after the first.",
			func(c *Config) *float64 { return &c.Discovery.Tier1TailRelevance }, fraction(noLess)).byProfile(),
		entry("discovery.tier2MinRelevance", "The least relevance, from 0 to 1, of what is shown in full, the best excepted.",
			func(c *Config) *float64 { return &c.Discovery.Tier2MinRelevance }, fraction(noLess)).byProfile(),
		entry("discovery.useGraphReranking", "Raise what is related to the best hits.",
			func(c *Config) *bool { return &c.Discovery.UseGraphReranking }, boolean()),
		entry("discovery.graphBoostFactor", "By how much, from 0 to 1.",
			func(c *Config) *float64 { return &c.Discovery.GraphBoostFactor }, fraction(noMore)),
		entry("discovery.graphLiteral", "By the seed's literal graph algorithm.",
			func(c *Config) *bool { return &c.Discovery.GraphLiteral }, boolean().fixed()).byProfile(),
		entry("discovery.promptMode", "What is shown: full, compact (short briefs), names (of briefs; no texts) or lazy (the map alone).",
			func(c *Config) *PromptMode { return &c.Discovery.PromptMode }, word(PromptLazy, PromptNames, PromptCompact, PromptFull)),
		entry("discovery.tokenizer", "How tokens are counted: o200k, estimate (for other models) or chars4 (four characters are one).",
			func(c *Config) *Tokenizer { return &c.Discovery.Tokenizer }, word(TokenizerO200k, TokenizerEstimate, TokenizerChars4).fixed()),
		agentsOfProject(entry("discovery.agents", "What else holds for an agent, as in {helper: {profile: lean, forceInclude: [a], exclude: [b]}}.",
			func(c *Config) *map[string]Agent { return &c.Discovery.Agents }, agents())),
		entry("discovery.collectionName", "The name of the file in which the index is cached.",
			func(c *Config) *string { return &c.Discovery.CollectionName }, text(checkCollection)),
		entry("discovery.embeddingModelId", "The embedding model: empty for the one inside the program, none for words alone, or one of the service at embeddingUrl.",
			func(c *Config) *string { return &c.Discovery.EmbeddingModelID }, text(nil)),
		entry("discovery.embeddingUrl", "Where a service with OpenAI's embeddings interface answers, as in http://127.0.0.1:11434/v1. It is sent messages and texts of capabilities.",
			func(c *Config) *string { return &c.Discovery.EmbeddingURL }, text(nil)),
		entry("discovery.embeddingKeyEnv", "The environment variable with the service's key.",
			func(c *Config) *string { return &c.Discovery.EmbeddingKeyEnv }, text(nil)),
		entry("discovery.embeddingTimeout", "How long a message's vector is waited for before words alone answer.",
			func(c *Config) *time.Duration { return &c.Discovery.EmbeddingTimeout }, duration(time.Millisecond, 10*time.Second, noMore)),
	}
}

func checkCollection(s string) (fix string, err error) {
	const longest = 128
	if len(s) > longest || !plainScalar(s) || strings.ContainsAny(s, "/~@+:") || s[0] == '.' {
		return "write a name of letters, digits, _, . and -, such as capability_index", errors.New("is not a name")
	}
	return "", nil
}

func checkAddr(s string) (fix string, err error) {
	host, port, err := net.SplitHostPort(s)
	switch n, perr := strconv.ParseUint(port, 10, 16); {
	case err != nil || perr != nil || strconv.FormatUint(n, 10) != port || strings.ContainsAny(host, " \t/@"):
		return "write it as 127.0.0.1:7777", errors.New("is not host:port")
	case host == "":
		return "write 127.0.0.1:" + port, errors.New("names no host")
	}
	return "", nil
}

// Loopback reports whether a host can be reached from this machine only.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// settingOf finds the setting of a key, for the operation op.
func settingOf(op, key string) (setting[Config], error) {
	all := settings()
	i := slices.IndexFunc(all, func(s setting[Config]) bool { return s.name == key })
	if i >= 0 {
		return all[i], nil
	}
	var names, within []string
	for _, s := range all {
		if strings.HasPrefix(key, s.name+".") {
			return setting[Config]{}, invalid(op, key, "there is no such key", s.name+" is one value; name it whole")
		}
		names = append(names, s.name)
		if rest, ok := strings.CutPrefix(s.name, key+"."); ok {
			within = append(within, rest)
		}
	}
	if len(within) > 0 {
		return setting[Config]{}, invalid(op, key, "this is a section, not a key", "name one of its keys: "+strings.Join(within, ", "))
	}
	return setting[Config]{}, invalid(op, key, "there is no such key", meant(key, names))
}

// meant tells somebody who typed a key that there is not what to type.
func meant(key string, names []string) string {
	const all = "ken config get lists all"
	if inside := strings.Split(key, "."); len(inside) > 1 && (inside[0] == "tools" || inside[0] == "global") && !slices.Contains(inside, "") && !strings.ContainsFunc(key, oddInKey) {
		// A path of tool-access.json, as refusals name their rules.
		return fmt.Sprintf("it is a part of %s, which is set as a whole: ken config set %[1]s '{%s: VALUE%s'", accessKey, strings.Join(inside, ": {"), strings.Repeat("}", len(inside)))
	}
	if guess := hint(key, "", names, names); !strings.HasPrefix(guess, knownKeys) {
		return guess
	}
	near := likely(key, names)
	if len(near) == 0 {
		return all
	}
	return "the nearest are " + strings.Join(near, ", ") + "; " + all
}

func oddInKey(r rune) bool {
	return r != '.' && r != '_' && r != '-' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
}

// likely gives the few keys that hold most words of one that there is not, and
// of those the most like it first. Where none holds any, it gives those that
// are spelled most like it.
func likely(key string, names []string) []string {
	const most, longest, shortest = 8, 64, 3 // names given, bytes of a key that are looked at, letters of a word
	if len(key) > longest {
		return nil
	}
	words := strings.FieldsFunc(strings.ToLower(key), func(r rune) bool { return r == '.' || r == '_' || r == '-' || r == ' ' })
	type guess struct {
		name         string
		words, edits int
	}
	var guesses []guess
	for _, name := range names {
		g := guess{name: name, edits: yamldoc.Distance(key, name)}
		for _, word := range words {
			if word = strings.TrimSuffix(word, "s"); len(word) >= shortest && hasWord(name, word) {
				g.words++
			}
		}
		if g.words > 0 || g.edits <= len(key)/2 {
			guesses = append(guesses, g)
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int {
		return cmp.Or(cmp.Compare(b.words, a.words), cmp.Compare(a.edits, b.edits), strings.Compare(a.name, b.name))
	})
	var out []string
	for _, g := range guesses[:min(len(guesses), most)] {
		out = append(out, g.name)
	}
	return out
}

// hasWord reports whether a word of a key begins with another, in lower case:
// maxTimeout has timeout, and catalog has no log.
func hasWord(name, word string) bool {
	for i := range len(name) - len(word) + 1 {
		begins := i == 0 || name[i-1] == '.' || name[i] >= 'A' && name[i] <= 'Z'
		if begins && strings.EqualFold(name[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// knownKeys begins the hint that has no guess.
const knownKeys = "known keys here: "

// hint names the key that was meant, or those that there are. known are the
// keys that may stand there, all the full names of every key.
func hint(key, prefix string, known, all []string) string {
	if near := yamldoc.Nearest(key, known); near != "" {
		return "did you mean " + prefix + near + "?"
	}
	for _, name := range all {
		leaf := name[strings.LastIndexByte(name, '.')+1:]
		if strings.EqualFold(leaf, key) {
			return "did you mean " + name + "?"
		}
	}
	return knownKeys + strings.Join(known, ", ")
}

func invalid(op, key, cause, fix string) error {
	return &capability.Error{Kind: capability.Invalid, Op: op, Target: plain(key), Err: errors.New(cause), Fix: fix}
}

// plain makes a word from a file fit for a message: one that is not plain
// printable text is quoted, a long one is shortened and says so.
func plain(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		s = fmt.Sprintf("%s…(%d characters)", string(r[:most]), len(r))
	}
	if s == "" || strings.ContainsFunc(s, unseen) {
		return strconv.QuoteToASCII(s)
	}
	if quoted := strconv.Quote(s); quoted != `"`+s+`"` {
		return quoted
	}
	return s
}
