package review

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"ken/capability"
)

// A Difference is one thing that is not as it was accepted. Its strings came
// from outside; [Difference.String] is fit for a terminal.
type Difference struct {
	Action capability.ID `json:"action,omitempty"` // empty: the package itself
	Field  string        `json:"field"`            // "permission", "argv", "text", …
	Old    string        `json:"old,omitempty"`    // empty: it was not there
	New    string        `json:"new,omitempty"`    // empty: it is gone

	// Text means that only words changed which a model or a person reads: what
	// would run is the same.
	Text bool `json:"text,omitempty"`
}

// String says it in one line.
func (d Difference) String() string {
	line := d.sentence()
	if d.Action == "" {
		return line
	}
	return "action " + clean(actionName(d.Action)) + ": " + line
}

func (d Difference) sentence() string {
	field, old, now := clean(d.Field), clean(d.Old), clean(d.New)
	switch {
	case d.Field == "action" && d.Old == "":
		return "added, runs " + now
	case d.Field == "action":
		return "removed, ran " + old
	case d.Text && d.Old == "" && d.New == "":
		return "text changed: " + field
	case d.Text:
		return fmt.Sprintf("text changed: %s is now %s, was %s", field, tick(now), tick(old))
	case d.Field == "version" || d.Field == "trust" || d.Field == "path":
		return fmt.Sprintf("%s %s → %s", field, orNone(old), orNone(now))
	case d.Old == "" && d.New == "":
		return field + " changed"
	case d.Old == "":
		return field + " " + now + " added"
	case d.New == "":
		return field + " " + old + " removed"
	}
	return fmt.Sprintf("%s is now %s, was %s", field, tick(now), tick(old))
}

func tick(s string) string { return "`" + s + "`" }

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// actionName returns what a person calls an action: "git/push".
func actionName(id capability.ID) string {
	if _, name, ok := strings.Cut(string(id), ":"); ok {
		return name
	}
	return string(id)
}

// Differences say what is not the same in two manifests: the package first, then
// action by action. Two that have different digests have a difference.
func Differences(old, now *Manifest) []Difference {
	if old.Digest == now.Digest {
		return nil
	}
	out := parts("", old.Package, now.Package)
	if old.Place != now.Place {
		out = append(out, Difference{Field: "path", Old: old.Place, New: now.Place})
	}
	out = append(out, texts("", old, now, old.Package, now.Package)...)
	before, after := byID(old.Actions), byID(now.Actions)
	for _, id := range slices.Sorted(maps.Keys(union(before, after))) {
		was, is := before[id], after[id]
		for i := range max(len(was), len(is)) {
			switch {
			case i >= len(was):
				out = append(out, Difference{Action: id, Field: "action", New: orNone(runs(is[i]))})
			case i >= len(is):
				out = append(out, Difference{Action: id, Field: "action", Old: orNone(runs(was[i]))})
			default:
				out = append(out, parts(id, was[i], is[i])...)
				out = append(out, texts(id, old, now, was[i], is[i])...)
			}
		}
	}
	if len(out) == 0 {
		out = append(out, Difference{Field: "a part that is not shown here"})
	}
	return distinct(out)
}

func union[K comparable, V any](a, b map[K]V) map[K]V {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// distinct keeps the first of equal ones: a usage text belongs to every action.
func distinct(list []Difference) []Difference {
	var out []Difference
	for _, d := range list {
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

func byID(list []*capability.Capability) map[capability.ID][]*capability.Capability {
	out := map[capability.ID][]*capability.Capability{}
	for _, c := range list {
		out[c.ID] = append(out[c.ID], c)
	}
	return out
}

// texts tells what lies behind a hash and in no field: schema, body and usage.
// Where the texts are at hand it says which, else that it is one of them.
func texts(id capability.ID, old, now *Manifest, was, is *capability.Capability) []Difference {
	if was.Hash == is.Hash {
		return nil
	}
	before, known := old.Texts[was.ID]
	after, both := now.Texts[is.ID]
	var out []Difference
	if known && both {
		if string(before.Schema) != string(after.Schema) { // it says where arguments go
			out = append(out, Difference{Action: id, Field: "schema", Old: string(before.Schema), New: string(after.Schema)})
		}
		if before.Body != after.Body {
			out = append(out, Difference{Action: id, Field: "body", Text: true})
		}
		if before.Usage != after.Usage { // one document for the whole package
			out = append(out, Difference{Field: "usage", Text: true})
		}
	}
	if len(out) > 0 || len(parts(id, was, is)) > 0 {
		return out // a changed field changes the hash too, and is told already
	}
	if id == "" { // a package has no other text
		return []Difference{{Field: "usage", Text: true}}
	}
	return []Difference{{Action: id, Field: "schema, body or usage"}}
}

// parts compares two capabilities field by field, whatever fields there are.
func parts(id capability.ID, was, is *capability.Capability) []Difference {
	var out []Difference
	a, b := *was, *is
	a.Findings, b.Findings, a.Hash, b.Hash = nil, nil, "", ""
	a.Origin, b.Origin = capability.Origin{}, capability.Origin{} // Place, and the file's name below
	compare(&out, id, "", reflect.ValueOf(a), reflect.ValueOf(b))
	if x, y := bare(&Manifest{Place: folder(was)}, was).Origin, bare(&Manifest{Place: folder(is)}, is).Origin; x != y {
		out = append(out, Difference{Action: id, Field: "file", Old: x.String(), New: y.String()})
	}
	return out
}

// wordFor returns the word for one item of a list, and for fields whose name in
// the catalog is not what people say.
func wordFor(name string) string {
	switch name {
	case "permissions":
		return "permission"
	case "requiredBins":
		return "program"
	case "requiredSecrets":
		return "secret"
	case "requiredPlatforms":
		return "platform"
	case "requiredTools":
		return "needed capability"
	case "aliases":
		return "alias"
	case "tags":
		return "tag"
	case "parameters":
		return "parameter"
	case "run.env":
		return "variable"
	case "run.action":
		return "first argument"
	case "run.timeoutSec":
		return "timeout in seconds"
	case "run.maxOutputSize":
		return "output in bytes"
	case "run.workspace":
		return "workspace access"
	case "run.hosts":
		return "host"
	case "run.okStatus":
		return "status of success"
	case "run.endOfOptions":
		return "arguments after --"
	case "run.passthrough":
		return "any option from the caller"
	case "run.programSha256":
		return "sha256 of the program"
	}
	return strings.TrimPrefix(name, "run.")
}

// isWords says of a field that only readers see it.
func isWords(name string) bool {
	root, _, _ := strings.Cut(name, ".")
	switch root {
	case "displayName", "description", "category", "tags", "triggers", "priority", "tokenBudget", "maxChars", "migrations":
		return true
	}
	return false
}

func compare(out *[]Difference, id capability.ID, name string, a, b reflect.Value) {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return
	}
	say := func(old, now string) {
		if old == now { // where JSON or a list's order is all there is
			old, now = "", ""
		}
		*out = append(*out, Difference{Action: id, Field: wordFor(name), Old: old, New: now, Text: isWords(name)})
	}
	switch a.Kind() {
	case reflect.Struct:
		for i := range a.NumField() {
			compare(out, id, join(name, fieldName(a.Type().Field(i))), a.Field(i), b.Field(i))
		}
	case reflect.Pointer:
		switch {
		case a.IsNil():
			say("", plain(b.Elem()))
		case b.IsNil():
			say(plain(a.Elem()), "")
		default:
			compare(out, id, name, a.Elem(), b.Elem())
		}
	case reflect.Map:
		keys := map[string]bool{}
		for _, v := range []reflect.Value{a, b} {
			for _, k := range v.MapKeys() {
				keys[k.String()] = true
			}
		}
		for _, k := range slices.Sorted(maps.Keys(keys)) {
			key := reflect.ValueOf(k).Convert(a.Type().Key())
			x, y := plain(a.MapIndex(key)), plain(b.MapIndex(key))
			if x != y || a.MapIndex(key).IsValid() != b.MapIndex(key).IsValid() {
				*out = append(*out, Difference{Action: id, Field: k, Old: x, New: y})
			}
		}
	case reflect.Slice:
		compareList(out, id, name, a, b, say)
	default:
		say(plain(a), plain(b))
	}
}

func compareList(out *[]Difference, id capability.ID, name string, a, b reflect.Value, say func(old, now string)) {
	if name == "run.argv" {
		say(commandLine(stringsOf(a)), commandLine(stringsOf(b)))
		return
	}
	if a.Len() == 0 && b.Len() == 0 {
		return // nothing and an empty list
	}
	if a.Type().Elem().Kind() == reflect.Uint8 { // JSON
		say(plain(a), plain(b))
		return
	}
	was, is := stringsOf(a), stringsOf(b)
	before := len(*out)
	for _, s := range was {
		if !slices.Contains(is, s) {
			say(s, "")
		}
	}
	for _, s := range is {
		if !slices.Contains(was, s) {
			say("", s)
		}
	}
	if len(*out) == before {
		*out = append(*out, Difference{Action: id, Field: "order or number of " + name, Text: isWords(name)})
	}
}

func stringsOf(v reflect.Value) []string {
	out := make([]string, v.Len())
	for i := range out {
		out[i] = plain(v.Index(i))
	}
	return out
}

// plain writes a value in one line.
func plain(v reflect.Value) string {
	if !v.IsValid() {
		return ""
	}
	if v.Type() == reflect.TypeFor[capability.Recipe]() {
		r := v.Interface().(capability.Recipe)
		return recipe(&r)
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int64:
		return strconv.FormatInt(v.Int(), 10)
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return plain(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 { // JSON
			return string(v.Bytes())
		}
		return strings.Join(stringsOf(v), ", ")
	case reflect.Struct:
		var list []string
		for i := range v.NumField() {
			if f := v.Field(i); !unset(f) {
				list = append(list, fieldName(v.Type().Field(i))+" "+plain(f))
			}
		}
		return strings.Join(list, ", ")
	}
	if v.Type() == reflect.TypeFor[capability.Hint]() {
		return [...]string{"unsaid", "no", "yes"}[v.Uint()%3]
	}
	return fmt.Sprint(v.Interface())
}

func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if name == "" || name == "-" {
		return f.Name
	}
	return name
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "." + b
}
