package yamledit

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"ken/internal/yamldoc"
)

// Flow writes a value as YAML on one line, plain where that reads back as the
// same and quoted as in JSON where it does not.
func Flow(v any) string {
	var b strings.Builder
	writeFlow(&b, v)
	return b.String()
}

func writeFlow(b *strings.Builder, v any) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(strconv.FormatFloat(v, 'f', -1, 64)) // the parser takes 1e-3 for text
	case string:
		b.WriteString(scalar(v))
	case []yamldoc.Value:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			writeItem(b, item)
		}
		b.WriteByte(']')
	case *yamldoc.Map:
		b.WriteByte('{')
		for i, f := range v.Fields {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(keyWord(f.Key) + ": ")
			writeItem(b, f.Value)
		}
		b.WriteByte('}')
	}
}

// writeItem keeps the spelling of a number: 1.10 may be a version.
func writeItem(b *strings.Builder, v yamldoc.Value) {
	if v.Text != "" {
		b.WriteString(v.Text)
		return
	}
	writeFlow(b, v.Any)
}

// plainScalar reports whether a text may do without quotes, as far as its
// letters go.
func plainScalar(s string) bool {
	for i := range len(s) {
		if !plainByte(s[i]) && (i == 0 || !strings.ContainsRune("@+:-", rune(s[i]))) {
			return false
		}
	}
	return s != ""
}

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '/' || c == '.' || c == '~'
}

// scalar writes a text so that it reads back as the same text, in a block and
// in a flow collection.
func scalar(s string) string {
	if plainWord(s) {
		return s
	}
	if plainScalar(s) {
		v, err := yamldoc.ParseValue([]byte("["+s+"]"), yamldoc.Limits{})
		items, ok := v.Any.([]yamldoc.Value)
		if err == nil && ok && len(items) == 1 && items[0].Any == s {
			return s
		}
	}
	return quote(s)
}

// plainWord reports whether a text is one of letters and digits that no YAML
// takes for anything else, without asking the parser.
func plainWord(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; (c < 'a' || c > 'z') && (i == 0 || s[i] < '0' || s[i] > '9') {
			return false
		}
	}
	switch strings.ToLower(s) {
	case "", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "nan":
		return false
	}
	return true
}

// keyWord writes a key of a flow map.
func keyWord(s string) string { return keyIn("{"+s+": 1}", s) }

// blockKey writes a key of a block map.
func blockKey(s string) string { return keyIn(s+": 1\n", s) }

// keyIn returns a key plain if the document with it so reads as meant.
func keyIn(document, s string) string {
	if plainWord(s) {
		return s
	}
	if plainScalar(s) {
		v, err := yamldoc.ParseValue([]byte(document), yamldoc.Limits{})
		m, ok := v.Any.(*yamldoc.Map)
		if err == nil && ok && len(m.Fields) == 1 && m.Fields[0].Key == s && m.Fields[0].Value.Any == int64(1) {
			return s
		}
	}
	return quote(s)
}

func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
