// Package eval measures how well and how fast capabilities are found, on
// queries whose right answers are known.
//
// [ReadQueries] reads the labelled queries, [Run] asks a [Finder] each of them
// and returns a [Report], and [Compare] says whether two runs over the same
// queries really differ. The package knows no finder of its own but the plain
// one to be beaten, [PlainBM25].
//
// How things are counted:
//
//   - A query is answerable when it has gold, and out of scope otherwise. The
//     ranking is judged on answerable queries only; Report.N counts them.
//   - NDCG has binary gains and the ideal of min(k, gold) hits at the top.
//     Recall@k is the share of a query's gold among its first k hits. MRR is
//     the mean of 1/place of the first gold among the ten hits looked at.
//   - A finder that abstains shows nothing, so an answerable query it abstains
//     on scores 0. The measures "before the floor" take the ranking it had all
//     the same.
//   - Gold that the catalog does not hold stays gold: it cannot be found, and
//     the query scores less for it. A catalog that loses a capability has lost
//     it for every user, and the score must show it. Each is a problem in the
//     report.
//   - Times are the best of several runs of each query, after a run that does
//     not count; percentiles are over all queries, by nearest rank.
package eval

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"ken/capability"
)

// depth is how many hits of an answer are looked at.
const depth = 10

// A Ranked is one answer to a query.
type Ranked struct {
	ID    string  `json:"id"`
	Score float64 `json:"score"` // 0–1: how probably it is right
}

// An Answer is what a finder says to one query.
type Answer struct {
	// Hits is the ranking, best first, of at most ten, whatever the floor.
	Hits []Ranked

	// Shown are the ids of what would be shown, in its order, what others need
	// and what is always shown among it.
	Shown []string

	// Abstained says that nothing would be shown: the best is below Floor.
	Abstained bool
	Floor     float64

	// Tokens counts what would be shown.
	Tokens int

	// Took is the finder's own measure of its time, for one that knows what
	// not to count; zero leaves the measuring to Run.
	Took time.Duration
}

// A Finder answers a query. Given the same query it returns the same ranking.
type Finder func(ctx context.Context, q Query) (Answer, error)

// Options of a run. The zero value works.
type Options struct {
	// Runs is how often each query is timed; zero means 5.
	Runs int

	// Known reports whether the catalog holds an id that could be found; nil
	// takes every gold id for known.
	Known func(id string) bool
}

// Run asks the finder every query, once to judge the answer and then
// opt.Runs times to measure the time. It stops at the first error.
func Run(ctx context.Context, find Finder, queries []Query, opt Options) (Report, error) {
	if opt.Runs <= 0 {
		opt.Runs = 5
	}
	answers := make([]Answer, len(queries))
	for i, q := range queries {
		answer, err := find(ctx, q)
		if err != nil {
			return Report{}, fmt.Errorf("find for query %s: %w", q.ID, err)
		}
		answers[i] = answer
	}
	speed, err := measure(ctx, find, queries, answers, opt.Runs)
	if err != nil {
		return Report{}, err
	}
	each := make([]PerQuery, len(queries))
	for i, q := range queries {
		each[i] = judge(q, answers[i])
		each[i].Micros = float64(speed.best[i].Nanoseconds()) / 1e3
	}
	r := summarize(each, answers)
	r.Allocs, r.AllocBytes = speed.allocs, speed.allocBytes
	r.Problems = append(missing(queries, opt.Known), speed.problems...)
	return r, nil
}

// A speed is what the timed runs gave.
type speed struct {
	best               []time.Duration // of each query
	allocs, allocBytes Mean            // per query
	problems           []capability.Problem
}

// measure times every query. A whole round goes before the next one, so that
// no query is asked again while its memory is still warm.
func measure(ctx context.Context, find Finder, queries []Query, answers []Answer, runs int) (speed, error) {
	s := speed{best: make([]time.Duration, len(queries)), allocs: undefined(), allocBytes: undefined()}
	if len(queries) == 0 {
		return s, nil
	}
	changed := -1
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for run := range runs {
		for i, q := range queries {
			start := time.Now()
			answer, err := find(ctx, q)
			took := time.Since(start)
			if err != nil {
				return s, fmt.Errorf("find for query %s: %w", q.ID, err)
			}
			if answer.Took > 0 {
				took = answer.Took
			}
			if run == 0 || took < s.best[i] {
				s.best[i] = took
			}
			if changed < 0 && (answer.Abstained != answers[i].Abstained || !slices.Equal(answer.Hits, answers[i].Hits)) {
				changed = i
			}
		}
	}
	runtime.ReadMemStats(&after)
	asked := float64(runs * len(queries))
	s.allocs = Mean(float64(after.Mallocs-before.Mallocs) / asked)
	s.allocBytes = Mean(float64(after.TotalAlloc-before.TotalAlloc) / asked)
	if changed >= 0 {
		q := queries[changed]
		s.problems = append(s.problems, capability.Problem{
			Severity: capability.Warning, Code: "unstable-answer", Origin: q.origin(),
			Message: fmt.Sprintf("query %s was answered differently when it was asked again", q.ID),
			Fix:     "measure a catalog that does not change meanwhile; the first answer was judged",
		})
	}
	return s, nil
}

// missing reports the gold that the catalog does not hold, each id once.
func missing(queries []Query, known func(id string) bool) []capability.Problem {
	out := []capability.Problem{}
	if known == nil {
		return out
	}
	at, rows := map[string]int{}, map[string]int{}
	for _, q := range queries {
		for _, id := range q.Gold {
			if known(id) {
				continue
			}
			if rows[id]++; rows[id] > 1 {
				continue
			}
			at[id] = len(out)
			out = append(out, capability.Problem{
				Severity: capability.Warning, Code: "unknown-gold", Subject: capability.ID(id), Origin: q.origin(),
				Fix: "measure against the catalog that the queries were written for, or see ken catalog why " + id,
			})
		}
	}
	for id, i := range at {
		out[i].Message = fmt.Sprintf("gold %q is not active in the catalog; it counts as not found in %d of the queries", id, rows[id])
	}
	return out
}
