package chat

import "strings"

// A table collects rows until its columns can be measured.
type table struct {
	head   []string
	align  []byte // 'l', 'r' or 'c' of each column
	rows   [][]string
	size   int   // bytes of rows
	widths []int // once settled
}

// begin makes a table of the last line before a line of dashes, if it is one,
// and reports whether it is. Lines before it would be a paragraph of their own;
// only a single one is taken.
func (t *table) begin(before []string, dashes string) bool {
	if len(before) != 1 || !strings.Contains(before[0], "|") || !strings.Contains(dashes, "-") || strings.Trim(dashes, "|:- ") != "" {
		return false
	}
	head, under := cells(strings.TrimSuffix(before[0], "\n")), cells(dashes)
	if len(head) != len(under) {
		return false
	}
	*t = table{head: head}
	for _, u := range under {
		left, right := strings.HasPrefix(u, ":"), strings.HasSuffix(u, ":")
		switch {
		case left && right:
			t.align = append(t.align, 'c')
		case right:
			t.align = append(t.align, 'r')
		default:
			t.align = append(t.align, 'l')
		}
	}
	return true
}

// add takes a row. One with too many cells keeps them in its last.
func (t *table) add(line string) {
	row := cells(line)
	if n := len(t.align); len(row) > n {
		row = append(row[:n-1:n-1], strings.Join(row[n-1:], " | "))
	}
	t.rows = append(t.rows, row)
	t.size += len(line)
}

// full reports whether so much waits that the columns must be settled.
func (t *table) full() bool { return len(t.rows) >= mostRows || t.size > 4*mostBlock }

// cells parts a row at the bars that stand neither escaped nor in code.
func cells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")
	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}
	var out []string
	begin, lack := 0, map[string]bool{}
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '`':
			n := run(line[i:], '`')
			if end := codeEnd(line, i, n, lack); end > 0 {
				i = end
			}
			i += n - 1
		case '|':
			out = append(out, cell(line[begin:i]))
			begin = i + 1
		}
	}
	return append(out, cell(line[begin:]))
}

// cell takes the escapes off bars, in code too.
func cell(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), `\|`, "|") }

// take returns the rows that are there as lines and forgets them. The first
// call settles the columns and returns the head too.
func (t *table) take(most int, colour bool) []string {
	var out []string
	rows := t.rows
	t.rows, t.size = nil, 0
	first := t.widths == nil
	if first {
		t.settle(rows, most)
	}
	if most < 4*len(t.align) { // too narrow for columns
		if first {
			rows = append([][]string{t.head}, rows...)
		}
		for _, row := range rows {
			for _, line := range wrapPieces(inline(strings.Join(row, " | "), ""), most) {
				out = append(out, paint(line, colour))
			}
		}
		return out
	}
	if first {
		out = t.row(out, t.head, bold, colour)
		var dashes []string
		for _, w := range t.widths {
			dashes = append(dashes, strings.Repeat("─", w))
		}
		out = append(out, styled(colour, dim, strings.Join(dashes, "─┼─")))
	}
	for _, row := range rows {
		out = t.row(out, row, "", colour)
	}
	return out
}

// settle measures the columns and makes the widest narrower until all fit.
func (t *table) settle(rows [][]string, most int) {
	t.widths = make([]int, len(t.align))
	total := 3 * (len(t.align) - 1)
	for i := range t.widths {
		w := pieceColumns(inline(t.head[i], ""))
		for _, row := range rows {
			if i < len(row) {
				w = max(w, pieceColumns(inline(row[i], "")))
			}
		}
		t.widths[i] = max(w, 1)
		total += t.widths[i]
	}
	for total > most {
		widest := 0
		for i, w := range t.widths {
			if w > t.widths[widest] {
				widest = i
			}
		}
		if t.widths[widest] <= 2 {
			return
		}
		next := 2 // the next lower one, or as much as is too much
		for _, w := range t.widths {
			if w < t.widths[widest] {
				next = max(next, w)
			}
		}
		cut := max(1, min(t.widths[widest]-next, total-most))
		t.widths[widest] -= cut
		total -= cut
	}
}

func pieceColumns(line []piece) int {
	n := 0
	for _, p := range line {
		n += columns(p.text)
	}
	return n
}

// row returns one row, in as many lines as its longest cell needs.
func (t *table) row(out []string, row []string, style string, colour bool) []string {
	wrapped := make([][][]piece, len(t.align))
	high := 1
	for i := range wrapped {
		if i < len(row) {
			wrapped[i] = wrapPieces(inline(row[i], style), t.widths[i])
			high = max(high, len(wrapped[i]))
		}
	}
	bar := styled(colour, dim, " │ ")
	for n := range high {
		var b strings.Builder
		for i, cell := range wrapped {
			var line []piece
			if n < len(cell) {
				line = cell[n]
			}
			if i > 0 {
				b.WriteString(bar)
			}
			before, after := t.pad(i, t.widths[i]-pieceColumns(line))
			b.WriteString(strings.Repeat(" ", before) + paint(line, colour) + strings.Repeat(" ", after))
		}
		out = append(out, strings.TrimRight(b.String(), " "))
	}
	return out
}

func (t *table) pad(i, room int) (before, after int) {
	room = max(room, 0)
	switch t.align[i] {
	case 'r':
		return room, 0
	case 'c':
		return room / 2, room - room/2
	}
	return 0, room
}
