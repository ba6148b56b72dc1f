package schema

import (
	"encoding/json"
	"fmt"
	"testing"
)

// TestSimple: what is taken for a schema that can be used is one, and the way to find
// out makes no difference.
func TestSimple(t *testing.T) {
	for word, values := range map[string][]string{
		"type":          {`"string"`, `["string","null"]`, `["string","string"]`, `[]`, `["text"]`, `"text"`, `7`, `[7]`, `null`},
		"pattern":       {`"^a+$"`, `"\\u0041"`, `"^(?=x)"`, `"("`, `7`, `null`},
		"propertyNames": {`{"pattern":"^x"}`, `{"pattern":"("}`, `true`, `null`, `7`},
		"example":       {`1`, `null`, `{"type":"text"}`},
		"x-mcp-header":  {`"Region"`, `null`, `7`},
		"items":         {`{"type":"string"}`, `{"type":["string"]}`, `{"type":"text"}`, `[{}]`},
		"anyOf":         {`[{"type":"string"},{"pattern":"x"}]`, `[{"pattern":"("}]`},
	} {
		for _, value := range values {
			for _, text := range []string{
				fmt.Sprintf(`{"type":"object","properties":{"a":{%q:%s}}}`, word, value),
				fmt.Sprintf(`{"$schema":%q,"type":"object","properties":{"a":{%q:%s}}}`, draft07, word, value),
			} {
				_, want := Read(json.RawMessage(text))
				if got := Check(json.RawMessage(text)); (got == nil) != (want == nil) {
					t.Errorf("%s: Check = %v, Read = %v", text, got, want)
				}
			}
		}
	}
}
