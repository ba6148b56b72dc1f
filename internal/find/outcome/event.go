package outcome

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/untrusted"
)

// A Kind says what an event reports.
type Kind string

const (
	Selected  Kind = "selected"  // capabilities were chosen for a message
	Used      Kind = "used"      // a capability was called and answered
	Failed    Kind = "failed"    // a capability was called and the call failed
	Refused   Kind = "refused"   // a capability was called and a rule forbade it
	Ended     Kind = "turn"      // a turn of a conversation is over
	Searched  Kind = "searched"  // discover_capabilities led to a capability
	Described Kind = "described" // describe_capability was asked about one
	Alerted   Kind = "alerted"   // the kill switch warned
	Lifted    Kind = "lifted"    // a person reset the kill switch
)

// ReadText is the Detail of a Described event about a text, such as a skill,
// instead of a tool.
const ReadText = "text"

// A Tier is how much of a capability was chosen for the prompt.
type Tier string

const (
	TierMap   Tier = "map"   // named, no more
	TierBrief Tier = "brief" // one line
	TierCard  Tier = "card"  // a card's body
	TierFull  Tier = "full"  // everything
)

// An Event is one line of the log. It never holds the text of a message. A
// reader passes over kinds that it does not know: a newer Ken wrote them.
//
// Each call makes one event, Used, Failed or Refused. Each search makes one, whose ID is
// the capability that it led to: the one then called or described, else the
// best found, empty when nothing was found.
type Event struct {
	Time    time.Time     `json:"time"` // Append fills in a zero
	Kind    Kind          `json:"kind"`
	Session string        `json:"session,omitempty"`
	Turn    string        `json:"turn,omitempty"`
	ID      capability.ID `json:"id,omitempty"`     // what an outcome is about
	Detail  string        `json:"detail,omitempty"` // of an alert or a lift: the words, the person; of Described: see ReadText

	// Triggered is how many cards triggered by themselves. Append counts it.
	Triggered int `json:"triggered,omitempty"`

	// What follows belongs to Selected events.

	SessionType string   `json:"sessionType,omitempty"`
	Tags        []string `json:"tags,omitempty"`
	Mode        Mode     `json:"mode,omitempty"`
	Experiment  string   `json:"experiment,omitempty"`
	Variant     string   `json:"variant,omitempty"`
	QueryHash   string   `json:"queryHash,omitempty"` // of [Log.Hash]

	// Injected says that the selection went into the prompt, except for the
	// items that are Held or There.
	Injected bool   `json:"injected"`
	Items    []Item `json:"items,omitempty"`
	Skipped  []Skip `json:"skipped,omitempty"`
	Tokens   Tokens `json:"tokens,omitzero"` // selected, held or not

	// AllToolTokens is what showing every capability would have cost in this turn, in
	// tokens of one request; 0 when not known. Ended events have it too.
	AllToolTokens int `json:"dump,omitempty"`

	// TookUS is how long it took to choose. Of Used and Failed it is how long
	// the call ran, of Ended how long the turn was.
	TookUS     int64 `json:"took_us,omitempty"`
	EmbedUS    int64 `json:"embed_us,omitempty"`
	GraphUS    int64 `json:"graph_us,omitempty"`
	Candidates int   `json:"candidates,omitempty"`
	Retrieved  int   `json:"retrieved,omitempty"`

	Degraded []string `json:"degraded,omitempty"`
	Error    string   `json:"error,omitempty"`

	// Tenant is whose session it is, of every event that has one. Append puts
	// it into the form of [TenantKey].
	Tenant string `json:"tenant,omitempty"`

	Rule string `json:"rule,omitempty"` // of Refused: what forbade it

	// What follows belongs to Ended events. Shown and Added are tokens of one
	// request: what stood in the prompt for capabilities when the turn ended,
	// and how much of that this turn put there.

	Model    string  `json:"model,omitempty"` // PROVIDER/NAME; empty: no model was asked
	End      string  `json:"end,omitempty"`   // why: answer, command, waiting, limit, aborted, failed
	Requests int     `json:"requests,omitempty"`
	Shown    int     `json:"shown,omitempty"`
	Added    int     `json:"added,omitempty"`
	Usage    Usage   `json:"usage,omitzero"`
	Cost     float64 `json:"cost,omitempty"` // in dollars, as it was reckoned then

	// Cut is how many items, skips, tags and notes were left out so that the
	// line keeps its bound. Append counts it.
	Cut int `json:"cut,omitempty"`
}

// An Item is one capability of a selection.
type Item struct {
	ID     capability.ID `json:"id"`
	Tier   Tier          `json:"tier"`
	Score  float64       `json:"score"`          // that it was chosen by
	Seed   float64       `json:"seed,omitempty"` // of a card: by the seed's formula
	Tokens int           `json:"tokens"`
	Forced bool          `json:"forced,omitempty"` // pinned or included by configuration: nothing triggered it
	Held   bool          `json:"held,omitempty"`   // chosen but kept out of the prompt
	There  bool          `json:"there,omitempty"`  // chosen but already in the prompt, so not sent again

	// Text says that it is something to read, such as a card or a skill, which
	// cannot be called. Names are the tools that it names, at most MostNames.
	Text  bool            `json:"text,omitempty"`
	Names []capability.ID `json:"names,omitempty"`
}

// MostNames is how many tools an [Item] names.
const MostNames = 16

// isText reports whether it is something to read. Older logs say so of cards by
// their tier alone.
func (it *Item) isText() bool { return it.Text || it.Tier == TierCard }

// A Skip is a capability that matched and was not chosen.
type Skip struct {
	ID     capability.ID `json:"id"`
	Reason string        `json:"reason"`
	Score  float64       `json:"score"`
	Seed   float64       `json:"seed,omitempty"`
	Tokens int           `json:"tokens,omitempty"` // tokens it needed, if the budget was too small
}

// Tokens are counts by tier.
type Tokens struct {
	Map    int `json:"map"`
	Briefs int `json:"briefs"`
	Cards  int `json:"cards"`
	Fulls  int `json:"fulls"`
	Total  int `json:"total"`
}

// Usage is what a model's provider counted over the requests of a turn. Input
// has all of it, read from the cache, written to it or neither.
type Usage struct {
	Input       int `json:"input"`
	Output      int `json:"output"`
	CachedRead  int `json:"cachedRead"`
	CachedWrite int `json:"cachedWrite"`
}

// TenantKey is how a tenant is written in events: as it is called or, where
// that is long or no text, by a hash, so that no two are written alike.
func TenantKey(name string) string {
	if len(name) <= maxTenant && utf8.ValidString(name) && !strings.HasPrefix(name, hashed) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hashed + hex.EncodeToString(sum[:])
}

const (
	maxTenant = 200 // bytes
	hashed    = "sha256:"
)

// triggered counts the cards that asked to be shown. Held ones count: if a
// stopped card counted as absent, stopping it would make it seem harmless.
func (e *Event) triggered() int {
	n := 0
	for _, it := range e.Items {
		if it.Tier == TierCard && !it.Forced {
			n++
		}
	}
	return n
}

// sent returns the tokens that went into the prompt.
func (e *Event) sent() int {
	if !e.Injected {
		return 0
	}
	n := e.Tokens.Total
	for _, it := range e.Items {
		if it.Held || it.There {
			n -= it.Tokens
		}
	}
	return max(n, 0)
}

const (
	maxLine  = 64 << 10 // bytes of a line, its end included
	maxNotes = 32       // tags, degraded parts
	maxWords = 300      // runes of a reason, an error, a tag
)

// encode writes e over line, as one line with its end, at most maxLine long. What does
// not fit is left out, skipped ones first, and counted in Cut.
func encode(line []byte, e Event) ([]byte, error) {
	if y := e.Time.Year(); y < 1 || y > 9999 {
		return nil, fmt.Errorf("the year %d has no place in a line", y)
	}
	e.Triggered = e.triggered()
	e.tidy()
	for {
		line = e.appendJSON(line[:0])
		if len(line) < maxLine {
			return append(line, '\n'), nil
		}
		if !e.shrink() {
			return nil, fmt.Errorf("a line of %d bytes, the bound is %d; shorten the session, turn or capability id", len(line), maxLine)
		}
	}
}

// tidy makes every value one that JSON can hold and bounds the texts. It
// replaces slices instead of changing them, for they are the caller's.
func (e *Event) tidy() {
	e.Error = words(e.Error)
	e.Detail = words(e.Detail)
	e.Tenant, e.Rule, e.Model, e.End = TenantKey(e.Tenant), words(e.Rule), words(e.Model), words(e.End)
	e.Cost = money(e.Cost)
	e.Tags = e.notes(e.Tags)
	e.Degraded = e.notes(e.Degraded)
	if slices.ContainsFunc(e.Items, func(it Item) bool { return it.Score != round(it.Score) || it.Seed != round(it.Seed) }) {
		e.Items = slices.Clone(e.Items)
		for i := range e.Items {
			e.Items[i].Score, e.Items[i].Seed = round(e.Items[i].Score), round(e.Items[i].Seed)
		}
	}
	if len(e.Skipped) > 0 {
		e.Skipped = slices.Clone(e.Skipped)
		for i := range e.Skipped {
			s := &e.Skipped[i]
			s.Score, s.Seed, s.Reason = round(s.Score), round(s.Seed), words(s.Reason)
		}
	}
}

func (e *Event) notes(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	if len(list) > maxNotes {
		e.Cut += len(list) - maxNotes
		list = list[:maxNotes]
	}
	list = slices.Clone(list)
	for i := range list {
		list[i] = words(list[i])
	}
	return list
}

// shrink leaves out something, the least needed first, and reports whether
// there was anything to leave out. Triggered was counted before.
func (e *Event) shrink() bool {
	total := len(e.Items) + len(e.Skipped)
	switch {
	case len(e.Skipped) > 0:
		e.Skipped = e.Skipped[:len(e.Skipped)/2]
	case slices.ContainsFunc(e.Items, inMap):
		e.Items = slices.DeleteFunc(slices.Clone(e.Items), inMap)
	default:
		e.Items = e.Items[:len(e.Items)/2]
	}
	left := len(e.Items) + len(e.Skipped)
	e.Cut += total - left
	return left < total
}

func inMap(it Item) bool { return it.Tier == TierMap }

// words keeps ordinary text as it is; anything else is revealed and bounded.
func words(s string) string {
	if s == "" {
		return ""
	}
	return untrusted.Line(s, maxWords)
}

// money keeps a millionth of a dollar, and no debts.
func money(x float64) float64 {
	if math.IsNaN(x) || x <= 0 {
		return 0
	}
	return math.Round(min(x, 1e9)*1e6) / 1e6
}

// round keeps four places, which is more than a score means; JSON knows no
// NaN and no infinity.
func round(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	if math.Abs(x) > 1e9 {
		return math.Copysign(1e9, x)
	}
	return math.Round(x*1e4) / 1e4
}
