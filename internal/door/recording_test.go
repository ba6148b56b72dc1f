package door

import (
	"bytes"
	"testing"
	"time"

	"ken/internal/find/outcome"
)

// TestRecordingIsAskedForAnew: where what was found goes, and how much of it is
// told, is what is said at the time.
func TestRecordingIsAskedForAnew(t *testing.T) {
	how := Recording{Mode: outcome.Monitor, Level: outcome.LevelNone}
	var text bytes.Buffer
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	r.Text, r.Recording = &text, func() Recording { return how }
	r.Now = func() time.Time { return noon }
	d := open(t, r)
	q := Query{Text: tideMessage, Scope: session}
	if f := find(t, d, q); f.Rollout.Inject || text.Len() > 0 {
		t.Errorf("with monitor and none: injected %v, told %q", f.Rollout.Inject, text.String())
	}
	how = Recording{Mode: outcome.Full, Level: outcome.LevelDetailed}
	if f := find(t, d, q); !f.Rollout.Inject || text.Len() == 0 {
		t.Errorf("with full and detailed: injected %v, told %q", f.Rollout.Inject, text.String())
	}
	if e := events(t, r); len(e) != 2 || e[0].Mode != outcome.Monitor || e[1].Mode != outcome.Full {
		t.Errorf("events %+v, want one of each mode", e)
	}
}
