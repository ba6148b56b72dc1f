// Package output prints what commands report: coloured tables on a terminal, plain
// lines elsewhere, and live output and progress of a call.
package output

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"ken/internal/untrusted"
)

// A Printer writes for a person if its output is a terminal. Otherwise it writes
// no colours, cuts nothing, and puts tabs between columns.
type Printer struct {
	Terminal bool
	Colour   bool
	Width    int // in characters

	Before func() // called before each write; nil: nothing is

	w      io.Writer
	failed error // the first write that failed
}

// New returns a printer that writes to w.
func New(w io.Writer) *Printer {
	p := &Printer{w: w, Width: 100}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return p
	}
	p.Terminal = true
	p.Colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		p.Width = width
	}
	return p
}

// Err returns the error of the first write that failed.
func (p *Printer) Err() error { return p.failed }

// File returns the file that the printer writes to, or nil if it is none.
func (p *Printer) File() *os.File {
	f, _ := p.w.(*os.File)
	return f
}

// Write implements [io.Writer]. It keeps the first error for [Printer.Err].
func (p *Printer) Write(b []byte) (int, error) {
	if p.Before != nil {
		p.Before()
	}
	n, err := p.w.Write(b)
	if err != nil && p.failed == nil {
		p.failed = err
	}
	return n, err
}

// Styles of terminal text.
const (
	Bold   = "1"
	Dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
	Cyan   = "36"
)

// Style returns s in a style, or as it is where there are no colours.
func (p *Printer) Style(style, s string) string {
	if !p.Colour || s == "" || style == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

// Linef prints one line.
func (p *Printer) Linef(format string, a ...any) { fmt.Fprintf(p, format+"\n", a...) }

// Line makes text from outside safe to print on one line.
func Line(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(untrusted.Terminal(s))
}

// Text makes text from outside safe to print on several lines.
func Text(s string) string { return untrusted.Terminal(s) }

// A Column of a table.
type Column struct {
	Style  string
	Styles map[string]string // of single words, instead of Style
	Grow   bool              // takes the room that is left
	Head   string            // stands above it at a terminal
}

func (c Column) styleOf(cell string) string {
	if s, ok := c.Styles[cell]; ok {
		return s
	}
	return c.Style
}

// Table prints rows of text from outside in columns.
func (p *Printer) Table(columns []Column, rows [][]string) {
	for _, row := range rows {
		for i := range row {
			row[i] = Line(row[i])
		}
	}
	if !p.Terminal {
		for _, row := range rows {
			p.Linef("%s", strings.Join(row, "\t"))
		}
		return
	}
	widths := p.widths(columns, rows)
	if len(rows) > 0 && slices.ContainsFunc(columns, func(c Column) bool { return c.Head != "" }) {
		var b strings.Builder
		for i, c := range columns {
			b.WriteString(c.Head + strings.Repeat(" ", max(0, widths[i]-len([]rune(c.Head)))+2))
		}
		p.Linef("%s", p.Style(Dim, strings.TrimRight(b.String(), " ")))
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			style := columns[i].styleOf(cell)
			cell = clip(cell, widths[i])
			b.WriteString(p.Style(style, cell))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-len([]rune(cell))+2))
			}
		}
		p.Linef("%s", strings.TrimRight(b.String(), " "))
	}
}

func (p *Printer) widths(columns []Column, rows [][]string) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = len([]rune(c.Head))
	}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], min(len([]rune(cell)), 48))
		}
	}
	used, grows := 2*(len(columns)-1), -1
	for i, col := range columns {
		if col.Grow {
			grows = i
		} else {
			used += widths[i]
		}
	}
	if grows >= 0 {
		widths[grows] = max(20, p.Width-used)
	}
	return widths
}

// clip shortens a cell on a terminal, visibly.
func clip(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:max(0, width-1)]) + "…"
}

// Plural returns "1 error", "2 errors".
func Plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	if strings.HasSuffix(word, "y") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(word, "y"))
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// Bar draws a score from 0 to 1 on a terminal.
func (p *Printer) Bar(score float64) string {
	if !p.Terminal {
		return "-"
	}
	const width = 10
	full := min(width, int(score*width+0.5))
	return p.Style(Green, strings.Repeat("█", full)) + p.Style(Dim, strings.Repeat("░", width-full))
}
