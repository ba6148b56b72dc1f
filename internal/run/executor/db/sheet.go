package db

import (
	"fmt"
	"strings"

	"ken/internal/jsonappend"
)

// The forms of rows.
const (
	formatMarkdown = "markdown"
	formatCSV      = "csv"
	formatJSON     = "json"
	formatLines    = "lines" // one value as it is, for plans
)

// A sheet takes the rows of a query, as many as it may hold.
type sheet struct {
	name     string // of the database
	format   string
	mostRows int
	most     int // bytes

	columns []string
	text    []byte
	rows    int
	cut     int    // values that are not whole
	full    string // why no more rows fit; empty while they do
	cell    int    // most bytes of one value
}

const roomAtEnd = 1024 // for what closes a JSON text

// begin takes the names of the columns.
func (s *sheet) begin(columns []string) {
	s.columns = columns
	s.cell = max(256, s.most/(8*max(1, len(columns))))
	s.text = make([]byte, 0, min(s.most, 64<<10))
	switch s.format {
	case formatLines:
	case formatJSON:
		s.text = append(s.text, `{"columns":[`...)
		for i, c := range columns {
			if i > 0 {
				s.text = append(s.text, ',')
			}
			s.text = jsonappend.String(s.text, c)
		}
		s.text = append(s.text, `],"rows":[`...)
	case formatCSV:
		for i, c := range columns {
			s.text = appendCSV(s.text, c, i > 0, false)
		}
		s.text = append(s.text, '\n')
	default:
		if len(columns) == 0 {
			return
		}
		for _, c := range columns {
			s.text = append(s.text, "| "...)
			s.text = append(appendMarkdown(s.text, c), ' ')
		}
		s.text = append(s.text, "|\n"...)
		for range columns {
			s.text = append(s.text, "|---"...)
		}
		s.text = append(s.text, "|\n"...)
	}
}

// add takes a row, and reports whether it did. A row that no longer fits is the
// last that is offered.
func (s *sheet) add(values []any) bool {
	if s.rows >= s.mostRows {
		s.full = fmt.Sprintf("only the first %s shown, and there are more", rowsAre(s.rows))
		return false
	}
	before, cut := len(s.text), s.cut
	switch s.format {
	case formatLines:
		s.text = append(append(s.text, plainText(values[0], s.cell, &s.cut)...), '\n')
	case formatJSON:
		if s.rows > 0 {
			s.text = append(s.text, ',', '\n')
		}
		s.text = append(s.text, '[')
		for i, v := range values {
			if i > 0 {
				s.text = append(s.text, ',')
			}
			s.text = appendJSON(s.text, v, s.cell, &s.cut)
		}
		s.text = append(s.text, ']')
	case formatCSV:
		for i, v := range values {
			text := ""
			if v != nil {
				text = plainText(v, s.cell, &s.cut)
			}
			s.text = appendCSV(s.text, text, i > 0, v != nil && text == "")
		}
		s.text = append(s.text, '\n')
	default:
		for _, v := range values {
			s.text = append(s.text, "| "...)
			s.text = append(appendMarkdown(s.text, plainText(v, s.cell, &s.cut)), ' ')
		}
		s.text = append(s.text, "|\n"...)
	}
	if len(s.text) > s.most-roomAtEnd {
		s.text, s.cut = s.text[:before], cut
		s.full = fmt.Sprintf("only the first %s shown: more would be over %d bytes", rowsAre(s.rows), s.most)
		return false
	}
	s.rows++
	return true
}

// appendCSV writes a value as RFC 4180 has it. An empty text is quoted, since
// nothing at all stands for NULL.
func appendCSV(b []byte, s string, comma, quoteEmpty bool) []byte {
	if comma {
		b = append(b, ',')
	}
	if !quoteEmpty && !strings.ContainsAny(s, ",\"\r\n") && strings.TrimSpace(s) == s {
		return append(b, s...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"')
}

// appendMarkdown writes a value into a cell of a Markdown table.
func appendMarkdown(b []byte, s string) []byte {
	if !strings.ContainsAny(s, "|\\\r\n") {
		return append(b, s...)
	}
	for _, c := range []byte(s) {
		switch c {
		case '|', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, "<br>"...)
		case '\r':
		default:
			b = append(b, c)
		}
	}
	return b
}

// counted writes how many rows there are.
func counted[T int | int64](n T) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}

func rowsAre(n int) string {
	if n == 1 {
		return "row is"
	}
	return counted(n) + " are"
}
