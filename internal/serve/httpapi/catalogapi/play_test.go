package catalogapi

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"ken/capability"
	"ken/internal/testkit"
)

// TestCases: what was said before belongs to a case, and gold that is not there is
// told. The script api_find has how cases are saved, measured and deleted.
func TestCases(t *testing.T) {
	r := newRig(t, office(), nil)
	for _, body := range []string{`{"query":"forecast for a city","gold":["tool:weather","tool:weather","tool:none"]}`, `{"query":"forecast for a city","gold":[],"before":[{"role":"user","text":"hello"}],"id":"mine"}`} {
		read[Case](r, chief, "POST", "/api/v1/eval/cases", body)
	}
	list := read[CaseList](r, chief, "GET", "/api/v1/eval/cases?limit=1", "")
	if len(list.Cases) != 1 || list.Cut != 1 || list.Cases[0].ID != "mine" || list.Cases[0].Before[0].Text != "hello" {
		t.Errorf("list of one = %+v, want the newest, and one cut", list)
	}
	report := read[map[string]any](r, chief, "POST", "/api/v1/eval", `{}`)
	if p := report["problems"].([]any); len(p) != 1 || !strings.Contains(p[0].(map[string]any)["message"].(string), "tool:none") || report["n"] != 1.0 || report["oos_n"] != 1.0 {
		t.Errorf("report = %v, want the gold that is not there among the problems", report)
	}
	given := read[map[string]any](r, chief, "POST", "/api/v1/eval", `{"cases":[{"query":"make an appointment","gold":["tool:calendar_add"]}]}`)
	if given["n"] != 1.0 || given["recall@5"] != 100.0 {
		t.Errorf("report = %v", given)
	}
}

// TestCheckup: the catalog is asked for in its own words; what is confused and
// what to improve is told.
func TestCheckup(t *testing.T) {
	r := newRig(t, office(), nil)
	got := read[Checkup](r, chief, "POST", "/api/v1/eval/checkup", "")
	if got.Capabilities == 0 || got.Requests < got.Capabilities || got.First == 0 || got.First > got.Three || got.LeftOut != 0 {
		t.Errorf("checkup = %+v, want every capability asked for", got)
	}
	if got.Confusable == nil || got.Improve == nil {
		t.Errorf("checkup = %+v, want lists, empty or not", got)
	}
	for _, a := range got.Improve {
		if len(a.How) == 0 || a.Lost > a.Of {
			t.Errorf("advice = %+v, want how to improve it", a)
		}
	}
}

// TestOneEvaluationAtATime: a second one is told so.
func TestOneEvaluationAtATime(t *testing.T) {
	r := newRig(t, office(), nil)
	s := &server{Config: Config{Door: r.door, Cases: r.cases, Evaluate: Evaluating(r.door)}}
	s.measuring.Store(true)
	for _, route := range s.caseRoutes() {
		if route.Name != "evaluate" {
			continue
		}
		r.Mux = muxOf(route)
		if w := r.ask(chief, "POST", "/api/v1/eval", `{"cases":[{"query":"x","gold":[]}]}`); w.Code != 409 || !strings.Contains(w.Body.String(), `"code":"busy"`) {
			t.Errorf("a second evaluation = %d %s, want 409 busy", w.Code, w.Body)
		}
		s.measuring.Store(false)
		if w := r.ask(chief, "POST", "/api/v1/eval", `{"cases":[{"query":"x","gold":[]}]}`); w.Code != 200 || s.measuring.Load() {
			t.Errorf("the next = %d %s, want 200 and the way free", w.Code, w.Body)
		}
	}
}

// TestCaseFileKeepsWhatItCannotRead: rows of others are left alone, and told.
func TestCaseFileKeepsWhatItCannotRead(t *testing.T) {
	f := &CaseFile{Path: t.TempDir() + "/cases.jsonl"}
	wrote := "{\"query\":\"a\",\"gold\":[],\"note\":\"mine\"}\n\nnot json\n{\"query\":\"b\"}\n{\"gold\":[]}\n"
	testkit.OK(t, os.WriteFile(f.Path, []byte(wrote), 0o600))
	saved := testkit.Must(f.Save(Case{Query: "c", Gold: []string{}}))(t)
	cases, problems, err := f.List()
	if err != nil || len(cases) != 2 || !strings.HasPrefix(cases[0].ID, "row ") || len(problems) != 3 || !strings.Contains(problems[0], ":2: the row is not a case") {
		t.Errorf("List = %+v, %q, %v", cases, problems, err)
	}
	b, err := os.ReadFile(f.Path)
	if err != nil || !strings.HasPrefix(string(b), strings.Replace(wrote, "\n\n", "\n", 1)) {
		t.Errorf("the file is %s, %v; want the rows as they were", b, err)
	}
	for _, id := range []string{saved.ID, cases[0].ID} { // a row without an id is named by what it says
		if err := f.Delete(id); err != nil {
			t.Errorf("Delete = %v", err)
		}
		if err := f.Delete(id); capability.KindOf(err) != capability.NotFound {
			t.Errorf("Delete again = %v, want NotFound", err)
		}
	}
}

// TestCaseFileIsBounded: in its rows, in how long one is, and in what is read.
func TestCaseFileIsBounded(t *testing.T) {
	f := &CaseFile{Path: t.TempDir() + "/cases.jsonl"}
	if _, err := f.Save(Case{Query: strings.Repeat("x", longestCase), Gold: []string{}}); capability.KindOf(err) != capability.Invalid {
		t.Errorf("Save of a long row = %v, want Invalid", err)
	}
	var rows strings.Builder
	for i := range mostCases {
		b, _ := json.Marshal(Case{ID: string(rune('a' + i%26)), Query: strings.Repeat("q", i%7) + string(rune(0x4e00+i)), Gold: []string{}})
		rows.Write(append(b, '\n'))
	}
	testkit.OK(t, os.WriteFile(f.Path, []byte(rows.String()), 0o600))
	if _, err := f.Save(Case{Query: "one more", Gold: []string{}}); capability.KindOf(err) != capability.Conflict {
		t.Errorf("Save in a full file = %v, want Conflict", err)
	}
	if _, err := f.Save(Case{Query: string(rune(0x4e00)), Gold: []string{"tool:a"}}); err != nil {
		t.Errorf("replacing a row of a full file = %v", err)
	}
	testkit.OK(t, os.Truncate(f.Path, longestCases+1))
	if _, _, err := f.List(); capability.KindOf(err) != capability.Unavailable {
		t.Errorf("List of a file that is too large = %v, want Unavailable", err)
	}
}

// TestCaseFileOfMany: of many who save at the same time nobody's row is lost.
func TestCaseFileOfMany(t *testing.T) {
	path := t.TempDir() + "/cases.jsonl"
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			f := &CaseFile{Path: path} // as of another process: locks are the file's
			c, err := f.Save(Case{Query: strings.Repeat("x", i+1), Gold: []string{}})
			if err != nil {
				t.Error(err)
			}
			if i%4 == 0 {
				if err := f.Delete(c.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	cases, problems, err := (&CaseFile{Path: path}).List()
	if err != nil || len(cases) != 15 || len(problems) > 0 {
		t.Errorf("List = %d cases, %v, %v; want 15", len(cases), problems, err)
	}
}
