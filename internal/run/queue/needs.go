package queue

import (
	"slices"
	"sync"
	"time"
)

// needs knows what a worker has of what jobs need.
type needs struct {
	has func(need string) bool // nil: everything

	mu    sync.Mutex
	asked map[string]answer
}

type answer struct {
	has bool
	at  time.Time // when it was looked for
}

// An answer holds for lookEvery, so that a newly installed program is noticed. After
// forgetNeed without a question, the worker no longer announces the answer.
const forgetNeed = time.Minute

// lacks returns what a worker lacks of the needs of a job.
func (n *needs) lacks(of []string) (out []string) {
	if n.has == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	for _, need := range of {
		a, ok := n.asked[need]
		if !ok || now.Sub(a.at) > lookEvery {
			if n.asked == nil {
				n.asked = map[string]answer{}
			}
			a = answer{has: n.has(need), at: now}
			n.asked[need] = a
		}
		if !a.has {
			out = append(out, need)
		}
	}
	return out
}

// known returns what is there and what is not, of what jobs needed of late.
func (n *needs) known() (has, lacks []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for need, a := range n.asked {
		switch {
		case time.Since(a.at) > forgetNeed:
			delete(n.asked, need)
		case a.has:
			has = append(has, need)
		default:
			lacks = append(lacks, need)
		}
	}
	slices.Sort(has)
	slices.Sort(lacks)
	return has, lacks
}
