package ranking

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/embed"
	"ken/internal/know/index"
	"ken/internal/testkit/indextest"
)

var (
	fit      = flag.Bool("fit", false, "fit the weights to the training sets and write weights.go")
	students = flag.String("students", "", "`folder` of the models fold0.bin to fold3.bin, each trained without the sets of its fold")
	readers  = flag.String("readers", "", "`folder` of vectors-fold0.i8 to vectors-fold3.i8 and vectors-full.i8, which training/reader.py writes")
)

// folds are the sets that a student was trained without, as training/data.py
// has them. What orders capabilities is fitted to the nearness by these, never
// to that by the student that saw the set: it would be trusted too far. What
// says whether anything fits is fitted to both, as both are met in use.
var folds = [][]string{{"metatool", "apibank"}, {"clinc150", "banking77"}, {"toollinkos", "bfcl-bynames"}, {"sealtools"}}

func studentOf(t *testing.T, set string, seen bool) *embed.Model {
	fold := slices.IndexFunc(folds, func(sets []string) bool { return slices.Contains(sets, set) })
	name := fmt.Sprintf("fold%d.bin", fold)
	if fold < 0 || seen {
		name = "full.bin"
	}
	data, err := os.ReadFile(filepath.Join(*students, name))
	if err != nil {
		t.Fatal(err)
	}
	m, err := embed.Load(string(data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestFit makes weights.go out of bench/train. It is a tool kept beside what it
// makes; without -fit it does nothing. TestFitBackground of package index comes
// before it: the weights are fitted to what that counts.
func TestFit(t *testing.T) {
	if !*fit {
		t.Skip("soak: fits the weights anew; run with -fit -students")
	}
	dir := trainingSets(t)
	outOfScope := indextest.ReadRows(t, filepath.Join(dir, "clinc150", "oos.jsonl"))

	var b bytes.Buffer
	fmt.Fprintf(&b, "package ranking\n\n// Made by go test -run TestFit -fit from the training sets; see fit_test.go.\nvar (\n")
	for _, kind := range []struct {
		name string
		into *weights
		by   student
	}{{"wordsAlone", &wordsAlone, nobody}, {"withVectors", &withVectors, unseen}, {"withEmbedder", &withEmbedder, unseenTwice}} {
		sets := readSets(t, dir, trainSets, kind.by)
		kind.into.rank = fitRank(sets)
		switch kind.by {
		case unseen:
			sets = append(sets, readSets(t, dir, trainSets, seen)...)
		case unseenTwice:
			sets = append(sets, readSets(t, dir, trainSets, seenTwice)...)
		}
		fitTrust(sets, outOfScope, kind.into)
		fmt.Fprintf(&b, "%s = weights{\n", kind.name)
		fmt.Fprintf(&b, "rank: [features]float32{\n%s},\n", list(namesBefore(t, "features"), kind.into.rank[:]))
		fmt.Fprintf(&b, "gate: [gates]float64{\n%s},\n", list(namesBefore(t, "gates"), kind.into.gate[:]))
		fmt.Fprintf(&b, "chance: [chances]float64{\n%s},\n}\n", list(namesBefore(t, "chances"), kind.into.chance[:]))
	}
	fmt.Fprintf(&b, ")\n")
	source, err := format.Source(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	write(t, "weights.go", source)
}

// trainSets are the sets of bench/train that have messages and answers.
var trainSets = []string{"apibank", "banking77", "bfcl-bynames", "clinc150", "metatool", "sealtools", "toollinkos"}

func trainingSets(t *testing.T) string {
	dir := os.Getenv("KEN_BENCH")
	switch {
	case dir == "":
		t.Fatal("KEN_BENCH is not set: there is nothing to fit to")
	case *readers == "":
		t.Fatal("-readers is missing: name the folder of vectors-fold0.i8 to vectors-fold3.i8 and vectors-full.i8; training/README.md says how they are made")
	case *students == "":
		t.Fatal("-students is missing: name the folder of fold0.bin to fold3.bin and full.bin; training/README.md says how they are made")
	}
	return filepath.Join(dir, "train")
}

// list writes weights with their names.
func list[T float32 | float64](names []string, weights []T) string {
	var b strings.Builder
	for i, w := range weights {
		fmt.Fprintf(&b, "%s: %.3g,\n", names[i], w)
	}
	return b.String()
}

// namesBefore returns the constants of this package that are numbered up to the
// one that counts them.
func namesBefore(t *testing.T, count string) []string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			var names []string
			for _, spec := range group.Specs {
				names = append(names, spec.(*ast.ValueSpec).Names[0].Name)
			}
			if last := len(names) - 1; names[last] == count {
				return names[:last]
			}
		}
	}
	t.Fatalf("no constants are counted by %s", count)
	return nil
}

// TestWeightNames: the fitted weights are written under the names they are read by.
func TestWeightNames(t *testing.T) {
	for count, want := range map[string]int{"features": features, "gates": gates, "chances": chances} {
		if names := namesBefore(t, count); len(names) != want {
			t.Errorf("%d names before %s, want %d: %v", len(names), count, want, names)
		}
	}
	data, err := os.ReadFile("weights.go")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "[chances]float64{\n%s}", list(namesBefore(t, "chances"), wordsAlone.chance[:]))
	spaces := regexp.MustCompile(`[ \t\n]+`)
	if got := spaces.ReplaceAllString(b.String(), ""); !strings.Contains(spaces.ReplaceAllString(string(data), ""), got) {
		t.Errorf("weights.go does not hold the weights as TestFit writes them: %s", got)
	}
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

type fitSet struct {
	name    string
	weight  float64 // of its messages against those of other sets
	view    *View
	slots   map[string]int
	queries []indextest.Row
	read    map[string][]float32 // by text: the second reader's vector; nil: there is none
}

// A student is who makes the vectors of a set.
type student int

const (
	nobody      student = iota
	unseen              // one that was trained without the set
	seen                // the one that is shipped
	unseenTwice         // unseen, and a second reader that was trained without the set
	seenTwice           // seen, and the second reader that is shipped
	seenInGo            // the same, with the vectors that the program makes, in 8 bits
)

const mostQueries = 1200 // of one set

func readSets(t *testing.T, dir string, names []string, by student) (sets []*fitSet) {
	for _, name := range names {
		sets = append(sets, readSet(t, filepath.Join(dir, name), by))
	}
	return sets
}

func readSet(t *testing.T, dir string, by student) *fitSet {
	s := &fitSet{name: filepath.Base(dir), weight: 1, slots: map[string]int{}}
	var caps []*capability.Capability
	for i, r := range indextest.ReadRows(t, filepath.Join(dir, "corpus.jsonl")) {
		s.slots[r.ID] = i
		caps = append(caps, &capability.Capability{
			ID: capability.ID(r.ID), Name: r.Name, Description: r.Description, Category: r.Category, Tags: r.Tags, Parameters: r.Parameters,
		})
	}
	var model *embed.Model
	if by != nobody {
		model = studentOf(t, s.name, by != unseen && by != unseenTwice)
	}
	segment := index.BuildWith(model, caps)
	switch by {
	case unseenTwice:
		segment, s.read = withReader(t, segment, s.name, splitOf(s.name))
	case seenTwice:
		segment, s.read = withReader(t, segment, s.name, "full")
	case seenInGo:
		segment, s.read = withReader(t, segment, s.name, "go")
	}
	s.view = NewView(Part{Segment: segment})
	s.queries = indextest.ReadRows(t, filepath.Join(dir, "queries.jsonl"))
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(s.queries), func(i, j int) { s.queries[i], s.queries[j] = s.queries[j], s.queries[i] })
	s.queries = s.queries[:min(len(s.queries), mostQueries)]
	if s.name == "clinc150" || s.name == "banking77" {
		s.weight = 0.35 // names without descriptions, thousands of messages: not what catalogs are like
	}
	return s
}

// splitOf names the reader that was trained without the family of a set.
func splitOf(set string) string {
	if fold := slices.IndexFunc(folds, func(sets []string) bool { return slices.Contains(sets, set) }); fold >= 0 {
		return fmt.Sprintf("fold%d", fold)
	}
	return "full"
}

// withReader gives the capabilities of a set the second reader's vectors, and
// returns those of all messages.
func withReader(t *testing.T, s *index.Segment, set, split string) (*index.Segment, map[string][]float32) {
	t.Helper()
	docs, messages := readVectors(t, split)
	of := map[int][]float32{}
	for slot := range s.Len() {
		of[slot] = docs[set+"/"+string(s.At(slot).ID)]
	}
	s, err := s.WithVectors("reader", readerDims, of)
	if err != nil {
		t.Fatal(err)
	}
	return s, messages
}

const readerDims = 384 // numbers of the second reader's vectors

// readVectors reads the vectors of the second reader: of capabilities, by set and
// id, and of messages.
func readVectors(t *testing.T, split string) (docs, messages map[string][]float32) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(*readers, "vectors-"+split+".i8"))
	if err != nil {
		t.Fatal(err)
	}
	docs, messages = map[string][]float32{}, map[string][]float32{}
	const dims, size = readerDims, readerDims + 4
	for _, r := range indextest.ReadRows(t, filepath.Join(*readers, "texts.jsonl")) {
		if len(data) < size {
			t.Fatalf("vectors-%s.i8 has too few vectors; it was made of other sets", split)
		}
		v := make([]float32, dims)
		for i := range v {
			v[i] = float32(int8(data[i])) * math.Float32frombits(binary.LittleEndian.Uint32(data[dims:]))
		}
		data = data[size:]
		if r.Query != "" {
			messages[r.Query] = v
		} else {
			docs[r.Set+"/"+r.ID] = v
		}
	}
	if len(data) > 0 {
		t.Fatalf("vectors-%s.i8 has %d bytes too many; it was made of other sets", split, len(data))
	}
	return docs, messages
}

// look searches and leaves the searcher with its candidates in order.
func (s *fitSet) look(query string) *searcher {
	search := new(searcher)
	q := Query{Text: query, Vector: s.read[query]}
	search.asked.read(s.view, q)
	search.collect(s.view, q, nil)
	search.rank(s.view)
	return search
}

func (s *fitSet) isGold(gold []string, slot int32) bool {
	return slices.ContainsFunc(gold, func(id string) bool { at, ok := s.slots[id]; return ok && at == int(slot) })
}

// An adam is a gradient descent with a memory.
type adam struct {
	at, mean, square []float64
	step             int
}

func newAdam(n int) *adam {
	return &adam{at: make([]float64, n), mean: make([]float64, n), square: make([]float64, n)}
}

func (a *adam) move(gradient []float64, rate float64) {
	a.step++
	for k, g := range gradient {
		a.mean[k] = 0.9*a.mean[k] + 0.1*g
		a.square[k] = 0.99*a.square[k] + 0.01*g*g
		m, s := a.mean[k]/(1-math.Pow(0.9, float64(a.step))), a.square[k]/(1-math.Pow(0.99, float64(a.step)))
		a.at[k] -= rate * m / (math.Sqrt(s) + 1e-8)
	}
}

// fitRank fits the order of candidates: a softmax over them against the right
// ones, with weights that may not be negative.
func fitRank(sets []*fitSet) [features]float32 {
	type example struct {
		x    [][features]float32
		gold []bool
		n    int
	}
	examples := make([][]example, len(sets))
	var deviation [features]float64
	var mean [features]float64
	seen := 0.0
	for i, s := range sets {
		for _, q := range s.queries {
			var e example
			for _, c := range s.look(q.Query).candidates {
				e.x = append(e.x, c.features)
				e.gold = append(e.gold, s.isGold(q.Gold, c.slot))
				if e.gold[len(e.gold)-1] {
					e.n++
				}
				for k, v := range c.features {
					mean[k] += float64(v)
					deviation[k] += float64(v) * float64(v)
				}
				seen++
			}
			if e.n > 0 {
				examples[i] = append(examples[i], e)
			}
		}
	}
	for k := range mean {
		m := mean[k] / seen
		deviation[k] = math.Sqrt(max(0, deviation[k]/seen-m*m)) + 1e-6
	}
	const steps, batch, decay = 400, 256, 0.03
	random := rand.New(rand.NewPCG(7, 9))
	a := newAdam(features)
	for step := range steps {
		gradient, total := make([]float64, features), 0.0
		for range batch {
			i := random.IntN(len(sets))
			e := &examples[i][random.IntN(len(examples[i]))]
			p := make([]float64, len(e.x))
			most, sum := math.Inf(-1), 0.0
			for j, x := range e.x {
				for k := range x {
					p[j] += a.at[k] * float64(x[k]) / deviation[k]
				}
				most = max(most, p[j])
			}
			for j := range p {
				p[j] = math.Exp(p[j] - most)
				sum += p[j]
			}
			for j, x := range e.x {
				wrong := p[j] / sum
				if e.gold[j] {
					wrong -= 1 / float64(e.n)
				}
				for k := range x {
					gradient[k] += sets[i].weight * wrong * float64(x[k]) / deviation[k]
				}
			}
			total += sets[i].weight
		}
		for k := range gradient {
			gradient[k] = gradient[k]/total + decay*a.at[k]
		}
		a.move(gradient, 0.05*(1-float64(step)/steps))
		for k := range a.at {
			a.at[k] = max(0, a.at[k])
		}
	}
	var weights [features]float32
	for k := range a.at {
		weights[k] = float32(a.at[k] / deviation[k])
	}
	return weights
}

// fitTrust fits the two probabilities: that one of five is right, and that one
// hit is. The order must be fitted by then.
func fitTrust(sets []*fitSet, outOfScope []indextest.Row, into *weights) {
	type example struct {
		x          []float64
		right      float64
		weight     float64
		set        *fitSet
		search     *searcher
		gold       []string
		confidence confidence
	}
	var examples []example
	add := func(s *fitSet, q indextest.Row, weight float64) {
		search := s.look(q.Query)
		if len(search.candidates) == 0 {
			return
		}
		x := search.gate(s.view)
		e := example{x: x[:], weight: weight, set: s, search: search, gold: q.Gold}
		for i := range min(5, len(search.candidates)) {
			c := search.at(i)
			if s.isGold(q.Gold, c.slot) {
				e.right = 1
			}
		}
		examples = append(examples, e)
	}
	random := rand.New(rand.NewPCG(5, 6))
	for _, s := range sets {
		for _, q := range s.queries {
			add(s, q, 1/float64(len(s.queries)))
		}
		const foreign = 400 // messages of other sets, which nothing here answers
		for range foreign {
			if other := sets[random.IntN(len(sets))]; other.name != s.name {
				q := other.queries[random.IntN(len(other.queries))]
				q.Gold = nil
				add(s, q, foreignWeight/foreign)
			}
		}
		if s.name == "clinc150" {
			for _, q := range outOfScope {
				add(s, q, outWeight/float64(len(outOfScope)))
			}
		}
	}
	a := newAdam(gates)
	total := 0.0
	var mean, deviation [gates]float64
	for _, e := range examples {
		total += e.weight
		for k, x := range e.x {
			mean[k] += e.weight * x
			deviation[k] += e.weight * x * x
		}
	}
	for k := range mean {
		mean[k] /= total
		deviation[k] = math.Sqrt(max(0, deviation[k]/total-mean[k]*mean[k])) + 1e-6
	}
	mean[fitBias], deviation[fitBias] = 0, 1
	z := make([]float64, gates)
	for step := range 800 {
		gradient := make([]float64, gates)
		for _, e := range examples {
			for k, x := range e.x {
				z[k] = (x - mean[k]) / deviation[k]
			}
			wrong := (logistic(dot(a.at, z)) - e.right) * e.weight / total
			for k := range z {
				gradient[k] += wrong * z[k]
			}
		}
		for k := range gradient {
			if k != fitBias {
				gradient[k] += 0.0003 * a.at[k]
			}
		}
		a.move(gradient, 0.05*(1-float64(step)/800))
	}
	for k := range a.at {
		a.at[k] /= deviation[k]
		if k != fitBias {
			a.at[fitBias] -= a.at[k] * mean[k]
		}
	}
	a.at[fitBias] += lessFrequent
	copy(into.gate[:], a.at)
	for i := range examples {
		examples[i].confidence = examples[i].search.confidence(examples[i].set.view)
	}
	b := newAdam(chances)
	b.at[hitFit], b.at[hitShare] = 1, 1
	for step := range 1500 {
		gradient := make([]float64, chances)
		for _, e := range examples {
			if e.gold == nil {
				continue
			}
			t := e.confidence
			for i := range min(5, len(e.search.candidates)) {
				c := e.search.at(i)
				x := t.chance(c.score, e.search.at(0).score)
				wrong := logistic(dot(b.at, x[:]))
				if e.set.isGold(e.gold, c.slot) {
					wrong--
				}
				for k := range x {
					gradient[k] += wrong * e.weight * x[k]
				}
			}
		}
		b.move(gradient, 0.02*(1-float64(step)/1500))
	}
	copy(into.chance[:], b.at)
}

// What messages that nothing answers weigh against those of one set, and by how
// much less frequent, in log-odds, they are taken to be in use: so that the
// usual floor of 0.3 leaves hardly any answerable message empty.
const (
	foreignWeight = 0.3
	outWeight     = 1.0
	lessFrequent  = 0.95
)

func dot(a, b []float64) float64 {
	sum := 0.0
	for k := range a {
		sum += a[k] * b[k]
	}
	return sum
}
