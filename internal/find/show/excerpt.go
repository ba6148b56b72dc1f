package show

import (
	"strconv"
	"strings"
)

// An excerpt of a page has its most important blocks, whole and in their own
// order, and ends in a line that says what is missing and how to read it. Only
// where no part of a body or description fits whole is one cut within.

// maxListed is how many of the parts that are left out are named in the text.
const maxListed = 4

// A handle is the last line of an excerpt, by its prices:
//
//	[2 sections left out: Install, Examples. describe_capability "skill:github" reads all]
type handle struct {
	read  string // ` describe_capability "skill:github" reads all]`
	short int    // the price of "[excerpt." and read
	long  int    // the price of "[99 sections left out:" and read
	more  int    // " and 99 more."
	rest  int    // " rest of"
	param int    // " 99 parameters,"
	most  int    // the long form with the dearest names
}

func (m maker) makeHandle(id string) {
	h := &m.handle
	h.read = ` describe_capability "` + id + `" reads all]`
	read := closed(m.count, h.read)
	h.short = m.count("[excerpt.") + read
	h.long = max(m.count("[999 sections left out:"), m.count("[1 section left out:")) + read
	h.more = max(m.count(" and 999 more."), m.count(" and 999 more,"))
	h.rest = m.count(" rest of")
	h.param = max(m.count(" 999 parameters,"), m.count(" 999 parameters."), m.count(" 1 parameter,"), m.count(" 1 parameter."))
	h.most = h.long + h.more + h.rest
	var dearest [maxListed]int
	dearest[0] = h.param
	for i := range m.blocks {
		b := &m.blocks[i]
		if b.name == "" {
			continue
		}
		b.nameTokens = max(m.count(" "+b.name), m.count(" "+b.name+","), m.count(" "+b.name+"."))
		n := b.nameTokens
		for k := range dearest {
			if n > dearest[k] {
				n, dearest[k] = dearest[k], n
			}
		}
	}
	for _, n := range dearest {
		h.most += n
	}
}

// A limit is what a page may take: tokens in all, and tokens and characters of
// its body.
type limit struct{ room, tokens, chars int }

// limits returns the limit of a page with so much room.
func (p *Page) limits(room int) limit {
	l := limit{room: room, tokens: p.bodyTokens, chars: p.bodyChars}
	if p.maxTokens > 0 {
		l.tokens = min(l.tokens, p.maxTokens)
	}
	if p.maxChars > 0 {
		l.chars = min(l.chars, p.maxChars)
	}
	return l
}

// own says which limit of its own the page exceeds.
func (p *Page) own() string {
	if p.maxTokens > 0 && p.bodyTokens > p.maxTokens {
		return "its own tokenBudget is " + strconv.Itoa(p.maxTokens) + ", its body has " + strconv.Itoa(p.bodyTokens) + " tokens"
	}
	return "its own maxChars is " + strconv.Itoa(p.maxChars) + ", its body has " + strconv.Itoa(p.bodyChars)
}

// fits reports whether all of the page may be shown in so much room.
func (p *Page) fits(room int) bool {
	return p.tokens <= room &&
		(p.maxTokens <= 0 || p.bodyTokens <= p.maxTokens) && (p.maxChars <= 0 || p.bodyChars <= p.maxChars)
}

// most blocks there can be: properties, sections, and what stands around them.
const maxBlocks = maxProperties + maxSections + 16

// A choice is an excerpt in the making.
type choice struct {
	taken [maxBlocks]bool
	used  [groups]bool
	cut   int // the block that is cut, -1 for none
	at    cut

	tokens int // without the handle
	body   limit
}

// excerpt returns the best part of the page within room; ok is false if there is
// none that says more than the title.
func (p *Page) excerpt(room int) (piece Piece, ok bool) {
	room = max(room, 0)
	long := true
	c, ok := p.choose(room, p.handle.most)
	if !ok {
		long = false
		if c, ok = p.choose(room, p.handle.short); !ok {
			return Piece{}, false
		}
	}
	piece = Piece{ID: p.ID, Truncated: true}
	var b strings.Builder
	b.Grow(p.size(&c))
	for i := range p.blocks {
		blk := &p.blocks[i]
		switch {
		case blk.frame && c.used[blk.group], c.taken[i]:
			blk.writeTo(&b, b.Len() == 0, blk.text)
		case i == c.cut:
			blk.writeTo(&b, b.Len() == 0, blk.text[:c.at.end]+cutMark)
		}
	}
	piece.LeftOut = p.leftOut(&c)
	b.WriteString("\n\n")
	piece.Tokens = c.tokens + p.writeHandle(&b, piece.LeftOut, &c, long)
	piece.Text = b.String()
	return piece, true
}

// size is about the length of an excerpt, so that its text is copied once.
func (p *Page) size(c *choice) int {
	n := len(p.handle.read) + 80 + 50*maxListed
	for i := range p.blocks {
		if c.taken[i] || p.blocks[i].frame {
			n += len(p.blocks[i].text) + 2
		}
	}
	return n + c.at.end + len(cutMark)
}

// choose takes block by block what fits beside a last line of so many tokens.
func (p *Page) choose(room, last int) (c choice, ok bool) {
	c.cut = -1
	l := p.limits(room - last)
	c.body = l
	said := false
	for n, i := range p.order {
		b := &p.blocks[i]
		if p.take(&c, i) {
			said = said || n > 0
			continue
		}
		if b.role == title {
			return c, false
		}
		if b.role == about && p.takeCut(&c, i) {
			said = true
		}
	}
	if c.cut < 0 && !c.used[inBody] {
		for _, i := range p.order {
			if p.blocks[i].role == instructions && p.takeCut(&c, i) {
				said = true
				break
			}
		}
	}
	return c, said
}

// take takes a whole block if it fits.
func (p *Page) take(c *choice, i int) bool {
	b := &p.blocks[i]
	price := p.price(c, b, b.tokens)
	if c.tokens+price > c.body.room {
		return false
	}
	if b.group == inBody {
		if b.tokens > c.body.tokens || b.chars > c.body.chars {
			return false
		}
		c.body.tokens -= b.tokens
		c.body.chars -= b.chars
	}
	c.taken[i], c.used[b.group] = true, true
	c.tokens += price
	return true
}

// takeCut takes as much of a block as fits, up to the end of a line or sentence.
func (p *Page) takeCut(c *choice, i int) bool {
	b := &p.blocks[i]
	for k := len(b.cuts) - 1; k >= 0; k-- {
		at := b.cuts[k]
		n := at.tokens + p.cut
		price := p.price(c, b, n)
		if c.tokens+price > c.body.room || b.group == inBody && (n > c.body.tokens || at.chars > c.body.chars) {
			continue
		}
		c.cut, c.at = i, at
		c.used[b.group] = true
		c.tokens += price
		return true
	}
	return false
}

// price adds to n what stands around the first block of a group.
func (p *Page) price(c *choice, b *block, n int) int {
	if b.group != alone && !c.used[b.group] {
		n += p.heads[b.group]
	}
	return n
}

// leftOut names what of the page is not in the excerpt, parameters as one.
func (p *Page) leftOut(c *choice) []string {
	var names []string
	params, at := 0, 0
	for i := range p.blocks {
		b := &p.blocks[i]
		switch {
		case b.frame || c.taken[i]:
		case b.group == inSchema:
			if params == 0 {
				at = len(names)
			}
			params++
		case i == c.cut:
			names = append(names, "rest of "+b.name)
		default:
			names = append(names, b.name)
		}
	}
	if params > 0 {
		names = append(names[:at:at], append([]string{plural(params, "parameter", "parameters")}, names[at:]...)...)
	}
	return names
}

// writeHandle writes the last line and returns its price.
func (p *Page) writeHandle(b *strings.Builder, names []string, c *choice, long bool) int {
	h := &p.handle
	if !long {
		b.WriteString("[excerpt." + h.read)
		return h.short
	}
	b.WriteString("[" + plural(len(names), "section", "sections") + " left out:")
	shown := names[:min(len(names), maxListed)]
	for i, name := range shown {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" " + name)
	}
	if more := len(names) - len(shown); more > 0 {
		b.WriteString(" and " + strconv.Itoa(more) + " more")
	}
	b.WriteString("." + h.read)
	return h.long + p.listPrice(c, len(names))
}

// listPrice returns the price of the names that writeHandle lists of n, in the
// same order.
func (p *Page) listPrice(c *choice, n int) int {
	price, listed, params := 0, 0, false
	for i := range p.blocks {
		b := &p.blocks[i]
		switch {
		case b.frame || c.taken[i]:
			continue
		case b.group == inSchema && params:
			continue
		case b.group == inSchema:
			params = true
			price += p.handle.param
		default:
			price += b.nameTokens
		}
		if i == c.cut {
			price += p.handle.rest
		}
		if listed++; listed == maxListed {
			break
		}
	}
	if n > maxListed {
		price += p.handle.more
	}
	return price
}
