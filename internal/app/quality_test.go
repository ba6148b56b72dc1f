package app

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ken/capability"
	"ken/internal/find/eval"
	"ken/internal/know/embed"
	"ken/internal/testkit"
)

// bothModels are settings with which measure waits for the second reader.
const bothModels = "discovery: {reader: auto}\n"

// measure answers the labelled queries of a set, as ken eval does. The second
// reader takes part only with the settings bothModels.
func measure(t testing.TB, settings, corpus string, queries ...string) (eval.Report, *App) {
	t.Helper()
	dir := corpora(t)
	a := alone(t, settings, Config{Catalogs: []string{filepath.Join(dir, corpus, "corpus.jsonl")}})
	if settings == bothModels {
		a.Vectors.Wait(t.Context())
	}
	report, err := eval.Run(t.Context(), a.Ranker(), readQueries(t, dir, corpus, queries...), eval.Options{Runs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return report, a
}

func readQueries(t testing.TB, dir, corpus string, names ...string) []eval.Query {
	t.Helper()
	var all []eval.Query
	for _, name := range names {
		f, err := os.Open(filepath.Join(dir, corpus, name))
		if err != nil {
			t.Fatal(err)
		}
		list, problems, err := eval.ReadQueries(f, name)
		f.Close()
		if err != nil || len(problems) > 0 {
			t.Fatal(err, problems)
		}
		all = append(all, list...)
	}
	return all
}

// active returns what can be found, for the anchor.
func active(a *App) []*capability.Capability {
	var out []*capability.Capability
	for _, e := range a.View().List().Capabilities {
		if e.State == "active" {
			out = append(out, e.Capability)
		}
	}
	return out
}

// wordsOnly is a configuration without an embedding model.
const wordsOnly = "discovery: {embeddingModelId: none}\n"

var devSets = []string{"dev/acebench-en", "dev/bfcl-multiturn", "dev/restbench"}

// anchor answers the queries of a set with another finder.
func anchor(t testing.TB, find eval.Finder, set string) eval.Report {
	t.Helper()
	r, err := eval.Run(t.Context(), find, readQueries(t, os.Getenv("KEN_BENCH"), set, "queries.jsonl"), eval.Options{Runs: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// modelAlone ranks by the embedding model and nothing else.
func modelAlone(corpus []*capability.Capability) eval.Finder {
	m := embed.Builtin()
	vectors := make([][]float32, len(corpus))
	for i, c := range corpus {
		d := embed.Document{Name: c.Name, Description: c.Description, Category: c.Category}
		for _, p := range c.Parameters {
			d.Parameters = append(d.Parameters, p.Name)
		}
		vectors[i] = m.AppendDocument(nil, d)
	}
	return func(_ context.Context, q eval.Query) (eval.Answer, error) {
		query := m.Append(nil, q.Text)
		var a eval.Answer
		for i, v := range vectors {
			sum := 0.0
			for k := range v {
				sum += float64(v[k]) * float64(query[k])
			}
			a.Hits = append(a.Hits, eval.Ranked{ID: string(corpus[i].ID), Score: sum})
		}
		slices.SortStableFunc(a.Hits, func(x, y eval.Ranked) int { return cmp.Compare(y.Score, x.Score) })
		a.Hits = a.Hits[:min(10, len(a.Hits))]
		return a, nil
	}
}

// TestLargeQualityOnDevSets holds finding to its bars on sets that nothing was
// fitted to: the mean over the sets, and on each plain BM25, finding by words
// alone and finding without relations. BenchmarkQuality has the other bars.
func TestLargeQualityOnDevSets(t *testing.T) {
	testkit.CI(t, "goes over whole corpora")
	mean := 0.0
	for _, set := range devSets {
		r, a := measure(t, "", set, "queries.jsonl")
		flat, _ := measure(t, "discovery: {useGraphReranking: false}\n", set, "queries.jsonl")
		plain := anchor(t, eval.PlainBM25(active(a)), set)
		t.Logf("%s: NDCG@5 %.2f, without relations %.2f, plain BM25 %.2f", set, r.NDCG5, flat.NDCG5, plain.NDCG5)
		if r.NDCG5 < plain.NDCG5 || r.NDCG5 < flat.NDCG5 {
			t.Errorf("%s: NDCG@5 = %.2f, want no less than plain BM25's %.2f, and %.2f without relations", set, r.NDCG5, plain.NDCG5, flat.NDCG5)
		}
		mean += float64(r.NDCG5) / float64(len(devSets))
	}
	if mean < 73 {
		t.Errorf("mean NDCG@5 = %.2f, want at least 73", mean)
	}
}

// TestLargeRelationsDoNotHurt compares the training sets with and without
// relations. The model was trained on them, so nothing can help it there; they are
// compared by words.
func TestLargeRelationsDoNotHurt(t *testing.T) {
	testkit.CI(t, "goes over whole corpora")
	for _, set := range []string{"toollinkos", "apibank", "banking77", "bfcl-bynames", "clinc150", "metatool", "sealtools"} {
		with, _ := measure(t, wordsOnly, "train/"+set, "queries.jsonl")
		without, _ := measure(t, "discovery: {embeddingModelId: none, useGraphReranking: false}\n", "train/"+set, "queries.jsonl")
		if with.NDCG5 < without.NDCG5 {
			t.Errorf("%s: NDCG@5 with relations = %.3f, want no less than without, %.3f", set, with.NDCG5, without.NDCG5)
		}
	}
}

// tokensShown answers the dev messages over the large catalog.
func tokensShown(t testing.TB, profile string) (median, most int) {
	t.Helper()
	dir := corpora(t)
	find := alone(t, "discovery: {profile: "+profile+"}\n", Config{Catalogs: []string{filepath.Join(dir, "catalog", "npm-mcp", "corpus.jsonl")}}).Ranker()
	var tokens []int
	for _, set := range devSets {
		for _, q := range readQueries(t, dir, set, "queries.jsonl") {
			answer, err := find(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			tokens = append(tokens, answer.Tokens)
		}
	}
	slices.Sort(tokens)
	return tokens[len(tokens)/2], tokens[len(tokens)-1]
}
