package main

import (
	"fmt"
	"math"
	"strings"
)

// habits are what is assumed of people at the busiest time.
type habits struct {
	online   float64 // part of the users who have a session open and follow it
	turns    float64 // of one of them in an hour
	finds    float64 // by other programs, for each turn
	calls    float64 // that only read, for each turn
	commands float64 // with an effect, for each turn
	sessions float64 // begun, for each turn
}

var usual = habits{online: 0.1, turns: 12, finds: 1, calls: 2, commands: 0.4, sessions: 0.1}

const (
	coresEach  = 4       // of a replica
	memoryEach = 8 << 20 // KB
	busy       = 0.6     // the part of a machine that is used, at most
	lockBusy   = 0.7     // of the batches that the lock can take
	fastEnough = 50.0    // ms, p99 of a commit
	dbCores    = 64.0    // of a large PostgreSQL server
)

// A need is what a number of users needs at the busiest time.
type need struct {
	users, online int
	turns         float64 // a second
	calls         float64 // a second, commands included
	cores         float64 // of Ken, all busy
	memory        float64 // KB
	replicas      int
	why           string // what decides how many there are
	trips         float64
	bytes         float64 // a second
	stored        float64 // bytes in 30 days
	dbCores       float64
	commits       float64 // batches written, a second
	lock          lockUse
	locks         int // that would suffice
}

// of returns what a number of users needs, and how many locks would suffice.
func of(m measured, h habits, users int) need {
	n := demand(m, h, users)
	_, each := m.commit()
	for n.locks = max(1, int(n.commits*each/1000/lockBusy)); !m.enough(n, n.locks); n.locks++ {
	}
	return n
}

// demand returns what a number of users needs.
func demand(m measured, h habits, users int) need {
	n := need{users: users, online: int(math.Ceil(float64(users) * h.online))}
	n.turns = float64(n.online) * h.turns / 3600
	n.calls = n.turns * (h.calls + h.commands)
	add := func(c cost, perSecond float64) {
		n.cores += c.CPU * perSecond / 1000
		n.dbCores += c.Database * perSecond / 1000
		n.trips += c.Trips * perSecond
		n.bytes += c.Bytes * perSecond
		n.commits += c.Commits * perSecond
		n.stored += max(0, c.Stored) * perSecond * 8 * 3600 * 22 // the busiest time for 8 hours on 22 days
	}
	add(m.Costs["turn"], n.turns)
	add(m.Costs["find"], n.turns*h.finds)
	add(m.Costs["call"], n.turns*h.calls)
	add(m.Costs["command with a key"], n.turns*h.commands)
	add(m.Costs["new session"], n.turns*h.sessions)
	add(m.Costs["open stream"], n.turns*h.sessions)
	n.memory = float64(n.online) * max(0, m.Costs["open stream"].Memory)
	for range 3 { // replicas cost something themselves
		idle := m.Costs["idle replica, a second"]
		cores := n.cores + float64(n.replicas)*idle.CPU/1000
		byCPU := int(math.Ceil(cores / coresEach / busy))
		byMemory := int(math.Ceil(n.memory / (memoryEach*busy - idle.Memory)))
		n.replicas, n.why = 2, "one may fail"
		if byCPU > n.replicas {
			n.replicas, n.why = byCPU, "processors"
		}
		if byMemory > n.replicas {
			n.replicas, n.why = byMemory, "memory of open streams"
		}
	}
	add(m.Costs["idle replica, a second"], float64(n.replicas))
	n.lock = m.simulate(n.commits, n.replicas, 1)
	return n
}

// enough reports whether some locks suffice, each with its part of the commits.
func (m measured) enough(n need, locks int) bool {
	rate := n.commits / float64(locks)
	if _, each := m.commit(); rate*each/1000 > lockBusy {
		return false
	}
	return m.simulate(rate, n.replicas, 1).p99 <= fastEnough
}

// most returns for how many users one lock suffices.
func most(m measured, h habits) int {
	low, high := 100, 1<<30
	for high-low > low/50 {
		mid := low + (high-low)/2
		if m.enough(demand(m, h, mid), 1) {
			low = mid
		} else {
			high = mid
		}
	}
	step := int(math.Pow10(len(fmt.Sprint(low)) - 2))
	return low / step * step
}

// first says what a number of users runs short of first, and what to do about it.
func (n need) first() (what, next string) {
	switch {
	case n.locks > 1:
		return fmt.Sprintf("the one lock for writes in PostgreSQL, with %s batches a second", round(n.commits)),
			fmt.Sprintf("%d locks, one for each part of the tenants; or as many databases with their own replicas", n.locks)
	case n.dbCores > dbCores*busy:
		return "processors of PostgreSQL", "a database for each part of the tenants"
	case n.replicas > 2:
		return "replicas: " + n.why, "add replicas; they share nothing but PostgreSQL"
	}
	return "none", "nothing: two replicas have room"
}

func report(m measured, h habits, users []int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Assumed at the busiest time: %g%% of the users have a session open. Each of them has %g turns an hour, and for each turn %g find, %g calls that read and %g commands with an effect. A replica has %d cores and %d GB, and at most %g%% of that is used.\n\n",
		h.online*100, h.turns, h.finds, h.calls, h.commands, coresEach, memoryEach>>20, busy*100)
	fmt.Fprintln(&b, "| one | CPU of Ken, ms | CPU of PostgreSQL, ms | round trips | bytes | batches written | bytes kept |")
	fmt.Fprintln(&b, "|---|---|---|---|---|---|---|")
	for _, name := range []string{"find", "call", "command with a key", "turn", "new session", "open stream", "idle replica, a second", "the same with the open streams"} {
		c := m.Costs[name]
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %.1f | %s | %.1f | %s |\n", name, c.CPU, c.Database, c.Trips, round(c.Bytes), c.Commits, round(max(0, c.Stored)))
	}
	fmt.Fprintf(&b, "\nAn open stream takes %.0f KB, an idle replica %.0f MB.\n\n", m.Costs["open stream"].Memory, m.Costs["idle replica, a second"].Memory/1024)
	var needs []need
	for _, u := range users {
		needs = append(needs, of(m, h, u))
	}
	row := func(what string, value func(need) string) {
		fmt.Fprintf(&b, "| %s |", what)
		for _, n := range needs {
			fmt.Fprintf(&b, " %s |", value(n))
		}
		fmt.Fprintln(&b)
	}
	row("users", func(n need) string { return whole(n.users) })
	fmt.Fprintln(&b, "|---"+strings.Repeat("|---", len(needs))+"|")
	row("open sessions", func(n need) string { return whole(n.online) })
	row("turns, calls a second", func(n need) string { return round(n.turns) + ", " + round(n.calls) })
	row("busy cores of Ken", func(n need) string { return cores(n.cores) })
	row("memory of open streams", func(n need) string { return gigabytes(n.memory * 1024) })
	row("replicas, and why as many", func(n need) string { return fmt.Sprintf("%d: %s", n.replicas, n.why) })
	row("round trips to PostgreSQL a second", func(n need) string { return round(n.trips) })
	row("busy cores of PostgreSQL", func(n need) string { return cores(n.dbCores) })
	row("network to PostgreSQL", func(n need) string { return fmt.Sprintf("%.1f MB/s", n.bytes/1e6) })
	row("kept in 30 days, if nothing is deleted", func(n need) string { return gigabytes(n.stored) })
	row("batches written a second", func(n need) string { return round(n.commits) })
	row("the lock for writes is busy; p99 of a batch", func(n need) string { return n.lock.String() })
	row("**first bottleneck**", func(n need) string { what, _ := n.first(); return what })
	row("**next step**", func(n need) string { _, next := n.first(); return next })
	fmt.Fprintf(&b, "\nOne lock suffices for about %s users with these habits.\n", whole(most(m, h)))
	return b.String()
}

// round writes a number with two digits that count.
func round(x float64) string {
	switch {
	case x <= 0:
		return "0"
	case x < 10:
		return fmt.Sprintf("%.1f", x)
	}
	step := math.Pow10(int(math.Log10(x)) - 1)
	return whole(int(math.Round(x/step) * step))
}

// whole writes a number with commas.
func whole(n int) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

func cores(x float64) string {
	if x < 1 {
		return fmt.Sprintf("%.2f", x)
	}
	return fmt.Sprintf("%.0f", x)
}

func gigabytes(x float64) string {
	if x < 1e9 {
		return fmt.Sprintf("%.0f MB", x/1e6)
	}
	return round(x/1e9) + " GB"
}
