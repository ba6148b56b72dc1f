package wire

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/serve/doctor"
	"ken/internal/testkit"
)

type inner struct {
	Shared string `json:"shared"`
	Deep   int    `json:"deep"`
}

type colour int

func (colour) MarshalText() ([]byte, error) { return []byte("red"), nil }

type free struct{}

func (free) MarshalJSON() ([]byte, error) { return []byte(`"x"`), nil }

type shaped struct{}

func (shaped) MarshalJSON() ([]byte, error) { return []byte(`1`), nil }
func (shaped) JSONSchema() map[string]any   { return map[string]any{"type": "integer"} }

type sample struct {
	inner
	Shared  bool            `json:"shared"` // hides the inner one
	At      time.Time       `json:"at"`
	Took    time.Duration   `json:"took,omitempty"`
	Raw     json.RawMessage `json:"raw,omitempty"`
	Bytes   []byte          `json:"bytes"`
	Colour  colour          `json:"colour"`
	Free    free            `json:"free"`
	Shaped  *shaped         `json:"shaped,omitempty"`
	Next    *sample         `json:"next"`
	List    []inner         `json:"list"`
	Map     map[string]int8 `json:"map,omitzero"`
	Any     any             `json:"any,omitempty"`
	Number  float32         `json:",string"`
	Natural uint            `json:"natural"`
	Nothing string          `json:"-"`
	hidden  string
}

func sampleRoutes() []*Route {
	serve := func(*Request) (any, error) { return nil, nil }
	return []*Route{
		{
			Method: "GET", Path: "/api/v1/things", Name: "listThings", Group: "things", Summary: "All things", Answer: []sample{}, Serve: serve,
			Query: []Param{
				{Name: "limit", Type: Whole, About: "How many"}, {Name: "near", Type: Number}, {Name: "open", Type: Yes}, {Name: "since", Type: Instant},
				{Name: "kind", Many: true, Words: []string{"a", "b"}}, {Name: "q"},
			},
		},
		{Method: "POST", Path: "/api/v1/things", Name: "makeThing", Group: "things", Body: sample{hidden: "x"}, Answer: sample{}, Status: http.StatusCreated, Serve: serve},
		{Method: "DELETE", Path: "/api/v1/things/{id}/parts/{part...}", Name: "removePart", Group: "things", Operator: true, Decision: "ask them", Serve: serve},
		{Method: "GET", Path: "/api/v1/feed", Name: "feed", Group: "live", Answer: inner{}, Stream: func(http.ResponseWriter, *Request) error { return nil }},
		{Method: "GET", Path: "/metrics", Name: "metrics", Group: "system", Answer: Raw{Type: "text/plain; charset=utf-8"}, Serve: serve},
		{Method: "GET", Path: "/healthz", Name: "health", Answer: map[string]any{}, Serve: serve},
		{Method: "GET", Path: "/{$}", Name: "root", Answer: map[string]any{}, Serve: serve},
		{Method: "GET", Path: "/api/v1/found", Name: "found", Answer: door.Found{}, Serve: serve},
		{Method: "GET", Path: "/api/v1/description", Name: "description", Answer: door.Description{}, Serve: serve},
		{Method: "GET", Path: "/api/v1/doctor", Name: "doctor", Answer: []doctor.Check{}, Serve: serve},
		{Method: "POST", Path: "/api/v1/invoke", Name: "invoke", Body: capability.Call{}, Answer: capability.Result{}, Serve: serve},
	}
}

// TestDescribe: the description is a valid document of OpenAPI, and says what
// the routes say.
func TestDescribe(t *testing.T) {
	routes := sampleRoutes()
	text := testkit.Must(Describe(routes, Info{Title: "T", Version: "v1", Public: []string{"/healthz"}}))(t)
	if again, _ := Describe(sampleRoutes(), Info{Title: "T", Version: "v1", Public: []string{"/healthz"}}); !bytes.Equal(text, again) {
		t.Error("the same routes give other bytes")
	}
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatalf("the document cannot be loaded: %v\n%s", err, text)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatalf("the document is not valid: %v\n%s", err, text)
	}
	names := map[string]bool{}
	for _, item := range doc.Paths.Map() {
		for _, op := range item.Operations() {
			if names[op.OperationID] {
				t.Errorf("the operation %s is there twice", op.OperationID)
			}
			names[op.OperationID] = true
			if op.Responses.Default() == nil {
				t.Errorf("%s does not say what its problems look like", op.OperationID)
			}
		}
	}
	if len(names) != len(routes) {
		t.Errorf("%d operations, want %d", len(names), len(routes))
	}
	for _, want := range []string{
		`"/api/v1/things/{id}/parts/{part}":{"delete":{"operationId":"removePart"`, `"204":{"description":"Success"}`, `"x-operator":true`, `"x-decision":true`,
		`"201":{"content":{"application/json"`, `"text/event-stream":{"schema":{"description":"server-sent events","type":"string","x-data":{"$ref":"#/components/schemas/wire.inner"}}}`,
		`"text/plain; charset=utf-8":{"schema":{"type":"string"}}`, `"operationId":"health","responses":{`, `"security":[]`,
		`{"description":"How many","in":"query","name":"limit"`, `"name":"X-Api-Key"`, `"scheme":"bearer"`, `"enum":["a","b"]`, `"openapi":"3.1.0"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
}

// TestSchemas: a type is described as encoding/json writes it.
func TestSchemas(t *testing.T) {
	text := testkit.Must(Describe(sampleRoutes(), Info{}))(t)
	var doc struct {
		Components struct{ Schemas map[string]any }
	}
	testkit.OK(t, json.Unmarshal(text, &doc))
	want := `{"type":"object","required":["Number","at","bytes","colour","deep","free","list","natural","next","shared"],"properties":{
		"deep":{"type":"integer"},"shared":{"type":"boolean"},"at":{"type":"string","format":"date-time"},"took":{"type":"integer","description":"nanoseconds"},
		"raw":{},"bytes":{"type":"string","contentEncoding":"base64"},"colour":{"type":"string"},"free":{},"shaped":{"type":"integer"},
		"next":{"anyOf":[{"$ref":"#/components/schemas/wire.sample"},{"type":"null"}]},"list":{"type":"array","items":{"$ref":"#/components/schemas/wire.inner"}},
		"map":{"type":"object","additionalProperties":{"type":"integer"}},"any":{},"Number":{"type":"string"},"natural":{"type":"integer","minimum":0}}}`
	var wanted any
	testkit.OK(t, json.Unmarshal([]byte(want), &wanted))
	if diff := cmp.Diff(wanted, doc.Components.Schemas["wire.sample"]); diff != "" {
		t.Errorf("the schema (-want +got):\n%s", diff)
	}
	body, _ := doc.Components.Schemas["wire.sampleBody"].(map[string]any)
	if body["required"] != nil || body["additionalProperties"] != false {
		t.Errorf("the schema of a body = %v, want nothing required and nothing unknown", body)
	}
	if d, _ := doc.Components.Schemas["door.Description"].(map[string]any)["properties"].(map[string]any); d["detail"] == nil || d["id"] == nil {
		t.Errorf("door.Description = %v, want what it embeds too", d)
	}
}

func TestDescribeRefuses(t *testing.T) {
	for name, routes := range map[string][]*Route{
		"no name":     {{Method: "GET", Path: "/a"}},
		"name twice":  {{Method: "GET", Path: "/a", Name: "a"}, {Method: "GET", Path: "/b", Name: "a"}},
		"path twice":  {{Method: "GET", Path: "/a/{x}", Name: "a"}, {Method: "GET", Path: "/a/{x...}", Name: "b"}},
		"no path":     {{Method: "GET", Path: "a", Name: "a"}},
		"half a name": {{Method: "GET", Path: "/{a", Name: "a"}},
		"method":      {{Method: "BREW", Path: "/a", Name: "a"}},
	} {
		if _, err := Describe(routes, Info{}); err == nil {
			t.Errorf("%s: Describe says nothing", name)
		}
	}
}
