package yamldoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseKeepsOrderLinesAndTypes(t *testing.T) {
	m, err := Parse([]byte("\ufeffid: tool:x\r\nn: 3\r\nf: 0.5\r\non: true\r\nnone:\r\nlist: [a, 2]\r\nmap: { type: object, p: { q: {} } }\r\ntext: >\r\n  two\r\n  lines\r\n"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got := string(Value{Any: m}.JSON())
	want := `{"id":"tool:x","n":3,"f":0.5,"on":true,"none":null,"list":["a",2],"map":{"type":"object","p":{"q":{}}},"text":"two lines\n"}`
	if got != want {
		t.Errorf("JSON() = %s, want %s", got, want)
	}
	if f := m.Fields[5]; f.Key != "list" || f.Line != 6 {
		t.Errorf("field 5 = %s at line %d, want list at line 6", f.Key, f.Line)
	}
}

func TestParseRefusesWithLineAndMend(t *testing.T) {
	deep := strings.Repeat("[", 20000)
	wide := strings.Repeat("k: 1\n", 100000)
	bomb := "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n"
	tests := []struct {
		name, in, message string
		line              int
	}{
		{"duplicate key", "a: 1\nb: 2\na: 3\n", "already", 3},
		{"alias", bomb, "anchors, aliases", 1},
		{"tag", "a: 1\nb: !\nc: 2\n", "YAML tag", 2},
		{"merge key", "<<: {a: 1}\n", "anchors, aliases", 1},
		{"deep flow", deep, "nested deeper", 1},
		{"deep dashes", strings.Repeat("- ", 5000) + "x", "nested deeper", 1},
		{"wide", wide[:60000], "more than 4000 keys", 4001},
		{"large", wide, "bytes, more than", 0},
		{"NUL", "a: 1\nb: \x00\n", "NUL", 2},
		{"not UTF-8", "a: 1\nb: \xff\n", "UTF-8", 2},
		{"two documents", "a: 1\n---\nb: 2\n", "second document", 3},
		{"list root", "- a\n- b\n", "want keys and values", 1},
		{"bad indentation", "a:\n  b: 1\n c: 2\n", "", 3},
		{"unclosed", "a: [1, 2\n", "", 1},
		{"infinity", "a: .inf\n", "infinity", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start := time.Now()
			m, err := Parse([]byte(tt.in), Limits{})
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Parse = %v, %v, want an *Error", m, err)
			}
			if !strings.Contains(e.Message, tt.message) || e.Line != tt.line {
				t.Errorf("Parse error = %q at line %d, want %q at line %d", e.Message, e.Line, tt.message, tt.line)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("refusal took %v", took)
			}
		})
	}
}

func TestLinesAreCountedOnceWithCRLF(t *testing.T) {
	m, err := Parse([]byte("# a comment\r\n# another\r\na: 1 # one\r\nb: 2\r\n"), Limits{})
	if err != nil || m.Fields[0].Line != 3 || m.Fields[1].Line != 4 {
		t.Errorf("Parse = %+v, %v, want a on line 3 and b on line 4", m, err)
	}
}

func TestPlainScalarsGoOnPastAColon(t *testing.T) {
	tests := []struct{ in, want string }{
		{"exclude: [skill:deploy]", `{"exclude":["skill:deploy"]}`},
		{`pins: {skill:s: "sha256:00ff"}`, `{"pins":{"skill:s":"sha256:00ff"}}`},
		{`pins: {skill:s: 'it''s', tool:a:b: x, c: 1}`, `{"pins":{"skill:s":"it's","tool:a:b":"x","c":1}}`},
		{"triggers: { keywords: [a:b, c] }", `{"triggers":{"keywords":["a:b","c"]}}`},
		{"a: {tool:a:b: c:d, u: http://x/y}", `{"a":{"tool:a:b":"c:d","u":"http://x/y"}}`},
		{"a: {http://x/y: 1, skill:http://z: true}", `{"a":{"http://x/y":1,"skill:http://z":true}}`},
		{"a: {skill:s: [x:y, {b:c: d}], e:f: {g: h}}", `{"a":{"skill:s":["x:y",{"b:c":"d"}],"e:f":{"g":"h"}}}`},
		{"a: {b:c}", `{"a":{"b:c":null}}`},
		{"a: {b:c:, d: e}", `{"a":{"b:c":null,"d":"e"}}`},
		{"a: [b:, c]", `{"a":[{"b":null},"c"]}`},
		{"a: [b:c:, d::e, f:[g], h]", `{"a":[{"b:c":null},"d::e",{"f":["g"]},"h"]}`},
		{"a: {12:30, 1:2: 3}", `{"a":{"12:30":null,"1:2":3}}`},
		{`{"a":1,"b":"c:d","e":["f:g",{"h":true}]}`, `{"a":1,"b":"c:d","e":["f:g",{"h":true}]}`},
		{`{'a':1, b: [x: y], c:"d"}`, `{"a":1,"b":[{"x":"y"}],"c":"d"}`},
		{"a: |\n  {b:c}\nd: 'e:{f:g}'", `{"a":"{b:c}\n","d":"e:{f:g}"}`},
	}
	for _, tt := range tests {
		v, err := ParseValue([]byte(tt.in), Limits{})
		if got := string(v.JSON()); err != nil || got != tt.want {
			t.Errorf("ParseValue(%q) = %s, %v, want %s", tt.in, got, err, tt.want)
		}
	}
	m, err := Parse([]byte("a: 1\npins: {\n  skill:s: x,\n  tool:t: y }\nb: 2\n"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	pins := m.Fields[1].Value.Any.(*Map)
	if f := pins.Fields[1]; f.Key != "tool:t" || f.Line != 4 || f.Value.Line != 4 || m.Fields[2].Line != 5 {
		t.Errorf("second pin = %+v, then %+v, want tool:t on line 4 and b on line 5", f, m.Fields[2])
	}
	if v, err := ParseValue([]byte(`a: {b:c: "d, e"}`), Limits{}); err == nil || !strings.Contains(err.Error(), "put the key in quotes") {
		t.Errorf("a quoted comma after such a key: ParseValue = %s, %v, want it refused", v.JSON(), err)
	}
}

func TestSyntaxErrorsTeach(t *testing.T) {
	nested := ""
	for i := range 80 {
		nested += strings.Repeat(" ", i) + "k:\n"
	}
	tests := []struct{ name, in, want string }{
		{"tab", "a: 1\nb:\n\tc: 2\n", "line 3: a tab stands where YAML wants spaces; indent with spaces"},
		{"tab after spaces", "b:\n  c: 1\n \td: 2\n", "line 3: a tab stands where YAML wants spaces; indent with spaces"},
		{"tab in a list", "b:\n\t- c\n", "line 2: a tab stands where YAML wants spaces; indent with spaces"},
		{"second colon", "name: x\ndescription: note: this\nz: 1\n", "line 2: a second \": \" stands in one value; put the value in quotes"},
		{"open quote", "a: 1\nb: \"x\n", "line 2: a quote is opened and never closed; close it, or leave both quotes out"},
		{"repeated key", "a: 1\nb: 2\na: 3\n", "line 3: key a is already given on line 1; keep one of them"},
		{"repeated after a section with comments only", "m:\n  # a: 1\nb: 2\nm:\n  a: 1\n", "line 4: key m is already given on line 1; that one has no values: move the lines from here below it, or remove it"},
		{"repeated in a nested map", "m:\n  a: 1\n  a: 2\n", "line 3: key a is already given on line 2; keep one of them"},
		{"deep", nested, "line 65: nested deeper than 64 levels; flatten it"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Parse([]byte(tt.in), Limits{}); err == nil || err.Error() != tt.want {
				t.Errorf("Parse(%q) = %v, want %s", tt.in, err, tt.want)
			}
		})
	}
}

func TestMovedErrorsMoveEveryLine(t *testing.T) {
	_, err := Parse([]byte("a: 1\nb: 2\na: 3\n"), Limits{})
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("Parse = %v, want an *Error", err)
	}
	if got, want := e.Moved(10).Error(), "line 13: key a is already given on line 11; keep one of them"; got != want {
		t.Errorf("Moved(10) = %q, want %q", got, want)
	}
	if got := (&Error{Message: "whole"}).Moved(10); got.Line != 0 {
		t.Errorf("Moved of an error about the whole document = line %d, want 0", got.Line)
	}
}

func TestReaderTakesEverySpelling(t *testing.T) {
	for _, spelling := range []string{"sessionTypes", "session_types", "session-types", "SessionTypes"} {
		m, err := Parse([]byte(spelling+": [main]\n"), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := NewReader(m).Strings("sessionTypes"); len(got) != 1 || got[0] != "main" {
			t.Errorf("%s: Strings(sessionTypes) = %q, want [main]", spelling, got)
		}
	}
	m, _ := Parse([]byte("max_chars: 1\nmaxChars: 2\n"), Limits{})
	r := NewReader(m)
	if n, ok := r.Int("maxChars"); n != 1 || !ok || len(r.Issues()) != 1 {
		t.Errorf("two spellings: Int = %d, %v with issues %v, want the first and one issue", n, ok, r.Issues())
	}
}

func TestReaderTakesNumbersAsTheyAreWritten(t *testing.T) {
	for _, written := range []string{"1.0", "1.10", "007", "0x1F", "true", "-3", "1e-07", "12e4567"} {
		m, err := Parse([]byte("version: "+written+"\n"), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if got := NewReader(m).String("version"); got != written {
			t.Errorf("version: %s: String(version) = %q, want it as written", written, got)
		}
	}
}

// TestNumbersOfJSON: every number of JSON, and of the core schema of YAML 1.2, is a
// number. What only looks like one is a text.
func TestNumbersOfJSON(t *testing.T) {
	for text, want := range map[string]any{
		"1e-07": 1e-7, "1e3": 1000.0, "1E3": 1000.0, ".5": 0.5, "+1.0E2": 100.0, "-1.5e+2": -150.0, "1.": 1.0, "-.5e1": -5.0, "0": int64(0), "-0.0": math.Copysign(0, -1),
		`"1e3"`: "1e3", "'1e3'": "1e3", "e3": "e3", "1e": "1e", ".": ".", "1e3x": "1e3x", "1.2.3": "1.2.3", "1e999": "1e999", ".e3": ".e3",
	} {
		for _, form := range []string{"x: %s\n", "{x: %s}", "x: [%s]\n", "{\"x\":%s}"} {
			m, err := Parse([]byte(fmt.Sprintf(form, text)), Limits{})
			if err != nil {
				t.Errorf("Parse(%s): %v", fmt.Sprintf(form, text), err)
				continue
			}
			v, _ := m.Get("x")
			if list, ok := v.Any.([]Value); ok {
				v = list[0]
			}
			if v.Any != want {
				t.Errorf("%s = %#v, want %#v", fmt.Sprintf(form, text), v.Any, want)
			}
		}
	}
}

func TestReaderRecordsWrongTypesAndUnknownKeys(t *testing.T) {
	m, err := Parse([]byte("name: x\ntriggers:\n  keywords: cost\n  treshold: 0.5\npriority: high\nlist:\n  - a\n  - {b: c}\nextra: 1\n"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(m)
	r.String("name")
	tr := r.Map("triggers")
	tr.Strings("keywords")
	tr.Float("threshold")
	tr.RefuseRest()
	r.Int("priority")
	if got := r.Strings("list"); len(got) != 1 {
		t.Errorf("Strings(list) = %q, want the one text", got)
	}
	r.RefuseRest()
	var got []string
	for _, e := range r.Issues() {
		got = append(got, e.Error())
	}
	want := []string{
		"line 3: triggers.keywords is text, want a list of texts; write keywords: [first, second]",
		"line 4: unknown key triggers.treshold; did you mean triggers.threshold?",
		"line 5: priority is text, want a whole number; write priority: 5",
		"line 8: an item of list is a map, want text; write it as one text",
		"line 9: unknown key extra; known keys here: name, triggers, priority, list",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("issues:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSuggestNamesAKeyThatIsMissing(t *testing.T) {
	m, err := Parse([]byte("name: x\ndescripton: y\nnames: z\nfoo: 1\n"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	r := NewReader(m)
	r.String("name")
	r.String("description")
	for key, want := range map[string]string{"descripton": "description", "names": "", "foo": ""} {
		if got := r.Suggest(key); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", key, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"", "a: 1", "a: [1, {b: c}]", "- - - x", "? [a]\n: b", "a: &x 1\nb: *x", "{a: 1,}", "a: |\n x\n", "---\n...\n", "\"a\\u0000\": 1",
		"!!binary aGk=: 1", "a: !t {b: 1}", "a:\n\tb: 1", "# only a comment", "inputSchema: { type: object, properties: { query: { type: string } } }",
		"exclude: [skill:deploy]", "pins: {skill:s: \"sha256:x\", tool:a:b: c}", "t: { keywords: [a:b, http://x] }", "{a:b:c: d:e, f:}", "{a:b: \"c, d\"}", "[a:, b:[c:]]",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		// A parser that never ends would only look like a slow fuzzer.
		watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("ParseValue(%q) hangs", data)) })
		defer watchdog.Stop()
		v, err := ParseValue(data, Limits{})
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Message == "" {
				t.Fatalf("ParseValue(%q) error %v is not an *Error with a message", data, err)
			}
			return
		}
		if raw := v.JSON(); !json.Valid(raw) {
			t.Fatalf("ParseValue(%q).JSON() = %s, not JSON", data, raw)
		}
	})
}
