package show

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"ken/internal/know/catalog"
	"ken/internal/tokenizer"
	"ken/internal/untrusted"
)

const (
	mapHead  = "Available capability categories:"
	mapFoot  = "Use discover_capabilities tool to get details on any capability."
	mapNames = 4 // names shown of each category

	// maxNamed is the number of categories beyond which no names are shown,
	// whatever the budget: thousands of lines are no summary, and each costs
	// time whenever a view is made.
	maxNamed = 250
)

// A Map is the summary of a view by category at every level of detail, and the
// document that stands before it. What it says never changes; it must not be
// copied. A nil Map is empty.
//
// It tells what the entries are that it was made from, so it belongs to one
// view: a map of more entries would reveal what its viewer may not see.
type Map struct {
	document       string
	documentTokens int

	levels []level // all categories, with 4, 3, 2, 1 and no names; from maxNamed on only the last
	lines  []level // of each category its line without names, and the sum of the prices so far
	head   int     // the price of the head
	foot   int     // the prices of "(+N categories)" and of the foot
	count  level   // "N capabilities. Use …"

	own ownWords

	last atomic.Pointer[fit] // budgets seldom change
}

// A fit is what Fit answered.
type fit struct {
	budget int
	Fitted
}

type level struct {
	text   string
	tokens int
}

// A Fitted map is what of a [Map] fits.
type Fitted struct {
	Text   string
	Tokens int
	Detail string // "4 names", "no names", "12 of 300 categories", "count", "nothing"
}

// MakeMap summarises entries, except those that are not active, by category.
// Large categories come first, then those with the higher priority in them;
// in one, the names of the highest priority come first, then by id. The order
// of entries does not matter.
//
// document is a text about the whole instance (AGENTS.md), or "".
// Whether its place is trusted that far is the caller's to judge; it is shown
// line by line and not fenced.
func MakeMap(entries iter.Seq[*catalog.Entry], document string, count tokenizer.Counter) *Map {
	m := &Map{document: documentLines(document), own: countOwnWords(count)}
	if m.document != "" {
		m.documentTokens = closed(count, m.document)
	}
	categories, total := byCategory(entries)
	if total == 0 {
		return m
	}
	m.head = closed(count, mapHead)
	foot := closed(count, mapFoot)
	m.foot = foot + closed(count, moreCategories(len(categories)))
	names := mapNames
	if len(categories) > maxNamed {
		names = 0
	}
	for n := names; n >= 0; n-- {
		l := level{mapHead + "\n", m.head + foot}
		var b strings.Builder
		sum := 0
		for i := range categories {
			line := categories[i].line(n)
			sum += closed(count, line)
			b.WriteString(line + "\n")
			if n == 0 {
				m.lines = append(m.lines, level{line, sum})
			}
		}
		l.text += b.String() + mapFoot
		l.tokens += sum
		m.levels = append(m.levels, l)
	}
	text := plural(total, "capability", "capabilities") + ". " + mapFoot
	m.count = level{text, closed(count, text)}
	return m
}

// Document returns the text about the whole instance (AGENTS.md), and its
// tokens.
func (m *Map) Document() (text string, tokens int) {
	if m == nil {
		return "", 0
	}
	return m.document, m.documentTokens
}

// Fit returns the richest summary that costs at most budget tokens. The
// document is not part of it. Fit counts nothing.
func (m *Map) Fit(budget int) Fitted {
	if m == nil {
		return Fitted{Detail: "nothing"}
	}
	if last := m.last.Load(); last != nil && last.budget == budget {
		return last.Fitted
	}
	f := Fitted{Detail: "nothing"}
	summary := m.summary(budget, &f.Detail)
	f.Text, f.Tokens = summary.text, summary.tokens
	m.last.Store(&fit{budget, f})
	return f
}

func (m *Map) summary(room int, detail *string) level {
	for i, l := range m.levels {
		if l.tokens <= room {
			*detail = details[len(details)-len(m.levels)+i]
			return l
		}
	}
	// Prices only grow with the categories, so the number that fits is found
	// by halving.
	k, _ := slices.BinarySearchFunc(m.lines, room-m.head-m.foot, func(l level, room int) int {
		if l.tokens <= room {
			return -1
		}
		return 1
	})
	if k = min(k, len(m.lines)-1); k > 0 { // all of them did not fit above
		*detail = strconv.Itoa(k) + " of " + strconv.Itoa(len(m.lines)) + " categories"
		return level{m.fewer(k), m.head + m.lines[k-1].tokens + m.foot}
	}
	if m.count.text != "" && m.count.tokens <= room {
		*detail = "count"
		return m.count
	}
	return level{}
}

var details = [...]string{"4 names", "3 names", "2 names", "1 name", "no names"}

// fewer is the map of the first k categories.
func (m *Map) fewer(k int) string {
	var b strings.Builder
	b.WriteString(mapHead + "\n")
	for _, l := range m.lines[:k] {
		b.WriteString(l.text)
		b.WriteByte('\n')
	}
	b.WriteString(moreCategories(len(m.lines) - k))
	b.WriteString("\n" + mapFoot)
	return b.String()
}

func moreCategories(n int) string { return "(+" + strconv.Itoa(n) + " categories)" }

// A category is a line of the map in the making.
type category struct {
	label string
	count int
	first []*catalog.Entry // those whose names are shown
}

// byCategory groups the active entries, in the order of the map.
func byCategory(entries iter.Seq[*catalog.Entry]) (list []category, total int) {
	places := map[string]int{} // by category as it is written, so that each is rendered once
	labels := map[string]int{}
	for e := range entries {
		if e.State != catalog.Active {
			continue
		}
		total++
		i, ok := places[e.Category]
		if !ok {
			label := categoryLabel(e.Category)
			if i, ok = labels[label]; !ok {
				i = len(list)
				labels[label] = i
				list = append(list, category{label: label})
			}
			places[e.Category] = i
		}
		list[i].add(e)
	}
	slices.SortFunc(list, func(a, b category) int {
		return cmp.Or(cmp.Compare(b.count, a.count), cmp.Compare(b.first[0].Priority, a.first[0].Priority), cmp.Compare(a.label, b.label))
	})
	return list, total
}

func (c *category) add(e *catalog.Entry) {
	c.count++
	i, _ := slices.BinarySearchFunc(c.first, e, func(a, b *catalog.Entry) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	if i < mapNames {
		c.first = slices.Insert(c.first, i, e)
		c.first = c.first[:min(len(c.first), mapNames)]
	}
}

// line renders "- Category: a, b, c, d (+16 more) (20)" with n names.
func (c *category) line(n int) string {
	n = min(n, len(c.first))
	var b strings.Builder
	b.WriteString("- " + c.label)
	sep := ": "
	if n > 0 && speaks(c.label) {
		sep = " category: "
	}
	for _, e := range c.first[:n] {
		b.WriteString(sep + untrusted.Line(e.Name, 40))
		sep = ", "
	}
	if more := c.count - n; more > 0 && n > 0 {
		fmt.Fprintf(&b, " (+%d more)", more)
	}
	fmt.Fprintf(&b, " (%d)", c.count)
	// Once more as a whole: parts that are harmless make a role marker together.
	return untrusted.Line(b.String(), 400)
}

// speaks reports whether a label with a colon behind it is a role marker, as
// that of the category "system" is. Breaking it with a backslash would be safe,
// but noise to the reader of the map.
func speaks(label string) bool { return untrusted.Line(label+":", 400) != label+":" }

// categoryLabel returns the name of a category with a capital.
func categoryLabel(s string) string {
	label := []rune(untrusted.Line(s, 40))
	if len(label) == 0 {
		return "General"
	}
	return strings.ToUpper(string(label[:1])) + string(label[1:])
}

// documentLines renders a document line by line, indents kept.
func documentLines(s string) string {
	var b strings.Builder
	blank := false
	for line := range strings.Lines(s) {
		text := untrusted.Line(line, untrusted.DefaultLine)
		if text == "" {
			blank = b.Len() > 0
			continue
		}
		if blank {
			b.WriteByte('\n')
		}
		blank = false
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		indent := len(line) - len(strings.TrimLeft(line, " "))
		b.WriteString("        "[:min(indent, 8)] + text)
	}
	return b.String()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
