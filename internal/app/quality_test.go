package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/find/eval"
	"ken/internal/know/embed"
)

// bothModels are settings with which measure waits for the second reader.
const bothModels = "discovery: {reader: auto}\n"

// measure answers the labelled queries of a set, as ken eval does. The second
// reader takes part only with the settings bothModels.
func measure(t testing.TB, settings, corpus string, queries ...string) (eval.Report, *App) {
	t.Helper()
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		t.Skip("KEN_BENCH is not set: the labelled sets are not here")
	}
	home := t.TempDir()
	cfg := Config{
		Catalogs: []string{filepath.Join(dir, corpus, "corpus.jsonl")}, Dir: home,
		Getenv: func(name string) string { return map[string]string{"KEN_HOME": home}[name] },
	}
	if settings != "" {
		cfg.ConfigFile = filepath.Join(home, "settings.yaml")
		if err := os.WriteFile(cfg.ConfigFile, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
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

// TestWordsAloneOnDevSets holds finding without the model to the bar it had
// before there was one.
func TestWordsAloneOnDevSets(t *testing.T) {
	mean := 0.0
	for _, set := range devSets {
		r, a := measure(t, wordsOnly, set, "queries.jsonl")
		if plain := anchor(t, eval.PlainBM25(active(a)), set); r.NDCG5 < plain.NDCG5 {
			t.Errorf("%s: NDCG@5 = %.2f, want no less than plain BM25's %.2f", set, r.NDCG5, plain.NDCG5)
		}
		mean += float64(r.NDCG5) / float64(len(devSets))
	}
	t.Logf("mean NDCG@5 %.2f", mean)
	if mean < 70 {
		t.Errorf("mean NDCG@5 = %.2f, want at least 70", mean)
	}
}

// TestModelAloneOnDevSets holds the model by itself to its bar.
func TestModelAloneOnDevSets(t *testing.T) {
	mean := 0.0
	for _, set := range devSets {
		_, a := measure(t, "", set, "queries.jsonl")
		r := anchor(t, modelAlone(active(a)), set)
		t.Logf("%s: NDCG@5 %.2f", set, r.NDCG5)
		mean += float64(r.NDCG5) / float64(len(devSets))
	}
	t.Logf("mean NDCG@5 %.2f", mean)
	if mean < 67.5 {
		t.Errorf("mean NDCG@5 = %.2f, want at least 67.5", mean)
	}
}

// TestT02QualityOnDevSets holds finding to its bars on sets that nothing was
// fitted to: the mean over the sets, and plain BM25 on each.
func TestT02QualityOnDevSets(t *testing.T) {
	var mean, wrong float64
	empty, asked := 0.0, 0.0
	for _, set := range devSets {
		r, a := measure(t, "", set, "queries.jsonl")
		plain := anchor(t, eval.PlainBM25(active(a)), set)
		t.Logf("%s: NDCG@5 %.2f, plain BM25 %.2f, recall@5 %.2f, calibration error %.3f, left empty %.2f%%",
			set, r.NDCG5, plain.NDCG5, r.Recall5, r.CalibrationError, r.Abstain.InScope)
		if r.NDCG5 < plain.NDCG5 {
			t.Errorf("%s: NDCG@5 = %.2f, want no less than plain BM25's %.2f", set, r.NDCG5, plain.NDCG5)
		}
		mean += float64(r.NDCG5) / float64(len(devSets))
		wrong += float64(r.CalibrationError) / float64(len(devSets))
		empty += float64(r.Abstain.InScope) / 100 * float64(r.N)
		asked += float64(r.N)
	}
	t.Logf("mean NDCG@5 %.2f, mean calibration error %.3f, left empty %.2f%%", mean, wrong, 100*empty/asked)
	if mean < 73 {
		t.Errorf("mean NDCG@5 = %.2f, want at least 73", mean)
	}
	if wrong > 0.10 {
		t.Errorf("mean calibration error = %.3f, want at most 0.10", wrong)
	}
	if share := 100 * empty / asked; share > 3 {
		t.Errorf("%.2f%% of answerable queries are left empty, want at most 3%%", share)
	}
}

// TestAbstention holds the floor to its bar: questions that nothing answers stay
// unanswered, and hardly any others do.
func TestAbstention(t *testing.T) {
	r, _ := measure(t, "", "train/clinc150", "queries.jsonl", "oos.jsonl")
	lost := float64(r.Recall5BeforeFloor - r.Recall5)
	t.Logf("out of scope left unanswered: %.2f%%; recall@5 %.2f, without the floor %.2f", r.Abstain.OutOfScope, r.Recall5, r.Recall5BeforeFloor)
	if r.Abstain.OutOfScope < 65 {
		t.Errorf("%.2f%% of the questions out of scope are left unanswered, want at least 65%%", r.Abstain.OutOfScope)
	}
	if r.Recall5 < 80 {
		t.Errorf("recall@5 with the floor = %.2f, want at least 80", r.Recall5)
	}
	if lost > 3 {
		t.Errorf("the floor costs %.2f points of recall@5, want at most 3", lost)
	}
}

// TestT05DependenciesAreFound holds attaching dependencies to its bar.
func TestT05DependenciesAreFound(t *testing.T) {
	r, _ := measure(t, "", "train/toollinkos", "queries_all_deps.jsonl")
	t.Logf("recall@10 with all dependencies: %.2f", r.Recall10)
	if r.Recall10 < 60 {
		t.Errorf("recall@10 = %.2f, want at least 60", r.Recall10)
	}
}

// TestRelationsDoNotHurt compares every set with and without relations. The
// model was trained on the training sets, so nothing can help it there; they
// are compared by words.
func TestRelationsDoNotHurt(t *testing.T) {
	sets := []string{"dev/acebench-en", "dev/bfcl-multiturn", "dev/restbench", "train/toollinkos"}
	if !testing.Short() {
		sets = append(sets, "train/apibank", "train/banking77", "train/bfcl-bynames", "train/clinc150", "train/metatool", "train/sealtools")
	}
	for set := range slices.Values(sets) {
		model := ""
		if strings.HasPrefix(set, "train/") {
			model = "none"
		}
		with, _ := measure(t, fmt.Sprintf("discovery: {embeddingModelId: %q}\n", model), set, "queries.jsonl")
		without, _ := measure(t, fmt.Sprintf("discovery: {embeddingModelId: %q, useGraphReranking: false}\n", model), set, "queries.jsonl")
		t.Logf("%s: NDCG@5 with relations %.3f, without %.3f", set, with.NDCG5, without.NDCG5)
		if with.NDCG5 < without.NDCG5 {
			t.Errorf("%s: NDCG@5 with relations = %.3f, want no less than without, %.3f", set, with.NDCG5, without.NDCG5)
		}
	}
}

// TestTokensShown holds what is shown to its bars, for the catalog inside the
// program and for a large real one.
func TestTokensShown(t *testing.T) {
	for _, catalog := range []string{"", "npm-mcp"} {
		for profile, limits := range map[string]struct{ median, most int }{"standard": {1850, 3000}, "lean": {1850, 1850}} {
			median, most := tokensShown(t, profile, catalog)
			t.Logf("catalog %q, profile %s: median %d tokens, most %d", catalog, profile, median, most)
			if median > limits.median || most > limits.most {
				t.Errorf("catalog %q, profile %s: median %d and most %d tokens, want at most %d and %d", catalog, profile, median, most, limits.median, limits.most)
			}
		}
	}
}

// tokensShown answers the dev messages over a catalog of the measured ones, or
// over the one inside the program.
func tokensShown(t testing.TB, profile, catalog string) (median, most int) {
	t.Helper()
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		t.Skip("KEN_BENCH is not set: the labelled sets are not here")
	}
	home := t.TempDir()
	cfg := Config{
		Dir: home, ConfigFile: filepath.Join(home, "settings.yaml"),
		Getenv: func(name string) string { return map[string]string{"KEN_HOME": home}[name] },
	}
	if catalog != "" {
		cfg.Catalogs = []string{filepath.Join(dir, "catalog", catalog, "corpus.jsonl")}
	}
	if err := os.WriteFile(cfg.ConfigFile, []byte("discovery: {profile: "+profile+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var queries []eval.Query
	for _, set := range []string{"dev/acebench-en", "dev/bfcl-multiturn", "dev/restbench"} {
		queries = append(queries, readQueries(t, dir, set, "queries.jsonl")...)
	}
	return tokensOf(t, a, queries)
}

func tokensOf(t testing.TB, a *App, queries []eval.Query) (median, most int) {
	t.Helper()
	find := a.Ranker()
	var tokens []int
	for _, q := range queries {
		answer, err := find(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, answer.Tokens)
	}
	slices.Sort(tokens)
	return tokens[len(tokens)/2], tokens[len(tokens)-1]
}
