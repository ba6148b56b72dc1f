package graph

import "slices"

// What is looked at for one hit, whatever sources write: capabilities reached,
// requirements of one of them, and members of one preset.
const (
	maxReached   = 64
	maxLookedAt  = 64
	maxCompanion = 2 // attached at most; they are a hint, not a need
)

// A reached capability is a hit or something that it needs.
type reached struct {
	ordinal int32
	of      int32 // what needs it
	hops    int32
	score   float64
	hit     bool // shown anyway
}

// An attacher finds what hits need.
type attacher struct {
	*Graph
	hits []candidate // those that will be shown
	cfg  Config
	keep func(int) bool
}

// attach adds to each of the best results what it needs. The results were made of
// the hits, in the same order.
func (a *attacher) attach(top []Ranked) {
	if a.cfg.MaxAttached == 0 || len(a.needs.all)+a.pairs == 0 {
		return
	}
	var end [maxCandidates]int
	var room [64]Attachment // on the stack; what is kept is copied once
	var wayRoom [maxReached]reached
	all := room[:0]
	for i := range top {
		all = a.attachTo(all, a.reach(wayRoom[:0], a.hits[i]))
		end[i] = len(all)
	}
	kept := slices.Clone(all)
	first := 0
	for i := range top {
		if end[i] > first {
			top[i].Attached = kept[first:end[i]:end[i]]
		}
		first = end[i]
	}
}

// reach returns a hit and all that it needs, nearest first, then by ordinal. It
// goes on through other hits, which may be cut from the end of the list, and
// not through what keep refuses.
func (a *attacher) reach(way []reached, from candidate) []reached {
	way = append(way, reached{ordinal: from.ordinal, score: from.base, hit: true})
	level := 0
	for hops := 1; hops <= a.cfg.MaxHops && level < len(way); hops++ {
		next := len(way)
		for _, parent := range way[level:next] {
			needs := a.needs.of(parent.ordinal)
			for _, to := range needs[:min(len(needs), maxLookedAt)] {
				if len(way) == maxReached {
					break
				}
				if isReached(way, to) || !a.keep(int(to)) {
					continue
				}
				way = append(way, reached{
					ordinal: to, of: parent.ordinal, hops: int32(hops),
					score: parent.score * a.cfg.Boost * weightDepends, hit: isHit(a.hits, to),
				})
			}
		}
		slices.SortFunc(way[next:], func(a, b reached) int { return int(a.ordinal) - int(b.ordinal) })
		level = next
	}
	return way
}

// attachTo appends what comes with a hit: what it needs, then those it is
// composed with.
func (a *attacher) attachTo(all []Attachment, way []reached) []Attachment {
	full := len(all) + a.cfg.MaxAttached
	for _, r := range way[1:] {
		if !r.hit && len(all) < full {
			all = append(all, Attachment{int(r.ordinal), int(r.of), int(r.hops), DependsOn, r.score})
		}
	}
	me := way[0]
	if len(a.groups.of(me.ordinal)) == 0 {
		return all
	}
	full = min(full, len(all)+maxCompanion)
	var room [128]int32
	for _, to := range a.companions(room[:0], me.ordinal, maxLookedAt) {
		if len(all) == full {
			break
		}
		if isReached(way, to) || isHit(a.hits, to) || !a.keep(int(to)) {
			continue
		}
		all = append(all, Attachment{int(to), int(me.ordinal), 1, ComposedWith, me.score * a.cfg.Boost * weightComposed})
	}
	return all
}

func isReached(way []reached, ordinal int32) bool {
	for i := range way {
		if way[i].ordinal == ordinal {
			return true
		}
	}
	return false
}

func isHit(hits []candidate, ordinal int32) bool {
	for i := range hits {
		if hits[i].ordinal == ordinal {
			return true
		}
	}
	return false
}
