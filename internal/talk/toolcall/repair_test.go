package toolcall

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ken/capability"
)

// TestS4U10Repair: what models write for JSON is repaired once, the same way
// every time; what was cut off, or could mean two things, is not.
func TestS4U10Repair(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		cut            bool // the answer was
	}{
		{name: "fine", in: ` {"a": 1} `, want: `{"a":1}`},
		{name: "empty", in: ``, want: `{}`},
		{name: "null", in: `null`, want: `{}`},
		{name: "fence", in: "```json\n{\"a\":1}\n```", want: `{"a":1}`},
		{name: "fence without a word", in: "```\n{\"a\":1}```", want: `{"a":1}`},
		{name: "trailing commas", in: `{"a":[1,2,],"b":{"c":1,},}`, want: `{"a":[1,2],"b":{"c":1}}`},
		{name: "two trailing commas", in: `{"a":1,,}`, want: `{"a":1}`},
		{name: "single quotes", in: `{'a': 'it\'s "so"'}`, want: `{"a":"it's \"so\""}`},
		{name: "open braces", in: `{"a":{"b":[1,2`, want: `{"a":{"b":[1,2]}}`},
		{name: "open braces after a comma", in: `{"a":1,`, want: `{"a":1}`},
		{name: "a break in a string", in: "{\"a\":\"x\ny\"}", want: `{"a":"x\ny"}`},
		{name: "an object in a string", in: `"{\"a\":1}"`, want: `{"a":1}`},
		{name: "an open string", in: `{"path":"/home/ada/not`},
		{name: "no value", in: `{"a":`},
		{name: "two objects", in: `{"a":1}{"b":2}`},
		{name: "a brace too many", in: `{"a":1}}`},
		{name: "words", in: `please call it with a=1`},
		{name: "a list", in: `[1,2]`},
		{name: "too much to repair", in: strings.Repeat("{", maxRepairBytes+1)},
		{name: "a number", in: `7`},
		{name: "twice the same key", in: `{"a":1,"a":2}`},
		{name: "open braces of an answer that was cut", in: `{"a":{"b":[1,2`, cut: true},
	} {
		got, note, err := Arguments([]byte(c.in), !c.cut)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: Arguments(%s) = %s, want an error", c.name, c.in, got)
			}
			continue
		}
		var b bytes.Buffer
		if err != nil || json.Compact(&b, got) != nil || b.String() != c.want {
			t.Errorf("%s: Arguments(%s) = %s, %v; want %s", c.name, c.in, got, err, c.want)
		}
		if fine := json.Valid([]byte(strings.TrimSpace(c.in))) && !strings.HasPrefix(c.in, `"`) || c.in == ""; fine == (note != "") {
			t.Errorf("%s: note = %q", c.name, note)
		}
	}
}

// TestRepairLeavesJSONAlone: an object of any kind stays as it is.
func TestRepairLeavesJSONAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOf(rapid.String(), rapid.OneOf(rapid.String().AsAny(), rapid.Int().AsAny(), rapid.Bool().AsAny(), rapid.SliceOf(rapid.String()).AsAny())).Draw(t, "object")
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		got, note, err := Arguments(raw, true)
		if err != nil || note != "" || !bytes.Equal(got, raw) {
			t.Fatalf("Arguments(%s) = %s, %q, %v", raw, got, note, err)
		}
		if mended := mend(string(raw)); mended != string(raw) {
			t.Fatalf("fix(%s) = %s", raw, mended)
		}
	})
}

// FuzzReadArguments: whatever comes out is one JSON object or an error.
func FuzzReadArguments(f *testing.F) {
	for _, s := range []string{`{"a":1}`, "```json\n{'a':1,}\n```", `{"a":{"b":[1,2`, `{"a":"`, `{'a':'\`, `"{}"`, "`", "```", "```\n"} {
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, whole bool) {
		got, _, err := Arguments(raw, whole)
		if err != nil {
			return
		}
		if _, err := capability.CanonicalJSON(got); err != nil || got[0] != '{' {
			t.Errorf("Arguments(%q) = %q, which is no object: %v", raw, got, err)
		}
		again, _, err := Arguments(raw, whole)
		if err != nil || !bytes.Equal(got, again) {
			t.Errorf("Arguments(%q) = %q and then %q, %v", raw, got, again, err)
		}
	})
}

// BenchmarkRepair is what the most that is repaired costs where it cannot be JSON: no
// more than its length.
func BenchmarkRepair(b *testing.B) {
	n := maxRepairBytes - 10
	for name, in := range map[string]string{
		"commas": `{"a":` + strings.Repeat(",", n), "list": `{"a":[1` + strings.Repeat(",\n", n/2) + `]}`, "braces": strings.Repeat("{", n), "quotes": strings.Repeat(`{"`, n/2),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_, _, _ = Arguments([]byte(in), true)
			}
		})
	}
}
