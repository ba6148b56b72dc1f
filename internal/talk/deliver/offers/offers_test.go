package offers

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
	"ken/internal/talk/deliver"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/testkit/doortest"
	"ken/llm"
)

var run = &capability.Recipe{Runner: "function.call"}

// A rig is a Reader of a catalog that a test can change.
type rig struct {
	Reader
	catalog *catalog.Catalog
}

// reader returns a Reader of a small catalog, and its source.
func reader(t *testing.T) (rig, *source.Memory) {
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
	return rig{r, w.Catalog}, m
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
	r, _ := reader(t)
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

// TestAppeared: a tool of the program that the model does not know is told once.
func TestAppeared(t *testing.T) {
	r, _ := reader(t)
	text, offers := r.Appeared(t.Context(), model.Whole, deliver.Live{})
	if len(offers) != 1 || !strings.Contains(text, "\n- ping: Reads Its input schema: ") {
		t.Errorf("Appeared = %q, %+v", text, offers)
	}
	known := deliver.Live{Tools: map[string]session.Offer{"ping": {Tool: "ping", ID: offers[0].ID}}}
	if text, _ := r.Appeared(t.Context(), model.Whole, known); text != "" {
		t.Errorf("Appeared of a known tool = %q", text)
	}
	if text, _ := r.Appeared(t.Context(), model.PerTurn, deliver.Live{}); text != "" {
		t.Errorf("Appeared with the tools of each turn = %q", text)
	}
}

// TestChanged: a tool that is no longer what the model was given is told, and
// only once.
func TestChanged(t *testing.T) {
	r, m := reader(t)
	offers := r.Found(t.Context(), []capability.ID{"tool:weather"}, deliver.Live{})
	tool := offers[0].Tool
	tool.Schema = deliver.Slim(tool.Schema)
	live := deliver.Live{Tools: map[string]session.Offer{tool.Name: {Tool: tool.Name, ID: "tool:weather"}}, Prefix: []llm.Tool{tool}}
	if text, marks := r.Changed(t.Context(), model.Whole, nil, live); text != "" || marks != nil {
		t.Errorf("Changed of what is the same = %q, %v", text, marks)
	}
	m.Put(capability.Capability{Name: "weather", Description: "Weather of the sea", Run: run}, capability.Detail{Schema: json.RawMessage(`{"type":"object"}`)})
	if err := r.catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.View = r.Door.View(capability.Principal{ID: "somebody"})
	text, marks := r.Changed(t.Context(), model.Whole, nil, live)
	if !strings.Contains(text, "weather:\n") || !strings.Contains(text, "Weather of the sea") || len(marks) != 1 {
		t.Errorf("Changed = %q, %v", text, marks)
	}
	live.Shown = marks
	if text, _ := r.Changed(t.Context(), model.Whole, nil, live); text != "" {
		t.Errorf("Changed is told again: %q", text)
	}
	if text, _ := r.Changed(t.Context(), model.PerTurn, nil, live); text != "" {
		t.Errorf("Changed with the tools of each turn = %q", text)
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
