package config

import (
	"encoding/json"
	"maps"
	"strings"

	"ken/internal/yamldoc"
)

// A form is a JSON Schema of a value.
type form = map[string]any

// Schema returns a JSON Schema of ken.yaml, made of the table that reads it, for
// editors. It allows no key that Ken refuses, and every value that Ken takes; Ken
// refuses some values that it allows.
func Schema() ([]byte, error) {
	standard := Default()
	properties := form{}
	for _, s := range settings() {
		f := s.described(&standard)
		section, key, inside := strings.Cut(s.name, ".")
		if !inside {
			properties[section] = f
			continue
		}
		if properties[section] == nil {
			properties[section] = objectForm(form{})
		}
		properties[section].(form)["properties"].(form)[key] = f
	}
	top := objectForm(properties)
	top["$schema"], top["title"] = "http://json-schema.org/draft-07/schema#", "Settings of Ken (ken.yaml)"
	data, err := json.MarshalIndent(top, "", "  ")
	return append(data, '\n'), err
}

// Forms returns the JSON Schema of every setting by its key, with its default.
func Forms() map[string]form {
	standard, out := Default(), map[string]form{}
	for _, s := range settings() {
		out[s.name] = s.described(&standard)
	}
	return out
}

// objectForm is the form of a map with these keys and no others. It may be empty:
// all its keys may be commented out.
func objectForm(properties form) form {
	return form{"type": []string{"object", "null"}, "additionalProperties": false, "properties": properties}
}

// described returns the form of a setting with its text and its default.
func (s setting[S]) described(usual *S) form {
	shown := plainValue(s.show(usual))
	out := form{"default": shown}
	maps.Copy(out, s.form)
	if s.form == nil {
		switch shown.(type) {
		case []any:
			out["type"] = []string{"array", "null"}
		case form:
			out["type"] = []string{"object", "null"}
		case string:
			out["type"] = "string"
		case int64:
			out["type"] = "integer"
		}
	}
	if s.doc != "" {
		out["description"] = s.doc
	}
	return out
}

// tableForm is the form of a map that is read by a table.
func tableForm[S any](table []setting[S]) form {
	var zero S
	properties := form{}
	for _, s := range table {
		f := s.described(&zero)
		delete(f, "default") // it depends on the rest
		properties[s.name] = f
	}
	return objectForm(properties)
}

// mapForm is the form of a map of names to such values, listForm that of a list.
func mapForm(of form) form {
	return form{"type": []string{"object", "null"}, "additionalProperties": of}
}
func listForm(of form) form { return form{"type": []string{"array", "null"}, "items": of} }

// or returns a form that also allows a word.
func (k kind[T]) or(word string) form {
	return form{"anyOf": []form{k.form, {"const": word}}}
}

// plainValue returns what show returns as JSON has it.
func plainValue(v any) any {
	switch v := v.(type) {
	case []yamldoc.Value:
		out := []any{}
		for _, item := range v {
			out = append(out, plainValue(item.Any))
		}
		return out
	case *yamldoc.Map:
		out := form{}
		for _, f := range v.Fields {
			out[f.Key] = plainValue(f.Value.Any)
		}
		return out
	}
	return v
}
