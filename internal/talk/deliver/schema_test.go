package deliver

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

func TestSlim(t *testing.T) {
	for in, want := range map[string]string{
		`{"$schema": "x", "type": "object"}`:                   `{"type":"object"}`,
		`{"type":"object","$schema":"x"}`:                      `{"type":"object"}`,
		`{"b":1,"$schema":{"a":[1,2]},"a":2}`:                  `{"b":1,"a":2}`,
		`{"$schema":"x"}`:                                      `{}`,
		`{"properties":{"$schema":{"type":"string"}}}`:         `{"properties":{"$schema":{"type":"string"}}}`,
		`{"n":1e400,"$schema":"x","big":12345678901234567890}`: `{"n":1e400,"big":12345678901234567890}`,
		`{}`: `{}`, ``: ``, `nonsense`: `nonsense`, `[ 1 ]`: `[1]`, `{"a":`: `{"a":`,
	} {
		if got := string(Slim(json.RawMessage(in))); got != want {
			t.Errorf("Slim(%s) = %s, want %s", in, got, want)
		}
	}
}

// FuzzSlim: what was a JSON object says the same but for the dialect.
func FuzzSlim(f *testing.F) {
	f.Add(`{"$schema":"x","a":[{"$schema":1}]}`)
	f.Add(`{"a":1,"\u0024schema":2}`)
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
		delete(before, "$schema")
		delete(after, "$schema") // written with an escape it stays
		if !reflect.DeepEqual(before, after) {
			t.Fatalf("Slim(%s) = %s, which says something else", s, got)
		}
		if again := Slim(got); !bytes.Equal(again, got) {
			t.Fatalf("Slim(%s) = %s, and again %s", s, got, again)
		}
	})
}
