package graph

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/know/source"
)

// The measurements here use a plain BM25 of their own, so that they say what
// the graph does and not what the index does.

// A labelled set is a catalog, queries with the right answers, and what BM25
// finds for them.
type labelled struct {
	entries []*catalog.Entry
	graph   *Graph
	gold    []map[int]bool
	hits    [][]Scored
}

func loadSet(t *testing.T, set, queries string) *labelled {
	t.Helper()
	dir := os.Getenv("KEN_BENCH")
	if dir == "" {
		t.Skip("KEN_BENCH is not set: it names the folder with the benchmark catalogs")
	}
	dir = filepath.Join(dir, filepath.FromSlash(set))
	tree := source.NewTree(source.TreeConfig{Path: filepath.Join(dir, "corpus.jsonl"), Trust: capability.TrustUser})
	defer tree.Close()
	c, err := catalog.New(catalog.Config{Sources: []capability.Source{tree}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s := &labelled{entries: c.Snapshot().Entries()}
	s.graph = Build(s.entries, c.Snapshot().Presets())
	ordinal := map[string]int{}
	for i, e := range s.entries {
		ordinal[string(e.ID)] = i
	}
	words := indexWords(s.entries)
	f, err := os.Open(filepath.Join(dir, queries))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var row struct {
			Query string
			Gold  []string
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		gold := map[int]bool{}
		for _, id := range row.Gold {
			if i, ok := ordinal[id]; ok {
				gold[i] = true
			}
		}
		s.gold = append(s.gold, gold)
		s.hits = append(s.hits, words.search(row.Query, 50))
	}
	if len(s.gold) == 0 {
		t.Fatalf("%s/%s has no queries", set, queries)
	}
	return s
}

// mean averages, over all queries, what measure makes of a list of results.
func (s *labelled) mean(cfg Config, list func([]Ranked) []int, measure func(list []int, gold map[int]bool) float64) float64 {
	sum := 0.0
	for i, hits := range s.hits {
		sum += measure(list(s.graph.Rerank(hits, cfg, all)), s.gold[i])
	}
	return 100 * sum / float64(len(s.hits))
}

func ndcg5(list []int, gold map[int]bool) float64 {
	sum, best := 0.0, 0.0
	for i := range 5 {
		gain := 1 / math.Log2(float64(i+2))
		if i < len(list) && gold[list[i]] {
			sum += gain
		}
		if i < len(gold) {
			best += gain
		}
	}
	if best == 0 {
		return 0
	}
	return sum / best
}

func recall10(list []int, gold map[int]bool) float64 {
	n := 0
	for _, i := range list[:min(len(list), 10)] {
		if gold[i] {
			n++
		}
	}
	return float64(n) / float64(max(1, len(gold)))
}

func interleaved(r []Ranked) []int { return interleave(r, 10) }

// TestRecallOfDependencies: of all that a query needs, how much is among the
// first ten when what is attached follows its hit.
func TestRecallOfDependencies(t *testing.T) {
	s := loadSet(t, "train/toollinkos", "queries_all_deps.jsonl")
	off := s.mean(Config{}, ordinals, recall10)
	got := s.mean(Default(), interleaved, recall10)
	t.Logf("recall@10 of all dependencies: words alone %.1f, attached %.1f", off, got)
	if got < 60 || got < 2*off {
		t.Errorf("recall@10 = %.1f, want at least 60 and twice the %.1f of words alone", got, off)
	}
	if testing.Short() || !testing.Verbose() {
		return
	}
	main := loadSet(t, "train/toollinkos", "queries.jsonl")
	for _, top := range []int{5, 10, 50} {
		for _, hops := range []int{1, 2, 3} {
			var row []string
			for _, n := range []int{1, 3, 5, 8, 16} {
				cfg := Config{Use: true, Boost: 0.15, Top: top, MaxHops: hops, MaxAttached: n}
				row = append(row, fmt.Sprintf("%d: %.1f (%.1f)", n, s.mean(cfg, interleaved, recall10), main.mean(cfg, interleaved, ndcg5)))
			}
			t.Logf("Top %2d, MaxHops %d, MaxAttached n: recall@10 (NDCG@5 of the main one, interleaved)  %s", top, hops, strings.Join(row, "  "))
		}
	}
}

// TestNDCGIsNotWorse: on every labelled set, the order of hits with the graph is
// at least as good as without, whatever the scale of the scores (K2.04).
func TestNDCGIsNotWorse(t *testing.T) {
	sets := []string{"train/toollinkos", "dev/restbench"} // the ones with relations, or many ties
	if !testing.Short() {
		sets = append(sets, "train/sealtools", "train/apibank", "train/metatool", "train/bfcl-bynames", "train/clinc150", "train/banking77",
			"dev/acebench-en", "dev/bfcl-multiturn")
	}
	for _, set := range sets {
		t.Run(set, func(t *testing.T) {
			s := loadSet(t, set, "queries.jsonl")
			literal := Default()
			literal.Literal = true
			off := s.mean(Config{}, ordinals, ndcg5)
			t.Logf("NDCG@5: without %.2f, literal %.2f", off, s.mean(literal, ordinals, ndcg5))
			words := s.hits
			for _, scale := range scales() {
				s.hits = rescaled(words, scale.of)
				if got := s.mean(Default(), ordinals, ndcg5); got < off {
					t.Errorf("scale %s: NDCG@5 = %.3f, want at least the %.3f without the graph", scale.name, got, off)
				} else {
					t.Logf("scale %s: NDCG@5 %.2f", scale.name, got)
				}
			}
		})
	}
}

type scale struct {
	name string
	of   func(float64) float64
}

// scales are ways in which an index could turn the same order into
// probabilities.
func scales() []scale {
	sigmoid := func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	return []scale{
		{"share", func(s float64) float64 { return s }},
		{"root", math.Sqrt},
		{"logistic", func(s float64) float64 { return sigmoid(12 * (s - 0.35)) }},
		{"steep", func(s float64) float64 { return sigmoid(30 * (s - 0.35)) }},
	}
}

func rescaled(hits [][]Scored, of func(float64) float64) [][]Scored {
	out := make([][]Scored, len(hits))
	for i, list := range hits {
		for _, h := range list {
			out[i] = append(out[i], Scored{h.Ordinal, of(h.Score)})
		}
	}
	return out
}

// A wordIndex is BM25 over names, descriptions and parameters.
type wordIndex struct {
	length []float64
	mean   float64
	in     map[string]map[int]float64
}

func indexWords(entries []*catalog.Entry) *wordIndex {
	ix := &wordIndex{in: map[string]map[int]float64{}}
	for i, e := range entries {
		text := []string{e.Name, e.Description}
		for _, p := range e.Parameters {
			text = append(text, p.Name, p.Description)
		}
		list := wordsOf(strings.Join(text, " "))
		for _, w := range list {
			if ix.in[w] == nil {
				ix.in[w] = map[int]float64{}
			}
			ix.in[w][i]++
		}
		ix.length = append(ix.length, float64(len(list)))
		ix.mean += float64(len(list)) / float64(len(entries))
	}
	return ix
}

func wordsOf(s string) []string {
	var b strings.Builder
	before := ' '
	for _, r := range s {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		before = r
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// search scores by the share of the query's weight that an entry has.
func (ix *wordIndex) search(query string, k int) []Scored {
	words := wordsOf(query)
	slices.Sort(words)
	score, most := map[int]float64{}, 0.0
	for _, w := range slices.Compact(words) {
		df, n := float64(len(ix.in[w])), float64(len(ix.length))
		idf := math.Log(1 + (n-df+0.5)/(df+0.5))
		most += idf * 2.2
		for i, f := range ix.in[w] {
			score[i] += idf * f * 2.2 / (f + 1.2*(0.25+0.75*ix.length[i]/ix.mean))
		}
	}
	var hits []Scored
	for i, s := range score {
		hits = append(hits, Scored{i, s / most})
	}
	slices.SortFunc(hits, func(a, b Scored) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	return hits[:min(len(hits), k)]
}

// interleave makes one list of results: each hit, after it what is attached to
// it, nothing twice, at most limit of them.
func interleave(ranked []Ranked, limit int) []int {
	out := make([]int, 0, max(0, min(limit, 2*len(ranked))))
	add := func(ordinal int) {
		if len(out) < limit && !slices.Contains(out, ordinal) {
			out = append(out, ordinal)
		}
	}
	for _, r := range ranked {
		if len(out) >= limit {
			break
		}
		add(r.Ordinal)
		for _, a := range r.Attached {
			add(a.Ordinal)
		}
	}
	return out
}
