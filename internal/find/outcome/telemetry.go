package outcome

import (
	"fmt"
	"sync"
	"time"
)

// An Alert is something that a person should see.
type Alert struct {
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

// A TelemetryConfig says when failing calls are worth a word. Zero fields mean
// the defaults.
type TelemetryConfig struct {
	Window     int           // how many outcomes are looked at; 100
	AlertBelow float64       // success rate; 0.55
	AlertAfter int           // outcomes; 8
	CoolDown   time.Duration // between alerts; 60 s
	AdaptBelow float64       // success rate; 0.7
	AdaptAfter int           // outcomes; 5
}

func (c *TelemetryConfig) fill() {
	fill(&c.Window, 100)
	fill(&c.AlertBelow, 0.55)
	fill(&c.AlertAfter, 8)
	fill(&c.CoolDown, time.Minute)
	fill(&c.AdaptBelow, 0.7)
	fill(&c.AdaptAfter, 5)
}

func fill[T int | float64 | time.Duration](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// Telemetry watches how many of the latest calls succeed. It may be used by
// several goroutines at once.
type Telemetry struct {
	cfg TelemetryConfig

	mu        sync.Mutex
	ring      []bool // the latest outcomes; the oldest at next once full
	next      int
	succeeded int
	alerted   time.Time
}

// NewTelemetry makes one that has seen nothing.
func NewTelemetry(cfg TelemetryConfig) *Telemetry {
	cfg.fill()
	return &Telemetry{cfg: cfg}
}

// Observe takes an outcome, Used or Failed, at its own time; other events do
// nothing. It returns an alert when the rate is below its bound and the last
// alert is long enough ago. Replaying a log gives the same state.
func (t *Telemetry) Observe(e Event) *Alert {
	if e.Kind != Used && e.Kind != Failed {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(e.Kind == Used)
	rate := t.rate()
	if len(t.ring) < t.cfg.AlertAfter || rate >= t.cfg.AlertBelow {
		return nil
	}
	if !t.alerted.IsZero() && e.Time.Sub(t.alerted) < t.cfg.CoolDown {
		return nil
	}
	t.alerted = e.Time
	return &Alert{e.Time, fmt.Sprintf("%d of the last %d calls succeeded (%.0f%%), fewer than %.0f%%; look at what failed with ken audit query",
		t.succeeded, len(t.ring), 100*rate, 100*t.cfg.AlertBelow)}
}

func (t *Telemetry) add(success bool) {
	if len(t.ring) < t.cfg.Window {
		t.ring = append(t.ring, success)
	} else {
		if t.ring[t.next] {
			t.succeeded--
		}
		t.ring[t.next] = success
		t.next = (t.next + 1) % t.cfg.Window
	}
	if success {
		t.succeeded++
	}
}

func (t *Telemetry) rate() float64 { return ratio(t.succeeded, len(t.ring)) }

// ratio is a/b, and 0 of nothing.
func ratio(a, b int) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// A Suggestion says whether an agent does better to show all its tools than the
// ones that were found.
type Suggestion struct {
	ShowAll bool    `json:"show_all"`
	Samples int     `json:"samples"`
	Rate    float64 `json:"rate"`
	Why     string  `json:"why"`
}

// Suggest judges by the same window. Nothing follows from it by itself.
func (t *Telemetry) Suggest() Suggestion {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Suggestion{Samples: len(t.ring), Rate: t.rate()}
	switch {
	case s.Samples < t.cfg.AdaptAfter:
		s.Why = fmt.Sprintf("%d calls seen, %d are needed to judge", s.Samples, t.cfg.AdaptAfter)
	case s.Rate < t.cfg.AdaptBelow:
		s.ShowAll = true
		s.Why = fmt.Sprintf("%.0f%% of %d calls succeeded, fewer than %.0f%%: show all tools", 100*s.Rate, s.Samples, 100*t.cfg.AdaptBelow)
	default:
		s.Why = fmt.Sprintf("%.0f%% of %d calls succeeded, at least %.0f%%: what is found suffices", 100*s.Rate, s.Samples, 100*t.cfg.AdaptBelow)
	}
	return s
}
