package executor

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzObject: what is read is what encoding/json reads.
func FuzzObject(f *testing.F) {
	for _, s := range []string{
		`{}`, ` { "a" : [ 1 , -2.5e+3 , "x\"\\\u00e4\ud800" , true , false , null , {} , [] ] } `, `{"a":1,"a":2}`, `[1]`, `"{}"`, `{"a":{"b":{"c":[[[]]]}}}`, `{"":""}`,
		`{"a":1}x`, `{"a"`, strings.Repeat(`[`, 64) + strings.Repeat(`]`, 64), strings.Repeat(`[`, 66) + strings.Repeat(`]`, 66),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Object(raw)
		dec := json.NewDecoder(bytes.NewReader(raw))
		dec.UseNumber()
		var want any
		valid := utf8.Valid(raw) && json.Valid(raw) && dec.Decode(&want) == nil
		if err != nil {
			if _, isObject := want.(map[string]any); valid && isObject && !strings.Contains(err.Error(), "duplicate") && !strings.Contains(err.Error(), "nested") {
				t.Errorf("%q: %v", raw, err)
			}
			return
		}
		if !valid || !reflect.DeepEqual(any(got), want) {
			t.Errorf("%q: %v, want %v (valid %v)", raw, got, want, valid)
		}
	})
}
