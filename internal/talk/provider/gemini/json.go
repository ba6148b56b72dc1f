package gemini

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"ken/llm"
)

func (w *writer) blob(i *llm.Image) {
	w.raw(`{"mimeType":`)
	w.text(i.MIME)
	w.raw(`,"data":"`)
	w.b = base64.StdEncoding.AppendEncode(w.b, i.Data)
	w.raw(`"}`)
}

func unsupported(feature string) error {
	return &llm.Error{
		Kind: llm.Unsupported, Feature: feature,
		Message: "the Gemini wire takes tools at the start of a conversation only",
		Fix:     "use bridge, extend or whole for toolDelivery",
	}
}

// object reports whether data is one JSON object, as a server would take it.
func object(data []byte) bool {
	return len(data) > 1 && data[0] == '{' && utf8.Valid(data) && json.Valid(data)
}

// text writes a JSON string. What is not UTF-8 becomes U+FFFD.
func (w *writer) text(s string) {
	const hex = "0123456789abcdef"
	b := append(w.b, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				b = append(append(b, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		b = append(b, s[from:i]...)
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, '\\', 'n')
		case '\r':
			b = append(b, '\\', 'r')
		case '\t':
			b = append(b, '\\', 't')
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	w.b = append(append(b, s[from:]...), '"')
}
