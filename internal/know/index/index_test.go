package index

import (
	"slices"
	"testing"

	"ken/capability"
)

func TestWords(t *testing.T) {
	tests := map[string][]string{
		"web_search-pages": {"web", "search", "page"},
		"getHTTPPage":      {"http", "page"},
		"list2files":       {"list", "2", "file"},
		"Please use the":   nil,
		"cities, status":   {"city", "status"},
		"天气预报":             {"天气", "气预", "预报"},
		"":                 nil,
	}
	for in, want := range tests {
		if got := Words(in); !slices.Equal(got, want) {
			t.Errorf("Words(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	list := []*capability.Capability{
		{ID: "tool:web-search", Name: "web-search", Description: "Search the web for current information"},
		{ID: "tool:read-file", Name: "read-file", Description: "Read a file of the workspace"},
		{ID: "skill:github", Name: "github", Description: "Use the GitHub CLI for issues and pull requests"},
		{ID: "card:budget", Name: "budget", Triggers: &capability.Triggers{Keywords: []string{"cost", "tokens"}}},
	}
	x := Build(list)
	tests := []struct {
		query string
		want  capability.ID
	}{
		{"search the web", "tool:web-search"},
		{"open a github issue", "skill:github"},
		{"what do tokens cost", "card:budget"},
		{"run read-file now", "tool:read-file"},
		{"skill:github", "skill:github"},
	}
	for _, tt := range tests {
		hits := x.Search(tt.query, 3, nil)
		if len(hits) == 0 || list[hits[0].Ordinal].ID != tt.want {
			t.Errorf("Search(%q) = %v, want %s first", tt.query, hits, tt.want)
		}
	}
	if hits := x.Search("translate this paragraph", 3, nil); len(hits) > 0 && hits[0].Score >= 0.3 {
		t.Errorf("Search of something that does not fit = %v, want nothing above 0.3", hits)
	}
	none := func(int) bool { return false }
	if hits := x.Search("search the web", 3, none); len(hits) != 0 {
		t.Errorf("Search with a filter that keeps nothing = %v", hits)
	}
	if hits := Build(nil).Search("anything", 3, nil); len(hits) != 0 {
		t.Errorf("Search of an empty index = %v", hits)
	}
}
