//go:build fit

package ranking

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/embed"
	"ken/internal/know/index"
)

// A Fitting makes what ranking knows by numbers: weights.go, and what
// training/gate.py reads. Its files are built with the tag fit alone, since they
// set the weights that a search only reads; scripts/fit is the command. A method
// panics with the error that ends it.
type Fitting struct {
	Bench    string // folder of the measured sets, as KEN_BENCH names it
	Students string // folder of fold0.bin to fold3.bin, each trained without the sets of its fold, and full.bin
	Readers  string // folder of vectors-fold0.i8 to vectors-fold3.i8 and vectors-full.i8, which training/reader.py writes
	Package  string // folder of this package: weights.go goes there, and talk.txt is found from it
}

// A fitRow is a capability or a labelled message of a training set.
type fitRow struct {
	ID, Name, Description, Category string
	Tags                            []string
	Parameters                      []capability.Parameter
	Set                             string // of a list of texts: the one it is of
	Query                           string
	Gold                            []string
}

func (r *fitRow) capability(id string) *capability.Capability {
	return &capability.Capability{
		ID: capability.ID(id), Name: r.Name, Description: r.Description, Category: r.Category, Tags: r.Tags, Parameters: r.Parameters,
	}
}

// readRows reads a file of a training set. A key that one set spells or shapes
// differently is left out of its row.
func readRows(path string) (out []fitRow) {
	eachLine(path, func(line []byte) {
		var r fitRow
		_ = json.Unmarshal(line, &r)
		out = append(out, r)
	})
	return out
}

func eachLine(path string, do func(line []byte)) {
	f, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		do(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		panic(fmt.Errorf("%s: %w", path, err))
	}
}

// Weights fits all weights to the training sets and writes weights.go. What
// go run ./internal/know/index/fit counts comes before it: the weights are fitted
// to that.
func (f *Fitting) Weights() {
	dir := f.trainingSets()
	outOfScope := readRows(filepath.Join(dir, "clinc150", "oos.jsonl"))

	var b bytes.Buffer
	fmt.Fprintf(&b, "package ranking\n\n// Made by go run -tags fit ./scripts/fit weights, from the training sets.\nvar (\n")
	for _, kind := range []struct {
		name string
		into *weights
		by   student
	}{{"wordsAlone", &wordsAlone, nobody}, {"withVectors", &withVectors, unseen}, {"withEmbedder", &withEmbedder, unseenTwice}} {
		sets := f.readSets(dir, trainSets, kind.by)
		kind.into.rank = fitRank(sets)
		switch kind.by {
		case unseen:
			sets = append(sets, f.readSets(dir, trainSets, seen)...)
		case unseenTwice:
			sets = append(sets, f.readSets(dir, trainSets, seenTwice)...)
		}
		fitTrust(sets, outOfScope, kind.into)
		fmt.Fprintf(&b, "%s = weights{\n", kind.name)
		fmt.Fprintf(&b, "rank: [features]float32{\n%s},\n", list(f.namesBefore("features"), kind.into.rank[:]))
		fmt.Fprintf(&b, "gate: [gates]float64{\n%s},\n", list(f.namesBefore("gates"), kind.into.gate[:]))
		fmt.Fprintf(&b, "chance: [chances]float64{\n%s},\n}\n", list(f.namesBefore("chances"), kind.into.chance[:]))
	}
	fmt.Fprintf(&b, ")\n")
	source, err := format.Source(b.Bytes())
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(f.Package, "weights.go"), source, 0o644); err != nil {
		panic(err)
	}
}

func (f *Fitting) trainingSets() string {
	switch {
	case f.Bench == "":
		panic(errors.New("KEN_BENCH is not set: there is nothing to fit to"))
	case f.Readers == "":
		panic(errors.New("-readers is missing: name the folder of vectors-fold0.i8 to vectors-fold3.i8 and vectors-full.i8; training/README.md says how they are made"))
	case f.Students == "":
		panic(errors.New("-students is missing: name the folder of fold0.bin to fold3.bin and full.bin; training/README.md says how they are made"))
	}
	return filepath.Join(f.Bench, "train")
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
func (f *Fitting) namesBefore(count string) []string {
	files, err := filepath.Glob(filepath.Join(f.Package, "*.go"))
	if err != nil {
		panic(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			panic(err)
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
	panic(fmt.Errorf("no constants are counted by %s", count))
}

// folds are the sets that a student was trained without, as training/data.py
// has them. What orders capabilities is fitted to the nearness by these, never
// to that by the student that saw the set: it would be trusted too far. What
// says whether anything fits is fitted to both, as both are met in use.
var folds = [][]string{{"metatool", "apibank"}, {"clinc150", "banking77"}, {"toollinkos", "bfcl-bynames"}, {"sealtools"}}

func (f *Fitting) studentOf(set string, seen bool) *embed.Model {
	fold := slices.IndexFunc(folds, func(sets []string) bool { return slices.Contains(sets, set) })
	name := fmt.Sprintf("fold%d.bin", fold)
	if fold < 0 || seen {
		name = "full.bin"
	}
	data, err := os.ReadFile(filepath.Join(f.Students, name))
	if err != nil {
		panic(err)
	}
	m, err := embed.Load(string(data))
	if err != nil {
		panic(err)
	}
	return m
}

// trainSets are the sets of bench/train that have messages and answers.
var trainSets = []string{"apibank", "banking77", "bfcl-bynames", "clinc150", "metatool", "sealtools", "toollinkos"}

type fitSet struct {
	name    string
	weight  float64 // of its messages against those of other sets
	view    *View
	slots   map[string]int
	queries []fitRow
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
)

const mostQueries = 1200 // of one set

func (f *Fitting) readSets(dir string, names []string, by student) (sets []*fitSet) {
	for _, name := range names {
		sets = append(sets, f.readSet(filepath.Join(dir, name), by))
	}
	return sets
}

func (f *Fitting) readSet(dir string, by student) *fitSet {
	s := &fitSet{name: filepath.Base(dir), weight: 1, slots: map[string]int{}}
	var caps []*capability.Capability
	for i, r := range readRows(filepath.Join(dir, "corpus.jsonl")) {
		s.slots[r.ID] = i
		caps = append(caps, r.capability(r.ID))
	}
	var model *embed.Model
	if by != nobody {
		model = f.studentOf(s.name, by != unseen && by != unseenTwice)
	}
	segment := index.BuildWith(model, caps)
	switch by {
	case unseenTwice:
		segment, s.read = f.withReader(segment, s.name, splitOf(s.name))
	case seenTwice:
		segment, s.read = f.withReader(segment, s.name, "full")
	}
	s.view = NewView(Part{Segment: segment})
	s.queries = readRows(filepath.Join(dir, "queries.jsonl"))
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
func (f *Fitting) withReader(s *index.Segment, set, split string) (*index.Segment, map[string][]float32) {
	docs, messages := f.readVectors(split)
	of := map[int][]float32{}
	for slot := range s.Len() {
		of[slot] = docs[set+"/"+string(s.At(slot).ID)]
	}
	s, err := s.WithVectors("reader", readerDims, of)
	if err != nil {
		panic(err)
	}
	return s, messages
}

const readerDims = 384 // numbers of the second reader's vectors

// readVectors reads the vectors of the second reader: of capabilities, by set and
// id, and of messages.
func (f *Fitting) readVectors(split string) (docs, messages map[string][]float32) {
	data, err := os.ReadFile(filepath.Join(f.Readers, "vectors-"+split+".i8"))
	if err != nil {
		panic(err)
	}
	docs, messages = map[string][]float32{}, map[string][]float32{}
	const dims, size = readerDims, readerDims + 4
	for _, r := range readRows(filepath.Join(f.Readers, "texts.jsonl")) {
		if len(data) < size {
			panic(fmt.Errorf("vectors-%s.i8 has too few vectors; it was made of other sets", split))
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
		panic(fmt.Errorf("vectors-%s.i8 has %d bytes too many; it was made of other sets", split, len(data)))
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
