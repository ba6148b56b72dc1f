// Package discover picks the few capabilities that matter for a message, and
// says why.
//
// A [Finder] serves one catalog. [Finder.See] narrows a snapshot to what a
// viewer may see; [Finder.Find] takes a message through its fixed order:
// search, relations, cards, budgets. It asks no model and keeps nothing
// between messages but what can be made again: the same view, query and
// embedder give the same bytes. Whatever breaks on the way makes the answer
// less, and says so, and never fails it.
package discover

import (
	"time"

	"ken/capability"
	"ken/internal/find/card"
	"ken/internal/find/graph"
	"ken/internal/find/show"
)

// Config says how much is looked for and shown. The zero value shows nothing;
// see [Defaults].
type Config struct {
	TopK    int // briefs of what was found
	FullK   int // of these in full
	StickyK int // briefs besides: what they need, what was used lately, what is pinned

	// MinRelevance is the least probability, 0–1, that anything found is what
	// was asked for; below it nothing is shown. TailRelevance is the least
	// probability of a brief after the first.
	MinRelevance  float64
	TailRelevance float64

	// LowConfidence is the probability that anything found is what was asked
	// for below which only the best hit is shown, in a brief that is marked.
	// Without a MinRelevance it has no effect.
	LowConfidence float64

	// FullRelevance is the least probability of what is shown in full, the
	// best hit excepted.
	FullRelevance float64

	Graph  graph.Config
	Budget show.Budget

	Cards bool // show cards at all
	Card  card.Config

	ForceInclude []capability.ID
	Exclude      []capability.ID

	// Priors are what was learned of capabilities, in log-odds. They order
	// what is relevant and make nothing relevant.
	Priors map[capability.ID]float64

	// EmbedTimeout is how long the vector of a message is waited for.
	EmbedTimeout time.Duration
}

// Defaults are the values of the seed design.
func Defaults() Config {
	return Config{
		TopK: 5, FullK: 2, StickyK: 3, MinRelevance: 0.3, LowConfidence: 0.6, TailRelevance: 0.02, FullRelevance: 0.1,
		Graph: graph.Default(), Budget: show.DefaultBudget(), Cards: true, EmbedTimeout: 50 * time.Millisecond,
	}
}

// A Query is a message and where it comes from.
type Query struct {
	Text string

	// Before are the messages before it, the oldest first. Four of them count,
	// the less the older they are.
	Before []card.Message

	Scope      capability.Scope
	RouterTags []string
	Now        time.Time // for cards with a time of day; zero: not known

	Used   []capability.ID // in the last turns; they stay in sight
	Pinned []capability.ID // always in sight
	Shown  []capability.ID // cards of the turn before

	// Conversation is how many tokens have been said so far, for budgets that
	// grow with it.
	Conversation int

	Filter   Filter
	Override Override

	// AmongCards finds cards by their words too. Otherwise their triggers
	// alone decide.
	AmongCards bool
}

// A Filter narrows one query. Its zero value narrows nothing. It holds for
// everything that is shown but the map: for what was found, for what that
// needs, and for cards.
type Filter struct {
	Kinds         []capability.Kind
	Category      string
	OnlyAvailable bool
	Exclude       []capability.ID
}

func (f Filter) empty() bool {
	return len(f.Kinds) == 0 && f.Category == "" && !f.OnlyAvailable && len(f.Exclude) == 0
}

// A Selection is what would be shown for one message, and why.
type Selection struct {
	Query string `json:"query"`
	show.Shown

	// Fit is the probability that one of the first five found is what was
	// asked for. Nearest are the best of them where that was too little to
	// show anything.
	Fit     float64   `json:"fit"`
	Nearest []Nearest `json:"nearest,omitempty"`

	// LowConfidence says that Fit was below discovery.lowConfidence: only the
	// best hit is shown, in a brief that is marked.
	LowConfidence bool `json:"low_confidence,omitempty"`

	// Ranking is what was found, whatever was shown of it: the best hits, what
	// these need, then the rest.
	Ranking []Nearest `json:"-"`

	// SeedScores are what the seed's formula gives to the cards shown.
	SeedScores []Nearest `json:"-"`

	// Abilities is set if the message asks what Ken can do: the map is the
	// answer.
	Abilities bool `json:"abilities,omitempty"`

	TookUS   int64    `json:"took_us"`
	EmbedUS  int64    `json:"embed_us,omitempty"`
	GraphUS  int64    `json:"graph_us"`
	Budget   int      `json:"budget"` // the most tokens that might have been shown
	Found    int      `json:"found"`  // hits looked at closely enough to say why they are not shown; at most 24
	Indexed  int      `json:"indexed"`
	Degraded []string `json:"degraded"` // what did not work, and was done without
}

// Nearest is a capability and how likely it is what was asked for.
type Nearest struct {
	ID    capability.ID `json:"id"`
	Score float64       `json:"score"`
}

// Abstained reports whether nothing fitted. It is false for a question about
// abilities, which the map answers.
func (s *Selection) Abstained() bool {
	return !s.Abilities && (len(s.Nearest) > 0 || len(s.Ranking) == 0)
}

// Empty is the selection for a view that holds nothing.
func Empty(text string) Selection {
	return Selection{Query: text, Shown: listed(show.Assemble(show.Budget{}, show.Input{})), Degraded: []string{}}
}

// listed makes empty lists of absent ones, for those who read the selection as
// JSON.
func listed(s show.Shown) show.Shown {
	for _, pieces := range []*[]show.Piece{&s.Briefs, &s.Cards, &s.Fulls} {
		if *pieces == nil {
			*pieces = []show.Piece{}
		}
	}
	if s.Skipped == nil {
		s.Skipped = []show.Skip{}
	}
	return s
}

// An Override changes the configuration for one query. Nil fields change
// nothing.
type Override struct {
	TopK          *int     `json:"tier1TopK,omitempty"`
	FullK         *int     `json:"tier2TopK,omitempty"`
	MinRelevance  *float64 `json:"tier1MinRelevance,omitempty"`
	TailRelevance *float64 `json:"tier1TailRelevance,omitempty"`
	MapTokens     *int     `json:"tier0TokenBudget,omitempty"`
	BriefTokens   *int     `json:"tier1TokenBudget,omitempty"`
	FullTokens    *int     `json:"tier2TokenBudget,omitempty"`
	CardTokens    *int     `json:"maxTokens,omitempty"`
	TotalTokens   *int     `json:"totalTokenBudget,omitempty"`
	Graph         *bool    `json:"useGraphReranking,omitempty"`
	Boost         *float64 `json:"graphBoostFactor,omitempty"`
	FullRelevance *float64 `json:"tier2MinRelevance,omitempty"`
	StickyK       *int     `json:"stickyTopK,omitempty"`

	// Learned is how much of what was learned counts: 0 nothing, 1 as it was
	// learned. No key of ken.yaml says it.
	Learned *float64 `json:"learnedWeight,omitempty"`
}

// Apply returns the changed configuration.
func (o Override) Apply(c Config) Config {
	set(&c.TopK, o.TopK)
	set(&c.FullK, o.FullK)
	set(&c.MinRelevance, o.MinRelevance)
	set(&c.TailRelevance, o.TailRelevance)
	set(&c.Budget.Map, o.MapTokens)
	set(&c.Budget.Briefs, o.BriefTokens)
	set(&c.Budget.Fulls, o.FullTokens)
	set(&c.Budget.Cards, o.CardTokens)
	set(&c.Budget.Total, o.TotalTokens)
	set(&c.Graph.Use, o.Graph)
	set(&c.Graph.Boost, o.Boost)
	set(&c.FullRelevance, o.FullRelevance)
	set(&c.StickyK, o.StickyK)
	c.Priors = weighed(c.Priors, o.Learned)
	return c
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}
