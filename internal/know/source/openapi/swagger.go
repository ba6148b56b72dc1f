package openapi

import (
	"slices"

	"ken/internal/yamldoc"
)

// Swagger 2.0 is read as OpenAPI 3: its parts are put where OpenAPI 3 has them,
// operation by operation. References stay as they are, because definitions,
// parameters and responses stay where they point to.

// fromSwagger rewrites the servers and security schemes of a Swagger 2 document as
// OpenAPI 3 has them.
func (d *apiDoc) fromSwagger() {
	d.swagger = true
	host, base := textOf(d.get(d.top, "host")), textOf(d.get(d.top, "basePath"))
	scheme := "https"
	if schemes := textsOfList(d.get(d.top, "schemes")); len(schemes) > 0 && !slices.Contains(schemes, "https") {
		scheme = schemes[0]
	}
	address := base
	if host != "" {
		address = scheme + "://" + host + base
	}
	line := max(d.get(d.top, "host").Line, d.top.Line)
	var schemes []yamldoc.Field
	if definitions := mapOf(d.get(d.top, "securityDefinitions")); definitions != nil {
		for _, f := range definitions.Fields {
			schemes = append(schemes, field(f.Key, d.schemeOf(mapOf(f.Value)), f.Line))
		}
	}
	top := &yamldoc.Map{Line: d.top.Line, Fields: slices.Clip(d.top.Fields)}
	server := object(line, field("url", address, line))
	top.Fields = append(top.Fields,
		field("servers", []yamldoc.Value{{Line: line, Any: server}}, line),
		field("components", object(line, field("securitySchemes", object(line, schemes...), line)), line))
	d.top = top
}

// schemeOf writes a way to sign in as OpenAPI 3 does.
func (d *apiDoc) schemeOf(m *yamldoc.Map) *yamldoc.Map {
	if m == nil {
		return nil
	}
	switch textOf(d.get(m, "type")) {
	case "basic":
		return object(m.Line, field("type", "http", m.Line), field("scheme", "basic", m.Line))
	case "oauth2":
		name := textOf(d.get(m, "flow"))
		switch name {
		case "application":
			name = "clientCredentials"
		case "accessCode":
			name = "authorizationCode"
		}
		flow := object(m.Line, field("tokenUrl", textOf(d.get(m, "tokenUrl")), m.Line))
		return object(m.Line, field("type", "oauth2", m.Line), field("flows", object(m.Line, field(name, flow, m.Line)), m.Line))
	}
	return m
}

// modern returns an operation as OpenAPI 3 has it.
func (d *apiDoc) modern(call apiCall) apiCall {
	var body *yamldoc.Map
	var form []*yamldoc.Map
	if call.op == nil {
		call.op = &yamldoc.Map{Line: call.line}
	}
	for _, m := range []**yamldoc.Map{&call.item, &call.op} {
		if *m == nil {
			continue
		}
		list, _ := d.get(*m, "parameters").Any.([]yamldoc.Value)
		var rest []yamldoc.Value
		for _, v := range list {
			p, err := d.deref(v)
			if err != nil {
				rest = append(rest, v) // reading the parameters reports it
				continue
			}
			switch textOf(d.get(p, "in")) {
			case "body":
				body, form = p, nil
			case "formData":
				form, body = append(form, p), nil
			default:
				rest = append(rest, yamldoc.Value{Line: v.Line, Any: d.modernParameter(p)})
			}
		}
		fields := slices.DeleteFunc(slices.Clone((*m).Fields), func(f yamldoc.Field) bool { return f.Key == "parameters" })
		*m = &yamldoc.Map{Line: (*m).Line, Fields: append(fields, field("parameters", rest, (*m).Line))}
	}
	if content := d.modernBody(call, body, form); content != nil {
		call.op.Fields = append(call.op.Fields, field("requestBody", content, call.line))
	}
	return call
}

// modernParameter puts what it says of its values into a schema.
func (d *apiDoc) modernParameter(p *yamldoc.Map) *yamldoc.Map {
	out, schema := &yamldoc.Map{Line: p.Line}, &yamldoc.Map{Line: p.Line}
	for _, f := range p.Fields {
		switch f.Key {
		case "name", "in", "description", "required", "deprecated":
			out.Fields = append(out.Fields, f)
		case "collectionFormat", "allowEmptyValue":
		default:
			schema.Fields = append(schema.Fields, f)
		}
	}
	out.Fields = append(out.Fields, field("schema", plainFile(schema), p.Line))
	if textOf(d.get(p, "type")) != "array" {
		return out
	}
	style, explode := "form", false
	if in := textOf(d.get(p, "in")); in == "path" || in == "header" {
		style = "simple"
	}
	switch textOf(d.get(p, "collectionFormat")) {
	case "multi":
		explode = true
	case "ssv":
		style = "spaceDelimited"
	case "pipes":
		style = "pipeDelimited"
	case "tsv":
		style = "tabDelimited" // nothing writes it, and a call says so
	}
	out.Fields = append(out.Fields, field("style", style, p.Line), field("explode", explode, p.Line))
	return out
}

// plainFile writes the type file as the bytes that it is.
func plainFile(schema *yamldoc.Map) *yamldoc.Map {
	for i, f := range schema.Fields {
		if f.Key == "type" && f.Value.Any == "file" {
			schema.Fields[i].Value.Any = "string"
			schema.Fields = append(schema.Fields, field("format", "binary", f.Line))
		}
	}
	return schema
}

// modernBody makes a requestBody of a body parameter or of the fields of a form.
func (d *apiDoc) modernBody(call apiCall, body *yamldoc.Map, form []*yamldoc.Map) *yamldoc.Map {
	consumes := textsOfList(d.get(call.op, "consumes"))
	if d.get(call.op, "consumes").Any == nil {
		consumes = textsOfList(d.get(d.top, "consumes"))
	}
	line := call.line
	switch {
	case body != nil:
		media := "application/json"
		if len(consumes) > 0 && !slices.ContainsFunc(consumes, isJSONType) {
			media = consumes[0]
		}
		content := object(line, field(media, object(line, yamldoc.Field{Key: "schema", Line: line, Value: d.get(body, "schema")}), line))
		return object(line, field("description", textOf(d.get(body, "description")), line),
			field("required", d.get(body, "required").Any == true, line), field("content", content, line))
	case len(form) == 0:
		return nil
	}
	media := "application/x-www-form-urlencoded"
	if slices.ContainsFunc(consumes, func(t string) bool { return mediaType(t) == "multipart/form-data" }) && !slices.Contains(consumes, media) {
		media = "multipart/form-data"
	}
	properties := &yamldoc.Map{Line: line}
	var required []yamldoc.Value
	for _, p := range form {
		if textOf(d.get(p, "type")) == "file" {
			media = "multipart/form-data"
		}
		name := textOf(d.get(p, "name"))
		schema := &yamldoc.Map{Line: p.Line}
		for _, f := range p.Fields {
			if !slices.Contains([]string{"name", "in", "required", "collectionFormat", "allowEmptyValue"}, f.Key) {
				schema.Fields = append(schema.Fields, f)
			}
		}
		properties.Fields = append(properties.Fields, field(name, plainFile(schema), p.Line))
		if d.get(p, "required").Any == true {
			required = append(required, yamldoc.Value{Line: p.Line, Any: name})
		}
	}
	schema := object(line, field("type", "object", line), field("properties", properties, line), field("required", required, line))
	content := object(line, field(media, object(line, field("schema", schema, line)), line))
	return object(line, field("required", len(required) > 0, line), field("content", content, line))
}

func object(line int, fields ...yamldoc.Field) *yamldoc.Map {
	return &yamldoc.Map{Line: line, Fields: fields}
}

func field(key string, v any, line int) yamldoc.Field {
	return yamldoc.Field{Key: key, Line: line, Value: yamldoc.Value{Line: line, Any: v}}
}
