package show

import (
	"strconv"

	"ken/capability"
)

// An Item is a capability that was chosen to be shown. Score, Why, Attached and
// Forced are only passed on.
type Item struct {
	ID       capability.ID
	Score    float64
	Why      []string
	Attached capability.ID // the capability that needs it, if that is why it is here
	Forced   bool          // capabilities.forceInclude names it

	Brief Brief // among the briefs
	Page  *Page // among cards and full texts
}

// Input is what there is to show. Briefs and Fulls are in the order of their
// rank, Cards in that of their priority.
type Input struct {
	Map    *Map
	Briefs []Item
	Cards  []Item
	Fulls  []Item
}

// A Piece is one capability as it is shown.
type Piece struct {
	ID       capability.ID `json:"id"`
	Score    float64       `json:"score"`
	Why      []string      `json:"why"`
	Attached capability.ID `json:"attached,omitempty"`
	Text     string        `json:"text"`
	Tokens   int           `json:"tokens"`

	Forced bool `json:"-"` // see [Item]

	Number int `json:"number,omitempty"` // of a brief, from 1

	// NameEnd is where the name of a brief ends in Text. About is where the text
	// about a tool begins, and 0 for other kinds and without such a text.
	NameEnd int `json:"-"`
	About   int `json:"-"`

	// Truncated says that Text is an excerpt: LeftOut names what is missing,
	// Reason the limit that is to blame.
	Truncated bool     `json:"truncated,omitempty"`
	LeftOut   []string `json:"leftOut,omitempty"`
	Reason    string   `json:"reason,omitempty"`

	// Note is the page's own, see [Page].
	Note string `json:"note,omitempty"`
}

// AfterName returns the text of a brief without its number and name: ": about"
// for a tool, " (kind). about" for the others.
func (p *Piece) AfterName() string {
	switch {
	case p.About > 0:
		return ": " + p.Text[p.About:]
	case p.NameEnd > 0:
		return p.Text[p.NameEnd:]
	}
	return ": " + p.Text
}

// Shown is what is shown, and what is not.
type Shown struct {
	Document  string  `json:"document,omitempty"` // AGENTS.md of the catalog
	Map       string  `json:"map"`
	MapDetail string  `json:"mapDetail"` // see [Fitted]
	Briefs    []Piece `json:"briefs"`
	Cards     []Piece `json:"cards"`
	Fulls     []Piece `json:"fulls"`
	Skipped   []Skip  `json:"skipped"`
	Tokens    Tokens  `json:"tokens"`

	// Truncated says that a budget kept something back: an excerpt was made or
	// something skipped. A map with less detail alone does not count.
	Truncated bool `json:"truncated"`

	briefs string // the text of all briefs
}

// Assemble shows as much of in as the budget allows. No tier and not the total
// ever costs more than its budget. The document is served first, within as much
// as the map may take beside it, then the map, then the briefs,
// the cards and last the full texts; so where the total is too small, full
// texts give way first, then cards, then briefs. A capability that is shown as
// a card is not shown in full again.
func Assemble(b Budget, in Input) Shown {
	a := assembler{Budget: b, own: in.Map.words(), left: max(b.Total, 0)}
	a.theDocument(in.Map)
	a.theMap(in.Map)
	a.theBriefs(in.Briefs)
	a.theCards(in.Cards)
	a.theFulls(in.Fulls)
	t := &a.out.Tokens
	t.Total = t.Document + t.Map + t.Briefs + t.Cards + t.Fulls
	return a.out
}

// An assembler is one run of Assemble.
type assembler struct {
	Budget
	own  ownWords
	left int // of the total
	out  Shown
}

// words returns the prices of Ken's own words, as the map's counter has them.
func (m *Map) words() ownWords {
	if m == nil {
		return o200kWords()
	}
	return m.own
}

// o200kWords are the prices where there is no map to ask.
func o200kWords() ownWords { return ownWords{briefs: 3, cards: 8, injected: 2} }

// A tier is one tier's part of the budget.
type tier struct {
	name Tier
	knob string
	cap  int
	left int
}

func newTier(name Tier, knob string, budget int) tier {
	budget = max(budget, 0)
	return tier{name, knob, budget, budget}
}

// room is how much of a tier can be used within the total.
func (a *assembler) room(t *tier) int { return min(t.left, a.left) }

func (a *assembler) spend(t *tier, n int) {
	t.left -= n
	a.left -= n
}

// why names the limit that leaves so little room.
func (a *assembler) why(t *tier, wanted int) string {
	knob, budget, left := t.knob, t.cap, t.left
	if a.left < t.left {
		knob, budget, left = "discovery.totalTokenBudget", max(a.Total, 0), a.left
	}
	text := make([]byte, 0, 96)
	text = append(text, knob...)
	text = append(text, ' ')
	text = strconv.AppendInt(text, int64(budget), 10)
	text = append(text, " has "...)
	text = strconv.AppendInt(text, int64(left), 10)
	text = append(text, " left, it needs "...)
	text = strconv.AppendInt(text, int64(wanted), 10)
	return string(text)
}

// drop skips what does not fit.
func (a *assembler) drop(it *Item, t *tier, wanted int) {
	a.skip(it.ID, it.Score, t, wanted, a.why(t, wanted))
	a.out.Truncated = true
}

func (a *assembler) skip(id capability.ID, score float64, t *tier, wanted int, reason string) {
	a.out.Skipped = append(a.out.Skipped, Skip{ID: id, Tier: t.name, Reason: reason, Score: score, Wanted: wanted, Had: a.room(t)})
}

func (a *assembler) skipAll(items []Item, t *tier, reason string) {
	for i := range items {
		a.skip(items[i].ID, items[i].Score, t, 0, reason)
	}
}

// theDocument shows AGENTS.md in full or not at all. It has its own budget, as
// large as the map's, so it takes no names from the map.
func (a *assembler) theDocument(m *Map) {
	text, tokens := m.Document()
	if text == "" {
		return
	}
	t := newTier(TierMap, "discovery.tier0TokenBudget", a.Map)
	if tokens > a.room(&t) {
		a.skip("", 0, &t, tokens, "AGENTS.md: "+a.why(&t, tokens))
		a.out.Truncated = true
		return
	}
	a.out.Document, a.out.Tokens.Document = text, tokens
	a.spend(&t, tokens)
}

func (a *assembler) theMap(m *Map) {
	t := newTier(TierMap, "discovery.tier0TokenBudget", a.Map)
	f := m.Fit(a.room(&t))
	a.out.Map, a.out.MapDetail, a.out.Tokens.Map = f.Text, f.Detail, f.Tokens
	a.spend(&t, f.Tokens)
}

func (a *assembler) theBriefs(items []Item) {
	t := newTier(TierBriefs, "discovery.tier1TokenBudget", a.Briefs)
	if a.Mode == Lazy {
		a.skipAll(items, &t, lazyReason)
		return
	}
	if len(items) == 0 {
		return
	}
	starts := make([]int, 0, 32) // where each brief begins in text
	text := make([]byte, 0, 224*min(len(items), mostNumbers)+64)
	head := a.own.briefs
	a.out.Briefs = make([]Piece, 0, min(len(items), mostNumbers))
	for i := range items {
		it := &items[i]
		line, mark, tokens := it.Brief.in(a.Mode)
		n := len(a.out.Briefs)
		if head+tokens > a.room(&t) || n == mostNumbers {
			a.drop(it, &t, head+tokens)
			if a.Stop {
				a.skipAll(items[i+1:], &t, stopReason)
				break
			}
			continue
		}
		a.spend(&t, head+tokens)
		if n == 0 {
			text = append(text, briefsHead...)
		}
		text = append(text, '\n')
		starts = append(starts, len(text))
		text = strconv.AppendInt(text, int64(n+1), 10)
		text = append(text, '.')
		number, about := len(text)-starts[n], 0
		if it.Brief.about > 0 && it.Brief.about < len(line) {
			about = number + it.Brief.about
		}
		text = append(text, line...)
		text = append(text, mark...)
		a.out.Tokens.Briefs += head + tokens
		head = 0
		a.out.Briefs = append(a.out.Briefs, Piece{
			ID: it.ID, Score: it.Score, Why: it.Why, Attached: it.Attached, Forced: it.Forced, Number: n + 1, Tokens: tokens,
			NameEnd: number + it.Brief.name, About: about,
		})
	}
	a.out.briefs = string(text)
	for i := range a.out.Briefs {
		end := len(text)
		if i+1 < len(a.out.Briefs) {
			end = starts[i+1] - 1
		}
		a.out.Briefs[i].Text = a.out.briefs[starts[i]:end]
	}
}

const (
	lazyReason = "promptMode lazy shows the map alone"
	nameReason = "promptMode names shows names alone"
	stopReason = "budgetPolicy stop: one before it did not fit"
)

func (a *assembler) theCards(items []Item) {
	t := newTier(TierCards, "capabilities.maxTokens", a.Cards)
	head := a.own.cards + a.own.injected
	a.out.Cards, a.out.Tokens.Cards = a.pages(items, &t, head)
}

func (a *assembler) theFulls(items []Item) {
	t := newTier(TierFulls, "discovery.tier2TokenBudget", a.Fulls)
	a.out.Fulls, a.out.Tokens.Fulls = a.pages(items, &t, 0)
}

// pages shows pages within a tier. head is what the first of them costs
// besides; it is 0 for full texts, which need no heading and no list of ids.
func (a *assembler) pages(items []Item, t *tier, head int) (out []Piece, sum int) {
	switch {
	case len(items) == 0:
		return nil, 0
	case a.Mode == Lazy:
		a.skipAll(items, t, lazyReason)
		return nil, 0
	case a.Mode == Names:
		a.skipAll(items, t, nameReason)
		return nil, 0
	}
	out = make([]Piece, 0, len(items))
	for i := range items {
		it := &items[i]
		p := it.Page
		if p == nil {
			a.skip(it.ID, it.Score, t, 0, "its text could not be read")
			continue
		}
		if a.isCard(it.ID) {
			continue // shown already
		}
		extra := head
		if t.name == TierCards {
			extra += p.listed
		}
		piece, ok := a.page(p, items[i+1:], t, extra)
		if !ok {
			a.drop(it, t, p.tokens+extra)
			if a.Stop {
				a.skipAll(items[i+1:], t, stopReason)
				break
			}
			continue
		}
		piece.ID, piece.Score, piece.Why, piece.Attached, piece.Forced, piece.Note = it.ID, it.Score, it.Why, it.Attached, it.Forced, p.Note
		a.out.Truncated = a.out.Truncated || piece.Truncated
		a.spend(t, piece.Tokens+extra)
		sum += piece.Tokens + extra
		head = 0
		out = append(out, piece)
	}
	return out, sum
}

// page shows a page whole if it fits, else an excerpt that leaves later ones
// their share.
func (a *assembler) page(p *Page, later []Item, t *tier, extra int) (Piece, bool) {
	room := a.room(t) - extra
	if p.fits(room) {
		return Piece{Text: p.text, Tokens: p.tokens}, true
	}
	if a.Stop {
		return Piece{}, false
	}
	if p.tokens <= room {
		piece, ok := p.excerpt(room)
		piece.Reason = p.own()
		return piece, ok
	}
	piece, ok := p.excerpt(room - a.reserved(later, room))
	if !ok {
		piece, ok = p.excerpt(room)
	}
	if ok {
		piece.Reason = a.why(t, p.tokens+extra)
	}
	return piece, ok
}

// reserved is what is kept for the pages after one that does not fit: their
// price, but at most an equal part each, of which the first has two.
func (a *assembler) reserved(later []Item, room int) int {
	sum := 0
	share := room / (len(later) + 2)
	for i := range later {
		if p := later[i].Page; p != nil && !a.isCard(later[i].ID) {
			sum += min(p.tokens, share)
		}
	}
	return sum
}

// isCard reports whether a capability is shown as a card already.
func (a *assembler) isCard(id capability.ID) bool {
	for i := range a.out.Cards {
		if a.out.Cards[i].ID == id {
			return true
		}
	}
	return false
}
