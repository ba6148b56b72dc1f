package review

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"

	"ken/capability"
)

// digestOf names all that a manifest says. It walks over every field there is,
// so that one that is added to a capability later cannot be left out; what is
// to be left out is taken away in [bare].
func digestOf(m *Manifest) string {
	h := make(text, 0, 2048)
	h.put("ken.extension.v1")
	h.put(m.ID)
	h.put(m.Place)
	h.walk(reflect.ValueOf(bare(m, m.Package)))
	h.put(strconv.Itoa(len(m.Actions)))
	for _, c := range m.Actions {
		h.walk(reflect.ValueOf(bare(m, c)))
	}
	sum := sha256.Sum256(h)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// bare returns a capability without what changes though the package does not: the
// name that the configuration has for its source, where in a file it stands,
// and what the text scan of this version of Ken has to say.
func bare(m *Manifest, c *capability.Capability) capability.Capability {
	out := *c
	out.Findings = nil
	out.Origin.Source, out.Origin.Line, out.Origin.Offset, out.Origin.Length = "", 0, 0, 0
	if rel, err := filepath.Rel(m.Place, c.Origin.Path); err == nil {
		out.Origin.Path = filepath.ToSlash(rel)
	}
	return out
}

// A text is what a digest is made of.
type text []byte

// put adds a word so that neighbours stay apart.
func (h *text) put(s string) {
	*h = append(strconv.AppendInt(*h, int64(len(s)), 10), ':')
	*h = append(*h, s...)
}

// walk adds a value of plain data, byte for byte: JSON would make one text of
// two that are not UTF-8. An empty list and no list are the same, as they are
// to everyone who reads a capability.
func (h *text) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		h.put(v.String())
	case reflect.Bool:
		h.put(strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		h.put(strconv.FormatInt(v.Int(), 10))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		h.put(strconv.FormatUint(v.Uint(), 10))
	case reflect.Float32, reflect.Float64:
		h.put(strconv.FormatFloat(v.Float(), 'g', -1, 64))
	case reflect.Pointer:
		if v.IsNil() {
			h.put("none")
			return
		}
		h.put("some")
		h.walk(v.Elem())
	case reflect.Slice, reflect.Array:
		h.put(strconv.Itoa(v.Len()))
		for i := range v.Len() {
			h.walk(v.Index(i))
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int {
			switch {
			case a.String() < b.String():
				return -1
			case a.String() > b.String():
				return 1
			}
			return 0
		})
		h.put(strconv.Itoa(len(keys)))
		for _, k := range keys {
			h.put(k.String())
			h.walk(v.MapIndex(k))
		}
	case reflect.Struct:
		// Only what is set, so that a field that a later version adds changes no
		// digest until it is used.
		for i := range v.NumField() {
			if f := v.Field(i); !unset(f) {
				h.put(v.Type().Field(i).Name)
				h.walk(f)
			}
		}
		h.put("") // no field has this name
	default:
		// A capability is plain data; TestDigestCoversEveryField walks over all
		// of it.
		panic("review: cannot hash " + v.Type().String())
	}
}

func unset(v reflect.Value) bool {
	if k := v.Kind(); k == reflect.Slice || k == reflect.Map {
		return v.Len() == 0
	}
	return v.IsZero()
}
