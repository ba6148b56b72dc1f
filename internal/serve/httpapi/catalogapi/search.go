package catalogapi

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/find/discover"
	"ken/internal/serve/httpapi/wire"
)

// A SearchAnswer is a page of what was typed for.
type SearchAnswer struct {
	Hits   []SearchHit `json:"hits"`
	Total  int         `json:"total"`          // that the filters let through
	Next   string      `json:"next,omitempty"` // after of the next page
	Facets Facets      `json:"facets"`

	// Fits means that something has what was typed in its name, or that the
	// chance that what was found fits reached discovery.tier1MinRelevance. The
	// hits are the nearest there is otherwise.
	Fits bool `json:"fits"`

	TookUS   int64    `json:"tookUS"`
	Degraded []string `json:"degraded"`
}

// A SearchHit is a capability in a line. The description is cut, with an
// ellipsis, where it is long.
type SearchHit struct {
	ID          capability.ID   `json:"id"`
	Kind        capability.Kind `json:"kind"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Category    string          `json:"category"`
	State       string          `json:"state"`
	Available   bool            `json:"available"`
	Score       float64         `json:"score"`         // of Find; 0: its name alone was typed, or nothing was
	Own         bool            `json:"own,omitempty"` // one of Ken's own tools
}

// Facets count, for each value of a filter, what it would let through with the
// other filters as they are. Of categories there are the 500 largest.
type Facets struct {
	Kinds          map[string]int `json:"kinds"`
	Categories     map[string]int `json:"categories"`
	States         map[string]int `json:"states"`
	MoreCategories int            `json:"moreCategories,omitempty"`
}

const (
	usualHits      = 50
	mostHits       = 200
	mostCategories = 500
	longestTyped   = 200 // bytes; what is longer is no beginning of a name
	longestLine    = 240 // bytes of a description
)

// How well a name fits what was typed, the best first. It is compared without
// letter case, and what separates words is a blank: "read fi" begins
// "read_file". Of one rank they are in the order of their names, but for what
// was found, which is in that of its score.
const (
	isIt     uint8 = iota // the name or the id
	begins                // either begins with it
	found                 // by Find, whatever the floor
	contains              // the name, the id or the category has it somewhere
	apart                 // nothing of these
)

func (s *server) search(r *wire.Request) (any, error) {
	start := time.Now()
	v := s.view(r)
	t := tableOf(v)
	limit := r.Whole("limit", usualHits)
	if limit < 1 || limit > mostHits {
		return nil, wire.Bad("limit is " + strconv.Itoa(limit) + "; it is within 1 to " + strconv.Itoa(mostHits))
	}
	f := t.filter(r)
	out := SearchAnswer{Hits: []SearchHit{}, Degraded: []string{}, Fits: true}
	order, scores := t.all, []float64(nil)
	typed := strings.TrimSpace(r.Text("q"))
	if typed != "" {
		sel, err := s.find(r, v, typed)
		if err != nil {
			return nil, err
		}
		ranks := t.ranks(typed)
		floor := s.Door.Settings(v, capability.Scope{}).MinRelevance
		out.Fits = len(sel.Ranking) > 0 && sel.Fit >= floor || t.named(ranks, f)
		order, scores = t.ordered(ranks, sel.Ranking)
		out.Degraded = append(out.Degraded, sel.Degraded...)
	}
	from, err := t.cursor(r.Text("after"), typed == "")
	if err != nil {
		return nil, err
	}
	out.Facets, out.Total = t.count(order, f)
	out.Hits, out.Next = t.page(order[min(from, len(order)):], from, f, scores, limit)
	out.TookUS = time.Since(start).Microseconds()
	return out, nil
}

// page returns the first of some rows that pass, and where the next page begins.
func (t *table) page(rows []int32, from int, f filter, scores []float64, limit int) (hits []SearchHit, next string) {
	hits = []SearchHit{}
	for at, i := range rows {
		w := &t.rows[i]
		switch {
		case !f.passes(w):
		case len(hits) < limit:
			hits = append(hits, w.hit(scores, int(i)))
		case scores != nil:
			return hits, strconv.Itoa(from + at)
		default:
			return hits, t.rows[i-1].cursor()
		}
	}
	return hits, ""
}

// find asks Find. What is shown in full is not read for it, and what cannot
// be used here is left out afterwards: for Find it is so for everybody, for the
// table only for those who do not see what it needs.
func (s *server) find(r *wire.Request, v door.View, typed string) (door.Found, error) {
	none := 0
	q := door.Query{
		Text: typed, Now: time.Now(), AmongCards: true, Override: door.Override{FullK: &none},
		Filter: door.Filter{Kinds: kinds(r), Category: r.Text("category")},
	}
	return s.Door.Preview(r.Context(), v, q)
}

// named reports whether one of the rows that pass has what was typed.
func (t *table) named(ranks []uint8, f filter) bool {
	for i, rank := range ranks {
		if rank != apart && f.passes(&t.rows[i]) {
			return true
		}
	}
	return false
}

// ranks says how each row fits what was typed.
func (t *table) ranks(typed string) []uint8 {
	out := make([]uint8, len(t.rows))
	want := folded(strings.Join(strings.Fields(typed), " "))
	for i := range t.rows {
		out[i] = apart
		if w := &t.rows[i]; len(typed) <= longestTyped {
			out[i] = w.fits(want)
		}
	}
	return out
}

func (w *row) fits(want string) uint8 {
	_, local, _ := strings.Cut(w.id, " ")
	switch {
	case w.name == want || w.id == want:
		return isIt
	case strings.HasPrefix(w.name, want) || strings.HasPrefix(w.id, want) || strings.HasPrefix(local, want):
		return begins
	case strings.Contains(w.name, want) || strings.Contains(w.id, want) || strings.Contains(w.other, want):
		return contains
	}
	return apart
}

// ordered puts the rows that fit, or were found, in order, with the scores of
// those that were.
func (t *table) ordered(ranks []uint8, ranking []discover.Nearest) ([]int32, []float64) {
	scores := make([]float64, len(t.rows))
	var hits []int32
	for _, n := range ranking {
		at, ok := slices.BinarySearchFunc(t.byID, n.ID, func(i int32, id capability.ID) int {
			return strings.Compare(string(t.rows[i].ID), string(id))
		})
		if !ok {
			continue
		}
		i := t.byID[at]
		scores[i] = n.Score
		if ranks[i] > found {
			ranks[i] = found
			hits = append(hits, i)
		}
	}
	var count [apart + 1]int
	for _, rank := range ranks {
		count[rank]++
	}
	out := make([]int32, len(ranks)-count[apart])
	var next [apart]int
	for rank := 1; rank < int(apart); rank++ {
		next[rank] = next[rank-1] + count[rank-1]
	}
	copy(out[next[found]:], hits)
	for i, rank := range ranks {
		if rank != apart && rank != found {
			out[next[rank]] = int32(i)
			next[rank]++
		}
	}
	return out, scores
}

// cursor reads where a page begins. In a list of all that is by name, so that
// a catalog that changes in between costs nothing; in what was typed for, how
// many rows go before it.
func (t *table) cursor(after string, listing bool) (int, error) {
	if after == "" {
		return 0, nil
	}
	wrong := wire.Bad("after is not what next of the page before was; begin without it")
	if !listing {
		n, err := strconv.Atoi(after)
		if err != nil || n < 0 {
			return 0, wrong
		}
		return n, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(after)
	name, id, ok := strings.Cut(string(b), "\x00")
	if err != nil || !ok {
		return 0, wrong
	}
	last := row{Entry: &door.Entry{Capability: &capability.Capability{ID: capability.ID(id)}}, sort: name}
	at, there := slices.BinarySearchFunc(t.rows, last, compareRows)
	if there {
		at++
	}
	return at, nil
}

// cursor names a row as the last of a page.
func (w *row) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(w.sort + "\x00" + string(w.ID)))
}

func (w *row) hit(scores []float64, i int) SearchHit {
	h := SearchHit{
		ID: w.ID, Kind: w.Kind, Name: w.Name, Description: line(w.Description), Category: w.Category, State: string(w.State), Available: w.Available, Own: w.own,
	}
	if scores != nil {
		h.Score = scores[i]
	}
	return h
}

// line returns the beginning of a text in one line.
func line(text string) string {
	if len(text) > 4*longestLine {
		text = text[:4*longestLine]
	}
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= longestLine {
		return text
	}
	cut := strings.ToValidUTF8(text[:longestLine], "")
	if i := strings.LastIndexByte(cut, ' '); i > longestLine/2 {
		cut = cut[:i]
	}
	return cut + "…"
}
