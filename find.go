package ken

import (
	"context"
	"iter"
	"time"

	"ken/capability"
	"ken/internal/door"
)

// A Message is one message of a conversation. Its role is user, assistant or
// tool.
type Message struct{ Role, Text string }

// A Query is a message, where it comes from, and what to look among.
type Query struct {
	Message string
	Before  []Message // earlier messages, oldest first; the last four count

	Scope      capability.Scope // a message with a session is recorded
	RouterTags []string         // for cards
	Used       []capability.ID  // capabilities used in the last turns; they stay visible
	Pinned     []capability.ID  // always visible

	Kinds         []capability.Kind // none: all kinds
	Category      string            // empty: all categories
	OnlyAvailable bool              // leave out what cannot be used here
	Exclude       []capability.ID

	// Overrides change how to find, for this query only.
	Overrides Overrides

	// Conversation is the number of tokens of the conversation so far, for a
	// budget that grows with it (discovery.maxTokenBudget).
	Conversation int
}

// Overrides change settings of the configuration. A nil field changes nothing;
// new(3000) sets one. Each comment names the key of ken.yaml that the field
// stands for, and its default.
type Overrides struct {
	TopK          *int     // most briefs: discovery.tier1TopK, 5
	FullK         *int     // most full texts: discovery.tier2TopK, 2
	MinRelevance  *float64 // least probability, 0–1, that anything found fits: discovery.tier1MinRelevance, 0.3
	TailRelevance *float64 // least relevance, 0–1, of a brief after the first: discovery.tier1TailRelevance, 0.02
	MapTokens     *int     // budget of the map: discovery.tier0TokenBudget, 200
	BriefTokens   *int     // budget of the briefs: discovery.tier1TokenBudget, 800
	FullTokens    *int     // budget of the full texts: discovery.tier2TokenBudget, 2000
	CardTokens    *int     // budget of the cards: capabilities.maxTokens, 1500
	TotalTokens   *int     // budget of it all: discovery.totalTokenBudget, 3000
	Graph         *bool    // whether related capabilities raise each other's rank: discovery.useGraphReranking, true
	Boost         *float64 // by how much, 0–1: discovery.graphBoostFactor, 0.15
	FullRelevance *float64 // least relevance, 0–1, of a full text after the best: discovery.tier2MinRelevance, 0.1
	StickyK       *int     // most briefs of what was used lately, is pinned, or is needed: discovery.stickyTopK, 3

	// Learned is the weight, 0–10, of what was learned from earlier use: 0 for
	// none of it, 1 for as it was learned, which is the default.
	Learned *float64
}

// A Selection is what to show a model for one message.
type Selection struct {
	Prompt string // the text, within its budget; empty if nothing may be shown
	Tokens int    // of Prompt

	Found []Found         // best first; what they need comes after them
	Fulls []capability.ID // of these, shown with their full texts
	Cards []string        // ids of the cards in Prompt

	Fit           float64   // probability, 0–1, that something found is what was asked for
	LowConfidence bool      // Fit is low: only the best is shown, marked as one that may not fit
	Nearest       []Nearest // if nothing fits well enough to be shown: what came closest

	Skipped  []Skipped
	Degraded []string // parts that failed and were done without
	Stats    QueryStats
}

// Found is a capability that fits a message.
type Found struct {
	Capability *capability.Capability // shared; must not be changed
	Relevance  float64                // 0–1
	Brief      string                 // one line about it, fit for a prompt
	Why        []string               // why it fits
	Available  bool                   // whether it can be used here
	Missing    []string               // what it needs, if it is unavailable
}

// Skipped is a capability that matched and is not shown.
type Skipped struct {
	ID     capability.ID
	Reason string // names the setting that decides
}

// Nearest is a capability and the probability that it is what was asked for.
type Nearest struct {
	ID    capability.ID `json:"id"`
	Score float64       `json:"score"` // 0–1
}

// QueryStats says what one query cost.
type QueryStats struct {
	DocumentTokens int // of AGENTS.md
	MapTokens      int
	BriefTokens    int
	CardTokens     int
	FullTokens     int
	TotalTokens    int
	Budget         int // the most tokens that might have been shown

	Candidates int // matches that were ranked; at most 24
	Indexed    int // capabilities in the index

	Took  time.Duration // all of it
	Embed time.Duration // of Took, making the vector of the message
	Graph time.Duration // of Took, ranking by relations
}

// Find returns the capabilities that fit a message, best first. If nothing
// fits, it returns an empty list and no error.
func (k *Ken) Find(ctx context.Context, message string) ([]Found, error) {
	sel, err := k.Select(ctx, Query{Message: message})
	return sel.Found, err
}

// Select returns what to show a model for a message, as text within the budgets
// of the configuration.
func (k *Ken) Select(ctx context.Context, q Query) (Selection, error) {
	ask := door.Query{
		Text: q.Message, Scope: q.Scope, RouterTags: q.RouterTags, Now: time.Now(), Used: q.Used, Pinned: q.Pinned, Conversation: q.Conversation,
		Filter:   door.Filter{Kinds: q.Kinds, Category: q.Category, OnlyAvailable: q.OnlyAvailable, Exclude: q.Exclude},
		Override: door.Override(q.Overrides),
	}
	if err := ask.Override.Check(); err != nil {
		return Selection{}, invalid("select", "Query.Overrides: "+err.Error(), "")
	}
	for _, m := range q.Before {
		ask.Before = append(ask.Before, door.Message(m))
	}
	view := k.app.View()
	found, err := k.app.Door.Find(ctx, view, ask)
	if err != nil {
		return Selection{}, explain(err)
	}
	return selection(view, found), nil
}

func selection(view door.View, found door.Found) Selection {
	t := found.Tokens
	sel := Selection{
		Prompt: found.Prompt(), Tokens: t.Total, Found: []Found{},
		Fit: found.Fit, LowConfidence: found.LowConfidence, Degraded: found.Degraded, Nearest: nearest(found.Nearest),
		Stats: QueryStats{
			DocumentTokens: t.Document, MapTokens: t.Map, BriefTokens: t.Briefs, CardTokens: t.Cards, FullTokens: t.Fulls, TotalTokens: t.Total,
			Budget: found.Budget, Candidates: found.Selection.Found, Indexed: found.Indexed,
			Took: microseconds(found.TookUS), Embed: microseconds(found.EmbedUS), Graph: microseconds(found.GraphUS),
		},
	}
	for _, b := range found.Briefs {
		f := Found{Capability: &capability.Capability{ID: b.ID}, Relevance: b.Score, Brief: b.Text, Why: b.Why}
		if e, err := view.Lookup(string(b.ID)); err == nil { // otherwise it was removed a moment ago
			f.Capability, f.Available, f.Missing = e.Capability, e.Available, e.Missing.Sentences()
		}
		sel.Found = append(sel.Found, f)
	}
	for _, f := range found.Fulls {
		sel.Fulls = append(sel.Fulls, f.ID)
	}
	for _, c := range found.Cards {
		sel.Cards = append(sel.Cards, string(c.ID))
	}
	for _, s := range found.Skipped {
		sel.Skipped = append(sel.Skipped, Skipped{s.ID, s.Reason})
	}
	return sel
}

func microseconds(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

func nearest(list []door.Nearest) []Nearest {
	var out []Nearest
	for _, n := range list {
		out = append(out, Nearest(n))
	}
	return out
}

// Used records that a capability was called in a session and whether that
// worked. What was shown and then used ranks higher the next time. To keep it
// visible in the next turns, name it in [Query.Used].
func (k *Ken) Used(scope capability.Scope, id capability.ID, worked bool) error {
	if scope.Session == "" {
		return invalid("record the use of "+string(id), "scope.Session is empty", "set the session of the query that found it")
	}
	if _, err := k.app.View().Lookup(string(id)); err != nil {
		return explain(err)
	}
	return k.app.Door.Used(scope, id, worked)
}

// Describe returns the schema and the text of a capability, by its id or name,
// as they may be shown to a model.
func (k *Ken) Describe(ctx context.Context, name string) (capability.Detail, error) {
	d, err := k.app.Door.Describe(ctx, k.app.View(), name)
	return d.Detail, explain(err)
}

// A Relation says how one capability relates to another: one depends on the
// other (DEPENDS_ON), they are used together (COMPOSED_WITH), they share tags
// (TAGGED_WITH) or a small category (SAME_CATEGORY).
type Relation struct {
	ID     capability.ID // the other one
	Type   string
	Weight float64
	Needs  bool // of DEPENDS_ON: the capability that was asked about needs ID, rather than being needed by it
}

// Related returns the relations of a capability, by its id or name, the
// strongest first.
func (k *Ken) Related(name string) ([]Relation, error) {
	list, err := k.app.View().Related(name)
	var out []Relation
	for _, r := range list {
		out = append(out, Relation{r.ID, string(r.Type), r.Weight, r.Needs})
	}
	return out, explain(err)
}

// All returns every capability that may be shown, ordered by id.
func (k *Ken) All() iter.Seq[*capability.Capability] {
	return func(yield func(*capability.Capability) bool) {
		for e := range k.app.View().All() {
			if e.State == "active" && !yield(e.Capability) {
				return
			}
		}
	}
}

// Problems returns what is wrong with the catalog, gravest first.
func (k *Ken) Problems() []capability.Problem { return k.app.View().List().Problems }

// Reference returns the deep reference of the instance (SYSTEM_ARCHITECTURE.md
// of the catalog), which no prompt contains by itself.
func (k *Ken) Reference() (string, error) { return k.app.Door.Reference(k.app.View()) }

// Stats counts what the catalog has.
type Stats struct {
	Capabilities int // without those that another of the same id replaces
	Active       int // may be shown
	Available    int // can be used here
	Quarantined  int // withheld, because their text looks hostile
	Shadowed     int // replaced by another of the same id
	Errors       int // problems that cost something, see [Ken.Problems]
	GraphNodes   int
	GraphEdges   int    // dependencies and presets; tags and categories are not stored as edges
	Version      uint64 // of the index; it grows with each change
}

// Stats returns the counts of the catalog as it is now.
func (k *Ken) Stats() Stats { return Stats(k.app.View().Stats()) }
