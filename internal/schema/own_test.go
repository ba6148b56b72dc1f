package schema

import (
	"encoding/json"
	"testing"
)

func TestWithoutOwn(t *testing.T) {
	tests := []struct{ in, want string }{
		{`{"type":"object","properties":{"cmd":{"type":"string","x-ken-rest":true}}}`, `{"type":"object","properties":{"cmd":{"type":"string"}}}`},
		{`{"x-ken-flag":{"a":[1,{"b":2}]},"type":"object"}`, `{"type":"object"}`},
		{`{"type":"object","x-ken-a":1,"x-ken-b":2}`, `{"type":"object"}`},
		{`{"x-ken-a":1}`, `{}`},
		{`{"anyOf":[{"x-ken-a":1,"minimum":0.10},{"enum":["x-ken-a","<&>"]}]}`, `{"anyOf":[{"minimum":0.10},{"enum":["x-ken-a","<&>"]}]}`},
		{`{"properties":{"x-ken-rest":{"x-ken-rest":true,"default":12345678901234567890}}}`, `{"properties":{"x-ken-rest":{"default":12345678901234567890}}}`},
		{`{"properties":{"properties":{"x-ken-rest":true}}}`, `{"properties":{"properties":{}}}`},
		{`{"$defs":{"a":{"properties":{"b":{"x-ken-c":1}}}}}`, `{"$defs":{"a":{"properties":{"b":{}}}}}`},
		{`{"a": 1}`, `{"a": 1}`},
		{`{"x-ken-a":`, `{"x-ken-a":`},
		{`[null,true,"x",{"x-ken-a":1}]`, `[null,true,"x",{}]`},
	}
	for _, tt := range tests {
		if got := string(WithoutOwn(json.RawMessage(tt.in))); got != tt.want {
			t.Errorf("WithoutOwn(%s) = %s, want %s", tt.in, got, tt.want)
		}
	}
}
