package layerfiles

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"ken/internal/untrusted"
)

// json reads a file of JSON and writes it out.
func (l *loader) json(name string) string {
	data, ok := l.read(name, mostJSON)
	if !ok {
		return ""
	}
	text, hidden, err := renderJSON(data)
	if err != nil {
		l.note(name, "it is not read: %v", err)
		return ""
	}
	if hidden {
		l.note(name, "it has characters that cannot be seen; they are shown as ⟨…⟩")
	}
	return text
}

const (
	deepest   = 16   // nested lists and objects
	longValue = 8000 // characters of one value
)

// renderJSON writes a JSON object as a list for people, its keys in order:
//
//   - name: Ada
//   - traits:
//   - curious
//   - brief
//
// Equal objects give equal texts, however they are spelled. hidden says whether
// something in it could not be seen.
func renderJSON(data []byte) (text string, hidden bool, err error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", false, fmt.Errorf("invalid JSON: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return "", false, errors.New("something follows the JSON object")
	}
	object, ok := v.(map[string]any)
	if !ok {
		return "", false, errors.New("not a JSON object: write {…}")
	}
	w := writer{}
	if err := w.object(object, 0); err != nil {
		return "", false, err
	}
	return strings.TrimRight(w.b.String(), "\n"), w.hidden, nil
}

type writer struct {
	b      strings.Builder
	hidden bool
}

func (w *writer) line(depth int, text string) {
	w.b.WriteString(strings.Repeat("  ", depth) + strings.TrimRight("- "+text, " ") + "\n")
}

// show returns a string of the file on one line.
func (w *writer) show(s string) string {
	shown := untrusted.Line(s, longValue)
	w.hidden = w.hidden || hides(s, shown)
	return shown
}

func (w *writer) object(m map[string]any, depth int) error {
	if depth > deepest {
		return fmt.Errorf("nested deeper than %d levels", deepest)
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if err := w.value(w.show(key)+":", m[key], depth); err != nil {
			return err
		}
	}
	return nil
}

// value writes a value behind its name, or without one. What is empty is left
// out: it says nothing.
func (w *writer) value(name string, v any, depth int) error {
	lead := strings.TrimPrefix(name+" ", " ")
	switch v := v.(type) {
	case nil:
	case string:
		if text := w.show(v); text != "" {
			w.line(depth, lead+text)
		}
	case bool:
		w.line(depth, lead+map[bool]string{true: "yes", false: "no"}[v])
	case json.Number:
		w.line(depth, lead+v.String())
	case map[string]any:
		if len(v) == 0 {
			return nil
		}
		w.line(depth, lead)
		return w.object(v, depth+1)
	case []any:
		if len(v) == 0 {
			return nil
		}
		if depth >= deepest {
			return fmt.Errorf("nested deeper than %d levels", deepest)
		}
		w.line(depth, lead)
		for _, item := range v {
			if err := w.value("", item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}
