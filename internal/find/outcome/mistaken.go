package outcome

import (
	"cmp"
	"iter"
	"slices"

	"ken/capability"
	"ken/internal/coldsort"
)

// Mistaken is a tool that was shown first, and another one that was called
// instead.
type Mistaken struct {
	Shown capability.ID `json:"shown"`
	Used  capability.ID `json:"used"`
	Turns int           `json:"turns"` // in which that happened
}

// MistakenFor returns the tools that were shown first and not called, while
// another tool was called that answered; the most frequent first.
func MistakenFor(events iter.Seq2[Event, error]) []Mistaken {
	type turn struct {
		first capability.ID
		used  []capability.ID
	}
	turns := map[string]*turn{} // by session: the one that is not over
	counts := map[[2]capability.ID]int{}
	settle := func(t *turn) {
		if t == nil || t.first == "" || slices.Contains(t.used, t.first) {
			return
		}
		for _, id := range t.used {
			counts[[2]capability.ID{t.first, id}]++
		}
	}
	for e, err := range events {
		switch {
		case err != nil || e.Session == "":
		case e.Kind == Selected:
			settle(turns[e.Session])
			turns[e.Session] = &turn{first: firstTool(e.Items)}
		case e.Kind == Used:
			if t := turns[e.Session]; t != nil && !slices.Contains(t.used, e.ID) {
				t.used = append(t.used, e.ID)
			}
		}
	}
	for _, t := range turns {
		settle(t)
	}
	out := []Mistaken{}
	for pair, n := range counts {
		out = append(out, Mistaken{Shown: pair[0], Used: pair[1], Turns: n})
	}
	coldsort.By(out, func(a, b Mistaken) int {
		return cmp.Or(cmp.Compare(b.Turns, a.Turns), cmp.Compare(a.Shown, b.Shown), cmp.Compare(a.Used, b.Used))
	})
	return out
}

// firstTool returns the best of what was chosen that can be called.
func firstTool(items []Item) (id capability.ID) {
	best := -1.0
	for _, it := range items {
		if !it.isText() && !it.Forced && it.Tier != TierMap && it.Score > best {
			id, best = it.ID, it.Score
		}
	}
	return id
}
