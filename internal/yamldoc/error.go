package yamldoc

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml"
)

// An Error says what is wrong with a document, where, and what to do. Line and
// Column count from 1; zero means the whole document.
type Error struct {
	Line, Column int
	Message      string
	Fix          string
	Path         string // of the map it is in, as in "run." and "rules[0]."; empty for the document itself

	earlier int // a line that Message ends with
}

// Moved returns the error as it stands in a file in which the document begins by
// lines further down, those that the message speaks of included.
func (e *Error) Moved(by int) *Error {
	moved := *e
	if e.Line > 0 {
		moved.Line += by
	}
	if e.earlier > 0 {
		moved.earlier += by
		moved.Message = strings.TrimSuffix(e.Message, strconv.Itoa(e.earlier)) + strconv.Itoa(moved.earlier)
	}
	return &moved
}

func (e *Error) Error() string {
	s := e.Message
	if e.Line > 0 {
		s = fmt.Sprintf("line %d: %s", e.Line, s)
	}
	if e.Fix != "" {
		s += "; " + e.Fix
	}
	return s
}

// syntaxError says in our words what the parser complains of, as far as it is
// known what people do wrong there.
func syntaxError(err error) *Error {
	var e yaml.Error
	if !errors.As(err, &e) {
		return &Error{Message: printable(firstLine(err.Error())), Fix: "check indentation, quotes and colons"}
	}
	out := &Error{Message: printable(firstLine(e.GetMessage())), Fix: "check indentation, quotes and colons there"}
	if tok := e.GetToken(); tok != nil && tok.Position != nil {
		out.Line, out.Column = tok.Position.Line, tok.Position.Column
	}
	switch m := e.GetMessage(); {
	case strings.Contains(m, "'\t'") || strings.Contains(m, "tab character"):
		out.Message, out.Fix = "a tab stands where YAML wants spaces", "indent with spaces"
	case strings.Contains(m, "mapping value is not allowed"):
		out.Message, out.Fix = "a second \": \" stands in one value", "put the value in quotes"
	case strings.Contains(m, "end character of"):
		out.Message, out.Fix = "a quote is opened and never closed", "close it, or leave both quotes out"
	case strings.Contains(m, "reserved character"), strings.Contains(m, "unknown escape"):
		out.Fix = "put the value in single quotes"
	case strings.Contains(m, "must be specified"), strings.Contains(m, "not found"), strings.Contains(m, "could not find '"),
		strings.Contains(m, "flow map"):
		out.Fix = "check that every bracket is closed and every item parted by a comma; a text with brackets needs quotes"
	}
	return out
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// printable writes out what would do something to a terminal.
func printable(s string) string {
	if !strings.ContainsFunc(s, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return s
	}
	quoted := strconv.Quote(s)
	return quoted[1 : len(quoted)-1]
}
