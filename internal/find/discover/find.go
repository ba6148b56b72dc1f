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
	"ken/internal/find/card"
	"ken/internal/find/graph"
	"ken/internal/find/show"
	"ken/internal/know/catalog"
	"ken/internal/know/index"
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
	cfg = q.Override.Apply(cfg)
	t := turn{finder: f, View: v, query: q, cfg: cfg, sel: Selection{Query: q.Text, Degraded: []string{}, Indexed: v.shown}}
	if len(q.Text) > index.LongestText {
		t.sel.Degraded = append(t.sel.Degraded, fmt.Sprintf("of a message of %d bytes the first and the last %d were read", len(q.Text), index.LongestText/2))
	}
	t.excluded = ordinals(v, cfg.Exclude)
	t.hidden = ordinals(v, q.Filter.Exclude)
	vector := t.vector(ctx)
	answer, ranked := t.search(vector)
	t.rank(answer, ranked)
	t.force()
	t.briefs(answer, ranked)
	t.cards(ctx)
	t.fulls(ctx)
	t.sel.Shown = listed(show.Assemble(cfg.Budget.For(q.Conversation), show.Input{
		Map: v.sheet(t.excluded), Briefs: t.items, Cards: t.cardItems, Fulls: t.fullItems,
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

	excluded []int // by the configuration; ordinals, sorted
	hidden   []int // by the query
	barred   []barred
	rivals   rivals // what the barred would have had to beat
	hits     []index.Hit
	ordinals []int // of the hits

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
	return ordinal >= 0 && t.visible.Has(ordinal) && !has(t.excluded, ordinal) && t.passes(ordinal)
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
		(!f.OnlyAvailable || e.Available) && !has(t.hidden, ordinal)
}

// What earlier messages count, the latest first, and by who said them.
var (
	beforeWeight = [...]float64{0.35, 0.2, 0.12, 0.07}
	roleWeight   = map[string]float64{"": 1, "user": 1, "assistant": 0.3}
)

func (t *turn) before() []index.Before {
	var out []index.Before
	for i, m := range slices.Backward(t.query.Before) {
		back := len(t.query.Before) - 1 - i
		if back >= len(beforeWeight) {
			break
		}
		if w := beforeWeight[back] * roleWeight[m.Role]; w > 0 {
			out = append(out, index.Before{Text: m.Text, Weight: w})
		}
	}
	return out
}

func (t *turn) vector(ctx context.Context) []float32 {
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
func (t *turn) search(vector []float32) (index.Answer, []graph.Ranked) {
	s := t.searchable()
	if vector != nil {
		switch model, _ := s.indexed.Segment.Vectors(); {
		case model != t.finder.vectors.embedder.Model():
			vector = nil
			t.sel.Degraded = append(t.sel.Degraded, "the capabilities have no vectors of the embedder yet; words alone answer")
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
			return false
		case has(t.excluded, ordinal):
			t.bar(ordinal, score)
			return false
		case len(t.excluded) > 0:
			t.rivals.add(score)
		}
		return true
	}
	if len(t.excluded) == 0 && t.query.Filter.empty() && (t.hasCards() == 0 || t.query.AmongCards) {
		keep = nil
	}
	answer := s.view.Search(index.Query{Text: t.query.Text, Before: t.before(), Vector: vector}, candidates, keep)
	t.sel.Fit, t.sel.Found = answer.Fit, len(answer.Hits)
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
	return answer, ranked
}

// hit gives the hit of an entry; the zero Hit where it is none.
func (t *turn) hit(ordinal int) index.Hit {
	if i := slices.Index(t.ordinals, ordinal); i >= 0 {
		return t.hits[i]
	}
	return index.Hit{}
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
	for i := range t.barred {
		if t.barred[i].ordinal == ordinal {
			t.barred[i].score = max(t.barred[i].score, score)
			return
		}
	}
	t.barred = append(t.barred, barred{ordinal, score})
	slices.SortFunc(t.barred, func(a, b barred) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.ordinal, b.ordinal))
	})
	t.barred = t.barred[:min(len(t.barred), mostBarred)]
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
func (t *turn) rank(answer index.Answer, ranked []graph.Ranked) {
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

func (t *turn) skip(ordinal int, tier show.Tier, reason string) {
	t.skipped = append(t.skipped, show.Skip{ID: t.snapshot.Entries()[ordinal].ID, Tier: tier, Reason: reason})
}

func (t *turn) skipf(ordinal int, tier show.Tier, format string, args ...any) {
	t.skip(ordinal, tier, fmt.Sprintf(format, args...))
}

// brief adds a line about an entry.
func (t *turn) brief(ordinal int, score float64, why ...string) {
	t.shown = append(t.shown, ordinal)
	t.items = append(t.items, show.Item{ID: t.snapshot.Entries()[ordinal].ID, Score: score, Why: why, Brief: t.View.brief(ordinal)})
}

// force shows what the configuration always shows.
func (t *turn) force() {
	for _, id := range t.cfg.ForceInclude {
		ordinal, ok := t.snapshot.Ordinal(id)
		if named := t.called(id); !ok && len(named) > 0 {
			ordinal, ok = named[0], true
		}
		refuse := func(why string) {
			t.skipped = append(t.skipped, show.Skip{ID: id, Tier: show.TierBriefs, Reason: why})
		}
		switch {
		case !ok || !t.visible.Has(ordinal) && !t.held.Has(ordinal):
			refuse("capabilities.forceInclude names it, but it is not in the catalog")
		case !t.visible.Has(ordinal):
			refuse("capabilities.forceInclude names it, but it is " + string(t.snapshot.Entries()[ordinal].State))
		case slices.Contains(t.shown, ordinal): // named twice
		case has(t.excluded, ordinal):
			refuse("capabilities.exclude names it, which counts before forceInclude")
		case !t.passes(ordinal):
			refuse("capabilities.forceInclude names it, but the query's filter keeps it out")
		case t.snapshot.Entries()[ordinal].Kind != capability.KindCard:
			t.brief(ordinal, 1, "always included by capabilities.forceInclude")
			t.chosen = append(t.chosen, ordinal)
		case !t.cfg.Cards:
			refuse("capabilities.forceInclude names it, but capabilities.enabled is false")
		case !slices.Contains(t.forced, ordinal):
			t.forced = append(t.forced, ordinal)
		}
	}
}

// briefs chooses what is said in a line each.
func (t *turn) briefs(answer index.Answer, ranked []graph.Ranked) {
	t.skipped = slices.Grow(t.skipped, len(ranked))
	for _, b := range t.barred {
		if t.rivals.beat(b.score) {
			t.skip(b.ordinal, show.TierBriefs, "capabilities.exclude names it")
		}
	}
	if len(ranked) > 0 && answer.Fit < t.cfg.MinRelevance {
		t.abstain(answer.Fit, ranked)
		t.alongside()
		return
	}
	extra, full, weak := t.cfg.StickyK, "", ""
	for _, r := range ranked {
		switch {
		case slices.Contains(t.shown, r.Ordinal):
		case t.found >= t.cfg.TopK:
			if full == "" {
				full = fmt.Sprintf("discovery.tier1TopK %d was reached", t.cfg.TopK)
			}
			t.skip(r.Ordinal, show.TierBriefs, full)
		case t.found > 0 && r.Score < t.cfg.TailRelevance:
			if weak == "" {
				weak = fmt.Sprintf("its relevance is below discovery.tier1TailRelevance %.3f", t.cfg.TailRelevance)
			}
			t.skip(r.Ordinal, show.TierBriefs, weak)
		default:
			t.found++
			t.brief(r.Ordinal, r.Score, t.why(r)...)
			t.chosen = append(t.chosen, r.Ordinal)
			extra = t.attach(r, extra)
		}
	}
	t.sticky(extra)
}

const mostNearest = 3

// abstain shows nothing of what was found.
func (t *turn) abstain(fit float64, ranked []graph.Ranked) {
	why := fmt.Sprintf("the chance that anything found fits is %.3f, below discovery.tier1MinRelevance %.3f", fit, t.cfg.MinRelevance)
	for i, r := range ranked {
		if i < mostNearest {
			t.sel.Nearest = append(t.sel.Nearest, Nearest{t.snapshot.Entries()[r.Ordinal].ID, r.Score})
		}
		t.skip(r.Ordinal, show.TierBriefs, why)
	}
}

// why says what made an entry a hit.
func (t *turn) why(r graph.Ranked) []string {
	h := t.hit(r.Ordinal)
	var why []string
	switch {
	case h.Exact:
		why = append(why, "the message names it")
	case len(h.Words) > 0:
		why = append(why, "matches "+strings.Join(h.Words, ", "))
	}
	if h.Near >= 2 {
		why = append(why, fmt.Sprintf("means something similar (%.1f standard deviations nearer than usual)", h.Near))
	}
	entries := t.snapshot.Entries()
	for _, from := range r.From[:min(len(r.From), mostRelated)] {
		why = append(why, related[from.Type]+" "+string(entries[from.With].ID))
	}
	switch {
	case len(why) > 0:
	case len(t.query.Before) > 0:
		why = append(why, "matches what was said before")
	default:
		why = append(why, "means something similar")
	}
	return why
}

// mostRelated is how many relations are told as reasons.
const mostRelated = 2

var related = map[graph.EdgeType]string{
	graph.DependsOn: "depends on, or is needed by,", graph.ComposedWith: "goes together with",
	graph.TaggedWith: "shares tags with", graph.SameCategory: "is of one category with",
}

// attach adds lines about what a hit needs, and gives how many more there may
// be.
func (t *turn) attach(r graph.Ranked, extra int) int {
	entries := t.snapshot.Entries()
	for _, a := range r.Attached {
		switch {
		case slices.Contains(t.shown, a.Ordinal):
		case a.Type == graph.ComposedWith: // company is no need; it raised the score already
		case extra <= 0:
			t.skipf(a.Ordinal, show.TierBriefs, "%s needs it, but discovery.stickyTopK %d was reached", entries[r.Ordinal].ID, t.cfg.StickyK)
		default:
			t.brief(a.Ordinal, a.Score, "needed by "+string(entries[a.Of].ID))
			t.items[len(t.items)-1].Attached = entries[r.Ordinal].ID
			extra--
		}
	}
	return extra
}

func (t *turn) alongside() { t.sticky(t.cfg.StickyK) }

// sticky keeps in sight what is pinned and what was used lately.
func (t *turn) sticky(extra int) {
	for _, list := range []struct {
		ids []capability.ID
		why string
	}{{t.query.Pinned, "pinned"}, {t.query.Used, "used in the last turns"}} {
		for _, id := range list.ids {
			ordinal, ok := t.ordinalOf(id)
			switch {
			case !ok || !t.may(ordinal) || slices.Contains(t.shown, ordinal):
			case extra <= 0:
				t.skipf(ordinal, show.TierBriefs, "it is %s, but discovery.stickyTopK %d was reached", list.why, t.cfg.StickyK)
			default:
				t.brief(ordinal, t.hit(ordinal).Score, list.why)
				extra--
			}
		}
	}
}

// cards chooses the cards that ask to be shown.
func (t *turn) cards(ctx context.Context) {
	if !t.cfg.Cards {
		return
	}
	for _, ordinal := range t.forced {
		t.card(ctx, ordinal, 1, "always included by capabilities.forceInclude")
	}
	set := t.View.cards()
	if set.Len() == 0 {
		return
	}
	x := card.Context{
		Messages: append(slices.Clip(t.query.Before), card.Message{Role: "user", Text: t.query.Text}),
		Scope:    t.query.Scope, RouterTags: t.query.RouterTags, Now: t.query.Now, Shown: t.query.Shown,
	}
	if t.query.Text == "" {
		x.Messages = t.query.Before
	}
	for _, a := range set.Select(x, t.cfg.Card) {
		switch {
		case !t.visible.Has(a.Ordinal) || !t.passes(a.Ordinal) || t.isCard(a.Ordinal):
		case has(t.excluded, a.Ordinal):
			if a.Passed {
				t.skip(a.Ordinal, show.TierCards, "capabilities.exclude names it")
			}
		case a.Passed:
			t.card(ctx, a.Ordinal, a.Score, a.Why)
			t.sel.SeedScores = append(t.sel.SeedScores, Nearest{a.ID, a.SeedScore})
		default:
			t.skip(a.Ordinal, show.TierCards, a.Why)
		}
	}
}

func (t *turn) isCard(ordinal int) bool {
	id := t.snapshot.Entries()[ordinal].ID
	return slices.ContainsFunc(t.cardItems, func(i show.Item) bool { return i.ID == id })
}

// card adds a card. A card that is shown needs no line besides.
func (t *turn) card(ctx context.Context, ordinal int, score float64, why string) {
	e := t.snapshot.Entries()[ordinal]
	p, err := t.finder.page(ctx, e)
	if err != nil {
		t.skipf(ordinal, show.TierCards, "it could not be read: %v", err)
		t.sel.Degraded = append(t.sel.Degraded, fmt.Sprintf("%s could not be read: %v", e.ID, err))
		return
	}
	t.cardItems = append(t.cardItems, show.Item{ID: e.ID, Score: score, Why: []string{why}, Page: p})
	t.items = slices.DeleteFunc(t.items, func(i show.Item) bool { return i.ID == e.ID })
	t.chosen = slices.DeleteFunc(t.chosen, func(o int) bool { return o == ordinal })
}

// fulls chooses what is shown in full: what can be used here before what
// cannot, and nothing that is hardly relevant but the best.
func (t *turn) fulls(ctx context.Context) {
	entries := t.snapshot.Entries()
	slices.SortStableFunc(t.chosen, func(a, b int) int { return lacking(entries[a]) - lacking(entries[b]) })
	for _, ordinal := range t.chosen {
		if len(t.fullItems) >= t.cfg.FullK {
			return
		}
		e := entries[ordinal]
		item := show.Item{ID: e.ID}
		for i := range t.items {
			if t.items[i].ID != e.ID {
				continue
			}
			item.Score, item.Why = t.items[i].Score, t.items[i].Why
			if i > 0 && item.Score < t.cfg.FullRelevance {
				t.skipf(ordinal, show.TierFulls, "its relevance is below discovery.tier2MinRelevance %.3f", t.cfg.FullRelevance)
				item.ID = ""
			}
		}
		if item.ID == "" {
			continue
		}
		var err error
		if item.Page, err = t.finder.page(ctx, e); err != nil {
			t.skipf(ordinal, show.TierFulls, "it could not be read: %v", err)
			t.sel.Degraded = append(t.sel.Degraded, fmt.Sprintf("%s could not be read: %v", e.ID, err))
			continue
		}
		t.fullItems = append(t.fullItems, item)
	}
}

func lacking(e *catalog.Entry) int {
	if e.Available {
		return 0
	}
	return 1
}
