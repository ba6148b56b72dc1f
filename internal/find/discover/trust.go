package discover

import (
	"fmt"
	"slices"

	"ken/capability"
	"ken/internal/find/graph"
	"ken/internal/find/ranking"
)

// nearTie is the fraction of another hit's score from which a hit counts as
// equal, so that trust decides between them.
const nearTie = 0.8

// share returns how many places of a selection a less trusted group may take
// while hits of other groups fit.
func share(places int) int { return (places + 1) / 2 }

// group names the origin of an entry that is trusted less than the user's own,
// or "". All folders of a project are one group.
func (t *turn) group(ordinal int) string {
	switch e := t.snapshot.Entries()[ordinal]; {
	case e.Trust >= capability.TrustUser:
		return ""
	case e.Trust == capability.TrustWorkspace:
		return "the project"
	default:
		return e.Origin.Source
	}
}

// trusted searches again among the entries that are trusted at least as much as
// the user's own, if less trusted hits ranked before them. So a less trusted
// source cannot lower the scores of other entries, crowd them out of the
// candidates, or make the search abstain.
func (t *turn) trusted(answer ranking.Answer, search func(ranking.Keep) ranking.Answer) ranking.Answer {
	s := t.searchable()
	first := answer.Hits[:min(len(answer.Hits), max(t.cfg.TopK, 1))]
	if !slices.ContainsFunc(first, func(h ranking.Hit) bool { return t.group(s.indexed.Ordinal(h.Slot)) != "" }) {
		return answer
	}
	again := search(func(_, slot int, _ float32) bool {
		ordinal := s.indexed.Ordinal(slot)
		return t.group(ordinal) == "" && t.may(ordinal) && (t.query.AmongCards || t.snapshot.Entries()[ordinal].Kind != capability.KindCard)
	})
	answer.Fit = max(answer.Fit, again.Fit)
	answer.Embedding += again.Embedding
	known := map[[2]int]int{}
	for i, h := range answer.Hits {
		known[[2]int{h.Part, h.Slot}] = i
	}
	for _, h := range again.Hits {
		if i, ok := known[[2]int{h.Part, h.Slot}]; !ok {
			answer.Hits = append(answer.Hits, h)
		} else if answer.Hits[i].Score < h.Score {
			answer.Hits[i].Score = h.Score
		}
	}
	return answer
}

// byTrust puts more trusted hits before less trusted ones with about the same
// score, and keeps a less trusted group from taking all places. Hits that the
// message names keep their place.
func (t *turn) byTrust(ranked []graph.Ranked) []graph.Ranked {
	if !slices.ContainsFunc(ranked, func(r graph.Ranked) bool { return t.group(r.Ordinal) != "" }) {
		return ranked
	}
	for i := range ranked {
		for j := i; j > 0; j-- {
			above, below := ranked[j-1], ranked[j]
			if t.group(below.Ordinal) != "" || t.group(above.Ordinal) == "" || t.hit(above.Ordinal).Exact || below.Score < nearTie*above.Score {
				break
			}
			ranked[j-1], ranked[j] = below, above
		}
	}
	return t.seated(ranked)
}

// seated moves the best hits that fit into the first TopK places. A less
// trusted group takes no more than its share of them while other hits fit.
func (t *turn) seated(ranked []graph.Ranked) []graph.Ranked {
	places, taken := max(t.cfg.TopK, 1), map[string]int{}
	var first, over, rest []graph.Ranked
	for _, r := range ranked {
		group := t.group(r.Ordinal)
		switch {
		case len(first) == places || r.Score < t.cfg.TailRelevance && len(first) > 0:
			rest = append(rest, r)
		case group != "" && taken[group] == share(places) && !t.hit(r.Ordinal).Exact:
			over = append(over, r)
		default:
			taken[group]++
			first = append(first, r)
		}
	}
	free := min(places-len(first), len(over))
	for _, r := range over[free:] {
		if t.crowded == nil {
			t.crowded = map[int]string{}
		}
		t.crowded[r.Ordinal] = fmt.Sprintf("%s takes at most %d of discovery.tier1TopK %d places while others fit", t.group(r.Ordinal), share(places), places)
	}
	return slices.Concat(first, over, rest)
}
