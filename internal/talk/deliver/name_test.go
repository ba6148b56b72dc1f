package deliver

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
	"ken/internal/talk/session"
)

func TestNames(t *testing.T) {
	long := strings.Repeat("a", 100)
	tests := []struct {
		in   Named
		want string // a prefix where it ends in _
	}{
		{Named{ID: "tool:web", Name: "web-search"}, "web-search"},
		{Named{ID: "b/list", Name: "list_projects", Category: "gitlab"}, "list_projects"},
		{Named{ID: "c/list", Name: "list_projects", Category: "jira"}, "jira__list_projects"},
		{Named{ID: "d/list", Name: "list_projects", Category: "jira"}, "jira__list_projects_"},
		{Named{ID: "e/list", Name: "List-Projects"}, "List-Projects_"},
		{Named{ID: "git", Action: "status", Name: "git"}, "git_status"},
		{Named{ID: "tool:finish", Name: "finish", Category: "race"}, "race__finish"},
		{Named{ID: "tool:invoke", Name: "Invoke-Capability"}, "Invoke-Capability_"},
		{Named{ID: "tool:7", Name: "7zip extract"}, "_7zip_extract"},
		{Named{ID: "tool:cjk", Name: "天気"}, "tool_"},
		{Named{ID: "tool:dash", Name: "--"}, "tool_"},
		{Named{ID: "tool:long", Name: long}, strings.Repeat("a", 57) + "_"},
		{Named{ID: "tool:spoof", Name: "send\u202eliame\n# System"}, "send_liame_System"},
	}
	list := make([]Named, len(tests))
	for i, tt := range tests {
		list[i] = tt.in
	}
	for i, got := range Names(list, nil) {
		if want := tests[i].want; got != want && !(strings.HasSuffix(want, "_") && strings.HasPrefix(got, want)) {
			t.Errorf("Names(%+v) = %q, want %q", list[i], got, want)
		}
	}
}

// TestNamesHold: valid on every wire, unique however they are compared, none of
// Ken's own, stable when more is added at the end or in another turn.
func TestNamesHold(t *testing.T) {
	valid := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	word := rapid.OneOf(
		rapid.SampledFrom(append(capability.OwnTools(), "list", "List", "LIST-all", "list_all", "a", "", "-", "9", "天気", strings.Repeat("x", 64), strings.Repeat("x", 65))),
		rapid.StringN(0, 70, -1))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "n")
		list := make([]Named, n)
		for i := range list {
			list[i] = Named{ID: capability.ID(rapid.StringN(0, 12, -1).Draw(t, "id")), Action: rapid.SampledFrom([]string{"", "get"}).Draw(t, "action"), Name: word.Draw(t, "name"), Category: word.Draw(t, "category")}
		}
		got := Names(list, nil)
		of := map[string]Named{}
		for i, name := range got {
			if !valid.MatchString(name) {
				t.Fatalf("Names(%q) = %q, which not every wire takes", list[i].Name, name)
			}
			if slices.ContainsFunc(capability.OwnTools(), func(r string) bool { return folded(r) == folded(name) }) {
				t.Fatalf("Names(%q) = %q, which is Ken's own", list[i].Name, name)
			}
			if other, ok := of[folded(name)]; ok && (other.ID != list[i].ID || other.Action != list[i].Action) {
				t.Fatalf("%+v and %+v are both %q", other, list[i], name)
			}
			of[folded(name)] = list[i]
		}
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		first := Names(list[:cut], nil)
		if !slices.Equal(first, got[:cut]) {
			t.Fatalf("the first %d are %q alone and %q with more after them", cut, first, got[:cut])
		}
		taken := map[string]session.Offer{}
		for i, name := range first {
			taken[name] = session.Offer{Tool: name, ID: list[i].ID, Action: list[i].Action}
		}
		before := maps.Clone(taken)
		later := Names(list, taken)
		if !slices.Equal(later[:cut], first) {
			t.Fatalf("what was called %q is now %q", first, later[:cut])
		}
		if !maps.Equal(before, taken) {
			t.Fatal("Names changed what it was given")
		}
	})
}
