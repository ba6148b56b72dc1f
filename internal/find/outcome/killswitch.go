package outcome

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ken/capability"
	"ken/internal/coldsort"
	"ken/internal/duration"
)

// An Action is what the kill switch does when it trips. The zero value is Warn.
type Action string

const (
	Warn    Action = "warn"
	Disable Action = "disable"
	Off     Action = "off"
)

// A SwitchConfig says when cards trigger too often. Zero fields mean the
// defaults.
type SwitchConfig struct {
	Action      Action        // warn
	MaxRate     float64       // of turns with triggered cards; 0.30, more than that trips
	Window      time.Duration // 24 h
	MinSessions int           // 50; with fewer it never trips
	CoolDown    time.Duration // between alerts; as long as Window
	Every       time.Duration // how often Check looks at the log; 1 s
}

// A Switch watches how many turns had triggered cards, by what the log says, so
// that every process and every restart comes to the same result. It counts
// cards that triggered, not those that got through: cards stay stopped as long
// as they would be too many. Maps, briefs and forced cards do not count.
//
// It may be used by several goroutines at once. It holds no file open.
type Switch struct {
	log *Log
	cfg SwitchConfig

	state atomic.Pointer[State]

	mu      sync.Mutex
	tail    tail
	window  window
	alerts  []alertSeen // in the order of the log
	checked time.Time
	silent  time.Time // when it alerted without the log
}

type alertSeen struct {
	at    time.Time
	nonce string
}

// A State is what a [Switch] saw.
type State struct {
	Tripped   bool      `json:"tripped"`
	Disabled  bool      `json:"disabled"` // cards must not be injected
	Turns     int       `json:"turns"`
	Triggered int       `json:"triggered"` // turns with triggered cards
	Sessions  int       `json:"sessions"`
	Rate      float64   `json:"rate"`
	From      time.Time `json:"from,omitzero"` // of the first turn that counts
	Why       string    `json:"why"`
}

// NewSwitch makes a switch over a log. It reads nothing yet; until the first
// Check it has not tripped. An action that it does not know is an error.
func NewSwitch(log *Log, cfg SwitchConfig) (*Switch, error) {
	switch cfg.Action {
	case "":
		cfg.Action = Warn
	case Warn, Disable, Off:
	default:
		return nil, &capability.Error{Kind: capability.Invalid, Op: "read", Target: KnobKillSwitch, Err: fmt.Errorf("%q", cfg.Action), Fix: "want warn, disable or off"}
	}
	fill(&cfg.MaxRate, 0.30)
	fill(&cfg.Window, 24*time.Hour)
	fill(&cfg.MinSessions, 50)
	fill(&cfg.CoolDown, cfg.Window)
	fill(&cfg.Every, time.Second)
	s := &Switch{log: log, cfg: cfg, tail: newTail(log.dir), window: newWindow(cfg.Window)}
	s.state.Store(&State{Why: "not looked yet"})
	return s, nil
}

// State returns what the last Check saw. It reads no file.
func (s *Switch) State() State { return *s.state.Load() }

// Check reads what is new in the log and judges again; within Every of the last
// time it only returns the State. At most once per cool-down, over all
// processes, it returns an alert, which the caller shows. An error means that
// part of the log could not be read; the State is that of the rest. It may take
// milliseconds: call it after a turn, not before.
func (s *Switch) Check(now time.Time) (State, *Alert, error) {
	if s.cfg.Action == Off {
		st := State{Why: KnobKillSwitch + " is off"}
		s.state.Store(&st)
		return st, nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.checked.IsZero() && now.Sub(s.checked).Abs() < s.cfg.Every {
		return s.State(), nil, nil
	}
	s.checked = now
	err := s.refresh(now)
	st := s.judge()
	s.state.Store(&st)
	if !st.Tripped {
		return st, nil, err
	}
	return st, s.alert(now, st), err
}

// Lift makes every switch of this log forget what happened until now, for a
// person who has mended the cards. It is itself an event.
func (s *Switch) Lift(now time.Time, by string) error {
	err := s.log.Append(Event{Time: now, Kind: Lifted, Detail: by})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked = time.Time{}
	return err
}

// refresh takes in the log's new lines.
func (s *Switch) refresh(now time.Time) error {
	s.log.Flush()
	gone, err := s.tail.read(now.Add(-max(s.cfg.Window, s.cfg.CoolDown)), func(file uint64, e Event) {
		switch e.Kind {
		case Selected:
			s.window.add(file, e)
		case Alerted:
			s.alerts = append(s.alerts, alertSeen{e.Time, e.Turn})
		case Lifted:
			s.window.clear()
			s.alerts = nil
		}
	})
	s.window.forget(gone)
	s.window.advance(now)
	s.alerts = slices.DeleteFunc(s.alerts, func(a alertSeen) bool { return now.Sub(a.at) >= s.cfg.CoolDown })
	return err
}

func (s *Switch) judge() State {
	w := &s.window
	st := State{Turns: w.turns(), Triggered: w.triggered, Sessions: len(w.sessions), Rate: ratio(w.triggered, w.turns()), From: w.from()}
	saw := fmt.Sprintf("cards triggered in %d of %d turns (%.1f%%) of %d sessions within %s", st.Triggered, st.Turns, 100*st.Rate, st.Sessions, duration.Text(s.cfg.Window))
	switch {
	case st.Sessions < s.cfg.MinSessions:
		st.Why = fmt.Sprintf("%s; %d sessions are needed to judge", saw, s.cfg.MinSessions)
	case st.Rate <= s.cfg.MaxRate:
		st.Why = fmt.Sprintf("%s; up to %.0f%% is allowed", saw, 100*s.cfg.MaxRate)
	default:
		st.Tripped = true
		st.Disabled = s.cfg.Action == Disable
		st.Why = fmt.Sprintf("%s, more than %.0f%%; %s is %s: ", saw, 100*s.cfg.MaxRate, KnobKillSwitch, s.cfg.Action)
		mend := "narrow their triggers or raise capabilities.confidenceThreshold"
		if st.Disabled {
			st.Why += fmt.Sprintf("no cards are injected until it is %.0f%% or less; %s and run ken stats --lift, or set %s: warn to inject again at once", 100*s.cfg.MaxRate, mend, KnobKillSwitch)
		} else {
			st.Why += "they are still injected; " + mend
		}
	}
	return st
}

// alert announces a trip unless this or another process did within the cool-down.
// The log settles which was first: each writes its own alert and then looks.
func (s *Switch) alert(now time.Time, st State) *Alert {
	if len(s.alerts) > 0 || !s.silent.IsZero() && now.Sub(s.silent) < s.cfg.CoolDown {
		return nil
	}
	text := st.Why + s.often(now)
	nonce := rand.Text()
	if err := s.log.Append(Event{Time: now, Kind: Alerted, Turn: nonce, Detail: text}); err != nil {
		s.silent = now // an alert is worth more than its record
		return &Alert{now, text}
	}
	if err := s.refresh(now); err == nil && len(s.alerts) > 0 && s.alerts[0].nonce != nonce {
		return nil
	}
	return &Alert{now, text}
}

// often names the cards that triggered most. It reads the window's events once
// more, which an alert is worth.
func (s *Switch) often(now time.Time) string {
	counts := map[capability.ID]int{}
	for e, err := range s.log.Events(now.Add(-s.cfg.Window)) {
		if err != nil {
			continue
		}
		if e.Kind == Lifted {
			clear(counts)
		}
		for _, it := range e.Items {
			if it.Tier == TierCard && !it.Forced {
				counts[it.ID]++
			}
		}
	}
	var ids []capability.ID
	for id := range counts {
		ids = append(ids, id)
	}
	coldsort.By(ids, func(a, b capability.ID) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var most []string
	for _, id := range ids[:min(len(ids), 3)] {
		most = append(most, fmt.Sprintf("%s (%d)", idText(id), counts[id]))
	}
	if len(most) == 0 {
		return ""
	}
	return "; most often: " + strings.Join(most, ", ")
}
