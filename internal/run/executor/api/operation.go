package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"ken/capability"
	"sync"
)

// An operation is what a capability says of its request. It is read once.
type operation struct {
	method      string
	template    string // of the address
	path, query []piece
	origin      string // scheme://host[:port]; "" where an argument gives the address
	fields      map[string]field
	contentType string
	needsBody   bool
	auth        []credential
	named       []string // hosts that the recipe names besides, as it writes them
	others      []string // and without their ports
	rest        string   // where arguments go that are no fields: "query", "body" or "", nowhere
	graph       *graph   // nil for all but GraphQL
}

// A field is where an argument goes.
type field struct {
	in       string // path, query, header, cookie, body
	wire     string // its name there; "*" is the whole body
	json     bool   // sent as JSON
	style    string
	explode  bool
	reserved bool // reserved characters are sent as they are
	binary   bool // the argument is base64 of what is sent
	media    string
}

type operationKey struct {
	id   capability.ID
	hash string
}

const mostOperations = 4096

// operation reads a capability, once.
func (e *Executor) operation(c *capability.Capability, schema json.RawMessage) (*operation, error) {
	key := operationKey{c.ID, c.Hash}
	if key.hash != "" {
		e.mu.Lock()
		op, ok := e.operations[key]
		e.mu.Unlock()
		if ok {
			return op, nil
		}
	}
	op, err := readOperation(c, schema)
	if err != nil || key.hash == "" {
		return op, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.operations) >= mostOperations {
		clear(e.operations)
	}
	e.operations[key] = op
	return op, nil
}

// Unusable says why no request can be made of a capability, whatever its arguments
// are, or "".
func Unusable(c *capability.Capability) string {
	if _, err := readOperation(c, nil); err != nil {
		return "invalid recipe: " + err.Error()
	}
	return ""
}

func readOperation(c *capability.Capability, schema json.RawMessage) (*operation, error) {
	run := c.Run
	op := &operation{
		method: strings.ToUpper(run.Method), template: run.URL, fields: map[string]field{},
		named: run.Hosts, others: hostsOf(run.Hosts),
	}
	_, verb, _ := strings.Cut(run.Runner, ".")
	isGraph := run.Runner == "api.graphql" && c.Origin.Format == "graphql"
	if verb = strings.ToUpper(verb); verb != "REST" && !isGraph {
		if op.method != "" && op.method != verb {
			return nil, fmt.Errorf("the runner %s does not match the method %s", run.Runner, op.method)
		}
		op.method = verb
	}
	if op.method == "" {
		op.method = http.MethodGet
	}
	if !slices.Contains(methods(), op.method) {
		return nil, fmt.Errorf("%s is not a runner for requests; after the dot write rest, get, post, put, patch, delete, head or options", run.Runner)
	}
	if op.template != "" {
		u, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(op.template))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			return nil, errors.New("address is not http or https with a host")
		}
		if u.User != nil {
			return nil, errors.New("the address contains a user or password; store them as secrets")
		}
		op.origin = originOf(u)
		path, query, _ := strings.Cut(op.template, "?")
		op.path, op.query = piecesOf(path), piecesOf(query)
	}
	switch {
	case isGraph:
		return op, op.readGraph(c)
	case c.Origin.Format == "openapi":
		return op, op.readMeta(c)
	}
	op.readRecipe(c, schema)
	return op, nil
}

func methods() []string {
	return []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodTrace}
}

// readMeta reads what the source wrote about an OpenAPI operation. Other formats
// keep every key they do not know in Meta, so there the same keys are anybody's
// words, and "auth" would send any secret to any host.
func (op *operation) readMeta(c *capability.Capability) error {
	op.contentType, op.needsBody = c.Meta["contentType"], c.Meta["body"] == "required"
	bad := errors.New("the request description cannot be read")
	where, style := map[string]string{}, map[string]string{}
	var reserved, binary []string
	media := map[string]string{}
	for key, into := range map[string]any{"in": &where, "style": &style, "reserved": &reserved, "binary": &binary, "media": &media} {
		if text := c.Meta[key]; text != "" && json.Unmarshal([]byte(text), into) != nil {
			return bad
		}
	}
	for _, name := range slices.Sorted(maps.Keys(where)) {
		at := where[name]
		in, wire, renamed := strings.Cut(at, ":")
		if !renamed {
			wire = name
		}
		f := field{wire: wire, media: media[name], reserved: slices.Contains(reserved, name), binary: slices.Contains(binary, name)}
		f.in, f.json = strings.CutSuffix(in, "+json")
		f.style, f.explode = styleOf(f.in, style[name])
		if !slices.Contains([]string{"path", "query", "header", "cookie", "body"}, f.in) {
			return bad
		}
		if f.in == "header" && framing(f.wire) {
			return fmt.Errorf("parameter %.60q would replace a header that controls how the request is parsed", name)
		}
		op.fields[name] = f
	}
	return op.readAuth(c)
}

// readAuth reads how the secrets of an operation are sent.
func (op *operation) readAuth(c *capability.Capability) error {
	if text := c.Meta["auth"]; text != "" && json.Unmarshal([]byte(text), &op.auth) != nil {
		return errors.New("the request description cannot be read")
	}
	for _, a := range op.auth {
		if err := a.check(); err != nil {
			return err
		}
	}
	return nil
}

// styleOf reads "style", "style:explode" or ":explode", with the defaults of
// OpenAPI.
func styleOf(in, text string) (style string, explode bool) {
	style, given, ok := strings.Cut(text, ":")
	if style == "" {
		style = "form"
		if in == "path" || in == "header" {
			style = "simple"
		}
	}
	if explode = style == "form" || style == "deepObject"; ok {
		explode = given == "true"
	}
	return style, explode
}

var place = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\{([^{}/]+)\}`)
})

// readRecipe puts the parameters of a recipe where its address names them. The
// others go into the query of a request without a body, and else into its body.
func (op *operation) readRecipe(c *capability.Capability, schema json.RawMessage) {
	path, query, _ := strings.Cut(op.template, "?")
	for _, m := range place().FindAllStringSubmatch(path, -1) {
		op.fields[m[1]] = field{in: "path", wire: m[1], style: "simple"}
	}
	for _, m := range place().FindAllStringSubmatch(query, -1) {
		op.fields[m[1]] = field{in: "template", wire: m[1], style: "simple"}
	}
	if op.template == "" {
		op.fields["url"] = field{in: "url"}
		op.fields["headers"] = field{in: "headers"}
		op.fields["body"] = field{in: "body", wire: "*"}
	}
	op.rest = "query"
	if op.template != "" && slices.Contains([]string{http.MethodPost, http.MethodPut, http.MethodPatch}, op.method) {
		op.rest = "body"
	}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return
	}
	for name := range s.Properties {
		if _, known := op.fields[name]; known || name == op.selectName() || name == op.pagesName() {
			continue
		}
		f := field{in: op.rest, wire: name}
		f.style, f.explode = styleOf(f.in, "")
		op.fields[name] = f
	}
}

// selectName is the argument that chooses a part of the answer, and pagesName the
// one that says how many pages are read: select and pages, unless the operation
// has parameters of these names.
func (op *operation) selectName() string { return op.free("select") }

func (op *operation) pagesName() string { return op.free("pages") }

func (op *operation) free(name string) string {
	if _, taken := op.fields[name]; taken {
		return "ken_" + name
	}
	return name
}

// framing reports whether a header decides how a request is read or where it
// goes.
func framing(name string) bool {
	switch name = http.CanonicalHeaderKey(name); name {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade", "Te", "Trailer", "Expect":
		return true
	}
	return strings.HasPrefix(name, "Proxy-")
}

// overriding reports whether a header makes servers read another method than the
// one that was decided on.
func overriding(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "X-Http-Method-Override", "X-Http-Method", "X-Method-Override":
		return true
	}
	return false
}

func originOf(u *url.URL) string { return strings.ToLower(u.Scheme + "://" + u.Host) }

// hostsOf returns the plain hosts of a list without their ports. Patterns name no
// host that could be told beforehand.
func hostsOf(list []string) []string {
	var out []string
	for _, host := range list {
		if strings.Contains(host, "*") {
			continue
		}
		if u, err := url.Parse("http://" + host); err == nil && u.Hostname() != "" {
			out = append(out, strings.ToLower(u.Hostname()))
		}
	}
	return out
}
