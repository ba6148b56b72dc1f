package api

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"mime/multipart"
	"net/textproto"
	"strings"
)

// A bodyMaker gathers what belongs into the body.
type bodyMaker struct {
	names []string
	parts map[string]any
	by    map[string]field
	whole any
	all   field
	given bool
}

func (b *bodyMaker) add(name string, f field, v any) {
	b.given = true
	if f.wire == "*" {
		b.whole, b.all = v, f
		return
	}
	if b.parts == nil {
		b.parts, b.by = map[string]any{}, map[string]field{}
	}
	b.names = append(b.names, name)
	b.parts[f.wire], b.by[f.wire] = v, f
}

// make writes the body and gives its type; both are empty where there is none.
func (b *bodyMaker) make(op *operation) (media string, body []byte, err error) {
	if !b.given && !op.needsBody {
		return "", nil, nil
	}
	media = op.contentType
	if media == "" || strings.HasPrefix(media, "*/") {
		media = "application/json"
	}
	kind, _, _ := strings.Cut(strings.ToLower(media), ";")
	kind = strings.TrimSpace(kind)
	switch {
	case b.all.wire == "" && !b.given && !isJSON(kind) && kind != "application/x-www-form-urlencoded" && kind != "multipart/form-data":
		return media, nil, nil
	case isJSON(kind):
		if body, err = b.json(op); err != nil {
			return "", nil, err
		}
		if op.template == "" && b.isText() {
			media = "text/plain; charset=utf-8"
		}
		return media, body, nil
	case kind == "application/x-www-form-urlencoded":
		body, err = b.form()
		return media, body, err
	case kind == "multipart/form-data":
		return b.multipart()
	}
	if strings.HasSuffix(media, "/*") {
		media = "application/octet-stream"
	}
	body, err = b.plain(b.whole, b.all)
	return media, body, err
}

func (b *bodyMaker) isText() bool { _, ok := b.whole.(string); return ok }

func (b *bodyMaker) json(op *operation) ([]byte, error) {
	var v any = b.parts
	if b.all.wire != "" {
		v = b.whole
		if text, ok := v.(string); ok && op.template == "" { // a body that a person typed
			return []byte(text), nil
		}
	} else if b.parts == nil {
		v = map[string]any{}
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, errors.New("the body cannot be encoded as JSON")
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// members are the parts of the body, also where it was given as a whole.
func (b *bodyMaker) members() (map[string]any, error) {
	if b.all.wire == "" {
		return b.parts, nil
	}
	m, ok := b.whole.(map[string]any)
	if !ok {
		return nil, errors.New("the body is not an object; a form needs named fields")
	}
	return m, nil
}

func (b *bodyMaker) fieldOf(name string) field {
	if f, ok := b.by[name]; ok {
		return f
	}
	return field{in: "body", wire: name, style: "form", explode: true}
}

func (b *bodyMaker) form() ([]byte, error) {
	m, err := b.members()
	if err != nil {
		return nil, err
	}
	var pairs []pair
	for _, name := range sortedKeys(m) {
		if m[name] == nil {
			continue
		}
		f := b.fieldOf(name)
		if f.media != "" && isJSON(f.media) {
			f.json = true
		}
		more, err := f.query(m[name], name, escape)
		if err != nil {
			return nil, fmt.Errorf("argument %s: %w", name, err)
		}
		pairs = append(pairs, more...)
	}
	return []byte(joined(pairs)), nil
}

func (b *bodyMaker) multipart() (media string, body []byte, err error) {
	m, err := b.members()
	if err != nil {
		return "", nil, err
	}
	var out bytes.Buffer
	w := multipart.NewWriter(&out)
	for _, name := range sortedKeys(m) {
		f, v := b.fieldOf(name), m[name]
		items := []any{v}
		if l, ok := v.([]any); ok && !isJSON(f.media) {
			items = l
		}
		for _, item := range items {
			if item == nil {
				continue
			}
			if err := b.part(w, name, f, item); err != nil {
				return "", nil, fmt.Errorf("argument %s: %w", name, err)
			}
		}
	}
	if err := w.Close(); err != nil {
		return "", nil, err
	}
	return w.FormDataContentType(), out.Bytes(), nil
}

func (b *bodyMaker) part(w *multipart.Writer, name string, f field, v any) error {
	data, err := b.plain(v, f)
	if err != nil {
		return err
	}
	about := map[string]string{"name": name}
	media := f.media
	media, _, _ = strings.Cut(media, ",") // the first of several
	_, isText := v.(string)
	_, isObject := v.(map[string]any)
	if f.binary {
		about["filename"] = name
		if media == "" || strings.Contains(media, "*") {
			media = "application/octet-stream"
		}
	} else if isObject && media == "" {
		media = "application/json"
	} else if isText && media != "" && isJSON(media) {
		data = []byte(compact(v))
	}
	h := textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data", about)}}
	if media = strings.TrimSpace(media); media != "" {
		h.Set("Content-Type", media)
	}
	part, err := w.CreatePart(h)
	if err != nil {
		return err
	}
	_, err = part.Write(data)
	return err
}

// plain writes one value: a text as it is, the bytes that a base64 text stands
// for, anything else as JSON.
func (b *bodyMaker) plain(v any, f field) ([]byte, error) {
	text, ok := v.(string)
	if !ok || !f.binary {
		return []byte(scalar(v)), nil
	}
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, errors.New("invalid base64; bytes must be base64-encoded")
	}
	return data, nil
}

func isJSON(media string) bool {
	media, _, _ = strings.Cut(strings.ToLower(media), ";")
	media = strings.TrimSpace(media)
	return media == "application/json" || strings.HasSuffix(media, "+json") || strings.HasSuffix(media, "/json")
}
