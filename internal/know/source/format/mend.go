package format

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"ken/internal/know/source/pattern"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// Skills and commands are written by hand and read by programs that hardly
// look: a colon in a description, a tab, a bracket or a missing quote makes
// their frontmatter something other than YAML, and yet everybody can see what
// it says. Such pages are read entry by entry, and every entry that had to be
// taken as plain text is named.

const (
	maxMendBytes   = 64 << 10
	maxMendEntries = 400
	maxMendDepth   = 4
)

// UnclosedFrontmatter is said of a page that may be only half written.
const UnclosedFrontmatter = "the frontmatter is not closed where it ends; the text after it is taken as the body"

// LoosePage takes a page apart as SplitPage does and never fails: what is not
// valid in the frontmatter is mended as far as it can be. Each mend is an
// error whose line is the file's. A page whose frontmatter is valid is exactly
// what SplitPage makes of it.
func LoosePage(data []byte) (Page, []*yamldoc.Error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	start := bytes.TrimLeft(data, "\r\n\t ")
	skipped := bytes.Count(data[:len(data)-len(start)], []byte("\n"))
	if first, _, _ := CutLine(start); skipped == 0 || !isRule(first) {
		return looseFrom(data)
	}
	p, mends := looseFrom(start)
	p.MetaLine, p.BodyLine = p.MetaLine+skipped, p.BodyLine+skipped
	for _, m := range mends {
		if m.Line > 0 {
			m.Line += skipped
		}
	}
	early := &yamldoc.Error{
		Line: 1, Message: "empty lines stand before the frontmatter; it is read all the same",
		Fix: "begin the file with the line ---",
	}
	return p, append([]*yamldoc.Error{early}, mends...)
}

func looseFrom(data []byte) (Page, []*yamldoc.Error) {
	p, closed := CutPage(data)
	if !p.Found {
		return p, nil
	}
	var cause error
	if closed {
		if p.Meta, cause = yamldoc.Parse(p.Head, yamldoc.Limits{}); cause == nil {
			return p, nil
		}
	} else {
		_, p.Head, _ = CutLine(data)
		p.MetaLine, p.Body = 2, ""
	}
	m := &Mender{}
	if !m.fits(p.Head, cause) {
		if !closed {
			p.Body = safefs.NormalizeNewlines(data)
		}
		return p, m.mends
	}
	entries, rest := m.Entries(string(p.Head))
	if len(entries) == 0 {
		// Dashes as a line across the page, with prose below them.
		return Page{Body: safefs.NormalizeNewlines(data), BodyLine: 1}, nil
	}
	if rest >= 0 || !closed {
		p.unclosed(m, rest)
	}
	p.Meta = m.readMap(entries, 0)
	for _, e := range m.mends {
		e.Line = p.Line(e.Line)
	}
	return p, m.mends
}

// unclosed moves the lines from rest on, counted from 0, back to the body.
func (p *Page) unclosed(m *Mender, rest int) {
	lines := strings.SplitAfter(string(p.Head), "\n")
	if rest < 0 {
		rest = len(lines)
	}
	between := ""
	if p.Body != "" {
		between = "---\n" // what looked like the end is a line across the page
	}
	p.Body = safefs.NormalizeNewlines([]byte(strings.Join(lines[rest:], ""))) + between + p.Body
	p.BodyLine = p.MetaLine + rest
	m.note(max(rest, 1), UnclosedFrontmatter, "close it with a line of three dashes")
}

// A Mender reads broken frontmatter. Lines count from 1 within it.
type Mender struct {
	mends []*yamldoc.Error
}

func (m *Mender) note(line int, message, fix string) {
	m.mends = append(m.mends, &yamldoc.Error{Line: line, Message: message, Fix: fix})
}

// fits refuses frontmatter that is too large to have been written by hand, and so
// is not worth mending.
func (m *Mender) fits(head []byte, cause error) bool {
	keys := bytes.Count(head, []byte(":"))
	if len(head) <= maxMendBytes && keys <= 10*maxMendEntries {
		return true
	}
	why := "it is too large"
	if cause != nil {
		why = cause.Error()
	}
	m.note(1, "the frontmatter is passed over: "+why, "keep only name, description and the like there")
	return false
}

// An entry is one "key: value" with the lines that belong to it.
type entry struct {
	Key  string
	line int // from 1
	Text string
}

var (
	entryKey = pattern.Lazy(`^([A-Za-z_][\w.-]*|"[\w .-]+"|'[\w .-]+')[ \t]*:([ \t]|\r?$)`)

	// Only for keys that everybody uses: "https://" is not a key.
	entryKeyTight = pattern.Lazy(`^(name|description|version|license|category|tags|model|allowed-tools|argument-hint):(\S)`)
)

// Entries parts the text at the lines that begin a key. Prose that follows an
// empty line is no frontmatter any more: rest is the line, from 0, on which it
// begins, or -1.
func (m *Mender) Entries(text string) (list []entry, rest int) {
	empty, margin := false, 0 // margin: first line of what may be the body
	for i, line := range strings.SplitAfter(text, "\n") {
		bare := strings.TrimRight(line, " \t\r\n")
		isKey := entryKey().MatchString(strings.TrimRight(line, "\r\n"))
		if !isKey && entryKeyTight().MatchString(line) {
			m.note(i+1, "no space after the colon; read as if there were one", "write key: value")
			line = entryKeyTight().ReplaceAllString(line, "$1: $2")
			isKey = true
		}
		switch {
		case isKey && len(list) < maxMendEntries:
			key, _, _ := strings.Cut(line, ":")
			list = append(list, entry{Key: strings.Trim(key, " \t\"'"), line: i + 1, Text: line})
			empty = false
		case bare == "", strings.HasPrefix(bare, "#"):
			if !empty {
				empty, margin = true, i
			}
			if len(list) > 0 && bare == "" {
				list[len(list)-1].Text += line
			}
		case empty && !strings.HasPrefix(line, "-") && strings.TrimLeft(line, " \t") == line && len(list) > 0:
			return list, margin
		case len(list) == 0:
			m.note(i+1, "the line is not \"key: value\" and is passed over", "correct or remove it")
		default:
			list[len(list)-1].Text += line
			empty = false
		}
	}
	return list, -1
}

func (m *Mender) readMap(entries []entry, depth int) *yamldoc.Map {
	out := &yamldoc.Map{Line: entries[0].line}
	seen := map[string]bool{}
	for _, e := range entries {
		if seen[e.Key] {
			m.note(e.line, fmt.Sprintf("key %q is given a second time; the first stands", e.Key), "keep one of them")
			continue
		}
		seen[e.Key] = true
		out.Fields = append(out.Fields, yamldoc.Field{Key: e.Key, Line: e.line, Value: m.readEntry(e, depth)})
	}
	return out
}

// readEntry reads one entry: as YAML, as YAML with its tabs turned to spaces,
// as a map or list of entries, and at last as plain text.
func (m *Mender) readEntry(e entry, depth int) yamldoc.Value {
	v, err := parseEntry(e.Text, e.line)
	if err == nil {
		return v
	}
	if strings.Contains(e.Text, "\t") {
		if v, err := parseEntry(untab(e.Text), e.line); err == nil {
			m.note(e.line, e.Key+" is indented with tabs, which YAML does not allow; read as spaces", "indent with spaces")
			return v
		}
	}
	first, more, _ := strings.Cut(e.Text, "\n")
	_, given, _ := strings.Cut(first, ":")
	given = strings.TrimSpace(given)
	if given == "" && depth < maxMendDepth {
		if v, ok := m.readNested(more, e.line+1, depth+1); ok {
			return v
		}
	}
	m.note(e.line, fmt.Sprintf("%s is not valid YAML (%s); it is read as plain text", e.Key, bareMessage(err)), "put the value in quotes")
	return yamldoc.Value{Line: e.line, Any: PlainValue(given, more)}
}

// readNested reads indented lines below a key: a list of plain items, or
// further entries.
func (m *Mender) readNested(text string, line, depth int) (yamldoc.Value, bool) {
	lines := dedent(untab(text))
	if len(lines) == 0 {
		return yamldoc.Value{}, false
	}
	if strings.HasPrefix(strings.Join(lines, ""), "- ") {
		return m.readList(lines, line), true
	}
	sub := &Mender{}
	entries, rest := sub.Entries(strings.Join(lines, "\n"))
	if len(entries) == 0 || rest >= 0 {
		return yamldoc.Value{}, false
	}
	found := sub.readMap(entries, depth)
	for _, e := range sub.mends {
		m.note(e.Line+line-1, e.Message, e.Fix)
	}
	return ShiftLines(yamldoc.Value{Line: 1, Any: found}, line-1), true
}

func (m *Mender) readList(lines []string, line int) yamldoc.Value {
	var items []yamldoc.Value
	for i, l := range lines {
		item, isItem := strings.CutPrefix(l, "- ")
		switch {
		case isItem:
			v, err := parseEntry("x: "+item, line+i)
			if err != nil {
				m.note(line+i, fmt.Sprintf("an item is not valid YAML (%s); it is read as plain text", bareMessage(err)), "put it in quotes")
				v = yamldoc.Value{Line: line + i, Any: PlainValue(item, "")}
			}
			items = append(items, v)
		case strings.TrimSpace(l) != "" && len(items) > 0:
			last := &items[len(items)-1]
			if s, ok := last.Any.(string); ok {
				last.Any = s + " " + strings.TrimSpace(l)
			}
		}
	}
	return yamldoc.Value{Line: line, Any: items}
}

// parseEntry parses one "key: value" that begins on a line.
func parseEntry(text string, line int) (yamldoc.Value, error) {
	found, err := yamldoc.Parse([]byte(text), yamldoc.Limits{})
	if err != nil {
		return yamldoc.Value{}, err
	}
	if len(found.Fields) != 1 {
		return yamldoc.Value{}, &yamldoc.Error{Line: 1, Message: "several keys where one was expected"}
	}
	return ShiftLines(found.Fields[0].Value, line-1), nil
}

// ShiftLines returns the value with every line moved down.
func ShiftLines(v yamldoc.Value, by int) yamldoc.Value {
	v.Line += by
	switch x := v.Any.(type) {
	case []yamldoc.Value:
		items := make([]yamldoc.Value, len(x))
		for i, item := range x {
			items[i] = ShiftLines(item, by)
		}
		v.Any = items
	case *yamldoc.Map:
		moved := &yamldoc.Map{Line: x.Line + by, Fields: slices.Clone(x.Fields)}
		for i, f := range moved.Fields {
			moved.Fields[i].Line, moved.Fields[i].Value = f.Line+by, ShiftLines(f.Value, by)
		}
		v.Any = moved
	}
	return v
}

// PlainValue joins a value's lines into one text, without the marks of a
// block or the quotes around it.
func PlainValue(first, more string) string {
	if strings.Trim(first, "|>+-0123456789") == "" && strings.ContainsAny(first, "|>") {
		first = ""
	}
	text := FoldSpace(strings.TrimPrefix(first, "> ") + " " + more)
	for _, quote := range []string{`"`, `'`} {
		inner, opens := strings.CutPrefix(text, quote)
		if !opens {
			continue
		}
		if body, closes := strings.CutSuffix(inner, quote); closes {
			return body
		}
		if !strings.Contains(inner, quote) {
			return inner
		}
	}
	return text
}

// untab turns the tabs that indent a line into two spaces each.
func untab(text string) string {
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		bare := strings.TrimLeft(l, " \t")
		lines[i] = strings.ReplaceAll(l[:len(l)-len(bare)], "\t", "  ") + bare
	}
	return strings.Join(lines, "\n")
}

// dedent takes the common indentation from lines; none at all where a line
// has no indentation.
func dedent(text string) []string {
	lines := strings.Split(strings.TrimRight(text, " \r\n"), "\n")
	common := -1
	for _, l := range lines {
		if bare := strings.TrimLeft(l, " "); strings.TrimSpace(bare) != "" && (common < 0 || len(l)-len(bare) < common) {
			common = len(l) - len(bare)
		}
	}
	if common < 0 {
		return nil
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l[min(common, len(l)):], "\r")
	}
	return lines
}

func bareMessage(err error) string {
	if e, ok := err.(*yamldoc.Error); ok {
		return e.Message
	}
	return err.Error()
}
