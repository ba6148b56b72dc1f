package untrusted

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTwiceNamed(t *testing.T) {
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(`"k%d":{"k%d":[]}`, i, i))
	}
	for in, want := range map[string]string{
		`{"a":1,"b":{"a":2},"c":[{"a":1},{"a":2}]}`: "",
		`{"a":"b","b":"a"}`:                         "",
		`["a","a"]`:                                 "",
		`{"a":1,"a":2}`:                             "a",
		`{"x":[{"id":1,"\\u0069d":2}]}`:             "id",
		`{"a":{"b":1},"c":{"d":{},"d":{}}}`:         "d",
		`"x"`:                                       "",
		`{"a\\"":1,"a":2}`:                          "",
		"{" + strings.Join(many, ",") + "}":         "",
		"{" + strings.Join(many, ",") + `,"k7":1}`:  "k7",
	} {
		in = strings.ReplaceAll(in, `\\`, `\`)
		got, twice := TwiceNamed([]byte(in), 0)
		if got != want || twice != (want != "") {
			t.Errorf("TwiceNamed(%.60s) = %q, %v; want %q", in, got, twice, want)
		}
	}
	for in, want := range map[string]string{`{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}]}`: "", `{"a":{"b":1},"a":2}`: "a"} {
		if got, _ := TwiceNamed([]byte(in), 1); got != want {
			t.Errorf("TwiceNamed(%s, 1) = %q, want %q", in, got, want)
		}
	}
}

// TestMembers: it returns what encoding/json does, of every kind of value and with
// white space everywhere.
func TestMembers(t *testing.T) {
	for _, in := range []string{
		`{}`, ` { } `, `[]`, `"{"`, `1`, `null`,
		`{"a":1}`, `{"a":1,"b":[1,{"c":"}"}],"d":{"e":[]},"f":"x\"}","g":null,"h":-1e5,"i":true}`,
		" {\t\"a\" :\n1 ,\r\n\"b\" : [ 1 , 2 ] , \"c\" : { \"d\" : \"]\" } } ",
		`{"\u0069d":"\\","":"","é\n":{}}`,
		`{"a":"` + strings.Repeat(`\"`, 100) + `","b":` + strings.Repeat("[", 50) + strings.Repeat("]", 50) + `}`,
	} {
		var want map[string]json.RawMessage
		_ = json.Unmarshal([]byte(in), &want) // not every one is an object
		got := map[string]json.RawMessage{}
		for name, value := range Members([]byte(in)) {
			got[name] = value
		}
		if len(got) != len(want) {
			t.Errorf("Members(%s) = %q", in, got)
		}
		for name, value := range want {
			if string(got[name]) != string(value) {
				t.Errorf("Members(%s) has %q for %q, want %q", in, got[name], name, value)
			}
		}
	}
}

func TestItems(t *testing.T) {
	for _, in := range []string{
		`[]`, ` [ ] `, `{}`, `"["`, `1`, `null`, `[1]`, ` [ 1 , "a,]" , { "b" : [ 2 , 3 ] } , [ ] , null ] `, `["\"",["]"]]`,
	} {
		var want []json.RawMessage
		_ = json.Unmarshal([]byte(in), &want) // not every one is an array
		if got := slices.Collect(Items([]byte(in))); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("Items(%s) = %q, want %q", in, got, want)
		}
	}
}

// FuzzMembers: what is no JSON ends it, and valid JSON has the members that
// encoding/json finds.
func FuzzMembers(f *testing.F) {
	for _, in := range []string{`{"a":1}`, `{"a"`, `{"a":`, `{"a":"`, `{"a":[}`, `{,}`, `{"a":1,"b":{"c":[1,2]}}`} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		got := map[string]string{}
		for name, value := range Members(in) {
			got[name] = string(value)
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(in, &want) != nil || !utf8.Valid(in) {
			return
		}
		for name, value := range want {
			if got[name] != string(value) {
				t.Errorf("Members(%q) has %q for %q, want %q", in, got[name], name, value)
			}
		}
	})
}
