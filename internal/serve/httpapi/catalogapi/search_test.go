package catalogapi

import (
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/testkit"
)

func ids(a SearchAnswer) []string {
	out := []string{}
	for _, h := range a.Hits {
		out = append(out, strings.TrimPrefix(string(h.ID), "tool:"))
	}
	return out
}

// TestSearch: half a word finds what begins with it, then what was found, then
// what has it somewhere; filters hold, and facets count what the others let
// through.
func TestSearch(t *testing.T) {
	r := newRig(t, office(), nil)
	tests := []struct {
		ask   string
		want  string // ids
		total int
	}{
		{"", "bonus calendar_add calendar_list payroll card:tides vault vaulting weather", 8},
		{"q=cal", "calendar_add calendar_list", 2},
		{"q=CALENDAR", "calendar_add calendar_list vault weather", 4},    // Find brings what needs it, and its company
		{"q=calendar+li", "calendar_list calendar_add vault weather", 4}, // the first begins with it
		{"q=vault", "vault vaulting calendar_list weather", 4},
		{"q=tool:vault", "vault vaulting calendar_list weather", 4},
		{"q=endar", "calendar_add calendar_list", 2},
		{"q=sala", "bonus payroll", 2}, // of that category
		{"q=forecast+for+a+city", "weather calendar_list vault", 3},
		{"q=cal&category=PLANNING", "calendar_add calendar_list", 2},
		{"q=cal&category=money", "", 0},
		{"kind=card", "card:tides", 1},
		{"kind=card&kind=tool&limit=2", "bonus calendar_add", 8},
		{"state=quarantined", "", 0},
		{"q=tide", "card:tides", 1},
		{"q=" + strings.Repeat("x", 500), "", 0},
	}
	for _, tt := range tests {
		got := read[SearchAnswer](r, ann, "GET", "/api/v1/search?"+tt.ask, "")
		list, want := ids(got), strings.Fields(tt.want)
		if !slices.Equal(list, want) || got.Total != tt.total {
			t.Errorf("search %s = %v of %d, want %v of %d", tt.ask, list, got.Total, want, tt.total)
		}
	}
	got := read[SearchAnswer](r, ann, "GET", "/api/v1/search?category=planning&kind=tool", "")
	if fmt.Sprint(got.Facets) != "{map[tool:2] map[money:1 outside:1 planning:2 salaries:2 sports:1] map[active:2] 0}" {
		t.Errorf("facets = %v", got.Facets)
	}
	got = read[SearchAnswer](r, ann, "GET", "/api/v1/search?q=forecast+for+a+city", "")
	if got.Hits[0].Score <= 0 || got.Hits[0].Score > 1 {
		t.Errorf("score = %v, want that of Find", got.Hits[0].Score)
	}
}

// TestSearchPages: the pages together are the whole, in its order.
func TestSearchPages(t *testing.T) {
	var things []thing
	for i := range 130 {
		things = append(things, thing{Capability: capability.Capability{Name: fmt.Sprintf("Tool %d", i*7%130), Description: strings.Repeat("word ", i)}})
	}
	r := newRig(t, things, nil)
	for _, ask := range []string{"", "q=tool", "q=ool", "kind=tool"} {
		whole := ids(read[SearchAnswer](r, ann, "GET", "/api/v1/search?limit=200&"+ask, ""))
		var paged []string
		after := ""
		for range 200 {
			page := read[SearchAnswer](r, ann, "GET", "/api/v1/search?limit=7&after="+url.QueryEscape(after)+"&"+ask, "")
			paged = append(paged, ids(page)...)
			if after = page.Next; after == "" {
				break
			}
		}
		if !slices.Equal(paged, whole) || len(whole) != 130 {
			t.Errorf("search %q: the pages are %v, the whole is %v", ask, paged, whole)
		}
	}
	// In a list the next page begins where the last ended, though that is gone.
	first := read[SearchAnswer](r, ann, "GET", "/api/v1/search?limit=2", "")
	batch := testkit.Must(r.memory.Load(t.Context()))(t)
	batch.Capabilities = slices.DeleteFunc(slices.Clone(batch.Capabilities), func(c *capability.Capability) bool { return c.ID == first.Hits[1].ID })
	r.catalog.Replace("test", batch)
	if next := read[SearchAnswer](r, ann, "GET", "/api/v1/search?limit=1&after="+first.Next, ""); next.Hits[0].Name != "Tool 10" {
		t.Errorf("after %v comes %v, want Tool 10", ids(first), ids(next))
	}
}

// TestLine: a description is one line, cut where a word ends.
func TestLine(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "a\n b": "a b", strings.Repeat("x", 240): strings.Repeat("x", 240), strings.Repeat("x", 241): strings.Repeat("x", 240) + "…",
		strings.Repeat("word ", 60): strings.TrimSpace(strings.Repeat("word ", 48)) + "…", strings.Repeat("é", 200): strings.Repeat("é", 120) + "…",
	} {
		if got := line(text); got != want {
			t.Errorf("line(%.20q) = %q, want %q", text, got, want)
		}
	}
}

// FuzzSearch: no parameters break it, and every answer is a page or a problem.
func FuzzSearch(f *testing.F) {
	f.Add("cal", "tool", "planning", "active", "true", "7", "")
	f.Add("", "", "", "", "", "", "AAAA")
	f.Add("\xff", "x", "\x00", "shadowed", "maybe", "-1", "5")
	f.Fuzz(func(t *testing.T, q, kind, category, state, available, limit, after string) {
		r := newRig(t, office(), nil)
		ask := url.Values{"q": {q}, "kind": {kind}, "category": {category}, "state": {state}, "available": {available}, "limit": {limit}, "after": {after}}
		w := r.ask(intern, "GET", "/api/v1/search?"+ask.Encode(), "")
		switch w.Code {
		case 200:
			checkPage(t, w, limit)
		case 400:
			if !strings.Contains(w.Body.String(), `"code":"invalid"`) {
				t.Errorf("search %v = %s, want a problem", ask, w.Body)
			}
		default:
			t.Errorf("search %v = %d %s", ask, w.Code, w.Body)
		}
	})
}

func checkPage(t *testing.T, w *httptest.ResponseRecorder, limit string) {
	body := w.Body.String()
	if strings.Contains(body, `"tool:vault"`) {
		t.Errorf("what is hidden is found: %s", body)
	}
	if n := strings.Count(body, `"score":`); limit == "" && n > usualHits || n > mostHits {
		t.Errorf("%d hits with limit %q", n, limit)
	}
}

// Examples are of what the caller sees.
func TestExamples(t *testing.T) {
	r := newRig(t, office(), nil)
	got := read[Examples](r, ann, "GET", "/api/v1/examples?limit=50", "")
	if len(got.Examples) == 0 {
		t.Fatal("there are no examples")
	}
	seen := read[SearchAnswer](r, ann, "GET", "/api/v1/search?limit=200", "")
	for _, e := range got.Examples {
		if !slices.ContainsFunc(seen.Hits, func(h SearchHit) bool { return h.ID == e.ID }) || e.Text == "" {
			t.Errorf("example %+v is not among what ann sees, or says nothing", e)
		}
	}
	if got := read[Examples](r, ann, "GET", "/api/v1/examples", ""); len(got.Examples) != usualExamples {
		t.Errorf("without a limit there are %d, want %d", len(got.Examples), usualExamples)
	}
}
