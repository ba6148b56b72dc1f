package runner

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestSchemasThatDouble: a schema with two ways at each level of a value is
// refused where the ways are too many, whatever leads there; the same schema
// takes what is shallow.
func TestSchemasThatDouble(t *testing.T) {
	levels := func() string { // no reference comes back, and still it doubles
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/L0","$defs":{`)
		for i := range 60 {
			fmt.Fprintf(&b, `"L%d":{"type":"object","anyOf":[{"properties":{"a":{"$ref":"#/$defs/L%d"}}},{"properties":{"a":{"$ref":"#/$defs/L%d"}}}]},`, i, i+1, i+1)
		}
		return b.String() + `"L60":{"type":"object"}}}`
	}()
	tests := map[string]string{
		"itself":     `{"type":"object","anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`,
		"all of it":  `{"type":"object","allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}]}`,
		"others":     `{"type":"object","oneOf":[{"additionalProperties":{"$ref":"#"}},{"patternProperties":{"a":{"$ref":"#"}}}]}`,
		"by levels":  levels,
		"lists":      `{"type":["object","array"],"anyOf":[{"items":{"$ref":"#"},"properties":{"a":{"$ref":"#"}}},{"items":{"$ref":"#"},"properties":{"a":{"$ref":"#"}}}]}`,
		"three ways": `{"type":"object","if":{"properties":{"a":{"$ref":"#"}}},"then":{"properties":{"a":{"$ref":"#"}}},"else":{"properties":{"a":{"$ref":"#"}}}}`,
	}
	nested := func(depth int) map[string]any {
		text := strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
		var v map[string]any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	for name, raw := range tests {
		t.Run(name, func(t *testing.T) {
			c, err := compile(json.RawMessage(raw), nil, false)
			if err != nil {
				t.Fatal(err)
			}
			if err := check(c, nested(50)); err == nil || !strings.Contains(err.Error(), "steps") {
				t.Errorf("50 levels: %v, want that it takes too many steps", err)
			}
			if err := check(c, nested(4)); err != nil && strings.Contains(err.Error(), "steps") {
				t.Errorf("4 levels: %v", err)
			}
		})
	}
	plain, err := compile(json.RawMessage(`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#"},{"type":"integer"}]}}}`), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(plain, nested(60)); err != nil {
		t.Errorf("a schema with one way down: %v, want that it fits", err)
	}
}
