package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Info is what a description says of the whole. The zero value is usable.
type Info struct {
	Title   string // empty: Ken
	Version string // empty: 0
	Summary string

	// Public are the paths that need no sign-in.
	Public []string
}

// Describe returns the OpenAPI 3.1 document of routes, as JSON. The same routes
// give the same bytes. It refuses routes that contradict each other.
func Describe(routes []*Route, info Info) ([]byte, error) {
	d := describer{schemas: newSchemas(), info: info, paths: map[string]object{}, names: map[string]string{}, groups: map[string]bool{}}
	for _, r := range routes {
		if err := d.add(r); err != nil {
			return nil, fmt.Errorf("describe %s %s: %w", r.Method, r.Path, err)
		}
	}
	return json.Marshal(d.document())
}

// An object is one of JSON; json.Marshal sorts its members.
type object = map[string]any

type describer struct {
	schemas *schemas
	info    Info
	paths   map[string]object
	names   map[string]string // of operations, to their routes
	groups  map[string]bool
}

func (d *describer) document() object {
	title, version := d.info.Title, d.info.Version
	if title == "" {
		title = "Ken"
	}
	if version == "" {
		version = "0"
	}
	about := object{"title": title, "version": version}
	if d.info.Summary != "" {
		about["summary"] = d.info.Summary
	}
	tags := []object{}
	for _, name := range slices.Sorted(maps.Keys(d.groups)) {
		tags = append(tags, object{"name": name})
	}
	d.schemas.made["Problem"] = problemSchema()
	return object{
		"openapi": "3.1.0", "info": about, "paths": d.paths, "tags": tags,
		"security": []object{{"bearer": []string{}}, {"apiKey": []string{}}},
		"components": object{
			"schemas": d.schemas.made,
			"responses": object{"Problem": object{
				"description": "What went wrong (RFC 9457). Programs go by code.",
				"content":     object{"application/problem+json": object{"schema": ref("Problem")}},
			}},
			"securitySchemes": object{
				"bearer": object{"type": "http", "scheme": "bearer", "description": "The token in the file token or agent-token of Ken's state folder, or one of the issuer's. Operations with x-operator are for those who run Ken; those with x-decision are refused to agents."},
				"apiKey": object{"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "The same, for those that cannot send the other header"},
			},
		},
	}
}

func problemSchema() object {
	text := object{"type": "string"}
	return object{
		"type": "object", "required": []string{"type", "title", "status", "code", "detail"},
		"properties": object{
			"type": text, "title": text, "status": object{"type": "integer"},
			"code":   object{"type": "string", "description": "stable"},
			"detail": text, "rule": text, "fix": text,
		},
	}
}

func (d *describer) add(r *Route) error {
	if r.Name == "" {
		return fmt.Errorf("missing name")
	}
	if other, ok := d.names[r.Name]; ok {
		return fmt.Errorf("the name %s is taken by %s", r.Name, other)
	}
	d.names[r.Name] = r.Method + " " + r.Path
	path, parameters, err := pathOf(r.Path)
	if err != nil {
		return err
	}
	for _, q := range r.Query {
		parameters = append(parameters, q.describe())
	}
	op := object{"operationId": r.Name, "responses": d.responses(r)}
	if r.Summary != "" {
		op["summary"] = r.Summary
	}
	if r.Group != "" {
		op["tags"] = []string{r.Group}
		d.groups[r.Group] = true
	}
	if len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if r.Body != nil {
		op["requestBody"] = object{
			"required": false, "description": "Nothing is the same as {}.", "content": object{"application/json": object{"schema": d.schemas.of(reflect.TypeOf(r.Body), true)}},
		}
	}
	if r.Operator {
		op["x-operator"] = true
	}
	if r.Decision != "" {
		op["x-decision"] = true
	}
	if slices.Contains(d.info.Public, r.Path) {
		op["security"] = []object{}
	}
	method := strings.ToLower(r.Method)
	if !slices.Contains([]string{"get", "put", "post", "delete", "patch", "head"}, method) {
		return fmt.Errorf("unknown method %q", r.Method)
	}
	if d.paths[path] == nil {
		d.paths[path] = object{}
	}
	if d.paths[path][method] != nil {
		return fmt.Errorf("the path is there twice")
	}
	d.paths[path][method] = op
	return nil
}

// pathOf returns a path as OpenAPI writes it, and its parameters.
func pathOf(pattern string) (path string, parameters []object, err error) {
	if !strings.HasPrefix(pattern, "/") {
		return "", nil, fmt.Errorf("the path does not begin with /")
	}
	var b strings.Builder
	for rest := pattern; rest != ""; {
		before, after, there := strings.Cut(rest, "{")
		b.WriteString(before)
		if !there {
			break
		}
		name, behind, closed := strings.Cut(after, "}")
		if !closed {
			return "", nil, fmt.Errorf("a { without its }")
		}
		rest = behind
		if name == "$" {
			continue
		}
		name, many := strings.CutSuffix(name, "...")
		b.WriteString("{" + name + "}")
		p := object{"name": name, "in": "path", "required": true, "schema": object{"type": "string"}}
		if many {
			p["description"] = "It may hold slashes."
		}
		parameters = append(parameters, p)
	}
	return b.String(), parameters, nil
}

func (p Param) describe() object {
	schema := object{}
	about := p.About
	switch p.Type {
	case Whole:
		schema["type"], schema["minimum"], schema["maximum"] = "integer", 0, math.MaxInt32
	case Number:
		schema["type"] = "number"
	case Yes:
		schema["type"] = "boolean"
	case Instant:
		schema["type"] = "string"
		about = strings.TrimSpace(about + " (a time, as in 2026-01-31T12:00:00Z, or how long ago, as in 24h or 30d)")
	default:
		schema["type"] = "string"
	}
	if p.Words != nil {
		schema["enum"] = p.Words
	}
	out := object{"name": p.Name, "in": "query", "schema": schema}
	if p.Many {
		out["schema"], out["explode"] = object{"type": "array", "items": schema}, true
	}
	if about != "" {
		out["description"] = about
	}
	return out
}

func (d *describer) responses(r *Route) object {
	status, good := r.Status, object{"description": "Success"}
	raw, isRaw := r.Answer.(Raw)
	switch {
	case r.Stream != nil:
		event := object{"type": "string", "description": "server-sent events"}
		if r.Answer != nil {
			event["x-data"] = d.schemas.of(reflect.TypeOf(r.Answer), false)
		}
		content := object{"text/event-stream": object{"schema": event}}
		if r.Body != nil && r.Answer != nil {
			delete(event, "x-data")
			content["application/json"] = object{"schema": d.schemas.of(reflect.TypeOf(r.Answer), false)}
		}
		good["content"] = content
	case isRaw:
		kind := raw.Type
		if kind == "" {
			kind = "*/*"
		}
		good["content"] = object{kind: object{"schema": object{"type": "string"}}}
	case r.Answer != nil:
		good["content"] = object{"application/json": object{"schema": d.schemas.of(reflect.TypeOf(r.Answer), false)}}
	case status == 0:
		status = http.StatusNoContent
	}
	out := object{
		strconv.Itoa(orElse(status, http.StatusOK)): good,
		"default": object{"$ref": "#/components/responses/Problem"},
	}
	for other, v := range r.Others {
		out[strconv.Itoa(other)] = object{"description": "Success", "content": object{"application/json": object{"schema": d.schemas.of(reflect.TypeOf(v), false)}}}
	}
	return out
}
