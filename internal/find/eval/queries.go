package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"ken/capability"
)

// A Query is one labelled message.
type Query struct {
	ID     string    `json:"id"`
	Text   string    `json:"query"`
	Gold   []string  `json:"gold"`             // ids of what should be found; none: nothing should
	Before []Message `json:"before,omitempty"` // what was said before it, oldest first

	File string `json:"-"` // where it was read
	Line int    `json:"-"`
}

// A Message is something said earlier in a conversation.
type Message struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

func (q Query) origin() capability.Origin {
	return capability.Origin{Source: q.File, Format: "queries", Path: q.File, Line: q.Line}
}

// maxRow is how long one line may be; a message may well have a megabyte.
const maxRow = 8 << 20

// ReadQueries reads one query per line, as in
//
//	{"id":"q1","query":"what is on my calendar","gold":["tool:calendar"]}
//
// name is the file's, for what is said about it. A row that cannot be taken as
// it is written is not among the queries but among the problems, with severity
// Grave; a measurement over the rest is not the one that was asked for. Rows
// without an id are called after their line. Keys besides those of [Query] are
// ignored. The error is for what could not be read at all.
func ReadQueries(r io.Reader, name string) ([]Query, []capability.Problem, error) {
	var queries []Query
	var problems []capability.Problem
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64<<10), maxRow)
	line := 0
	for lines.Scan() {
		line++
		text := lines.Bytes()
		if line == 1 {
			text = bytes.TrimPrefix(text, []byte("\ufeff"))
		}
		if text = bytes.TrimSpace(text); len(text) == 0 {
			continue
		}
		q := Query{File: name, Line: line}
		complain := func(severity capability.Severity, code, message, fix string) {
			problems = append(problems, capability.Problem{Severity: severity, Code: code, Origin: q.origin(), Message: message, Fix: fix})
		}
		if err := q.read(text); err != nil {
			complain(capability.Grave, "bad-query", err.Error(), `write {"id":"q1","query":"what is asked","gold":["id of what fits"]}`)
			continue
		}
		if once := distinct(q.Gold); len(once) < len(q.Gold) {
			complain(capability.Warning, "repeated-gold", "the same gold is listed more than once", "name it once; it counts once")
			q.Gold = once
		}
		queries = append(queries, q)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, problems, fmt.Errorf("read queries %s:%d: the row has more than the %d bytes that are read; shorten it", name, line+1, maxRow)
	case err != nil:
		return nil, problems, fmt.Errorf("read queries %s: %w", name, err)
	}
	return queries, problems, nil
}

// read takes over one row.
func (q *Query) read(row []byte) error {
	if !utf8.Valid(row) {
		return errors.New("the row is not valid UTF-8")
	}
	var in struct {
		ID     *string   `json:"id"`
		Text   *string   `json:"query"`
		Gold   *[]string `json:"gold"`
		Before []Message `json:"before"`
	}
	if err := json.Unmarshal(row, &in); err != nil {
		return badRow(err)
	}
	switch {
	case in.Text == nil:
		return errors.New(`the row has no "query"`)
	case strings.TrimSpace(*in.Text) == "":
		return errors.New(`"query" is empty`)
	case in.Gold == nil:
		return errors.New(`the row has no "gold"; an empty list says that nothing fits`)
	case slices.Contains(*in.Gold, ""):
		return errors.New(`"gold" holds an empty id`)
	}
	q.ID = "line " + strconv.Itoa(q.Line)
	if in.ID != nil && *in.ID != "" {
		q.ID = *in.ID
	}
	q.Text, q.Gold, q.Before = *in.Text, *in.Gold, in.Before
	return nil
}

// badRow says in a few words what the decoder dislikes.
func badRow(err error) error {
	var kind *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &kind) && kind.Field != "":
		return fmt.Errorf("%q holds a %s, which does not belong there", kind.Field, kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("the row is a JSON %s and no object", kind.Value)
	case errors.As(err, &syntax):
		return fmt.Errorf("the row is not JSON: %w (byte %d of the row)", err, syntax.Offset)
	}
	return fmt.Errorf("the row is not JSON: %w", err)
}

// distinct returns the list without repetitions, in its order.
func distinct(list []string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
