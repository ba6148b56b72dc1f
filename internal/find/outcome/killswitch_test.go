package outcome

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ken/capability"
	"ken/internal/testkit"

	"pgregory.net/rapid"
)

// turns writes one turn in each of n sessions; the first triggered of them have
// a triggered card.
func turns(t testing.TB, l *Log, n, triggered int, at time.Time) {
	t.Helper()
	for i := range n {
		e := selection(fmt.Sprint(at.Unix(), "-", i), brief("tool:a", 20))
		if i < triggered {
			e = selection(fmt.Sprint(at.Unix(), "-", i), card("card-loud", 300))
		}
		e.Time = at
		add(t, l, e)
	}
}

func newSwitch(t testing.TB, l *Log, cfg SwitchConfig) *Switch {
	t.Helper()
	s := testkit.Must(NewSwitch(l, cfg))(t)
	return s
}

func check(t testing.TB, s *Switch, now time.Time) (State, *Alert) {
	t.Helper()
	st, alert, err := s.Check(now)
	if err != nil {
		t.Fatal(err)
	}
	return st, alert
}

func TestKillSwitchTrips(t *testing.T) {
	forced := func(n int) []Event {
		var out []Event
		for i := range n {
			out = append(out, selection(fmt.Sprint("f", i), Item{ID: "card-f", Tier: TierCard, Forced: true}))
		}
		return out
	}
	tests := []struct {
		name         string
		n, triggered int
		more         []Event
		cfg          SwitchConfig
		tripped      bool
		disabled     bool
	}{
		{"nothing", 0, 0, nil, SwitchConfig{}, false, false},
		{"49 sessions, all triggered", 49, 49, nil, SwitchConfig{}, false, false},
		{"50 sessions, 30%", 50, 15, nil, SwitchConfig{}, false, false},
		{"50 sessions, 32%", 50, 16, nil, SwitchConfig{}, true, false},
		{"50 sessions, 32%, disable", 50, 16, nil, SwitchConfig{Action: Disable}, true, true},
		{"50 sessions, 32%, off", 50, 16, nil, SwitchConfig{Action: Off}, false, false},
		{"49 sessions of many turns", 49, 49, []Event{numbered(fmt.Sprint(noon.Unix(), "-0"), 1), numbered(fmt.Sprint(noon.Unix(), "-1"), 2)}, SwitchConfig{}, false, false},
		{"forced cards do not count", 40, 16, forced(60), SwitchConfig{}, false, false},
		{"other bounds", 5, 1, nil, SwitchConfig{MaxRate: 0.1, MinSessions: 5}, true, false},
	}
	for _, tt := range tests {
		l := open(t, t.TempDir(), Config{})
		turns(t, l, tt.n, tt.triggered, noon)
		add(t, l, tt.more...)
		s := newSwitch(t, l, tt.cfg)
		st, alert := check(t, s, noon.Add(time.Minute))
		if st.Tripped != tt.tripped || st.Disabled != tt.disabled || (alert != nil) != tt.tripped || st != s.State() {
			t.Errorf("%s: Check = %+v, alert %v; want tripped %v, disabled %v", tt.name, st, alert, tt.tripped, tt.disabled)
		}
		gate := Gate{Mode: Full, Switch: s}
		if ok, _ := gate.Allow(capability.Scope{}); !ok {
			t.Errorf("%s: the map and briefs are stopped too", tt.name)
		}
		if ok, why := gate.AllowCards(capability.Scope{}); ok == tt.disabled || !ok && !strings.Contains(why, KnobKillSwitch) {
			t.Errorf("%s: AllowCards = %v, %q", tt.name, ok, why)
		}
	}
}

func TestKillSwitchSaysWhatItSaw(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	turns(t, l, 60, 24, noon)
	add(t, l, selection("x", card("card-quiet", 10), card("card-loud", 10)))
	tests := []struct {
		action Action
		want   string
	}{
		{Warn, "cards triggered in 25 of 61 turns (41.0%) of 61 sessions within 24 h, more than 30%; capabilities.killSwitch is warn: " +
			"they are still injected; narrow their triggers or raise capabilities.confidenceThreshold"},
		{Disable, "cards triggered in 25 of 61 turns (41.0%) of 61 sessions within 24 h, more than 30%; capabilities.killSwitch is disable: " +
			"no cards are injected until it is 30% or less; narrow their triggers or raise capabilities.confidenceThreshold and run ken stats --lift, or set capabilities.killSwitch: warn to inject again at once"},
	}
	for i, tt := range tests {
		s := newSwitch(t, l, SwitchConfig{Action: tt.action, CoolDown: time.Hour})
		st, alert := check(t, s, noon.Add(time.Duration(i+1)*time.Hour))
		if st.Why != tt.want {
			t.Errorf("Why = %q, want %q", st.Why, tt.want)
		}
		if alert == nil || alert.Text != tt.want+"; most often: card-loud (25), card-quiet (1)" {
			t.Errorf("alert = %+v, want the cards named", alert)
		}
	}
	if _, err := NewSwitch(l, SwitchConfig{Action: "disabel"}); capability.KindOf(err) != capability.Invalid || !strings.Contains(err.Error(), "disable") {
		t.Errorf("NewSwitch(disabel) = %v, want the words that there are", err)
	}
}

func TestKillSwitchOverADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, t.TempDir(), Config{})
		s := newSwitch(t, l, SwitchConfig{Action: Disable})
		begin := time.Now()
		turns(t, l, 60, 30, begin)
		st, alert := check(t, s, time.Now())
		if !st.Disabled || alert == nil {
			t.Fatalf("Check = %+v, %v; want it tripped", st, alert)
		}
		// It keeps quiet for a window, here, after a restart and elsewhere.
		time.Sleep(12 * time.Hour)
		for _, each := range []*Switch{s, newSwitch(t, l, SwitchConfig{Action: Disable}), newSwitch(t, open(t, l.dir, Config{}), SwitchConfig{Action: Disable})} {
			if st, alert := check(t, each, time.Now()); !st.Disabled || alert != nil {
				t.Errorf("after 12 h: %+v, %v; want it tripped and quiet", st, alert)
			}
		}
		// What was mended lifts it as the window moves on.
		turns(t, l, 60, 0, time.Now())
		time.Sleep(time.Second)
		if st, _ := check(t, s, time.Now()); st.Tripped || st.Turns != 120 || st.Rate != 0.25 {
			t.Errorf("after the fix: %+v, want 30 of 120", st)
		}
		// The first turns leave after exactly 24 h.
		time.Sleep(time.Until(begin.Add(24*time.Hour - time.Nanosecond)))
		if st, _ := check(t, s, time.Now()); st.Turns != 120 {
			t.Errorf("just before 24 h: %d turns, want 120", st.Turns)
		}
		time.Sleep(time.Second)
		if st, _ := check(t, s, time.Now()); st.Turns != 60 || st.Triggered != 0 || st.Sessions != 60 {
			t.Errorf("after 24 h: %+v, want 60 turns", st)
		}
		// A new trip after the cool-down is told again.
		turns(t, l, 60, 60, time.Now())
		time.Sleep(time.Second)
		if st, alert := check(t, s, time.Now()); !st.Disabled || alert == nil {
			t.Errorf("second trip: %+v, %v; want an alert", st, alert)
		}
	})
}

func TestKillSwitchLooksAtMostOnceASecond(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	s := newSwitch(t, l, SwitchConfig{})
	check(t, s, noon)
	turns(t, l, 60, 60, noon)
	if st, _ := check(t, s, noon.Add(999*time.Millisecond)); st.Turns != 0 {
		t.Errorf("within a second: %+v, want the state as it was", st)
	}
	if st, _ := check(t, s, noon.Add(time.Second)); st.Turns != 60 {
		t.Errorf("after a second: %+v, want 60 turns", st)
	}
}

func TestKillSwitchIsLiftedByHand(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	s, other := newSwitch(t, l, SwitchConfig{Action: Disable}), newSwitch(t, l, SwitchConfig{Action: Disable})
	turns(t, l, 60, 60, noon)
	check(t, s, noon)
	check(t, other, noon)
	testkit.OK(t, s.Lift(noon, "ada"))
	for _, each := range []*Switch{s, other, newSwitch(t, l, SwitchConfig{Action: Disable})} {
		if st, _ := check(t, each, noon.Add(time.Minute)); st.Tripped || st.Turns != 0 {
			t.Errorf("after Lift: %+v, want a new beginning", st)
		}
	}
	turns(t, l, 60, 60, noon.Add(time.Minute))
	if st, alert := check(t, s, noon.Add(2*time.Minute)); !st.Disabled || alert == nil {
		t.Errorf("tripped anew: %+v, %v; want an alert", st, alert)
	}
}

// TestOneAlertForAll has many switches trip at once.
func TestOneAlertForAll(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Config{})
	turns(t, l, 60, 60, noon)
	var mu sync.Mutex
	var wg sync.WaitGroup
	alerts := 0
	for range 8 {
		s := newSwitch(t, open(t, dir, Config{}), SwitchConfig{})
		wg.Go(func() {
			_, alert, err := s.Check(noon)
			mu.Lock()
			defer mu.Unlock()
			count(&alerts, alert != nil)
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if alerts != 1 {
		t.Errorf("%d alerts, want 1", alerts)
	}
}

// TestFirstAlertInTheLogWins has another switch alert just before this one
// writes its own.
func TestFirstAlertInTheLogWins(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	turns(t, l, 60, 60, noon)
	late, early := newSwitch(t, l, SwitchConfig{}), newSwitch(t, l, SwitchConfig{})
	testkit.OK(t, late.refresh(noon))
	if _, alert := check(t, early, noon); alert == nil {
		t.Error("the first gives no alert")
	}
	if alert := late.alert(noon, late.judge()); alert != nil {
		t.Errorf("the second gives an alert too: %v", alert)
	}
}

func TestKillSwitchWithoutAWritableLog(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	turns(t, l, 60, 60, noon)
	l.Close() // so that an alert cannot be recorded
	s := newSwitch(t, l, SwitchConfig{})
	if _, alert := check(t, s, noon); alert == nil {
		t.Error("no alert because the log cannot be written")
	}
	if _, alert := check(t, s, noon.Add(time.Hour)); alert != nil {
		t.Error("a second alert within the cool-down")
	}
}

// TestKillSwitchAgreesWithARestart lets turns come in any order from several
// writers, files come and go, and time pass. A switch that followed it all says
// what a fresh one says.
func TestKillSwitchAgreesWithARestart(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := testkit.Must(os.MkdirTemp(t.TempDir(), ""))(rt)
		l := testkit.Must(Open(dir, Config{MaxBytes: 1 << 10, Keep: 2}))(rt)
		defer l.Close()
		cfg := SwitchConfig{MinSessions: 3, CoolDown: time.Hour, Window: 2 * time.Hour}
		s := newSwitch(t, l, cfg)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		now := noon
		for range rapid.IntRange(1, 12).Draw(rt, "rounds") {
			for range r.IntN(12) {
				e := selection(fmt.Sprint("s", r.IntN(9)), brief("tool:a", 1))
				if r.IntN(3) == 0 {
					e = selection(fmt.Sprint("s", r.IntN(9)), card("card-a", 1))
				}
				e.Time = now.Add(time.Duration(r.IntN(6000)-5000) * 100 * time.Millisecond) // some of the future
				testkit.OK(rt, l.Append(e))
			}
			now = now.Add(time.Second + time.Duration(r.IntN(90))*time.Minute)
			got, alert, err := s.Check(now)
			for alert != nil && err == nil { // which may have begun a file and ended another
				now = now.Add(time.Second)
				got, alert, err = s.Check(now)
			}
			if err != nil {
				rt.Fatal(err)
			}
			fresh := newSwitch(t, l, cfg)
			if want, _, err := fresh.Check(now); err != nil || got != want {
				rt.Fatalf("Check = %+v, a fresh one %+v, %v", got, want, err)
			}
		}
	})
}

// TestWindowCountsLikeAList holds the window to counting everything each time.
func TestWindowCountsLikeAList(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	w := newWindow(time.Hour)
	var all []Event
	now := noon
	for i := range 8000 {
		e := selection(fmt.Sprint("s", r.IntN(500)), brief("tool:a", 1))
		if r.IntN(4) == 0 {
			e = selection(e.Session, card("card-a", 1))
		}
		e.Time = now.Add(time.Duration(r.NormFloat64() * float64(time.Minute)))
		all = append(all, e)
		w.add(1, e)
		now = now.Add(time.Duration(r.IntN(4000)) * time.Millisecond)
		if w.advance(now); i%50 > 0 {
			continue
		}
		turns, triggered, sessions := 0, 0, map[string]bool{}
		for _, e := range all {
			if e.Time.After(now.Add(-time.Hour)) && !e.Time.After(now) {
				turns++
				count(&triggered, e.Triggered > 0)
				sessions[e.Session] = true
			}
		}
		if w.turns() != turns || w.triggered != triggered || len(w.sessions) != len(sessions) {
			t.Fatalf("after %d: %d turns, %d triggered, %d sessions; want %d, %d, %d", i, w.turns(), w.triggered, len(w.sessions), turns, triggered, len(sessions))
		}
	}
	if len(w.all) > 6000 {
		t.Errorf("%d turns are kept for %d", len(w.all), w.turns())
	}
}

func TestTailReadsOnlyWhatIsNew(t *testing.T) {
	l := open(t, t.TempDir(), Config{})
	turns(t, l, 100, 0, noon)
	read := func(tl *tail) (n int, gone []uint64) {
		gone = testkit.Must(tl.read(time.Time{}, func(uint64, Event) { n++ }))(t)
		return n, gone
	}
	tl := newTail(l.dir)
	for i, want := range []int{100, 0} {
		if n, _ := read(&tl); n != want {
			t.Errorf("read %d: %d events, want %d", i, n, want)
		}
	}
	// A line that is being written is left until it is whole.
	whole := testkit.Must(encode(nil, numbered("s", 0)))(t)
	l.file.Write(whole[:30])
	if n, _ := read(&tl); n != 0 {
		t.Errorf("half a line gave %d events", n)
	}
	l.file.Write(whole[30:])
	if n, _ := read(&tl); n != 1 {
		t.Errorf("the other half gave %d events, want 1", n)
	}
	// A file that became shorter is read anew.
	testkit.OK(t, os.Truncate(logPath(l.dir, 1), 0))
	l.file.Write(whole)
	if n, gone := read(&tl); n != 0 || len(gone) != 1 {
		t.Errorf("a shorter file: %d events, gone %v; want it forgotten", n, gone)
	}
	if n, _ := read(&tl); n != 1 {
		t.Errorf("a shorter file, then: %d events, want 1", n)
	}
}
