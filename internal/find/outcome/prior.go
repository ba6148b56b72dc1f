package outcome

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"ken/capability"
)

const (
	// MaxLogOdds bounds a prior: enough to settle a near tie, never enough to
	// make something irrelevant relevant.
	MaxLogOdds = 0.5

	// HalfLife is the age at which an outcome counts half.
	HalfLife = 30 * 24 * time.Hour

	priorStrength = 8.0 // showings that the others' rate weighs as much as
	failedWeight  = 0.5 // of a showing whose calls all failed, against it

	// Before anything is known, one showing in five is used.
	baseUsed, baseUnused = 1.0, 4.0

	// perSession is how many showings of one capability in one session count;
	// a session that repeats itself says nothing new.
	perSession = 10
)

// A Prior is what outcomes say about one capability, for someone who ranks
// capabilities that are already relevant. Counts are as they happened; LogOdds
// weighs them by age.
type Prior struct {
	Shown    int     `json:"shown"`
	Used     int     `json:"used"`     // of the showings; called, whether or not it worked
	Searched int     `json:"searched"` // sessions that searched for it without its having been selected
	Failed   int     `json:"failed"`   // of the used showings: no call worked
	LogOdds  float64 `json:"log_odds"` // within ±MaxLogOdds; 0 is neutral
	Why      string  `json:"why"`
}

// evidence is for and against a capability, by age.
type evidence struct {
	Prior
	yes, no float64
	text    bool // it is something to read
}

// Priors learns from events, as seen at now: how often a capability is used when
// shown, compared with all others (a beta-binomial estimate, with the others'
// rate as the prior), plus one success for each session that had to search for
// it. Selections that were only logged teach nothing, since no model saw them.
// Errors among the events are passed over. A capability without data is not in
// the map; its prior is the zero Prior.
func Priors(events iter.Seq2[Event, error], now time.Time) map[capability.ID]Prior {
	l := newLearner(now)
	for e, err := range events {
		if err == nil {
			l.book.add(e)
		}
	}
	return l.judge()
}

// PriorsByTenant is Priors of each tenant's own events, by [TenantKey]: what one
// tenant does teaches nothing about another.
func PriorsByTenant(events iter.Seq2[Event, error], now time.Time) map[string]map[capability.ID]Prior {
	all := map[string]*learner{}
	for e, err := range events {
		if err != nil {
			continue
		}
		l := all[e.Tenant]
		if l == nil {
			l = newLearner(now)
			all[e.Tenant] = l
		}
		l.book.add(e)
	}
	out := make(map[string]map[capability.ID]Prior, len(all))
	for tenant, l := range all {
		out[tenant] = l.judge()
	}
	return out
}

// A learner gathers evidence. It is fed through its book.
type learner struct {
	now   time.Time
	book  ledger
	all   map[capability.ID]*evidence
	seen  map[pair]int
	asked map[pair]bool
}

func newLearner(now time.Time) *learner {
	l := &learner{now: now, all: map[capability.ID]*evidence{}, seen: map[pair]int{}, asked: map[pair]bool{}}
	l.book.settled, l.book.searched = l.settled, l.searched
	return l
}

func (l *learner) of(id capability.ID) *evidence {
	if l.all[id] == nil {
		l.all[id] = &evidence{}
	}
	return l.all[id]
}

func (l *learner) weight(at time.Time) float64 {
	return math.Exp2(-max(0, l.now.Sub(at).Hours()/HalfLife.Hours()))
}

func (l *learner) settled(p pair, s showing) {
	if l.seen[p]++; s.sent && s.judged() && l.seen[p] <= perSession {
		v := l.of(p.id)
		v.text = s.text
		v.shown(s, l.weight(s.at))
	}
}

func (l *learner) searched(p pair, at time.Time, missed bool) {
	if missed && !l.asked[p] {
		l.asked[p] = true
		v := l.of(p.id)
		v.Searched++
		v.yes += l.weight(at)
	}
}

func (l *learner) judge() map[capability.ID]Prior {
	l.book.close()
	return judge(l.all)
}

func (v *evidence) shown(s showing, w float64) {
	v.Shown++
	switch {
	case s.worked:
		v.Used++
		v.yes += w
	case s.used:
		v.Used++
		v.Failed++
		v.no += failedWeight * w
	default:
		v.no += w
	}
}

// judge compares each capability with all others of its sort together: what is
// called with what is called, and texts with texts, for they are used in another
// sense.
func judge(all map[capability.ID]*evidence) map[capability.ID]Prior {
	sums := map[bool]*evidence{false: {yes: baseUsed, no: baseUnused}, true: {yes: baseUsed, no: baseUnused}}
	for _, id := range slices.Sorted(maps.Keys(all)) { // sums depend on the order
		sums[all[id].text].yes += all[id].yes
		sums[all[id].text].no += all[id].no
	}
	out := make(map[capability.ID]Prior, len(all))
	for id, v := range all {
		// Rounding must not take the others below what was there before them.
		y, n := max(sums[v.text].yes-v.yes, baseUsed), max(sums[v.text].no-v.no, baseUnused)
		others := y / (y + n)
		rate := (priorStrength*others + v.yes) / (priorStrength + v.yes + v.no)
		p := v.Prior
		p.LogOdds = min(MaxLogOdds, max(-MaxLogOdds, logit(rate)-logit(others)))
		p.Why = p.why(others, y > baseUsed || n > baseUnused)
		out[id] = p
	}
	return out
}

func logit(p float64) float64 { return math.Log(p / (1 - p)) }

// why says how often it was used, compared with others of its sort, or with
// the starting estimate where there are none.
func (p Prior) why(others float64, any bool) string {
	var parts []string
	if p.Shown > 0 {
		parts = append(parts, fmt.Sprintf("used %d of %d times shown", p.Used, p.Shown))
	}
	if p.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d of them failed", p.Failed))
	}
	if p.Searched > 0 {
		sessions := "1 session"
		if p.Searched > 1 {
			sessions = fmt.Sprintf("%d sessions", p.Searched)
		}
		parts = append(parts, "searched for in "+sessions+" where it had not been shown")
	}
	than := "others are used %.0f%% of the times shown"
	if !any {
		than = "nothing else was shown yet, so it is compared with %.0f%%"
	}
	return fmt.Sprintf("%s; "+than+": %+.2f", strings.Join(parts, ", "), 100*others, p.LogOdds)
}
