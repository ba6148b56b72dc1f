package rows

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ken/capability"
	"ken/internal/know/source/jsonscan"
	"ken/internal/know/source/seal"
)

// Rows: JSON objects that describe one capability each, as the lines of a
// catalog and the items of a tools/list have them.

const (
	MaxKept   = 1 << 10 // bytes of the value of an unknown key that is kept
	maxShared = 256     // bytes of a text that is looked up before it is stored again
)

// A Reader reads rows of one file. It keeps what is common to them. The
// zero value reads single rows.
type Reader struct {
	MCP     bool              // only the keys of an MCP tool mean anything
	shared  map[string]string // texts that rows repeat
	dropped map[string]int    // keys of values too large to keep, how often

	walk jsonscan.Scanner // for its memory
	row  Row
}

// NewReader returns a Reader for many rows of one file.
func NewReader() *Reader {
	return &Reader{shared: map[string]string{}, dropped: map[string]int{}}
}

// A Row is one row as it is read.
type Row struct {
	*capability.Capability
	capability.Detail // its schema is a part of the file's bytes

	server     string
	parameters []capability.Parameter
	hints      json.RawMessage // an object with the annotations that are not hints
	Notes      []Note
	seen       [KeyCount]bool
}

// A Note is something wrong that does not cost the row.
type Note struct{ Message, Fix string }

// Read takes a row apart. The row is good until the next call; its capability
// is the caller's. The error is a *Error; it costs the row.
func (r *Reader) Read(object []byte) (*Row, error) {
	w := &r.walk
	w.Reset(object)
	if w.Next() != '{' {
		return nil, w.Fail("the row is not a JSON object", `write it as {"name": …, "description": …}`)
	}
	r.row = Row{Capability: &capability.Capability{}}
	out := &r.row
	err := w.Object(func(key []byte, at, end int) error {
		r.member(out, key, object[at:end])
		return nil
	})
	if err != nil {
		return nil, err
	}
	if w.Space(); w.Pos < len(object) {
		return nil, w.Fail("there is more text after the object", "write one object to a line")
	}
	if strings.TrimSpace(out.Name) == "" {
		return nil, &jsonscan.Error{Code: "no-name", Message: "the row has no name", Fix: `give it a "name"`}
	}
	out.complete()
	return out, nil
}

// complete fills in what follows from other keys.
func (out *Row) complete() {
	c := out.Capability
	if out.hints != nil {
		out.Extra = AppendMember(out.Extra, "annotations", out.hints)
	}
	if c.Kind == "" {
		c.Kind = capability.KindTool
	}
	if c.ID == "" {
		c.ID = capability.MakeID(c.Kind, c.Name)
	}
	if c.Category == "" {
		c.Category = out.server
	}
	if len(out.parameters) == 0 {
		return
	}
	if len(out.Schema) == 0 {
		out.Schema = rowSchema(out.parameters)
		return
	}
	// The schema says what is passed; the list may say more about it.
	c.Parameters = seal.Parameters(out.Schema)
	merged, more := mergeParameters(c.Parameters, out.parameters)
	if !more {
		merged = nil // all of it is in the schema, where it is read once
	}
	c.Parameters = merged
}

// member reads one member of a row. value is valid JSON.
func (r *Reader) member(out *Row, rawKey, value []byte) {
	if string(value) == "null" {
		return
	}
	key := KeyOf(rawKey)
	if key == KeyUnknown || r.MCP && !key.ofMCP() {
		r.keep(out, jsonscan.Unquote(rawKey), value)
		return
	}
	if out.seen[key] && key != keyRequiredTools {
		out.addNote("%s repeats a key in another spelling; the first stands", jsonscan.Unquote(rawKey))
		return
	}
	out.seen[key] = true
	if !r.known(out, key, value) {
		out.mistyped(jsonscan.Unquote(rawKey), key, value)
	}
}

func (out *Row) addNote(format string, args ...any) {
	out.Notes = append(out.Notes, Note{fmt.Sprintf(format, args...), "correct the value"})
}

// known reads the value of a known key and reports whether it has the right
// type.
func (r *Reader) known(out *Row, key rowKey, value []byte) (ok bool) {
	c := out.Capability
	switch key {
	case keyID:
		var s string
		s, ok = PlainText(value)
		c.ID = capability.ID(s)
	case keyKind:
		var s string
		s, ok = r.word(value)
		c.Kind = capability.Kind(s)
	case KeyName:
		c.Name, ok = PlainText(value)
	case KeyDisplayName:
		c.DisplayName, ok = PlainText(value)
	case KeyDescription:
		c.Description, ok = PlainText(value)
	case keyCategory:
		c.Category, ok = r.word(value)
	case keyTags:
		c.Tags, ok = r.words(value)
	case keyAliases:
		c.Aliases, ok = r.words(value)
	case keyParameters:
		ok = r.parameterList(out, value)
	case KeySchema:
		ok = out.takeSchema(value)
	case KeyAnnotations:
		ok = r.annotations(out, value)
	case keyRequiredTools:
		var list []string
		list, ok = r.words(value)
		c.RequiredTools = append(c.RequiredTools, list...)
	default:
		ok = r.rare(out, key, value)
	}
	return ok
}

// rare reads the keys that few rows have.
func (r *Reader) rare(out *Row, key rowKey, value []byte) (ok bool) {
	c := out.Capability
	switch key {
	case keyRequiredSecrets:
		c.RequiredSecrets, ok = r.words(value)
	case keyRequiredBins:
		c.RequiredBins, ok = r.words(value)
	case keyRequiredPlatforms:
		c.RequiredPlatforms, ok = r.words(value)
	case keyPermissions:
		c.Permissions, ok = r.words(value)
	case keyAvailable:
		if ok = isBool(value); ok && value[0] == 'f' && c.Unavailable == "" {
			c.Unavailable = "its catalog says that it is not available"
		}
	case keyUnavailable:
		c.Unavailable, ok = PlainText(value)
	case keySideEffects:
		if ok = isBool(value); ok {
			c.Effects.ReadOnly = capability.HintOf(value[0] == 'f')
		}
	case keyRun:
		ok = strictly(value, &c.Run)
	case keyTriggers:
		ok = strictly(value, &c.Triggers)
	case keyMigrations:
		ok = strictly(value, &c.Migrations)
	case keyPriority:
		ok = json.Unmarshal(value, &c.Priority) == nil
	case keyTokenBudget:
		ok = json.Unmarshal(value, &c.TokenBudget) == nil
	case keyMaxChars:
		ok = json.Unmarshal(value, &c.MaxChars) == nil
	case keyVersion:
		c.Version, ok = r.word(value)
	case keyServer:
		if out.server, ok = r.word(value); ok {
			out.SetMeta("server", out.server)
		}
	case keyBody:
		out.Body, ok = PlainText(value)
	case keyUsage:
		out.Usage, ok = PlainText(value)
	}
	return ok
}

// strictly decodes a value into *v and, where something in it has no place,
// leaves *v empty.
func strictly[T any](value []byte, v *T) bool {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	if dec.Decode(v) != nil {
		var zero T
		*v = zero
		return false
	}
	return true
}

func isBool(value []byte) bool { return string(value) == "true" || string(value) == "false" }

// PlainText reads a text; numbers and booleans are taken as they are written.
func PlainText(value []byte) (string, bool) {
	switch value[0] {
	case '"':
		return jsonscan.Unquote(value[1 : len(value)-1]), true
	case '{', '[', 'n': // n is for null
		return "", false
	}
	return string(value), true
}

// word reads a text that other rows are likely to have too, and stores it once.
func (r *Reader) word(value []byte) (string, bool) {
	if len(value) > maxShared || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return PlainText(value)
	}
	raw := value[1 : len(value)-1]
	if s, ok := r.shared[string(raw)]; ok {
		return s, true
	}
	s := string(raw)
	if r.shared != nil {
		r.shared[s] = s
	}
	return s, true
}

// words reads a list of texts, or one text with commas between them.
func (r *Reader) words(value []byte) (list []string, ok bool) {
	if value[0] == '"' {
		s, _ := PlainText(value)
		for w := range strings.SplitSeq(s, ",") {
			if w = strings.TrimSpace(w); w != "" {
				list = append(list, w)
			}
		}
		return list, true
	}
	if value[0] != '[' {
		return nil, false
	}
	ok = true
	w := jsonscan.Scanner{Data: value, Loose: true}
	_ = w.Array(func(at, end int) error { // value is valid
		s, isText := r.word(value[at:end])
		if ok = ok && isText; isText {
			list = append(list, s)
		}
		return nil
	})
	return list, ok
}

// takeSchema takes an input schema as it stands.
func (out *Row) takeSchema(value []byte) bool {
	if value[0] != '{' {
		return false
	}
	out.Schema = value
	return true
}

// annotations reads what MCP calls hints, with or without that ending.
func (r *Reader) annotations(out *Row, value []byte) bool {
	if value[0] != '{' {
		return false
	}
	w := jsonscan.Scanner{Data: value, Loose: true}
	_ = w.Object(func(key []byte, at, end int) error {
		v, e := value[at:end], &out.Effects
		var hint *capability.Hint
		switch string(bytes.TrimSuffix(key, []byte("Hint"))) {
		case "readOnly":
			hint = &e.ReadOnly
		case "destructive":
			hint = &e.Destructive
		case "idempotent":
			hint = &e.Idempotent
		case "openWorld":
			hint = &e.OpenWorld
		case "title":
			if s, ok := PlainText(v); ok {
				if out.DisplayName == "" {
					out.DisplayName = s
				}
				if r.MCP {
					out.hints = AppendMember(out.hints, "title", v)
					out.SetMeta("annotations.title", s)
				}
			}
			return nil
		default:
			name := jsonscan.Unquote(key)
			if r.MCP && len(v) <= MaxKept {
				out.hints = AppendMember(out.hints, name, v)
			}
			r.keep(out, "annotations."+name, v)
			return nil
		}
		if isBool(v) {
			*hint = capability.HintOf(v[0] == 't')
		} else if string(v) != "null" {
			out.addNote("annotation %s is not true or false", jsonscan.Unquote(key))
		}
		return nil
	})
	return true
}

// SetMeta keeps a value that has no field of its own.
func (out *Row) SetMeta(key, value string) {
	if out.Meta == nil {
		out.Meta = map[string]string{}
	}
	out.Meta[key] = value
}

// keep keeps the value of an unknown key, unless it is large.
func (r *Reader) keep(out *Row, key string, value []byte) {
	if r.MCP && key == KeyOutput && string(value) != "null" {
		out.Output = value
		out.SetMeta(key, OutputMark(value))
		return
	}
	if r.MCP && slices.Contains(ExtraKeys(), key) && len(value) <= maxExtra {
		out.Extra = AppendMember(out.Extra, key, value)
		out.SetMeta(key, OutputMark(value))
		return
	}
	if len(value) > MaxKept {
		if r.dropped != nil {
			r.dropped[key]++
		}
		return
	}
	s, ok := r.word(value)
	if !ok {
		s = string(value)
	}
	out.SetMeta(key, s)
}

// AddDropped adds the values that another Reader did not keep to those of this one.
func (r *Reader) AddDropped(other *Reader) {
	if other == r {
		return
	}
	for key, n := range other.dropped {
		r.dropped[key] += n
	}
}

// DroppedMessage says which values were not kept, or "".
func (r *Reader) DroppedMessage() string {
	if len(r.dropped) == 0 {
		return ""
	}
	var keys []string
	total := 0
	for key, n := range r.dropped {
		keys = append(keys, key+" ("+strconv.Itoa(n)+")")
		total += n
	}
	slices.Sort(keys)
	if len(keys) > 8 {
		keys = append(keys[:8], "…")
	}
	return fmt.Sprintf("%d values under keys that Ken does not read are too large to keep: %s", total, strings.Join(keys, ", "))
}
