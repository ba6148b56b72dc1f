package seal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"ken/internal/know/source/jsonscan"
	"ken/internal/testkit/sourcetest"
)

// textsOf gathers texts as SchemaText does, by encoding/json.
func textsOf(data []byte) []string {
	var out []string
	dec := json.NewDecoder(bytes.NewReader(data))
	for {
		tok, err := dec.Token()
		if err != nil {
			return out
		}
		if s, ok := tok.(string); ok {
			out = append(out, s)
		}
	}
}

func FuzzSchemaText(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `{"a":[1,-2.5e+3,true,false,null,"x\u00e9\ud83d\ude00"]}`, `{"a":1,"a":2}`, ` [ 1 , 2 ] `, `{"a":{"b":{"c":[[[]]]}}}`,
		`{"type":"object","properties":{"q":{"type":["string","null"],"description":"d"}},"required":["q"]}`, "\"\xff\"", `"\ud83d"`, `[1,]`, `{"a"}`, `1e5`, `-0`, `00`,
	} {
		f.Add([]byte(s))
	}
	sourcetest.SeedAttacks(f, func(_, quoted string) { f.Add([]byte(`{` + quoted + `:[` + quoted + `]}`)) })
	f.Fuzz(func(t *testing.T, data []byte) {
		watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("reading %q hangs", data)) })
		defer watchdog.Stop()
		if !json.Valid(data) {
			return
		}
		if got, want := SchemaText(data), strings.Join(append(textsOf(data), ""), jsonscan.TextSeparator); got != want {
			t.Fatalf("schemaText(%q) = %q, want %q", data, got, want)
		}
		if strict := (jsonscan.Scanner{Data: data}); strict.Check() == nil {
			comparePropertiesOf(t, data)
		}
	})
}

// comparePropertiesOf holds Parameters against encoding/json, for a schema
// without repeated keys.
func comparePropertiesOf(t *testing.T, data []byte) {
	var top map[string]json.RawMessage
	if json.Unmarshal(data, &top) != nil {
		return
	}
	var properties map[string]json.RawMessage
	_ = json.Unmarshal(top["properties"], &properties)
	got := Parameters(data)
	if len(got) != len(properties) {
		t.Fatalf("parametersOf(%q) = %v, want %d", data, got, len(properties))
	}
	var required []any
	_ = json.Unmarshal(top["required"], &required)
	for _, p := range got {
		raw, ok := properties[p.Name]
		if !ok {
			t.Fatalf("parametersOf(%q) has %q", data, p.Name)
		}
		var prop map[string]any
		_ = json.Unmarshal(raw, &prop)
		description, _ := prop["description"].(string)
		needed := false
		for _, r := range required {
			needed = needed || r == p.Name
		}
		if p.Description != description || p.Required != needed {
			t.Fatalf("parametersOf(%q): %+v, want description %q, required %v", data, p, description, needed)
		}
		if word, ok := prop["type"].(string); ok && p.Type != word {
			t.Fatalf("parametersOf(%q): %+v, want type %q", data, p, word)
		}
	}
}

func TestParametersInOrderOfTheSchema(t *testing.T) {
	got := Parameters([]byte(`{"required":["b"],"type":"object","properties":{"z":{"type":"string","description":"last"},"b":{"type":["integer","null"]},"c":true,"a":{"type":7,"description":8}}}`))
	want := "[{z string last false} {b integer|null  true} {c   false} {a   false}]"
	if s := fmt.Sprint(got); s != want {
		t.Errorf("parametersOf = %s, want %s", s, want)
	}
	for _, in := range []string{"", "null", "[]", "{}", `{"properties":[]}`, `{"properties":{"a":{}}`, `"x"`} {
		if got := Parameters([]byte(in)); len(got) != 0 {
			t.Errorf("parametersOf(%q) = %v, want none", in, got)
		}
	}
}

func TestSchemaTextMissesNothing(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"b","c":["d",1,{"e":null}]}`: "a b c d e ",
		`{"a":"first","a":"second"}`:       "a first a second ",
		`{"a":"b"`:                         `a b {"a":"b"`,
		`not JSON at all`:                  "not JSON at all",
		`{"d":"\u0069gnore"}`:              "d ignore ",
		strings.Repeat("[", 200) + `"x"` + strings.Repeat("]", 200): "x ",
	} {
		if got := strings.ReplaceAll(SchemaText([]byte(in)), jsonscan.TextSeparator, " "); got != want {
			t.Errorf("schemaText(%q) = %q, want %q", in, got, want)
		}
	}
}
