package show

import (
	"ken/capability"
)

// A Tier is a part of what is shown.
type Tier string

const (
	TierMap    Tier = "map"
	TierBriefs Tier = "briefs"
	TierCards  Tier = "cards"
	TierFulls  Tier = "fulls"
)

// A Mode says in which form capabilities are shown.
type Mode string

const (
	Full    Mode = ""        // everything
	Compact Mode = "compact" // briefs without parameters and requirements
	Names   Mode = "names"   // briefs are names; no cards, no full texts
	Lazy    Mode = "lazy"    // the map alone
)

// A Budget says how many tokens each tier may take, and all of them together.
// Zero, or less, shows nothing of that tier.
type Budget struct {
	Map    int // discovery.tier0TokenBudget; AGENTS.md may take as much again
	Briefs int // discovery.tier1TokenBudget
	Fulls  int // discovery.tier2TokenBudget
	Cards  int // capabilities.maxTokens
	Total  int // discovery.totalTokenBudget

	// Ceiling is what Total may grow to in a long conversation, see [Budget.For].
	// Less than Total means Total.
	Ceiling int

	// Stop ends a tier at the first item that does not fit whole. Otherwise
	// pages are shortened, and what does not fit is passed over for what does.
	Stop bool

	Mode Mode
}

// DefaultBudget is that of the seed documents.
func DefaultBudget() Budget {
	return Budget{Map: 200, Briefs: 800, Fulls: 2000, Cards: 1500, Total: 3000}
}

// LeanBudget is [DefaultBudget] within the total that the seed documents promise.
func LeanBudget() Budget {
	b := DefaultBudget()
	b.Total = 1850
	return b
}

// A conversation of shortTalk tokens or fewer has the budget as it is
// configured, one of longTalk or more has twice that.
const (
	shortTalk = 8_000
	longTalk  = 64_000
)

// For returns the budget for a conversation of so many tokens: what is said about
// capabilities may grow with what is said otherwise, on a straight line from
// once to twice between 8,000 and 64,000 tokens. Briefs, cards and full texts
// grow, each up to the total; the total grows up to Ceiling; the map, which
// stands at the start of the prompt, stays the same. A longer conversation never
// has less.
func (b Budget) For(conversation int) Budget {
	over := min(max(conversation-shortTalk, 0), longTalk-shortTalk)
	grow := func(n, most int) int {
		// A budget of billions means no limit at all and must not overflow.
		if n <= 0 || n >= most || n > 1<<40 {
			return n
		}
		return min(n+n*over/(longTalk-shortTalk), most)
	}
	b.Total = grow(b.Total, b.Ceiling)
	b.Briefs = grow(b.Briefs, b.Total)
	b.Cards = grow(b.Cards, b.Total)
	b.Fulls = grow(b.Fulls, b.Total)
	return b
}

// Tokens are the sums of what is shown.
type Tokens struct {
	Document int `json:"document,omitempty"`
	Map      int `json:"map"`
	Briefs   int `json:"briefs"`
	Cards    int `json:"cards"`
	Fulls    int `json:"fulls"`
	Total    int `json:"total"`
}

// A Skip is something that was to be shown and is not.
type Skip struct {
	ID     capability.ID `json:"id"` // empty for AGENTS.md
	Tier   Tier          `json:"tier"`
	Reason string        `json:"reason"` // names the setting that decides
	Weak   bool          `json:"-"`      // its relevance is below discovery.tier1TailRelevance
	Score  float64       `json:"score,omitempty"`
	Wanted int           `json:"wanted"` // tokens
	Had    int           `json:"had"`
}
