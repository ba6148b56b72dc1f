package outcome

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/testkit"

	"github.com/google/go-cmp/cmp"
)

// card names a tool that nobody calls here.
func card(id capability.ID, tokens int) Item {
	return Item{ID: id, Tier: TierCard, Score: 0.7, Tokens: tokens, Text: true, Names: []capability.ID{"tool:named"}}
}

func brief(id capability.ID, tokens int) Item {
	return Item{ID: id, Tier: TierBrief, Score: 0.7, Tokens: tokens}
}

func outcome(k Kind, session string, id capability.ID) Event {
	return Event{Time: noon, Kind: k, Session: session, ID: id}
}

// TestMetrics counts one small history by hand.
func TestMetrics(t *testing.T) {
	slow := selection("s2", card("card-a", 200), brief("tool:x", 20))
	slow.TookUS, slow.Error, slow.Degraded = 60_000, "index: unreadable", []string{"index"}
	monitor := selection("s3", card("card-a", 200))
	monitor.Mode, monitor.Injected, monitor.TookUS = Monitor, false, 100
	forced := selection("s4", Item{ID: "card-b", Tier: TierCard, Score: 1, Tokens: 80, Forced: true, Names: []capability.ID{"tool:named"}})
	forced.TookUS, forced.AllToolTokens = 90, 50
	first := selection("s1", Item{ID: "tool:m", Tier: TierMap}, card("card-a", 300), brief("tool:x", 20), brief("tool:y", 30))
	first.TookUS, first.AllToolTokens, first.Cut = 80, 10_000, 2
	first.Tokens.Total += 150 // the map
	withheld := selection("s1", Item{ID: "card-a", Tier: TierCard, Tokens: 300, Held: true, Names: []capability.ID{"tool:named"}}, brief("tool:x", 20))
	withheld.TookUS = 70
	got := Summarise(of(
		first,
		outcome(Used, "s1", "tool:x"),   // shown, used
		outcome(Used, "s1", "tool:x"),   // again: no second credit
		outcome(Failed, "s1", "card-a"), // shown, called in vain
		outcome(Searched, "s1", "tool:z"),
		outcome(Used, "s1", "tool:z"),
		outcome(Used, "s1", "tool:m"), // only named in the map
		outcome(Searched, "s1", "tool:y"),
		outcome(Described, "s1", "tool:y"),
		outcome(Searched, "s1", ""),
		withheld, // tool:x again, not used this time
		slow,
		outcome(Used, "s1", "tool:y"), // shown before the second selection, used now
		monitor,
		outcome(Used, "s3", "card-a"), // rightly selected, though not shown
		forced,
	), time.Time{})
	want := Metrics{
		Until: noon, Requests: 5, Sessions: 4,
		Triggered: 4, TriggerRate: 0.8,
		Injected: 2, InjectionRate: 0.4,
		TokensMean:     (500 + 20 + 220 + 0 + 80) / 5.,
		CardTokensMean: (300 + 0 + 200 + 0 + 80) / 5.,
		Errors:         1, ErrorRate: 0.2, Degraded: 1,
		P50US: 90, P95US: 60_000, MaxUS: 60_000, TargetUS: 50_000, OverTarget: 1, WithinTarget: false,
		// s1: card-a used, x used, y used, card-a held, x wasted; s2: card-a, x; s3: card-a used; s4: card-b.
		Selections: 9, SelectedUsed: 4, Accuracy: 4. / 9,
		Shown: 7, Wasted: 4, WasteRate: 4. / 7, WastedTokens: 20 + 200 + 20 + 80,
		Texts:    Texts{Sent: 3, Judged: 3, Used: 1, Rate: 1. / 3},
		Searched: 3, Misses: 1, NothingFound: 1, UsedBySearch: 1, UsedUnshown: 1,
		Described: 1, Calls: 7, FailedCalls: 1, CutFromEvents: 2,
		Savings: Savings{Turns: 2, AllToolTokens: 10_050, Sent: 580, Saved: 9470, Rate: 9470. / 10_050},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Summarise, -want +got:\n%s", diff)
	}
}

// TestTextsAreJudged: a card is used when a tool that it names is called in its
// turn, and any text when it is read. One that names no tool is not judged.
func TestTextsAreJudged(t *testing.T) {
	text := func(id capability.ID, tier Tier, names ...capability.ID) Item {
		return Item{ID: id, Tier: tier, Score: 0.7, Tokens: 100, Text: true, Names: names}
	}
	var events []Event
	for i := range 10 {
		s := fmt.Sprint("s", i)
		events = append(events,
			selection(s, text("card:good", TierCard, "tool:x", "tool:y"), text("card:idle", TierCard, "tool:z"), text("card:mute", TierCard)),
			outcome(Used, s, "tool:y"),
			outcome(Used, s, "tool:other"),
			selection(s, text("skill:read", TierBrief), text("skill:unread", TierBrief), text("skill:full", TierFull)),
			outcome(Used, s, "tool:z"), // in the next turn: no credit to card:idle
			Event{Time: noon, Kind: Described, Session: s, ID: "skill:read", Detail: ReadText},
		)
	}
	events = append(events, selection("old", Item{ID: "card:of-an-old-log", Tier: TierCard, Tokens: 100}))
	m := Summarise(of(events...), time.Time{})
	if want := (Texts{Sent: 61, Judged: 40, Used: 20, Rate: 0.5, Unjudged: 21}); m.Texts != want {
		t.Errorf("Texts = %+v, want %+v", m.Texts, want)
	}
	if m.Selections != 40 || m.SelectedUsed != 20 || m.Shown != 40 || m.Wasted != 20 {
		t.Errorf("Metrics = %+v, want 20 of 40 used", m)
	}
	p := Priors(of(events...), noon)
	if p["card:good"].LogOdds <= 0 || p["card:idle"].LogOdds >= 0 || p["skill:read"].LogOdds <= 0 {
		t.Errorf("Priors = %+v, want what was used above what was not", p)
	}
	for _, id := range []capability.ID{"card:mute", "skill:full", "card:of-an-old-log"} {
		if _, ok := p[id]; ok {
			t.Errorf("Priors has %s, of which nothing can be known: %+v", id, p[id])
		}
	}
	o := Insights(of(events...), InsightsConfig{})
	if o.Totals.Selections != 40 || o.Totals.Used != 20 || !strings.Contains(strings.Join(o.Notes, "\n"), "21 cards and other texts") {
		t.Errorf("Insights = %+v, %q", o.Totals, o.Notes)
	}
	for _, c := range o.Capabilities {
		want := map[capability.ID][2]int{"card:good": {10, 10}, "card:idle": {10, 0}, "card:mute": {0, 0}, "skill:read": {10, 10}}
		if w, ok := want[c.ID]; ok && (c.Shown != w[0] || c.Used != w[1]) {
			t.Errorf("%s was shown %d times and used %d, want %v", c.ID, c.Shown, c.Used, w)
		}
	}
}

// TestTextsAreNotComparedWithTools: that tools are used more often says nothing
// about cards.
func TestTextsAreNotComparedWithTools(t *testing.T) {
	var events []Event
	for i := range 40 {
		s := fmt.Sprint("s", i)
		events = append(events, selection(s, brief("tool:x", 20), card("card-a", 100), card("card-b", 100)), outcome(Used, s, "tool:x"))
		if i%4 == 0 {
			events = append(events, outcome(Used, s, "tool:named"))
		}
	}
	p := Priors(of(events...), noon)
	if a, b := p["card-a"].LogOdds, p["card-b"].LogOdds; a != b || a < -0.1 || a > 0.1 {
		t.Errorf("two cards alike have %+.2f and %+.2f, want about 0", a, b)
	}
}

func TestMetricsOfNothing(t *testing.T) {
	bad := func(yield func(Event, error) bool) { yield(Event{}, errors.New("bad line")) }
	got := Summarise(bad, noon)
	want := Metrics{Since: noon, Unreadable: 1, TargetUS: 50_000, WithinTarget: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Summarise, -want +got:\n%s", diff)
	}
	out := testkit.Must(json.Marshal(got))(t)
	for _, key := range []string{"injection_rate", "tokens_mean", "accuracy", "error_rate", "p95_us", "target_us", "wasted", "misses", "savings"} {
		if !strings.Contains(string(out), `"`+key+`":`) {
			t.Errorf("JSON lacks %s: %s", key, out)
		}
	}
}

func TestMetricsSince(t *testing.T) {
	old := selection("s", card("card-a", 100))
	old.Time = noon.Add(-time.Hour)
	got := Summarise(of(old, selection("s", card("card-a", 100)), outcome(Used, "s", "card-a")), noon)
	if got.Requests != 1 || got.Selections != 1 || got.SelectedUsed != 1 {
		t.Errorf("Summarise since noon = %+v, want one request, selected and used", got)
	}
}

func TestQuantile(t *testing.T) {
	var hundred []int64
	for i := range 100 {
		hundred = append(hundred, int64(i+1))
	}
	tests := []struct {
		values []int64
		q      float64
		want   int64
	}{
		{nil, 0.5, 0},
		{[]int64{7}, 0, 7},
		{[]int64{7}, 0.95, 7},
		{[]int64{1, 2}, 0.5, 1},
		{[]int64{1, 2, 3}, 0.5, 2},
		{hundred, 0.5, 50},
		{hundred, 0.95, 95},
		{hundred, 1, 100},
	}
	for _, tt := range tests {
		if got := quantile(tt.values, tt.q); got != tt.want {
			t.Errorf("quantile(%d values, %v) = %d, want %d", len(tt.values), tt.q, got, tt.want)
		}
	}
}

// TestSavingsMayBeNegative: a small catalog is cheaper to show whole.
func TestSavingsMayBeNegative(t *testing.T) {
	e := selection("s", brief("tool:a", 300))
	e.AllToolTokens = 100
	if got := Summarise(of(e), time.Time{}).Savings; got.Saved != -200 || got.Rate != -2 {
		t.Errorf("Savings = %+v, want −200 tokens", got)
	}
}
