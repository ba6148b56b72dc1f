package slash

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ken/capability"
)

// bound returns the arguments of a line by a schema.
func bound(t *testing.T, schema, line string) (string, error) {
	t.Helper()
	sig, err := ReadSignature(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return arguments(New([]Command{{Name: "c", Actions: []Action{{Target: "command:c", Signature: &sig}}}}), "/c "+line)
}

func TestBind(t *testing.T) {
	for _, tt := range []struct{ name, schema, line, want string }{
		{"template order", `{"properties":{"b":{"type":"string"},"a":{"type":"number"}},"required":["b","a"]}`, "x 2.50", `{"b":"x","a":2.50}`},
		{"list takes the middle", `{"properties":{"files":{"type":"array","items":{"type":"string"}},"dest":{"type":"string"}},"required":["dest"]}`,
			"a b c", `{"files":["a","b"],"dest":"c"}`},
		{"list may stay empty", `{"properties":{"files":{"type":"array"},"dest":{"type":"string"}},"required":["dest"]}`, "c", `{"dest":"c"}`},
		{"list by flag", `{"properties":{"tag":{"type":"array","items":{"type":"integer"},"x-ken-flag":"-t"}}}`, "-t 1 --tag=2 tag=3", `{"tag":[1,2,3]}`},
		{"negative numbers are no flags", `{"properties":{"n":{"type":"integer"},"m":{"type":"number"}}}`, "-5 --m -0.5", `{"n":-5,"m":-0.5}`},
		{"large numbers keep their digits", `{"properties":{"n":{"type":"integer"}}}`, "123456789012345678901234567890", `{"n":123456789012345678901234567890}`},
		{"untyped flag", `{"properties":{"v":{"type":["boolean","string"],"x-ken-flag":"--v"},"u":{"type":"string","x-ken-position":1}}}`, "u --v", `{"u":"u","v":true}`},
		{"untyped flag with value", `{"properties":{"v":{"type":["boolean","string"],"x-ken-flag":"--v"}}}`, "--v much", `{"v":"much"}`},
		{"object", `{"properties":{"o":{"type":"object"}}}`, `o='{"a": [1]}'`, `{"o":{"a": [1]}}`},
		{"quoted equals sign", `{"properties":{"u":{"type":"string"}}}`, `'u=x'`, `{"u":"u=x"}`},
		{"quoted flag", `{"properties":{"u":{"type":"string"}}}`, `"--u"`, `{"u":"--u"}`},
		{"a dash is a word", `{"properties":{"u":{"type":"string"}}}`, `-`, `{"u":"-"}`},
		{"dashes for underscores", `{"properties":{"dry_run":{"type":"boolean"}}}`, `--dry-run`, `{"dry_run":true}`},
		{"positions out of order", `{"properties":{"b":{"x-ken-position":2},"a":{"x-ken-position":1}}}`, `1 2`, `{"a":"1","b":"2"}`},
		{"open", `{"properties":{},"additionalProperties":true}`, `--a --b=c`, `{"a":true,"b":"c"}`},
		{"schema that says nothing of a property", `{"properties":{"a":true}}`, `x`, `{"a":"x"}`},
		{"rest of the line", `{"properties":{"a":{"type":"string"},"v":{"type":"boolean"},"b":{"type":"string","x-ken-rest":true},"c":{"type":"string"}}}`,
			`x --v  y "z"  -w`, `{"a":"x","b":"y \"z\"  -w","v":true}`},
		{"rest after a name", `{"properties":{"a":{"type":"string"},"b":{"type":"string","x-ken-rest":true},"c":{"type":"string"}}}`,
			`a=x c=y b c=z`, `{"a":"x","b":"b c=z","c":"y"}`},
		{"rest in quotes", `{"properties":{"b":{"type":"string","x-ken-rest":true},"c":{"type":"string"}}}`, `'y  z'`, `{"b":"y  z"}`},
		{"rest by its name", `{"properties":{"b":{"type":"string","x-ken-rest":true},"c":{"type":"string"}}}`, `--b y --c=z`, `{"b":"y","c":"z"}`},
		{"rest may be missing", `{"properties":{"b":{"type":"string","x-ken-rest":true},"c":{"type":"string"}}}`, `c=z`, `{"c":"z"}`},
		{"the only text", `{"properties":{"u":{"type":"string"}}}`, `what is  "this"`, `{"u":"what is  \"this\""}`},
		{"args take flags", `{"properties":{"p":{"type":"string"},"args":{"type":"array","items":{"type":"string"}}},"required":["p"]}`,
			`git -C x 'a b'`, `{"p":"git","args":["-C","x","a b"]}`},
		{"what must be there comes first", `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}`, `x`, `{"b":"x"}`},
		{"and what may be when there is enough", `{"properties":{"a":{"type":"string"},"n":{"type":"boolean"},"b":{"type":"string"}},"required":["b"]}`, `x y`, `{"a":"x","b":"y"}`},
		{"other equals signs", `{"properties":{"u":{"type":"string"}}}`, `https://x?u=1&v=2`, `{"u":"https://x?u=1\u0026v=2"}`},
	} {
		if got, err := bound(t, tt.schema, tt.line); err != nil || got != tt.want {
			t.Errorf("%s: arguments of %q = %s, %v, want %s", tt.name, tt.line, got, err, tt.want)
		}
	}
	for _, tt := range []struct{ name, schema, line, want string }{
		{"no parameters", `{"properties":{}}`, "x", "one argument too many"},
		{"swallowed", `{"properties":{"v":{"type":["boolean","string"],"x-ken-flag":"--v"},"u":{"x-ken-position":1}},"required":["u"]}`,
			"--v x", "write --v=true if the word after it"},
		{"a flag only", `{"properties":{"v":{"type":"string","x-ken-flag":"--v"}}}`, "x", "one argument too many"},
		{"object", `{"properties":{"o":{"type":"object"}}}`, "[1]", "o wants JSON, an object"},
		{"rest twice", `{"properties":{"b":{"type":"string","x-ken-rest":true},"c":{"type":"string"}}}`, "b=x y", "b is given twice"},
		{"an only choice", `{"properties":{"b":{"type":"string","enum":["x","y"]}}}`, "x y", "one argument too many"},
		{"open twice", `{"properties":{},"additionalProperties":true}`, `--a --a`, "twice"},
		{"open, short", `{"properties":{},"additionalProperties":true}`, `-a`, "no such flag"},
	} {
		if got, err := bound(t, tt.schema, tt.line); capability.KindOf(err) != capability.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: arguments of %q = %s, %v, want %q", tt.name, tt.line, got, err, tt.want)
		}
	}
}

func TestReadSignatureRefuses(t *testing.T) {
	var many strings.Builder
	for i := range maxParameters + 1 {
		fmt.Fprintf(&many, `,"a%d":{}`, i)
	}
	for _, schema := range []string{`{"properties":{` + many.String()[1:] + `}}`, ``, `[]`, `{"properties":[]}`, `{"properties":{"a":{},"a":{}}}`, `{"properties":{"a":`} {
		if sig, err := ReadSignature(json.RawMessage(schema)); capability.KindOf(err) != capability.Invalid {
			t.Errorf("ReadSignature(%s) = %+v, %v, want a refusal", schema, sig, err)
		}
	}
}
