// Fit counts how common words are in the training sets, for the index.
//
//	go run ./internal/know/index/fit -train $KEN_BENCH/train -out internal/know/index/background.txt
//
// The same sets give the same file on every machine.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"

	"ken/internal/know/index"
)

func main() {
	train := flag.String("train", "", "`folder` of the training sets")
	out := flag.String("out", "", "`file` to write: a stem and its level a line")
	flag.Parse()
	text, err := count(*train)
	if err == nil {
		err = os.WriteFile(*out, text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fit:", err)
		os.Exit(1)
	}
}

// A row is a message of a training set, or what a service says of itself.
type row struct{ Summary, Description, Query string }

// count returns how common stems are in what people ask, and in what services
// say of themselves, each set alike.
func count(dir string) ([]byte, error) {
	share := map[string]float64{}
	sets := []string{
		"metatool/queries_train.jsonl", "clinc150/queries_train.jsonl", "banking77/queries_train.jsonl", "sealtools/queries.jsonl",
		"bfcl-bynames/queries.jsonl", "toollinkos/queries.jsonl", "apibank/queries.jsonl", "openapi/operations.jsonl",
	}
	for _, set := range sets {
		if err := countSet(share, filepath.Join(dir, filepath.FromSlash(set))); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	for _, s := range slices.SortedFunc(maps.Keys(share), cmp.Compare) {
		if v := share[s] / float64(len(sets)); v > 0.0006 {
			fmt.Fprintf(&b, "%s %d\n", s, int(math.Round(-2*math.Log(v))))
		}
	}
	return b.Bytes(), nil
}

// countSet adds which part of a set's rows has each stem.
func countSet(share map[string]float64, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	has, rows := map[string]float64{}, 0.0
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r row
		_ = json.Unmarshal(lines.Bytes(), &r) // keys that are shaped differently in one set are not needed of it
		text := r.Query
		if r.Summary != "" || r.Description != "" {
			text = r.Summary + ". " + r.Description[:min(len(r.Description), 300)]
		}
		for stem := range stemsOf(text) {
			has[stem]++
		}
		rows++
	}
	for stem, n := range has {
		if n >= 3 {
			share[stem] += n / rows
		}
	}
	return lines.Err()
}

func stemsOf(text string) map[string]bool {
	out := map[string]bool{}
	for _, w := range index.AppendTokens(nil, text) {
		if !w.Digits && !w.Pair && len(w.Text) >= 2 && !index.IsStop(w.Text, index.EnglishLanguage) {
			out[index.Stem(w.Text, index.EnglishLanguage)] = true
		}
	}
	return out
}
