package jsonvalid

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

var texts = []string{
	``, ` `, `{}`, `[]`, `{ }`, `[ ]`, `{"a":1}`, `{"a":1,}`, `{"a" : [1 , 2 , {"b":null}]}`, `[1,]`, `[,1]`, `{,}`, `{"a"}`, `{"a":}`, `{1:2}`,
	`true`, `false`, `null`, `tru`, `nul`, `truex`, `"a"`, `"`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, `"\u12aF"`, "\"\x1f\"", "\"\x7f\xff\"", `"a" "b"`,
	`0`, `-`, `-0`, `01`, `1.`, `.5`, `1.5`, `1e`, `1e+`, `1e+5`, `1E-05`, `1.5e3x`, `--1`, `+1`, `[1 2]`, `{"a":1 "b":2}`, "\ufeff{}", ` [1] x`, `[[[`, `]]`,
	strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	strings.Repeat(`{"a":`, 10_000) + "1" + strings.Repeat("}", 10_000), strings.Repeat(`{"a":`, 10_001) + "1" + strings.Repeat("}", 10_001),
}

func TestValid(t *testing.T) {
	for _, s := range texts {
		if got, want := Valid([]byte(s)), json.Valid([]byte(s)); got != want {
			t.Errorf("%.60q: %v, want %v", s, got, want)
		}
	}
}

func FuzzValid(f *testing.F) {
	for _, s := range texts {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, want := Valid(data), json.Valid(data); got != want {
			t.Errorf("%q: %v, want %v", data, got, want)
		}
	})
}

func BenchmarkValid(b *testing.B) {
	data := []byte(`{"items":[` + strings.Repeat(`{"id":1,"name":"a name of some length"},`, 50) + `{}]}`)
	for name, valid := range map[string]func([]byte) bool{"ours": Valid, "encoding/json": json.Valid} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				valid(data)
			}
		})
	}
}

// FuzzText: a text that is returned is the one that encoding/json decodes.
func FuzzText(f *testing.F) {
	for _, s := range []string{`""`, `"a"`, `"a\n\t\"b\\"`, `"\/\b\f\r"`, `"\u0041"`, "\"\xff\"", `"é\n"`, `1`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) || len(bytes.TrimSpace(raw)) != len(raw) {
			return
		}
		got, ok := Text(raw)
		var want string
		err := json.Unmarshal(raw, &want)
		if ok && (err != nil || got != want) {
			t.Errorf("Text(%q) = %q, encoding/json returns %q, %v", raw, got, want, err)
		}
		if !ok && raw[0] == '"' && utf8.Valid(raw) && !bytes.Contains(raw, []byte(`\u`)) {
			t.Errorf("Text(%q) reports false for a text without \\u", raw)
		}
	})
}
