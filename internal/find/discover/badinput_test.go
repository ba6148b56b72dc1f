package discover

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/find/show"
	"ken/internal/tokenizer"
)

// TestBadInput: messages, budgets and catalogs that make no sense have a result
// all the same, and it is this one.
func TestBadInput(t *testing.T) {
	one := caps(capability.Capability{Name: "web-search", Description: "Search the web"})
	everything := show.Budget{Map: 10, Briefs: 10, Fulls: 10, Cards: 10, Total: 10}
	mapOf := func(things []thing) string { return of(t, things...).find(t, "", Defaults()).Map }
	officeMap, oneMap := mapOf(office()), mapOf(one)
	if officeMap == "" || oneMap == "" {
		t.Fatal("no maps")
	}
	megabyte := strings.Repeat("lorem ipsum dolor ", 1<<20/18)
	tests := []struct {
		name    string
		things  []thing
		message string
		budget  *show.Budget

		want     string // Map
		detail   string // of the map, where it matters
		briefs   []capability.ID
		fits     bool // something found is likely meant
		degraded int
	}{
		{name: "an empty message shows the map", things: office(), want: officeMap},
		{name: "so does one of blanks", things: office(), message: " \t\r\n\u00a0\u3000", want: officeMap},
		{name: "of emoji", things: office(), message: "🎉👩‍👩‍👧🏳️‍🌈🎉", want: officeMap},
		{name: "of stop words", things: office(), message: "the and of to a in is it", want: officeMap},
		{name: "of signs", things: office(), message: "?!… --- /// :::", want: officeMap},
		{name: "of bytes that are not UTF-8", things: office(), message: "\xff\xfe\xc3\x28\x00", want: officeMap},
		{name: "invalid bytes do not hide the words beside them", things: office(), message: "\xffweather\xfe forecast \xc3 city", want: officeMap, briefs: []capability.ID{"tool:weather", "tool:geocode", "tool:http"}, fits: true},
		{name: "a megabyte that says nothing", things: office(), message: megabyte, want: officeMap, degraded: 1},
		{name: "a megabyte that ends in a wish", things: office(), message: megabyte + ". What is the weather forecast for the city?", want: officeMap, degraded: 1, briefs: []capability.ID{"tool:weather", "tool:geocode", "tool:http"}, fits: true},
		{name: "a budget of nothing shows nothing", things: office(), message: "weather forecast for the city", budget: &show.Budget{}, detail: "nothing", fits: true},
		{name: "a budget of ten has no room for a sentence", things: office(), message: "weather forecast for the city", budget: &everything, detail: "nothing", fits: true},
		{name: "budgets below zero are nothing", things: office(), message: "weather", budget: &show.Budget{Map: -1, Briefs: -1, Fulls: -1, Cards: -1, Total: -1}, detail: "nothing", fits: true},
		{name: "a catalog of nothing", message: "weather forecast", detail: "nothing"},
		{name: "a catalog of nothing and no message", detail: "nothing"},
		{name: "a catalog of one that is meant", things: one, message: "search the web", want: oneMap, briefs: []capability.ID{"tool:web-search"}, fits: true},
		{name: "a catalog of one that is not", things: one, message: "knit a scarf", want: oneMap},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg := Defaults()
			if tt.budget != nil {
				cfg.Budget = *tt.budget
			}
			sel := of(t, tt.things...).find(t, tt.message, cfg)
			if sel.Map != tt.want || tt.detail != "" && sel.MapDetail != tt.detail {
				t.Errorf("map = %q (%s), want %q (%s)", sel.Map, sel.MapDetail, tt.want, tt.detail)
			}
			if got := idsOf(sel.Briefs); !slices.Equal(got, tt.briefs) {
				t.Errorf("briefs = %v, want %v", got, tt.briefs)
			}
			if fits := sel.Fit >= cfg.MinRelevance && len(sel.Ranking) > 0; fits != tt.fits || sel.Abstained() == tt.fits {
				t.Errorf("fit %v, ranking %v, abstained %v; want a fit: %v", sel.Fit, sel.Ranking, sel.Abstained(), tt.fits)
			}
			if len(sel.Cards) != 0 || len(sel.Degraded) != tt.degraded || sel.Query != tt.message {
				t.Errorf("cards %v, degraded %q, query of %d bytes; want none, %d, %d", idsOf(sel.Cards), sel.Degraded, len(sel.Query), tt.degraded, len(tt.message))
			}
			if n := tokenizer.Count(sel.Text()); n > sel.Tokens.Total || sel.Tokens.Total > max(cfg.Budget.Total, 0) {
				t.Errorf("%d tokens, told %d, budget %d", n, sel.Tokens.Total, cfg.Budget.Total)
			}
			if tt.budget != nil && tt.fits && reason(sel, "tool:weather") == "" {
				t.Errorf("nothing says why tool:weather is not shown: %+v", sel.Skipped)
			}
			b, err := json.Marshal(sel)
			if err != nil || strings.Contains(string(b), ":null") {
				t.Errorf("as JSON: %.300s, %v; want lists, none of them null", b, err)
			}
		})
	}
}

// TestNothingIsNull: empty lists are lists, also for whoever sees nothing.
func TestNothingIsNull(t *testing.T) {
	for i, sel := range []Selection{Empty("x"), of(t, office()...).find(t, "", Config{})} {
		got := asJSON(t, sel)
		for _, want := range []string{`"briefs":[]`, `"cards":[]`, `"fulls":[]`, `"skipped":[`, `"degraded":[]`} {
			if !strings.Contains(got, want) || strings.Contains(got, "null") {
				t.Errorf("selection %d = %s, want %s and no null", i, got, want)
			}
		}
	}
	if got := Empty("x"); got.Query != "x" || got.Text() != "" || !got.Abstained() {
		t.Errorf("Empty = %+v, want the query and nothing else", got)
	}
}
