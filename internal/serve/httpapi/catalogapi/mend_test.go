package catalogapi

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/discover"
	"ken/internal/find/show"
	"ken/internal/run/executor/results"
	"ken/internal/serve/auth"
	"ken/internal/wholefile"
)

// TestCasesAreHeld: who waits too long for the file is told what holds it.
func TestCasesAreHeld(t *testing.T) {
	path := t.TempDir() + "/cases.jsonl"
	unlock, err := wholefile.Lock(path+".lock", 0)
	if err != nil {
		t.Skip("cannot here: ", err)
	}
	defer unlock()
	synctest.Test(t, func(t *testing.T) {
		err := (&CaseFile{Path: path}).Delete("any")
		if capability.KindOf(err) != capability.Conflict || !errors.Is(err, wholefile.ErrHeld) {
			t.Errorf("Delete = %v, want a conflict that says what the lock said", err)
		}
	})
}

// TestQuarantineIsForOperators: nobody else is told of what is in quarantine.
func TestQuarantineIsForOperators(t *testing.T) {
	r := newRig(t, office(), nil)
	for _, target := range []string{"catalog", "lint", "graph", "search", "search?q=evil", "search?state=quarantined"} {
		said := r.ask(ann, "GET", "/api/v1/"+target, "").Body.String()
		all := r.ask(chief, "GET", "/api/v1/"+target, "").Body.String()
		if strings.Contains(said, "evil") || !strings.Contains(all, "evil") {
			t.Errorf("GET %s = %s for ann, %s for whoever runs Ken", target, said, all)
		}
	}
	absent := newRig(t, slices.DeleteFunc(office(), func(x thing) bool { return x.Name == "evil" }), nil)
	for _, target := range []string{"catalog", "catalog/tool:evil", "catalog/evi", "why/tool:evil", "why/evil", "why/tool:weather", "lint", "graph", "changes?after=0"} {
		got, want := r.ask(ann, "GET", "/api/v1/"+target, ""), absent.ask(ann, "GET", "/api/v1/"+target, "")
		if got.Code != want.Code || got.Body.String() != want.Body.String() {
			t.Errorf("GET %s = %s, without it %s", target, got.Body, want.Body)
		}
	}
}

// TestSearchOwn: the program's own tools are found by their names, and the
// answer says when nothing fits.
func TestSearchOwn(t *testing.T) {
	r := newRig(t, []thing{{Capability: capability.Capability{Name: "weather", Description: "Forecast for a city"}}}, nil, results.Tools()[0].Capability)
	for _, tt := range []struct {
		ask, want string
		fits      bool
	}{
		{"", "read_result weather", true}, {"?q=read_res", "read_result", true}, {"?q=read+res", "read_result", true},
		{"?q=forecast+for+a+city", "weather", true}, {"?q=zebra+quantum", "", false},
		{"?q=read_res&kind=card", "", false},
	} {
		for _, who := range []auth.Identity{ann, chief} {
			got := read[SearchAnswer](r, who, "GET", "/api/v1/search"+tt.ask, "")
			if !slices.Equal(ids(got), strings.Fields(tt.want)) || got.Fits != tt.fits {
				t.Errorf("search %s = %v, fits %v; want %s, %v", tt.ask, ids(got), got.Fits, tt.want, tt.fits)
			}
			for _, h := range got.Hits {
				if h.Own != (h.Name == "read_result") {
					t.Errorf("search %s: own of %s is %v", tt.ask, h.Name, h.Own)
				}
			}
		}
	}
}

// TestGraphKnitsOwn: the program's own tools of one category are drawn together,
// and one whose place a catalog took is drawn once.
func TestGraphKnitsOwn(t *testing.T) {
	own := []capability.Capability{{Name: "own_way", Category: "system", Description: "Runs a command"}}
	for _, name := range []string{"own_one", "own_two", "own_zzz"} {
		own = append(own, capability.Capability{Name: name, Category: "files", Description: "Does " + name})
	}
	r := newRig(t, []thing{{Capability: capability.Capability{Name: "own_one", Category: "files", Description: "Mine"}}}, nil, own...)
	for _, who := range []auth.Identity{ann, chief} {
		g := read[Graph](r, who, "GET", "/api/v1/graph", "")
		if want := []string{"own_one", "own_two", "own_way", "own_zzz"}; !slices.Equal(g.Nodes.Name, want) || g.Categories[g.Nodes.Category[2]] != "system" || g.States[g.Nodes.State[2]] != "active" {
			t.Fatalf("the graph has %+v, want %v", g, want)
		}
		if !slices.Equal(g.Edges.From, []int32{1}) || !slices.Equal(g.Edges.To, []int32{3}) || g.Types[g.Edges.Type[0]] != "SAME_CATEGORY" {
			t.Errorf("edges %+v, want one between own_two and own_zzz", g.Edges)
		}
	}
}

// TestPlaceSaysWhichScore: a place whose score is that of its company says that
// its own one was weighed.
func TestPlaceSaysWhichScore(t *testing.T) {
	reason := "its relevance is below discovery.tier1TailRelevance 0.020"
	var found door.Found
	found.Ranking = []discover.Nearest{{ID: "tool:a", Score: 0.07}, {ID: "tool:b", Score: 0.01}}
	for _, n := range found.Ranking {
		found.Skipped = append(found.Skipped, show.Skip{ID: n.ID, Tier: show.TierBriefs, Reason: reason, Weak: true})
	}
	got := places(door.View{}, found, 0.02)
	if !strings.Contains(got[0].Why[0], "its score of 0.070 is that of going together with a better one; its own relevance is below") || !strings.HasSuffix(got[1].Why[0], ": "+reason) {
		t.Errorf("places = %+v", got)
	}
}
