package card

import (
	"time"

	"ken/capability"
)

// Bounds of what is read. Text beyond them does not count.
const (
	// MaxMessages is how many messages count, the newest ones.
	MaxMessages = 5

	// MaxMessage is how many bytes of one message count: of a longer one, the
	// first and the last half of that. MaxSeedMessage is the same for the
	// scorer "seed". Neither is reported by Select; who must say that a
	// message was cut compares its length.
	MaxMessage     = 4 << 10
	MaxSeedMessage = 64 << 10

	// MaxKeyword and MaxRegex are the most bytes of one keyword, MaxKeywords
	// the most keywords of one card, and MaxRegexes the most regular
	// expressions of one Set, which see the last MaxRegexText bytes of a
	// message.
	MaxKeyword   = 100
	MaxRegex     = 200
	MaxKeywords  = 200
	MaxRegexes   = 16
	MaxRegexText = 512
)

// DefaultThreshold is used instead of a threshold that is NaN.
const DefaultThreshold = 0.6

// A Message is one message of a conversation, without what Ken itself added to
// it: a card's own text would ask for the card again.
type Message struct {
	Role string // "user" (also when empty), "assistant" or "tool"; others do not count
	Text string
}

// A Context is what triggers look at. Select only reads it.
type Context struct {
	// Messages has the oldest first and the current one last. The scorer
	// "seed" takes the last [MaxMessages] of them, "evidence" the last
	// [MaxMessages] that the user or the assistant wrote.
	Messages []Message

	Scope      capability.Scope
	RouterTags []string

	// Now is the time of day, in its own location. When it is zero the time
	// is unknown, and a card that asks for one does not match.
	Now time.Time

	// Shown are the cards shown on the turn before. They stay at half their
	// threshold, so that a card does not come and go with every message.
	Shown []capability.ID
}

// A Scorer returns a card's relevance, 0–1. Values outside are clamped, and NaN
// counts as 0. It must not change its arguments and may be called from several
// goroutines.
type Scorer func(c *capability.Capability, x Context) float64

// Config says how to judge. The zero value is the default.
type Config struct {
	// Scorer is "evidence", also when empty, or "seed". Any other word means
	// evidence; the reader of the configuration refuses those.
	Scorer string

	// Custom, when not nil, takes the place of both, and of router tags too:
	// it finds them in the Context. Filters are applied before it.
	Custom Scorer

	// Threshold, when not nil, takes the place of every card's own.
	Threshold *float64
}

// ScorerSeed and ScorerEvidence are the built-in scorers.
const (
	ScorerSeed     = "seed"
	ScorerEvidence = "evidence"
)

// Asked is a card that asks to be shown, or would have with a lower threshold
// or in another session.
type Asked struct {
	Ordinal int // in the list that was compiled
	ID      capability.ID

	// Score is what was compared with Threshold, both 0–1. A card that a
	// filter kept out was not scored and has 0. SeedScore is what the seed's
	// formula returns for the same messages.
	Score, SeedScore, Threshold float64

	Priority int
	Matched  []string // the card's keywords that matched, as it writes them; untrusted
	Why      string   // what called for the card, or what kept it out; untrusted
	Passed   bool
}

// A Set is the cards of one snapshot, compiled once. It never changes and may
// be used from several goroutines. A nil Set holds no cards.
type Set struct {
	cards    []compiled
	byOrd    map[int]int32      // ordinal to card
	tags     map[string][]int32 // folded router tag to cards
	problems []capability.Problem

	words    dictionaries
	finder   automaton
	patterns []pattern
	concepts []concept
	regexes  []expression

	scratch *scratchPool
}

// compiled is one card as Select needs it.
type compiled struct {
	ordinal  int
	from     *capability.Capability
	keywords []keyword
	concepts []int32 // distinct, in the order of the keywords
	allFaint bool    // nothing but words like "the"
	tags     []string
	filter   filter
}

// A keyword is one keyword of a card: as it was written, what it means to the
// evidence scorer, and what the seed's formula looks for.
type keyword struct {
	text    string
	concept int32
	pattern int32 // -1 for a regular expression
}

// Len returns how many cards the set holds.
func (s *Set) Len() int {
	if s == nil {
		return 0
	}
	return len(s.cards)
}

// Problems lists the triggers that cannot be used, in the order of the
// capabilities. The caller must not change it.
func (s *Set) Problems() []capability.Problem {
	if s == nil {
		return nil
	}
	return s.problems
}
