package eval

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"ken/capability"
)

func TestReadQueries(t *testing.T) {
	queries, problems, err := ReadQueries(strings.NewReader("\ufeff"+`{"id":"q1","query":"one","gold":["a","b"],"lang":"en","type":{"x":1}}
`+"\r\n  \n"+`{"query":"😀","gold":[],"before":[{"role":"user","text":"earlier"}]}`), "set.jsonl")
	if err != nil || len(problems) > 0 {
		t.Fatalf("ReadQueries: %v, %v", problems, err)
	}
	want := []Query{
		{ID: "q1", Text: "one", Gold: []string{"a", "b"}, File: "set.jsonl", Line: 1},
		{ID: "line 4", Text: "😀", Gold: []string{}, Before: []Message{{"user", "earlier"}}, File: "set.jsonl", Line: 4},
	}
	if diff := cmp.Diff(want, queries); diff != "" {
		t.Errorf("ReadQueries (-want +got):\n%s", diff)
	}
}

// TestReadQueriesBadRows: each broken row is named by file and line, says what
// is wrong, and is not measured.
func TestReadQueriesBadRows(t *testing.T) {
	tests := []struct{ row, want string }{
		{`{"id":"q","query":"x"}`, `no "gold"; an empty list says that nothing fits`},
		{`{"id":"q","query":"x","gold":null}`, `no "gold"`},
		{`{"id":"q","gold":[]}`, `no "query"`},
		{`{"id":"q","query":" \t","gold":[]}`, `"query" is empty`},
		{`{"id":"q","query":"x","gold":["a",""]}`, "empty id"},
		{`{"id":"q","query":"x","gold":"a"}`, `"gold" holds a string`},
		{`{"id":"q","query":7,"gold":[]}`, `"query" holds a number`},
		{`{"id":7,"query":"x","gold":[]}`, `"id" holds a number`},
		{`{"id":"q","query":"x","gold":[],"before":["hi"]}`, `"before" holds a string`},
		{`["x"]`, "array and no object"},
		{`{"id":"q","query":"x","gold":[]`, "not JSON"},
		{`{"id":"q","query":"x","gold":[]} {}`, "not JSON"},
		{`what is this`, "not JSON"},
		{"{\"query\":\"\xff\",\"gold\":[]}", "not valid UTF-8"},
	}
	for _, tt := range tests {
		text := `{"query":"fine","gold":[]}` + "\n\n" + tt.row + "\n" + `{"query":"fine too","gold":[]}`
		queries, problems, err := ReadQueries(strings.NewReader(text), "dir/set.jsonl")
		if err != nil || len(queries) != 2 || len(problems) != 1 {
			t.Errorf("row %q: %d queries, problems %v, %v, want 2 and one problem", tt.row, len(queries), problems, err)
			continue
		}
		p := problems[0]
		if got := p.String(); p.Severity != capability.Grave || !strings.HasPrefix(got, "dir/set.jsonl:3: ") || !strings.Contains(got, tt.want) {
			t.Errorf("row %q: problem %q, want dir/set.jsonl:3 and %q", tt.row, got, tt.want)
		}
	}
}

func TestReadQueriesRepeatedGold(t *testing.T) {
	queries, problems, err := ReadQueries(strings.NewReader(`{"query":"x","gold":["b","a","b"]}`), "f")
	if err != nil || len(problems) != 1 || problems[0].Severity != capability.Warning || problems[0].Code != "repeated-gold" {
		t.Fatalf("problems %v, %v, want one warning about repeated-gold", problems, err)
	}
	if diff := cmp.Diff([]string{"b", "a"}, queries[0].Gold); diff != "" {
		t.Errorf("gold (-want +got):\n%s", diff)
	}
}

func TestReadQueriesErrors(t *testing.T) {
	long := `{"query":"x","gold":[]}` + "\n" + `{"query":"` + strings.Repeat("x", maxRow) + `","gold":[]}`
	if _, _, err := ReadQueries(strings.NewReader(long), "long.jsonl"); err == nil || !strings.Contains(err.Error(), "long.jsonl:2") {
		t.Errorf("a row that is too long: %v, want an error that names long.jsonl:2", err)
	}
	mega := `{"query":"` + strings.Repeat("x ", 1<<19) + `","gold":[]}`
	if queries, problems, err := ReadQueries(strings.NewReader(mega), "f"); len(queries) != 1 || len(problems) > 0 || err != nil {
		t.Errorf("a message of 1 MB: %d queries, %v, %v, want it read", len(queries), problems, err)
	}
	broken := errors.New("disk on fire")
	if _, _, err := ReadQueries(iotest.ErrReader(broken), "f.jsonl"); !errors.Is(err, broken) || !strings.Contains(err.Error(), "f.jsonl") {
		t.Errorf("a reader that fails: %v, want its error and the file's name", err)
	}
}

func FuzzReadQueries(f *testing.F) {
	f.Add(`{"id":"q1","query":"one","gold":["a","b"]}` + "\n" + `{"query":"two","gold":[]}`)
	f.Add(`{"query":"x","gold":null}`)
	f.Add("\ufeff{}\n[]\nnull\n7\n\"x\"")
	f.Fuzz(func(t *testing.T, text string) {
		queries, problems, err := ReadQueries(strings.NewReader(text), "f")
		if err != nil {
			return
		}
		rows := 0
		for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
			if strings.TrimSpace(line) != "" {
				rows++
			}
		}
		grave := 0
		for _, p := range problems {
			if p.Severity == capability.Grave {
				grave++
			}
			if p.Origin.Line < 1 || p.Message == "" || p.Fix == "" {
				t.Errorf("problem %+v does not say where, what and what to do", p)
			}
		}
		if len(queries)+grave != rows {
			t.Errorf("%d rows gave %d queries and %d problems", rows, len(queries), grave)
		}
		for _, q := range queries {
			if q.ID == "" || q.Text == "" || q.Gold == nil {
				t.Errorf("query %+v is not whole", q)
			}
		}
	})
}
