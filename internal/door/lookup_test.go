package door

import (
	"testing"

	"ken/capability"
	"ken/internal/know/source"
)

// TestLookupOwn: a tool of the program is found by its id and its name, unless the
// catalog has one of the same.
func TestLookupOwn(t *testing.T) {
	d := open(t, nil)
	own := source.NewMemory("own", capability.TrustBuiltin)
	own.Put(capability.Capability{Name: "ping", Description: "Answers"}, capability.Detail{})
	own.Put(capability.Capability{Name: "weather", Description: "Ken's own"}, capability.Detail{})
	d.cfg.Own = loaded(t, own)
	for name, want := range map[string]string{"tool:ping": "Answers", "ping": "Answers", "tool:weather": "Weather forecast for a city"} {
		if e, err := d.View(somebody).Lookup(name); err != nil || e.Description != want {
			t.Errorf("Lookup(%s) = %+v, %v; want %s", name, e, err, want)
		}
	}
}
