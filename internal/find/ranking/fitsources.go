//go:build fit

package ranking

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/know/embed"
	"ken/internal/know/index"
)

// A caseSource is a catalog with messages that it answers.
type caseSource struct {
	name, family string
	caps         []*capability.Capability
	messages     []fitRow
	from         int // its first slot in the pool
}

func (s *caseSource) gold(m fitRow) (slots []int32) {
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
func smallOf(s *caseSource, all []*caseSource, segment *index.Segment, random *rand.Rand) (visible index.Bits, asked []fitRow, families []string) {
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
func setSource(dir, family string) *caseSource {
	s := &caseSource{name: filepath.Base(dir), family: family}
	random := rand.New(rand.NewPCG(1, 7))
	corpus := readRows(filepath.Join(dir, "corpus.jsonl"))
	known := map[string]bool{}
	for _, r := range corpus {
		known[r.ID] = true
	}
	messages := readRows(filepath.Join(dir, "queries.jsonl"))
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
			s.caps = append(s.caps, r.capability(r.ID))
		}
	}
	return s
}

// serverSource takes the tools of some real servers. Their messages are first
// sentences of descriptions, turned into requests; the tool keeps the rest.
func serverSource(dir string) *caseSource {
	s := &caseSource{name: filepath.Base(dir), family: filepath.Base(dir)}
	random := rand.New(rand.NewPCG(1, 8))
	type toolRow struct {
		fitRow
		Server string `json:"server"`
	}
	byServer := map[string][]toolRow{}
	var servers []string
	eachLine(filepath.Join(dir, "corpus.jsonl"), func(line []byte) {
		var r toolRow
		if err := json.Unmarshal(line, &r); err != nil {
			panic(err)
		}
		if r.Server == "" {
			r.Server = r.Category
		}
		if byServer[r.Server] == nil {
			servers = append(servers, r.Server)
		}
		byServer[r.Server] = append(byServer[r.Server], r)
	})
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
				s.messages = append(s.messages, fitRow{Query: request, Gold: []string{id}})
				r.Description = rest
			}
			s.caps = append(s.caps, r.capability(id))
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
func operations(file string) (out []embed.Document) {
	type operation struct {
		API, Title, Name, Summary, Description, Tag string
		Parameters                                  []string
	}
	byAPI := map[string][]operation{}
	var apis []string
	eachLine(file, func(line []byte) {
		var o operation
		if err := json.Unmarshal(line, &o); err != nil {
			panic(err)
		}
		if low := strings.ToLower(o.API + o.Title); strings.Contains(low, "spotify") || strings.Contains(low, "tmdb") || strings.Contains(low, "themoviedb") || o.Summary == "" {
			return // the dev sets are made of these
		}
		if byAPI[o.API] == nil {
			apis = append(apis, o.API)
		}
		byAPI[o.API] = append(byAPI[o.API], o)
	})
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
