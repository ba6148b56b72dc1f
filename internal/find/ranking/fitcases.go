//go:build fit

package ranking

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
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

// caseTalk is a message that wants nothing of any tool.
const caseTalk = "talk"

// What every source of cases has at most.
const (
	caseDocs       = 300
	caseMessages   = 150
	caseCatalogs   = 50
	caseOperations = 4096 // of services, among what there is elsewhere
)

// Cases makes the cases that training/gate.py fits the gate to, and writes them to
// a folder: messages and catalogs of the training sets, of real servers, of the
// dev sets (which only measure), and talk, with what the search says of each. The
// models are those of the program: they saw the training sets, but neither the
// servers nor the dev sets. Vectors that an earlier run left in the folder are
// used again. read makes the second reader's vector of a text.
func (f *Fitting) Cases(folder string, read func(text string) []float32) {
	bench := f.Bench
	if bench == "" {
		panic(errors.New("KEN_BENCH is not set: there is nothing to make cases of"))
	}
	var sources []*caseSource
	for _, set := range trainSets {
		sources = append(sources, setSource(filepath.Join(bench, "train", set), fmt.Sprintf("family %d", slices.IndexFunc(folds, func(f []string) bool { return slices.Contains(f, set) }))))
	}
	for _, name := range []string{"npm-mcp", "toucan"} {
		sources = append(sources, serverSource(filepath.Join(bench, "catalog", name)))
	}
	for _, set := range devSets {
		sources = append(sources, setSource(filepath.Join(bench, "dev", set), "dev"))
	}
	made := openVectors(filepath.Join(folder, "vectors.bin"), read)
	var caps []*capability.Capability
	for _, s := range sources {
		s.from = len(caps)
		caps = append(caps, s.caps...)
	}
	segment := index.BuildWith(embed.Builtin(), caps)
	vectors := map[int][]float32{}
	for slot, c := range caps {
		if d, ok := index.DocumentOf(c); ok {
			vectors[slot] = made.of(d.Text())
		}
	}
	segment, err := segment.WithVectors("reader", readerDims, vectors)
	if err != nil {
		panic(err)
	}
	writeElsewhere(folder, bench, made)
	made.write()
	outOfScope := readRows(filepath.Join(bench, "train", "clinc150", "oos.jsonl"))
	rand.New(rand.NewPCG(3, 3)).Shuffle(len(outOfScope), func(i, j int) { outOfScope[i], outOfScope[j] = outOfScope[j], outOfScope[i] })
	outOfScope = outOfScope[:2*caseMessages]
	talk := f.readTalk()

	file, err := os.Create(filepath.Join(folder, "cases.jsonl"))
	if err != nil {
		panic(err)
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	defer out.Flush()
	for number, s := range sources {
		random := rand.New(rand.NewPCG(11, uint64(number)))
		ask := func(kind string, visible index.Bits, from, query string, gold []int32) {
			made.asked[query] = true
			v := NewView(Part{Segment: segment, Visible: visible})
			search := new(searcher)
			q := Query{Text: query, Vector: made.of(ends480(query)), English: true}
			search.asked.read(v, q)
			search.collect(v, q, nil)
			search.rank(v)
			if len(search.candidates) == 0 {
				return
			}
			x, trust := search.gate(v), search.confidence(v)
			row := caseRow{
				Kind: kind, Set: s.name, Family: s.family, N: v.n, X: x[:], Logit: trust.logit,
				First: slices.Contains(gold, search.at(0).slot), Extra: []float64{search.mostSimilar()}, Query: query, From: from,
			}
			for i := range min(5, len(search.candidates)) {
				is := slices.Contains(gold, search.at(i).slot)
				row.Right = row.Right || is
				row.Chance, row.Is = append(row.Chance, trust.chanceOf(search.at(i).score, search.at(0).score)), append(row.Is, is)
			}
			data, err := json.Marshal(row)
			if err != nil {
				panic(err)
			}
			out.Write(append(data, '\n'))
		}
		foreign := func() (from, query string) {
			for {
				if o := sources[random.IntN(len(sources))]; o.family != s.family && len(o.messages) > 0 {
					return o.family, o.messages[random.IntN(len(o.messages))].Query
				}
			}
		}
		whole := index.NewBits(segment.Len())
		for i := range s.caps {
			whole.Set(s.from + i)
		}
		for _, m := range s.messages {
			gold := s.gold(m)
			ask(caseOwn, whole, s.family, m.Query, gold)
			ask(caseRemoved, hide(segment, whole, gold), s.family, m.Query, nil)
			from, query := foreign()
			ask(caseForeign, whole, from, query, nil)
		}
		for range 60 {
			ask(caseTalk, whole, caseTalk, talk[random.IntN(len(talk))], nil)
		}
		if s.name == "clinc150" {
			for _, q := range outOfScope {
				ask(caseOut, whole, "family 1", q.Query, nil)
			}
		}
		for range caseCatalogs {
			visible, asked, families := smallOf(s, sources, segment, random)
			for _, m := range asked {
				gold := s.gold(m)
				ask(caseSmall, visible, s.family, m.Query, gold)
				ask(caseSmallRemoved, hide(segment, visible, gold), s.family, m.Query, nil)
			}
			for n := 0; n < 4; {
				if o := sources[random.IntN(len(sources))]; !slices.Contains(families, o.family) {
					ask(caseSmallForeign, visible, o.family, o.messages[random.IntN(len(o.messages))].Query, nil)
					n++
				}
			}
			for range 2 {
				ask(caseSmallOut, visible, "family 1", outOfScope[random.IntN(len(outOfScope))].Query, nil)
				ask("small "+caseTalk, visible, caseTalk, talk[random.IntN(len(talk))], nil)
			}
		}
		fmt.Println(s.name, len(s.caps), len(s.messages))
	}
	writeJSON(folder, "messages.jsonl", func(yield func(any) bool) {
		for _, text := range slices.Sorted(maps.Keys(made.asked)) {
			yield(map[string]any{"query": text, "v": shrunk(made.of(ends480(text)))})
		}
	})
	made.write()
}

// writeElsewhere writes what there is elsewhere: operations of services, and the
// capabilities of the training sets, with their vectors.
func writeElsewhere(folder, bench string, made *keptVectors) {
	writeJSON(folder, "elsewhere.jsonl", func(yield func(any) bool) {
		add := func(family, text string) {
			yield(map[string]any{"family": family, "text": text, "v": shrunk(made.of(text))})
		}
		for _, d := range operations(filepath.Join(bench, "train", "openapi", "operations.jsonl")) {
			add("openapi", d.Text())
		}
		for number, family := range folds {
			for _, set := range family {
				for _, r := range readRows(filepath.Join(bench, "train", set, "corpus.jsonl")) {
					if d, ok := index.DocumentOf(r.capability(r.ID)); ok {
						add(fmt.Sprintf("family %d", number), d.Text())
					}
				}
			}
		}
	})
}

// shrunk returns a vector in whole numbers from -127 to 127.
func shrunk(v []float32) []int {
	small := make([]int8, len(v))
	index.Shrink(v, small)
	out := make([]int, len(v))
	for i, x := range small {
		out[i] = int(x)
	}
	return out
}

func writeJSON(folder, name string, rows iter.Seq[any]) {
	file, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		panic(err)
	}
	out := bufio.NewWriter(file)
	for row := range rows {
		data, err := json.Marshal(row)
		if err != nil {
			panic(err)
		}
		out.Write(append(data, '\n'))
	}
	if err := errors.Join(out.Flush(), file.Close()); err != nil {
		panic(err)
	}
}

// A caseRow is a line of cases.jsonl.
type caseRow struct {
	Kind   string    `json:"kind"`
	Set    string    `json:"set"`
	Family string    `json:"family"`
	N      int       `json:"n"`
	X      []float64 `json:"x"`
	Extra  []float64 `json:"e"` // mostSimilar
	Logit  float64   `json:"logit"`
	Chance []float64 `json:"chance"` // of the first five hits, in log-odds, before the size of the catalog counts
	Is     []bool    `json:"is"`     // whether each is what was asked for
	Right  bool      `json:"right"`
	First  bool      `json:"first"`
	Query  string    `json:"query"`
	From   string    `json:"from"` // the family of the message
}

// mostSimilar returns the highest similarity of a candidate by the second reader.
func (s *searcher) mostSimilar() float64 {
	most := -1.0
	for i := range s.candidates {
		most = max(most, float64(s.candidates[i].cosRead))
	}
	return most
}

// The kinds of cases that the gate is measured on.
const (
	caseOwn          = "own"           // a message of the set, asked of its catalog
	caseRemoved      = "removed"       // the same, with the right answers and their near twins hidden
	caseForeign      = "foreign"       // one of another family, which nothing here answers
	caseOut          = "out of scope"  // one of clinc150's that no intent answers
	caseSmall        = "small"         // a message of the set, asked of 10 to 200 capabilities of some sets
	caseSmallRemoved = "small removed" // the same, with the right answers and their near twins hidden
	caseSmallForeign = "small foreign" // one of a set that the small catalog has nothing of
	caseSmallOut     = "small out"     // one of clinc150's out of scope, asked of a small catalog
)

// hide returns what is visible of a segment, nil: all, without some
// capabilities and their near twins: those of the same name, and those that
// share most words with one.
func hide(s *index.Segment, visible index.Bits, gone []int32) index.Bits {
	out := index.NewBits(s.Len())
	for slot := range s.Docs {
		hidden := visible != nil && !visible.Has(slot)
		for _, g := range gone {
			hidden = hidden || int(g) == slot || twins(&s.Docs[g], &s.Docs[slot])
		}
		if !hidden {
			out.Set(slot)
		}
	}
	return out
}

func twins(a, b *index.Doc) bool {
	if slices.Equal(a.InName, b.InName) {
		return true
	}
	same, i := 0, 0
	for _, t := range a.Terms {
		for i < len(b.Terms) && b.Terms[i] < t {
			i++
		}
		if i < len(b.Terms) && b.Terms[i] == t {
			same++
		}
	}
	return 2*same > max(len(a.Terms), len(b.Terms))
}

// keptVectors are vectors of the second reader, kept in a file: making them
// takes longer than all else.
type keptVectors struct {
	file string
	read func(text string) []float32
	by   map[string][]float32
	new  int

	asked map[string]bool // messages
}

func openVectors(file string, read func(string) []float32) *keptVectors {
	k := &keptVectors{file: file, read: read, by: map[string][]float32{}, asked: map[string]bool{}}
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		panic(err)
	}
	for len(data) > 0 {
		n := int(binary.LittleEndian.Uint32(data))
		text := string(data[4 : 4+n])
		data = data[4+n:]
		v := make([]float32, readerDims)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		data = data[4*readerDims:]
		k.by[text] = v
	}
	return k
}

func (k *keptVectors) of(text string) []float32 {
	v, ok := k.by[text]
	if !ok {
		v = k.read(text)
		k.by[text] = v
		if k.new++; k.new%500 == 0 {
			fmt.Println("read", k.new)
		}
	}
	return v
}

func (k *keptVectors) write() {
	var out []byte
	for text, v := range k.by {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(text)))
		out = append(out, text...)
		for _, x := range v {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
		}
	}
	if err := os.WriteFile(k.file, out, 0o644); err != nil {
		panic(err)
	}
}

func cut(text string, most int) string {
	head, _ := shorten(text, 2*most)
	return head
}

// ends480 is what the program reads of a long message.
func ends480(text string) string {
	head, tail := shorten(text, 480)
	if tail == "" {
		return head
	}
	return head + " . " + tail
}

func (f *Fitting) readTalk() (out []string) {
	data, err := os.ReadFile(filepath.Join(f.Package, "..", "..", "..", "training", "talk.txt"))
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}
