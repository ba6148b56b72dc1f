package embed

import "unicode/utf8"

// A Document is what the vector of a capability is made of. The model was
// trained on texts of exactly this shape; training/texts.py says the same.
type Document struct {
	Name        string
	Description string
	Category    string
	Parameters  []string // their names
}

// A Field is a part of a document. A model may give the tokens of one more
// weight than those of another.
type Field int

const (
	Prose Field = iota
	Name
	Category
	Parameters
	fieldCount
)

// AppendDocument adds the vector of a document to dst.
func (m *Model) AppendDocument(dst []float32, d Document) []float32 {
	var room [MaxTokens]term
	terms, left := room[:0], MaxTokens
	var tokens [MaxTokens + longestWord]uint32
	var space [1 << 10]byte // more than most documents have
	text := space[:0]
	add := func(f Field) {
		found := m.tokens(tokens[:0], text)
		found = found[:min(len(found), left)]
		left -= len(found)
		terms = m.appendTerms(terms, found, m.fields[f])
		text = text[:0]
	}
	text = appendWords(text, d.Name)
	add(Name)
	text = append(append(text, ". "...), d.Description...)
	add(Prose)
	if d.Category != "" {
		text = append(append(append(text, "Category: "...), d.Category...), '.')
		add(Category)
	}
	if len(d.Parameters) > 0 {
		text = append(text, "Parameters: "...)
		for i, p := range d.Parameters {
			if i > 0 {
				text = append(text, ", "...)
			}
			text = appendWords(text, p)
		}
		text = append(text, '.')
		add(Parameters)
	}
	return m.appendSum(dst, terms)
}

// Text returns the document as one text, the way a model that reads whole texts
// was trained on it.
func (d Document) Text() string {
	text := append(appendWords(nil, d.Name), '.')
	if d.Description != "" {
		text = append(append(text, ' '), d.Description...)
	}
	if d.Category != "" {
		text = append(append(append(text, " Category: "...), d.Category...), '.')
	}
	for i, p := range d.Parameters {
		if i == 0 {
			text = append(text, " Parameters: "...)
		} else {
			text = append(text, ", "...)
		}
		text = appendWords(text, p)
	}
	if len(d.Parameters) > 0 {
		text = append(text, '.')
	}
	return string(text)
}

// betweenWords holds what separates the words of a name.
var betweenWords = func() (is [utf8.RuneSelf]bool) {
	for _, b := range []byte("_-./:{} \t\n\r\v\f") {
		is[b] = true
	}
	return is
}()

// appendWords adds a name as words with spaces between them: getUserById,
// get_user-by.id and GET /user/{id} have three each.
func appendWords(dst []byte, name string) []byte {
	start := len(dst)
	space := false
	var last rune
	for i, r := range name {
		if r < utf8.RuneSelf && betweenWords[r] {
			space, last = true, 0
			continue
		}
		upper := 'A' <= r && r <= 'Z'
		switch {
		case !upper:
		case 'a' <= last && last <= 'z' || '0' <= last && last <= '9':
			space = true
		case 'A' <= last && last <= 'Z' && i+1 < len(name) && 'a' <= name[i+1] && name[i+1] <= 'z':
			space = true
		}
		if space && len(dst) > start {
			dst = append(dst, ' ')
		}
		dst = utf8.AppendRune(dst, r)
		space, last = false, r
	}
	return dst
}
