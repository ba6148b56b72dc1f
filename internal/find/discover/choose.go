package discover

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/find/card"
	"ken/internal/find/graph"
	"ken/internal/find/ranking"
	"ken/internal/find/show"
	"ken/internal/know/catalog"
)

func (t *turn) skip(ordinal int, tier show.Tier, reason string) {
	t.skipped = append(t.skipped, show.Skip{ID: t.snapshot.Entries()[ordinal].ID, Tier: tier, Reason: reason})
}

func (t *turn) skipf(ordinal int, tier show.Tier, format string, args ...any) {
	t.skip(ordinal, tier, fmt.Sprintf(format, args...))
}

// brief adds a line about an entry. The entry may have been left out for its
// score before; it is not any more.
func (t *turn) brief(ordinal int, score float64, why ...string) {
	id := t.snapshot.Entries()[ordinal].ID
	t.skipped = slices.DeleteFunc(t.skipped, func(s show.Skip) bool { return s.ID == id && s.Tier == show.TierBriefs })
	t.shown = append(t.shown, ordinal)
	t.items = append(t.items, show.Item{ID: id, Score: score, Why: why, Brief: t.View.brief(ordinal)})
}

// forcedWhy is why something that the configuration always shows is shown.
const forcedWhy = "always included by capabilities.forceInclude"

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
		case has(t.keptOut.excluded, ordinal):
			refuse("capabilities.exclude names it, which counts before forceInclude")
		case !t.passes(ordinal):
			refuse("capabilities.forceInclude names it, but the query's filter keeps it out")
		case t.snapshot.Entries()[ordinal].Kind != capability.KindCard:
			t.brief(ordinal, 1, forcedWhy)
			t.items[len(t.items)-1].Forced = true
			t.chosen = append(t.chosen, ordinal)
		case !t.cfg.Cards:
			refuse("capabilities.forceInclude names it, but capabilities.enabled is false")
		case !slices.Contains(t.forced, ordinal):
			t.forced = append(t.forced, ordinal)
		}
	}
}

// briefs chooses what is said in a line each.
func (t *turn) briefs(answer ranking.Answer, ranked []graph.Ranked) {
	t.skipped = slices.Grow(t.skipped, len(ranked))
	if t.keptOut.refused && len(ranked) == 0 {
		t.skipped = append(t.skipped, show.Skip{Tier: show.TierBriefs, Reason: "the query's own filter (kind, category, availability, exclude) keeps out everything that matches"})
	}
	for _, b := range t.keptOut.barred {
		if t.keptOut.rivals.beat(b.score) {
			t.skip(b.ordinal, show.TierBriefs, "capabilities.exclude names it")
		}
	}
	if len(ranked) > 0 && answer.Fit < t.cfg.MinRelevance {
		t.abstain(answer.Fit, ranked)
		t.sticky(t.cfg.StickyK)
		return
	}
	// Without a floor everything is wanted, however unlikely.
	if t.cfg.MinRelevance > 0 && answer.Fit < t.cfg.LowConfidence {
		t.doubt(answer.Fit, ranked)
		t.sticky(t.cfg.StickyK)
		return
	}
	extra, full, weak := t.cfg.StickyK, "", ""
	for _, r := range ranked {
		switch {
		case slices.Contains(t.shown, r.Ordinal):
		case t.found >= t.cfg.TopK && t.crowded[r.Ordinal] != "":
			t.skip(r.Ordinal, show.TierBriefs, t.crowded[r.Ordinal])
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
			t.skipped[len(t.skipped)-1].Weak = true
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

// doubt shows the best of what was found, in a brief that says that it may not
// fit, and nothing else.
func (t *turn) doubt(fit float64, ranked []graph.Ranked) {
	why := fmt.Sprintf("the chance that anything found fits is %.3f, below discovery.lowConfidence %.3f: only the best is shown, in a brief", fit, t.cfg.LowConfidence)
	for _, r := range ranked {
		switch {
		case slices.Contains(t.shown, r.Ordinal):
		case t.found > 0:
			t.skip(r.Ordinal, show.TierBriefs, why)
		case t.cfg.TopK == 0:
			t.skip(r.Ordinal, show.TierBriefs, "discovery.tier1TopK 0 was reached")
		default:
			t.found++
			t.sel.LowConfidence = true
			t.brief(r.Ordinal, r.Score, append(t.why(r), "may not fit")...)
			best := &t.items[len(t.items)-1]
			best.Brief = best.Brief.MayNotFit(t.View.count)
			t.skip(r.Ordinal, show.TierFulls, why)
		}
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
	switch {
	case h.Near >= veryNear:
		why = append(why, "very similar meaning")
	case h.Near >= near:
		why = append(why, "similar meaning")
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
		why = append(why, "similar meaning")
	}
	return why
}

// near and veryNear are how near the vector of a hit is before its meaning is
// told as a reason, as [ranking.Hit] counts it.
const near, veryNear = 2, 5

// mostRelated is how many relations are told as reasons.
const mostRelated = 2

var related = map[graph.EdgeType]string{
	graph.DependsOn: "depends on, or is needed by,", graph.ComposedWith: "goes together with",
	graph.TaggedWith: "shares tags with", graph.SameCategory: "is of one category with",
}

// attach adds lines about what a hit needs, and returns how many more there may
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

// sticky keeps in sight what is pinned and what was used lately.
func (t *turn) sticky(extra int) {
	for _, list := range []struct {
		ids []capability.ID
		why string
	}{{t.query.Pinned, "pinned"}, {t.query.Used, "used in the last turns"}} {
		for _, id := range list.ids {
			named := t.called(id)
			if len(named) == 0 {
				t.skipped = append(t.skipped, show.Skip{ID: id, Tier: show.TierBriefs, Reason: "it is " + list.why + ", but not in the catalog"})
				continue
			}
			ordinal := named[0]
			switch {
			case slices.Contains(t.shown, ordinal):
			case has(t.keptOut.excluded, ordinal):
				t.skipf(ordinal, show.TierBriefs, "it is %s, but capabilities.exclude names it", list.why)
			case !t.passes(ordinal):
				t.skipf(ordinal, show.TierBriefs, "it is %s, but the query's filter keeps it out", list.why)
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
		before := len(t.cardItems)
		t.card(ctx, ordinal, 1, forcedWhy)
		for i := range t.cardItems[before:] {
			t.cardItems[before+i].Forced = true
		}
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
	for _, a := range t.learnedCards(set.Select(x, t.cfg.Card)) {
		switch {
		case !t.visible.Has(a.Ordinal) || !t.passes(a.Ordinal) || t.isCard(a.Ordinal):
		case has(t.keptOut.excluded, a.Ordinal):
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

// learnedCards orders cards of the same priority by what was learned of them, too.
func (t *turn) learnedCards(asked []card.Asked) []card.Asked {
	if len(t.cfg.Priors) == 0 {
		return asked
	}
	passed := asked
	if n := slices.IndexFunc(asked, func(a card.Asked) bool { return !a.Passed }); n >= 0 {
		passed = asked[:n]
	}
	slices.SortStableFunc(passed, func(a, b card.Asked) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(t.learned(b.Ordinal, b.Score), t.learned(a.Ordinal, a.Score)))
	})
	return asked
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
	slices.SortStableFunc(t.chosen, func(a, b int) int { return unavailable(entries[a]) - unavailable(entries[b]) })
	for _, ordinal := range t.chosen {
		if len(t.fullItems) >= t.cfg.FullK {
			return
		}
		e := entries[ordinal]
		if e.Off != "" {
			t.skip(ordinal, show.TierFulls, e.Off)
			continue
		}
		item := show.Item{ID: e.ID}
		for i := range t.items {
			if t.items[i].ID != e.ID {
				continue
			}
			item.Score, item.Why, item.Forced = t.items[i].Score, t.items[i].Why, t.items[i].Forced
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

// unavailable returns 1 for an entry that cannot be used here, and 0 otherwise.
func unavailable(e *catalog.Entry) int {
	if e.Available {
		return 0
	}
	return 1
}
