package yamldoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestParse holds what the documents of testdata/parse.txtar are parsed to
// against what is wanted. KEN_UPDATE_GOLDEN=1 writes that anew.
func TestParse(t *testing.T) {
	const path = "testdata/parse.txtar"
	a, err := txtar.ParseFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(a.Files); i += 2 {
		in := string(a.Files[i].Data)
		if strings.HasSuffix(a.Files[i].Name, "(quoted)") {
			if in, err = strconv.Unquote(strings.TrimSpace(in)); err != nil {
				t.Fatal(err)
			}
		}
		got, want := parsed(in), string(a.Files[i+1].Data)
		a.Files[i+1].Data = []byte(got)
		if got != want && os.Getenv("KEN_UPDATE_GOLDEN") == "" {
			t.Errorf("%s: parsed to\n%swant\n%s", a.Files[i].Name, got, want)
		}
	}
	if os.Getenv("KEN_UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// parsed is what a document is parsed to, as text.
func parsed(in string) string {
	v, err := ParseValue([]byte(in), Limits{})
	if err != nil {
		var e *Error
		return fmt.Sprintf("%v\nan *Error: %v\n", err, errors.As(err, &e))
	}
	lines := ""
	if m, ok := v.Any.(*Map); ok {
		lines = linesOf(m, "")
	} else if _, err := Parse([]byte(in), Limits{}); err != nil {
		lines = fmt.Sprintf("as a map: %v\n", err)
	}
	return string(v.JSON()) + "\n" + lines
}

// linesOf tells the lines of the keys of a map and of the maps in it.
func linesOf(m *Map, in string) (lines string) {
	for _, f := range m.Fields {
		lines += fmt.Sprintf("line %d %s%s\n", f.Line, in, f.Key)
		if inner, ok := f.Value.Any.(*Map); ok {
			lines += linesOf(inner, in+f.Key+".")
		}
	}
	return lines
}

// TestParseBounds: what is too deep, too wide or too large is refused.
func TestParseBounds(t *testing.T) {
	wide := strings.Repeat("k: 1\n", 100000)
	for in, want := range map[string]string{
		strings.Repeat("[", 20000): "line 1: nested deeper", strings.Repeat("- ", 5000) + "x": "line 1: nested deeper",
		wide[:60000]: "line 4001: more than 4000 keys", wide: "bytes, more than",
	} {
		if _, err := Parse([]byte(in), Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%.20q…) = %v, want %q", in, err, want)
		}
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
