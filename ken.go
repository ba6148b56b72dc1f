// Package ken is the capability layer for AI agents, as a library: it knows
// every capability in one live catalog, finds the few that matter for a
// message, and carries out calls of them under rules, within limits and on the
// record.
//
//	k, err := ken.Open(ctx, ken.Config{Catalogs: []string{"./skills"}})
//	if err != nil {
//		return err
//	}
//	defer k.Close()
//	found, err := k.Find(ctx, "open an issue about the login page")
//
// The words it speaks in are those of package capability.
package ken

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/door"
	"ken/llm"
	"ken/plugin"
)

// Config says what to open. The zero value is what the program ken would use
// here: this user's configuration and capabilities, this directory's, and the
// starter catalog (catalog.starter in ken.yaml).
type Config struct {
	// ConfigFile is read instead of the usual ken.yaml files.
	ConfigFile string

	// Catalogs are directories or files of capabilities that replace every
	// other source.
	Catalogs []string

	// Sources are read besides all others and stand before them.
	Sources []capability.Source

	// CardScorer, when not nil, judges how relevant a card is, 0–1, instead of
	// the scorer that the configuration names. Messages are oldest first, the
	// current one last.
	CardScorer func(c *capability.Capability, messages []Message, scope capability.Scope) float64

	// Embedder, when not nil, makes vectors of capabilities and messages, so
	// that meaning counts besides words. One that fails or is slow costs
	// meaning and nothing else.
	Embedder llm.Embedder

	// Functions are Go functions that can be found and called like tools.
	Functions []*Function

	// Model, when not nil, answers in [Ken.Turn] instead of the one that the
	// configuration names.
	Model llm.Model

	// Plugins add to what Ken knows, runs and says, in this order.
	Plugins []plugin.Plugin
}

// A Ken is an open catalog. It is safe for any number of goroutines.
type Ken struct{ app *app.App }

// Open reads the configuration and loads the catalog. A mistake in the
// configuration is an error; a broken capability is not, see [Ken.Problems].
func Open(ctx context.Context, cfg Config) (*Ken, error) {
	open := app.Config{ConfigFile: cfg.ConfigFile, Catalogs: cfg.Catalogs, Sources: cfg.Sources, Embedder: cfg.Embedder, Functions: functions(cfg.Functions), Model: cfg.Model, Plugins: cfg.Plugins}
	if score := cfg.CardScorer; score != nil {
		open.CardScorer = func(c *capability.Capability, x door.CardContext) float64 {
			messages := make([]Message, len(x.Messages))
			for i, m := range x.Messages {
				messages[i] = Message(m)
			}
			return score(c, messages, x.Scope)
		}
	}
	a, err := app.Open(ctx, open)
	if err != nil {
		return nil, err
	}
	a.StartEmbedding()
	return &Ken{a}, nil
}

// Found is a capability that fits a message.
type Found struct {
	Capability *capability.Capability // shared; not to be changed
	Relevance  float64                // 0–1
	Brief      string                 // one line about it, fit for a prompt
	Why        []string               // what made it fit
	Available  bool                   // whether it can be used here
	Missing    []string               // what it lacks where not
}

// Find returns the capabilities that fit a message, best first. Nothing fitting
// is an empty answer, not an error.
func (k *Ken) Find(ctx context.Context, message string) ([]Found, error) {
	sel, err := k.Select(ctx, Query{Message: message})
	return sel.Found, err
}

// A Message is one message of a conversation. Its role is user, assistant or
// tool.
type Message struct{ Role, Text string }

// A Query is a message, where it comes from, and what to look among.
type Query struct {
	Message string
	Before  []Message // what was said before, oldest first; the last four count

	Scope      capability.Scope // a message with a session is recorded
	RouterTags []string         // for cards
	Used       []capability.ID  // in the last turns; they stay in sight
	Pinned     []capability.ID  // always in sight

	Kinds         []capability.Kind // none: all
	Category      string
	OnlyAvailable bool
	Exclude       []capability.ID

	// Conversation is how many tokens were said so far.
	Conversation int
}

// A Selection is what to show a model for one message.
type Selection struct {
	Prompt   string   // the text, within its budget; empty where nothing may be shown
	Tokens   int      // of the whole text
	Found    []Found  // best first; what they need comes after them
	Cards    []string // ids of the cards in the text
	Fit      float64  // the probability that something found is what was asked for
	Skipped  []Skipped
	Degraded []string // what did not work and was done without
}

// Skipped is a capability that matched and is not shown, with the reason.
type Skipped struct {
	ID     capability.ID
	Reason string
}

// Select picks what to show a model for a message, as text within the budgets
// of the configuration.
func (k *Ken) Select(ctx context.Context, q Query) (Selection, error) {
	view := k.app.View()
	ask := door.Query{
		Text: q.Message, Scope: q.Scope, RouterTags: q.RouterTags, Now: time.Now(), Used: q.Used, Pinned: q.Pinned, Conversation: q.Conversation,
		Filter: door.Filter{Kinds: q.Kinds, Category: q.Category, OnlyAvailable: q.OnlyAvailable, Exclude: q.Exclude},
	}
	for _, m := range q.Before {
		ask.Before = append(ask.Before, door.Message(m))
	}
	found, err := k.app.Door.Find(ctx, view, ask)
	if err != nil {
		return Selection{}, err
	}
	sel := Selection{Prompt: found.Prompt(), Tokens: found.Tokens.Total, Fit: found.Fit, Degraded: found.Degraded, Found: []Found{}}
	for _, b := range found.Briefs {
		e, err := view.Lookup(string(b.ID))
		if err != nil {
			return Selection{}, err
		}
		sel.Found = append(sel.Found, Found{
			Capability: e.Capability, Relevance: b.Score, Brief: b.Text, Why: b.Why,
			Available: e.Available, Missing: e.Missing,
		})
	}
	for _, c := range found.Cards {
		sel.Cards = append(sel.Cards, string(c.ID))
	}
	for _, s := range found.Skipped {
		sel.Skipped = append(sel.Skipped, Skipped{s.ID, s.Reason})
	}
	return sel, nil
}

// Tools returns the tools by which a model looks for capabilities itself. They
// never change.
func (k *Ken) Tools() []llm.Tool { return k.app.Door.Tools() }

// What Call returns. A ToolAnswer has Text for a model and the same as Data:
// [Searched] of discover_capabilities, with a [Listed] for each capability, and
// [Reading] of describe_capability. If Failed is true, Text says what the model
// did wrong.
type (
	ToolAnswer = door.ToolAnswer
	Searched   = door.Searched
	Listed     = door.Capability
	Reading    = door.Reading
)

// Call runs one of Tools with the arguments that a model gave. A mistake of the
// model's is an answer that says so, and no error.
func (k *Ken) Call(ctx context.Context, scope capability.Scope, tool string, arguments json.RawMessage) (ToolAnswer, error) {
	return k.app.Door.Call(ctx, k.app.View(), scope, tool, arguments)
}

// Used records that a capability was called in a session and whether that
// worked. What was shown and then used is shown sooner the next time. To keep
// it in sight for the next turns, name it in [Query.Used].
func (k *Ken) Used(scope capability.Scope, id capability.ID, worked bool) error {
	if scope.Session == "" {
		return &capability.Error{
			Kind: capability.Invalid, Op: "record the use of", Target: string(id),
			Err: errors.New("missing session"), Fix: "name the session of the message that it was used for",
		}
	}
	if _, err := k.app.View().Lookup(string(id)); err != nil {
		return err
	}
	return k.app.Door.Used(scope, id, worked)
}

// Describe reads the schema and the text of a capability, by its id or name,
// as far as they may be shown to a model.
func (k *Ken) Describe(ctx context.Context, name string) (capability.Detail, error) {
	d, err := k.app.Door.Describe(ctx, k.app.View(), name)
	return d.Detail, err
}

// A Relation is how one capability relates to another: it depends on it or is
// needed by it (DEPENDS_ON), is used together with it (COMPOSED_WITH), shares
// tags (TAGGED_WITH) or a small category (SAME_CATEGORY).
type Relation struct {
	ID     capability.ID
	Type   string
	Weight float64
	Needs  bool // of DEPENDS_ON: the one asked about needs ID
}

// Related returns what a capability, by its id or name, has to do with others,
// the strongest first.
func (k *Ken) Related(name string) ([]Relation, error) {
	list, err := k.app.View().Related(name)
	var out []Relation
	for _, r := range list {
		out = append(out, Relation{r.ID, string(r.Type), r.Weight, r.Needs})
	}
	return out, err
}

// All returns every capability that may be shown, in the order of their ids.
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

// Reference reads the deep reference of the instance (SYSTEM_ARCHITECTURE.md),
// which is never shown by itself.
func (k *Ken) Reference() (string, error) { return k.app.Door.Reference(k.app.View()) }

// Put adds a capability that the program made while it runs, or replaces the
// one of its id; it is scanned like every other. It reports whether it was
// taken: one whose Meta says that its "tier" is "session" is not.
func (k *Ken) Put(c capability.Capability, d capability.Detail) bool { return k.app.Put(c, d) }

// Remove takes out what Put added and reports whether it was there.
func (k *Ken) Remove(id capability.ID) bool { return k.app.Remove(id) }

// Watch keeps the catalog up to date until ctx ends.
func (k *Ken) Watch(ctx context.Context) error { return k.app.Watch(ctx) }

// Close releases what Open took.
func (k *Ken) Close() error { return k.app.Close() }
