package app

import (
	"context"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ken/internal/find/eval"
	second "ken/internal/know/reader"
	"ken/internal/talk/event"
	"ken/internal/talk/session"
	"ken/llm"
)

// BenchmarkQualityRead reports the bars of finding with the second reader, as by
// default.
func BenchmarkQualityRead(b *testing.B) {
	if !second.Supported() {
		b.Skip("cannot here: there are no kernels for this processor")
	}
	for b.Loop() {
		var mean, recall, wrong, empty, asked float64
		overWords := 100.0
		for _, set := range devSets {
			r, _ := measure(b, bothModels, set, "queries.jsonl")
			w, _ := measure(b, wordsOnly, set, "queries.jsonl")
			overWords = min(overWords, float64(r.NDCG5-w.NDCG5))
			mean += float64(r.NDCG5) / 3
			recall += float64(r.Recall5) / 3
			wrong += float64(r.CalibrationError) / 3
			empty += float64(r.Abstain.InScope) * float64(r.N)
			asked += float64(r.N)
			b.Logf("%s: NDCG@5 %.2f, %+.2f over words", set, r.NDCG5, r.NDCG5-w.NDCG5)
		}
		b.ReportMetric(mean, "dev-ndcg@5")
		b.ReportMetric(recall, "dev-recall@5")
		b.ReportMetric(overWords, "least-over-words")
		b.ReportMetric(wrong, "calibration-error")
		b.ReportMetric(empty/asked, "left-empty-%")
		r, _ := measure(b, bothModels, "train/clinc150", "queries.jsonl", "oos.jsonl")
		b.ReportMetric(float64(r.Abstain.OutOfScope), "oos-%")
	}
}

// BenchmarkQuality reports the bars of finding with the small model on the dev sets, and of the floor and of dependencies on the training sets made for them.
func BenchmarkQuality(b *testing.B) {
	for b.Loop() {
		var mean, words, model, wrong, empty, asked float64
		least, overWords := 100.0, 100.0
		for _, set := range devSets {
			r, a := measure(b, "", set, "queries.jsonl")
			w, _ := measure(b, wordsOnly, set, "queries.jsonl")
			least = min(least, float64(r.NDCG5-anchor(b, eval.PlainBM25(active(a)), set).NDCG5))
			overWords = min(overWords, float64(r.NDCG5-w.NDCG5))
			words += float64(w.NDCG5) / 3
			model += float64(anchor(b, modelAlone(active(a)), set).NDCG5) / 3
			mean += float64(r.NDCG5) / 3
			wrong += float64(r.CalibrationError) / 3
			empty += float64(r.Abstain.InScope) * float64(r.N)
			asked += float64(r.N)
		}
		b.ReportMetric(mean, "dev-ndcg@5")
		b.ReportMetric(words, "dev-ndcg@5-words")
		b.ReportMetric(model, "dev-ndcg@5-model")
		b.ReportMetric(overWords, "least-over-words")
		b.ReportMetric(least, "least-over-bm25")
		b.ReportMetric(wrong, "calibration-error")
		b.ReportMetric(empty/asked, "left-empty-%")

		r, _ := measure(b, "", "train/clinc150", "queries.jsonl", "oos.jsonl")
		b.ReportMetric(float64(r.Abstain.OutOfScope), "oos-%")
		b.ReportMetric(float64(r.Recall5BeforeFloor-r.Recall5), "floor-costs-recall@5")
		r, _ = measure(b, "discovery: {tier1MinRelevance: 0.5}\n", "train/clinc150", "queries.jsonl", "oos.jsonl")
		b.ReportMetric(float64(r.Abstain.OutOfScope), "oos-%-floor-0.5")
		b.ReportMetric(float64(r.Recall5), "recall@5-floor-0.5")
		r, _ = measure(b, "", "train/toollinkos", "queries_all_deps.jsonl")
		b.ReportMetric(float64(r.Recall10), "alldeps-recall@10")
	}
}

// BenchmarkTokens reports what is shown of the large catalog for the dev
// messages.
func BenchmarkTokens(b *testing.B) {
	for b.Loop() {
		median, most := tokensShown(b, "standard")
		_, lean := tokensShown(b, "lean")
		b.ReportMetric(float64(median), "median-tokens")
		b.ReportMetric(float64(most), "most-tokens")
		b.ReportMetric(float64(lean), "lean-most-tokens")
	}
}

// buildKen builds the program and says where it is.
func buildKen(b *testing.B, flags ...string) string {
	program := filepath.Join(b.TempDir(), "ken")
	if out, err := exec.Command("go", slices.Concat([]string{"build"}, flags, []string{"-o", program, "ken/cmd/ken"})...).CombinedOutput(); err != nil {
		b.Fatalf("build ken: %v\n%s", err, out)
	}
	return program
}

// BenchmarkBinary reports how large the program is without symbols, both models
// in it.
func BenchmarkBinary(b *testing.B) {
	for b.Loop() {
		info, err := os.Stat(buildKen(b, "-trimpath", "-ldflags=-s -w"))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(info.Size())/1e6, "MB")
	}
}

// BenchmarkStart runs a command that asks nothing of the catalog, a new process
// each time: what every command pays before its own work.
func BenchmarkStart(b *testing.B) {
	program, home := buildKen(b), b.TempDir()
	run := func() time.Duration {
		cmd := exec.Command(program, "secret", "list")
		cmd.Env, cmd.Dir = append(os.Environ(), "KEN_HOME="+home), home
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("ken secret list: %v\n%s", err, out)
		}
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	run() // makes what a first start leaves behind
	least := time.Hour
	for b.Loop() {
		least = min(least, run())
	}
	b.ReportMetric(float64(least.Microseconds())/1e3, "cpu-ms/op")
}

// BenchmarkColdDiscover runs the program over the large catalog, a new process
// each time, with the caches that an earlier run left.
func BenchmarkColdDiscover(b *testing.B) {
	dir, work := corpora(b), b.TempDir()
	program := buildKen(b)
	run := func() time.Duration {
		cmd := exec.Command(program, "--catalog", filepath.Join(dir, "catalog", "npm-mcp", "corpus.jsonl"), "discover", "--json", "open an issue about the login page")
		cmd.Env = append(os.Environ(), "KEN_HOME="+work)
		start := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("ken discover: %v\n%s", err, out)
		}
		return time.Since(start)
	}
	run() // fills the caches
	least := time.Hour
	for b.Loop() {
		least = min(least, run())
	}
	b.ReportMetric(float64(least.Microseconds())/1e3, "wall-ms/op")
}

// instant is a model that takes no time.
type instant struct{}

func (instant) Generate(context.Context, llm.Request) iter.Seq2[llm.Chunk, error] {
	return func(yield func(llm.Chunk, error) bool) {
		if yield(llm.Chunk{Text: "Hello."}, nil) && yield(llm.Chunk{Block: &llm.Block{Text: "Hello."}}, nil) {
			yield(llm.Chunk{Stop: llm.StopEnd, Usage: &llm.Usage{Input: 1, Output: 1}}, nil)
		}
	}
}

// BenchmarkChat is a turn of the whole program over the large catalog with a
// model that takes no time: one of a session that goes on, and the first.
func BenchmarkChat(b *testing.B) {
	a := alone(b, "", Config{Catalogs: []string{filepath.Join(corpora(b), "catalog", "npm-mcp", "corpus.jsonl")}, Model: instant{}})
	e, err := a.Engine()
	if err != nil {
		b.Fatal(err)
	}
	sessions, err := a.Sessions()
	if err != nil {
		b.Fatal(err)
	}
	begin := func() string {
		head, err := sessions.Begin(b.Context(), session.Head{Principal: a.Principal.ID, Folder: a.Places.Workspace})
		if err != nil {
			b.Fatal(err)
		}
		return head.ID
	}
	words := []string{"open an issue about the login page", "what is the weather in Rome", "send a message to the team", "query the database for late orders"}
	turn := func(id string, n int) {
		for _, err := range e.Turn(b.Context(), event.Input{Principal: a.Principal, Session: id, Text: words[n%len(words)], Alone: true}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name string
		each int // turns of a session
	}{{"first", 1}, {"next", 20}} {
		b.Run(c.name, func(b *testing.B) {
			id, n := begin(), 0
			turn(id, n)
			for b.Loop() {
				if n++; n%c.each == 0 {
					b.StopTimer()
					id = begin()
					b.StartTimer()
				}
				turn(id, n)
			}
		})
	}
}
