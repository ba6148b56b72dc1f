package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// The lock for writes lets one commit in after the other. What waits in one replica shares
// the next commit of that replica.

// A lockUse is how busy the lock is, and how long a batch takes with its wait.
type lockUse struct {
	busy float64 // part of the time; over 1: it never catches up
	p99  float64 // ms
}

func (u lockUse) String() string {
	if u.busy >= 1 {
		return "all the time: it does not keep up"
	}
	return fmt.Sprintf("%.0f%%; %.1f ms", u.busy*100, u.p99)
}

// commit returns what a commit costs, and each batch in it, in ms.
func (m measured) commit() (base, each float64) {
	// alone = base + each, and by16 = base/16 + each
	each = (m.Commit.By16 - m.Commit.Alone/16) / (1 - 1.0/16)
	return m.Commit.Alone - each, each
}

// simulate lets batches come by chance at a rate to replicas that share one lock, for some
// time, and always the same for the same seed.
func (m measured) simulate(perSecond float64, replicas int, seed uint64) lockUse {
	base, each := m.commit()
	if perSecond*each/1000 >= 1 {
		return lockUse{busy: 1}
	}
	const batches = 40_000
	rng := rand.New(rand.NewPCG(1, seed))
	waiting := make([][]float64, replicas) // when batches came, by replica
	var line []int                         // replicas that wait for the lock
	var took []float64
	now, free, worked, next := 0.0, 0.0, 0.0, 0.0
	come := func() {
		next = now + rng.ExpFloat64()*1000/perSecond
	}
	come()
	for sent := 0; len(took) < batches; {
		if len(line) == 0 || next <= max(free, now) && sent < batches {
			now = max(now, next)
			r := rng.IntN(replicas)
			if waiting[r] = append(waiting[r], now); len(waiting[r]) == 1 {
				line = append(line, r)
			}
			sent++
			come()
			continue
		}
		now = max(now, free)
		r := line[0]
		line = line[1:]
		time := base + each*float64(len(waiting[r]))
		free = now + time
		worked += time
		for _, at := range waiting[r] {
			took = append(took, free-at)
		}
		waiting[r] = nil
	}
	slices.Sort(took)
	return lockUse{busy: min(1, worked/free), p99: took[len(took)*99/100]}
}
