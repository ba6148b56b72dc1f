package untrusted

import (
	"encoding/json"
	"strings"
	"testing"
)

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"<|im_start|>", `{"a":"[INST] <|x|>"}`, "＜|eot|＞", "<<SYS>>", "\"<s>\"\n<s>", "<|<|im_start|>|>", `["\\<|a|>"]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, n := Tokens(s)
		if again, m := Tokens(got); m != 0 || again != got {
			t.Fatalf("Tokens(%q) = %q, then %q", s, got, again)
		}
		for _, m := range markers(got) {
			if m.kind == templateToken {
				t.Fatalf("Tokens(%q) = %q still has a token", s, got)
			}
		}
		if !isJSON(s) {
			if n == 0 && got != s {
				t.Fatalf("Tokens(%q) = %q, 0", s, got)
			}
			return
		}
		var was, is any
		if json.Unmarshal([]byte(s), &was) != nil || json.Unmarshal([]byte(got), &is) != nil {
			t.Fatalf("Tokens(%q) = %q is no JSON", s, got)
		}
		a, _ := json.Marshal(was)
		b, _ := json.Marshal(is)
		if string(a) != string(b) {
			t.Fatalf("Tokens(%q) = %q is another value: %s, was %s", s, got, b, strings.TrimSpace(string(a)))
		}
	})
}
