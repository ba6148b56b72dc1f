package runner

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// TestShapeOf: which schemas a quickSchema can say, and that it is not asked
// about others.
func TestShapeOf(t *testing.T) {
	for text, want := range map[string]bool{
		noteSchema: true,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","enum":["x","y"]}}},"required":["a"]}`:                               true,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"a":{"description":"d","type":"string","default":"x"}}}`: true,
		`{"type":"object","properties":{"a":{}}}`: true,

		`{"type":"object","properties":{"a":{"type":"string","pattern":"^a"}}}`:         false,
		`{"type":"object","properties":{"a":{"type":"string","minLength":1}}}`:          false,
		`{"type":"object","properties":{"a":{"type":["string","null"]}}}`:               false,
		`{"type":"object","properties":{"a":{"enum":[1,2]}}}`:                           false,
		`{"type":"object","properties":{"a":{"minimum":1}}}`:                            false,
		`{"type":"object","properties":{"a":{"properties":{"b":{"type":"string"}}}}}`:   false,
		`{"type":"object","additionalProperties":{"type":"string"}}`:                    false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{}}}`:    false,
		`{"type":"object","anyOf":[{"required":["a"]}],"properties":{"a":{}}}`:          false,
		`{"type":"object","minProperties":1,"properties":{"a":{}}}`:                     false,
		`{"type":"object","properties":{"a":{"const":"x"}}}`:                            false,
		`{"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}}`:      false,
		`{"type":"object","properties":{"a":{"not":{"type":"string"}}}}`:                false,
		`{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":0}}}`:   false,
		`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{}]}}}`:      false,
		`{"type":"object","properties":{"a":false}}`:                                    false,
		`{"type":"object","properties":{"a":{}},"patternProperties":{"^x":{"not":{}}}}`: false,
		`{"type":"object","properties":{"a":{}},"propertyNames":{"pattern":"^a"}}`:      false,
		`{"type":"object","properties":{"a":{}},"dependentRequired":{"a":["b"]}}`:       false,
	} {
		c, err := compile(json.RawMessage(text), nil, true)
		if err != nil {
			t.Fatalf("compile(%s) = %v", text, err)
		}
		if got := c.quick != nil; got != want {
			t.Errorf("compile(%s) has a quickSchema: %t, want %t", text, got, want)
		}
	}
}

// TestShapeAgrees: whatever a quickSchema accepts, the validator accepts, and a quickSchema
// that knows the schema accepts most of what is valid.
func TestShapeAgrees(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "c"})
	texts := rapid.SampledFrom([]string{"x", "y", "", "é"})
	var schema func(depth int) *rapid.Generator[map[string]any]
	schema = func(depth int) *rapid.Generator[map[string]any] {
		return rapid.Custom(func(t *rapid.T) map[string]any {
			kinds := []string{"string", "number", "integer", "boolean", "null", ""}
			if depth > 0 {
				kinds = append(kinds, "object", "array", "object", "array")
			}
			s := map[string]any{}
			kind := rapid.SampledFrom(kinds).Draw(t, "kind")
			if kind != "" {
				s["type"] = kind
			}
			switch kind {
			case "string":
				if rapid.Bool().Draw(t, "enum") {
					s["enum"] = rapid.SliceOfN(texts, 1, 2).Draw(t, "words")
				}
			case "number", "integer":
				if rapid.Bool().Draw(t, "bounded") {
					s["minimum"], s["maximum"] = rapid.IntRange(-2, 1).Draw(t, "min"), rapid.IntRange(1, 3).Draw(t, "max")
				}
			case "array":
				s["items"] = schema(depth-1).Draw(t, "items")
			case "object":
				props := map[string]any{}
				for range rapid.IntRange(0, 3).Draw(t, "n") {
					props[names.Draw(t, "name")] = schema(depth-1).Draw(t, "property")
				}
				s["properties"], s["required"] = props, rapid.SliceOfNDistinct(names, 0, 2, rapid.ID[string]).Draw(t, "required")
				if rapid.Bool().Draw(t, "closed") {
					s["additionalProperties"] = false
				}
			}
			return s
		})
	}
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		return rapid.Custom(func(t *rapid.T) any {
			switch rapid.IntRange(0, 3+2*min(depth, 1)).Draw(t, "what") {
			case 0:
				return texts.Draw(t, "text")
			case 1:
				return rapid.SampledFrom([]float64{-3, -1, 0, 0.5, 1, 2, 2.5, 1e300}).Draw(t, "number")
			case 2:
				return rapid.Bool().Draw(t, "bool")
			case 3:
				return nil
			case 4:
				return rapid.SliceOfN(value(depth-1), 0, 2).Draw(t, "list")
			}
			return rapid.MapOfN(names, value(depth-1), 0, 3).Draw(t, "object")
		})
	}
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		s := schema(2).Draw(t, "schema")
		s["type"] = "object"
		delete(s, "enum")
		delete(s, "items")
		delete(s, "minimum")
		delete(s, "maximum")
		raw, _ := json.Marshal(s)
		c, err := compile(raw, nil, true)
		if err != nil {
			t.Fatalf("compile(%s) = %v", raw, err)
		}
		if c.quick == nil {
			t.Fatalf("compile(%s) has no quickSchema", raw)
		}
		for range 5 {
			v := rapid.MapOfN(names, value(2), 0, 3).Draw(t, "value")
			quick, full := c.quick.fits(v), c.Validate(v) == nil
			if quick && !full {
				t.Fatalf("schema %s: fits(%v) = true, and the validator refuses it: %v", raw, v, c.Validate(v))
			}
			if quick {
				accepted++
			}
		}
	})
	if accepted == 0 {
		t.Error("no value was accepted by any schema: the test shows nothing")
	}
}
