package mcpgateway

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestRedactJSON: secrets in strings and keys are replaced, however they are
// written, and everything else keeps its bytes.
func TestRedactJSON(t *testing.T) {
	redact := func(s string) string { return strings.ReplaceAll(s, "tok\t1", "[secret]") }
	for in, want := range map[string]string{
		`{"a":"x", "b":[1,"ü"]}`:                 `{"a":"x", "b":[1,"ü"]}`,
		`{"a":"tok\t1", "b":"tok\u00091 \"q\""}`: `{"a":"[secret]", "b":"[secret] \"q\""}`,
		`{"tok\t1":"\\"}`:                        `{"[secret]":"\\"}`,
		`""`:                                     `""`,
	} {
		if out, err := redactJSON([]byte(in), redact); err != nil || string(out) != want {
			t.Errorf("redactJSON(%s) = %s, %v; want %s", in, out, err, want)
		}
	}
	for _, in := range []string{"\"a\x01b\"", `"open`, "\"\xff\""} {
		var s string
		plain, ok := plainString([]byte(in))
		if ok && (json.Unmarshal([]byte(in), &s) != nil || s != plain) {
			t.Errorf("plainString(%q) = %q", in, plain)
		}
	}
}
