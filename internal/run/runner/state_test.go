package runner

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestT13OnlyListedTransitions: whatever stages ask for, a call passes the
// listed states in their order only, each with its event, and none ends without
// having been logged.
func TestT13OnlyListedTransitions(t *testing.T) {
	legal := map[string]string{
		"CREATED CREATED": "", "CREATED VALIDATING": "validate", "VALIDATING EXECUTING": "validated", "CREATED LOGGING": "invalid", "VALIDATING LOGGING": "invalid",
		"EXECUTING PROCESSING": "success error timeout", "PROCESSING LOGGING": "processed",
		"LOGGING COMPLETED": "logged", "LOGGING FAILED": "logged", "LOGGING TIMEOUT": "logged",
	}
	rapid.Check(t, func(t *rapid.T) {
		var seen []Transition
		r := &Runner{cfg: Config{Now: time.Now, Observe: func(tr Transition) { seen = append(seen, tr) }}}
		inv := &invocation{runner: r}
		inv.end.event = rapid.SampledFrom([]string{"", eventSuccess, eventError, eventTimeout}).Draw(t, "ended by")
		from := Created
		for _, to := range rapid.SliceOf(rapid.Uint8Range(0, 9)).Draw(t, "asked for") {
			before := len(seen)
			inv.enter(State(to))
			events, ok := legal[from.String()+" "+State(to).String()]
			if ok && events != "" && inv.end.event == "" && from == Executing {
				ok = false // nothing has ended the execution
			}
			if moved := len(seen) > before; moved != ok {
				t.Fatalf("%s to %s: moved %v, want %v", from, State(to), moved, ok)
			}
			if !ok {
				continue
			}
			if got := seen[before].Event; got != events && !strings.Contains(events, got) || got == "" && events != "" {
				t.Fatalf("%s to %s: event %q, want one of %q", from, State(to), got, events)
			}
			from = State(to)
		}
		if inv.live.at() != from {
			t.Fatalf("state %s, want %s", inv.live.at(), from)
		}
	})
}

// TestProgress: the seed's stages (S5.U12), which never go back.
func TestProgress(t *testing.T) {
	last := 0
	for s, want := range map[State]string{Created: "5 VALIDATING", Validating: "15 LOADING", Executing: "60 EXECUTING", Processing: "90 FINALIZING", Completed: "100 DONE", TimedOut: "100 DONE"} {
		percent, stage := s.Progress()
		if got := strconv.Itoa(percent) + " " + stage; got != want {
			t.Errorf("%s.Progress() = %s, want %s", s, got, want)
		}
	}
	for s := Created; s <= Completed; s++ {
		percent, _ := s.Progress()
		if percent < last {
			t.Errorf("%s is at %d %%, after %d", s, percent, last)
		}
		last = percent
	}
}
