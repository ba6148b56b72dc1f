package index

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ken/internal/testkit/indextest"
)

var fitBackground = flag.Bool("fitbackground", false, "count how common words are in the training sets and write background.txt")

// TestFitBackground makes background.txt out of bench/train. It is a tool kept
// beside what it makes; without -fitbackground it does nothing.
func TestFitBackground(t *testing.T) {
	if !*fitBackground {
		t.Skip("soak: counts the words of the training sets again; run with -fitbackground")
	}
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		t.Fatal("KEN_BENCH is not set: there is nothing to count")
	}
	if err := os.WriteFile("background.txt", countBackground(t, filepath.Join(dir, "train")), 0o644); err != nil {
		t.Fatal(err)
	}
}

// countBackground counts how common stems are in what people ask, and in what
// services say of themselves, each set alike.
func countBackground(t *testing.T, dir string) []byte {
	share, sources := map[string]float64{}, 0.0
	count := func(path string, text func(indextest.Row) string) {
		rows := indextest.ReadRows(t, filepath.Join(dir, path))
		has := map[string]float64{}
		for _, r := range rows {
			seen := map[string]bool{}
			for _, w := range AppendTokens(nil, text(r)) {
				if w.Digits || w.Pair || len(w.Text) < 2 || IsStop(w.Text, EnglishLanguage) {
					continue
				}
				seen[Stem(w.Text, EnglishLanguage)] = true
			}
			for s := range seen {
				has[s]++
			}
		}
		for s, n := range has {
			if n >= 3 {
				share[s] += n / float64(len(rows))
			}
		}
		sources++
	}
	for _, path := range []string{
		"metatool/queries_train.jsonl", "clinc150/queries_train.jsonl", "banking77/queries_train.jsonl", "sealtools/queries.jsonl",
		"bfcl-bynames/queries.jsonl", "toollinkos/queries.jsonl", "apibank/queries.jsonl",
	} {
		count(path, func(r indextest.Row) string { return r.Query })
	}
	count("openapi/operations.jsonl", func(r indextest.Row) string {
		return r.Summary + ". " + r.Description[:min(len(r.Description), 300)]
	})
	var b bytes.Buffer
	for _, s := range slices.SortedFunc(maps.Keys(share), cmp.Compare) {
		if v := share[s] / sources; v > 0.0006 {
			fmt.Fprintf(&b, "%s %d\n", s, int(math.Round(-2*math.Log(v))))
		}
	}
	return b.Bytes()
}
