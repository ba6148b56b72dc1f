package door

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/find/discover"
	"ken/internal/find/outcome"
	"ken/internal/testkit"
)

var (
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	session = capability.Scope{Session: "s1"}
)

const tideMessage = "weather forecast for the city, and the tide in the harbour"

// recorder makes a Recorder whose log is in dir; kill is its switch's.
func recorder(t *testing.T, dir string, mode outcome.Mode, kill outcome.SwitchConfig) *Recorder {
	t.Helper()
	return &Recorder{
		Mode: mode, SessionTypes: []string{"main"}, Now: func() time.Time { return noon },
		Open: func() (*outcome.Log, *outcome.Switch) {
			log, _ := outcome.Open(dir, outcome.Config{}) // the log itself tells what is wrong
			t.Cleanup(func() { _ = log.Close() })
			s := testkit.Must(outcome.NewSwitch(log, kill))(t)
			return log, s
		},
	}
}

func events(t *testing.T, r *Recorder) []outcome.Event {
	t.Helper()
	var out []outcome.Event
	for e, err := range r.log.Events(time.Time{}) {
		testkit.OK(t, err)
		out = append(out, e)
	}
	return out
}

// TestOnlySessionsAreRecorded: looking around leaves no trace, not even a folder.
func TestOnlySessionsAreRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "outcomes")
	r := recorder(t, dir, outcome.Full, outcome.SwitchConfig{})
	var text bytes.Buffer
	r.Text = &text
	d := open(t, r)
	find(t, d, Query{Text: tideMessage})
	call(t, d, capability.Scope{}, discover.ToolDiscover, `{"query":"weather"}`)
	if err := d.Used(capability.Scope{}, "tool:weather", true); err != nil {
		t.Error(err)
	}
	testkit.Equal(t, "Priors", r.Priors(capability.Scope{}), nil)
	if _, err := os.Stat(dir); !os.IsNotExist(err) || text.Len() != 0 {
		t.Fatalf("without a session: %v, %q; want no folder and no line", err, text.String())
	}

	found := find(t, d, Query{Text: tideMessage, Scope: capability.Scope{Session: "s1", SessionType: "main"}, RouterTags: []string{"sea"}})
	all := events(t, r)
	if len(all) != 1 {
		t.Fatalf("events = %+v, want one", all)
	}
	e := all[0]
	want := []outcome.Item{
		{ID: "tool:weather", Tier: outcome.TierBrief}, {ID: "tool:geocode", Tier: outcome.TierBrief},
		{ID: "card:tides", Tier: outcome.TierCard}, {ID: "tool:weather", Tier: outcome.TierFull},
	}
	if len(e.Items) != len(want) {
		t.Fatalf("items = %+v, want %+v", e.Items, want)
	}
	for i, it := range e.Items {
		if it.ID != want[i].ID || it.Tier != want[i].Tier || it.Tokens == 0 || it.Forced || it.Held {
			t.Errorf("item %d = %+v, want %+v with its tokens", i, it, want[i])
		}
	}
	if e.Kind != outcome.Selected || e.Session != "s1" || e.SessionType != "main" || !e.Injected || e.Mode != outcome.Full || e.Triggered != 1 ||
		e.Experiment != "tail" || e.Variant != "A" || !slices.Equal(e.Tags, []string{"sea"}) || !e.Time.Equal(noon) ||
		e.Tokens.Total != found.Tokens.Total || e.Retrieved != 2 || e.QueryHash != r.log.Hash(tideMessage) || e.QueryHash == "" {
		t.Errorf("event = %+v", e)
	}
	if b, err := os.ReadFile(logFile(t, dir)); err != nil || strings.Contains(string(b), "forecast") {
		t.Errorf("the log is %s, %v; want no word of the message in it", b, err)
	}
	if !strings.Contains(text.String(), "[capability-injection] Injected 3 capabilities") {
		t.Errorf("text = %q, want the line for people", text.String())
	}
}

func logFile(t *testing.T, dir string) string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(list) != 1 {
		t.Fatalf("logs = %v, %v; want one", list, err)
	}
	return list[0]
}

// TestForcedIsMarked: what the configuration includes did not trigger.
func TestForcedIsMarked(t *testing.T) {
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	d := open(t, r)
	d.cfg.Find = func(capability.Scope) Settings {
		cfg := discover.Defaults()
		cfg.ForceInclude = []capability.ID{"card:tides", "tool:calendar"}
		return Settings{Config: cfg}
	}
	find(t, d, Query{Text: "hello", Scope: session})
	e := events(t, r)[0]
	for _, it := range e.Items {
		if !it.Forced {
			t.Errorf("item %+v, want it marked as forced", it)
		}
	}
	if len(e.Items) != 3 || e.Triggered != 0 {
		t.Errorf("items %+v and %d triggered, want the brief, the card and the full text, and none", e.Items, e.Triggered)
	}
}

// TestRolloutModes: monitor injects nothing, soft in some sessions, full in all.
func TestRolloutModes(t *testing.T) {
	tests := []struct {
		mode   outcome.Mode
		scope  capability.Scope
		inject bool
		reason string
	}{
		{outcome.Monitor, capability.Scope{Session: "a"}, false, "capabilities.rollout is monitor"},
		{"", capability.Scope{Session: "a"}, false, "capabilities.rollout is monitor"},
		{outcome.Soft, capability.Scope{Session: "a"}, true, "capabilities.rollout is soft"},
		{outcome.Soft, capability.Scope{Session: "a", SessionType: "isolated"}, false, "capabilities.rolloutSessionTypes names main, not isolated"},
		{outcome.Full, capability.Scope{Session: "a", SessionType: "isolated"}, true, "capabilities.rollout is full"},
		{outcome.Monitor, capability.Scope{}, false, "capabilities.rollout is monitor"},
		{outcome.Soft, capability.Scope{}, true, "capabilities.rollout is soft"},
		{outcome.Full, capability.Scope{}, true, "capabilities.rollout is full"},
		{"everything", capability.Scope{}, false, "none of monitor, soft, full"},
	}
	for _, tt := range tests {
		r := recorder(t, t.TempDir(), tt.mode, outcome.SwitchConfig{})
		found := find(t, open(t, r), Query{Text: tideMessage, Scope: tt.scope})
		if found.Rollout.Inject != tt.inject || found.Rollout.Cards != tt.inject || !strings.Contains(found.Rollout.Reason, tt.reason) {
			t.Errorf("mode %q, %+v: %+v, want %v for %q", tt.mode, tt.scope, found.Rollout, tt.inject, tt.reason)
		}
		want := ""
		if tt.inject {
			want = found.Text()
		}
		if got := found.Prompt(); got != want || len(found.Briefs) == 0 || len(found.Cards) == 0 {
			t.Errorf("mode %q, %+v: prompt %q, want %q", tt.mode, tt.scope, got, want)
		}
		if tt.scope.Session != "" {
			if e := events(t, r); len(e) != 1 || e[0].Injected != tt.inject {
				t.Errorf("mode %q, %+v: events %+v, want one, injected %v", tt.mode, tt.scope, e, tt.inject)
			}
		}
	}
	if found := find(t, open(t, nil), Query{Text: tideMessage}); !found.Rollout.Inject || !found.Rollout.Cards || found.Prompt() != found.Text() {
		t.Errorf("without a recorder: %+v, want everything injected", found.Rollout)
	}
}

// TestKillSwitchHoldsCards: a stopped card is in the log and not in the prompt;
// all else stays.
func TestKillSwitchHoldsCards(t *testing.T) {
	kill := outcome.SwitchConfig{Action: outcome.Disable, MinSessions: 1, MaxRate: 0.1, Every: time.Nanosecond}
	r := recorder(t, t.TempDir(), outcome.Full, kill)
	d := open(t, r)
	first := find(t, d, Query{Text: tideMessage, Scope: session})
	if !first.Rollout.Cards || !strings.Contains(first.Prompt(), "High water") {
		t.Fatalf("the first turn: %+v, want its card", first.Rollout)
	}
	if len(first.Degraded) != 1 || !strings.Contains(first.Degraded[0], "capabilities.killSwitch is disable") {
		t.Errorf("degraded = %q, want the alert", first.Degraded)
	}
	second := find(t, d, Query{Text: tideMessage, Scope: session})
	prompt := second.Prompt()
	if second.Rollout.Cards || !second.Rollout.Inject || !strings.Contains(second.Rollout.CardsReason, "no cards are injected") {
		t.Errorf("the second turn: %+v, want cards held", second.Rollout)
	}
	if strings.Contains(prompt, "High water") || strings.Contains(prompt, "Capability Context") || strings.HasSuffix(prompt, "\n") {
		t.Errorf("prompt = %q, want no cards and no blank lines at its end", prompt)
	}
	if want := strings.TrimSuffix(second.Text(), "\n\n"+second.CardsText()); prompt != want || !strings.Contains(prompt, "1. weather (tool)") {
		t.Errorf("prompt = %q, want %q", prompt, want)
	}
	if len(second.Cards) != 1 {
		t.Errorf("cards = %v, want the one that was held", second.Cards)
	}
	var held []bool
	for _, e := range events(t, r) {
		for _, it := range e.Items {
			if it.Tier == outcome.TierCard {
				held = append(held, it.Held)
			}
		}
	}
	if !slices.Equal(held, []bool{false, true}) {
		t.Errorf("in the log cards are held: %v, want the second", held)
	}
	// With nothing but cards the prompt is empty.
	only := Found{Selection: second.Selection, Rollout: second.Rollout}
	only.Map, only.Briefs, only.Fulls = "", nil, nil
	testkit.Equal(t, "prompt of cards alone", only.Prompt(), "")
}

// TestOutcomesAreRecorded: what was used, what failed, what was searched for and
// what was read.
func TestOutcomesAreRecorded(t *testing.T) {
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	d := open(t, r)
	for _, err := range []error{d.Used(session, "tool:weather", true), d.Used(session, "tool:calendar", false)} {
		if err != nil {
			t.Error(err)
		}
	}
	call(t, d, session, discover.ToolDiscover, `{"query":"weather forecast for a city"}`)
	call(t, d, session, discover.ToolList, `{"query":"appointments"}`)
	call(t, d, session, discover.ToolDiscover, `{"query":"zzzz"}`)
	call(t, d, session, discover.ToolDescribe, `{"id":"weather"}`)
	// None of these is an outcome.
	call(t, d, session, discover.ToolList, ``)
	call(t, d, session, discover.ToolList, `{"detail":"full"}`)
	call(t, d, session, discover.ToolDiscover, `{}`)
	call(t, d, session, discover.ToolDescribe, `{"id":"tool:none"}`)
	call(t, d, session, discover.ToolDescribe, `{"id":"weather","from":3}`)
	var got []string
	for _, e := range events(t, r) {
		if e.Session != "s1" || !e.Time.Equal(noon) {
			t.Errorf("event = %+v, want session s1 at noon", e)
		}
		got = append(got, string(e.Kind)+" "+string(e.ID))
	}
	want := []string{"used tool:weather", "failed tool:calendar", "searched tool:weather", "searched tool:calendar", "searched ", "described tool:weather"}
	if !slices.Equal(got, want) {
		t.Errorf("events = %q, want %q", got, want)
	}
}

// TestReport: what came of what was shown.
func TestReport(t *testing.T) {
	if got := open(t, nil).Report(noon); !got.Since.Equal(noon) || got.Priors == nil || got.Experiments == nil || got.Metrics.Requests != 0 {
		t.Errorf("Report without a recorder = %+v, want an empty one", got)
	}
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	d := open(t, r)
	find(t, d, Query{Text: tideMessage, Scope: session})
	if err := d.Used(session, "tool:weather", true); err != nil {
		t.Error(err)
	}
	call(t, d, session, discover.ToolDiscover, `{"query":"appointments"}`)
	rep := d.Report(noon.Add(-time.Hour))
	if m := rep.Metrics; m.Requests != 1 || m.Sessions != 1 || m.Triggered != 1 || m.Searched != 1 || m.Calls != 1 || m.SelectedUsed != 1 || m.Misses != 1 {
		t.Errorf("metrics = %+v", m)
	}
	if p := rep.Priors["tool:weather"]; p.Shown == 0 || p.Used != 1 || p.LogOdds <= 0 {
		t.Errorf("the prior of tool:weather = %+v, want one use", p)
	}
	if p := rep.Priors["tool:calendar"]; p.Searched != 1 {
		t.Errorf("the prior of tool:calendar = %+v, want one search", p)
	}
	if _, ok := rep.Experiments["tail"]; !ok || len(rep.Experiments) != 1 {
		t.Errorf("experiments = %+v, want tail", rep.Experiments)
	}
	if rep.Log.Written != 3 || rep.Log.Lost != 0 || rep.KillSwitch.Turns != 1 {
		t.Errorf("log %+v and kill switch %+v, want 3 lines and 1 turn", rep.Log, rep.KillSwitch)
	}
	if late := d.Report(noon.Add(time.Hour)); late.Metrics.Requests != 0 || len(late.Experiments) != 0 {
		t.Errorf("Report of later = %+v, want nothing", late.Metrics)
	}
}

// TestPriorsComeFromTheLog: what was learned is there for a later message of a
// session, and only there.
func TestPriorsComeFromTheLog(t *testing.T) {
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	d := open(t, r)
	for i := range 6 {
		scope := capability.Scope{Session: fmt.Sprint("s", i)}
		find(t, d, Query{Text: "weather forecast for the city", Scope: scope})
		testkit.OK(t, d.Used(scope, "tool:weather", true))
	}
	r.learn()
	p := r.Priors(session)
	if p["tool:weather"] <= 0 || p["tool:weather"] > outcome.MaxLogOdds || p["tool:geocode"] >= 0 {
		t.Errorf("Priors = %v, want more for what was used and less for what was not", p)
	}
	testkit.Equal(t, "Priors without a session", r.Priors(capability.Scope{}), nil)
	testkit.Equal(t, "Priors of no recorder", (*Recorder)(nil).Priors(session), nil)
	testkit.Equal(t, "Priors without a log", (&Recorder{Now: func() time.Time { return noon }}).Priors(session), nil)
}

// TestUnwritableLog: the turn goes on, and says that it was not recorded.
func TestUnwritableLog(t *testing.T) {
	file := filepath.Join(t.TempDir(), "outcomes")
	testkit.OK(t, os.WriteFile(file, []byte("a file where a folder should be"), 0o600))
	r := recorder(t, file, outcome.Full, outcome.SwitchConfig{})
	d := open(t, r)
	found := find(t, d, Query{Text: tideMessage, Scope: session})
	if len(found.Briefs) == 0 || !found.Rollout.Inject || found.Prompt() == "" {
		t.Errorf("found = %+v, want what it would be otherwise", found)
	}
	if !slices.ContainsFunc(found.Degraded, func(s string) bool {
		return strings.HasPrefix(s, "the selection was not recorded: ") && strings.Contains(s, file)
	}) {
		t.Errorf("degraded = %q, want that it was not recorded, and where", found.Degraded)
	}
	if err := d.Used(session, "tool:weather", true); err == nil {
		t.Error("Used = nil, want what is wrong with the log")
	}
	call(t, d, session, discover.ToolDiscover, `{"query":"weather"}`)
	if rep := d.Report(noon.Add(-time.Hour)); rep.Log.Lost != 3 || rep.Log.Error == "" {
		t.Errorf("log = %+v, want three lost and the reason", rep.Log)
	}
}

// TestManyAtOnce: sessions are recorded beside each other.
func TestManyAtOnce(t *testing.T) {
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	d := open(t, r)
	d.cfg.Find = func(s capability.Scope) Settings {
		return Settings{Config: discover.Config{TopK: 3, Priors: r.Priors(s), Budget: discover.Defaults().Budget}}
	}
	var group sync.WaitGroup
	for g := range 4 {
		group.Go(func() {
			scope := capability.Scope{Session: fmt.Sprint("s", g)}
			for range 10 {
				find(t, d, Query{Text: tideMessage, Scope: scope})
				call(t, d, scope, discover.ToolDiscover, `{"query":"weather"}`)
				if err := d.Used(scope, "tool:weather", true); err != nil {
					t.Error(err)
				}
				d.Report(noon.Add(-time.Hour))
			}
		})
	}
	group.Wait()
	testkit.Equal(t, "events", len(events(t, r)), 120)
}

// Calls that fail are told with the next answer, once.
func TestFailingCallsAreTold(t *testing.T) {
	d := open(t, recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{}))
	session := capability.Scope{Session: "s"}
	for range 8 {
		testkit.OK(t, d.Used(session, "tool:weather", false))
	}
	if rate := d.Report(time.Time{}).Calls; rate.Samples != 8 || rate.Rate != 0 {
		t.Errorf("Calls = %+v, want 8 samples that all failed", rate)
	}
	for round, want := range []int{1, 0} {
		found := find(t, d, Query{Text: "weather", Scope: session})
		if len(found.Degraded) != want {
			t.Errorf("answer %d: Degraded = %q, want %d", round, found.Degraded, want)
		}
	}
}
