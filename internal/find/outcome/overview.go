package outcome

import (
	"time"

	"ken/capability"
)

// A Price is what a model costs, in dollars for a million tokens.
type Price struct {
	Model      string  `json:"model"`
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CachedRead float64 `json:"cachedRead"`
	CacheWrite float64 `json:"cacheWrite"`
	Source     string  `json:"source"`
	Own        bool    `json:"own"` // a person wrote it

	// Life is how long a provider keeps a prefix after its last use; zero is
	// taken as for ever.
	Life time.Duration `json:"-"`

	// Window is how many tokens the model holds; zero: not known. It counts
	// where there is no price, too.
	Window int `json:"-"`
}

// An InsightsConfig says what [Insights] is about.
type InsightsConfig struct {
	Since, Until time.Time      // Until is left out; zero: to the end
	Zone         *time.Location // of days; nil: UTC
	Tokenizer    string         // what tokens were counted with, for showing

	// Price returns what a model costs, by the name that events have, as prices
	// are now. Nil, and false: it is not known.
	Price func(model string) (Price, bool)
}

// An Overview is what Ken did in a span of time and what that saved.
type Overview struct {
	Since        time.Time       `json:"since"`
	Until        time.Time       `json:"until"`
	Tokenizer    string          `json:"tokenizer"`
	Prices       []Price         `json:"prices"` // of the models that were used
	Totals       Bill            `json:"totals"`
	Days         []Day           `json:"days"` // on which something happened, the oldest first
	Latency      Latency         `json:"latency"`
	Refusals     []Refusal       `json:"refusals"`     // the most frequent first
	Capabilities []CapabilityUse `json:"capabilities"` // the most used first
	Notes        []string        `json:"notes"`        // what is assumed, and what could not be read
}

// A Bill compares what was sent with all schemas in the same requests. Tokens
// are summed over requests: what stands in a prompt is sent with each.
//
// ShownTokens, AllTokens, SavedTokens and the money are of the turns in which
// the size of all schemas was known; the money also wants a price.
type Bill struct {
	Turns    int `json:"turns"` // that asked a model
	Requests int `json:"requests"`

	ShownTokens int `json:"shownTokens"`
	AllTokens   int `json:"allTokens"`
	SavedTokens int `json:"savedTokens"` // negative where all would have been less

	Paid    *float64 `json:"paid,omitempty"` // nil: no price is known
	AllPaid *float64 `json:"allPaid,omitempty"`
	Saved   *float64 `json:"saved,omitempty"`

	CachedRead  int `json:"cachedRead"`
	CachedWrite int `json:"cachedWrite"`
	Plain       int `json:"plain"`
	Output      int `json:"output"`

	Selections int `json:"selections"` // of one capability in one turn
	Used       int `json:"used"`       // of these
	Calls      int `json:"calls"`      // that were made
	Failed     int `json:"failed"`     // of these
	Refused    int `json:"refused"`    // that were not made
}

// A Day is the bill of one.
type Day struct {
	Day string `json:"day"` // 2026-11-15
	Bill
}

// Latency has histograms. Counts[i] is of what took at most Bounds[i]; there is
// one count more than bounds, of what took longer.
type Latency struct {
	Bounds []int64   `json:"bounds"` // microseconds, of Find and Embed
	Find   []int     `json:"find"`
	Embed  []int     `json:"embed"`
	Call   Histogram `json:"call"`
	Turn   Histogram `json:"turn"`
}

// A Histogram has its own bounds.
type Histogram struct {
	BoundsMS []int64 `json:"boundsMS"`
	Counts   []int   `json:"counts"`
}

// A Refusal is how often a rule forbade a call.
type Refusal struct {
	Rule  string `json:"rule"`
	Count int    `json:"count"`
}

// A CapabilityUse is what became of one capability.
type CapabilityUse struct {
	ID       capability.ID `json:"id"`
	Shown    int           `json:"shown"` // where it can be judged, see the package's words
	Used     int           `json:"used"`  // calls that worked; of a card or another text: showings that were of use
	Failed   int           `json:"failed"`
	Refused  int           `json:"refused"`
	Searched int           `json:"searched"`
	Tokens   int           `json:"tokens"`          // of what was shown, each showing once
	P50MS    *float64      `json:"p50MS,omitempty"` // of calls

	took []int64
}
