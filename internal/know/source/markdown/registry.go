package markdown

import (
	"bytes"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// Registries: the metadata of cards in one file, which points to their texts
// by filePath. The card's own frontmatter is the authority; a registry only
// fills in what it leaves out, and says where the two differ.
//
// A card that a registry names is brought by the registry, once: its own unit,
// where it has one, stands back (see [format.Unit.Replaces]). A card that the registry
// could not bring is left to its own unit.

// RegistryFormat returns the format of registries of cards.
func RegistryFormat() format.Format {
	return format.Format{Name: "registry", Claims: isRegistry, Limit: format.ListLimit, Keep: true, Read: readRegistry}
}

func isRegistry(p string, head []byte) bool {
	if format.IsListFile(p, "capabilities.registry") {
		return true
	}
	// Other programs have files of this name, too.
	return format.IsListFile(p, "registry") && (bytes.Contains(head, []byte("filePath")) || bytes.Contains(head, []byte("file_path")))
}

func readRegistry(u *format.Unit) {
	doc, err := yamldoc.ParseValue(u.Data, format.ListLimits())
	if err != nil {
		u.FaultErr("bad-registry", u.Path, 1, err)
		return
	}
	list, ok := registryEntries(doc)
	if !ok || len(list) == 0 {
		u.Fault("bad-registry", u.Path, doc.Line, "the registry lists no cards", "write a list of entries with id, filePath and triggers")
		return
	}
	g := &registry{Unit: u, seen: map[string]int{}}
	for _, item := range list {
		g.read(item)
	}
}

// registryEntries returns the entries of a registry: a list, one that stands
// under a key, or a single entry.
func registryEntries(doc yamldoc.Value) ([]yamldoc.Value, bool) {
	switch v := doc.Any.(type) {
	case []yamldoc.Value:
		return v, true
	case *yamldoc.Map:
		r := yamldoc.NewReader(v)
		if f, ok := r.Field("capabilities", "cards", "registry"); ok {
			list, isList := f.Value.Any.([]yamldoc.Value)
			return list, isList
		}
		return []yamldoc.Value{doc}, len(v.Fields) > 0
	}
	return nil, false
}

// A registry is one being read.
type registry struct {
	*format.Unit
	seen map[string]int // cards named so far, with the line
}

// read brings the card of one entry.
func (g *registry) read(item yamldoc.Value) {
	entry, ok := item.Any.(*yamldoc.Map)
	if !ok {
		g.Fault("bad-entry", g.Path, item.Line, "an entry is not written as keys and values", "write id, filePath and triggers")
		return
	}
	r := yamldoc.NewReader(entry)
	given := r.String("filePath", "file")
	line := max(r.Line("filePath"), 1)
	if given == "" {
		g.Fault("bad-entry", g.Path, line, "an entry names no card", "add filePath: and the card's path from the top of the tree")
		return
	}
	p, data, err := g.cardFile(given)
	if err != nil {
		problem := safefs.Problem(err, capability.Grave, g.Origin(g.Path, line))
		problem.Message = given + ": " + problem.Message
		g.Problems = append(g.Problems, problem)
		return
	}
	if first, twice := g.seen[p]; twice {
		g.Fault("duplicate-entry", g.Path, line, fmt.Sprintf("%s is already named on line %d", given, first), "keep one entry for each card")
		return
	}
	g.seen[p] = line
	g.bring(p, data, entry)
}

// cardFile reads a card by the path that the registry gave: from the top of
// the tree, or else from the registry's own folder. Only text is read, so that
// a registry cannot bring in, say, a file of secrets.
func (g *registry) cardFile(given string) (p string, data []byte, err error) {
	if path.IsAbs(given) || filepath.IsAbs(given) {
		return "", nil, &safefs.Error{
			Code: "leaves-root", Message: "Path traversal detected: absolute paths are refused",
			Fix: "name the card from the top of the tree, as in cards/x.md",
		}
	}
	if p, err = safefs.Join(".", given); err != nil {
		return "", nil, err
	}
	if !safefs.HasExt(given, ".md", ".markdown", ".txt") {
		return "", nil, &safefs.Error{Code: "not-a-card", Message: "a card is a Markdown file", Fix: "name a file that ends in .md"}
	}
	if beside := path.Join(path.Dir(g.Path), p); !g.Root.Exists(p) && g.Root.Exists(beside) {
		p = beside
	}
	g.Also = append(g.Also, p)
	data, _, err = g.Root.Read(p, safefs.TextLimit)
	return p, data, err
}

// registryLines is added to the lines of what the registry says, so that one
// map can hold fields of two files and every problem still names its place.
const registryLines = 1 << 24

func (g *registry) bring(p string, data []byte, entry *yamldoc.Map) {
	data, ok := g.Text(p, data, false)
	if !ok {
		return
	}
	pg, err := format.SplitPage(data, yamldoc.Limits{})
	if err != nil {
		g.FaultErr("bad-frontmatter", p, pg.MetaLine, err)
		return
	}
	at := func(line int) (string, int) {
		if line > registryLines {
			return g.Path, line - registryLines
		}
		return p, pg.Line(line)
	}
	meta, differ := mergeCard(pg.Meta, entry)
	body := strings.TrimSpace(pg.Body)
	c := cardOf(g.Unit, meta, body, cardName(p), at)
	if c == nil {
		return
	}
	if len(differ) > 0 {
		g.Warn("registry-drift", g.Path, entry.Line,
			fmt.Sprintf("the registry and %s differ in %s; the card's own word counts", g.Root.Display(p), strings.Join(differ, ", ")),
			"correct the registry, or leave these keys to the card")
	}
	lintCard(g.Unit, c, body, p)
	g.Replaces = append(g.Replaces, p)
	g.Add(c, capability.Detail{Body: body}, g.Path, entry.Line)
}

// mergeCard puts the frontmatter of a card and its entry in a registry
// together: the frontmatter's fields, and those of the entry that it lacks. It
// names the keys in which the two differ.
func mergeCard(front, entry *yamldoc.Map) (merged *yamldoc.Map, differ []string) {
	merged = &yamldoc.Map{Line: entry.Line + registryLines}
	if front != nil {
		merged.Line = front.Line
		merged.Fields = append(merged.Fields, front.Fields...)
	}
	for _, f := range entry.Fields {
		mine := f
		mine.Line, mine.Value = f.Line+registryLines, format.ShiftLines(f.Value, registryLines)
		i := fieldOf(merged, f.Key)
		if i < 0 {
			merged.Fields = append(merged.Fields, mine)
			continue
		}
		theirs, isMap := merged.Fields[i].Value.Any.(*yamldoc.Map)
		own, both := mine.Value.Any.(*yamldoc.Map)
		switch {
		case isMap && both:
			inner, inside := mergeFields(theirs, own)
			merged.Fields[i].Value.Any = inner
			for _, key := range inside {
				differ = append(differ, f.Key+"."+key)
			}
		case merged.Fields[i].Value.Any == nil:
			merged.Fields[i] = mine
		case !sameValue(merged.Fields[i].Value, f.Value):
			differ = append(differ, f.Key)
		}
	}
	return merged, differ
}

// mergeFields does the same for the triggers; own's lines are already moved.
func mergeFields(front, own *yamldoc.Map) (merged *yamldoc.Map, differ []string) {
	merged = &yamldoc.Map{Line: front.Line, Fields: append([]yamldoc.Field(nil), front.Fields...)}
	for _, f := range own.Fields {
		switch i := fieldOf(merged, f.Key); {
		case i < 0:
			merged.Fields = append(merged.Fields, f)
		case merged.Fields[i].Value.Any == nil:
			merged.Fields[i] = f
		case !sameValue(merged.Fields[i].Value, f.Value):
			differ = append(differ, f.Key)
		}
	}
	return merged, differ
}

func sameValue(a, b yamldoc.Value) bool { return bytes.Equal(a.JSON(), b.JSON()) }

// fieldOf finds the field that means the same as a key, or -1.
func fieldOf(m *yamldoc.Map, key string) int {
	want := cardKey(key)
	for i, f := range m.Fields {
		if cardKey(f.Key) == want {
			return i
		}
	}
	return -1
}

// cardKey makes all spellings and synonyms of a key of cards equal.
func cardKey(key string) string {
	switch key = strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(key)); key {
	case "capabilityid":
		return "id"
	case "estimatedtokens":
		return "tokenbudget"
	}
	return key
}
