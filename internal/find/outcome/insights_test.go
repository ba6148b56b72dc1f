package outcome

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/testkit"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// dear costs 10, 50, 1 and 12.5 dollars a million, and keeps what it read for
// five minutes. Of p/small only the window is known.
func dear(model string) (Price, bool) {
	if model == "p/small" {
		return Price{Window: 100_000}, false
	}
	return Price{Input: 10, Output: 50, CachedRead: 1, CacheWrite: 12.5, Life: 5 * time.Minute, Source: "test"}, model == "p/dear"
}

// turned is a turn that began a minute before it ended.
func turned(session string, at time.Time, requests, shown, added, dump int, u Usage) Event {
	return Event{
		Time: at, Kind: Ended, Session: session, Model: "p/dear", End: "answer", Requests: requests,
		Shown: shown, Added: added, AllToolTokens: dump, Usage: u, TookUS: 60_000_000,
	}
}

func dollars(x float64) *float64 { return &x }

// TestInsightsBill reckons each bill by hand, in millionths of a dollar.
func TestInsightsBill(t *testing.T) {
	first := turned("s1", noon, 2, 1000, 1000, 20_000, Usage{Input: 10_000, Output: 100, CachedRead: 4000, CachedWrite: 5000})
	firstBill := Bill{
		Turns: 1, Requests: 2, ShownTokens: 2000, AllTokens: 40_000, SavedTokens: 38_000, CachedRead: 4000, CachedWrite: 5000, Plain: 1000, Output: 100,
		// Input cost 1000·10 + 4000·1 + 5000·12.5 = 76,500, a mean of 7.65: 1000·12.5 + 1000·7.65.
		Paid:    dollars(0.02015),
		AllPaid: dollars(0.27), // 20,000·12.5 + 20,000·1
		Saved:   dollars(0.24985),
	}
	reads := Usage{Input: 8000, Output: 200, CachedRead: 8000}
	tests := []struct {
		name   string
		events []Event
		want   Bill
	}{
		{"nothing", nil, Bill{}},
		{"the first writes", []Event{first}, firstBill},
		{"before the time it warms the cache", []Event{
			turned("s0", noon.Add(-2*time.Hour), 1, 1, 1, 500, reads), turned("s0", noon.Add(-time.Hour-2*time.Minute), 1, 0, 0, 20_000, reads),
			turned("s1", noon.Add(-time.Hour+time.Minute), 1, 1500, 0, 20_000, reads),
		}, Bill{
			Turns: 1, Requests: 1, ShownTokens: 1500, AllTokens: 20_000, SavedTokens: 18_500, CachedRead: 8000, Output: 200,
			Paid: dollars(0.0015), AllPaid: dollars(0.02), Saved: dollars(0.0185),
		}},
		{"another session reads what one wrote; a search is charged", []Event{
			turned("s0", noon.Add(-5*time.Minute), 1, 0, 0, 20_000, Usage{}), // 20,000·12.5
			{Time: noon, Kind: Searched, Session: "s1", ID: "tool:a"},
			turned("s1", noon, 2, 1500, 0, 20_000, reads),
		}, Bill{
			Turns: 2, Requests: 3, ShownTokens: 3000, AllTokens: 40_000, SavedTokens: 37_000, CachedRead: 8000, Output: 200,
			// 3000·1, and half of the rest: (8000 − 3000 + 200·50) / 2.
			Paid: dollars(0.0105), AllPaid: dollars(0.27), Saved: dollars(0.2595),
		}},
		{"another tenant does not", []Event{
			turned("s0", noon.Add(-2*time.Minute), 1, 0, 0, 20_000, Usage{}),
			func() Event { e := turned("s1", noon, 1, 1500, 0, 20_000, reads); e.Tenant = "b"; return e }(),
		}, Bill{
			Turns: 2, Requests: 2, ShownTokens: 1500, AllTokens: 40_000, SavedTokens: 38_500, CachedRead: 8000, Output: 200,
			Paid: dollars(0.0015), AllPaid: dollars(0.5), Saved: dollars(0.4985),
		}},
		{"after the cache's life it is written anew", []Event{
			turned("s1", noon.Add(-7*time.Minute), 1, 0, 0, 1000, Usage{}), turned("s1", noon, 1, 0, 0, 1000, Usage{}),
		}, Bill{Turns: 2, Requests: 2, AllTokens: 2000, SavedTokens: 2000, Paid: dollars(0), AllPaid: dollars(0.025), Saved: dollars(0.025)}},
		{"it can cost more than it saves", []Event{turned("s1", noon, 1, 3000, 3000, 1000, Usage{Input: 4000})}, Bill{
			Turns: 1, Requests: 1, ShownTokens: 3000, AllTokens: 1000, SavedTokens: -2000, Plain: 4000,
			Paid: dollars(0.0375), AllPaid: dollars(0.0125), Saved: dollars(-0.025),
		}},
		{"a part costs no more than the whole", []Event{turned("s1", noon, 1, 3000, 3000, 1000, Usage{Input: 2000})}, Bill{
			Turns: 1, Requests: 1, ShownTokens: 3000, AllTokens: 1000, SavedTokens: -2000, Plain: 2000,
			Paid: dollars(0.02), AllPaid: dollars(0.0125), Saved: dollars(-0.0075),
		}},
		{"what does not fit into the window is not counted", []Event{
			// 100,000 less (30,000 / 2 − 1000) for the rest of each request.
			func() Event {
				e := turned("s1", noon, 2, 1000, 0, 400_000, Usage{Input: 30_000, CachedRead: 30_000})
				e.Model = "p/small"
				return e
			}(),
			func() Event {
				e := turned("s2", noon, 1, 10, 0, 50_000, Usage{Input: 99_990})
				e.Model = "p/small"
				return e
			}(), // there is room for 20
			func() Event {
				e := turned("s3", noon, 1, 10, 0, 50_000, Usage{Input: 200_000})
				e.Model = "p/small"
				return e
			}(),
		}, Bill{
			Turns: 3, Requests: 4, ShownTokens: 2020, AllTokens: 2*86_000 + 20, SavedTokens: 2*86_000 + 20 - 2020, CachedRead: 30_000, Plain: 299_990,
		}},
		{"no price: tokens alone", []Event{func() Event { e := turned("s1", noon, 1, 10, 0, 100, reads); e.Model = "p/free"; return e }()}, Bill{
			Turns: 1, Requests: 1, ShownTokens: 10, AllTokens: 100, SavedTokens: 90, CachedRead: 8000, Output: 200,
		}},
		{"the size is not known: not compared", []Event{turned("s1", noon, 3, 10, 0, 0, reads)}, Bill{
			Turns: 1, Requests: 3, CachedRead: 8000, Output: 200,
		}},
		{"a turn that waits ends twice and is one; a command is none", []Event{
			func() Event { e := turned("s1", noon, 1, 0, 0, 0, Usage{}); e.End = "waiting"; return e }(),
			turned("s1", noon, 1, 0, 0, 0, Usage{}),
			{Time: noon, Kind: Ended, Session: "s1", End: "command"},
		}, Bill{Turns: 1, Requests: 2}},
	}
	for _, tt := range tests {
		got := Insights(of(tt.events...), InsightsConfig{Since: noon.Add(-time.Hour), Price: dear})
		if diff := cmp.Diff(tt.want, got.Totals, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
			t.Errorf("%s: totals (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestInsightsDays: days are those of the zone, and add up to the totals.
func TestInsightsDays(t *testing.T) {
	zone := time.FixedZone("east", 2*60*60)
	late := time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC) // the second of March there
	shown := selection("s1", brief("tool:a", 20), brief("tool:b", 30))
	shown.Time, shown.TookUS, shown.EmbedUS = late, 80, 3000
	used, failed := outcome(Used, "s1", "tool:a"), outcome(Failed, "s1", "tool:c")
	used.Time, used.TookUS = late, 1500
	failed.Time, failed.TookUS = late.AddDate(0, 0, 3), 90_000_000
	refused := Event{Time: late.AddDate(0, 0, 3), Kind: Refused, Session: "s1", ID: "tool:d", Rule: "intents.read.write"}
	searched := outcome(Searched, "s1", "tool:c")
	searched.Time = late
	newer := Event{Time: late, Kind: "dreamt", Session: "s1"}
	broken := func(yield func(Event, error) bool) {
		for e, err := range of(shown, searched, used, newer, failed, refused, turned("s1", late, 1, 10, 10, 100, Usage{Input: 50}),
			turned("s1", late.AddDate(0, 0, 9), 1, 10, 10, 100, Usage{Input: 50})) { // behind the end
			if !yield(e, err) {
				return
			}
		}
		yield(Event{}, errors.New("half a line"))
	}
	got := Insights(broken, InsightsConfig{Since: late.AddDate(0, 0, -1), Until: late.AddDate(0, 0, 9), Zone: zone, Tokenizer: "exact", Price: dear})

	var days []string
	var sum Bill
	for _, d := range got.Days {
		days = append(days, d.Day)
		sum.plus(&d.Bill)
	}
	sum.settle()
	if want := []string{"2026-03-02", "2026-03-05"}; !slices.Equal(days, want) {
		t.Errorf("days = %v, want %v", days, want)
	}
	if diff := cmp.Diff(got.Totals, sum, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Errorf("the days do not add up (-totals +days):\n%s", diff)
	}
	want := Bill{Selections: 2, Used: 1, Calls: 2, Failed: 1, Refused: 1}
	if b := got.Totals; b.Selections != want.Selections || b.Used != want.Used || b.Calls != want.Calls || b.Failed != want.Failed || b.Refused != want.Refused {
		t.Errorf("totals = %+v, want %+v of outcomes", b, want)
	}
	ms := func(x float64) *float64 { return &x }
	capabilities := []CapabilityUse{
		{ID: "tool:a", Shown: 1, Used: 1, Tokens: 20, P50MS: ms(1.5)},
		{ID: "tool:c", Failed: 1, Searched: 1, P50MS: ms(90_000)},
		{ID: "tool:b", Shown: 1, Tokens: 30},
		{ID: "tool:d", Refused: 1},
	}
	if diff := cmp.Diff(capabilities, got.Capabilities, cmpopts.IgnoreUnexported(CapabilityUse{})); diff != "" {
		t.Errorf("capabilities (-want +got):\n%s", diff)
	}
	if !slices.Equal(got.Refusals, []Refusal{{"intents.read.write", 1}}) {
		t.Errorf("refusals = %v", got.Refusals)
	}
	l := got.Latency
	for name, h := range map[string]struct {
		counts []int
		at     int
	}{"find": {l.Find, 2}, "embed": {l.Embed, 7}, "call": {l.Call.Counts, 1}, "slow call": {l.Call.Counts, len(l.Call.Counts) - 1}, "turn": {l.Turn.Counts, 9}} {
		if h.counts[h.at] != 1 {
			t.Errorf("%s = %v, want one at %d", name, h.counts, h.at)
		}
	}
	if len(got.Prices) != 1 || got.Prices[0].Model != "p/dear" || got.Tokenizer != "exact" {
		t.Errorf("prices = %+v, tokenizer %q", got.Prices, got.Tokenizer)
	}
	for _, part := range []string{"never misses", "1 lines or files of the log could not be read", "1 lines are of kinds that this Ken does not know"} {
		if !strings.Contains(strings.Join(got.Notes, "\n"), part) {
			t.Errorf("notes = %q, want %q in them", got.Notes, part)
		}
	}
}

// TestInsightsBounds: an answer is bounded, and says what it left out.
func TestInsightsBounds(t *testing.T) {
	var events []Event
	for i := range 600 {
		e := outcome(Used, "s", capability.ID(fmt.Sprint("tool:", i)))
		e.Time = noon.AddDate(0, 0, i)
		events = append(events, e, Event{Time: noon, Kind: Refused, Session: "s", Rule: fmt.Sprint("rule ", i)})
	}
	got := Insights(of(events...), InsightsConfig{})
	notes := strings.Join(got.Notes, "\n")
	if len(got.Days) != mostDays || len(got.Capabilities) != mostCapabilities || len(got.Refusals) != mostRefusals || got.Totals.Calls != 600 {
		t.Errorf("%d days, %d capabilities, %d rules, %d calls", len(got.Days), len(got.Capabilities), len(got.Refusals), got.Totals.Calls)
	}
	for _, part := range []string{"200 days", "100 more capabilities", "500 more rules"} {
		if !strings.Contains(notes, part) {
			t.Errorf("notes = %q, want %q in them", notes, part)
		}
	}
}

// TestInsightsNeverFlatter: whatever the turns, what Ken paid is at least what
// its tokens cost if all of them were read from the cache, and what all schemas
// would have cost is at most what they cost if each request wrote them.
func TestInsightsNeverFlatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "turns")
		var events []Event
		at, least, most := noon, 0.0, 0.0
		for range n {
			at = at.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "pause")) * time.Second)
			requests, dump := rapid.IntRange(1, 9).Draw(t, "requests"), rapid.IntRange(1, 100_000).Draw(t, "dump")
			shown := rapid.IntRange(0, 5000).Draw(t, "shown")
			u := Usage{Input: requests*shown + rapid.IntRange(0, 50_000).Draw(t, "more")}
			u.CachedRead = rapid.IntRange(0, u.Input).Draw(t, "read")
			u.CachedWrite = rapid.IntRange(0, u.Input-u.CachedRead).Draw(t, "write")
			for range rapid.IntRange(0, 3).Draw(t, "searches") {
				events = append(events, Event{Time: at, Kind: Searched, Session: "s"})
			}
			events = append(events, turned("s", at, requests, shown, rapid.IntRange(0, shown).Draw(t, "added"), dump, u))
			least += float64(shown*requests) * 1 / 1e6
			most += float64(dump*requests) * 12.5 / 1e6
		}
		b := Insights(of(events...), InsightsConfig{Price: dear}).Totals
		if *b.Paid < least-1e-5 || *b.AllPaid > most+1e-5 || math.Abs(*b.Saved-(*b.AllPaid-*b.Paid)) > 1e-5 {
			t.Fatalf("paid %v, want at least %v; all %v, want at most %v; saved %v", *b.Paid, least, *b.AllPaid, most, *b.Saved)
		}
	})
}

// TestTenantsLearnApart: what one tenant does teaches nothing about another,
// even in sessions of one name.
func TestTenantsLearnApart(t *testing.T) {
	var events []Event
	for _, e := range shownIn("tool:a", 20, 18, noon) {
		e.Tenant = "one"
		events = append(events, e)
	}
	for _, e := range shownIn("tool:a", 20, 0, noon) {
		e.Tenant = "two"
		events = append(events, e)
	}
	got := PriorsByTenant(of(events...), noon)
	if one, two := got["one"]["tool:a"], got["two"]["tool:a"]; one.Used != 18 || one.LogOdds <= 0 || two.Used != 0 || two.LogOdds >= 0 {
		t.Errorf("PriorsByTenant = %+v and %+v, want the first to be good, the second not", one, two)
	}
	if all := Priors(of(events...), noon)["tool:a"]; all.Shown != 40 || all.Used != 18 {
		t.Errorf("Priors = %+v, want both together, and each session once", all)
	}
}

func TestTenantKey(t *testing.T) {
	long := strings.Repeat("x", 300)
	seen := map[string]string{}
	for _, name := range []string{"", "acme", "a\nb", "é", "\xff", "\xfe", long, long + "y", "sha256:1"} {
		key := TenantKey(name)
		if other, ok := seen[key]; ok {
			t.Errorf("TenantKey(%q) = %q, as of %q", name, key, other)
		}
		seen[key] = name
		line, err := encode(nil, Event{Time: noon, Kind: Used, Tenant: name})
		var e Event
		if err != nil || decode(line[:len(line)-1], &e) != nil || e.Tenant != key {
			t.Errorf("the tenant %q is written %q, want %q (%v)", name, e.Tenant, key, err)
		}
	}
}

// TestLogOfAnotherAge: lines that an older Ken wrote are read as they were, and
// kinds and fields that a newer one writes do not alarm.
func TestLogOfAnotherAge(t *testing.T) {
	dir := t.TempDir()
	old := `{"time":"2026-03-01T12:00:00Z","kind":"used","session":"s","id":"tool:a","injected":false}`
	newer := `{"time":"2026-03-01T12:00:01Z","kind":"dreamt","session":"s","injected":false,"colour":{"of":"it"}}`
	testkit.OK(t, os.WriteFile(logPath(dir, 1), []byte(old+"\n"+newer+"\n"), 0o600))
	l := open(t, dir, Config{})
	add(t, l, turned("s", noon, 2, 10, 5, 100, Usage{Input: 3, Output: 4, CachedRead: 1, CachedWrite: 2}))
	events, errs := collect(l, time.Time{})
	if len(events) != 3 || len(errs) != 0 {
		t.Fatalf("events = %v, errors %v; want three and none", events, errs)
	}
	if want := turned("s", noon, 2, 10, 5, 100, Usage{Input: 3, Output: 4, CachedRead: 1, CachedWrite: 2}); cmp.Diff(want, events[2]) != "" {
		t.Errorf("the turn is read as %+v, want %+v", events[2], want)
	}
	if m := Summarise(of(events...), time.Time{}); m.Calls != 1 || m.Unreadable != 0 || m.Requests != 0 {
		t.Errorf("Summarise = %+v", m)
	}
	if _, alert := check(t, newSwitch(t, l, SwitchConfig{}), noon); alert != nil {
		t.Errorf("the kill switch says %v", alert)
	}
}
