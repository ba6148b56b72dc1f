package offers

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/source"
	"ken/internal/talk/deliver"
	"ken/internal/talk/session"
	"ken/internal/testkit/doortest"
)

var run = &capability.Recipe{Runner: "function.call"}

// reader returns a Reader of a small catalog.
func reader(t *testing.T) Reader {
	t.Helper()
	m := source.NewMemory("test", capability.TrustUser)
	put := func(c capability.Capability) {
		m.Put(c, capability.Detail{Schema: json.RawMessage(`{ "type": "object" }`), Body: "x"})
	}
	put(capability.Capability{Name: "weather", Description: "Weather forecast", Run: run})
	put(capability.Capability{Name: "geocode", Description: "Latitude and longitude", Run: run})
	put(capability.Capability{Name: "manual", Description: "Read this"})                               // nothing runs it
	put(capability.Capability{Name: "far", Description: "Elsewhere", Run: run, Unavailable: "closed"}) // cannot be used
	put(capability.Capability{Kind: capability.KindSkill, Name: "cooking", Description: "How to cook", Run: run})
	own := source.NewMemory("own", capability.TrustBuiltin)
	for _, name := range []string{"ping", capability.ToolRead} {
		own.Put(capability.Capability{Name: name, Description: "Reads", Run: run, Effects: capability.Effects{ReadOnly: capability.Yes, OpenWorld: capability.No}}, capability.Detail{Schema: json.RawMessage(`{"type":"object"}`)})
	}
	w := doortest.Open(t, doortest.Config{Source: m, Own: own})
	r := Reader{Door: w.Door, Cache: &Cache{}, Degraded: func(text string) { t.Errorf("degraded: %s", text) }}
	r.View = w.View(capability.Principal{ID: "somebody"})
	return r
}

func names(list []deliver.Offer) (out []string) {
	for _, o := range list {
		out = append(out, o.Tool.Name)
	}
	slices.Sort(out)
	return out
}

// TestOffers: only what can be called is offered, each with its schema and a name
// that nothing else has.
func TestOffers(t *testing.T) {
	r := reader(t)
	core := r.Core(t.Context(), deliver.Live{})
	if got := names(core); !slices.Equal(got, []string{"ping"}) {
		t.Errorf("Core = %q, want the program's tools but not read_result", got)
	}
	all, _ := r.All(t.Context(), core)
	if got := names(all); !slices.Equal(got, []string{"geocode", "weather"}) {
		t.Errorf("All = %q", got)
	}
	found := r.Found(t.Context(), []capability.ID{"tool:manual", "tool:weather", "tool:none", "skill:cooking", "tool:far"}, deliver.Live{})
	if len(found) != 1 || found[0].ID != "tool:weather" || string(found[0].Tool.Schema) != `{"type":"object"}` || found[0].Tool.Description != "Weather forecast" {
		t.Errorf("Found = %+v, want weather alone", found)
	}
	taken := deliver.Live{Tools: map[string]session.Offer{"weather": {Tool: "weather", ID: "tool:other"}}}
	if found := r.Found(t.Context(), []capability.ID{"tool:weather"}, taken); len(found) != 1 || found[0].Tool.Name == "weather" {
		t.Errorf("Found = %+v, want another name than the one that is taken", found)
	}
}

// TestPlainSchema: what is no schema becomes the schema of any object, and a long
// one is cut where a text shows it.
func TestPlainSchema(t *testing.T) {
	for raw, want := range map[string]string{"": `{"type":"object"}`, "true": `{"type":"object"}`, "{broken": `{"type":"object"}`, " { \"a\": 1 } ": `{"a":1}`} {
		if got := string(PlainSchema(json.RawMessage(raw))); got != want {
			t.Errorf("PlainSchema(%q) = %s, want %s", raw, got, want)
		}
	}
	if got := Bounded("short"); got != "short" {
		t.Errorf("Bounded = %q", got)
	}
	if got := Bounded(strings.Repeat("é", 4000)); len(got) > maxSchemaBytes+100 || !strings.Contains(got, "6000 of 8000 bytes; describe_capability has the rest") {
		t.Errorf("Bounded of a long schema ends with %q", got[len(got)-80:])
	}
}
