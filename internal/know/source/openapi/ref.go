package openapi

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"ken/internal/know/source/jsonscan"
	"ken/internal/yamldoc"
)

// maxRefChain is how many references may follow one another.
const maxRefChain = 16

// resolve returns what a reference within the document names.
func (d *apiDoc) resolve(ref string) (yamldoc.Value, error) {
	if v, ok := d.resolved[ref]; ok {
		return v, nil
	}
	fragment, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return yamldoc.Value{}, fmt.Errorf("%s points outside of the file, which is never followed", jsonscan.Shorten(ref))
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	v := d.lookup(fragment)
	if v.Any == nil {
		return yamldoc.Value{}, fmt.Errorf("%s points to nothing", jsonscan.Shorten(ref))
	}
	d.resolved[ref] = v
	return v, nil
}

// lookup follows a JSON pointer and returns the zero Value where it leads
// nowhere.
func (d *apiDoc) lookup(pointer string) yamldoc.Value {
	at := yamldoc.Value{Any: d.top, Line: d.top.Line}
	if pointer == "" {
		return at
	}
	tokens := strings.Split(pointer, "/")
	if tokens[0] != "" {
		return yamldoc.Value{}
	}
	for _, token := range tokens[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch v := at.Any.(type) {
		case *yamldoc.Map:
			at = d.get(v, token)
		case []yamldoc.Value:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return yamldoc.Value{}
			}
			at = v[i]
		default:
			return yamldoc.Value{}
		}
	}
	return at
}

// deref returns the object that a value is, or that it refers to.
func (d *apiDoc) deref(v yamldoc.Value) (*yamldoc.Map, error) {
	for range maxRefChain {
		m := mapOf(v)
		if m == nil {
			return nil, errors.New("not an object")
		}
		ref, ok := d.get(m, "$ref").Any.(string)
		if !ok {
			return m, nil
		}
		var err error
		if v, err = d.resolve(ref); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("$ref chain is circular or too long")
}

// pointerToken writes a key as a part of a JSON pointer.
func pointerToken(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}

// refName returns the last part of a reference, which people know it by.
func refName(ref string) string {
	name := ref[strings.LastIndexByte(ref, '/')+1:]
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}
