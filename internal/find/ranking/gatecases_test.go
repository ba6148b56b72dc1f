package ranking

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/know/embed"
	"ken/internal/know/index"
	"ken/internal/know/reader"
	"ken/internal/testkit/indextest"
)

var gateCases = flag.String("gatecases", "", "`folder` for what training/gate.py reads: cases.jsonl, and the vectors that were made for it, to be used again")

// caseTalk is a message that wants nothing of any tool.
const caseTalk = "talk"

// What every source of cases has at most.
const (
	caseDocs       = 300
	caseMessages   = 150
	caseCatalogs   = 50
	caseOperations = 4096 // of services, among what there is elsewhere
)

// A caseSource is a catalog with messages that it answers.
type caseSource struct {
	name, family string
	caps         []*capability.Capability
	messages     []indextest.Row
	from         int // its first slot in the pool
}

// TestGateCases makes the cases that training/gate.py fits the gate to: messages
// and catalogs of the training sets, of real servers, of the dev sets (which
// only measure), and talk, with what the search says of each. The models are
// those of the program: they saw the training sets, but neither the servers nor
// the dev sets.
func TestGateCases(t *testing.T) {
	if *gateCases == "" {
		t.Skip("soak: makes the cases for training/gate.py; run with -gatecases")
	}
	bench := os.Getenv("KEN_BENCH")
	if bench == "" {
		t.Fatal("KEN_BENCH is not set: there is nothing to make cases of")
	}
	if !reader.Supported() {
		t.Fatal("there are no kernels for this processor")
	}
	var sources []*caseSource
	for _, set := range trainSets {
		sources = append(sources, setSource(t, filepath.Join(bench, "train", set), fmt.Sprintf("family %d", slices.IndexFunc(folds, func(f []string) bool { return slices.Contains(f, set) }))))
	}
	for _, name := range []string{"npm-mcp", "toucan"} {
		sources = append(sources, serverSource(t, filepath.Join(bench, "catalog", name)))
	}
	for _, set := range devSets {
		sources = append(sources, setSource(t, filepath.Join(bench, "dev", set), "dev"))
	}
	made := openVectors(t, filepath.Join(*gateCases, "vectors.bin"))
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
		t.Fatal(err)
	}
	writeElsewhere(t, bench, made)
	made.write(t)
	outOfScope := indextest.ReadRows(t, filepath.Join(bench, "train", "clinc150", "oos.jsonl"))
	rand.New(rand.NewPCG(3, 3)).Shuffle(len(outOfScope), func(i, j int) { outOfScope[i], outOfScope[j] = outOfScope[j], outOfScope[i] })
	outOfScope = outOfScope[:2*caseMessages]
	talk := readTalk(t)

	file, err := os.Create(filepath.Join(*gateCases, "cases.jsonl"))
	if err != nil {
		t.Fatal(err)
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
				First: slices.Contains(gold, search.at(0).slot), Extra: search.extras(), Query: query, From: from,
			}
			for i := range min(5, len(search.candidates)) {
				is := slices.Contains(gold, search.at(i).slot)
				row.Right = row.Right || is
				row.Chance, row.Is = append(row.Chance, trust.chanceOf(search.at(i).score, search.at(0).score)), append(row.Is, is)
			}
			data, err := json.Marshal(row)
			if err != nil {
				t.Fatal(err)
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
	writeJSON(t, "messages.jsonl", func(yield func(any) bool) {
		for _, text := range slices.Sorted(maps.Keys(made.asked)) {
			yield(map[string]any{"query": text, "v": shrunk(made.of(ends480(text)))})
		}
	})
	made.write(t)
}

// writeElsewhere writes what there is elsewhere: operations of services, and the
// capabilities of the training sets, with their vectors.
func writeElsewhere(t *testing.T, bench string, made *keptVectors) {
	writeJSON(t, "elsewhere.jsonl", func(yield func(any) bool) {
		add := func(family, text string) {
			yield(map[string]any{"family": family, "text": text, "v": shrunk(made.of(text))})
		}
		for _, d := range operations(t, filepath.Join(bench, "train", "openapi", "operations.jsonl")) {
			add("openapi", d.Text())
		}
		for number, family := range folds {
			for _, set := range family {
				for _, r := range indextest.ReadRows(t, filepath.Join(bench, "train", set, "corpus.jsonl")) {
					c := &capability.Capability{ID: capability.ID(r.ID), Name: r.Name, Description: r.Description, Category: r.Category, Tags: r.Tags, Parameters: r.Parameters}
					if d, ok := index.DocumentOf(c); ok {
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

func writeJSON(t *testing.T, name string, rows iter.Seq[any]) {
	t.Helper()
	file, err := os.Create(filepath.Join(*gateCases, name))
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(file)
	for row := range rows {
		data, err := json.Marshal(row)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(append(data, '\n'))
	}
	if err := errors.Join(out.Flush(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// A caseRow is a line of cases.jsonl.
type caseRow struct {
	Kind   string    `json:"kind"`
	Set    string    `json:"set"`
	Family string    `json:"family"`
	N      int       `json:"n"`
	X      []float64 `json:"x"`
	Extra  []float64 `json:"e"`
	Logit  float64   `json:"logit"`
	Chance []float64 `json:"chance"` // of the first five hits, in log-odds, before the size of the catalog counts
	Is     []bool    `json:"is"`     // whether each is what was asked for
	Right  bool      `json:"right"`
	First  bool      `json:"first"`
	Query  string    `json:"query"`
	From   string    `json:"from"` // the family of the message
}

// extras are features that the gate does not have, to be tried.
func (s *searcher) extras() []float64 {
	best := s.at(0)
	read := []float64{-1, -1, -1}
	placeWords, placeRead := 0, 0
	for i := range s.candidates {
		c := &s.candidates[i]
		read = append(read, float64(c.cosRead))
		if c.first > best.first {
			placeWords++
		}
		if c.cosRead > best.cosRead {
			placeRead++
		}
	}
	slices.Sort(read)
	slices.Reverse(read)
	return []float64{
		read[0], read[1], read[2], 1 / float64(1+placeWords), 1 / float64(1+placeRead), float64(best.nearRead), float64(best.near),
		float64(s.vectors.embedder.mean), float64(s.vectors.embedder.deviation),
	}
}

func (s *caseSource) gold(m indextest.Row) (slots []int32) {
	for i, c := range s.caps {
		if slices.Contains(m.Gold, string(c.ID)) {
			slots = append(slots, int32(s.from+i))
		}
	}
	return slots
}

// smallOf chooses a catalog of 10 to 200 capabilities: the answers to some
// messages of a source, others of it, and runs of those of two other sources. It
// returns these messages, and the families that the catalog has something of.
func smallOf(s *caseSource, all []*caseSource, segment *index.Segment, random *rand.Rand) (visible index.Bits, asked []indextest.Row, families []string) {
	n := int(math.Exp(math.Log(10) + random.Float64()*math.Log(20)))
	visible = index.NewBits(segment.Len())
	families = []string{s.family}
	for len(asked) < 6 && visible.Count() < n/2+1 {
		m := s.messages[random.IntN(len(s.messages))]
		asked = append(asked, m)
		for _, slot := range s.gold(m) {
			visible.Set(int(slot))
		}
	}
	for own := min(random.IntN(n+1), len(s.caps)); visible.Count() < own; {
		visible.Set(s.from + random.IntN(len(s.caps)))
	}
	var others []*caseSource
	for len(others) < 2 {
		if o := all[random.IntN(len(all))]; !slices.Contains(families, o.family) {
			others, families = append(others, o), append(families, o.family)
		}
	}
	for visible.Count() < n {
		o := others[random.IntN(2)]
		at := random.IntN(len(o.caps))
		for i := at; i < min(len(o.caps), at+1+random.IntN(12)); i++ {
			visible.Set(o.from + i)
		}
	}
	return visible, asked, families
}

// setSource takes some messages of a labelled set, what answers them, and other
// capabilities of it.
func setSource(t *testing.T, dir, family string) *caseSource {
	s := &caseSource{name: filepath.Base(dir), family: family}
	random := rand.New(rand.NewPCG(1, 7))
	corpus := indextest.ReadRows(t, filepath.Join(dir, "corpus.jsonl"))
	known := map[string]bool{}
	for _, r := range corpus {
		known[r.ID] = true
	}
	messages := indextest.ReadRows(t, filepath.Join(dir, "queries.jsonl"))
	random.Shuffle(len(messages), func(i, j int) { messages[i], messages[j] = messages[j], messages[i] })
	wanted := map[string]bool{}
	for _, m := range messages {
		if len(s.messages) < caseMessages && slices.ContainsFunc(m.Gold, func(id string) bool { return known[id] }) {
			s.messages = append(s.messages, m)
			for _, id := range m.Gold {
				wanted[id] = true
			}
		}
	}
	for _, i := range random.Perm(len(corpus)) {
		if len(wanted) < caseDocs {
			wanted[corpus[i].ID] = true
		}
	}
	for _, r := range corpus {
		if wanted[r.ID] {
			s.caps = append(s.caps, &capability.Capability{
				ID: capability.ID(r.ID), Name: r.Name, Description: r.Description, Category: r.Category, Tags: r.Tags, Parameters: r.Parameters,
			})
		}
	}
	return s
}

// serverSource takes the tools of some real servers. Their messages are first
// sentences of descriptions, turned into requests; the tool keeps the rest.
func serverSource(t *testing.T, dir string) *caseSource {
	s := &caseSource{name: filepath.Base(dir), family: filepath.Base(dir)}
	random := rand.New(rand.NewPCG(1, 8))
	type toolRow struct {
		indextest.Row
		Server string `json:"server"`
	}
	byServer := map[string][]toolRow{}
	file, err := os.Open(filepath.Join(dir, "corpus.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<24)
	var servers []string
	for lines.Scan() {
		var r toolRow
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if r.Server == "" {
			r.Server = r.Category
		}
		if byServer[r.Server] == nil {
			servers = append(servers, r.Server)
		}
		byServer[r.Server] = append(byServer[r.Server], r)
	}
	random.Shuffle(len(servers), func(i, j int) { servers[i], servers[j] = servers[j], servers[i] })
	for _, server := range servers {
		tools := byServer[server]
		if len(s.caps) >= caseDocs+100 || len(tools) > 40 {
			continue
		}
		for _, r := range tools {
			id := server + "/" + r.ID
			request, rest := requestOf(r.Description)
			if request != "" && len(s.messages) < caseMessages && random.IntN(2) == 0 {
				s.messages = append(s.messages, indextest.Row{Query: request, Gold: []string{id}})
				r.Description = rest
			}
			s.caps = append(s.caps, &capability.Capability{
				ID: capability.ID(id), Name: r.Name, Description: r.Description, Category: r.Category, Tags: r.Tags, Parameters: r.Parameters,
			})
		}
	}
	return s
}

// requestOf turns the first sentence of a description into a request, and
// returns the rest of it; "" where there is too little of either.
func requestOf(description string) (request, rest string) {
	description = strings.Join(strings.Fields(description), " ")
	first, rest, ok := strings.Cut(description, ". ")
	words := strings.Fields(first)
	if !ok || len(words) < 4 || len(words) > 25 || len(strings.Fields(rest)) < 4 {
		return "", ""
	}
	words[0] = strings.ToLower(words[0])
	if verb, ok := strings.CutSuffix(words[0], "s"); ok && !strings.HasSuffix(verb, "s") {
		words[0] = verb
		for _, end := range []string{"che", "she", "sse", "xe"} {
			if strings.HasSuffix(verb, end) {
				words[0] = verb[:len(verb)-1]
			}
		}
	}
	return strings.Join(words, " "), rest
}

// operations takes some documented operations of many services.
func operations(t *testing.T, file string) (out []embed.Document) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type operation struct {
		API, Title, Name, Summary, Description, Tag string
		Parameters                                  []string
	}
	byAPI := map[string][]operation{}
	var apis []string
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var o operation
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		if low := strings.ToLower(o.API + o.Title); strings.Contains(low, "spotify") || strings.Contains(low, "tmdb") || strings.Contains(low, "themoviedb") || o.Summary == "" {
			continue // the dev sets are made of these
		}
		if byAPI[o.API] == nil {
			apis = append(apis, o.API)
		}
		byAPI[o.API] = append(byAPI[o.API], o)
	}
	random := rand.New(rand.NewPCG(2, 9))
	random.Shuffle(len(apis), func(i, j int) { apis[i], apis[j] = apis[j], apis[i] })
	for round := 0; len(out) < caseOperations; round++ {
		for _, api := range apis {
			list := byAPI[api]
			if round >= len(list) || len(out) == caseOperations {
				continue
			}
			o := list[random.IntN(len(list))]
			out = append(out, embed.Document{Name: o.Summary, Description: cut(o.Description, 300), Category: o.Title, Parameters: o.Parameters[:min(8, len(o.Parameters))]})
		}
	}
	return out
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

func readTalk(t *testing.T) (out []string) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "training", "talk.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			out = append(out, line)
		}
	}
	return out
}

// keptVectors are vectors of the second reader, kept in a file: making them
// takes longer than all else.
type keptVectors struct {
	file string
	by   map[string][]float32
	new  int

	asked map[string]bool // messages
}

func openVectors(t *testing.T, file string) *keptVectors {
	k := &keptVectors{file: file, by: map[string][]float32{}, asked: map[string]bool{}}
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
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
		v = reader.Builtin().Append(nil, text)
		k.by[text] = v
		if k.new++; k.new%500 == 0 {
			fmt.Println("read", k.new)
		}
	}
	return v
}

func (k *keptVectors) write(t *testing.T) {
	var out []byte
	for text, v := range k.by {
		out = binary.LittleEndian.AppendUint32(out, uint32(len(text)))
		out = append(out, text...)
		for _, x := range v {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
		}
	}
	if err := os.WriteFile(k.file, out, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestGateDev measures the whole dev sets with the gate, as BenchmarkQualityRead
// of package app does, but without waiting for what runs in the background: NDCG@5
// with and without the floor of 0.3, what is left empty or marked, and how far the
// scores of first hits are from the share that is right. Then what is held back at
// the floor that loses 2 % of what is found, with how much of that is chance.
func TestGateDev(t *testing.T) {
	if *gateCases == "" {
		t.Skip("soak: measures the dev sets; run with -gatecases")
	}
	made := openVectors(t, filepath.Join(*gateCases, "vectors.bin"))
	var sum [3]float64
	var whole []wholeCase
	foreign := messagesOf(t, filepath.Join(os.Getenv("KEN_BENCH"), "train"))
	random := rand.New(rand.NewPCG(13, 1))
	for _, set := range devSets {
		dir := filepath.Join(os.Getenv("KEN_BENCH"), "dev", set)
		var kinds [2]*fitSet
		for i, by := range []*embed.Model{nil, embed.Builtin()} {
			s := &fitSet{name: set, slots: map[string]int{}}
			var caps []*capability.Capability
			for slot, r := range indextest.ReadRows(t, filepath.Join(dir, "corpus.jsonl")) {
				s.slots[r.ID] = slot
				caps = append(caps, &capability.Capability{
					ID: capability.ID(r.ID), Name: r.Name, Description: r.Description, Category: r.Category, Tags: r.Tags, Parameters: r.Parameters,
				})
			}
			segment := index.BuildWith(by, caps)
			if by != nil {
				vectors := map[int][]float32{}
				for slot, c := range caps {
					if d, ok := index.DocumentOf(c); ok {
						vectors[slot] = made.of(d.Text())
					}
				}
				var err error
				if segment, err = segment.WithVectors("reader", readerDims, vectors); err != nil {
					t.Fatal(err)
				}
			}
			s.view = NewView(Part{Segment: segment})
			kinds[i] = s
		}
		var cases []gateCase
		var gain, floored, words, empty, marked, n float64
		for _, q := range indextest.ReadRows(t, filepath.Join(dir, "queries.jsonl")) {
			q.Gold = slices.DeleteFunc(q.Gold, func(id string) bool { _, ok := kinds[1].slots[id]; return !ok })
			if len(q.Gold) == 0 {
				continue
			}
			n++
			ask := func(kind string, v *View, query string) gateCase {
				search := new(searcher)
				asked := Query{Text: query, Vector: made.of(ends480(query)), English: true}
				search.asked.read(v, asked)
				search.collect(v, asked, nil)
				search.rank(v)
				c := gateCase{kind: kind, set: set, fit: search.confidence(v).fit}
				for k := range min(5, len(search.candidates)) {
					c.right = c.right || kind == caseOwn && kinds[1].isGold(q.Gold, search.at(k).slot)
				}
				return c
			}
			segment := kinds[1].view.parts[0].Segment
			without := NewView(Part{Segment: segment, Visible: hide(segment, nil, kinds[1].goldSlots(q.Gold))})
			whole = append(whole, wholeCase{
				ask(caseOwn, kinds[1].view, q.Query), ask(caseRemoved, without, q.Query),
				ask(caseForeign, kinds[1].view, foreign[random.IntN(len(foreign))]),
			})
			for i, s := range kinds {
				search := new(searcher)
				asked := Query{Text: q.Query}
				if i == 1 {
					asked.Vector, asked.English = made.of(ends480(q.Query)), true
				}
				search.asked.read(s.view, asked)
				search.collect(s.view, asked, nil)
				search.rank(s.view)
				trust := search.confidence(s.view)
				got := 0.0
				for k := range min(5, len(search.candidates)) {
					if s.isGold(q.Gold, search.at(k).slot) {
						got += 1 / math.Log2(float64(k+2))
					}
				}
				best := 0.0
				for k := range min(5, len(q.Gold)) {
					best += 1 / math.Log2(float64(k+2))
				}
				got *= 100 / best
				switch {
				case i == 0 && trust.fit >= 0.3:
					words += got
				case i == 1:
					gain += got
					c := gateCase{}
					if len(search.candidates) > 0 {
						c.score, c.first = trust.of(search.at(0).score, search.at(0).score), s.isGold(q.Gold, search.at(0).slot)
					}
					switch {
					case trust.fit >= 0.3:
						floored += got
						cases = append(cases, c)
						if trust.fit < 0.6 {
							marked++
						}
					default:
						empty++
					}
				}
			}
		}
		wrong := calibration(cases)
		fmt.Printf("%s: NDCG@5 %.2f, with the floor %.2f, words %.2f; empty %.1f %%, marked %.1f %%; calibration error %.3f\n", set, gain/n, floored/n, words/n, 100*empty/n, 100*marked/n, wrong)
		sum[0] += gain / n / 3
		sum[1] += floored / n / 3
		sum[2] += wrong / 3
	}
	fmt.Printf("mean: NDCG@5 %.2f, with the floor %.2f, calibration error %.3f\n", sum[0], sum[1], sum[2])
	tellWhole("mean of the dev sets", whole)
	for _, set := range devSets {
		tellWhole(set, slices.DeleteFunc(slices.Clone(whole), func(c wholeCase) bool { return c[0].set != set }))
	}
	made.write(t)
}

// A wholeCase is a message of a set, the same with its answer removed, and a
// message of another set, all asked of the whole set.
type wholeCase [3]gateCase

// tellWhole prints what is held back at the floor that loses 2 % of what is found,
// and between what it lies in 95 of 100 draws of the messages with replacement.
func tellWhole(name string, cases []wholeCase) {
	held := func(cases []wholeCase) (out [2]float64) {
		var all []gateCase
		for _, c := range cases {
			all = append(all, c[:]...)
		}
		floor := lostFloor(all, 0.02)
		for i, kind := range []string{caseRemoved, caseForeign} {
			sets := setsOf(all, kind)
			for _, set := range sets {
				n, below := 0.0, 0.0
				for _, c := range cases {
					if c[i+1].set == set {
						n++
						if c[i+1].fit < floor {
							below++
						}
					}
				}
				out[i] += 100 * below / n / float64(len(sets))
			}
		}
		return out
	}
	random := rand.New(rand.NewPCG(13, 2))
	var draws [2][]float64
	for range 500 {
		drawn := make([]wholeCase, len(cases))
		for i := range drawn {
			drawn[i] = cases[random.IntN(len(cases))]
		}
		for i, x := range held(drawn) {
			draws[i] = append(draws[i], x)
		}
	}
	got := held(cases)
	fmt.Printf("| %s | %d |", name, len(cases))
	for i, list := range draws {
		slices.Sort(list)
		fmt.Printf(" %.0f (%.0f to %.0f) |", got[i], list[len(list)/40], list[len(list)-1-len(list)/40])
	}
	fmt.Println()
}

// messagesOf returns some messages of each training set.
func messagesOf(t *testing.T, dir string) (out []string) {
	for _, set := range trainSets {
		for _, m := range setSource(t, filepath.Join(dir, set), "").messages {
			out = append(out, m.Query)
		}
	}
	return out
}
