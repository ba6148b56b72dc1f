package door

import (
	"fmt"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/find/outcome"
	"ken/internal/know/source"
	"ken/internal/testkit"
)

// TestNamedIn: a text names tools by id, by names that no ordinary word is, and by
// what is marked as code.
func TestNamedIn(t *testing.T) {
	m := source.NewMemory("test", capability.TrustUser)
	for _, name := range []string{"search", "web-search", "read_file", "plan", "calendar"} {
		m.Put(capability.Capability{Name: name, Description: "Does " + name}, capability.Detail{})
	}
	m.Put(capability.Capability{Name: "deep-dive", Kind: capability.KindSkill, Description: "A skill"}, capability.Detail{Body: "x"})
	v := over(t, m, ruled(t), nil).View(somebody)
	for _, tt := range []struct {
		text     string
		required []string
		want     []capability.ID
	}{
		{"Search the plan with care.", nil, nil},
		{"Use `search` or web-search, then read_file.", nil, []capability.ID{"tool:search", "tool:web-search", "tool:read_file"}},
		{"Call tool:plan; tool:plan, tool:none and real-time.", nil, []capability.ID{"tool:plan"}},
		{"See deep-dive and discover_capabilities.", nil, nil},
		{"```\nsearch x\n```", []string{"calendar", "nothing"}, []capability.ID{"tool:calendar", "tool:search"}},
	} {
		testkit.Equal(t, fmt.Sprintf("namedIn(%q, %v)", tt.text, tt.required), v.namedIn(tt.text, tt.required), tt.want)
	}
}

// TestCardsAreRecordedWithTheirTools: what a card names is known from then on.
func TestCardsAreRecordedWithTheirTools(t *testing.T) {
	r := recorder(t, t.TempDir(), outcome.Full, outcome.SwitchConfig{})
	m := source.NewMemory("test", capability.TrustUser)
	m.Put(capability.Capability{Name: "read-table", Description: "Reads a table"}, capability.Detail{})
	m.Put(capability.Capability{
		Kind: capability.KindCard, Name: "ferry", Description: "When the ferry leaves", Triggers: &capability.Triggers{Keywords: []string{"ferry"}},
	}, capability.Detail{Body: "Its timetable is read with read-table."})
	d := over(t, m, ruled(t), r)
	for range 6 {
		find(t, d, Query{Text: "when does the ferry leave?", Scope: session})
		testkit.OK(t, d.Used(session, "tool:read-table", true))
	}
	e := events(t, r)[0]
	at := slices.IndexFunc(e.Items, func(it outcome.Item) bool { return it.ID == "card:ferry" })
	if at < 0 || !e.Items[at].Text || !slices.Equal(e.Items[at].Names, []capability.ID{"tool:read-table"}) {
		t.Fatalf("items = %+v, want the card with its tool", e.Items)
	}
	rep := d.Report(noon.AddDate(0, 0, -1))
	if got := rep.Metrics.Texts; got.Judged != 6 || got.Used != 6 || rep.Priors["card:ferry"].LogOdds <= 0 {
		t.Errorf("Texts = %+v, prior %+v; want it used each time", got, rep.Priors["card:ferry"])
	}
}
