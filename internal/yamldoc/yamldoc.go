// Package yamldoc reads YAML and JSON that came from outside: bounded before
// it is parsed, with the line of everything, and without guessing.
//
// [Parse] gives the document as a [Map]; a [Reader] takes what it knows out of
// a map, in any spelling of a key, and remembers what was wrong and what was
// left, so that one caller may refuse unknown keys and another only mention
// them.
//
// Anchors, aliases, merge keys and tags are refused: no format that Ken reads
// needs them, and they are how a small file becomes a large one or says
// something else than it seems to.
package yamldoc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

// Limits bound a document before it is parsed. Zero fields mean the defaults.
type Limits struct {
	Bytes int // 64 KiB
	Keys  int // 4,000 keys and list items
	Depth int // 64 levels
}

func (l Limits) withDefaults() Limits {
	if l.Bytes == 0 {
		l.Bytes = 64 << 10
	}
	if l.Keys == 0 {
		l.Keys = 4000
	}
	if l.Depth == 0 {
		l.Depth = 64
	}
	return l
}

// An Error says what is wrong with a document, where, and what to do. Line and
// Column count from 1; zero means the whole document.
type Error struct {
	Line, Column int
	Message      string
	Fix          string

	earlier int // a line that Message ends with
}

// Moved gives the error as it stands in a file in which the document begins by
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

// A Map is a mapping in the order of the file. The zero value is empty.
type Map struct {
	Line   int
	Fields []Field
}

// A Field is one entry of a Map.
type Field struct {
	Key   string
	Line  int
	Value Value
}

// A Value is a string, bool, int64, float64, nil, []Value or *Map, with the
// line where it begins.
type Value struct {
	Line int
	Any  any
	Text string // a number or boolean as it is written; "" for all else
}

// Parse reads a document whose root is a mapping. An empty document is an
// empty map. The error is always an *[Error].
func Parse(data []byte, limits Limits) (*Map, error) {
	v, err := ParseValue(data, limits)
	if err != nil {
		return nil, err
	}
	switch root := v.Any.(type) {
	case nil:
		return &Map{Line: 1}, nil
	case *Map:
		return root, nil
	}
	return nil, &Error{
		Line: v.Line, Message: fmt.Sprintf("the document is %s, want keys and values", kindOf(v.Any)),
		Fix: "write it as \"key: value\" lines",
	}
}

// ParseValue reads a document with any root.
func ParseValue(data []byte, limits Limits) (Value, error) {
	limits = limits.withDefaults()
	data, err := precheck(data, limits)
	if err != nil {
		return Value{}, err
	}
	tokens, jerr := joinPlain(lexer.Tokenize(string(data)))
	if jerr != nil {
		return Value{}, jerr
	}
	// A key that is given twice is ours to tell: see converter.fields.
	file, perr := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if perr != nil {
		return Value{}, syntaxError(perr)
	}
	var root ast.Node
	for _, doc := range file.Docs {
		if doc == nil || doc.Body == nil {
			continue
		}
		if _, comment := doc.Body.(*ast.CommentGroupNode); comment {
			continue
		}
		if root != nil {
			return Value{}, &Error{
				Line: lineOf(doc.Body), Message: "a second document begins here",
				Fix: "keep one document in a file",
			}
		}
		root = doc.Body
	}
	if root == nil {
		return Value{Line: 1}, nil
	}
	return converter{depth: limits.Depth}.value(root, limits.Depth)
}

// precheck refuses what would be slow or ambiguous to parse, by looking at
// bytes only: every YAML library takes seconds for a map of 100,000 keys.
func precheck(data []byte, limits Limits) ([]byte, error) {
	if len(data) > limits.Bytes {
		return nil, &Error{
			Message: fmt.Sprintf("the document has %d bytes, more than the %d that are read", len(data), limits.Bytes),
			Fix:     "make it smaller or split it",
		}
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")) // the parser counts some of them twice
	if !utf8.Valid(data) {
		return nil, &Error{Line: badLine(data), Message: "the text is not valid UTF-8", Fix: "save the file as UTF-8"}
	}
	line, keys, flow, deepest := 1, 0, 0, 0
	lineStart := true
	for i, c := range data {
		switch c {
		case '\n':
			line++
			lineStart = true
			continue
		case 0:
			return nil, &Error{Line: line, Message: "the text holds a NUL byte", Fix: "remove it; text files have none"}
		case ':':
			if i+1 == len(data) || isSpace(data[i+1]) || flow > 0 {
				keys++
			}
		case ',':
			if flow > 0 {
				keys++
			}
		case '-':
			// "- - - -" nests one level per dash without any bracket.
			if lineStart && (i+1 == len(data) || isSpace(data[i+1])) {
				keys++
				if n := dashes(data[i:]); n > deepest {
					deepest = n
				}
			}
		case '[', '{':
			flow++
			deepest = max(deepest, flow)
		case ']', '}':
			flow = max(0, flow-1)
		}
		if !isSpace(c) {
			lineStart = false
		}
		if keys > limits.Keys {
			return nil, &Error{
				Line: line, Message: fmt.Sprintf("more than %d keys and items", limits.Keys),
				Fix: "split the document",
			}
		}
		if deepest > limits.Depth {
			return nil, tooDeep(line, limits.Depth)
		}
	}
	return data, nil
}

func tooDeep(line, depth int) *Error {
	return &Error{Line: line, Message: fmt.Sprintf("nested deeper than %d levels", depth), Fix: "flatten it"}
}

func dashes(b []byte) int {
	n := 0
	for len(b) >= 2 && b[0] == '-' && b[1] == ' ' {
		n++
		b = b[2:]
	}
	return n
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func badLine(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			return line
		}
		if r == '\n' {
			line++
		}
		data = data[n:]
	}
	return 0
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

func lineOf(n ast.Node) int {
	if tok := n.GetToken(); tok != nil && tok.Position != nil {
		return tok.Position.Line
	}
	return 0
}

// A converter turns the parser's tree into values, down to a depth.
type converter struct{ depth int }

// value converts a node that may have left levels below it.
func (c converter) value(n ast.Node, left int) (Value, error) {
	line := lineOf(n)
	if left <= 0 {
		return Value{}, tooDeep(line, c.depth)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return c.fields(n.Values, line, left)
	case *ast.MappingValueNode:
		return c.fields([]*ast.MappingValueNode{n}, line, left)
	case *ast.SequenceNode:
		list := make([]Value, 0, len(n.Values))
		for _, item := range n.Values {
			v, err := c.value(item, left-1)
			if err != nil {
				return Value{}, err
			}
			list = append(list, v)
		}
		return Value{Line: line, Any: list}, nil
	case *ast.TagNode:
		// The parser takes the next key for the value of a lone "!".
		return Value{}, &Error{
			Line: line, Message: "a value that begins with ! is a YAML tag, which is not read",
			Fix: "put the value in quotes",
		}
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return Value{}, &Error{
			Line: line, Message: "anchors, aliases and merge keys are not read",
			Fix: "write the value out in full",
		}
	}
	v, err := convertScalar(n, line)
	switch v.Any.(type) {
	case bool, int64, float64:
		v.Text = n.GetToken().Value
	}
	return v, err
}

func convertScalar(n ast.Node, line int) (Value, error) {
	switch n := n.(type) {
	case *ast.NullNode:
		return Value{Line: line, Any: nil}, nil
	case *ast.StringNode:
		return Value{Line: line, Any: n.Value}, nil
	case *ast.LiteralNode:
		return Value{Line: line, Any: n.Value.Value}, nil
	case *ast.BoolNode:
		return Value{Line: line, Any: n.Value}, nil
	case *ast.IntegerNode:
		switch i := n.Value.(type) {
		case int64:
			return Value{Line: line, Any: i}, nil
		case uint64:
			if i <= math.MaxInt64 {
				return Value{Line: line, Any: int64(i)}, nil
			}
			return Value{Line: line, Any: float64(i)}, nil
		}
	case *ast.FloatNode:
		return Value{Line: line, Any: n.Value}, nil
	case *ast.InfinityNode, *ast.NanNode:
		return Value{}, &Error{Line: line, Message: "infinity and not-a-number are not values here", Fix: "write a number"}
	}
	return Value{}, &Error{Line: line, Message: fmt.Sprintf("%s is not read here", n.Type()), Fix: "write a plain value"}
}

func (c converter) fields(values []*ast.MappingValueNode, line, left int) (Value, error) {
	m := &Map{Line: line, Fields: make([]Field, 0, len(values))}
	seen := make(map[string]int, len(values))
	if len(values) > 0 {
		m.Line = lineOf(values[0].Key)
	}
	for _, mv := range values {
		key, err := keyText(mv.Key)
		if err != nil {
			return Value{}, err
		}
		at := lineOf(mv.Key)
		if first, twice := seen[key]; twice {
			return Value{}, &Error{
				Line: at, Message: fmt.Sprintf("key %s is already given on line %d", printable(key), first),
				Fix: "keep one of them", earlier: first,
			}
		}
		seen[key] = at
		v := Value{Line: at}
		if mv.Value != nil {
			if v, err = c.value(mv.Value, left-1); err != nil {
				return Value{}, err
			}
		}
		m.Fields = append(m.Fields, Field{Key: key, Line: at, Value: v})
	}
	return Value{Line: m.Line, Any: m}, nil
}

func keyText(k ast.MapKeyNode) (string, error) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, nil
	case *ast.MappingKeyNode:
		if s, ok := k.Value.(*ast.StringNode); ok {
			return s.Value, nil
		}
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.NullNode:
		return k.GetToken().Value, nil
	case *ast.MergeKeyNode:
		_, err := converter{depth: 1}.value(k, 1)
		return "", err
	}
	return "", &Error{Line: lineOf(k), Message: "this key is not plain text", Fix: "use a simple word as the key"}
}

// Get gives the value of a key as it is written, and whether it is there.
func (m *Map) Get(key string) (Value, bool) {
	for _, f := range m.Fields {
		if f.Key == key {
			return f.Value, true
		}
	}
	return Value{}, false
}

// JSON writes the value as JSON with keys in the order of the file.
func (v Value) JSON() json.RawMessage {
	var b strings.Builder
	v.writeJSON(&b)
	return json.RawMessage(b.String())
}

func (v Value) writeJSON(b *strings.Builder) {
	switch x := v.Any.(type) {
	case *Map:
		b.WriteByte('{')
		for i, f := range x.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSONString(b, f.Key)
			b.WriteByte(':')
			f.Value.writeJSON(b)
		}
		b.WriteByte('}')
	case []Value:
		b.WriteByte('[')
		for i, item := range x {
			if i > 0 {
				b.WriteByte(',')
			}
			item.writeJSON(b)
		}
		b.WriteByte(']')
	case string:
		writeJSONString(b, x)
	case int64:
		b.WriteString(strconv.FormatInt(x, 10))
	default: // nil, bool and finite float64 cannot fail
		raw, _ := json.Marshal(x)
		b.Write(raw)
	}
}

func writeJSONString(b *strings.Builder, s string) {
	raw, _ := json.Marshal(s) // a string cannot fail
	b.Write(raw)
}

// Kind says in words what a value is: "text", "a list" and so on.
func (v Value) Kind() string { return kindOf(v.Any) }

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "empty"
	case *Map:
		return "a map"
	case []Value:
		return "a list"
	case string:
		return "text"
	case bool:
		return "true or false"
	}
	return "a number"
}
