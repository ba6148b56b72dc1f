package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"ken/internal/untrusted"
)

// A printer writes for a person when its output is a terminal, and plainly
// otherwise: no colours, nothing cut, tabs between columns.
type printer struct {
	w        io.Writer
	failed   error // the first write that did not work
	terminal bool
	colour   bool
	width    int
}

func newPrinter(w io.Writer) *printer {
	p := &printer{w: w, width: 100}
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return p
	}
	p.terminal = true
	p.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
		p.width = width
	}
	return p
}

// Write keeps the first error, for those who do not look at it.
func (p *printer) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if err != nil && p.failed == nil {
		p.failed = err
	}
	return n, err
}

// Styles of terminal text.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

func (p *printer) style(style, s string) string {
	if !p.colour || s == "" || style == "" {
		return s
	}
	return "\x1b[" + style + "m" + s + "\x1b[0m"
}

func (p *printer) linef(format string, a ...any) { fmt.Fprintf(p, format+"\n", a...) }

// foreign makes text from outside fit for one line of output.
func foreign(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(untrusted.Terminal(s))
}

// foreignText makes text from outside fit for output of several lines.
func foreignText(s string) string { return untrusted.Terminal(s) }

// A column of a table. The one with grow takes what room is left; styles gives
// single words a style of their own.
type column struct {
	style  string
	styles map[string]string
	grow   bool
}

func (c column) styleOf(cell string) string {
	if s, ok := c.styles[cell]; ok {
		return s
	}
	return c.style
}

// table prints rows of foreign text in columns.
func (p *printer) table(columns []column, rows [][]string) {
	for _, row := range rows {
		for i := range row {
			row[i] = foreign(row[i])
		}
	}
	if !p.terminal {
		for _, row := range rows {
			p.linef("%s", strings.Join(row, "\t"))
		}
		return
	}
	widths := p.widths(columns, rows)
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			style := columns[i].styleOf(cell)
			cell = clip(cell, widths[i])
			b.WriteString(p.style(style, cell))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-len([]rune(cell))+2))
			}
		}
		p.linef("%s", strings.TrimRight(b.String(), " "))
	}
}

func (p *printer) widths(columns []column, rows [][]string) []int {
	widths := make([]int, len(columns))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], min(len([]rune(cell)), 48))
		}
	}
	used, grows := 2*(len(columns)-1), -1
	for i, col := range columns {
		if col.grow {
			grows = i
		} else {
			used += widths[i]
		}
	}
	if grows >= 0 {
		widths[grows] = max(20, p.width-used)
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

// plural returns "1 error", "2 errors".
func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	if strings.HasSuffix(word, "y") {
		return fmt.Sprintf("%d %sies", n, strings.TrimSuffix(word, "y"))
	}
	return fmt.Sprintf("%d %ss", n, word)
}
