package chat

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A screen has a region at its end that may be painted again, under all that
// was printed before it. It never moves above that region.
type screen struct {
	w      io.Writer
	width  int
	height int

	lines []string // of the region
	row   int      // of the region, where the cursor is
	col   int
	err   error // of the first write that did not work
}

// A frame is what the region shows.
type frame struct {
	lines    []string // each fits into the width
	row, col int      // the cursor
}

const (
	syncBegin = "\x1b[?2026h\x1b[?25l" // those who know it show all at once
	syncEnd   = "\x1b[?25h\x1b[?2026l"
	pasteOn   = "\x1b[?2004h"
	pasteOff  = "\x1b[?2004l"
)

// paint prints lines for good, and the region under them.
func (s *screen) paint(final []string, f frame) {
	if len(final) == 0 && f.row == s.row && f.col == s.col && slices.Equal(f.lines, s.lines) {
		return
	}
	var b strings.Builder
	b.WriteString(syncBegin)
	s.top(&b)
	for _, line := range final {
		b.WriteString(line + "\r\n")
	}
	b.WriteString(strings.Join(f.lines, "\r\n"))
	if up := len(f.lines) - 1 - f.row; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteByte('\r')
	if f.col > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", f.col)
	}
	b.WriteString(syncEnd)
	s.write(b.String())
	s.lines, s.row, s.col = f.lines, f.row, f.col
}

// top goes to the start of the region and erases it.
func (s *screen) top(b *strings.Builder) {
	b.WriteByte('\r')
	if s.row > 0 {
		fmt.Fprintf(b, "\x1b[%dA", s.row)
	}
	b.WriteString("\x1b[J")
}

// resize takes a new size. Terminals break lines that have become too long, so
// that the region's start is further up.
func (s *screen) resize(width, height int) {
	if width < s.width && width > 0 {
		row := s.col / width
		for _, line := range s.lines[:min(s.row, len(s.lines))] {
			row += max((columns(line)+width-1)/width, 1)
		}
		s.row = min(row, max(height-1, 0))
	}
	s.width, s.height = width, height
	s.lines = nil // whatever stands there
}

// clear empties the screen, not what was scrolled off it.
func (s *screen) clear() {
	s.write("\x1b[2J\x1b[H")
	s.lines, s.row, s.col = nil, 0, 0
}

// leave prints the last lines and stops using the region.
func (s *screen) leave(final []string) {
	var b strings.Builder
	s.top(&b)
	for _, line := range final {
		b.WriteString(line + "\r\n")
	}
	s.write(b.String())
	s.lines, s.row, s.col = nil, 0, 0
}

func (s *screen) write(text string) {
	if _, err := io.WriteString(s.w, text); err != nil && s.err == nil {
		s.err = fmt.Errorf("write to the terminal: %w", err)
	}
}
