package openapi

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ken/internal/know/source/jsonscan"
	"ken/internal/know/source/pattern"
	"ken/internal/yamldoc"
)

// An apiField is one property of a tool's input.
type apiField struct {
	name        string // of the property
	wire        string // in the request
	in          string // path, query, header, cookie, body
	style       string
	media       string // of a part of a form, where the API says so
	reserved    bool   // reserved characters are sent as they are
	binary      bool   // the argument is base64 of what is sent
	schema      yamldoc.Value
	description string
	required    bool
}

// An apiInput is all that an operation takes.
type apiInput struct {
	fields      []apiField
	description string // of the body
	contentType string
	needsBody   bool   // a body is sent even when no argument gives one
	unsent      string // a required header that cannot be sent; empty: none
}

func (in *apiInput) has(name string) bool {
	return slices.ContainsFunc(in.fields, func(f apiField) bool { return f.name == name })
}

// meta says how the request is made of the arguments.
func (in *apiInput) meta() map[string]string {
	where, style, media := map[string]string{}, map[string]string{}, map[string]string{}
	var reserved, binary []string
	for _, f := range in.fields {
		where[f.name] = f.in
		if f.wire != f.name {
			where[f.name] = f.in + ":" + f.wire
		}
		if f.style != "" {
			style[f.name] = f.style
		}
		if f.media != "" {
			media[f.name] = f.media
		}
		if f.reserved {
			reserved = append(reserved, f.name)
		}
		if f.binary {
			binary = append(binary, f.name)
		}
	}
	meta := map[string]string{}
	if len(where) > 0 {
		meta["in"] = jsonMap(where)
	}
	if len(style) > 0 {
		meta["style"] = jsonMap(style)
	}
	if len(media) > 0 {
		meta["media"] = jsonMap(media)
	}
	if len(reserved) > 0 {
		meta["reserved"] = jsonList(reserved)
	}
	if len(binary) > 0 {
		meta["binary"] = jsonList(binary)
	}
	if in.needsBody {
		meta["body"] = "required"
	}
	if in.contentType != "" && in.contentType != "application/json" {
		meta["contentType"] = in.contentType
	}
	return meta
}

// input gathers the parameters and the body of an operation.
func (d *apiDoc) input(call apiCall) (*apiInput, error) {
	in := &apiInput{}
	var params []apiField
	for _, m := range []*yamldoc.Map{call.item, call.op} {
		list, _ := d.get(m, "parameters").Any.([]yamldoc.Value)
		for _, v := range list {
			f, err := d.parameter(v)
			if err != nil {
				return nil, err
			}
			// The operation's own word counts before the path's.
			params = slices.DeleteFunc(params, func(old apiField) bool { return old.in == f.in && old.wire == f.wire })
			if params = append(params, f); len(params) > MaxParameters {
				return nil, fmt.Errorf("more than %d parameters", MaxParameters)
			}
		}
	}
	params = d.declarePath(call, params)
	for _, f := range params {
		if f.in == "header" && isFixedHeader(f.wire) {
			continue // by the specification these are not parameters
		}
		if in.leaves(f) {
			d.tally.Warn("unsent-header", call.line, fmt.Sprintf("the parameter %s of %s is left out: no argument may set this header", jsonscan.Shorten(f.wire), call), "take it out of parameters")
			continue
		}
		if in.has(f.name) {
			f.name += "_" + strings.TrimSuffix(f.in, "+json")
		}
		for n := 2; in.has(f.name); n++ {
			f.name = f.wire + "_" + strconv.Itoa(n)
		}
		in.fields = append(in.fields, f)
	}
	body := d.get(call.op, "requestBody")
	if body.Any == nil {
		return in, nil
	}
	m, err := d.deref(body)
	if err != nil {
		return nil, fmt.Errorf("requestBody: %w", err)
	}
	return in, d.body(in, m)
}

func isFixedHeader(name string) bool {
	return strings.EqualFold(name, "Accept") || strings.EqualFold(name, "Content-Type") || strings.EqualFold(name, "Authorization")
}

// leaves reports whether a parameter is left out because it is a header that no
// argument may set: one that decides how a request is read, where it goes or what
// its method is. The API may still require it.
func (in *apiInput) leaves(f apiField) bool {
	if !strings.HasPrefix(f.in, "header") {
		return false
	}
	name := strings.ToLower(f.wire)
	switch name {
	case "host", "content-length":
		return true // every request has them
	case "transfer-encoding", "connection", "keep-alive", "upgrade", "te", "trailer", "expect",
		"x-http-method-override", "x-http-method", "x-method-override":
	default:
		if !strings.HasPrefix(name, "proxy-") {
			return false
		}
	}
	if f.required && in.unsent == "" {
		in.unsent = f.wire
	}
	return true
}

func (d *apiDoc) parameter(v yamldoc.Value) (apiField, error) {
	m, err := d.deref(v)
	if err != nil {
		return apiField{}, fmt.Errorf("a parameter: %w", err)
	}
	name, in := textOf(d.get(m, "name")), textOf(d.get(m, "in"))
	if name == "" || len(name) > maxAPIName {
		return apiField{}, fmt.Errorf("a parameter has no name, or one of more than %d bytes", maxAPIName)
	}
	switch in {
	case "path", "query", "header", "cookie":
	default:
		return apiField{}, fmt.Errorf("parameter %s is in %s; want path, query, header or cookie", jsonscan.Shorten(name), jsonscan.Shorten(in))
	}
	f := apiField{
		name: name, wire: name, in: in, schema: d.get(m, "schema"),
		description: textOf(d.get(m, "description")),
		required:    d.get(m, "required").Any == true || in == "path",
	}
	if content := mapOf(d.get(m, "content")); content != nil && len(content.Fields) > 0 {
		f.schema = d.get(mapOf(content.Fields[0].Value), "schema")
		if isJSONType(content.Fields[0].Key) {
			f.in += "+json"
		}
	}
	if style := textOf(d.get(m, "style")); len(style) <= maxAPIName {
		f.style = style
	}
	if explode, ok := d.get(m, "explode").Any.(bool); ok {
		f.style += ":" + strconv.FormatBool(explode)
	}
	f.reserved = in == "query" && d.get(m, "allowReserved").Any == true
	return f, nil
}

var pathVariable = pattern.Lazy(`\{([^{}/]+)\}`)

// declarePath adds the path variables, in braces, that are not declared.
func (d *apiDoc) declarePath(call apiCall, params []apiField) []apiField {
	for _, match := range pathVariable().FindAllStringSubmatch(call.path, -1) {
		name := match[1]
		if slices.ContainsFunc(params, func(f apiField) bool { return f.in == "path" && f.wire == name }) {
			continue
		}
		d.tally.Warn("undeclared-parameter", call.line, fmt.Sprintf("%s does not declare its parameter %s; it is taken as text", call, jsonscan.Shorten(name)), "add it to parameters with in: path")
		text := &yamldoc.Map{Fields: []yamldoc.Field{{Key: "type", Value: yamldoc.Value{Any: "string"}}}}
		params = append(params, apiField{name: name, wire: name, in: "path", schema: yamldoc.Value{Any: text}, required: true})
	}
	return params
}

// body adds the request's body: its members, where it is an object whose
// members have names of their own, and otherwise the whole of it.
func (d *apiDoc) body(in *apiInput, m *yamldoc.Map) error {
	content := mapOf(d.get(m, "content"))
	if content == nil || len(content.Fields) == 0 {
		return nil
	}
	media := pickMedia(content)
	if len(media.Key) > maxAPIName {
		return errors.New("requestBody: media type is too long")
	}
	in.contentType, in.description = media.Key, textOf(d.get(m, "description"))
	schema := d.get(mapOf(media.Value), "schema")
	required := d.get(m, "required").Any == true
	in.needsBody = required
	if isJSONType(media.Key) || isFormType(media.Key) {
		parts := bodyParts{required: map[string]bool{}}
		if d.parts(schema, &parts, 0) && parts.fit(in) {
			encoding := mapOf(d.get(mapOf(media.Value), "encoding"))
			for _, f := range parts.fields {
				f.required = required && parts.required[f.wire]
				if isFormType(media.Key) {
					d.encoded(&f, mapOf(d.get(encoding, f.wire)), media.Key)
				}
				in.fields = append(in.fields, f)
			}
			return nil
		}
	}
	name := "body"
	for in.has(name) {
		name = "request_" + name
	}
	if schema.Any == nil && !isJSONType(media.Key) {
		text := &yamldoc.Map{Fields: []yamldoc.Field{{Key: "type", Value: yamldoc.Value{Any: "string"}}}}
		schema = yamldoc.Value{Any: text}
	}
	f := apiField{name: name, wire: "*", in: "body", schema: schema, description: in.description, required: required}
	if t := mediaType(media.Key); !isJSONType(t) && !isFormType(t) && !isTextType(t) && d.isBinary(schema) {
		f.binary, f.description = true, strings.TrimSpace(f.description+" (base64)")
	}
	in.fields = append(in.fields, f)
	in.description = ""
	return nil
}

// encoded takes over what an API says about one part of a form.
func (d *apiDoc) encoded(f *apiField, encoding *yamldoc.Map, media string) {
	if t := textOf(d.get(encoding, "contentType")); len(t) <= maxAPIName {
		f.media = t
	}
	if mediaType(media) == "multipart/form-data" {
		if f.binary = d.isBinary(f.schema); f.binary {
			f.description = "(base64)"
		}
		return
	}
	if style := textOf(d.get(encoding, "style")); len(style) <= maxAPIName {
		f.style = style
	}
	if explode, ok := d.get(encoding, "explode").Any.(bool); ok {
		f.style += ":" + strconv.FormatBool(explode)
	}
}

// isBinary reports whether a schema is that of bytes, or of a list of them.
func (d *apiDoc) isBinary(v yamldoc.Value) bool {
	m, err := d.deref(v)
	if err != nil {
		return false
	}
	if items := d.get(m, "items"); items.Any != nil {
		if m, err = d.deref(items); err != nil {
			return false
		}
	}
	if d.get(m, "contentEncoding").Any != nil {
		return false // the API itself wants it encoded
	}
	format, media := textOf(d.get(m, "format")), textOf(d.get(m, "contentMediaType"))
	return format == "binary" || media != "" && !isTextType(media) && !isJSONType(media)
}

func isTextType(t string) bool {
	t = mediaType(t)
	return strings.HasPrefix(t, "text/") || t == "application/xml" || strings.HasSuffix(t, "+xml") || strings.HasSuffix(t, "/yaml") || strings.HasSuffix(t, "+yaml") || t == "application/graphql" || t == "application/x-ndjson"
}

// pickMedia chooses JSON, then forms, then what comes first.
func pickMedia(content *yamldoc.Map) yamldoc.Field {
	for _, good := range []func(string) bool{
		func(t string) bool { return t == "application/json" }, isJSONType, isFormType,
	} {
		if i := slices.IndexFunc(content.Fields, func(f yamldoc.Field) bool { return good(f.Key) }); i >= 0 {
			return content.Fields[i]
		}
	}
	return content.Fields[0]
}

func mediaType(t string) string {
	t, _, _ = strings.Cut(t, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

func isJSONType(t string) bool {
	t = mediaType(t)
	return t == "application/json" || strings.HasSuffix(t, "+json") || strings.HasSuffix(t, "/json") || t == "*/*"
}

func isFormType(t string) bool {
	t = mediaType(t)
	return t == "application/x-www-form-urlencoded" || t == "multipart/form-data"
}

// bodyParts are the members of an object that may be spread over allOf.
type bodyParts struct {
	fields   []apiField
	required map[string]bool
	steps    int
}

func (b *bodyParts) fit(in *apiInput) bool {
	return len(b.fields) > 0 && !slices.ContainsFunc(b.fields, func(f apiField) bool { return in.has(f.name) })
}

// parts collects the members of a body and reports whether they say all that
// there is to say about it.
func (d *apiDoc) parts(v yamldoc.Value, b *bodyParts, depth int) bool {
	m, err := d.deref(v)
	if b.steps++; err != nil || depth > maxRefChain || b.steps > MaxParameters {
		return false
	}
	for _, f := range m.Fields {
		switch f.Key {
		case "oneOf", "anyOf", "not", "if", "patternProperties", "propertyNames", "minProperties", "maxProperties",
			"dependentRequired", "dependentSchemas", "items", "enum", "const", "$dynamicRef":
			return false
		case "type":
			if f.Value.Any != "object" {
				return false
			}
		case "nullable":
			if f.Value.Any == true {
				return false
			}
		case "additionalProperties", "unevaluatedProperties":
			if f.Value.Any != false {
				return false // undeclared members belong to the body
			}
		}
	}
	list, _ := d.get(m, "allOf").Any.([]yamldoc.Value)
	for _, part := range list {
		if !d.parts(part, b, depth+1) {
			return false
		}
	}
	for _, name := range textsOfList(d.get(m, "required")) {
		b.required[name] = true
	}
	properties := mapOf(d.get(m, "properties"))
	if properties == nil {
		return len(list) > 0 || d.get(m, "type").Any == "object"
	}
	for _, f := range properties.Fields {
		if d.isReadOnly(f.Value) {
			continue
		}
		if len(b.fields) >= MaxParameters || len(f.Key) > maxAPIName {
			return false
		}
		b.fields = slices.DeleteFunc(b.fields, func(old apiField) bool { return old.name == f.Key })
		b.fields = append(b.fields, apiField{name: f.Key, wire: f.Key, in: "body", schema: f.Value})
	}
	return true
}

// isReadOnly: such a property comes back in answers and is not sent.
func (d *apiDoc) isReadOnly(v yamldoc.Value) bool {
	m := mapOf(v)
	if d.get(m, "readOnly").Any == true {
		return true
	}
	m, err := d.deref(v)
	return err == nil && d.get(m, "readOnly").Any == true
}
