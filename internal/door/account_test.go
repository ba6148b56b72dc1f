package door

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/find/outcome"
	"ken/internal/know/source"
	"ken/internal/testkit"
)

// TestAllToolTokens: everything that a viewer sees is counted, by the configured
// counter: tools with their schemas, a line for everything else, and a reading
// tool. What the viewer does not see is not counted.
func TestAllToolTokens(t *testing.T) {
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	r.Count = func(s string) int { return len(s) }
	m := source.NewMemory("test", capability.TrustUser)
	run := &capability.Recipe{Runner: "mcp.call"}
	m.Put(capability.Capability{Name: "one", Description: "First", Run: run}, capability.Detail{Schema: json.RawMessage(`{ "type" : "object" }`)})
	m.Put(capability.Capability{Name: "guard", Description: "2nd", Run: run}, capability.Detail{})
	m.Put(capability.Capability{Name: "idle", Description: "Runs elsewhere"}, capability.Detail{})
	m.Put(capability.Capability{Name: "s", Kind: capability.KindSkill, Description: "A skill"}, capability.Detail{Body: strings.Repeat("x", 999)})
	d := over(t, m, ruled(t, noInterns("tool:guard")), r)
	texts := len("- tool:idle: Runs elsewhere\n") + len("- skill:s: A skill\n") // what is no tool here has a line each
	for _, tool := range d.Tools() {
		if tool.Name == "describe_capability" {
			texts += aroundTool + len(tool.Name) + len(tool.Description) + len(tool.Schema)
		}
	}
	one, guard := aroundTool+len("one")+len("First")+len(`{"type":"object"}`), aroundTool+len("guard")+len("2nd")
	testkit.Equal(t, "Dump at once", d.AllToolTokens(d.View(somebody)), 0)
	testkit.Equal(t, "Dump", d.AwaitAllToolTokens(t.Context(), d.View(somebody)), one+guard+texts)
	intern := capability.Principal{ID: "i", Roles: []string{"intern"}}
	testkit.Equal(t, "Dump of an intern", d.AwaitAllToolTokens(t.Context(), d.View(intern)), one+texts)
	testkit.Equal(t, "Dump of nobody", d.AllToolTokens(View{}), 0)

	// A newer snapshot is weighed anew, and the selection has it.
	m.Put(capability.Capability{Name: "more", Description: "Third", Run: run}, capability.Detail{})
	testkit.OK(t, d.catalog.Load(t.Context()))
	want := one + guard + texts + aroundTool + len("moreThird")
	testkit.Equal(t, "Dump of the next snapshot", d.AwaitAllToolTokens(t.Context(), d.View(somebody)), want)
	find(t, d, Query{Text: "first", Scope: session})
	if all := events(t, r); len(all) != 1 || all[0].AllToolTokens != want {
		t.Errorf("events = %+v, want a dump of %d", all, want)
	}

	d.cfg.Recorder = nil
	testkit.Equal(t, "Dump where nothing is recorded", d.AllToolTokens(d.View(somebody)), 0)
}

// TestAllToolTokensOfWhatOthersRun: where nothing can be called here, everything that
// could be a tool counts as one. A card counts with its body.
func TestAllToolTokensOfWhatOthersRun(t *testing.T) {
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	r.Count = func(string) int { return 1 }
	d := open(t, r)
	if n, want := d.AwaitAllToolTokens(t.Context(), d.View(somebody)), 3*(aroundTool+2)+1+aroundTool+3; n != want { // weather, geocode, calendar without a schema; tides; the tool that reads
		t.Errorf("Dump = %d, want %d", n, want)
	}
}

// TestAllToolTokensSurvivesASourceThatBreaks: the dump is not known then, and the program lives.
func TestAllToolTokensSurvivesASourceThatBreaks(t *testing.T) {
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	r.Count = func(string) int { panic("broken") }
	d := open(t, r)
	v := d.View(somebody)
	testkit.Equal(t, "Dump", d.AwaitAllToolTokens(t.Context(), v), 0)
}

// TestAwaitAllToolTokensOfManyViews: AwaitAllToolTokens waits for the dump of every view,
// although one is computed at a time, but not forever for a source that hangs.
func TestAwaitAllToolTokensOfManyViews(t *testing.T) {
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	hang := make(chan struct{})
	r.Count = func(string) int { <-hang; return 1 }
	w := newWorkshop(t)
	w.cfg.Recorder = r
	views := []View{w.View(somebody), w.View(capability.Principal{ID: "i", Roles: []string{"intern"}})}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	testkit.Equal(t, "AwaitAllToolTokens of a source that hangs", w.AwaitAllToolTokens(ctx, views[0]), 0)
	got := make([]int, 2*len(views))
	var all sync.WaitGroup
	for i := range got {
		all.Go(func() { got[i] = w.AwaitAllToolTokens(t.Context(), views[i%2]) })
	}
	close(hang)
	all.Wait()
	if got[0] == 0 || got[0] != got[2] || got[1] != got[3] || got[1] >= got[0] {
		t.Errorf("AwaitAllToolTokens = %v, want the same for the same view, and less for an intern", got)
	}
}

// TestCallsAreRecorded: each call has a line of how it ended, how long it ran,
// and what forbade it, with whose it was.
func TestCallsAreRecorded(t *testing.T) {
	w := newWorkshop(t)
	w.cfg.Recorder = recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	var told []outcome.Kind
	w.cfg.Recorder.OnEvent = func(e outcome.Event) { told = append(told, e.Kind) }
	who := capability.Principal{ID: "ada", Tenant: "acme"}
	v := w.View(who)
	for _, call := range []capability.Call{
		{Target: "tool:greet", Arguments: json.RawMessage(`{"name":"A"}`), Session: "s1"},
		{Target: "tool:greet", Arguments: json.RawMessage(`{"name":"A"}`)}, // of no session
		{Target: "tool:none", Session: "s1"},
		{Target: "tool:greet", Arguments: json.RawMessage(`{"name":7}`), Session: "s1"}, // never made
	} {
		_, _ = w.Invoke(t.Context(), v, call)
	}
	intern := capability.Principal{ID: "i", Tenant: "acme", Roles: []string{"intern"}}
	person := w.ViewFor(Viewer{Principal: intern, Origin: capability.ByPerson})
	_, err := w.Invoke(t.Context(), person, capability.Call{Target: "tool:guard", Arguments: json.RawMessage(`{"name":"A"}`), Session: "s2", Origin: capability.ByPerson})
	if capability.KindOf(err) != capability.Denied {
		t.Fatalf("Invoke(guard) = %v, want it denied", err)
	}
	if want := []outcome.Kind{outcome.Used, outcome.Used, outcome.Refused}; !slices.Equal(told, want) {
		t.Errorf("told = %v, want %v: of a call without a session too", told, want)
	}
	all := events(t, w.cfg.Recorder)
	if len(all) != 2 {
		t.Fatalf("events = %+v, want two", all)
	}
	if e := all[0]; e.Kind != outcome.Used || e.ID != "tool:greet" || e.Session != "s1" || e.Tenant != "acme" || e.TookUS <= 0 || e.TookUS > time.Minute.Microseconds() {
		t.Errorf("the call = %+v", e)
	}
	if e := all[1]; e.Kind != outcome.Refused || e.Rule != "no.interns" || e.Session != "s2" || e.Tenant != "acme" || e.TookUS != 0 {
		t.Errorf("the refusal = %+v", e)
	}
}

// TestRunning: how long a call ran is what its executor says, without the wait
// for a person.
func TestRunning(t *testing.T) {
	for _, tt := range []struct {
		meta string
		want time.Duration
	}{{"250", 250 * time.Millisecond}, {"0", time.Hour}, {"x", time.Hour}, {"", time.Hour}, {"99999999999", time.Hour}} {
		testkit.Equal(t, fmt.Sprintf("running(%q)", tt.meta), running(capability.Result{Meta: map[string]string{"duration_ms": tt.meta}}, time.Hour), tt.want)
	}
}

// TestTenantsLearnApart: what was learned in the sessions of one tenant is for
// that tenant alone.
func TestTenantsLearnApart(t *testing.T) {
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	d := open(t, r)
	acme, other := capability.Principal{ID: "a", Tenant: "acme"}, capability.Principal{ID: "b", Tenant: "other"}
	for range 8 {
		v := d.View(acme)
		if _, err := d.Find(t.Context(), v, Query{Text: "weather forecast for the city", Scope: session}); err != nil {
			t.Fatal(err)
		}
		d.ended(v, capability.Call{Target: "tool:weather", Session: session.Session}, capability.Result{}, nil, time.Second)
	}
	r.learn()
	if p := d.settings(d.View(acme), session).Priors; p["tool:weather"] <= 0 {
		t.Errorf("Priors of the tenant = %v, want that it is used", p)
	}
	if p := d.settings(d.View(other), session).Priors; len(p) != 0 {
		t.Errorf("Priors of another tenant = %v, want none", p)
	}
	if p := r.Priors(session); len(p) != 0 {
		t.Errorf("Priors of nobody's tenant = %v, want none", p)
	}
}

// TestInsightsOfTheLog: a turn that is told of is in what is summed up.
func TestInsightsOfTheLog(t *testing.T) {
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	d := open(t, r)
	testkit.OK(t, d.Turned(outcome.Event{Session: "s1", Turn: "1", Requests: 2, Shown: 10, AllToolTokens: 100, End: "answer"}))
	if err := d.Turned(outcome.Event{Turn: "1", Requests: 2}); err != nil { // of no session: not recorded
		t.Fatal(err)
	}
	r.Now = func() time.Time { return noon.Add(time.Minute) }
	got := d.Insights(outcome.InsightsConfig{})
	if b := got.Totals; b.Turns != 1 || b.SavedTokens != 180 || !got.Since.Equal(noon.Add(time.Minute).AddDate(0, 0, -30)) {
		t.Errorf("Insights = %+v since %v, want one turn that saved 180", b, got.Since)
	}
	if none := New(Config{}).Insights(outcome.InsightsConfig{}); none.Totals.Turns != 0 || !strings.Contains(strings.Join(none.Notes, " "), "nothing is recorded") {
		t.Errorf("Insights without a log = %+v", none)
	}
}
