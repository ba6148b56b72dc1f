package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"ken/internal/untrusted"
)

// An editor holds a text of some lines and a cursor. It knows nothing of
// terminals. The zero value is empty.
type editor struct {
	text   string
	at     int    // the cursor, in bytes
	killed string // what was cut last
}

func (e *editor) set(text string) { e.text, e.at = text, len(text) }

func (e *editor) insert(text string) {
	e.text = e.text[:e.at] + text + e.text[e.at:]
	e.at += len(text)
}

// pasted makes a text fit to be inserted: its line ends are ours, and what is
// neither a character nor a blank is not in it.
func pasted(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.ToValidUTF8(text, "�"))
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}

// before returns where the character before the cursor begins. Characters are
// counted from the start of the line, for a flag is two letters.
func (e *editor) before() int {
	if e.at == 0 {
		return 0
	}
	at := e.lineStart()
	if at == e.at {
		return e.at - 1
	}
	for {
		n, _ := cluster(e.text[at:])
		if at+n >= e.at {
			return at
		}
		at += n
	}
}

// after returns where the character at the cursor ends.
func (e *editor) after() int {
	if e.at == len(e.text) {
		return e.at
	}
	n, _ := cluster(e.text[e.at:])
	return e.at + n
}

func (e *editor) lineStart() int { return strings.LastIndexByte(e.text[:e.at], '\n') + 1 }

func (e *editor) lineEnd() int {
	if n := strings.IndexByte(e.text[e.at:], '\n'); n >= 0 {
		return e.at + n
	}
	return len(e.text)
}

// wordBefore returns where the word before the cursor begins.
func (e *editor) wordBefore() int {
	s := strings.TrimRightFunc(e.text[:e.at], notWord)
	return len(strings.TrimRightFunc(s, func(r rune) bool { return !notWord(r) }))
}

// wordAfter returns where the word after the cursor ends.
func (e *editor) wordAfter() int {
	s := strings.TrimLeftFunc(e.text[e.at:], notWord)
	return len(e.text) - len(strings.TrimLeftFunc(s, func(r rune) bool { return !notWord(r) }))
}

func notWord(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) && r != '_'
}

// cut removes the text between two places.
func (e *editor) cut(from, to int, keep bool) {
	if keep && from < to {
		e.killed = e.text[from:to]
	}
	e.text, e.at = e.text[:from]+e.text[to:], from
}

// vertical moves the cursor by a line and reports whether there is one.
func (e *editor) vertical(by int) bool {
	start := e.lineStart()
	column := columns(shown(e.text[start:e.at]))
	switch {
	case by < 0 && start > 0:
		e.at = start - 1
		e.at = e.lineStart()
	case by > 0 && e.lineEnd() < len(e.text):
		e.at = e.lineEnd() + 1
	default:
		return false
	}
	for end := e.lineEnd(); e.at < end; {
		n, _ := cluster(e.text[e.at:])
		c := columns(shown(e.text[e.at : e.at+n]))
		if c > column {
			break
		}
		e.at, column = e.at+n, column-c
	}
	return true
}

// key takes one for editing and reports whether it was one.
func (e *editor) key(k key) bool {
	switch k.name {
	case "":
		e.insert(k.text)
	case "paste":
		e.insert(pasted(k.text))
	case "newline":
		e.insert("\n")
	case "left", "ctrl-b":
		e.at = e.before()
	case "right", "ctrl-f":
		e.at = e.after()
	case "ctrl-left", "alt-b":
		e.at = e.wordBefore()
	case "ctrl-right", "alt-f":
		e.at = e.wordAfter()
	case "home", "ctrl-a":
		e.at = e.lineStart()
	case "end", "ctrl-e":
		e.at = e.lineEnd()
	case "ctrl-home", "alt-<":
		e.at = 0
	case "ctrl-end", "alt->":
		e.at = len(e.text)
	case "backspace":
		e.cut(e.before(), e.at, false)
	case "delete", "ctrl-d":
		e.cut(e.at, e.after(), false)
	case "ctrl-w", "alt-backspace":
		e.cut(e.wordBefore(), e.at, true)
	case "alt-d":
		e.cut(e.at, e.wordAfter(), true)
	case "ctrl-u":
		e.cut(e.lineStart(), e.at, true)
	case "ctrl-k":
		e.cut(e.at, e.lineEnd(), true)
	case "ctrl-y":
		e.insert(e.killed)
	default:
		return false
	}
	return true
}

// shown is a part of a line as it is displayed.
func shown(s string) string {
	plain := true
	for i := range len(s) {
		plain = plain && s[i] >= ' ' && s[i] < 0x7F
	}
	if plain {
		return s
	}
	if s == "\t" {
		return "    "
	}
	if strings.TrimSpace(s) == "" {
		return strings.ReplaceAll(s, "\t", "    ")
	}
	return strings.ReplaceAll(untrusted.Terminal(s), "\t", "    ")
}

// layout returns the text in lines of so many columns, after a mark, and where
// the cursor stands. Of more than rows lines it returns those around the cursor.
func (e *editor) layout(mark string, width, rows int) (lines []string, row, column int) {
	indent := columns(mark)
	room := max(width-indent, 2)
	line, used := mark, 0
	next := func() {
		lines = append(lines, line)
		line, used = strings.Repeat(" ", indent), 0
	}
	for at := 0; ; {
		if at == e.at {
			row, column = len(lines), indent+used
		}
		if at == len(e.text) {
			break
		}
		if e.text[at] == '\n' {
			next()
			at++
			continue
		}
		n, _ := cluster(e.text[at:])
		if at < e.at && at+n > e.at { // within a character: before it
			row, column = len(lines), indent+used
		}
		s := clip(shown(e.text[at:at+n]), room)
		c := columns(s)
		if used+c > room && used > 0 {
			next()
			if at == e.at {
				row, column = len(lines), indent
			}
		}
		line, used, at = line+s, used+c, at+n
	}
	if e.at == len(e.text) && used >= room { // no room for the cursor
		next()
		row, column = len(lines), indent
	}
	lines = append(lines, line)
	if rows = max(rows, 1); len(lines) > rows {
		from := min(max(row-rows/2, 0), len(lines)-rows)
		lines, row = lines[from:from+rows], row-from
	}
	return lines, row, column
}

// take returns the text and empties the editor.
func (e *editor) take() string {
	text := e.text
	e.text, e.at = "", 0
	return text
}

// continued reports that the text ends in a backslash, which takes the next
// line too, and makes it one.
func (e *editor) continued() bool {
	if e.at != len(e.text) || !strings.HasSuffix(e.text, `\`) || strings.HasSuffix(e.text, `\\`) {
		return false
	}
	_, n := utf8.DecodeLastRuneInString(e.text)
	e.set(e.text[:len(e.text)-n] + "\n")
	return true
}
