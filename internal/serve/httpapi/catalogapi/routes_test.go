package catalogapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/serve/auth"
	"ken/internal/testkit"
)

// TestRequests: what routes answer and refuse that the scripts api_find and
// api_bad do not have.
func TestRequests(t *testing.T) {
	r := newRig(t, office(), nil)
	long := strings.Repeat("x", mostText+1)
	tests := []struct {
		who                  auth.Identity
		method, target, body string
		status               int
		want                 string // part of the answer
	}{
		{ann, "GET", "/api/v1/catalog/tool:weather", "", 200, `"schema":"not json"`},
		{ann, "GET", "/api/v1/catalog/weather", "", 200, `"id":"tool:weather"`},
		{ann, "GET", "/api/v1/catalog/tool:calendar_list", "", 200, `"schema":{"type":"object"`},
		{ann, "GET", "/api/v1/catalog/tool:evil", "", 404, `"code":"not-found"`},
		{chief, "GET", "/api/v1/catalog/tool:evil", "", 200, `"notForModels":"it is quarantined: `},
		{chief, "GET", "/api/v1/catalog/tool:evil", "", 200, `"body":"x"`},
		{ann, "GET", "/api/v1/why/tool:calendar_add", "", 200, `"id":"tool:calendar_list","type":"DEPENDS_ON","weight":1,"needs":true,"name":"calendar_list"`},
		{chief, "GET", "/api/v1/lint", "", 200, `"code":"quarantined"`},
		{ann, "GET", "/api/v1/lint", "", 200, `"note":"`},
		{chief, "GET", "/api/v1/lint", "", 200, `"code":"unknown-name"`},
		{ann, "GET", "/api/v1/changes?after=0", "", 200, `"indexVersion":1`},
		{ann, "GET", "/api/v1/changes?after=-1", "", 400, `"code":"invalid"`},
		{ann, "GET", "/api/v1/discover?q=awkward&q=twice", "", 400, `may be given once`},
		{ann, "GET", "/api/v1/discover?q=forecast&kind=card", "", 200, `"briefs":[]`},
		{ann, "GET", "/api/v1/discover?q=forecast&top=-1", "", 400, "top is"},
		{ann, "GET", "/api/v1/discover?q=forecast&top=1000001", "", 400, "top is"},
		{ann, "GET", "/api/v1/discover?q=forecast&minRelevance=NaN", "", 400, "minRelevance is"},
		{ann, "GET", "/api/v1/discover?q=forecast&minRelevance=2", "", 400, "minRelevance is 2"},
		{ann, "GET", "/api/v1/discover?q=forecast&available=perhaps", "", 400, "available is"},
		{ann, "GET", "/api/v1/discover?q=forecast&budget=0", "", 200, `"total":0`},
		{ann, "GET", "/api/v1/search?limit=0", "", 400, "limit is 0"},
		{ann, "GET", "/api/v1/search?limit=201", "", 400, "limit is 201"},
		{ann, "GET", "/api/v1/search?q=x&after=y", "", 400, "after is not"},
		{ann, "GET", "/api/v1/graph", "", 200, `"types":["DEPENDS_ON"`},
		{ann, "POST", "/api/v1/play", `{"q":"forecast for a city"}`, 200, `"learnedWeight":1`},
		{ann, "POST", "/api/v1/play", `{"q":"x","override":{"graphBoostFactor":1.5}}`, 400, "override.graphBoostFactor is 1.5"},
		{ann, "POST", "/api/v1/play", `{"q":"x","override":{"learnedWeight":11}}`, 400, "override.learnedWeight is 11"},
		{ann, "POST", "/api/v1/play", `{"q":"` + long + `"}`, 400, "the message has"},
		{ann, "POST", "/api/v1/play", `{"q":"x","before":[{"role":"system","text":"y"}]}`, 400, `is of`},
		{ann, "POST", "/api/v1/play", `{"q":"x","before":[` + strings.Repeat(`{"role":"user","text":"y"},`, 20) + `{"role":"user","text":"y"}]}`, 400, "before has 21"},
		{ann, "GET", "/api/v1/eval/cases", "", 403, `"operator-only"`},
		{ann, "POST", "/api/v1/eval/cases", `{"query":"x","gold":[]}`, 403, `"operator-only"`},
		{ann, "DELETE", "/api/v1/eval/cases/1", "", 403, `"operator-only"`},
		{ann, "POST", "/api/v1/eval", `{}`, 403, `"operator-only"`},
		{ann, "POST", "/api/v1/eval/checkup", "", 403, `"operator-only"`},
		{ann, "GET", "/api/v1/reviews", "", 403, `"operator-only"`},
		{ann, "POST", "/api/v1/reviews/tools.git", `{"action":"accept","digest":"d1"}`, 403, `"operator-only"`},
		{chief, "GET", "/api/v1/eval/cases", "", 200, `{"cases":[],"cut":0,"problems":[]}`},
		{chief, "GET", "/api/v1/eval/cases?limit=0", "", 400, `limit is 0`},
		{chief, "POST", "/api/v1/eval/cases", `{"query":"x"}`, 400, `gold is missing`},
		{chief, "POST", "/api/v1/eval/cases", `{"query":"x","gold":[""]}`, 400, `gold has an id of 0 bytes`},
		{chief, "POST", "/api/v1/eval/cases", `{"query":"x","gold":["` + strings.Repeat("a", 1001) + `"]}`, 400, `gold has an id of 1001`},
		{chief, "POST", "/api/v1/eval", `{}`, 400, `there is no case to measure`},
		{chief, "POST", "/api/v1/eval", `{"cases":[{"query":"x"}]}`, 400, `case 1: gold is missing`},
	}
	for _, tt := range tests {
		w := r.ask(tt.who, tt.method, tt.target, tt.body)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.want) {
			t.Errorf("%s %s %.80s as %s = %d %.400s, want %d with %s", tt.method, tt.target, tt.body, tt.who.Principal.ID, w.Code, w.Body, tt.status, tt.want)
		}
		if w.Code >= 400 && w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s = %s, want a problem document", tt.method, tt.target, w.Header().Get("Content-Type"))
		}
	}
}

// TestNobodySeesNothing: the zero identity gets empty lists.
func TestNobodySeesNothing(t *testing.T) {
	r := newRig(t, office(), nil)
	for target, want := range map[string]string{
		"/api/v1/catalog": `"capabilities":[]`, "/api/v1/discover?q=weather": `"briefs":[]`, "/api/v1/search?q=weather": `"hits":[]`,
		"/api/v1/search": `"hits":[]`, "/api/v1/graph": `"nodes":{"id":[]`, "/api/v1/lint": `"problems":[]`,
	} {
		if w := r.ask(nobody, "GET", target, ""); w.Code != 200 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("GET %s as nobody = %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
	if w := r.ask(nobody, "POST", "/api/v1/play", `{"q":"weather"}`); w.Code != 200 || !strings.Contains(w.Body.String(), `"ranking":[]`) {
		t.Errorf("play as nobody = %d %s", w.Code, w.Body)
	}
	for _, target := range []string{"/api/v1/catalog/tool:weather", "/api/v1/why/tool:weather"} {
		if w := r.ask(nobody, "GET", target, ""); w.Code != 404 {
			t.Errorf("GET %s as nobody = %d %s, want 404", target, w.Code, w.Body)
		}
	}
}

// TestUnchangedIsNotSentAgain: an entity tag holds for one catalog as one class
// of viewers sees it.
func TestUnchangedIsNotSentAgain(t *testing.T) {
	r := newRig(t, office(), nil)
	for i, target := range []string{"/api/v1/catalog", "/api/v1/graph"} {
		tag := r.ask(ann, "GET", target, "").Header().Get("ETag")
		if tag == "" {
			t.Fatalf("GET %s has no tag", target)
		}
		if w := r.ask(ann, "GET", target, "", "If-None-Match", `"x", W/`+tag); w.Code != http.StatusNotModified || w.Body.Len() > 0 || w.Header().Get("ETag") != tag {
			t.Errorf("GET %s with its tag = %d %s, want 304", target, w.Code, w.Body)
		}
		for _, who := range []auth.Identity{intern, chief, {Principal: ann.Principal, Operator: true}} {
			if w := r.ask(who, "GET", target, "", "If-None-Match", tag); w.Code != http.StatusOK {
				t.Errorf("GET %s with another's tag = %d, want 200", target, w.Code)
			}
		}
		again := newRig(t, office(), nil) // as after a restart: the same version
		if w := again.ask(ann, "GET", target, "", "If-None-Match", tag); w.Code != http.StatusOK {
			t.Errorf("GET %s with the tag of another life = %d, want 200", target, w.Code)
		}
		batch := testkit.Must(r.memory.Load(t.Context()))(t)
		batch.Capabilities = batch.Capabilities[1+i:] // one less each time: the same again would be nothing new
		r.catalog.Replace("test", batch)
		if w := r.ask(ann, "GET", target, "", "If-None-Match", tag); w.Code != http.StatusOK {
			t.Errorf("GET %s with the tag of an older catalog = %d, want 200", target, w.Code)
		}
	}
}

// TestChanges: they are told; of what is gone nobody but the operator learns
// the name; and a server that stops answers at once.
func TestChanges(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r := newRig(t, office(), ctx)
	batch := testkit.Must(r.memory.Load(t.Context()))(t)
	batch.Capabilities = slices.Clone(batch.Capabilities)[1:]
	r.catalog.Replace("test", batch)
	all := read[Changed](r, chief, "GET", "/api/v1/changes?after=1", "")
	some := read[Changed](r, ann, "GET", "/api/v1/changes?after=1", "")
	if !all.Complete || len(all.Changes) != 1 || all.Changes[0].What != "removed" || all.Catalog.Version != 2 {
		t.Errorf("the operator is told %+v, want one that is gone", all)
	}
	if some.Complete || len(some.Changes) != 0 || some.Catalog.Version != 2 {
		t.Errorf("ann is told %+v, want that everything may be different", some)
	}
	answered := make(chan int)
	go func() { answered <- r.ask(ann, "GET", "/api/v1/changes?after=2", "").Code }()
	stop()
	if code := <-answered; code != http.StatusNoContent {
		t.Errorf("status = %d, want 204", code)
	}
}

// TestOperatorSeesWhatIsHidden: with the reason, in list, show, why, search and changes.
func TestOperatorSeesWhatIsHidden(t *testing.T) {
	r := newRig(t, office(), nil)
	boss := auth.Identity{Principal: intern.Principal, Operator: true} // whom the rule is against
	for _, target := range []string{"/api/v1/catalog", "/api/v1/catalog/tool:vault", "/api/v1/why/tool:vault", "/api/v1/search?q=vault", "/api/v1/graph"} {
		w := r.ask(boss, "GET", target, "")
		if w.Code != 200 || !strings.Contains(w.Body.String(), `"tool:vault"`) {
			t.Errorf("GET %s as the operator = %d %.300s, want what is hidden too", target, w.Code, w.Body)
		}
	}
	d := read[Description](r, boss, "GET", "/api/v1/catalog/tool:vault", "")
	if d.Detail.Body != "Turn left twice." || !strings.Contains(d.NotForModels, "no.vault") && !strings.Contains(d.NotForModels, "not for interns") {
		t.Errorf("show = %+v, want the body and that it is hidden", d)
	}
	if g := read[Graph](r, boss, "GET", "/api/v1/graph", ""); !slices.ContainsFunc(g.Edges.From, func(from int32) bool { return g.Nodes.ID[from] == hidden }) {
		t.Errorf("the graph has no edge of what is hidden: %+v", g)
	}
	batch := testkit.Must(r.memory.Load(t.Context()))(t)
	batch.Capabilities = slices.Clone(batch.Capabilities)
	at := slices.IndexFunc(batch.Capabilities, func(c *capability.Capability) bool { return c.Name == "vault" })
	changed := *batch.Capabilities[at]
	changed.Description = "Open the vault and count the silver"
	batch.Capabilities[at] = &changed
	r.catalog.Replace("test", batch)
	for who, want := range map[*auth.Identity]int{&boss: 1, &intern: 0} {
		if got := read[Changed](r, *who, "GET", "/api/v1/changes?after=1", ""); len(got.Changes) != want {
			t.Errorf("changes for operator %v = %+v, want %d", who.Operator, got.Changes, want)
		}
	}
	found, _ := json.Marshal(read[map[string]any](r, boss, "POST", "/api/v1/play", `{"q":"open the vault and count the gold"}`))
	if strings.Contains(string(found), `"tool:vault"`) {
		t.Errorf("what is played is what a model sees: %s", found)
	}
}
