package source

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"ken/capability"
	"ken/internal/know/source/openapi"
	"ken/internal/testkit"
	"ken/internal/testkit/sourcetest"
)

var apiFixtures = []string{"petshop.json", "library.json", "weather.yaml"}

// TestOpenAPIFixtures pins what our own APIs become.
func TestOpenAPIFixtures(t *testing.T) {
	for _, name := range apiFixtures {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join("testdata", "openapi", name))
			must(t, err)
			path := filepath.Join("testdata", "openapi", name+".golden")
			got := loaded(t, map[string]string{name: string(data)}).shown(nil)
			if os.Getenv("KEN_UPDATE_GOLDEN") != "" {
				must(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want, err := os.ReadFile(path)
			must(t, err)
			golden(t, string(want), got)
		})
	}
}

// TestOpenAPISchemasAreSchemas: a validator takes every input schema.
func TestOpenAPISchemasAreSchemas(t *testing.T) {
	for _, name := range apiFixtures {
		tree, b := load(t, TreeConfig{Path: filepath.Join("testdata", "openapi", name), Trust: capability.TrustUser})
		for _, c := range b.Capabilities {
			d, err := tree.Detail(context.Background(), c)
			must(t, err)
			var s jsonschema.Schema
			if err := json.Unmarshal(d.Schema, &s); err != nil {
				t.Fatalf("%s: %v", c.ID, err)
			}
			if _, err := s.Resolve(nil); err != nil {
				t.Errorf("%s: %v\n%s", c.ID, err, d.Schema)
			}
		}
	}
}

// apiWith makes a description of one operation.
func apiWith(operation string) string {
	return `{"openapi":"3.0.0","info":{"title":"t"},"servers":[{"url":"https://a.example"}],"paths":{` + "\n" + `"/a":{"get":` + operation + `}}}`
}

// TestLargeOpenAPIBadInput: what would take much to read is refused where it goes
// too far. Smaller faults are in testdata/formats/openapi.txtar.
func TestLargeOpenAPIBadInput(t *testing.T) {
	testkit.CI(t, "megabytes")
	many := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	head := "openapi: 3.0.0\n"
	for _, tt := range []struct {
		name, file, text, problem string
		line, left                int
	}{
		{"deep JSON", "a.json", `{"openapi":"3.0.0","x":` + strings.Repeat(`{"a":`, 5000), "bad-json nested deeper", 1, 0},
		{"deep blocks", "a.yaml", head + func() (s string) {
			for i := range 300 {
				s += strings.Repeat(" ", i) + "a:\n"
			}
			return s
		}(), "bad-yaml nested deeper", 102, 0},
		{"100,000 keys", "a.yaml", head + "paths:\n" + many(100_000, "  /p%d: {}\n"), "bad-yaml too many keys in one place", 10002, 0},
		{"many large maps", "a.yaml", head + strings.Repeat("x:\n"+many(4000, "  k%d: 1\n"), 40), "bad-yaml too many keys in one place", 26002, 0},
		{"large YAML", "a.yaml", head + "x: " + strings.Repeat("y", openapi.MaxYAMLBytes), "bad-yaml the file has 4194322 bytes", 0, 0},
		{"too many values", "a.json", `{"openapi":"3.0.0","x":[` + strings.Repeat("1,", openapi.MaxValues) + `1]}`, "bad-json more than 1000000 values", 1, 0},
		{"too many parameters", "a.json", apiWith(`{"parameters":[` + many(openapi.MaxParameters, `{"name":"p%d","in":"query"},`) + `{"name":"last","in":"query"}]}`), "bad-operation GET /a is not read: more than 500 parameters", 2, 0},
		{"too many operations", "a.json", `{"openapi":"3.0.0","info":{"title":"t"},"servers":[{"url":"https://a.example"}],"paths":{` + many(openapi.MaxOperations, `"/p%d":{"get":{}},`) + `"/last":{"get":{}}}}`, "too-many-operations more than 5000", 1, openapi.MaxOperations},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, b, _ := loadText(t, tt.file, tt.text)
			if len(b.Capabilities) != tt.left {
				t.Fatalf("%d capabilities, want %d; problems %v", len(b.Capabilities), tt.left, b.Problems)
			}
			if len(b.Problems) != 1 {
				t.Fatalf("problems = %v, want one", b.Problems)
			}
			if p := b.Problems[0]; !strings.HasPrefix(p.Code+" "+p.Message, tt.problem) || p.Origin.Line != tt.line || p.Fix == "" {
				t.Errorf("problem = %s %s at line %d; fix %q, want %s at line %d", p.Code, p.Message, p.Origin.Line, p.Fix, tt.problem, tt.line)
			}
		})
	}
}

// TestLargeOpenAPIBombsStaySmall: what is small in the file and large when it is
// written out is cut, visibly, and costs little.
func TestLargeOpenAPIBombsStaySmall(t *testing.T) {
	testkit.CI(t, "megabytes")
	var wide, chain strings.Builder
	for i := range 12 {
		wide.WriteString(fmt.Sprintf(`"S%d":{"type":"object","properties":{`, i))
		for j := range 10 {
			fmt.Fprintf(&wide, `"p%d":{"$ref":"#/components/schemas/S%d"},`, j, i+1)
		}
		wide.WriteString(`"q":{"type":"string"}}},`)
		fmt.Fprintf(&chain, `"A%d":{"allOf":[%s{"$ref":"#/components/schemas/A%d"}]},`, i, strings.Repeat(fmt.Sprintf(`{"$ref":"#/components/schemas/A%d"},`, i+1), 9), i+1)
	}
	text := `{"openapi":"3.0.0","info":{"title":"t"},"servers":[{"url":"https://a.example"}],"components":{"schemas":{` + wide.String() + chain.String() +
		`"S12":{"type":"string"},"A12":{"type":"object","properties":{"x":{}}}}},"paths":{`
	for i := range 60 {
		text += fmt.Sprintf(`"/w%d":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/S0"}}}}}},`, i)
	}
	text += `"/a":{"post":{"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A0"}}}}}}}}`
	tree, b, _ := loadText(t, "a.json", text)
	if len(b.Capabilities) != 61 {
		t.Fatalf("%d capabilities, want 61: %v", len(b.Capabilities), b.Problems)
	}
	for _, c := range b.Capabilities {
		d, err := tree.Detail(context.Background(), c)
		if err != nil || len(d.Schema) > openapi.MaxSchemaBytes+1024 || !json.Valid(d.Schema) {
			t.Fatalf("schema of %s: %d bytes, %v", c.ID, len(d.Schema), err)
		}
		if !bytes.Contains(d.Schema, []byte("cut")) {
			t.Errorf("schema of %s does not say that it is cut: %.200s", c.ID, d.Schema)
		}
	}
	if len(b.Problems) == 0 || b.Problems[0].Code != "schema-cut" {
		t.Errorf("problems = %v, want schema-cut", b.Problems)
	}
}

// TestLargeOpenAPITextsAreBounded: one path item that stands for thousands of
// operations must not become gigabytes.
func TestLargeOpenAPITextsAreBounded(t *testing.T) {
	testkit.CI(t, "megabytes")
	long := strings.Repeat("word ", 400<<10/5)
	text := `{"openapi":"3.0.0","info":{"title":"t"},"servers":[{"url":"https://a.example"}],"components":{"pathItems":{"P":{"get":{"summary":"` + long + `","description":"` + long + `"}}}},"paths":{`
	for i := range 200 {
		text += fmt.Sprintf(`"/p%d":{"$ref":"#/components/pathItems/P"},`, i)
	}
	text += `"/last":{}}}`
	_, b, _ := loadText(t, "a.json", text)
	last := b.Problems[len(b.Problems)-1]
	if n := len(b.Capabilities); n == 0 || n > 100 || last.Code != "api-too-large" || last.Severity != capability.Grave {
		t.Errorf("%d capabilities, last problem %v, want a part of them and api-too-large", n, last)
	}
	if n := len([]rune(b.Capabilities[0].Description)); n > openapi.MaxSummary+openapi.MaxParagraph+10 {
		t.Errorf("the description has %d characters", n)
	}
}

func FuzzOpenAPI(f *testing.F) {
	for _, name := range apiFixtures {
		data, err := os.ReadFile(filepath.Join("testdata", "openapi", name))
		must(f, err)
		f.Add(data, strings.HasSuffix(name, ".yaml"))
	}
	f.Add([]byte(apiWith(`{"parameters":[{"name":"a","in":"query","schema":{"$ref":"#/paths/~1a/get/parameters/0/schema"}}]}`)), false)
	f.Add([]byte("openapi: 3.1.0\npaths: {/a: {get: {requestBody: {content: {x/y: {schema: {allOf: [{$ref: '#'}]}}}}}}}\n"), true)
	sourcetest.SeedAttacks(f, func(_, quoted string) {
		f.Add([]byte(apiWith(`{"operationId":`+quoted+`,"summary":`+quoted+`,"parameters":[{"name":`+quoted+`,"in":"query"}]}`)), false)
	})
	f.Fuzz(func(t *testing.T, data []byte, yaml bool) {
		name := "a.json"
		if yaml {
			name = "a.yaml"
		}
		if openapi.Format().Claims(name, data[:min(len(data), headSize)]) {
			fuzzFile(t, name, data)
		}
	})
}
