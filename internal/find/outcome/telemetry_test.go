package outcome

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTelemetryAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := NewTelemetry(TelemetryConfig{})
		observe := func(k Kind) *Alert { return w.Observe(Event{Time: time.Now(), Kind: k}) }
		for i := range 7 {
			if a := observe(Failed); a != nil {
				t.Fatalf("alert after %d samples: %v", i+1, a)
			}
		}
		observe(Selected) // is no outcome
		a := observe(Failed)
		if a == nil || !strings.Contains(a.Text, "0 of the last 8") {
			t.Fatalf("alert after 8 failures = %v", a)
		}
		time.Sleep(59 * time.Second)
		if a := observe(Failed); a != nil {
			t.Errorf("alert within 60 s: %v", a)
		}
		time.Sleep(time.Second)
		if a := observe(Failed); a == nil {
			t.Error("no alert after 60 s")
		}
	})
}

func TestTelemetryRate(t *testing.T) {
	tests := []struct {
		name     string
		outcomes string // u used, f failed
		alert    bool   // after the last
		samples  int
		rate     float64
		showAll  bool
	}{
		{"nothing", "", false, 0, 0, false},
		{"four failures are too few", "ffff", false, 4, 0, false},
		{"five below 0.7", "uufff", false, 5, 0.4, true},
		{"at 0.7", "uuuuuuufff", false, 10, 0.7, false},
		{"below 0.7, not below 0.55", "uuuuuuffff", false, 10, 0.6, true},
		{"11 of 20 is 0.55", strings.Repeat("u", 11) + strings.Repeat("f", 9), false, 20, 0.55, true},
		{"11 of 21 is below", strings.Repeat("u", 11) + strings.Repeat("f", 10), true, 21, 11. / 21, true},
		{"only the last 100", strings.Repeat("f", 50) + strings.Repeat("u", 100), false, 100, 1, false},
		{"70 of the last 100", strings.Repeat("u", 500) + strings.Repeat("f", 30), false, 100, 0.7, false},
	}
	for _, tt := range tests {
		w := NewTelemetry(TelemetryConfig{CoolDown: time.Nanosecond})
		var last *Alert
		for i, c := range tt.outcomes {
			k := Used
			if c == 'f' {
				k = Failed
			}
			last = w.Observe(Event{Time: noon.Add(time.Duration(i) * time.Second), Kind: k})
		}
		s := w.Suggest()
		if (last != nil) != tt.alert || s.Samples != tt.samples || s.Rate != tt.rate || s.ShowAll != tt.showAll || s.Why == "" {
			t.Errorf("%s: alert %v, Suggest = %+v; want alert %v, %d samples, rate %v, all %v", tt.name, last, s, tt.alert, tt.samples, tt.rate, tt.showAll)
		}
	}
}
