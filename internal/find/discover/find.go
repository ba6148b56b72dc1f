package discover

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/find/graph"
	"ken/internal/find/ranking"
	"ken/internal/find/show"
)

// candidates is how many hits take part in re-ranking, and up to which reasons
// for not being shown are given.
const candidates = 24

// Find selects capabilities for a message. Nothing in the catalog makes it
// fail; the error is ctx's.
func (f *Finder) Find(ctx context.Context, v *View, q Query, cfg Config) (Selection, error) {
	start := time.Now()
	if err := ctx.Err(); err != nil {
		return Selection{}, err
	}
	f.begins()
	cfg = q.Override.Apply(cfg)
	t := turn{finder: f, View: v, query: q, cfg: cfg, sel: Selection{Query: q.Text, Degraded: []string{}, Indexed: v.shown}}
	if len(q.Text) > ranking.LongestText {
		t.sel.Degraded = append(t.sel.Degraded, fmt.Sprintf("of a message of %d bytes the first and the last %d were read", len(q.Text), ranking.LongestText/2))
	}
	t.keptOut.excluded = ordinals(v, cfg.Exclude)
	t.keptOut.hidden = ordinals(v, q.Filter.Exclude)
	if t.sel.Abilities = AsksAbilities(q.Text); t.sel.Abilities {
		t.query.Text = "" // the map answers it, not capabilities with similar words
	}
	vector := t.vector(ctx)
	answer, ranked := t.search(vector)
	t.rank(answer, ranked)
	t.force()
	t.briefs(answer, ranked)
	t.query.Text = q.Text
	t.cards(ctx)
	t.fulls(ctx)
	t.sel.Shown = listed(show.Assemble(cfg.Budget.For(q.Conversation), show.Input{
		Map: v.sheet(t.keptOut.excluded), Briefs: t.items, Cards: t.cardItems, Fulls: t.fullItems,
	}))
	t.sel.Skipped = append(t.sel.Skipped, t.skipped...)
	t.sel.Budget = cfg.Budget.For(q.Conversation).Total
	t.sel.TookUS = (time.Since(start)).Microseconds() - t.sel.EmbedUS
	return t.sel, ctx.Err()
}

// A turn is one Find on its way.
type turn struct {
	finder *Finder
	*View
	query Query
	cfg   Config

	keptOut keptOut

	hits     []ranking.Hit
	crowded  map[int]string // ordinals that had to make room for more trusted hits, and why
	ordinals []int          // ordinals of the hits

	items     []show.Item // briefs
	found     int         // how many of them were found, rather than brought along
	forced    []int       // ordinals of cards that the configuration always shows
	cardItems []show.Item
	fullItems []show.Item
	chosen    []int // ordinals to show in full, best first
	shown     []int // ordinals that have a brief or a card
	skipped   []show.Skip
	sel       Selection
}

// keptOut is what may not be shown, although it may match.
type keptOut struct {
	excluded []int // by the configuration; ordinals, sorted
	hidden   []int // by the query
	barred   []barred
	refused  bool   // the query's filter kept out something that matches
	rivals   rivals // what the barred would have had to beat
}

// barred is something that would have been found but for capabilities.exclude.
type barred struct {
	ordinal int
	score   float32
}

func ordinals(v *View, ids []capability.ID) []int {
	var out []int
	for _, id := range ids {
		out = append(out, v.called(id)...)
	}
	slices.Sort(out)
	return out
}

func has(sorted []int, ordinal int) bool {
	_, ok := slices.BinarySearch(sorted, ordinal)
	return ok
}

// may reports whether an entry may be shown for this query.
func (t *turn) may(ordinal int) bool {
	return ordinal >= 0 && t.visible.Has(ordinal) && !has(t.keptOut.excluded, ordinal) && t.passes(ordinal)
}

// passes reports whether an entry passes the query's filter.
func (t *turn) passes(ordinal int) bool {
	f := &t.query.Filter
	if f.empty() {
		return true
	}
	e := t.snapshot.Entries()[ordinal]
	return (len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind)) &&
		(f.Category == "" || strings.EqualFold(f.Category, e.Category)) &&
		(!f.OnlyAvailable || e.Available) && !has(t.keptOut.hidden, ordinal)
}

// What earlier messages count, the latest first, and by who said them.
var (
	beforeWeight = [...]float64{0.35, 0.2, 0.12, 0.07}
	roleWeight   = map[string]float64{"": 1, "user": 1, "assistant": 0.3}
)

func (t *turn) before() []ranking.Before {
	var out []ranking.Before
	for i, m := range slices.Backward(t.query.Before) {
		back := len(t.query.Before) - 1 - i
		if back >= len(beforeWeight) {
			break
		}
		if w := beforeWeight[back] * roleWeight[m.Role]; w > 0 {
			out = append(out, ranking.Before{Text: m.Text, Weight: w})
		}
	}
	return out
}

// vector returns the message's vector by the embedder, nil where there is none. As
// long as the second reader has not read all capabilities, it reads no message:
// the model of the index answers alone.
func (t *turn) vector(ctx context.Context) []float32 {
	if v := t.finder.vectors; v.local {
		s := t.searchable()
		// Asking the reader for its name loads its weights. That is left to the
		// reading of capabilities: before a first vector is there, no search waits.
		if s.indexed.Segment.Second == nil {
			return nil
		}
		if model, _ := s.indexed.Segment.Vectors(); model != v.embedder.Model() || s.vectors < t.View.shown {
			return nil
		}
	}
	start := time.Now()
	vector, degraded := t.finder.vectors.of(ctx, t.query.Text, t.cfg.EmbedTimeout)
	if t.finder.vectors.embedder == nil {
		return nil
	}
	t.sel.EmbedUS = time.Since(start).Microseconds()
	if degraded != "" {
		t.sel.Degraded = append(t.sel.Degraded, degraded)
	}
	return vector
}

// search finds hits and puts them in order.
func (t *turn) search(vector []float32) (ranking.Answer, []graph.Ranked) {
	s := t.searchable()
	if vector != nil {
		switch model, _ := s.indexed.Segment.Vectors(); {
		case t.finder.vectors.local: // vector saw to it that all are there
		case model != t.finder.vectors.embedder.Model():
			vector = nil
			t.sel.Degraded = append(t.sel.Degraded, "the capabilities have no vectors of the embedder yet; the rest of the search answers without it")
		case s.vectors < t.View.shown:
			t.sel.Degraded = append(t.sel.Degraded, fmt.Sprintf("%d of %d capabilities have vectors yet", s.vectors, t.View.shown))
		}
	}
	keep := func(_, slot int, score float32) bool {
		ordinal := s.indexed.Ordinal(slot)
		switch {
		case !t.query.AmongCards && t.snapshot.Entries()[ordinal].Kind == capability.KindCard:
			return false // its triggers decide
		case !t.passes(ordinal):
			t.keptOut.refused = t.keptOut.refused || score > 0
			return false
		case has(t.keptOut.excluded, ordinal):
			if score >= 0 {
				t.bar(ordinal, score)
			}
			return false
		case len(t.keptOut.excluded) > 0 && score >= 0:
			t.keptOut.rivals.add(score)
		}
		return true
	}
	if len(t.keptOut.excluded) == 0 && t.query.Filter.empty() && (t.hasCards() == 0 || t.query.AmongCards) {
		keep = nil
	}
	asked := ranking.Query{Text: t.query.Text, Before: t.before(), Vector: vector, English: t.finder.vectors.local}
	answer := s.view.Search(asked, candidates, keep)
	answer = t.trusted(answer, func(keep ranking.Keep) ranking.Answer { return s.view.Search(asked, candidates, keep) })
	t.sel.Fit, t.sel.Found = answer.Fit, len(answer.Hits)
	if own := t.finder.vectors.embedder == nil || t.finder.vectors.local; own && answer.Unread && answer.Fit < t.cfg.LowConfidence {
		t.sel.Degraded = append(t.sel.Degraded, unread)
	}
	t.sel.EmbedUS += answer.Embedding.Microseconds()
	t.hits, t.ordinals = answer.Hits, make([]int, len(answer.Hits))
	scored := make([]graph.Scored, len(answer.Hits))
	for i, h := range answer.Hits {
		ordinal := s.indexed.Ordinal(h.Slot)
		t.ordinals[i] = ordinal
		scored[i] = graph.Scored{Ordinal: ordinal, Score: t.learned(ordinal, h.Score)}
	}
	cfg := t.cfg.Graph
	cfg.Top = max(cfg.Top, t.cfg.TopK)
	start := time.Now()
	ranked := t.graph().Rerank(scored, cfg, t.may)
	t.sel.GraphUS = time.Since(start).Microseconds()
	return answer, t.byTrust(ranked)
}

// unread is told about a message that the models inside the program cannot read,
// where words have not found it either.
const unread = "the message does not seem to be in English, and the models inside Ken read nothing else: words alone were compared. " +
	"To find by meaning in other languages, set discovery.embeddingModelId and discovery.embeddingUrl to a multilingual embedding model"

// hit returns the hit of an entry; the zero Hit where it is none.
func (t *turn) hit(ordinal int) ranking.Hit {
	if i := slices.Index(t.ordinals, ordinal); i >= 0 {
		return t.hits[i]
	}
	return ranking.Hit{}
}

// learned applies what was learned of a capability.
func (t *turn) learned(ordinal int, score float64) float64 {
	if len(t.cfg.Priors) == 0 || score <= t.cfg.TailRelevance || score >= 1 {
		return score
	}
	prior, ok := t.cfg.Priors[t.snapshot.Entries()[ordinal].ID]
	if !ok {
		return score
	}
	return 1 / (1 + math.Exp(-(math.Log(score/(1-score)) + prior)))
}

// mostBarred is how many excluded matches are told.
const mostBarred = 3

// bar remembers the best matches that capabilities.exclude kept out.
func (t *turn) bar(ordinal int, score float32) {
	for i := range t.keptOut.barred {
		if t.keptOut.barred[i].ordinal == ordinal {
			t.keptOut.barred[i].score = max(t.keptOut.barred[i].score, score)
			return
		}
	}
	t.keptOut.barred = append(t.keptOut.barred, barred{ordinal, score})
	slices.SortFunc(t.keptOut.barred, func(a, b barred) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.ordinal, b.ordinal))
	})
	t.keptOut.barred = t.keptOut.barred[:min(len(t.keptOut.barred), mostBarred)]
}

// rivals are the best scores of the first pass, the highest first. How many
// scores a search asks about depends on the order in which it comes to them;
// the best of them do not.
type rivals []float32

func (r *rivals) add(score float32) {
	list := *r
	if score <= 0 || len(list) == candidates && score <= list[len(list)-1] {
		return
	}
	at, _ := slices.BinarySearchFunc(list, score, func(a, b float32) int { return cmp.Compare(b, a) })
	list = slices.Insert(list, at, score)
	*r = list[:min(len(list), candidates)]
}

// beat reports whether a score would have been among the candidates.
func (r rivals) beat(score float32) bool {
	return len(r) < candidates || score >= r[len(r)-1]
}

// rank tells what was found, whatever will be shown: the best hits, what these
// need, then the rest.
func (t *turn) rank(answer ranking.Answer, ranked []graph.Ranked) {
	if len(answer.Hits) == 0 {
		return
	}
	const most = 20
	entries := t.snapshot.Entries()
	seen := make([]int, 0, most)
	t.sel.Ranking = make([]Nearest, 0, most)
	add := func(ordinal int, score float64) {
		if len(seen) < most && !slices.Contains(seen, ordinal) {
			seen = append(seen, ordinal)
			t.sel.Ranking = append(t.sel.Ranking, Nearest{entries[ordinal].ID, score})
		}
	}
	first := min(len(ranked), max(t.cfg.TopK, 1))
	for _, r := range ranked[:first] {
		add(r.Ordinal, r.Score)
	}
	for _, r := range ranked[:first] {
		for _, a := range r.Attached {
			add(a.Ordinal, a.Score)
		}
	}
	for _, r := range ranked[first:] {
		add(r.Ordinal, r.Score)
	}
}
