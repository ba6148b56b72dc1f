package rows

import (
	"encoding/json"

	"ken/capability"
	"ken/internal/jsonappend"
	"ken/internal/know/source/jsonscan"
)

// mergeParameters adds to the parameters of a schema what a list beside it
// says: descriptions that are missing, and parameters of their own.
func mergeParameters(params, list []capability.Parameter) (merged []capability.Parameter, more bool) {
	place := make(map[string]int, len(params))
	for i, p := range params {
		place[p.Name] = i
	}
	for _, p := range list {
		i, have := place[p.Name]
		switch {
		case !have:
			params, more = append(params, p), true
		case params[i].Description == "" && p.Description != "":
			params[i].Description, more = p.Description, true
		}
	}
	return params, more
}

// rowSchema makes an input schema of a list of parameters.
func rowSchema(params []capability.Parameter) json.RawMessage {
	out := []byte(`{"type":"object","properties":{`)
	var required []byte
	for i, p := range params {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsonappend.String(out, p.Name), ":{"...)
		if p.Type != "" {
			out = jsonappend.String(append(out, `"type":`...), p.Type)
		}
		if p.Description != "" {
			if p.Type != "" {
				out = append(out, ',')
			}
			out = jsonappend.String(append(out, `"description":`...), p.Description)
		}
		out = append(out, '}')
		if p.Required {
			required = jsonappend.String(append(required, ','), p.Name)
		}
	}
	out = append(out, '}')
	if len(required) > 0 {
		out = append(append(append(out, `,"required":[`...), required[1:]...), ']')
	}
	return append(out, '}')
}

// parameterList reads the parameters that a row lists beside its schema. Where
// they are an object they are a schema.
func (r *Reader) parameterList(out *Row, value []byte) bool {
	if value[0] == '{' {
		if out.seen[KeySchema] {
			return true // the schema of that name stands
		}
		out.seen[KeySchema] = true
		return out.takeSchema(value)
	}
	if value[0] != '[' {
		return false
	}
	ok := true
	w := jsonscan.Scanner{Data: value, Loose: true}
	_ = w.Array(func(at, end int) error {
		p, good := r.parameter(value[at:end])
		if ok = ok && good; good {
			out.parameters = append(out.parameters, p)
		}
		return nil
	})
	return ok
}

func (r *Reader) parameter(value []byte) (p capability.Parameter, ok bool) {
	if value[0] == '"' {
		p.Name, ok = r.word(value)
		return p, ok && p.Name != ""
	}
	if value[0] != '{' {
		return p, false
	}
	w := jsonscan.Scanner{Data: value, Loose: true}
	_ = w.Object(func(key []byte, at, end int) error {
		v := value[at:end]
		switch string(key) {
		case "name":
			p.Name, _ = r.word(v)
		case "type":
			p.Type, _ = r.word(v)
		case "description":
			p.Description, _ = PlainText(v)
		case "required":
			p.Required = string(v) == "true"
		}
		return nil
	})
	return p, p.Name != ""
}
