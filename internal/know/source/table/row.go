package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/yamldoc"
)

// A shape is the columns of a table, and where in them the key is.
type shape struct {
	columns  []string
	id, name string // as the table writes them; id may be missing
}

// A shapeError says that a table cannot hold capabilities.
type shapeError struct{ message, fix string }

func (e *shapeError) Error() string { return e.message + "; " + e.fix }

// foldColumn makes all spellings of a column equal.
func foldColumn(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}

func newShape(columns []string) (shape, error) {
	s := shape{columns: columns}
	found := map[string]string{}
	for _, c := range columns {
		if _, have := found[foldColumn(c)]; !have {
			found[foldColumn(c)] = c
		}
	}
	s.id, s.name = found["id"], found["name"]
	for _, need := range []string{"name", "description"} {
		if found[need] == "" {
			return s, &shapeError{
				fmt.Sprintf("the table has no column %s; it has %s", need, strings.Join(columns, ", ")),
				"add the column, or name a view that has it",
			}
		}
	}
	return s, nil
}

// keyExpression is the key of a row in SQL: its id, or its name where it has
// none. cast turns a column into text.
func (s shape) keyExpression(cast func(column string) string) string {
	name := cast(quote(s.name))
	if s.id == "" {
		return name
	}
	return fmt.Sprintf("COALESCE(NULLIF(%s, ''), %s)", cast(quote(s.id)), name)
}

// capability reads a row. The problem, if there is one, says why it holds no
// capability.
func (s shape) capability(one row) (*capability.Capability, capability.Detail, *capability.Problem) {
	lost := func(code, message, fix string) (*capability.Capability, capability.Detail, *capability.Problem) {
		return nil, capability.Detail{}, &capability.Problem{Code: code, Message: message, Fix: fix}
	}
	if one.values == nil {
		return lost("too-large", fmt.Sprintf("the row has %d bytes, more than the %d that are read", one.size, maxRowBytes), "shorten its body")
	}
	m := &yamldoc.Map{}
	for i, v := range one.values {
		value, ok := valueOf(s.columns[i], v)
		if !ok {
			return lost("bad-row", fmt.Sprintf("column %s is not text", s.columns[i]), "store it as text in UTF-8")
		}
		m.Fields = append(m.Fields, yamldoc.Field{Key: s.columns[i], Value: value})
	}
	r := yamldoc.NewReader(m)
	c := &capability.Capability{
		ID: capability.ID(strings.TrimSpace(r.String("id"))), Kind: capability.Kind(strings.TrimSpace(r.String("kind"))),
		Name: strings.TrimSpace(r.String("name")), DisplayName: firstText(r, "displayName", "title"),
		Description: strings.TrimSpace(r.String("description")), Category: r.String("category"),
		Tags: r.Words("tags"), Aliases: r.Words("aliases"), Permissions: r.Words("permissions"),
		RequiredTools: append(r.Words("requiredTools"), r.Words("dependsOn")...), RequiredSecrets: r.Words("requiredSecrets"),
		RequiredBins: r.Words("requiredBins"), RequiredPlatforms: r.Words("requiredPlatforms"),
		Version: r.String("version"),
	}
	if c.Kind == "" {
		c.Kind = capability.KindTool
	}
	d := capability.Detail{Body: firstText(r, "body", "content", "fullContent"), Usage: r.String("usage")}
	available(c, r)
	schema, err := s.schema(one, r)
	switch {
	case c.Name == "":
		return lost("no-name", "the row has no name", "fill its column name")
	case c.Description == "":
		return lost("no-description", fmt.Sprintf("%s has no description, so nothing would find it", c.Name), "fill its column description")
	case err != nil:
		return lost("bad-schema", fmt.Sprintf("the input schema of %s is not a JSON object: %v", c.Name, err), "store a JSON Schema with type and properties")
	case len(r.Issues()) > 0:
		return lost("bad-row", fmt.Sprintf("%s: %s", c.Name, r.Issues()[0].Message), "correct the value")
	}
	d.Schema = schema
	keepRest(c, r)
	return c, d, nil
}

// firstText returns the first of the columns that says something; the others
// stay as metadata.
func firstText(r *yamldoc.Reader, columns ...string) string {
	for _, c := range columns {
		if s := r.String(c); s != "" {
			return s
		}
	}
	return ""
}

// lists are the columns whose text may be a JSON array.
func lists() []string {
	return []string{"tags", "aliases", "permissions", "requiredtools", "dependson", "requiredsecrets", "requiredbins", "requiredplatforms"}
}

// valueOf turns a value of the database into one of a document.
func valueOf(column string, v any) (yamldoc.Value, bool) {
	if text, ok := v.(string); ok && strings.HasPrefix(strings.TrimSpace(text), "[") && slices.Contains(lists(), foldColumn(column)) && json.Valid([]byte(text)) {
		v = json.RawMessage(text)
	}
	switch v := v.(type) {
	case nil:
		return yamldoc.Value{}, true
	case string:
		if v == "" { // an empty column says nothing
			return yamldoc.Value{}, true
		}
		return yamldoc.Value{Any: v}, true
	case bool, int64, float64:
		return yamldoc.Value{Any: v, Text: fmt.Sprint(v)}, true
	case json.RawMessage:
		value, err := yamldoc.ParseValue(v, yamldoc.Limits{Bytes: maxRowBytes, Keys: 100_000, Depth: 200})
		return value, err == nil
	}
	return yamldoc.Value{}, false
}

// available reads the table's own word on whether it can be used. SQLite has
// no booleans, so 0 and 1 count.
func available(c *capability.Capability, r *yamldoc.Reader) {
	f, ok := r.Field("available")
	if !ok {
		return
	}
	switch f.Value.Any {
	case true, int64(1), "1", "true", "yes":
	default:
		c.Unavailable = "the table lists it as unavailable; set available to true there"
	}
}

// schema returns the input schema as it is stored, without blanks.
func (s shape) schema(one row, r *yamldoc.Reader) (json.RawMessage, error) {
	f, ok := r.Field("inputSchema", "schema")
	if !ok {
		return nil, nil
	}
	var raw []byte
	switch v := one.values[slices.Index(s.columns, f.Key)].(type) {
	case string:
		raw = []byte(v)
	case json.RawMessage:
		raw = v
	default:
		return nil, fmt.Errorf("got %v", v)
	}
	var out bytes.Buffer
	if err := json.Compact(&out, raw); err != nil {
		return nil, err
	}
	if out.Len() == 0 || out.Bytes()[0] != '{' {
		return nil, fmt.Errorf("text begins with %.20q", out.String())
	}
	return out.Bytes(), nil
}

// keepRest keeps columns that a capability has no field for.
func keepRest(c *capability.Capability, r *yamldoc.Reader) {
	for _, f := range r.Rest() {
		if f.Value.Any == nil {
			continue
		}
		if c.Meta == nil {
			c.Meta = map[string]string{}
		}
		if s, ok := f.Value.Any.(string); ok {
			c.Meta[f.Key] = s
		} else {
			c.Meta[f.Key] = string(f.Value.JSON())
		}
	}
}
