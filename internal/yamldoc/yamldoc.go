// Package yamldoc reads YAML and JSON that came from outside: bounded before
// it is parsed, with the line of everything, and without guessing.
//
// [Parse] returns the document as a [Map]; a [Reader] takes what it knows out of
// a map, in any spelling of a key, and remembers what was wrong and what was
// left, so that one caller may refuse unknown keys and another only mention
// them.
//
// Anchors, aliases, merge keys and tags are refused: no format that Ken reads
// needs them, and they are how a small file becomes a large one or says
// something else than it seems to.
package yamldoc

import (
	"fmt"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
)

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
