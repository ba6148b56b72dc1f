package format

import (
	"strings"

	"ken/capability"
	"ken/internal/yamldoc"
)

// DefaultThreshold is the confidence from which triggers count, where none is
// set.
const DefaultThreshold = 0.6

// Triggers reads a map of triggers; what is not said does not restrict.
func Triggers(t *yamldoc.Reader) *capability.Triggers {
	out := &capability.Triggers{
		Keywords:            Keywords(t),
		SessionTypes:        t.Words("sessionTypes"),
		RouterTags:          t.Words("routerTags"),
		TimeOfDay:           t.Words("timeOfDay"),
		UserTier:            t.Words("userTier"),
		EnvironmentType:     t.Words("environmentType"),
		ConfidenceThreshold: DefaultThreshold,
	}
	if x, ok := t.Float("confidenceThreshold"); ok {
		out.ConfidenceThreshold = x
	}
	return out
}

// Keywords leaves out empty keywords, which would match every message.
func Keywords(t *yamldoc.Reader) []string {
	var words []string
	for _, word := range t.Strings("keywords") {
		if word = strings.TrimSpace(word); word != "" {
			words = append(words, word)
		} else {
			t.Issue(t.Line("keywords"), "an empty keyword is left out, since it would match everything", "remove it")
		}
	}
	return words
}

// SetMeta keeps a value that has no field of its own: text as it is, anything
// else as JSON.
func SetMeta(c *capability.Capability, key string, v yamldoc.Value) {
	if v.Any == nil {
		return
	}
	if c.Meta == nil {
		c.Meta = map[string]string{}
	}
	switch s, isText := v.Any.(string); {
	case isText:
		c.Meta[key] = s
	case v.Text != "":
		c.Meta[key] = v.Text
	default:
		c.Meta[key] = string(v.JSON())
	}
}

// LineOfAny returns the line of the first of the keys that is there, else the
// line of the map.
func LineOfAny(r *yamldoc.Reader, keys ...string) int {
	for _, key := range keys {
		if f, ok := r.Field(key); ok {
			return f.Line
		}
	}
	return r.Line(keys[0])
}

// Migrations reads notes for users of earlier versions. A note that names
// no version to go to is about the present one.
func Migrations(r *yamldoc.Reader) []capability.Migration {
	var out []capability.Migration
	for _, m := range r.Items("migrations") {
		next := capability.Migration{From: m.String("from"), To: m.String("to"), Note: FoldSpace(m.String("note"))}
		if next.To == "" {
			next.To = r.String("version")
		}
		out = append(out, next)
	}
	return out
}

// KeepField stores a field as it was written.
func (u *Unit) KeepField(c *capability.Capability, r *yamldoc.Reader, key string) {
	f, ok := r.Field(key)
	if !ok {
		return
	}
	if c.Meta == nil {
		c.Meta = map[string]string{}
	}
	c.Meta[f.Key] = FieldText(f)
}

// FieldText returns a value as it is kept in Meta: text as it is, the rest as
// JSON.
func FieldText(f yamldoc.Field) string {
	if s, ok := f.Value.Any.(string); ok {
		return s
	}
	return string(f.Value.JSON())
}
