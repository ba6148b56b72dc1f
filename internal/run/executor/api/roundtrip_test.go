package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
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

// TestRequestsAreCorrect makes requests of every operation of our own documents. A
// server holds each against the document, by another reader of OpenAPI.
func TestRequestsAreCorrect(t *testing.T) {
	checkRequests(t, "styles.yaml", map[string][]string{
		"simple": {`{"a":"a b/c&d","b":[1,2],"c":{"x":1}}`},
		"label":  {`{"a":"a b/c&d","b":[1,2]}`},
		"matrix": {`{"a":"a b/c&d","b":[1,2]}`},
		"query": {`{"text":"a b/c&d"}`, `{"text":"x","number":3.5,"flag":true,"exploded":["a b","c"],"comma":[1,2],"space":[1,2],"pipe":[1,2],"deep":{"x":1,"y":"z"},` +
			`"raw":"https://example.com/a?b=c","json":{"k":[true]},"kind":"one","when":"2026-01-02T03:04:05Z"}`},
		"headers":   {`{"X-Text":"x"}`, `{"X-Text":"a b","X-List":[1,2],"X-Map":{"x":1},"sid":"abc"}`},
		"json":      {`{"name":"x"}`, `{"name":"x","tags":["a"],"nested":{"n":1}}`},
		"list":      {`{"body":[1,2]}`},
		"optional":  {`{}`, `{"a":"x"}`},
		"choice":    {`{"body":{"a":"x"}}`, `{"body":{"b":"x"}}`},
		"form":      {`{"a":"x"}`, `{"a":"a b&c","n":1,"list":["x","y"]}`},
		"multipart": {`{"file":"aGVsbG8="}`, `{"file":"aGVsbG8=","name":"n","about":{"k":"v"}}`},
		"text":      {`{"body":"as it is"}`},
		"bytes":     {`{"body":"aGVsbG8="}`},
	})
	checkRequests(t, "swagger.json", map[string][]string{
		"listPets":    {`{}`, `{"limit":5,"tags":["a","b"],"ids":[1,2],"pipes":[1,2],"X-Trace":"x"}`},
		"addPet":      {`{"name":"Tom"}`, `{"name":"Tom","kind":"cat","owner":{"id":1}}`},
		"replacePets": {`{"body":[{"name":"Tom"}]}`},
		"getPet":      {`{"id":7}`},
		"changePet":   {`{"id":7,"name":"Tom"}`, `{"id":7,"name":"Tom","age":3}`},
		"removePet":   {`{"id":7}`},
		"addPhoto":    {`{"id":7,"photo":"aGVsbG8="}`, `{"id":7,"photo":"aGVsbG8=","note":"n"}`},
	})
}

// checkRequests makes requests of each operation of a file: by its name, with arguments.
func checkRequests(t *testing.T, name string, arguments map[string][]string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	doc, err := document(path)
	executortest.Must(t, err)
	tree := source.NewTree(source.TreeConfig{Path: path, Trust: capability.TrustUser})
	defer tree.Close()
	batch, err := tree.Load(t.Context())
	if err != nil || len(batch.Capabilities) != len(arguments) {
		t.Fatalf("%s: %d operations, %v, want %d", name, len(batch.Capabilities), err, len(arguments))
	}
	var at string
	var held error
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { held = judge(r, doc, at) }))
	defer server.Close()
	var one capability.Capability
	var detail capability.Detail
	e, err := New(Config{
		Lookup: func(context.Context, capability.ID) (*capability.Capability, capability.Detail, error) {
			return &one, detail, nil
		},
		Networks: func() []netip.Prefix { return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} },
		Limits:   func() Limits { return Limits{Rate: -1, Retries: -1} },
	})
	executortest.Must(t, err)
	defer e.Close()
	for _, c := range batch.Capabilities {
		if detail, err = tree.Detail(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(c.Origin.Pointer, "/")
		at = strings.ReplaceAll(strings.ReplaceAll(parts[2], "~1", "/"), "~0", "~")
		recipe := *c.Run
		recipe.URL = server.URL + at
		one = *c
		one.Run, one.Unavailable, one.Hash = &recipe, "", ""
		one.Meta = maps.Clone(c.Meta)
		delete(one.Meta, "auth") // a server of its own would be needed for each
		list := arguments[strings.TrimPrefix(string(c.ID), "tool:")]
		if len(list) == 0 {
			t.Errorf("%s: no arguments for %s", name, c.ID)
		}
		for _, args := range list {
			held = errors.New("the server was not asked")
			_, err := e.Invoke(t.Context(), executortest.Call(string(c.ID), args))
			if err := cmp.Or(err, held); err != nil {
				t.Errorf("%s %s %s: %.300s", name, c.ID, args, err)
			}
		}
	}
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
func judge(r *http.Request, doc *openapi3.T, path string) error {
	item := doc.Paths.Value(path)
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
		Route:   &routers.Route{Spec: doc, Server: &openapi3.Server{URL: "/"}, Path: path, PathItem: item, Method: r.Method, Operation: item.GetOperation(r.Method)},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true},
	})
}
