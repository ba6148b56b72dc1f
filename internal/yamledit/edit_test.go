package yamledit

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"ken/internal/yamldoc"
)

// TestSetIsChecked: an edit that would say something else is thrown away.
func TestSetIsChecked(t *testing.T) {
	path, v := []string{"serve", "addr"}, yamldoc.Value{Any: "localhost:2"}
	for _, text := range []string{"? serve\n: {addr: x}\n", "--- {serve: {addr: x}}\n", "serve:\n  ~\n", "~\n", "serve: {}\n...\n"} {
		out, err := Set([]byte(text), path, v, yamldoc.Limits{})
		if err == nil && !reads(out, With(mustParse(t, text), path, v), yamldoc.Limits{}) {
			t.Errorf("Set(%q) = %q, which says something else", text, out)
		}
		if err != nil && (!errors.Is(err, ErrLayout) || out != nil) {
			t.Errorf("Set(%q) = %q, %v, want nothing and that the layout is odd", text, out, err)
		}
	}
}

// TestPlainWord: what is written without asking the parser reads back as text,
// as a value and as a key.
func TestPlainWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.StringMatching(`[A-Za-z][A-Za-z0-9]{0,5}`), rapid.SampledFrom([]string{"true", "NULL", "Off", "nan", "e5", "x1F", "Inf", "o17", "_1", "[a"})).Draw(t, "word")
		if !plainWord(s) {
			return
		}
		v, err := yamldoc.ParseValue([]byte("{"+s+": ["+s+"]}"), yamldoc.Limits{})
		m, _ := v.Any.(*yamldoc.Map)
		if err != nil || len(m.Fields) != 1 || m.Fields[0].Key != s || m.Fields[0].Value.Any.([]yamldoc.Value)[0].Any != s {
			t.Fatalf("%s reads as %v, %v", s, v, err)
		}
	})
}

func TestEqual(t *testing.T) {
	parse := func(s string) any { return mustParse(t, s) }
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"{a: 1, b: [x]}", "{b: [x], a: 1.0}", true},
		{"{a: 1}", "{a: 2}", false},
		{"{a: 1}", "{a: '1'}", false},
		{"{a: []}", "{a: {}}", false},
		{"{a: x}", "{a: []}", false},
		{"{a: [1, 2]}", "{a: [2, 1]}", false},
		{"{a: 1}", "{a: 1, b: 2}", false},
		{"{a: ~}", "{b: ~}", false},
	} {
		if got := Equal(parse(tt.a), parse(tt.b)); got != tt.want {
			t.Errorf("Equal(%s, %s) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestWithoutAndWithLeaveTheirMap(t *testing.T) {
	const text = "{a: {b: 1, c: 2}, d: 3}"
	m := mustParse(t, text)
	if got := Flow(Without(m, []string{"a", "b"})); got != "{a: {c: 2}, d: 3}" {
		t.Errorf("Without = %s", got)
	}
	if got := Flow(With(m, []string{"a", "b"}, mustParse(t, "{x: 9}").Fields[0].Value)); got != "{a: {b: 9, c: 2}, d: 3}" {
		t.Errorf("With = %s", got)
	}
	if !reflect.DeepEqual(m, mustParse(t, text)) || !bytes.Equal([]byte(Flow(m)), []byte(text)) {
		t.Errorf("the map is now %s", Flow(m))
	}
}

func mustParse(t testing.TB, text string) *yamldoc.Map {
	t.Helper()
	m, err := yamldoc.Parse([]byte(text), yamldoc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
