package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ken/capability"
)

// Rows: JSON objects that describe one capability each, as the lines of a
// catalog and the items of a tools/list have them.

const (
	maxKept   = 1 << 10 // bytes of a value that nobody knows and that is kept all the same
	maxShared = 256     // bytes of a text that is looked up before it is stored again
)

// A rowReader reads rows of one file. It keeps what is common to them. The
// zero value reads single rows.
type rowReader struct {
	mcp     bool              // only the keys of an MCP tool mean anything
	shared  map[string]string // texts that rows repeat
	dropped map[string]int    // keys of values too large to keep, how often

	walk jsonWalk // for its memory
	row  row
}

func newRowReader() *rowReader {
	return &rowReader{shared: map[string]string{}, dropped: map[string]int{}}
}

// A row is one row as it is read.
type row struct {
	*capability.Capability
	capability.Detail // its schema is a part of the file's bytes

	server     string
	parameters []capability.Parameter
	notes      []rowNote
	seen       [keyCount]bool
}

// A rowNote is something wrong that does not cost the row.
type rowNote struct{ message, fix string }

// read takes a row apart. The row is good until the next call; its capability
// is the caller's. The error is a *jsonError; it costs the row.
func (r *rowReader) read(object []byte) (*row, error) {
	r.walk = jsonWalk{data: object, keys: r.walk.keys[:0]}
	w := &r.walk
	if w.next() != '{' {
		return nil, w.fail("the row is not a JSON object", `write it as {"name": …, "description": …}`)
	}
	r.row = row{Capability: &capability.Capability{}}
	out := &r.row
	err := w.object(func(key []byte, at, end int) error {
		r.member(out, key, object[at:end])
		return nil
	})
	if err != nil {
		return nil, err
	}
	if w.space(); w.pos < len(object) {
		return nil, w.fail("there is more text after the object", "write one object to a line")
	}
	if strings.TrimSpace(out.Name) == "" {
		return nil, &jsonError{code: "no-name", message: "the row has no name", fix: `give it a "name"`}
	}
	out.complete()
	return out, nil
}

// complete fills in what follows from other keys.
func (out *row) complete() {
	c := out.Capability
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
	c.Parameters = parametersOf(out.Schema)
	merged, more := mergeParameters(c.Parameters, out.parameters)
	if !more {
		merged = nil // all of it is in the schema, where it is read once
	}
	c.Parameters = merged
}

// member reads one member of a row. value is valid JSON.
func (r *rowReader) member(out *row, rawKey, value []byte) {
	if string(value) == "null" {
		return
	}
	key := keyOf(rawKey)
	if key == keyUnknown || r.mcp && !key.ofMCP() {
		r.keep(out, unquote(rawKey), value)
		return
	}
	if out.seen[key] && key != keyRequiredTools {
		out.note("%s repeats a key in another spelling; the first stands", unquote(rawKey))
		return
	}
	out.seen[key] = true
	if !r.known(out, key, value) {
		out.mistyped(unquote(rawKey), key, value)
	}
}

func (out *row) note(format string, args ...any) {
	out.notes = append(out.notes, rowNote{fmt.Sprintf(format, args...), "correct the value"})
}

// known reads the value of a known key and reports whether it has the right
// type.
func (r *rowReader) known(out *row, key rowKey, value []byte) (ok bool) {
	c := out.Capability
	switch key {
	case keyID:
		var s string
		s, ok = plainText(value)
		c.ID = capability.ID(s)
	case keyKind:
		var s string
		s, ok = r.word(value)
		c.Kind = capability.Kind(s)
	case keyName:
		c.Name, ok = plainText(value)
	case keyDisplayName:
		c.DisplayName, ok = plainText(value)
	case keyDescription:
		c.Description, ok = plainText(value)
	case keyCategory:
		c.Category, ok = r.word(value)
	case keyTags:
		c.Tags, ok = r.words(value)
	case keyAliases:
		c.Aliases, ok = r.words(value)
	case keyParameters:
		ok = r.parameterList(out, value)
	case keySchema:
		ok = out.takeSchema(value)
	case keyAnnotations:
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
func (r *rowReader) rare(out *row, key rowKey, value []byte) (ok bool) {
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
		c.Unavailable, ok = plainText(value)
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
			out.meta("server", out.server)
		}
	case keyBody:
		out.Body, ok = plainText(value)
	case keyUsage:
		out.Usage, ok = plainText(value)
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

// plainText reads a text; numbers and booleans are taken as they are written.
func plainText(value []byte) (string, bool) {
	switch value[0] {
	case '"':
		return unquote(value[1 : len(value)-1]), true
	case '{', '[', 'n': // n is for null
		return "", false
	}
	return string(value), true
}

// word reads a text that other rows are likely to have too, and stores it once.
func (r *rowReader) word(value []byte) (string, bool) {
	if len(value) > maxShared || value[0] != '"' || bytes.IndexByte(value, '\\') >= 0 {
		return plainText(value)
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
func (r *rowReader) words(value []byte) (list []string, ok bool) {
	if value[0] == '"' {
		s, _ := plainText(value)
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
	w := jsonWalk{data: value, loose: true}
	_ = w.array(func(at, end int) error { // value is valid
		s, isText := r.word(value[at:end])
		if ok = ok && isText; isText {
			list = append(list, s)
		}
		return nil
	})
	return list, ok
}

// takeSchema takes an input schema as it stands.
func (out *row) takeSchema(value []byte) bool {
	if value[0] != '{' {
		return false
	}
	out.Schema = value
	return true
}

// annotations reads what MCP calls hints, with or without that ending.
func (r *rowReader) annotations(out *row, value []byte) bool {
	if value[0] != '{' {
		return false
	}
	w := jsonWalk{data: value, loose: true}
	_ = w.object(func(key []byte, at, end int) error {
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
			if s, ok := plainText(v); ok && out.DisplayName == "" {
				out.DisplayName = s
			}
			return nil
		default:
			r.keep(out, "annotations."+unquote(key), v)
			return nil
		}
		if isBool(v) {
			*hint = capability.HintOf(v[0] == 't')
		} else if string(v) != "null" {
			out.note("annotation %s is not true or false", unquote(key))
		}
		return nil
	})
	return true
}

func (out *row) meta(key, value string) {
	if out.Meta == nil {
		out.Meta = map[string]string{}
	}
	out.Meta[key] = value
}

// keep keeps the value of a key that nobody knows, unless it is large.
func (r *rowReader) keep(out *row, key string, value []byte) {
	if r.mcp && key == keyOutput && string(value) != "null" {
		out.Output = value
		out.meta(key, outputMark(value))
		return
	}
	if len(value) > maxKept {
		if r.dropped != nil {
			r.dropped[key]++
		}
		return
	}
	s, ok := r.word(value)
	if !ok {
		s = string(value)
	}
	out.meta(key, s)
}

// droppedMessage says which values were not kept, or "".
func (r *rowReader) droppedMessage() string {
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
	return fmt.Sprintf("%d values of more than %d bytes under keys that Ken does not read are not kept: %s", total, maxKept, strings.Join(keys, ", "))
}
