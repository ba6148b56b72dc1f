package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// TestRead: what a value cannot be held to is no schema, and the error names the
// part.
func TestRead(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, ""},
		{`true`, ""},
		{`{"type":["object","null"]}`, ""},
		{`{"$ref":"#/$defs/In","$defs":{"In":{"type":"object"}}}`, ""},
		{`{"properties":{"a":{"pattern":"^[\\u0041-\\u{5A}]\\/$"}}}`, ""},
		{`{"properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}},"dependencies":{"a":["b"],"b":{"required":["c"]}}}`, ""},
		{`{"$id":"https://x.example/s","properties":{"a":{"$ref":"t"}},"$defs":{"t":{"$id":"t"}}}`, ""},
		{`{"$schema":"http://json-schema.org/draft-07/schema","type":"object"}`, ""},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`, ""},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","type":"object"}`, ""},

		{`"`, `invalid JSON`},
		{`[]`, `it is a list, want a schema`},
		{`{"type":"array"}`, `/type does not allow an object, and arguments are one`},
		{`{"properties":{"a":{"type":"strin"}}}`, `/properties/a/type is "strin", and there is no such type`},
		{`{"properties":{"a":{"type":7}}}`, `/properties/a/type is "7", which it cannot be`},
		{`{"properties":{"a":{"anyOf":[{},{"minimum":"3"}]}}}`, `/properties/a/anyOf/1/minimum is the text "3", which it cannot be`},
		{`{"properties":{"a/b":{"items":{"required":true}}}}`, `/properties/a~1b/items/required is "true", which it cannot be`},
		{`{"properties":[]}`, `/properties is a list, want an object of schemas`},
		{`{"allOf":{}}`, `/allOf is an object, want a list of schemas`},
		{`{"not":[]}`, `/not: it is a list, want a schema`},
		{`{"properties":{"a":null}}`, `/properties/a is null, want a schema`},
		{`{"properties":{"a":{"pattern":"^(?!x)"}}}`, "/properties/a/pattern cannot be checked: error parsing regexp: invalid or unsupported Perl syntax: `(?!`"},
		{`{"patternProperties":{"(?<=x)":{}}}`, `/patternProperties/(?<=x) cannot be checked`},
		{`{"properties":{"a":{"$ref":"https://x.example/s"}}}`, `/properties/a/$ref refers to "https://x.example/s", which is not in the schema; Ken fetches no schemas`},
		{`{"properties":{"a":{"$ref":"#/$defs/none"}}}`, `/properties/a/$ref refers to "#/$defs/none", which is not there`},
		{`{"$recursiveRef":"#"}`, `/$recursiveRef cannot be checked`},
		{`{"$schema":"https://x.example/mine"}`, `/$schema names the dialect "https://x.example/mine", which Ken does not know`},
		{`{"properties":{"a":{"$schema":"http://json-schema.org/draft-07/schema#"}}}`, `/properties/a/$schema is another dialect than that of the whole`},
		{`{"$ref":"#"}`, `schema refers to itself without end`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`, `schema refers to itself without end`},
		{`{"dependencies":{"a":{"$ref":"#"}}}`, `schema refers to itself without end`},
		{strings.Repeat(`{"not":`, 300) + `{}` + strings.Repeat(`}`, 300), `nested deeper than 200 levels`},
		{`{"description":"` + strings.Repeat("x", 1<<20) + `"}`, `bytes, more than 1048576`},
	} {
		_, err := Read(json.RawMessage(c.schema))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("Read(%.100s) = %v, want %q", c.schema, err, c.want)
		}
		if got := Check(json.RawMessage(c.schema)); (got == nil) != (err == nil) {
			t.Errorf("Check(%.100s) = %v, and Read = %v", c.schema, got, err)
		}
	}
}

// TestOlderWords: what a schema without a dialect says in the words of draft-07
// is held to as well.
func TestOlderWords(t *testing.T) {
	for _, c := range []struct {
		schema, value string
		fits          bool
	}{
		{`{"properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}}}`, `{"a":["x"]}`, true},
		{`{"properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}}}`, `{"a":[1]}`, false},
		{`{"properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}}}`, `{"a":["x",1]}`, false},
		{`{"dependencies":{"a":["b"]}}`, `{"a":1}`, false},
		{`{"dependencies":{"a":{"required":["b"]}}}`, `{"a":1}`, false},
		{`{"dependencies":{"a":{"required":["b"]}}}`, `{"a":1,"b":2}`, true},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"a":{"type":"string","minLength":2}}}`, `{"a":"xy"}`, true},
		{`{"$schema":"http://json-schema.org/draft-06/schema#","properties":{"a":{"items":[{"type":"string"}]}}}`, `{"a":[1]}`, false},
		{`{"properties":{"a":{"pattern":"^\\u0041$"}}}`, `{"a":"A"}`, true},
		{`{"properties":{"a":{"pattern":"^\\u0041$"}}}`, `{"a":"u"}`, false},
	} {
		s, err := Read(json.RawMessage(c.schema))
		if err != nil {
			t.Errorf("Read(%s) = %v", c.schema, err)
			continue
		}
		full, err := s.Resolve(nil)
		if err != nil {
			t.Errorf("Resolve(%s) = %v", c.schema, err)
			continue
		}
		var value any
		testkit.OK(t, json.Unmarshal([]byte(c.value), &value))
		if err := full.Validate(value); (err == nil) != c.fits {
			t.Errorf("%s holds %s to be valid: %v, want %v", c.schema, c.value, err, c.fits)
		}
	}
}

// FuzzCheck: what is quickly found to be fine is fine.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":"string","enum":["x"],"minLength":1}},"required":["a"],"additionalProperties":false}`,
		`{"anyOf":[{"items":{"minimum":3,"default":1}}],"$schema":"http://json-schema.org/draft-07/schema#"}`,
		`{"type":"objec"}`, `{"type":"array"}`, `{"properties":{"a":null}}`, `{"minLength":-1,"maxItems":1e99}`, `{"enum":null,"required":[1]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if _, err := Read(raw); (err == nil) != (Check(raw) == nil) {
			t.Errorf("Read(%s) = %v, and Check = %v", raw, err, Check(raw))
		}
	})
}
