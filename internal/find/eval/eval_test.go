package eval

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ken/internal/testkit"
)

// book answers from a list.
func book(answers map[string]Answer) Finder {
	return func(_ context.Context, q Query) (Answer, error) { return answers[q.ID], nil }
}

func TestK010Run(t *testing.T) {
	queries := []Query{
		{ID: "found", Text: "1", Gold: []string{"a"}},
		{ID: "second", Text: "2", Gold: []string{"a"}},
		{ID: "refused", Text: "3", Gold: []string{"a"}},
		{ID: "lost", Text: "4", Gold: []string{"a", "gone"}},
		{ID: "out", Text: "5"},
		{ID: "lured", Text: "6"},
	}
	took := func(us int) time.Duration { return time.Duration(us) * time.Microsecond }
	answers := map[string]Answer{
		"found":   {Hits: []Ranked{{"a", 0.9}, {"b", 0.1}}, Floor: 0.3, Tokens: 100, Took: took(10)},
		"second":  {Hits: []Ranked{{"b", 0.5}, {"a", 0.4}}, Floor: 0.3, Tokens: 300, Took: took(20)},
		"refused": {Hits: []Ranked{{"a", 0.2}}, Floor: 0.3, Abstained: true, Tokens: 5, Took: took(30)},
		"lost":    {Hits: []Ranked{{"a", 0.9}}, Floor: 0.3, Tokens: 100, Took: took(40)},
		"out":     {Hits: []Ranked{{"b", 0.1}}, Floor: 0.3, Abstained: true, Took: took(50)},
		"lured":   {Hits: []Ranked{{"b", 0.8}}, Floor: 0.3, Tokens: 200, Took: took(60)},
	}
	r := testkit.Must(Run(context.Background(), book(answers), queries, Options{Known: func(id string) bool { return id != "gone" }}))(t)
	doc := marshal(t, r)
	// ndcg@5: (100 + 63.093 + 0 + 100/1.6309)/4. Calibration: .9 twice, both
	// right; .5 wrong; .2 right: (2×.1 + .5 + .8)/4. Of all five hits each:
	// .9 .9 right, .1 wrong, .5 wrong, .4 right, .2 right.
	want := map[string]string{
		"n": "4", "ndcg@5": "56.1", "recall@1": "37.5", "recall@5": "62.5", "recall@10": "62.5", "mrr": "62.5",
		"ndcg@5_before_floor": "81.1", "recall@5_before_floor": "87.5", "oos_n": "2",
		"calibration_error": "0.375", "calibration_error_all": "0.367",
		"p50_us": "30.0", "p99_us": "60.0",
	}
	for key, value := range want {
		if f, _ := doc[key].(float64); !closeTo(f, value) {
			t.Errorf("%s = %v, want %s", key, doc[key], value)
		}
	}
	abstain, _ := json.Marshal(doc["abstain"])
	if string(abstain) != `{"floor":0.3,"in_scope_rate":25,"oos_rate":50}` {
		t.Errorf("abstain = %s", abstain)
	}
	tokens, _ := json.Marshal(doc["tokens"])
	if string(tokens) != `{"max":300,"median":100}` {
		t.Errorf("tokens = %s", tokens)
	}
	if len(r.Problems) != 1 || r.Problems[0].Code != "unknown-gold" || r.Problems[0].Subject != "gone" {
		t.Errorf("problems = %v, want the gold that is gone", r.Problems)
	}
	var missed []string
	for _, p := range r.Misses(2) {
		missed = append(missed, p.ID)
	}
	if !slices.Equal(missed, []string{"refused", "lured"}) {
		t.Errorf("Misses(2) = %v, want refused, lured", missed)
	}
}

// closeTo reports whether a number, written like want, reads like it.
func closeTo(got float64, want string) bool {
	_, digits, _ := strings.Cut(want, ".")
	return fmt.Sprintf("%.*f", len(digits), got) == want
}

func marshal(t *testing.T, v any) map[string]any {
	t.Helper()
	text := testkit.Must(json.Marshal(v))(t)
	var doc map[string]any
	testkit.OK(t, json.Unmarshal(text, &doc))
	return doc
}

// TestReportWithoutQueries: what cannot be said is null, and every key of the
// format is there.
func TestReportWithoutQueries(t *testing.T) {
	r := testkit.Must(Run(context.Background(), book(nil), nil, Options{}))(t)
	doc := marshal(t, r)
	for _, key := range []string{"ndcg@5", "recall@1", "recall@5", "recall@10", "mrr", "calibration_error", "p50_us", "p99_us", "index_ms", "rss_mb"} {
		if value, ok := doc[key]; !ok || value != nil {
			t.Errorf("%s = %v (there: %v), want null", key, value, ok)
		}
	}
	if doc["n"] != 0.0 || fmt.Sprint(doc["problems"]) != "[]" {
		t.Errorf("n = %v, problems = %v, want 0 and an empty list", doc["n"], doc["problems"])
	}
	var back Report
	text, _ := json.Marshal(r)
	if err := json.Unmarshal(text, &back); err != nil || back.NDCG5.Defined() {
		t.Errorf("read back: ndcg@5 %v, %v, want it undefined", back.NDCG5, err)
	}
}

// TestRunTakesTheBestTime: a query is asked once to judge and warm up, and then,
// five times by default, to measure.
func TestRunTakesTheBestTime(t *testing.T) {
	for runs, want := range map[int]int{3: 4, 0: 6} {
		asked := 0
		find := func(context.Context, Query) (Answer, error) {
			asked++
			return Answer{Took: time.Duration([]int{1, 9, 4, 7, 8, 8}[asked-1]) * time.Millisecond}, nil
		}
		if r, err := Run(context.Background(), find, []Query{{ID: "q"}}, Options{Runs: runs}); err != nil || asked != want || r.P50 != 4000 {
			t.Errorf("with %d runs: after %d questions p50 = %v, %v, want %d questions and 4000", runs, asked, r.P50, err, want)
		}
	}
}

func TestRunTellsUnstableAnswers(t *testing.T) {
	asked := 0
	find := func(context.Context, Query) (Answer, error) {
		asked++
		return Answer{Hits: []Ranked{{fmt.Sprint(asked), 1}}}, nil
	}
	r, err := Run(context.Background(), find, []Query{{ID: "q", Gold: []string{"1"}, File: "f", Line: 3}}, Options{})
	if err != nil || len(r.Problems) != 1 || r.Problems[0].Code != "unstable-answer" || r.Problems[0].Origin.Line != 3 {
		t.Fatalf("problems %v, %v, want one about the unstable answer of line 3", r.Problems, err)
	}
	if r.NDCG5 != 100 {
		t.Errorf("ndcg@5 = %v, want the first answer judged", r.NDCG5)
	}
}

func TestRunStopsAtAnError(t *testing.T) {
	broken := errors.New("no index")
	for failsAt := 1; failsAt <= 2; failsAt++ {
		asked := 0
		find := func(context.Context, Query) (Answer, error) {
			if asked++; asked == failsAt {
				return Answer{}, broken
			}
			return Answer{}, nil
		}
		if _, err := Run(context.Background(), find, []Query{{ID: "q7"}}, Options{}); !errors.Is(err, broken) || !strings.Contains(err.Error(), "q7") {
			t.Errorf("Run = %v, want the error and the query", err)
		}
	}
}

func TestMissingGoldIsReportedOnce(t *testing.T) {
	queries := []Query{
		{ID: "1", Gold: []string{"x", "y"}, File: "f", Line: 1},
		{ID: "2", Gold: []string{"x"}, File: "f", Line: 2},
	}
	got := missing(queries, func(id string) bool { return id == "y" })
	if len(got) != 1 || got[0].Origin.Line != 1 || !strings.Contains(got[0].Message, `"x" is not active in the catalog`) || !strings.Contains(got[0].Message, "2 of") {
		t.Errorf("missing = %v, want x once, at line 1, in 2 queries", got)
	}
	if got := missing(queries, nil); len(got) > 0 {
		t.Errorf("missing with no catalog to ask = %v, want none", got)
	}
}
