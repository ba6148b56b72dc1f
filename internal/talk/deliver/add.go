package deliver

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/model"
	"ken/internal/talk/session"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
	"ken/llm"
)

// AddInput is what a turn found.
type AddInput struct {
	Delivery model.DeliveryMode
	Found    door.Found
	Offers   []Offer // of what was found, best first
	Live     Live
	News     string // of the catalog since the last turn, ready to be shown; empty: none

	// NewsMarks are the marks of the entries that News mentions.
	NewsMarks map[capability.ID]string

	// Core and Last are those of [PlanInput]. Only per_turn needs them.
	Core []Offer
	Last []llm.Tool

	NearlyFull bool              // the window is nearly full: fewer tools
	Count      tokenizer.Counter // nil: exact
}

// The most tools that a turn gives, and that with the window nearly full.
const (
	maxTools           = 8
	maxToolsNearlyFull = 6
)

// describeCost is what a request costs by which a model reads what it has only a line
// of, in tokens that are carried for half a session. Something is given whole
// where that costs less than not having it, by the probability that it is what
// was asked for. (That probability is of one tool; a message may want two.)
const describeCost = 1000

// worth reports whether something of so many tokens is given whole.
func worth(score float64, tokens int) bool { return score*describeCost >= (1-score)*float64(tokens) }

// maxToolOverhead is how many tokens a tool may take more than the text about it. Some
// schemas are as long as a book; they are called through the bridge.
const maxToolOverhead = 600

// searched is how many capabilities the answer to one search makes tools.
const searched = 2

// maxSearchedToolTokens is how many tokens a tool may take in the answer to a search.
const maxSearchedToolTokens = 2000

// A mark says of a capability what is live of it: how much, and the hash of
// that. What is live in full needs no line, and what changed is shown again.
const (
	markBrief = "brief:"
	markFull  = "full:"
	markCard  = "card:"
	markTool  = "tool:"
	markList  = "list:"
)

// Listed returns the marks of the listed entries, for the session entry that
// sends the list.
func Listed(l door.Others) map[capability.ID]string {
	marks := make(map[capability.ID]string, len(l.Marks))
	for id, line := range l.Marks {
		marks[id] = ListMark(line)
	}
	return marks
}

// ListMark returns the mark of a line of a list.
func ListMark(line string) string { return markList + hashOf(line) }

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// Add returns the entry to stand beside the message of a turn: what was found and
// is not live. It is false where there is nothing to add. Seq, Turn and Time are
// the session's to set.
//
// What may be shown is what [door.Found] rendered, and where the rollout says
// no, nothing is but News. The map is not repeated: it stands in the system
// text. On per_turn everything is, every time.
func Add(in AddInput) (session.Entry, bool) {
	a := adder{in: in, entry: session.Entry{Kind: session.Added, Shown: map[capability.ID]string{}}, live: map[capability.ID]bool{}}
	for _, o := range in.Live.Tools {
		a.live[o.ID] = true
	}
	switch {
	case !in.Found.Rollout.Inject:
	case in.Delivery == model.PerTurn:
		a.paragraph(in.Found.Prompt())
	case in.Delivery == model.Whole: // the list has everything except what was added since
		a.lines()
		a.cards()
	default:
		if in.Delivery == model.Inline {
			a.tools()
		}
		a.texts()
		a.cards()
	}
	if in.News != "" {
		maps.Copy(a.entry.Shown, in.NewsMarks)
	}
	a.paragraph(in.News)
	e := &a.entry
	if a.text.Len() > 0 { // the text comes first: it says what the tools are for
		e.Blocks = slices.Insert(e.Blocks, 0, llm.Block{Text: a.text.String()})
	}
	e.Tokens = tokensOf(e.Blocks, counter(in.Count))
	return *e, len(e.Blocks) > 0
}

// An adder is one run of Add.
type adder struct {
	in    AddInput
	entry session.Entry
	live  map[capability.ID]bool // callable as a tool, or about to be
	text  strings.Builder
}

// tools adds what is to be shown in full, as tools.
func (a *adder) tools() {
	offers := given(a.in, a.in.asTool)
	if len(offers) == 0 {
		return
	}
	var block llm.Block
	for _, o := range offers {
		block.Tools = append(block.Tools, o.tool())
		a.entry.Offers = append(a.entry.Offers, o.entry())
		a.entry.Shown[o.ID] = markTool
		a.live[o.ID] = true
	}
	a.entry.Blocks = append(a.entry.Blocks, block)
}

// full reports whether a text is to be given whole. What is no tool always is,
// as it was found; on the delivery mode search tools never are.
func (in *AddInput) full(p door.Piece) bool {
	if !slices.ContainsFunc(in.Offers, func(o Offer) bool { return o.ID == p.ID }) {
		return true
	}
	return in.Delivery != model.Search && worth(p.Score, p.Tokens)
}

// asTool reports whether a capability is to be given as a tool.
func (in *AddInput) asTool(id capability.ID) bool {
	i := slices.IndexFunc(in.Found.Fulls, func(p door.Piece) bool { return p.ID == id })
	if i < 0 {
		return false
	}
	p, tokens := &in.Found.Fulls[i], 0
	for j := range in.Offers {
		if o := &in.Offers[j]; o.ID == id {
			tokens += o.tokens(counter(in.Count))
		}
	}
	return tokens <= p.Tokens+maxToolOverhead && worth(p.Score, tokens)
}

// given are the offers that are not live and wanted, as many as a turn may give.
// A capability's actions are given together or not at all.
func given(in AddInput, want func(capability.ID) bool) []Offer {
	limit := maxTools
	if in.NearlyFull {
		limit = maxToolsNearlyFull
	}
	return fresh(in.Offers, in.Live, limit, want)
}

func fresh(offers []Offer, live Live, limit int, want func(capability.ID) bool) (out []Offer) {
	done := map[capability.ID]bool{}
	for _, o := range live.Tools {
		done[o.ID] = true
	}
	for i := range offers {
		id := offers[i].ID
		if done[id] || !want(id) {
			continue
		}
		done[id] = true
		var all []Offer
		for _, o := range offers[i:] {
			if o.ID == id {
				all = append(all, o)
			}
		}
		if len(out)+len(all) <= limit {
			out = append(out, all...)
		}
	}
	return out
}

// texts shows capabilities that are not callable as tools: lines and full
// texts.
func (a *adder) texts() {
	var fulls []string
	for _, p := range a.in.Found.Fulls {
		if !a.live[p.ID] && a.in.full(p) && a.new(p.ID, markFull, p.Text) {
			fulls = append(fulls, a.name(p.ID)+"\n"+p.Text)
		}
	}
	a.lines()
	if a.text.Len() == 0 && len(fulls) > 0 {
		a.text.WriteString(heading(a.in.Delivery))
	}
	for _, text := range fulls {
		a.paragraph(text)
	}
}

// lines shows one line for each capability that is not callable as a tool and
// not live.
func (a *adder) lines() {
	lines := ""
	for _, p := range a.in.Found.Briefs {
		if text := p.AfterName(); !a.live[p.ID] && a.new(p.ID, markBrief, text) {
			lines += "\n- " + a.name(p.ID) + text
		}
	}
	if lines != "" {
		a.text.WriteString(heading(a.in.Delivery) + lines)
	}
}

// cards shows the cards that are not live.
func (a *adder) cards() {
	found := &a.in.Found
	if !found.Rollout.Cards {
		return
	}
	cards := *found
	cards.Cards = slices.DeleteFunc(slices.Clone(found.Cards), func(p door.Piece) bool { return !a.new(p.ID, markCard, p.Text) })
	a.paragraph(cards.CardsText())
}

// new reports whether a text of a capability is not live, and marks it shown.
func (a *adder) new(id capability.ID, mark, text string) bool {
	hash := mark + hashOf(text)
	for _, shown := range []string{a.in.Live.Shown[id], a.entry.Shown[id]} {
		switch {
		case shown == hash:
			return false
		case mark == markBrief && shown != "" && !strings.HasPrefix(shown, markBrief):
			return false // more than a line of it is there
		}
	}
	a.entry.Shown[id] = hash
	return true
}

// heading says what lines and texts are for.
func heading(r model.DeliveryMode) string {
	switch r {
	case model.Search:
		return "Found, for describe_capability:"
	case model.Whole:
		return "Since this conversation began there is also, for describe_capability:"
	}
	return "Found, for invoke_capability:"
}

func (a *adder) paragraph(text string) {
	if text == "" {
		return
	}
	if a.text.Len() > 0 {
		a.text.WriteString("\n\n")
	}
	a.text.WriteString(text)
}

// name is what a model calls a capability that it sees as text: the name that
// its only tool would have, which is short, or else its id.
func (a *adder) name(id capability.ID) string {
	var only *Offer
	for i := range a.in.Offers {
		o := &a.in.Offers[i]
		if o.ID != id {
			continue
		}
		if only != nil {
			only = nil
			break
		}
		only = o
	}
	if only == nil {
		return untrusted.Line(string(id), 120)
	}
	if e := only.entry(); !slices.Contains(a.entry.Offers, e) {
		a.entry.Offers = append(a.entry.Offers, e)
	}
	return only.Tool.Name
}

func tokensOf(blocks []llm.Block, count tokenizer.Counter) (n int) {
	for _, b := range blocks {
		n += count(b.Text)
		for _, t := range b.Tools {
			n += ToolTokens(t, count)
		}
	}
	return n
}

// Prefix returns the new prefix of a turn, on the delivery modes that change it: extend
// puts new tools at the end, where they stay, and per_turn lists Core, those of
// the turn and Last alone. On whole a tool that came since the session began is
// put at the end when it is found. It is false where the prefix stays as it is. The
// entry goes before the turn's message, and its Text says why the cache is
// lost.
func Prefix(in AddInput) (session.Entry, bool) {
	e := session.Entry{Kind: session.Prefix, System: in.Live.System, Text: "toolDelivery " + string(in.Delivery)}
	listed := func(id capability.ID) bool {
		is := func(p door.Piece) bool { return p.ID == id }
		return slices.ContainsFunc(in.Found.Fulls, is) || slices.ContainsFunc(in.Found.Briefs, is)
	}
	switch {
	case !in.Found.Rollout.Inject:
		return session.Entry{}, false
	case in.Delivery == model.Extend || in.Delivery == model.Whole: // of whole: what came after it began
		want := in.asTool
		if in.Delivery == model.Whole {
			want = listed // there may be no other way to call it
		}
		offers := given(in, want)
		if len(offers) == 0 {
			return session.Entry{}, false
		}
		e.Tools = slices.Clip(in.Live.Prefix)
		for _, t := range in.Live.Prefix {
			if o, ok := in.Live.Tools[t.Name]; ok {
				e.Offers = append(e.Offers, o)
			}
		}
		for i := range offers {
			e.Tools, e.Offers = append(e.Tools, offers[i].tool()), append(e.Offers, offers[i].entry())
		}
		return e, true
	case in.Delivery == model.PerTurn:
		limit := maxTools
		if in.NearlyFull {
			limit = maxToolsNearlyFull
		}
		core := slices.Clip(in.Core)
		offers := fresh(in.Offers, Live{}, limit, func(id capability.ID) bool {
			return listed(id) && !slices.ContainsFunc(core, func(o Offer) bool { return o.ID == id })
		})
		e.Tools, e.Offers = prefix(append(core, offers...), in.Last)
		same := slices.EqualFunc(e.Tools, in.Live.Prefix, func(a, b llm.Tool) bool {
			return a.Name == b.Name && a.Description == b.Description && string(a.Schema) == string(b.Schema)
		})
		return e, !same
	}
	return session.Entry{}, false
}

// Searched returns what the model's own search adds: a block of the tools found
// that are not live, and which capabilities these are. On the delivery mode search it
// belongs into the result of the search; on inline beside the results, at the
// end of their message. On all others there is none. See also [Instead].
func Searched(delivery model.DeliveryMode, offers []Offer, live Live) ([]llm.Block, []session.Offer) {
	if delivery != model.Search && delivery != model.Inline {
		return nil, nil
	}
	var first []capability.ID
	light := func(id capability.ID) bool {
		if len(first) == searched || slices.ContainsFunc(offers, func(o Offer) bool { return o.ID == id && o.tokens(tokenizer.Count) > maxSearchedToolTokens }) {
			return false
		}
		first = append(first, id)
		return true
	}
	var block llm.Block
	var entries []session.Offer
	for _, o := range fresh(offers, live, maxTools, light) {
		block.Tools, entries = append(block.Tools, o.tool()), append(entries, o.entry())
	}
	if len(entries) == 0 {
		return nil, nil
	}
	return []llm.Block{block}, entries
}

// Instead returns what to tell a model that asked to read a capability of which
// Searched just gave the tools: they say what the text would, and the text would
// be carried to the end of the session. It is false where none was given.
func Instead(id capability.ID, given []session.Offer) (string, bool) {
	var names []string
	for _, o := range given {
		if o.ID == id {
			names = append(names, o.Tool)
		}
	}
	if len(names) == 0 {
		return "", false
	}
	return "You can call it now: " + strings.Join(names, ", "), true
}
