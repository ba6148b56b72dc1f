package openapi

import (
	"bytes"
	"fmt"

	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

const (
	MaxYAMLBytes    = 4 << 20 // about 300 MB of memory while it is parsed
	maxAPIYAMLItems = 200_000
	maxAPIYAMLDepth = 100

	// maxBlockCost bounds the sum of the squares of the sizes of all maps:
	// the time that the parser takes grows with it, half a second for this.
	maxBlockCost = 100_000_000
)

// parseAPI reads a description that is JSON or YAML, whatever its name says.
// The error is a *Error or a *yamldoc.Error.
func parseAPI(p string, data []byte) (yamldoc.Value, error) {
	text := bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	isObject := bytes.HasPrefix(text, []byte("{"))
	if isObject || safefs.HasExt(p, ".json") {
		v, err := parseJSON(data)
		if err == nil || safefs.HasExt(p, ".json") {
			return v, err
		}
	}
	if len(data) > MaxYAMLBytes {
		return yamldoc.Value{}, &yamldoc.Error{
			Message: fmt.Sprintf("the file has %d bytes, more than the %d that are read as YAML", len(data), MaxYAMLBytes),
			Fix:     "save it as JSON, of which more is read, or split it",
		}
	}
	if err := checkBlocks(data); err != nil {
		return yamldoc.Value{}, err
	}
	return yamldoc.ParseValue(data, yamldoc.Limits{Bytes: MaxYAMLBytes, Keys: maxAPIYAMLItems, Depth: maxAPIYAMLDepth})
}

// checkBlocks goes over the lines of a YAML document, keeping count of the
// keys of each block by their indentation, and refuses what would take long to
// parse. Text that looks like keys counts too; there is room enough.
func checkBlocks(data []byte) error {
	type block struct{ indent, keys int }
	var open []block
	cost := 0
	for number := 1; len(data) > 0; number++ {
		line, rest, _ := format.CutLine(data)
		data = rest
		text := bytes.TrimLeft(line, " ")
		indent := len(line) - len(text)
		dashes := 0
		for bytes.HasPrefix(text, []byte("- ")) {
			inner := bytes.TrimLeft(text[1:], " ")
			indent += len(text) - len(inner)
			text = inner
			dashes++
		}
		if len(text) == 0 || text[0] == '#' {
			continue
		}
		for len(open) > 0 && (open[len(open)-1].indent > indent || dashes > 0 && open[len(open)-1].indent == indent) {
			open = open[:len(open)-1]
		}
		if !hasBlockKey(text) {
			continue
		}
		if len(open) == 0 || open[len(open)-1].indent < indent {
			open = append(open, block{indent: indent})
		}
		top := &open[len(open)-1]
		top.keys++
		cost += 2 * top.keys
		switch {
		case cost > maxBlockCost:
			return &yamldoc.Error{Line: number, Message: "too many keys in one place", Fix: "save it as JSON, or split it"}
		case len(open)+dashes > maxAPIYAMLDepth:
			return &yamldoc.Error{Line: number, Message: fmt.Sprintf("nested deeper than %d levels", maxAPIYAMLDepth), Fix: "flatten it"}
		}
	}
	return nil
}

// hasBlockKey reports whether a line may begin with a key.
func hasBlockKey(text []byte) bool {
	if text[0] == '?' || text[0] == ':' {
		return true
	}
	for i, c := range text {
		if c == ':' && (i+1 == len(text) || text[i+1] == ' ' || text[i+1] == '\t' || text[i+1] == '\r') {
			return true
		}
	}
	return false
}
