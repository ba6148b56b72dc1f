package outcome

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"ken/capability"

	"github.com/google/go-cmp/cmp"
)

func card(id capability.ID, tokens int) Item {
	return Item{ID: id, Tier: TierCard, Score: 0.7, Tokens: tokens}
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
	forced := selection("s4", Item{ID: "card-b", Tier: TierCard, Score: 1, Tokens: 80, Forced: true})
	forced.TookUS, forced.Dump = 90, 50
	first := selection("s1", Item{ID: "tool:m", Tier: TierMap}, card("card-a", 300), brief("tool:x", 20), brief("tool:y", 30))
	first.TookUS, first.Dump, first.Cut = 80, 10_000, 2
	first.Tokens.Total += 150 // the map
	withheld := selection("s1", Item{ID: "card-a", Tier: TierCard, Tokens: 300, Held: true}, brief("tool:x", 20))
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
		Searched: 3, Misses: 1, NothingFound: 1, UsedBySearch: 1, UsedUnshown: 1,
		Described: 1, Calls: 7, FailedCalls: 1, CutFromEvents: 2,
		Savings: Savings{Turns: 2, Dump: 10_050, Sent: 580, Saved: 9470, Rate: 9470. / 10_050},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Summarise, -want +got:\n%s", diff)
	}
}

func TestMetricsOfNothing(t *testing.T) {
	bad := func(yield func(Event, error) bool) { yield(Event{}, errors.New("bad line")) }
	got := Summarise(bad, noon)
	want := Metrics{Since: noon, Unreadable: 1, TargetUS: 50_000, WithinTarget: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Summarise, -want +got:\n%s", diff)
	}
	out, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
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
	e.Dump = 100
	if got := Summarise(of(e), time.Time{}).Savings; got.Saved != -200 || got.Rate != -2 {
		t.Errorf("Savings = %+v, want −200 tokens", got)
	}
}
