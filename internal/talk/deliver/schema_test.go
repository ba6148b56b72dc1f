package deliver

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

func TestSlim(t *testing.T) {
	for in, want := range map[string]string{
		`{"$schema": "x", "type": "object"}`:                                                       `{"type":"object"}`,
		`{"type":"object","$schema":"x"}`:                                                          `{"type":"object"}`,
		`{"b":1,"$schema":{"a":[1,2]},"a":2}`:                                                      `{"type":"object","b":1,"a":2}`,
		`{"$schema":"x"}`:                                                                          `{"type":"object"}`,
		`{"properties":{"$schema":{"type":"string"}}}`:                                             `{"type":"object","properties":{"$schema":{"type":"string"}}}`,
		`{"n":1e400,"$schema":"x","big":12345678901234567890}`:                                     `{"type":"object","n":1e400,"big":12345678901234567890}`,
		`{"properties":{"type":{}},"type":["object","null"]}`:                                      `{"type":"object","properties":{"type":{}}}`,
		`{"a":1,"type":"object"}`:                                                                  `{"a":1,"type":"object"}`,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"null"}]}}}`:                         `{"type":"object","properties":{"a":{"anyOf":[{"type":"null"}]}}}`,
		`{"type":"object","anyOf":[{"required":["a"]}],"oneOf":[{}],"b":1}`:                        `{"type":"object","b":1,"description":"Must also fit: {\"anyOf\":[{\"required\":[\"a\"]}],\"oneOf\":[{}]}"}`,
		`{"description":"Runs.","allOf":[{"properties":{"a":{"type":"string"}}}],"type":"object"}`: `{"type":"object","description":"Runs. Must also fit: {\"allOf\":[{\"properties\":{\"a\":{\"type\":\"string\"}}}]}"}`,
		`{}`: `{"type":"object"}`, ``: ``, `nonsense`: `nonsense`, `[ 1 ]`: `[1]`, `{"a":`: `{"a":`,
	} {
		if got := string(Slim(json.RawMessage(in))); got != want {
			t.Errorf("Slim(%s) = %s, want %s", in, got, want)
		}
	}
}

// FuzzSlim: what was a JSON object says the same but for the dialect, is of the
// type that wires want and has nothing at its top that they refuse.
func FuzzSlim(f *testing.F) {
	f.Add(`{"$schema":"x","a":[{"$schema":1}]}`)
	f.Add(`{"a":1,"\u0024schema":2}`)
	f.Add(`{"type":"object","x":{"type":1},"type":"string","anyOf":[1],"any\u004ff":2}`)
	f.Fuzz(func(t *testing.T, s string) {
		in := json.RawMessage(s)
		got := Slim(in)
		if string(in) != s {
			t.Fatal("Slim changed its argument")
		}
		var before, after map[string]any
		if json.Unmarshal(in, &before) != nil || before == nil {
			return
		}
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("Slim(%s) = %s: %v", s, got, err)
		}
		if after["type"] != "object" {
			t.Fatalf("Slim(%s) = %s, of another type", s, got)
		}
		moved := false
		for _, name := range []string{"$schema", "anyOf", "oneOf", "allOf"} {
			if _, ok := after[name]; ok {
				t.Fatalf("Slim(%s) = %s, which has %s", s, got, name)
			}
			_, ok := before[name]
			moved = moved || ok && name != "$schema"
			delete(before, name)
		}
		delete(before, "type")
		delete(after, "type")
		if moved {
			delete(before, "description")
			delete(after, "description")
		}
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("Slim(%s) = %s, which says something else", s, got)
		}
		if again := Slim(got); !bytes.Equal(again, got) {
			t.Fatalf("Slim(%s) = %s, and again %s", s, got, again)
		}
	})
}
