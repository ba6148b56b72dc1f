package jsonscan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ken/internal/testkit/sourcetest"
)

func TestJSONWalkRefusesWithPlace(t *testing.T) {
	tests := []struct {
		name, in, message string
		offset            int
	}{
		{"empty", "", "ends too early", 0},
		{"space only", "  ", "ends too early", 2},
		{"no value", `{"a":}`, "not JSON", 5},
		{"half an object", `{"a":1`, "ends too early", 6},
		{"half a list", `[1, 2`, "ends too early", 5},
		{"half a text", `{"a": "b`, "never ends", 6},
		{"trailing comma", `{"a":1,}`, "key is missing", 7},
		{"trailing comma in list", `[1,]`, "not JSON", 3},
		{"no comma", `{"a":1 "b":2}`, "want a comma", 7},
		{"single quotes", `{'a':1}`, "key is missing", 1},
		{"no colon", `{"a" 1}`, "no colon", 5},
		{"bad escape", `"a\x"`, "backslash", 2},
		{"short escape", `"\u12"`, "backslash", 1},
		{"control character", "\"a\tb\"", "0x09", 2},
		{"leading zero", `01`, "not a number", 0},
		{"no digits", `-`, "not a number", 0},
		{"half a fraction", `1.`, "not a number", 0},
		{"half an exponent", `1e+`, "not a number", 0},
		{"word", `nul`, "not JSON", 0},
		{"second value", `1 2`, "more text", 2},
		{"key twice", `{"a":1,"a":2}`, `key "a" appears twice`, 7},
		{"key twice in disguise", `{"a":{"bc":1,"\u0062c":2}}`, `key "bc" appears twice`, 13},
		{"key twice among many", `{"k0":0,"k1":0,"k2":0,"k3":0,"k4":0,"k5":0,"k6":0,"k7":0,"k8":0,"k9":0,"ka":0,"kb":0,"kc":0,"kd":0,"k3":0}`, `key "k3" appears twice`, 99},
		{"too deep", strings.Repeat("[", maxDepth+1), "nested deeper", maxDepth},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := Scanner{Data: []byte(tt.in)}
			err := w.Check()
			var je *Error
			if !errors.As(err, &je) {
				t.Fatalf("check(%q) = %v, want a *jsonError", tt.in, err)
			}
			if !strings.Contains(je.Message, tt.message) || je.Offset != tt.offset {
				t.Errorf("check(%q) = %q at %d, want %q at %d", tt.in, je.Message, je.Offset, tt.message, tt.offset)
			}
		})
	}
}

func TestUnquoteIsWhatEncodingJSONReads(t *testing.T) {
	for _, in := range []string{
		`plain`, `a\n\t\"\\\/\b\f\r`, `\u0041\u00e9\u20ac`, `\ud83d\ude00`, `\ud83d`, `\ude00x`, `\ud83d\u0041`, `\ud83d\ud83d\ude00`,
		"bad \xff\xfe byte", "\xc3", "half \xe2\x82 rune\\n", "ünï",
	} {
		var want string
		if err := json.Unmarshal([]byte(`"`+in+`"`), &want); err != nil {
			t.Fatal(err)
		}
		if got := Unquote([]byte(in)); got != want {
			t.Errorf("unquote(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzJSONWalk(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, `{"a":[1,-2.5e+3,true,false,null,"x\u00e9\ud83d\ude00"]}`, `{"a":1,"a":2}`, ` [ 1 , 2 ] `, `{"a":{"b":{"c":[[[]]]}}}`,
		`{"type":"object","properties":{"q":{"type":["string","null"],"description":"d"}},"required":["q"]}`, "\"\xff\"", `"\ud83d"`, `[1,]`, `{"a"}`, `1e5`, `-0`, `00`,
	} {
		f.Add([]byte(s))
	}
	sourcetest.SeedAttacks(f, func(_, quoted string) { f.Add([]byte(`{` + quoted + `:[` + quoted + `]}`)) })
	f.Fuzz(func(t *testing.T, data []byte) {
		watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("walk over %q hangs", data)) })
		defer watchdog.Stop()
		loose := Scanner{Data: data, Loose: true}
		err := loose.Check()
		if valid := json.Valid(data); (err == nil) != valid {
			t.Fatalf("loose check(%q) = %v, json.Valid = %v", data, err, valid)
		}
		strict := Scanner{Data: data}
		if strict.Check() == nil && err != nil {
			t.Fatalf("check(%q) accepts what the loose one refuses: %v", data, err)
		}
	})
}
