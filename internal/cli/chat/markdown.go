package chat

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"ken/internal/untrusted"
)

// markdown renders Markdown as it comes. What write and end return is final: a
// block is given when it is complete, a line of code when its line is. All
// text is made safe first, so that the only escapes in the lines are styles of
// our own. Markup that cannot be read is shown as it was written.
//
// The zero value with a width is ready.
type markdown struct {
	width  int
	colour bool

	partial []byte // the line that has not ended
	block   blockKind
	lines   []string // of the block, safe
	code    fence
	items   []int // the indents of the lists that are open, outermost first
	hang    int   // columns before a block that belongs to a list's item
	mark    string
	table   table
	gap     bool // an empty line stood before what comes
	begun   bool // something was given already
}

type blockKind int

const (
	none blockKind = iota
	paragraph
	item
	quote
	tableBlock
	fenced
)

// A fence is how a block of code began.
type fence struct {
	mark   byte
	size   int
	indent int
}

const (
	mostBlock = 16 << 10 // bytes of a block before it is given in parts
	mostCode  = 1 << 20  // bytes of a line of code
	mostRows  = 500      // of a table before its columns are settled
)

// write adds a fragment and returns the lines that it completes.
func (m *markdown) write(text string) []string {
	var out []string
	for {
		at := strings.IndexByte(text, '\n')
		if at < 0 {
			break
		}
		line := text[:at]
		if len(m.partial) > 0 {
			line = string(m.partial) + line
		}
		m.partial, text = m.partial[:0], text[at+1:]
		out = m.line(out, line)
	}
	m.partial = append(m.partial, text...)
	for most := m.longest(); len(m.partial) > most; most = m.longest() {
		rest := string(m.partial)
		at := cutAt(rest, most)
		m.partial = append(m.partial[:0], rest[at:]...)
		out = m.line(out, rest[:at])
		if m.block != fenced {
			out = m.flush(out)
		}
	}
	return out
}

func (m *markdown) longest() int {
	if m.block == fenced {
		return mostCode
	}
	return mostBlock
}

// cutAt returns a place before most to part a text at, after a blank if there is
// one.
func cutAt(s string, most int) int {
	if at := strings.LastIndexByte(s[:most], ' '); at > 0 {
		return at + 1
	}
	for most > 1 && !utf8.RuneStart(s[most]) {
		most--
	}
	return most
}

// end returns what is left. The next write begins a new document.
func (m *markdown) end() []string {
	var out []string
	if len(m.partial) > 0 {
		out = m.line(out, string(m.partial))
	}
	out = m.flush(out)
	*m = markdown{width: m.width, colour: m.colour}
	return out
}

// preview returns what end would, and changes nothing. Of a long line of code it
// returns only the end.
func (m *markdown) preview() []string {
	next := *m
	next.lines, next.items, next.table.rows = slices.Clip(m.lines), slices.Clip(m.items), slices.Clip(m.table.rows)
	if n := len(next.partial) - mostBlock; n > 0 {
		next.partial = bytes.ToValidUTF8(next.partial[n:], nil)
	}
	return next.end()
}

// line takes a whole line.
func (m *markdown) line(out []string, raw string) []string {
	raw = strings.TrimSuffix(raw, "\r")
	if m.block == fenced {
		for line := range strings.SplitSeq(untrusted.Terminal(raw), "\n") {
			out = m.codeLine(out, line)
		}
		return out
	}
	hard := strings.HasSuffix(raw, "  ") && strings.TrimSpace(raw) != ""
	for line := range strings.SplitSeq(safe(raw), "\n") {
		out = m.textLine(out, strings.TrimRight(line, " "), hard)
	}
	return out
}

func (m *markdown) textLine(out []string, line string, hard bool) []string {
	body := strings.TrimLeft(line, " ")
	indent := len(line) - len(body)
	if body == "" {
		out = m.flush(out)
		m.gap = true
		return out
	}
	if m.block == paragraph && len(m.lines) > 0 && indent < 4 {
		if level := setext(body); level > 0 {
			return m.heading(out, level, m.take())
		}
		if m.table.begin(m.lines, body) {
			m.lines, m.block = nil, tableBlock
			return out
		}
	}
	if f, info, ok := fenceOf(body); ok {
		out = m.flush(out)
		f.indent = indent
		m.block, m.code = fenced, f
		return m.give(out, m.frame("╭", info))
	}
	if level, text := atx(body); level > 0 && indent < 4 {
		return m.heading(m.flush(out), level, text)
	}
	if rule(body) {
		out = m.flush(out)
		m.items = nil
		return m.give(out, styled(m.colour, dim, strings.Repeat("─", max(m.width, 3))))
	}
	if mark, text, ok := itemOf(body); ok && (m.block != paragraph || mark[0] < '0' || mark[0] > '9' || mark == "1." || mark == "1)" || m.hang > 0) {
		return m.beginItem(m.flush(out), indent, mark, text, hard)
	}
	if strings.HasPrefix(body, ">") {
		if m.block != quote {
			out = m.flush(out)
			m.block = quote
		}
		return m.add(out, strings.TrimPrefix(strings.TrimPrefix(body, ">"), " "), hard)
	}
	return m.plainLine(out, line, body, indent, hard)
}

// plainLine takes a line that begins nothing by its own.
func (m *markdown) plainLine(out []string, line, body string, indent int, hard bool) []string {
	switch m.block {
	case tableBlock:
		if strings.Contains(body, "|") {
			m.table.add(body)
			if m.table.full() {
				out = m.give(out, m.table.take(m.width, m.colour)...)
			}
			return out
		}
		out = m.flush(out)
	case none:
		if indent >= 4 && len(m.items) == 0 { // code by its indent
			return m.give(out, styled(m.colour, cyan, line))
		}
	}
	if m.block == none {
		m.block, m.hang = paragraph, 0
		if m.items = within(m.items, indent); len(m.items) > 0 {
			m.hang = 2 * len(m.items)
		}
	}
	return m.add(out, body, hard)
}

// within leaves the lists that something so far indented belongs to.
func within(items []int, indent int) []int {
	for len(items) > 0 && items[len(items)-1] >= indent {
		items = items[:len(items)-1]
	}
	return items
}

// add puts a line to the block.
func (m *markdown) add(out []string, text string, hard bool) []string {
	if hard || strings.HasSuffix(text, `\`) {
		text = strings.TrimSuffix(text, `\`) + "\n"
	}
	m.lines = append(m.lines, text)
	size := 0
	for _, l := range m.lines {
		size += len(l)
	}
	if size > mostBlock {
		kind := m.block
		out = m.flush(out)
		if m.block = kind; kind == item {
			m.mark = strings.Repeat(" ", columns(m.mark))
		}
	}
	return out
}

// take empties the block and returns its text; lines that were broken on purpose
// end in a line end.
func (m *markdown) take() string {
	text := strings.ReplaceAll(strings.Join(m.lines, " "), "\n ", "\n")
	m.lines, m.block = nil, none
	return strings.TrimSuffix(text, "\n")
}

// flush returns the block as it is.
func (m *markdown) flush(out []string) []string {
	kind := m.block
	switch kind {
	case none:
		return out
	case fenced:
		m.block = none
		m.begun = true
		return append(out, m.frame("╰", ""))
	case tableBlock:
		m.block = none
		out = m.give(out, m.table.take(m.width, m.colour)...)
		m.table = table{}
		return out
	}
	first, rest := strings.Repeat(" ", m.hang), strings.Repeat(" ", m.hang)
	base := ""
	switch kind {
	case item:
		first, rest = first+m.mark+" ", rest+strings.Repeat(" ", columns(m.mark)+1)
	case quote:
		first = styled(m.colour, dim, "│ ")
		rest, base = first, dim
	}
	lines := m.wrapped(m.take(), base, first, rest)
	return m.give(out, lines...)
}

// wrapped breaks a text with markup into lines behind their prefixes.
func (m *markdown) wrapped(text, style, first, rest string) []string {
	var out []string
	if columns(first) > m.width/2 {
		first, rest = strings.TrimLeft(first, " "), "" // too narrow for the depth
	}
	for part := range strings.SplitSeq(text, "\n") {
		for _, line := range wrapPieces(inline(part, style), m.width-columns(first)) {
			out = append(out, strings.TrimRight(first+paint(line, m.colour), " "))
			first = rest
		}
	}
	return out
}

// give appends lines, after an empty one where one is due.
func (m *markdown) give(out []string, lines ...string) []string {
	if m.gap && m.begun {
		out = append(out, "")
	}
	m.gap, m.begun = false, true
	return append(out, lines...)
}

func (m *markdown) heading(out []string, level int, text string) []string {
	m.gap = m.gap || m.begun
	m.items = nil
	style := bold
	switch level {
	case 1:
		style += ";" + underline
	case 2:
	default:
		style += ";" + dim
	}
	mark := ""
	if !m.colour { // what weight would say
		mark = strings.Repeat("#", level) + " "
	}
	out = m.give(out, m.wrapped(text, style, mark, strings.Repeat(" ", len(mark)))...)
	m.gap = level < 3
	return out
}

func (m *markdown) beginItem(out []string, indent int, mark, text string, hard bool) []string {
	m.items = within(m.items, indent)
	m.hang = 2 * len(m.items)
	m.items = append(m.items, indent)
	if m.block, m.mark = item, mark; len(mark) == 1 {
		m.mark = "•"
	}
	return m.add(out, text, hard)
}

func (m *markdown) codeLine(out []string, line string) []string {
	body := strings.TrimLeft(line, " ")
	if n := run(body, m.code.mark); n >= m.code.size && strings.TrimSpace(body[n:]) == "" {
		return m.flush(out)
	}
	m.begun = true
	cut := min(m.code.indent, len(line)-len(body))
	return append(out, styled(m.colour, cyan, line[cut:]))
}

// frame is the line above or below code. Code has none at its sides, so that it
// can be copied.
func (m *markdown) frame(corner, info string) string {
	most := min(m.width, 60)
	if info = safeLine(strings.TrimSpace(info)); info != "" {
		info = " " + info + " "
	}
	line := max(most-2-columns(info), 1)
	return styled(m.colour, dim, corner+"─"+info+strings.Repeat("─", line))
}
