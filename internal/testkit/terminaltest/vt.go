// Package terminaltest gives tests a terminal. A program writes to it, and on Linux a
// test types into it and reads what it shows.
package terminaltest

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A VT is a terminal of the usual kind, with a scrollback: it wraps, scrolls
// and, when it becomes narrower, breaks what does not fit any more.
type VT struct {
	width, height int
	columns       func(rune) int // of a character
	rows          [][]string     // a cell each; "" follows a wide one
	top           int            // the first row on the screen
	row, col      int
	wrap          bool // the next character begins a line
	buf           []byte
	Unknown       []string // sequences that it does not know
	Modes         map[string]bool
	Above         bool // something tried to move above the screen
}

// NewVT returns an empty terminal, on which a character has so many columns.
func NewVT(width, height int, columns func(rune) int) *VT {
	return &VT{width: width, height: height, columns: columns, rows: [][]string{{}}, Modes: map[string]bool{}}
}

func (v *VT) Write(b []byte) (int, error) {
	v.buf = append(v.buf, b...)
	for len(v.buf) > 0 {
		n := v.one()
		if n == 0 {
			break
		}
		v.buf = v.buf[n:]
	}
	return len(b), nil
}

func (v *VT) one() int {
	switch c := v.buf[0]; {
	case c == '\r':
		v.col, v.wrap = 0, false
		return 1
	case c == '\n':
		v.down()
		return 1
	case c == 0x1B:
		return v.sequence()
	case c < ' ' || c == 0x7F:
		v.Unknown = append(v.Unknown, fmt.Sprintf("%q", c))
		return 1
	case !utf8.FullRune(v.buf):
		return 0
	}
	r, n := utf8.DecodeRune(v.buf)
	v.put(r)
	return n
}

func (v *VT) down() {
	v.row++
	v.wrap = false
	for len(v.rows) <= v.row {
		v.rows = append(v.rows, []string{})
	}
	v.top = max(v.top, v.row-v.height+1)
}

func (v *VT) put(r rune) {
	w := v.columns(r)
	line := &v.rows[v.row]
	joins := v.col > 0 && len(*line) >= v.col && (w == 0 || unicode.Is(unicode.M, r) || r >= 0x1F3FB && r <= 0x1F3FF || v.joined())
	if joins {
		at := v.col - 1
		for at > 0 && (*line)[at] == "" {
			at--
		}
		(*line)[at] += string(r)
		return
	}
	if v.wrap || v.col+w > v.width {
		v.col = 0
		v.down()
		line = &v.rows[v.row]
	}
	for len(*line) < v.col+w {
		*line = append(*line, " ")
	}
	(*line)[v.col] = string(r)
	if w == 2 {
		(*line)[v.col+1] = ""
	}
	if v.col += w; v.col >= v.width {
		v.col, v.wrap = v.width-1, true
	}
}

// joined reports that the cell before the cursor ends in a joiner.
func (v *VT) joined() bool {
	line := v.rows[v.row]
	for at := v.col - 1; at >= 0; at-- {
		if line[at] != "" {
			return strings.HasSuffix(line[at], "\u200d")
		}
	}
	return false
}

func (v *VT) sequence() int {
	end := 2
	for end < len(v.buf) && (v.buf[end] < 0x40 || v.buf[end] > 0x7E) {
		end++
	}
	if end >= len(v.buf) {
		return 0
	}
	s := string(v.buf[1 : end+1])
	args := s[1 : len(s)-1]
	n, _ := strconv.Atoi(args)
	switch {
	case strings.HasPrefix(args, "?"):
		v.Modes[args[1:]] = s[len(s)-1] == 'h'
	case strings.HasSuffix(s, "A"):
		v.Above = v.Above || v.row-n < v.top
		v.row, v.wrap = max(v.row-max(n, 1), v.top), false
	case strings.HasSuffix(s, "C"):
		v.col, v.wrap = min(v.col+max(n, 1), v.width-1), false
	case s == "[J":
		v.rows = v.rows[:v.row+1]
		v.rows[v.row] = v.rows[v.row][:min(v.col, len(v.rows[v.row]))]
	case s == "[2J":
		v.rows = append(v.rows[:v.top], []string{})
		v.row = v.top
	case s == "[H":
		v.row, v.col = v.top, 0
	case strings.HasSuffix(s, "m"):
	default:
		v.Unknown = append(v.Unknown, fmt.Sprintf("%q", s))
	}
	return end + 1
}

// Resize breaks the lines that have become too long, as most terminals do.
func (v *VT) Resize(width, height int) {
	var rows [][]string
	for i, line := range v.rows {
		for first := true; first || len(line) > 0; first = false {
			n := min(len(line), width)
			if n < len(line) && n > 0 && line[n] == "" {
				n-- // a wide one is not parted
			}
			if i == v.row && v.col >= 0 && (v.col < n || len(line) <= n) {
				v.row, v.col = len(rows), v.col-0
				i = -1
			} else if i == v.row {
				v.col -= n
			}
			rows = append(rows, line[:n:n])
			line = line[n:]
		}
	}
	v.rows, v.width, v.height = rows, width, height
	v.col = min(v.col, width-1)
	v.wrap = false
	v.top = max(len(v.rows)-height, 0)
}

// Text is all there is, scrolled off or not.
func (v *VT) Text() string {
	var out []string
	for _, line := range v.rows {
		out = append(out, strings.TrimRight(strings.Join(line, ""), " "))
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}

// Line is the one with the cursor, up to it.
func (v *VT) Line() string {
	line := v.rows[v.row]
	var b strings.Builder
	for i := range v.col {
		if i < len(line) {
			b.WriteString(line[i])
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
