package connect

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
)

// TestSwitch: a server goes off and on again, and no other byte changes.
func TestSwitch(t *testing.T) {
	tests := []struct{ name, was, off string }{
		{"lines", "{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\" // why\n    },\n    \"b\": {\"command\": \"y\"}\n  }\n}\n",
			"{\n  \"mcpServers\": {\n    \"a\": {\n      \"command\": \"x\",\n      \"disabled\": true // why\n    },\n    \"b\": {\"command\": \"y\"}\n  }\n}\n"},
		{"one line", `{"mcpServers":{"a":{"command":"x","env":{"K":"v"}},"b":{"command":"y"}}}`,
			`{"mcpServers":{"a":{"command":"x","env":{"K":"v"}, "disabled":true},"b":{"command":"y"}}}`},
		{"servers", `{"servers": {"a": {"url": "https://e.example/mcp"}}}`, `{"servers": {"a": {"url": "https://e.example/mcp", "disabled": true}}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			off, changed, err := Switch([]byte(tt.was), "a", false)
			if err != nil || !changed || !sameServers(string(off), tt.off) {
				t.Fatalf("Switch(off) = %s, %v, %v, want %s", off, changed, err, tt.off)
			}
			list, problems := ReadServers(off)
			if len(problems) > 0 || !list[0].Disabled || len(list) > 1 && list[1].Disabled {
				t.Errorf("ReadServers = %+v, %v, want only a off", list, problems)
			}
			if again, changed, err := Switch(off, "a", false); err != nil || changed || !bytes.Equal(again, off) {
				t.Errorf("Switch(off) again = %s, %v, %v, want nothing to change", again, changed, err)
			}
			on, changed, err := Switch(off, "a", true)
			if err != nil || !changed || string(on) != tt.was {
				t.Errorf("Switch(on) = %q, %v, %v, want %q", on, changed, err, tt.was)
			}
		})
	}
}

// sameServers compares documents apart from blanks.
func sameServers(a, b string) bool {
	bare := func(s string) string { return string(bytes.Join(bytes.Fields([]byte(s)), nil)) }
	return bare(a) == bare(b)
}

// TestSwitchOthersWords: what a client calls "enabled" is understood.
func TestSwitchOthersWords(t *testing.T) {
	out, changed, err := Switch([]byte(`{"mcpServers": {"a": {"enabled": false, "command": "x"}}}`), "a", true)
	if err != nil || !changed || string(out) != `{"mcpServers": {"a": {"enabled": true, "command": "x"}}}` {
		t.Errorf("Switch(on) = %s, %v, %v", out, changed, err)
	}
	for was, kind := range map[string]capability.ErrorKind{
		`{"mcpServers": {}}`: capability.NotFound, ``: capability.NotFound, `[`: capability.Invalid, `{"mcpServers": {"a": 1}}`: capability.Invalid, `{"mcpServers": {"a": {}}}`: capability.Invalid,
	} {
		if _, changed, err := Switch([]byte(was), "a", false); changed || capability.KindOf(err) != kind {
			t.Errorf("Switch(%s) = %v, %v, want an error of kind %v", was, changed, err, kind)
		}
	}
}

// TestSwitchAnyDocument: whatever the document looks like, off and on gives it
// back.
func TestSwitchAnyDocument(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blank := rapid.SampledFrom([]string{"", " ", "\n", "\n  ", "\t", " // note\n", "/* { */"})
		text := `{` + blank.Draw(t, "1") + `"mcpServers"` + blank.Draw(t, "2") + `:{` + blank.Draw(t, "3") + `"a":{` + blank.Draw(t, "4") + `"command":"x"` + blank.Draw(t, "5")
		if rapid.Bool().Draw(t, "comma") {
			text += `,` + blank.Draw(t, "6")
		}
		text += `}` + blank.Draw(t, "7") + `,"b":{"command":"y"}}` + blank.Draw(t, "8") + `}`
		off, changed, err := Switch([]byte(text), "a", false)
		if err != nil || !changed {
			t.Fatalf("Switch(%q) = %q, %v, %v", text, off, changed, err)
		}
		on, changed, err := Switch(off, "a", true)
		if err != nil || !changed || string(on) != text {
			t.Fatalf("Switch(%q) = %q, %v, %v, want %q", off, on, changed, err, text)
		}
	})
}
