package outcome

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"ken/capability"

	"pgregory.net/rapid"
)

// shownIn is n sessions that each see a capability once, the first used of them
// calling it.
func shownIn(id capability.ID, n, used int, at time.Time) []Event {
	var out []Event
	for i := range n {
		session := fmt.Sprintf("%s %d", id, i)
		e := selection(session, brief(id, 20))
		e.Time = at
		out = append(out, e)
		if i < used {
			u := outcome(Used, session, id)
			u.Time = at
			out = append(out, u)
		}
	}
	return out
}

func TestPriors(t *testing.T) {
	var events []Event
	events = append(events, shownIn("tool:good", 20, 18, noon)...)
	events = append(events, shownIn("tool:usual", 50, 13, noon)...)
	events = append(events, shownIn("tool:waste", 40, 0, noon)...)
	for i := range 5 {
		events = append(events, outcome(Searched, fmt.Sprint("search ", i), "tool:wanted"))
		events = append(events, outcome(Searched, fmt.Sprint("search ", i), "tool:wanted")) // counts once a session
	}
	for i := range 20 {
		s := fmt.Sprint("broken ", i)
		events = append(events, selection(s, brief("tool:broken", 20)), outcome(Failed, s, "tool:broken"))
		logged := selection(s, brief("tool:unseen", 20))
		logged.Injected = false
		events = append(events, logged)
	}
	for range 1000 { // one session that repeats itself
		events = append(events, selection("loop", brief("tool:loop", 20)))
	}
	events = append(events, outcome(Searched, "loop", "tool:loop")) // it was shown: no miss
	got := Priors(of(events...), noon)
	tests := []struct {
		id       capability.ID
		counts   Prior
		low, top float64
		why      string
	}{
		{"tool:good", Prior{Shown: 20, Used: 18}, 0.5, 0.5, "used 18 of 20 times shown"},
		{"tool:usual", Prior{Shown: 50, Used: 13}, -0.1, 0.1, "used 13 of 50"},
		{"tool:waste", Prior{Shown: 40}, -0.5, -0.5, "used 0 of 40"},
		{"tool:wanted", Prior{Searched: 5}, 0.3, 0.5, "searched for in 5 sessions"},
		{"tool:broken", Prior{Shown: 20, Used: 20, Failed: 20}, -0.5, -0.3, "20 of them failed"},
		{"tool:loop", Prior{Shown: perSession}, -0.5, -0.2, "used 0 of 10"},
	}
	for _, tt := range tests {
		p := got[tt.id]
		counts := Prior{Shown: p.Shown, Used: p.Used, Searched: p.Searched, Failed: p.Failed}
		if counts != tt.counts || p.LogOdds < tt.low || p.LogOdds > tt.top || !strings.Contains(p.Why, tt.why) {
			t.Errorf("prior of %s = %+v, want %+v with log-odds within %v and %v and %q", tt.id, p, tt.counts, tt.low, tt.top, tt.why)
		}
	}
	for _, id := range []capability.ID{"tool:unseen", "tool:unknown", ""} {
		if p, ok := got[id]; ok || p.LogOdds != 0 {
			t.Errorf("prior of %q = %+v, want none", id, p)
		}
	}
}

func TestPriorsFade(t *testing.T) {
	// Others are used one time in five, as if nothing were known.
	last := MaxLogOdds
	for i, age := range []time.Duration{0, HalfLife, 2 * HalfLife, 4 * HalfLife, 12 * HalfLife} {
		got := Priors(of(shownIn("tool:a", 2, 2, noon)...), noon.Add(age))["tool:a"].LogOdds
		// Two uses, each worth half as much after each half-life.
		w := 2 * math.Exp2(-age.Hours()/HalfLife.Hours())
		want := min(MaxLogOdds, logit((8*0.2+w)/(8+w))-logit(0.2))
		if math.Abs(got-want) > 1e-9 || i > 0 && got >= last && last < MaxLogOdds {
			t.Errorf("after %v: %v, want %v", age, got, want)
		}
		last = got
	}
	if last > 0.01 {
		t.Errorf("after a year: %v, want nearly 0", last)
	}
	if got := Priors(of(shownIn("tool:a", 1, 1, noon.Add(time.Hour))...), noon)["tool:a"].LogOdds; got > MaxLogOdds {
		t.Errorf("from the future: %v", got)
	}
}

// TestPriorsAreBounded holds for any history; one more use never lowers.
func TestPriorsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := []capability.ID{"tool:a", "tool:b", "card-c"}
		var events []Event
		for range rapid.IntRange(0, 200).Draw(t, "events") {
			session := rapid.SampledFrom([]string{"s1", "s2", "s3", "s4"}).Draw(t, "session")
			id := rapid.SampledFrom(ids).Draw(t, "id")
			e := outcome(rapid.SampledFrom([]Kind{Used, Failed, Searched, Described}).Draw(t, "kind"), session, id)
			if rapid.Bool().Draw(t, "selects") {
				e = selection(session, brief(id, 10))
				e.Injected = rapid.IntRange(0, 9).Draw(t, "injected") > 0
			}
			e.Time = noon.Add(-time.Duration(rapid.IntRange(-24, 24*200).Draw(t, "hours")) * time.Hour)
			events = append(events, e)
		}
		before := Priors(of(events...), noon)
		for id, p := range before {
			if math.IsNaN(p.LogOdds) || math.Abs(p.LogOdds) > MaxLogOdds || p.Used > p.Shown || p.Failed > p.Used || p.Why == "" {
				t.Fatalf("prior of %s = %+v", id, p)
			}
		}
		if again := Priors(of(events...), noon); fmt.Sprint(again) != fmt.Sprint(before) {
			t.Fatalf("Priors = %v, then %v", before, again)
		}
		after := Priors(of(append(events, selection("new", brief("tool:a", 10)), outcome(Used, "new", "tool:a"))...), noon)
		if after["tool:a"].LogOdds < before["tool:a"].LogOdds-1e-12 {
			t.Fatalf("one more use: %+v, before %+v", after["tool:a"], before["tool:a"])
		}
	})
}
