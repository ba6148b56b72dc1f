package llmtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ken/llm"
)

// An object is JSON of a request while it is checked. Its methods panic with a
// failure, as the vendor would answer it; understand recovers.
type object struct {
	path string
	m    map[string]json.RawMessage
}

// refuse ends the reading of a request.
func refuse(param, format string, args ...any) {
	panic(failure{status: http.StatusBadRequest, param: param, message: fmt.Sprintf(format, args...)})
}

// look reads an object. The spec names the fields that it may have; those with
// an exclamation mark it must have.
func look(path string, raw json.RawMessage, spec string) object {
	o := object{path, nil}
	if err := json.Unmarshal(raw, &o.m); err != nil || o.m == nil {
		refuse(path, "%s: want an object", path)
	}
	allowed := strings.Fields(spec)
	for _, name := range allowed {
		if must, ok := strings.CutSuffix(name, "!"); ok {
			if _, there := o.m[must]; !there {
				refuse(o.at(must), "%s: Field required", o.at(must))
			}
		}
	}
	for name := range o.m {
		if !slices.Contains(allowed, name) && !slices.Contains(allowed, name+"!") {
			refuse(o.at(name), "%s: Extra inputs are not permitted (unknown field)", o.at(name))
		}
	}
	return o
}

// kind is the field that says which sort of object it is, before its fields are
// checked.
func kind(path string, raw json.RawMessage, field string) string {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		refuse(path, "%s: want an object", path)
	}
	return object{path, m}.text(field)
}

func (o object) at(name string) string {
	if o.path == "" {
		return name
	}
	return o.path + "." + name
}

func (o object) has(name string) bool {
	raw, ok := o.m[name]
	return ok && string(raw) != "null"
}

// text is a string; one that is absent is empty.
func (o object) text(name string) string {
	var s string
	o.into(name, &s, "a string")
	return s
}

func (o object) number(name string) int {
	var n int
	o.into(name, &n, "a whole number")
	return n
}

func (o object) flag(name string) bool {
	var b bool
	o.into(name, &b, "true or false")
	return b
}

func (o object) list(name string) []json.RawMessage {
	var l []json.RawMessage
	o.into(name, &l, "a list")
	return l
}

func (o object) texts(name string) []string {
	var l []string
	o.into(name, &l, "a list of strings")
	return l
}

func (o object) into(name string, to any, want string) {
	if !o.has(name) {
		return
	}
	if err := json.Unmarshal(o.m[name], to); err != nil {
		refuse(o.at(name), "%s: Input should be %s", o.at(name), want)
	}
}

// child is an object in a field.
func (o object) child(name, spec string) object { return look(o.at(name), o.m[name], spec) }

// one is a text that must be one of the values.
func (o object) one(name string, values ...string) string {
	s := o.text(name)
	if !slices.Contains(values, s) {
		refuse(o.at(name), "%s: Invalid value: %q. Supported values are: %q", o.at(name), s, values)
	}
	return s
}

// isString reports whether the field holds text rather than parts.
func (o object) isString(name string) bool {
	return len(o.m[name]) > 0 && o.m[name][0] == '"'
}

// arguments are what a call was made with: an object, in a string where the
// wire has it so.
func (o object) arguments(name string, inString bool) []byte {
	raw := []byte(o.m[name])
	if inString {
		raw = []byte(o.text(name))
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		refuse(o.at(name), "%s: Input should be a valid dictionary", o.at(name))
	}
	return raw
}

// schema checks the parameters of a tool.
func (o object) schema(name, tool string) json.RawMessage {
	raw := o.m[name]
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil || string(m["type"]) != `"object"` {
		refuse(o.at(name), "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'", tool)
	}
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		if _, ok := m[key]; ok {
			refuse(o.at(name), "Invalid schema for function '%s': schema does not support %s at the top level", tool, key)
		}
	}
	return raw
}

// toolName checks a name as all vendors but Gemini do.
func (o object) toolName(field string, most int) string {
	name := o.text(field)
	ok := name != "" && len(name) <= most
	for i := range len(name) {
		c := name[i]
		ok = ok && (c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
	}
	if !ok {
		refuse(o.at(field), "%s: String should match pattern '^[a-zA-Z0-9_-]{1,%d}$'", o.at(field), most)
	}
	return name
}

// dataURL reads an image from the address that holds it.
func (o object) dataURL(name string) *llm.Image {
	rest, ok := strings.CutPrefix(o.text(name), "data:")
	mime, data, found := strings.Cut(rest, ";base64,")
	if !ok || !found {
		refuse(o.at(name), "%s: want a data: address with base64", o.at(name))
	}
	return o.picture(name, mime, data)
}

// picture checks an image.
func (o object) picture(name, mime, data string) *llm.Image {
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, mime) {
		refuse(o.at(name), "%s: unsupported image type %q", o.at(name), mime)
	}
	bytes, err := base64.StdEncoding.DecodeString(data)
	if err != nil || len(bytes) == 0 {
		refuse(o.at(name), "%s: the image data is not valid base64", o.at(name))
	}
	return &llm.Image{MIME: mime, Data: bytes}
}

// wantText refuses text without a word where the vendor does.
func wantText(path, text string) {
	if strings.TrimSpace(text) == "" {
		refuse(path, "%s: text content blocks must contain non-whitespace text", path)
	}
}

// A book keeps calls and results in step: each call has exactly one result, in
// the message right after it.
type book struct {
	open  map[string]string // name of the tool by the ID of a call without a result
	order []string
	used  map[string]bool // IDs of all calls so far
}

func newBook() *book { return &book{open: map[string]string{}, used: map[string]bool{}} }

func (b *book) call(path, id, name string) {
	if id == "" {
		refuse(path, "%s: a call needs an id", path)
	}
	if b.used[id] {
		refuse(path, "%s: ids of calls must be unique: %q", path, id)
	}
	b.used[id] = true
	b.open[id] = name
	b.order = append(b.order, id)
}

// result pairs it with its call, and gives the name of the tool.
func (b *book) result(path, id string) string {
	name, ok := b.open[id]
	if !ok {
		refuse(path, "%s: unexpected tool result: no call with the id %q waits for one in the message before", path, id)
	}
	delete(b.open, id)
	return name
}

// settled refuses calls that still wait.
func (b *book) settled(path string) {
	for _, id := range b.order {
		if _, waits := b.open[id]; waits {
			refuse(path, "%s: calls must be followed by their results; these have none: %s", path, id)
		}
	}
	b.order = nil
}

// header refuses a request that lacks a header.
func (in *incoming) header(name, want string) {
	got := in.Header.Get(name)
	if got == "" || want != "" && !strings.HasPrefix(got, want) {
		refuse(name, "%s: header is required, want it to begin with %q", name, want)
	}
}

// posted checks method, path and form.
func (in *incoming) posted(paths ...string) {
	path, _, _ := strings.Cut(in.Path, "?")
	if in.method != http.MethodPost || !slices.Contains(paths, path) {
		panic(failure{status: http.StatusNotFound, message: fmt.Sprintf("Invalid URL (%s %s)", in.method, in.Path)})
	}
	in.header("Content-Type", "application/json")
	if !json.Valid(in.Body) {
		refuse("", "We could not parse the JSON body of your request.")
	}
}

// unique refuses two tools of one name.
func unique(path string, tools []llm.Tool) {
	seen := map[string]bool{}
	for _, t := range tools {
		if seen[t.Name] {
			refuse(path, "%s: Tool names must be unique: %q", path, t.Name)
		}
		seen[t.Name] = true
	}
}

// sign makes what a vendor gives with a thought and wants back unchanged.
func sign(wire Wire, text string) string {
	return base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "%s signed %d %s", wire, len(text), digest(text)))
}

// digest is a short hash of a text.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}
