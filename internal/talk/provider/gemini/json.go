package gemini

import (
	"encoding/base64"
	"encoding/json"
	"unicode/utf8"

	"ken/internal/jsonappend"
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
		Fix:     "use bridge, extend or whole for chat.toolDelivery",
	}
}

// object reports whether data is one JSON object, as a server would take it.
func object(data []byte) bool {
	return len(data) > 1 && data[0] == '{' && utf8.Valid(data) && json.Valid(data)
}

// text writes a JSON string. What is not UTF-8 becomes U+FFFD.
func (w *writer) text(s string) { w.b = jsonappend.String(w.b, s) }
