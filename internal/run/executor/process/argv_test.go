package process

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/testkit/executortest"
)

const placed = `{"type":"object","properties":{` +
	`"url":{"type":"string","x-ken-position":1},"more":{"type":"array","x-ken-position":2},` +
	`"limit":{"type":"integer","x-ken-flag":"--limit","default":5},"v":{"type":["boolean","string"],"x-ken-flag":"-v"},` +
	`"tag":{"type":"array","x-ken-flag":"--tag"}},"required":["url"]}`

// switched has switches, an optional value, and a boolean without a flag.
const switched = `{"properties":{"r":{"type":"boolean","x-ken-flag":"--reverse"},"on":{"type":"boolean","x-ken-flag":"-o","default":true},` +
	`"word":{"type":"boolean"},"mixed":{"type":["boolean","string"],"x-ken-flag":"-m"},"rev":{"type":"string"},` +
	`"must":{"type":"string"},"std":{"type":"string","default":"HEAD"},"bad":{"type":"boolean","x-ken-flag":"-b","default":"--evil"}}}`

const named = `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"number"},"l":{"type":"array"},"o":{"type":"string"}}}`

func TestArgv(t *testing.T) {
	tests := []struct {
		name         string
		argv         []string // of the recipe
		dashes       string   // what lets them through
		schema, args string
		want         string // the arguments, each in <>
		err          string
	}{
		{name: "the seed's (S5.09, S5.12)", schema: argsSchema, args: `{"args":["https://x.org"]}`, want: "<postman><get><https://x.org>"},
		{name: "nothing given", schema: argsSchema, args: ``, want: "<postman><get>"},
		{name: "flags, then places", schema: placed, args: `{"more":["b","c d"],"url":"a","v":true,"tag":["x","y"]}`, want: "<postman><get><--limit><5><-v><--tag><x><--tag><y><a><b><c d>"},
		{name: "flag with a value, or none", schema: placed, args: `{"url":"a","v":"much","limit":-1}`, want: "<postman><get><--limit><-1><-v><much><a>"},
		{name: "false flag", schema: placed, args: `{"url":"a","v":false}`, want: "<postman><get><--limit><5><a>"},
		{name: "dash in a place", schema: placed, args: `{"url":"-o"}`, err: "url begins with a dash"},
		{name: "dash after a flag", schema: placed, args: `{"url":"a","v":"--exec=x"}`, err: "v begins with a dash"},
		{name: "dash in a list", schema: placed, args: `{"url":"a","more":["-x"]}`, err: "more begins with a dash"},
		{name: "passthrough", dashes: "passthrough", schema: placed, args: `{"url":"-o"}`, want: "<postman><get><--limit><5><-o>"},
		{name: "end of options", dashes: "end of options", schema: placed, args: `{"url":"-o"}`, want: "<postman><get><--limit><5><--><-o>"},
		{name: "object", schema: `{"properties":{"a":{}}}`, args: `{"a":{"b":1}}`, err: "a must be a string"},
		{name: "no schema", schema: ``, args: `{}`, want: "<postman><get>"},
		{name: "no schema, and an argument", schema: ``, args: `{"a":1}`, err: "a"},

		{name: "template", argv: []string{"git", "log", "-n{n}", "{a}", "x{a}y", "{l...}"}, schema: named, args: `{"a":"p q;$(id)","n":3,"l":["1","2 3"]}`,
			want: "<git><log><-n3><p q;$(id)><xp q;$(id)y><1><2 3>"},
		{name: "value is no template", argv: []string{"x", "{a}", "{o}"}, schema: named, args: `{"a":"{o}","o":"{a}"}`, want: "<x><{o}><{a}>"},
		{name: "option left out", argv: []string{"x", "--o={o}", "{l...}"}, schema: named, args: `{}`, want: "<x>"},
		{name: "value left out", argv: []string{"x", "{a}", "{n}", "end"}, schema: named, args: `{"n":1}`, want: "<x><1><end>"},
		{name: "null is left out", argv: []string{"x", "{a}"}, schema: named, args: `{"a":null}`, want: "<x>"},
		{name: "required value missing", argv: []string{"x", "{a}"}, schema: `{"properties":{"a":{}},"required":["a"]}`, args: `{"a":null}`, err: "a is missing"},
		{name: "part of an argument missing", argv: []string{"x", "./{a}"}, schema: named, args: `{}`, err: "argv[1]: a is missing"},
		{name: "at the front of an argument missing", argv: []string{"x", "{a}-{n}"}, schema: named, args: `{"n":1}`, err: "argv[1]: a is missing"},
		{name: "default instead", argv: []string{"x", "{std}", "{rev}"}, schema: switched, args: `{}`, want: "<x><HEAD>"},
		{name: "default and value", argv: []string{"x", "{std}", "{rev}"}, schema: switched, args: `{"std":"main","rev":"v1"}`, want: "<x><main><v1>"},
		{name: "no such parameter", argv: []string{"x", "{zzz}"}, schema: named, args: `{}`, err: "no argument zzz"},
		{name: "no such parameter in an option", argv: []string{"x", "--z={zzz}"}, schema: named, args: `{}`, err: "no argument zzz"},

		{name: "switch on", argv: []string{"x", "{r}", "y"}, schema: switched, args: `{"r":true}`, want: "<x><--reverse><y>"},
		{name: "switch off", argv: []string{"x", "{r}", "y"}, schema: switched, args: `{"r":false}`, want: "<x><y>"},
		{name: "switch not given", argv: []string{"x", "{r}", "y"}, schema: switched, args: `{}`, want: "<x><y>"},
		{name: "switch on by default", argv: []string{"x", "{on}"}, schema: switched, args: `{}`, want: "<x><-o>"},
		{name: "switch taken back", argv: []string{"x", "{on}"}, schema: switched, args: `{"on":false}`, want: "<x>"},
		{name: "text for a switch", argv: []string{"x", "{r}"}, schema: switched, args: `{"r":"--exec=sh"}`, err: "r is not of the type boolean"},
		{name: "list for a switch", argv: []string{"x", "{r}"}, schema: switched, args: `{"r":[true]}`, err: "r is not of the type boolean"},
		{name: "list of switches", argv: []string{"x", "{r...}"}, schema: switched, args: `{"r":true}`, err: "r is not a list"},
		{name: "default that is no boolean", argv: []string{"x", "{bad}"}, schema: switched, args: `{}`, want: "<x>"},
		{name: "switch within an argument", argv: []string{"x", "--reverse={r}"}, schema: switched, args: `{"r":true}`, want: "<x><--reverse=true>"},
		{name: "boolean without a flag", argv: []string{"x", "{word}"}, schema: switched, args: `{"word":true}`, want: "<x><true>"},
		{name: "boolean or text is a value", argv: []string{"x", "{mixed}"}, schema: switched, args: `{"mixed":"-v"}`, err: "mixed begins with a dash"},
		{name: "dash alone", argv: []string{"x", "{a}"}, schema: named, args: `{"a":"-rf"}`, err: "argv[1]: a begins"},
		{name: "dash at the front", argv: []string{"x", "{a}.txt"}, schema: named, args: `{"a":"-rf"}`, err: "a begins"},
		{name: "dash within", argv: []string{"x", "--o={a}"}, schema: named, args: `{"a":"-rf"}`, want: "<x><--o=-rf>"},
		{name: "dash behind --", argv: []string{"x", "--", "{a}"}, schema: named, args: `{"a":"-rf"}`, want: "<x><--><-rf>"},
		{name: "negative number", argv: []string{"x", "{n}"}, schema: named, args: `{"n":-2.5}`, want: "<x><-2.5>"},
		{name: "list for one", argv: []string{"x", "{l}"}, schema: named, args: `{"l":["a"]}`, err: "l is a list"},
		{name: "one for a list", argv: []string{"x", "{a...}"}, schema: named, args: `{"a":"b"}`, err: "a is not a list"},
		{name: "program as a parameter", argv: []string{"{a}"}, schema: named, args: `{"a":"sh"}`, err: "program itself"},
		{name: "NUL", argv: []string{"x", "{a}"}, schema: named, args: `{"a":"b\u0000c"}`, err: "NUL"},
		{name: "strange enum", schema: `{"properties":{"args":{"enum":[[1],{}]}}}`, args: `{"args":[1]}`, err: "not one of its allowed values"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := &capability.Capability{Run: &capability.Recipe{
				Runner: "exec.postman_cli", Action: "get", Argv: tt.argv, Passthrough: tt.dashes == "passthrough", EndOfOptions: tt.dashes == "end of options",
			}}
			got, err := Argv(c, json.RawMessage(tt.schema), json.RawMessage(tt.args))
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("Argv(%s) = %q, %v, want the error %q", tt.args, got, err, tt.err)
				}
				return
			}
			if s := "<" + strings.Join(got, "><") + ">"; err != nil || s != tt.want {
				t.Errorf("Argv(%s) = %s, %v, want %s", tt.args, s, err, tt.want)
			}
		})
	}
}

// FuzzArgv: a value never becomes two arguments, never an option, and never
// changes another argument.
func FuzzArgv(f *testing.F) {
	for _, s := range []string{"", "a", "-x", "--", "{b}", "{b...}", "a b", "\x00", "$(id)", "-1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if !utf8.ValidString(value) {
			return // JSON cannot say it
		}
		raw, err := json.Marshal(map[string]string{"a": value})
		executortest.Must(t, err)
		c := &capability.Capability{Run: &capability.Recipe{Runner: "exec.x", Argv: []string{"x", "--k={a}", "{a}", "end"}}}
		got, err := Argv(c, json.RawMessage(`{"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`), raw)
		if err != nil {
			if len(value) < 1<<16 && !strings.HasPrefix(value, "-") && !strings.ContainsRune(value, 0) {
				t.Fatalf("Argv(%q) = %v", value, err)
			}
			return
		}
		if want := []string{"x", "--k=" + value, value, "end"}; !slices.Equal(got, want) {
			t.Fatalf("Argv(%q) = %q, want %q", value, got, want)
		}
		if len(got[2]) > 1 && got[2][0] == '-' {
			t.Fatalf("Argv(%q) lets an option through", value)
		}
	})
}
