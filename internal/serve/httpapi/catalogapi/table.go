package catalogapi

import (
	"cmp"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/serve/httpapi/wire"
)

// A table is the entries of a view, and the tools of the program, in the order
// of their names, as search needs them. It does not change.
type table struct {
	rows       []row
	all        []int32 // every row, in order
	byID       []int32 // rows in the order of their ids
	kinds      []string
	categories []string
	states     []string
}

type row struct {
	*door.Entry
	sort     string // what it is ordered by
	name, id string // as what is typed is compared with them
	other    string // what else may be typed
	kind     int
	category int
	state    int
	own      bool
}

type tableKey struct{}

func tableOf(v door.View) *table {
	return v.Keep(tableKey{}, func() any { return newTable(v) }).(*table)
}

func newTable(v door.View) *table {
	t := &table{}
	kinds, categories, states := numbers{}, numbers{}, numbers{}
	known, own := map[capability.ID]bool{}, map[capability.ID]bool{}
	for e := range v.Own() {
		own[e.ID] = true
	}
	add := func(e *door.Entry) {
		known[e.ID] = true
		name := folded(e.Name)
		t.rows = append(t.rows, row{
			own: own[e.ID] && e.Trust == capability.TrustBuiltin, Entry: e, sort: strings.ToLower(e.Name), name: name, id: folded(string(e.ID)), other: folded(e.Category),
			kind: kinds.of(string(e.Kind), &t.kinds), category: categories.of(e.Category, &t.categories), state: states.of(string(e.State), &t.states),
		})
	}
	for _, e := range v.Shown() {
		add(e)
	}
	for e := range v.Own() {
		if !known[e.ID] {
			add(e)
		}
	}
	slices.SortFunc(t.rows, compareRows)
	t.all, t.byID = make([]int32, len(t.rows)), make([]int32, len(t.rows))
	for i := range t.rows {
		t.all[i], t.byID[i] = int32(i), int32(i)
	}
	slices.SortFunc(t.byID, func(a, b int32) int { return strings.Compare(string(t.rows[a].ID), string(t.rows[b].ID)) })
	return t
}

func compareRows(a, b row) int {
	return cmp.Or(strings.Compare(a.sort, b.sort), strings.Compare(string(a.ID), string(b.ID)))
}

// numbers give each text a number.
type numbers map[string]int

func (n numbers) of(text string, list *[]string) int {
	i, ok := n[text]
	if !ok {
		i = len(*list)
		n[text] = i
		*list = append(*list, text)
	}
	return i
}

// folded returns a text without letter case, and with blanks for what separates
// words.
func folded(s string) string {
	s = strings.ToLower(s)
	if !strings.ContainsAny(s, "_-./:") {
		return s
	}
	return strings.Map(func(c rune) rune {
		if strings.ContainsRune("_-./:", c) {
			return ' '
		}
		return c
	}, s)
}

// A filter is what of each column passes; nil: all of it.
type filter struct {
	kinds, categories, states []bool
	available                 string
}

func (t *table) filter(r *wire.Request) filter {
	f := filter{available: r.Text("available")}
	if wanted := kinds(r); len(wanted) > 0 {
		f.kinds = among(t.kinds, func(kind string) bool { return slices.Contains(wanted, capability.Kind(kind)) })
	}
	if wanted := r.Text("category"); wanted != "" {
		f.categories = among(t.categories, func(category string) bool { return strings.EqualFold(category, wanted) })
	}
	if wanted := r.Text("state"); wanted != "" {
		f.states = among(t.states, func(state string) bool { return state == wanted })
	}
	return f
}

func among(values []string, passes func(string) bool) []bool {
	out := make([]bool, len(values))
	for i, v := range values {
		out[i] = passes(v)
	}
	return out
}

func (f *filter) kind(w *row) bool     { return f.kinds == nil || f.kinds[w.kind] }
func (f *filter) category(w *row) bool { return f.categories == nil || f.categories[w.category] }
func (f *filter) state(w *row) bool    { return f.states == nil || f.states[w.state] }
func (f *filter) use(w *row) bool {
	return f.available == "" || w.Ready() == (f.available == "true")
}

func (f *filter) passes(w *row) bool {
	return f.kind(w) && f.category(w) && f.state(w) && f.use(w)
}

// count counts rows for the filters, and those that pass all of them.
func (t *table) count(rows []int32, f filter) (Facets, int) {
	kinds, categories, states := make([]int, len(t.kinds)), make([]int, len(t.categories)), make([]int, len(t.states))
	total := 0
	for _, i := range rows {
		w := &t.rows[i]
		if !f.use(w) {
			continue
		}
		k, c, s := f.kind(w), f.category(w), f.state(w)
		if c && s {
			kinds[w.kind]++
		}
		if k && s {
			categories[w.category]++
		}
		if k && c {
			states[w.state]++
		}
		if k && c && s {
			total++
		}
	}
	out := Facets{Kinds: counted(t.kinds, kinds), States: counted(t.states, states), Categories: counted(t.categories, categories)}
	delete(out.Categories, "")
	if n := len(out.Categories); n > mostCategories {
		out.Categories, out.MoreCategories = largest(out.Categories), n-mostCategories
	}
	return out, total
}

func counted(names []string, counts []int) map[string]int {
	out := map[string]int{}
	for i, n := range counts {
		if n > 0 {
			out[names[i]] = n
		}
	}
	return out
}

func largest(counts map[string]int) map[string]int {
	var names []string
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	out := make(map[string]int, mostCategories)
	for _, name := range names[:mostCategories] {
		out[name] = counts[name]
	}
	return out
}
