package yamldoc

import (
	"fmt"
	"math"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

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
		if x, ok := plainFloat(n); ok {
			return Value{Line: line, Any: x}, nil
		}
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

// plainFloat reads a plain scalar that is a number by the core schema of YAML 1.2,
// and by JSON, and that the parser takes for a text: 1e-07, 1e3, +1.0E2. A number
// that does not fit stays a text.
func plainFloat(n *ast.StringNode) (float64, bool) {
	if n.Token == nil || n.Token.Type != token.StringType || !isFloat(n.Value) {
		return 0, false
	}
	x, err := strconv.ParseFloat(n.Value, 64)
	return x, err == nil
}

// isFloat reports whether a text is [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?,
// the numbers of YAML 1.2.
func isFloat(s string) bool {
	digits := func() (n int) {
		for ; n < len(s) && s[n] >= '0' && s[n] <= '9'; n++ {
		}
		s = s[n:]
		return n
	}
	sign := func() {
		if s != "" && (s[0] == '-' || s[0] == '+') {
			s = s[1:]
		}
	}
	sign()
	whole, fraction := digits(), 0
	if s != "" && s[0] == '.' {
		s = s[1:]
		fraction = digits()
	}
	if whole+fraction == 0 {
		return false
	}
	if s == "" {
		return true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = s[1:]
	sign()
	return digits() > 0 && s == ""
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
			return Value{}, repeated(m, key, at, first)
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

// repeated returns the error for a key that the map already has on another
// line. In a file that ken init wrote, the earlier one is often a section with
// nothing but comments.
func repeated(m *Map, key string, line, first int) *Error {
	fix := "keep one of them"
	for _, f := range m.Fields {
		if f.Key == key && f.Value.Any == nil {
			fix = "that one has no values: move the lines from here below it, or remove it"
		}
	}
	return &Error{Line: line, Message: fmt.Sprintf("key %s is already given on line %d", printable(key), first), Fix: fix, earlier: first}
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
