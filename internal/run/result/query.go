package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ken/capability"
)

// A Query asks for a piece of a result. It is what the tool read_result takes;
// [QuerySchema] describes it.
type Query struct {
	// Handle names the result. Empty, "last" and "last_response" mean the
	// newest of the session, or of Extension where that is given; Succeeded
	// leaves failures out of that choice.
	Handle    string `json:"handle,omitempty"`
	Extension string `json:"extension,omitempty"`
	Succeeded bool   `json:"succeeded,omitempty"`

	// Op is what to read. Empty means the whole result where it has at most
	// Limit characters, and otherwise its head.
	Op Op `json:"op,omitempty"`

	// Count is how many lines head and tail give, 50 when zero, and how many
	// matches search gives, 20 when zero.
	Count int64 `json:"count,omitempty"`

	// From and To are the first and the last line or character, from 1. To
	// zero means as far as Limit goes.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`

	// Pattern is what search looks for, within single lines: plain text, or
	// RE2 with Regexp.
	Pattern    string `json:"pattern,omitempty"`
	Regexp     bool   `json:"regexp,omitempty"`
	IgnoreCase bool   `json:"ignoreCase,omitempty"`

	// Limit is how many characters an answer has at most: 20,000 when zero,
	// and never more than [Whole].
	Limit int64 `json:"limit,omitempty"`
}

// An Op is a way to read.
type Op string

const (
	OpHead   Op = "head"
	OpTail   Op = "tail"
	OpLines  Op = "lines"
	OpChars  Op = "chars"
	OpSearch Op = "search"
	OpInfo   Op = "info" // only the description
	OpList   Op = "list" // the descriptions of all results of the session
)

const (
	visible     = 20_000 // characters that an answer has unless told otherwise
	headLines   = 50
	manyMatches = 20
	mostMatches = 1000
	searchTime  = 2 * time.Second
	longPattern = 1000
)

// QuerySchema is the JSON Schema of a [Query].
const QuerySchema = `{"type":"object","properties":{` +
	`"handle":{"type":"string","description":"Handle of a result; last is the newest"},` +
	`"extension":{"type":"string","description":"With last: the newest of this extension"},` +
	`"succeeded":{"type":"boolean","description":"With last: leave failures out"},` +
	`"op":{"type":"string","enum":["head","tail","lines","chars","search","info","list"]},` +
	`"count":{"type":"integer","minimum":0,"description":"Lines for head and tail, matches for search"},` +
	`"from":{"type":"integer","minimum":0,"description":"First line or character, from 1"},` +
	`"to":{"type":"integer","minimum":0,"description":"Last line or character"},` +
	`"pattern":{"type":"string","description":"What to search for, within single lines"},` +
	`"regexp":{"type":"boolean","description":"The pattern is RE2"},` +
	`"ignoreCase":{"type":"boolean"},` +
	`"limit":{"type":"integer","minimum":0,"description":"Most characters to give"}},"additionalProperties":false}`

// ParseQuery reads a query as a tool call carries it. Unknown keys are
// refused.
func ParseQuery(raw json.RawMessage) (Query, error) {
	var q Query
	if len(raw) == 0 {
		return q, nil
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&q); err != nil {
		return q, refuse(capability.Invalid, "read result", err, "the arguments are handle, op, count, from, to, pattern, regexp and limit")
	}
	return q, nil
}

// check refuses what makes no sense and fills in what was left out.
func (q *Query) check() error {
	bad := func(what, fix string) error {
		return refuse(capability.Invalid, "read result", errors.New(what), fix)
	}
	switch q.Op {
	case "", OpHead, OpTail, OpLines, OpChars, OpInfo, OpList:
	case OpSearch:
		if q.Pattern == "" || len(q.Pattern) > longPattern {
			return bad(fmt.Sprintf("the pattern has %d bytes", len(q.Pattern)), fmt.Sprintf("give one of 1 to %d", longPattern))
		}
	default:
		return bad("unknown op", "the ops are head, tail, lines, chars, search, info and list")
	}
	if q.Count < 0 || q.From < 0 || q.To < 0 || q.Limit < 0 {
		return bad("a number is below zero", "lines and characters count from 1")
	}
	if q.To > 0 && q.To < max(q.From, 1) {
		return bad(fmt.Sprintf("the range ends at %d, before it begins at %d", q.To, q.From), "use a to that is at least from")
	}
	if q.Limit == 0 {
		q.Limit = visible
	}
	q.Limit = min(q.Limit, Whole)
	q.From = max(q.From, 1)
	return nil
}
