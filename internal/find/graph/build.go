package graph

import (
	"strings"

	"ken/capability"
	"ken/internal/know/catalog"
)

// Build makes the graph of the entries of one snapshot, in the order in which
// the snapshot gives them. Members of presets are ids or names; a name that
// could mean several entries means the most trusted, and nothing where there
// are two of those. The entries are only read. The work grows with the number
// of entries, tags, requirements and members, and with nothing else.
func Build(entries []*catalog.Entry, presets []capability.Preset) *Graph {
	b := builder{entries: entries}
	g := &Graph{nodes: len(entries)}
	g.needs, g.users = b.dependencies()
	b.presets(g, presets)
	b.tags(g)
	b.categories(g)
	return g
}

type builder struct {
	entries []*catalog.Entry
	ids     map[capability.ID]int32 // active ones, made when first needed
	names   map[string]int32        // likewise; ambiguous where nothing or several could be meant
}

const ambiguous = -1

// id finds an active entry.
func (b *builder) id(id capability.ID) (int32, bool) {
	if b.ids == nil {
		b.ids = make(map[capability.ID]int32, len(b.entries))
		for i, e := range b.entries {
			if e.State == catalog.Active {
				b.ids[e.ID] = int32(i)
			}
		}
	}
	i, ok := b.ids[id]
	return i, ok
}

// member finds what a preset means by a word, as the catalog finds what a
// capability requires: an id, a tool's name, any name.
func (b *builder) member(word string) (int32, bool) {
	if i, ok := b.id(capability.ID(word)); ok {
		return i, true
	}
	if i, ok := b.id(capability.MakeID(capability.KindTool, word)); ok {
		return i, true
	}
	if b.names == nil {
		b.nameAll()
	}
	i, ok := b.names[word]
	return i, ok && i != ambiguous
}

func (b *builder) nameAll() {
	b.names = make(map[string]int32, len(b.entries))
	trust := make(map[string]capability.Trust, len(b.entries))
	for i, e := range b.entries {
		if e.State != catalog.Active {
			continue
		}
		switch best, twice := trust[e.Name]; {
		case !twice || e.Trust > best:
			b.names[e.Name], trust[e.Name] = int32(i), e.Trust
		case e.Trust == best:
			b.names[e.Name] = ambiguous
		}
	}
}

// dependencies returns who needs whom, and the other way round.
func (b *builder) dependencies() (needs, users lists) {
	var out, in []pair
	for i, e := range b.entries {
		if e.State != catalog.Active {
			continue
		}
		for _, id := range e.Requires {
			if to, ok := b.id(id); ok && to != int32(i) {
				out = append(out, pair{int32(i), to})
				in = append(in, pair{to, int32(i)})
			}
		}
	}
	return gather(len(b.entries), out), gather(len(b.entries), in)
}

func (b *builder) presets(g *Graph, presets []capability.Preset) {
	var in, members []pair
	taken := make(map[int32]int) // how many presets one is in
	for p, preset := range presets {
		for _, word := range preset.Members {
			i, ok := b.member(word)
			if !ok || taken[i] == maxPresetsOf {
				continue
			}
			taken[i]++
			in = append(in, pair{i, int32(p)})
			members = append(members, pair{int32(p), i})
		}
	}
	g.groups, g.preset = gather(len(b.entries), in), gather(len(presets), members)
	for p := range presets {
		n := len(g.preset.of(int32(p)))
		g.pairs += n * (n - 1) / 2
	}
}

// tags assigns a number to each tag. Letter case does not matter.
func (b *builder) tags(g *Graph) {
	number := map[string]int32{}
	var has []pair
	for i, e := range b.entries {
		if e.State != catalog.Active {
			continue
		}
		for _, tag := range e.Tags[:min(len(e.Tags), maxTagsOf)] {
			tag = strings.ToLower(tag)
			n, ok := number[tag]
			if !ok {
				n = int32(len(number))
				number[tag] = n
			}
			has = append(has, pair{int32(i), n})
		}
	}
	if len(has) == 0 {
		return
	}
	g.tags = gather(len(b.entries), has)
	g.tagBits = make([]uint64, len(b.entries))
	for _, p := range has {
		g.tagBits[p.list] |= 1 << (uint32(p.value) % 64)
	}
}

func (b *builder) categories(g *Graph) {
	type group struct{ kind, category string }
	number := map[group]int32{}
	var size []int
	g.category = make([]int32, len(b.entries))
	for i, e := range b.entries {
		g.category[i] = -1
		if e.State != catalog.Active || e.Category == "" {
			continue
		}
		key := group{string(e.Kind), strings.ToLower(e.Category)}
		n, ok := number[key]
		if !ok {
			n = int32(len(size))
			number[key] = n
			size = append(size, 0)
		}
		size[n]++
		g.category[i] = n
	}
	for i, n := range g.category {
		if n >= 0 && (size[n] < minCategory || size[n] > maxCategory) {
			g.category[i] = -1
		}
	}
}
