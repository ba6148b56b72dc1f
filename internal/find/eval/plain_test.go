package eval

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/testkit"
	"ken/internal/testkit/indextest"
)

func TestPlainBM25Words(t *testing.T) {
	p := &plain{stop: map[string]bool{"the": true, "to": true}}
	tests := []struct {
		text string
		want []string
	}{
		{"", nil},
		{"the to", nil},
		{"getHTTPPage", []string{"get", "http", "page"}},
		{"list_all-Files.v2", []string{"list", "all", "file", "v2"}},
		{"GET /movie/{movie_id}", []string{"get", "movi", "movi", "id"}},
		{"queries planned cities running", []string{"queri", "plan", "citi", "run"}},
		{"boxes matches address status calling", []string{"box", "match", "address", "status", "call"}},
		{"updates updated updating update", []string{"updat", "updat", "updat", "updat"}},
		{"Größe 東京", []string{"größe", "東京"}},
		{"\xff", nil},
	}
	for _, tt := range tests {
		if got := p.words(nil, tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("words(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}

func TestPlainBM25Scores(t *testing.T) {
	find := PlainBM25([]*capability.Capability{
		{ID: "b", Name: "mail", Description: "Send a letter"},
		{ID: "a", Name: "post", Description: "Send a letter"},
		{ID: "c", Name: "clock", Parameters: []capability.Parameter{{Name: "timeZone"}}, Category: "time"},
	})
	ask := func(text string) Answer {
		t.Helper()
		a := testkit.Must(find(context.Background(), Query{Text: text}))(t)
		return a
	}
	a := ask("send letters")
	if len(a.Hits) != 2 || a.Hits[0].ID != "b" || a.Hits[1].ID != "a" || a.Hits[0].Score != a.Hits[1].Score {
		t.Errorf("equal hits = %v, want b, then a, as in the corpus", a.Hits)
	}
	// By hand: clock clock time zone time has 5 words, the mean is 13/3. Time
	// stands there twice and in no other of the three.
	want := math.Log(1+2.5/1.5) * 2 * 2.2 / (2 + 1.2*(0.25+0.75*5/(13.0/3)))
	a = ask("the time")
	if len(a.Hits) != 1 || a.Hits[0].ID != "c" || math.Abs(a.Hits[0].Score-want) > 1e-12 {
		t.Errorf("hits for time = %v, want c with %v", a.Hits, want)
	}
	if a := ask("what time is it, time after time"); math.Abs(a.Hits[0].Score-2*want) > 1e-12 {
		t.Errorf("a word said three times scores %v, want twice %v", a.Hits[0].Score, want)
	}
	if a := ask("nothing of that"); !a.Abstained || len(a.Hits) > 0 {
		t.Errorf("no word matches: %+v, want abstained", a)
	}
	if a, err := PlainBM25(nil)(context.Background(), Query{Text: "x"}); err != nil || !a.Abstained {
		t.Errorf("empty corpus: %+v, %v, want abstained", a, err)
	}
}

// TestLargeK010PlainBM25Anchor holds the measures and the plain finder to the value
// that the bars were set by: macro NDCG@5 68.2 over the three dev sets.
func TestLargeK010PlainBM25Anchor(t *testing.T) {
	testkit.CI(t, "whole sets")
	macro := 0.0
	for _, set := range []string{"acebench-en", "bfcl-multiturn", "restbench"} {
		r := runPlain(t, indextest.Measured(t, "dev", set), "queries.jsonl")
		t.Logf("dev/%-15s n %5d  ndcg@5 %.2f  recall@1 %.2f  @5 %.2f  @10 %.2f  mrr %.2f", set, r.N, r.NDCG5, r.Recall1, r.Recall5, r.Recall10, r.MRR)
		macro += float64(r.NDCG5) / 3
	}
	t.Logf("macro %.2f", macro)
	if math.Abs(macro-68.2) > 0.3 {
		t.Errorf("macro NDCG@5 of plain BM25 = %.2f, want 68.2 ± 0.3", macro)
	}
}

func runPlain(t *testing.T, dir, file string) Report {
	t.Helper()
	var corpus []*capability.Capability
	known := map[string]bool{}
	for _, r := range indextest.ReadRows(t, filepath.Join(dir, "corpus.jsonl")) {
		corpus = append(corpus, r.Capability(r.ID))
		known[r.ID] = true
	}
	f := testkit.Must(os.Open(filepath.Join(dir, file)))(t)
	defer f.Close()
	queries, problems, err := ReadQueries(f, file)
	if err != nil || len(problems) > 0 {
		t.Fatalf("ReadQueries(%s): %v, %v", file, problems, err)
	}
	r, err := Run(context.Background(), PlainBM25(corpus), queries, Options{Runs: 1, Known: func(id string) bool { return known[id] }})
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("Run(%s): %v, %v", file, r.Problems, err)
	}
	return r
}
