package slash

import (
	"bytes"
	"encoding/json"
	"strings"
)

// An argument is one member of the object that a call carries.
type argument struct {
	name  string
	value json.RawMessage
}

func object(args []argument) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, a := range args {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoteJSON(a.name))
		b.WriteByte(':')
		b.Write(a.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func array(items []json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	for i, item := range items {
		b.WriteByte("[,"[min(i, 1)])
		b.Write(item)
	}
	b.WriteByte(']')
	return b.Bytes()
}

func wordList(name string, words []word) json.RawMessage {
	if len(words) == 0 {
		return json.RawMessage("{}")
	}
	list := make([]json.RawMessage, len(words))
	for i, w := range words {
		list[i] = quoteJSON(w.text)
	}
	return object([]argument{{name, array(list)}})
}

// quoteJSON writes a string; most need no escape, and those cost one copy.
func quoteJSON(s string) json.RawMessage {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			raw, _ := json.Marshal(s) // a string cannot fail
			return raw
		}
	}
	raw := make([]byte, 0, len(s)+2)
	return append(append(append(raw, '"'), s...), '"')
}

// convert writes a word as JSON of one of the types; want says what would have
// been one. A string among the types takes every word that no other does.
func convert(types []string, text string) (raw json.RawMessage, want string) {
	plain := len(types) == 0
	for _, t := range types {
		switch t {
		case "boolean":
			switch strings.ToLower(text) {
			case "true", "yes", "on":
				return json.RawMessage("true"), ""
			case "false", "no", "off":
				return json.RawMessage("false"), ""
			}
			want = "true or false"
		case "integer":
			if isNumber(text) && !strings.ContainsAny(text, ".eE") {
				return json.RawMessage(text), ""
			}
			want = "a whole number"
		case "number":
			if isNumber(text) {
				return json.RawMessage(text), ""
			}
			want = "a number"
		case "object", "array":
			opens := "{"
			if t == "array" {
				opens = "["
			}
			if raw := json.RawMessage(text); strings.HasPrefix(strings.TrimSpace(text), opens) && json.Valid(raw) {
				return raw, ""
			}
			want = "JSON, an " + t + ", in single quotes"
		case "null":
		default:
			plain = true
		}
	}
	if plain || want == "" {
		return quoteJSON(text), ""
	}
	return nil, want
}

// isNumber: a number as JSON writes it, so that its digits are kept.
func isNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}
