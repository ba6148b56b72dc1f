package show

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/know/catalog"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

// A Page is the full text of one capability, in blocks that can be left out.
// It never changes. What it says follows from the capability's hash and from
// whether its body is withheld; availability is not in it.
type Page struct {
	ID capability.ID

	// Note says what of the capability could not be read or may not be
	// shown; empty means that all of it is here.
	Note string

	blocks []block
	order  []int // of what can be left out: the places in blocks, most important first

	text   string // whole
	tokens int

	// The body's size, and what the capability itself allows to show of it;
	// zero means that it does not say.
	bodyTokens, bodyChars int
	maxTokens, maxChars   int

	heads  [groups]int // prices of what stands around the blocks of a group
	cut    int         // price of the mark where a block is cut
	handle handle
	listed int // price of the id in the list of injected cards
}

// A role says what a block is for. Lower ones are more important.
type role uint8

const (
	title role = iota
	required
	about
	needs
	optional
	instructions
	tags
)

// A group is what a block stands in: blocks of a group share a heading, or a
// fence, which is shown if any of them is.
type group uint8

const (
	alone group = iota
	inSchema
	inBody
	groups
)

// A block is a piece of a page that is shown or left out as a whole.
type block struct {
	role  role
	group group
	frame bool // heading or fence of its group
	glued bool // no blank line stands before it

	name       string // what a reader calls it
	nameTokens int

	text   string
	tokens int
	chars  int
	cuts   []cut
}

// cutMark stands where a block was cut.
const cutMark = " …"

// MakePage renders all that there is to say about an entry. d is its detail as
// it may be shown to a model; a schema that cannot be read costs only itself.
// key makes the fence around the body a secret of this installation, see
// [untrusted.BlockConfig]; it may be empty. Page keeps none of its arguments.
func MakePage(e *catalog.Entry, d capability.Detail, key []byte, count tokenizer.Counter) *Page {
	p := &Page{ID: e.ID, maxTokens: e.TokenBudget, maxChars: e.MaxChars}
	m := maker{p, count}
	body := bodyOf(e, d)
	m.header(e, body != "")
	m.schema(e, d)
	m.needs(e)
	m.body(e, body, key)
	if len(e.Tags) > 0 && e.Kind != capability.KindCard {
		m.add(block{role: tags, name: "Tags", text: "Tags: " + list(e.Tags)})
	}
	if e.Withheld != "" {
		p.Note = joinNotes(p.Note, e.Withheld)
	}
	m.finish()
	return p
}

// Text is the whole page, and Tokens its price.
func (p *Page) Text() string { return p.text }

// Tokens is the price of the whole page.
func (p *Page) Tokens() int { return p.tokens }

// bodyOf returns the body and the usage as one Markdown text, or nothing where
// the body is withheld.
func bodyOf(e *catalog.Entry, d capability.Detail) string {
	switch body, usage := strings.TrimSpace(d.Body), strings.TrimSpace(d.Usage); {
	case e.Withheld != "":
		return ""
	case usage == "":
		return body
	case body == "":
		return "## Usage\n\n" + usage
	default:
		return body + "\n\n## Usage\n\n" + usage
	}
}

// A maker fills a page.
type maker struct {
	*Page
	count tokenizer.Counter
}

func (m maker) add(b block) {
	b.text = unslashed(b.text)
	if b.tokens == 0 {
		b.tokens = closed(m.count, b.text)
	}
	if b.frame {
		m.heads[b.group] += b.tokens
	}
	m.blocks = append(m.blocks, b)
}

// header adds the title and what comes with it. A card has a smaller one, and
// says nothing besides its body if it has one.
func (m maker) header(e *catalog.Entry, body bool) {
	name := cmpOr(untrusted.Line(e.Title(), 80), string(e.ID))
	mark, kind := "# ", "\nKind: "+untrusted.Line(string(e.Kind), 32)+" | Category: "+cmpOr(untrusted.Line(e.Category, 40), "general")
	if e.Kind == capability.KindCard {
		mark, kind = "## ", ""
	}
	// As a whole, because "System" makes a role marker only with the # before it.
	m.add(block{role: title, text: untrusted.Line(mark+name, 100) + kind})
	if e.Kind == capability.KindCard && body {
		return
	}
	if text := unslashed(untrusted.Line(e.Description, 4000)); text != "" {
		b := block{role: about, name: "Description", text: text}
		b.tokens, b.cuts = measure(m.count, b.text)
		m.add(b)
	}
}

// schema adds one line for each property of the input.
func (m maker) schema(e *catalog.Entry, d capability.Detail) {
	var properties []property
	var more int
	var err error
	if len(d.Schema) > 0 {
		properties, more, err = readSchema(d.Schema)
		if err != nil {
			m.Note = joinNotes(m.Note, err.Error()+"; its parameters are shown instead")
		}
	}
	if len(properties) == 0 {
		properties, more = declared(e.Parameters)
	}
	if len(properties) == 0 {
		return
	}
	m.add(block{group: inSchema, frame: true, text: "## Input Schema"})
	for _, p := range properties {
		b := block{role: optional, group: inSchema, glued: true, text: p.line()}
		if p.required {
			b.role = required
		}
		m.add(b)
	}
	if more > 0 {
		m.Note = joinNotes(m.Note, plural(more, "property", "properties")+" of its schema are not shown")
		m.add(block{role: optional, group: inSchema, glued: true, text: "  (+" + plural(more, "more parameter", "more parameters") + ")"})
	}
}

// needs adds what must be there for the capability to work.
func (m maker) needs(e *catalog.Entry) {
	var lines []string
	if len(e.RequiredSecrets) > 0 {
		lines = append(lines, "Required secrets: "+list(e.RequiredSecrets))
	}
	if r := requirements(e); len(r) > 0 {
		lines = append(lines, "Requires: "+list(r))
	}
	if len(lines) > 0 && e.Kind != capability.KindCard {
		m.add(block{role: needs, name: "Requirements", text: strings.Join(lines, "\n")})
	}
}

// body adds what others wrote at length, fenced, by its sections. The fence is
// that of the whole body: what no part of it contains, no excerpt does.
func (m maker) body(e *catalog.Entry, body string, key []byte) {
	if body == "" {
		return
	}
	fenced := untrusted.Block(body, untrusted.BlockConfig{
		Origin: string(e.ID), Key: key, Max: maxBody, Trusted: e.Trust >= capability.TrustUser,
	})
	open, rest, _ := strings.Cut(fenced, "\n")
	last := strings.LastIndexByte(rest, '\n')
	text, end := oneBlankLine(rest[:last]), rest[last+1:]
	switch e.Kind {
	case capability.KindCard:
	case capability.KindSkill:
		open = "## Skill Instructions\n" + open
	default:
		open = "## Instructions\n" + open
	}
	m.add(block{group: inBody, frame: true, text: open})
	for i, s := range sections(text) {
		if e.Trust < capability.TrustUser { // its headings are not repeated outside the fence
			s.name = "section " + strconv.Itoa(i+1)
		}
		b := block{role: instructions, group: inBody, glued: i == 0 || !s.blank, name: s.name, text: unslashed(s.text)}
		b.tokens, b.cuts = measure(m.count, b.text)
		b.chars = utf8.RuneCountInString(b.text)
		m.bodyTokens += b.tokens
		m.bodyChars += b.chars
		m.add(b)
	}
	m.add(block{group: inBody, frame: true, glued: true, text: end})
}

// finish joins the blocks, orders them by importance and counts what an excerpt
// needs besides.
func (m maker) finish() {
	var b strings.Builder
	for i := range m.blocks {
		m.blocks[i].writeTo(&b, b.Len() == 0, m.blocks[i].text)
		m.tokens += m.blocks[i].tokens
	}
	m.text = b.String()
	for r := title; r <= tags; r++ {
		for i := range m.blocks {
			if m.blocks[i].role == r && !m.blocks[i].frame {
				m.order = append(m.order, i)
			}
		}
	}
	m.cut = closed(m.count, cutMark)
	id := lineOfID(m.ID)
	m.listed = max(m.count(" "+id+","), closed(m.count, " "+id))
	m.makeHandle(id)
}

func (b *block) writeTo(w *strings.Builder, first bool, text string) {
	switch {
	case first:
	case b.glued:
		w.WriteByte('\n')
	default:
		w.WriteString("\n\n")
	}
	w.WriteString(text)
}

// oneBlankLine leaves at most one blank line in a row.
func oneBlankLine(s string) string {
	for strings.Contains(s, "\n\n\n") {
		s = strings.ReplaceAll(s, "\n\n\n", "\n\n")
	}
	return s
}

// list joins words of others, all of them up to a limit that is marked.
func list(words []string) string {
	const most = 24
	var b strings.Builder
	for i, w := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		if i == most {
			b.WriteString("+" + plural(len(words)-i, "more", "more"))
			break
		}
		b.WriteString(untrusted.Line(w, 60))
	}
	return b.String()
}

func joinNotes(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
