package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi2"
	"github.com/getkin/kin-openapi/openapi2conv"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"ken/capability"
	"ken/internal/know/source"
	"ken/internal/testkit/executortest"
)

// TestRequestsAreCorrect makes a request of every operation of our own documents,
// with arguments that are made of the schema that a model sees. A server holds
// each against the document, by another reader of OpenAPI.
func TestRequestsAreCorrect(t *testing.T) {
	for _, name := range []string{"styles.yaml", "swagger.json"} {
		s := check(t, filepath.Join("testdata", name))
		for _, problem := range s.wrong {
			t.Error(problem)
		}
		if s.correct < 10 || len(s.skipped) > 0 {
			t.Errorf("%s: %d requests are correct, and %v were not made", name, s.correct, s.skipped)
		}
	}
}

// TestPublishedDocuments does so with the documents in KEN_OPENAPI.
func TestPublishedDocuments(t *testing.T) {
	dir := os.Getenv("KEN_OPENAPI")
	if dir == "" {
		t.Skip("soak: KEN_OPENAPI, the folder of published OpenAPI documents, is not set")
	}
	var all score
	documents := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(path)) {
			return err
		}
		s := check(t, path)
		if s.documents == 0 {
			return nil
		}
		documents++
		t.Logf("%-60s %5d correct, %d wrong, %d not made, %d not read", filepath.Base(path), s.correct, len(s.wrong), len(s.skipped), s.unread)
		all.correct += s.correct
		all.unread += s.unread
		all.wrong, all.skipped = append(all.wrong, s.wrong...), append(all.skipped, s.skipped...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d documents: %d requests are correct, %d are not, %d were not made, %d operations were not read", documents, all.correct, len(all.wrong), len(all.skipped), all.unread)
	for _, list := range [][]string{all.wrong, all.skipped} {
		for _, line := range list[:min(len(list), 60)] {
			t.Log(line)
		}
	}
	if documents < 25 || all.correct < 2000 {
		t.Errorf("%d documents and %d correct requests, want 25 and 2000", documents, all.correct)
	}
	if len(all.wrong)*50 > all.correct { // values that the test made wrong, and styles that the other reader lacks
		t.Errorf("%d of %d requests are not correct, more than one in 50", len(all.wrong), all.correct)
	}
}

// A score is how the requests of a document came out.
type score struct {
	documents, correct, unread int
	wrong, skipped             []string
}

// check makes a request of each operation of a file.
func check(t *testing.T, path string) (s score) {
	t.Helper()
	doc, err := document(path)
	if err != nil {
		return s // the other reader does not take it for a document
	}
	tree := source.NewTree(source.TreeConfig{Path: path, Trust: capability.TrustUser})
	defer tree.Close()
	batch, err := tree.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.documents = 1
	for _, item := range doc.Paths.Map() {
		s.unread += len(item.Operations())
	}
	s.unread -= len(batch.Capabilities)
	var now struct {
		operation *openapi3.Operation
		item      *openapi3.PathItem
		path      string
		err       error
		asked     bool
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now.asked = true
		now.err = judge(r, doc, now.path, now.item, now.operation)
	}))
	defer server.Close()
	details := map[capability.ID]capability.Detail{}
	by := map[capability.ID]*capability.Capability{}
	e, err := New(Config{
		Lookup: func(_ context.Context, id capability.ID) (*capability.Capability, capability.Detail, error) {
			return by[id], details[id], nil
		},
		Secret:   func(string) (string, bool) { return "secret-value", true },
		Networks: func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} },
		Limits:   func() Limits { return Limits{Rate: -1, Retries: -1} },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for _, c := range batch.Capabilities {
		if strings.ContainsAny(c.Run.URL, "?#") {
			continue // a path with a query or a fragment in it is none
		}
		what := fmt.Sprintf("%s %s %s", filepath.Base(path), c.Run.Method, c.Run.URL)
		d, err := tree.Detail(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(c.Origin.Pointer, "/")
		now.path = strings.ReplaceAll(strings.ReplaceAll(parts[2], "~1", "/"), "~0", "~")
		now.item = doc.Paths.Value(now.path)
		if now.item == nil {
			s.skipped = append(s.skipped, what+": the other reader does not have it")
			continue
		}
		now.operation = now.item.GetOperation(c.Run.Method)
		if now.operation != nil && recursive(now.operation) {
			s.skipped = append(s.skipped, what+": its body refers to itself, which the other reader does not survive")
			continue
		}
		one := *c
		recipe := *c.Run
		recipe.URL = server.URL + now.path
		one.Run, one.Unavailable, one.Hash = &recipe, "", ""
		one.Meta = maps.Clone(c.Meta)
		delete(one.Meta, "auth") // a server of its own would be needed for each
		by[c.ID], details[c.ID] = &one, d
		for _, whole := range []bool{true, false} {
			args, err := sample(d.Schema, whole)
			if err != nil {
				s.skipped = append(s.skipped, what+": "+err.Error())
				break
			}
			now.asked, now.err = false, nil
			_, err = e.Invoke(t.Context(), executortest.Call(string(c.ID), args))
			if err == nil && !now.asked {
				err = errors.New("the server was not asked")
			}
			if err = cmp.Or(err, now.err); err == nil {
				s.correct++
				continue
			}
			text, _, _ := strings.Cut(err.Error(), "\nSchema:")
			raw, _ := json.Marshal(args)
			s.wrong = append(s.wrong, fmt.Sprintf("%s: %.300s; arguments %.300s", what, text, raw))
			break
		}
	}
	return s
}

// recursive reports whether a body refers to itself.
func recursive(op *openapi3.Operation) bool {
	if op.RequestBody == nil || op.RequestBody.Value == nil {
		return false
	}
	open, done := map[*openapi3.Schema]bool{}, map[*openapi3.Schema]bool{}
	var walk func(refs ...*openapi3.SchemaRef) bool
	walk = func(refs ...*openapi3.SchemaRef) bool {
		for _, ref := range refs {
			if ref == nil || ref.Value == nil || done[ref.Value] {
				continue
			}
			v := ref.Value
			if open[v] {
				return true
			}
			open[v] = true
			for _, list := range [][]*openapi3.SchemaRef{v.OneOf, v.AnyOf, v.AllOf, {v.Not, v.Items, v.AdditionalProperties.Schema}, slices.Collect(maps.Values(v.Properties))} {
				if walk(list...) {
					return true
				}
			}
			delete(open, v)
			done[v] = true
		}
		return false
	}
	for _, media := range op.RequestBody.Value.Content {
		if walk(media.Schema) {
			return true
		}
	}
	return false
}

// document reads a file with the other reader.
func document(path string) (*openapi3.T, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var old openapi2.T
	if json.Unmarshal(data, &old) == nil && strings.HasPrefix(old.Swagger, "2") {
		return openapi2conv.ToV3(&old)
	}
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(data)
	if err == nil && (doc.OpenAPI == "" || doc.Paths == nil || doc.Paths.Len() == 0) {
		err = errors.New("no document")
	}
	return doc, err
}

// judge holds a request against the document.
func judge(r *http.Request, doc *openapi3.T, path string, item *openapi3.PathItem, op *openapi3.Operation) error {
	names := []string{}
	var b strings.Builder
	rest := path
	for _, m := range place().FindAllStringSubmatchIndex(path, -1) {
		b.WriteString(regexp.QuoteMeta(path[len(path)-len(rest):m[0]]) + "([^/]*)")
		names = append(names, path[m[2]:m[3]])
		rest = path[m[1]:]
	}
	b.WriteString(regexp.QuoteMeta(rest))
	found := regexp.MustCompile("^" + b.String() + "$").FindStringSubmatch(r.URL.EscapedPath())
	if found == nil {
		return fmt.Errorf("the path %s is not %s", r.URL.EscapedPath(), path)
	}
	values := map[string]string{}
	for i, name := range names {
		plain, err := url.PathUnescape(found[i+1])
		if err != nil {
			return err
		}
		values[name] = plain
	}
	return openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
		Request: r, PathParams: values,
		Route:   &routers.Route{Spec: doc, Server: &openapi3.Server{URL: "/"}, Path: path, PathItem: item, Method: r.Method, Operation: op},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true},
	})
}

// sample makes arguments that fit a schema: all of the properties on top, or the
// required ones alone.
func sample(schema json.RawMessage, whole bool) (map[string]any, error) {
	var s map[string]any
	dec := json.NewDecoder(strings.NewReader(string(schema)))
	dec.UseNumber()
	if err := dec.Decode(&s); err != nil {
		return nil, err
	}
	properties, _ := s["properties"].(map[string]any)
	required := texts(s["required"])
	args := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		must := slices.Contains(required, name)
		if slices.Contains([]string{"select", "pages", "ken_select", "ken_pages"}, name) || !must && !whole {
			continue
		}
		v, err := value(properties[name], 0)
		if err != nil && must {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err == nil && v != nil {
			args[name] = v
		}
	}
	return args, nil
}

func texts(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, item := range list {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

var errNoSample = errors.New("no value is known that fits")

// value makes one that fits a schema.
func value(schema any, depth int) (any, error) {
	s, ok := schema.(map[string]any)
	if !ok || depth > 12 {
		return "x", nil
	}
	if c, ok := s["const"]; ok {
		return c, nil
	}
	if list, ok := s["enum"].([]any); ok && len(list) > 0 {
		for _, item := range list {
			if item != nil {
				return item, nil
			}
		}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			return oneOf(s, list, depth)
		}
	}
	if list, ok := s["allOf"].([]any); ok && len(list) > 0 {
		return value(merged(s, list), depth+1)
	}
	switch kind := kindOf(s); kind {
	case "boolean":
		return true, nil
	case "integer", "number":
		return number(s, kind == "integer")
	case "array":
		item, err := value(s["items"], depth+1)
		n := 1
		if least, ok := s["minItems"].(json.Number); ok {
			if i, err := least.Int64(); err == nil && i > 1 {
				n = int(i)
			}
		}
		if err != nil || n > 1 && s["uniqueItems"] == true || n > 1000 {
			return nil, errNoSample
		}
		return slices.Repeat([]any{item}, n), nil
	case "object":
		return object(s, depth)
	case "null":
		return nil, nil
	}
	return word(s)
}

func kindOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		for _, item := range t {
			if item != "null" {
				return fmt.Sprint(item)
			}
		}
		return "null"
	}
	switch {
	case s["properties"] != nil:
		return "object"
	case s["items"] != nil:
		return "array"
	}
	return "string"
}

// oneOf takes the first of several that a value is known for.
func oneOf(s map[string]any, list []any, depth int) (any, error) {
	base := maps.Clone(s)
	delete(base, "oneOf")
	delete(base, "anyOf")
	for _, one := range list {
		if v, err := value(merged(base, []any{one}), depth+1); err == nil && v != nil {
			return v, nil
		}
	}
	return nil, errNoSample
}

func merged(s map[string]any, list []any) map[string]any {
	out := maps.Clone(s)
	delete(out, "allOf")
	for _, part := range list {
		m, ok := part.(map[string]any)
		if !ok {
			continue
		}
		if inner, ok := m["allOf"].([]any); ok {
			m = merged(m, inner)
		}
		for key, v := range m {
			switch have := out[key].(type) {
			case map[string]any:
				if more, ok := v.(map[string]any); ok && key == "properties" {
					both := maps.Clone(have)
					maps.Copy(both, more)
					out[key] = both
					continue
				}
			case []any:
				if more, ok := v.([]any); ok && key == "required" {
					out[key] = append(slices.Clone(have), more...)
					continue
				}
			}
			out[key] = v
		}
	}
	return out
}

func object(s map[string]any, depth int) (any, error) {
	out := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	for _, name := range texts(s["required"]) {
		v, err := value(properties[name], depth+1)
		if err != nil {
			return nil, err
		}
		if properties[name] != nil {
			out[name] = v
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) { // one is enough
		if v, err := value(properties[name], depth+1); err == nil && v != nil {
			return map[string]any{name: v}, nil
		}
	}
	if s["additionalProperties"] != nil && s["additionalProperties"] != false {
		if v, err := value(s["additionalProperties"], depth+1); err == nil && v != nil {
			return map[string]any{"k": v}, nil
		}
	}
	return out, nil
}

func number(s map[string]any, whole bool) (any, error) {
	of := func(key string) (float64, bool) {
		n, ok := s[key].(json.Number)
		f, err := n.Float64()
		return f, ok && err == nil
	}
	low, hasLow := of("minimum")
	if x, ok := of("exclusiveMinimum"); ok {
		low, hasLow = x+1, true
	}
	high, hasHigh := of("maximum")
	if x, ok := of("exclusiveMaximum"); ok {
		high, hasHigh = x-1, true
	}
	n := 1.0
	if hasLow && n < low {
		n = low
	}
	if hasHigh && n > high {
		n = high
	}
	if m, ok := of("multipleOf"); ok && m > 0 {
		n = m * float64(max(1, int(n/m)))
	}
	if hasLow && n < low || hasHigh && n > high {
		return nil, errNoSample
	}
	if whole {
		return int64(n), nil
	}
	return n, nil
}

func word(s map[string]any) (any, error) {
	known := map[string]string{
		"date-time": "2026-01-02T03:04:05Z", "date": "2026-01-02", "uuid": "123e4567-e89b-42d3-a456-426614174000", "email": "a@example.com",
		"uri": "https://example.com/a?b=c", "url": "https://example.com/", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1", "hostname": "example.com",
		"byte": "aGVsbG8=", "binary": "aGVsbG8=", "time": "03:04:05Z", "duration": "P1D",
	}
	format, _ := s["format"].(string)
	about, _ := s["description"].(string)
	candidates := []string{known[format], "a b/c&d", "example", "1", "a", "abc123", "2026-01-02", "en-US", "12345678", "AB", "https://example.com/a", "a@example.com", "123e4567-e89b-42d3-a456-426614174000", "0123456789abcdef01234567", "12345678-1234-1234-1234-123456789012", "+14155550100", "#aabbcc", "1d", "A1B2C3"}
	if strings.HasSuffix(about, "(base64)") {
		candidates = []string{"aGVsbG8="}
	}
	for _, key := range []string{"example", "default"} {
		if text, ok := s[key].(string); ok {
			candidates = append(candidates, text)
		}
	}
	candidates = append(candidates, texts(s["examples"])...)
	least, most := 0, 1<<20
	if n, ok := s["minLength"].(json.Number); ok {
		i, _ := n.Int64()
		least = int(i)
		candidates = append(candidates, strings.Repeat("a", min(least, 1<<16)), strings.Repeat("1", min(least, 1<<16)))
	}
	if n, ok := s["maxLength"].(json.Number); ok {
		i, _ := n.Int64()
		most = int(i)
	}
	pattern, _ := s["pattern"].(string)
	expr, err := regexp.Compile(pattern)
	if err != nil {
		return nil, errNoSample
	}
	for _, text := range candidates {
		if text != "" && len(text) >= least && len(text) <= most && expr.MatchString(text) && (known[format] == "" || text == known[format]) {
			return text, nil
		}
	}
	return nil, errNoSample
}
