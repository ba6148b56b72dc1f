package connect

import (
	"errors"

	"ken/internal/connect/yamltable"
	"ken/internal/yamldoc"
)

// yamlFormat is YAML with one table of servers, which may be a list.
type yamlFormat struct{ table yamltable.Table }

func (f yamlFormat) parse(data []byte) (*yamltable.Document, error) {
	doc, err := yamltable.Parse(data, f.table)
	if at, ok := errors.AsType[*yamldoc.Error](err); ok { // its message may quote the document
		return nil, &syntaxError{at.Line, "invalid YAML, or YAML with anchors or tags, which Ken does not read"}
	}
	return doc, err
}

func (f yamlFormat) read(data []byte) (map[string]any, error) {
	doc, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	return doc.Values(), nil
}

func (f yamlFormat) entries(data []byte, at []string) []yamltable.Entry {
	doc, err := f.parse(data)
	if err != nil || len(at) != 1 || at[0] != f.table.Key {
		return nil
	}
	return doc.Entries
}

func (f yamlFormat) lines(data []byte, at []string) map[string]int {
	out := map[string]int{}
	for _, e := range f.entries(data, at) {
		out[e.Name] = e.Line
	}
	return out
}

func (f yamlFormat) names(data []byte, at []string) []string {
	var out []string
	for _, e := range f.entries(data, at) {
		out = append(out, e.Name)
	}
	return out
}

func (f yamlFormat) raw(data []byte, _ []string, name string) string {
	doc, err := f.parse(data)
	if err != nil {
		return ""
	}
	return doc.Raw(name)
}

func (f yamlFormat) edits(data []byte, changes []change) ([]edit, error) {
	doc, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	var out []edit
	for _, c := range changes {
		if c.isList() || len(c.at) != 1 || c.at[0] != f.table.Key {
			return nil, errors.New("only the servers of a YAML file can be changed")
		}
		var puts []yamltable.Put
		for _, p := range c.put {
			puts = append(puts, yamltable.Put{Name: p.name, Raw: p.raw, Fields: yamlFields(p.value)})
		}
		edits, err := doc.Edits(c.drop, puts)
		if err != nil {
			return nil, err
		}
		for _, e := range edits {
			out = append(out, edit{e.Start, e.End, e.Text})
		}
	}
	return out, nil
}

func yamlFields(list pairs) []yamltable.Field {
	out := []yamltable.Field{}
	for _, p := range list {
		v := p.value
		if inner, ok := v.(pairs); ok {
			v = yamlFields(inner)
		}
		out = append(out, yamltable.Field{Key: p.name, Value: v})
	}
	return out
}

func (f yamlFormat) hide(data []byte, secret func(name, value string) bool) []edit {
	doc, err := f.parse(data)
	if err != nil {
		return nil
	}
	var out []edit
	for _, e := range doc.Hide(secret) {
		out = append(out, edit{start: e.Start, end: e.End})
	}
	return out
}
