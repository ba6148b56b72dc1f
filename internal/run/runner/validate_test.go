package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"ken/capability"
	"ken/internal/run/result"
)

// TestMissing: what is missing is named with its type, in a sentence.
func TestMissing(t *testing.T) {
	for _, tt := range []struct{ kind, want string }{
		{"array", "an array"}, {"integer", "an integer"}, {"object", "an object"}, {"string", "a string"}, {"number", "a number"}, {"boolean", "a boolean"},
	} {
		r := newRig(t, tool{schema: `{"type":"object","required":["files"],"properties":{"files":{"type":"` + tt.kind + `"}}}`, invoke: never(t)}, nil)
		if _, err := r.Invoke(t.Context(), callOf("look", "{}")); err == nil || !strings.Contains(err.Error(), "argument /files is missing ("+tt.want) {
			t.Errorf("Invoke({}) = %v, want that files is missing, %s", err, tt.want)
		}
	}
}

// TestValidate: each refusal names the place and what belongs there, and
// quotes nothing of what was there.
func TestValidate(t *testing.T) {
	const schema = `{"type":"object","required":["text"],"properties":{
		"text":{"type":"string","minLength":2,"maxLength":40,"pattern":"^[a-z0-9-]+$"},
		"n":{"type":"integer","minimum":1,"maximum":9},
		"kind":{"enum":["a","b"]},
		"list":{"type":"array","items":{"type":"object","properties":{"x":{"type":"boolean"}},"required":["x"],"additionalProperties":false},"maxItems":2},
		"either":{"anyOf":[{"type":"string"},{"type":"integer"}]},
		"tree":{"$ref":"#/$defs/node"}},
		"$defs":{"node":{"type":"object","properties":{"next":{"$ref":"#/$defs/node"},"v":{"type":"number"}}}}}`
	tests := []struct{ args, want string }{
		{`{"text":"ok-1","n":3,"kind":"a","list":[{"x":true}],"either":4,"tree":{"next":{"v":1.5}}}`, ""},
		{``, "argument /text is missing (a string)"},
		{`{}`, "argument /text is missing (a string)"},
		{`null`, "not a JSON object"},
		{`["hunter2"]`, "not a JSON object"},
		{`{"text":"hunter2"`, "not JSON, at byte"},
		{`{"text":17171717}`, "argument /text: want string, got integer"},
		{`{"text":"h"}`, "argument /text: want at least 2 characters"},
		{`{"text":"hunter2 hunter2"}`, "argument /text: want text that matches ^[a-z0-9-]+$"},
		{`{"text":"hunter2-hunter2-hunter2-hunter2-hunter2-hunter2"}`, "argument /text: want at most 40 characters"},
		{`{"text":"ok","n":17171717}`, "argument /n: want at most 9"},
		{`{"text":"ok","n":1.17171717}`, "argument /n: want integer, got number"},
		{`{"text":"ok","kind":"hunter2"}`, `argument /kind: want one of "a", "b"`},
		{`{"text":"ok","other":"hunter2"}`, "unknown argument /other; the arguments are: either, kind, list, n, text, tree"},
		{`{"text":"ok","list":[{"x":true},{"x":"hunter2"}]}`, "argument /list/1/x: want boolean, got string"},
		{`{"text":"ok","list":[{"x":true,"y/z":"hunter2"}]}`, "unknown argument /list/0/y~1z"},
		{`{"text":"ok","list":[{},{},{}]}`, "argument /list: want at most 2 items"},
		{`{"text":"ok","either":["hunter2"]}`, "argument /either: want string, got array"},
		{`{"text":"ok","tree":{"next":{"next":{"v":"hunter2"}}}}`, "argument /tree/next/next/v: want number, got string"},
		{`{"text":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, "nested deeper than limits.argumentDepth (64)"},
		{`{"text":"` + strings.Repeat("x", 1<<20) + `"}`, "limits.argumentBytes"},
		{`{"text":"ok","n":1e999}`, "not a JSON object"},
		{"{\"text\":\"ok\",\"tree\":{\"\xff\":1}}", "not UTF-8"},
		{"{\"text\":\"h\xffunter2\"}", "not UTF-8"},
	}
	for _, tt := range tests {
		invoke := never(t)
		if tt.want == "" {
			invoke = echo
		}
		r := newRig(t, tool{schema: schema, invoke: invoke}, nil)
		name := tt.args[:min(len(tt.args), 60)]
		_, err := r.Invoke(t.Context(), callOf("look", tt.args))
		if tt.want == "" {
			if err != nil {
				t.Errorf("Invoke(%s) = %v, want it accepted", name, err)
			}
			continue
		}
		if capability.KindOf(err) != capability.Invalid || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Invoke(%s) = %v, want %q", name, err, tt.want)
			continue
		}
		raw, _ := json.Marshal(r.log.all())
		if s := err.Error() + string(raw); strings.Contains(s, "hunter2") || strings.Contains(s, "17171717") {
			t.Errorf("Invoke(%s) = %v, want nothing of the arguments in it", name, err)
		}
	}
}

// TestSchemas: which schema counts, that it is compiled once for each text, and
// what becomes of one that is no schema.
func TestSchemas(t *testing.T) {
	asked, hash, text := 0, "h1", noteSchema
	r := newRig(t, tool{}, func(c *Config) {
		inner := c.Resolve
		c.Resolve = func(ctx context.Context, call capability.Call) (Resolved, error) {
			out, err := inner(ctx, call)
			out.Capability = &capability.Capability{ID: "tool:look", Name: "look", Kind: capability.KindTool, Hash: hash, Trust: capability.TrustUser, Effects: out.Capability.Effects}
			out.Schema = func(context.Context) (json.RawMessage, error) { asked++; return json.RawMessage(text), nil }
			return out, err
		}
	})
	invoke := func(args string) error { _, err := r.Invoke(t.Context(), callOf("look", args)); return err }
	for range 3 {
		if err := invoke(`{"text":"a"}`); err != nil {
			t.Fatal(err)
		}
	}
	hash, text = "h2", `{"properties":{"other":{"type":"string"}},"allOf":[{"properties":{"more":{"type":"integer"}}}]}`
	if err := invoke(`{"other":"a","more":1}`); err != nil {
		t.Errorf("new text: %v", err)
	}
	if err := invoke(`{"text":"a"}`); capability.KindOf(err) != capability.Invalid {
		t.Errorf("new text, an argument of the old: %v, want Invalid", err)
	}
	if asked != 2 {
		t.Errorf("the schema was asked for %d times, want 2", asked)
	}
	for _, bad := range []string{`{"type":7}`, `{"$ref":"http://x.example/s"}`, `{"pattern":"("}`, `nonsense`, strings.Repeat("[", 300)} {
		hash, text = bad, bad
		err := invoke(`{}`)
		if e := wantKind(t, err, capability.Unavailable); e.Fix == "" {
			t.Errorf("schema %s: %v, want what to do", bad, e)
		}
	}
	// No schema anywhere: the parameters, and nothing else.
	plain, err := compile(nil, []capability.Parameter{{Name: "a", Type: "string", Required: true}, {Name: "b", Type: "file"}}, true)
	if err != nil {
		t.Fatal(err)
	}
	for args, ok := range map[string]bool{`{"a":"x","b":1}`: true, `{}`: false, `{"a":1}`: false, `{"a":"x","c":1}`: false} {
		var v map[string]any
		_ = json.Unmarshal([]byte(args), &v)
		if err := check(plain, v); (err == nil) != ok {
			t.Errorf("check(%s) = %v, want fits: %v", args, err, ok)
		}
	}
}

// FuzzArguments: nothing that comes in as arguments makes validation break or
// speak of what it saw.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{``, `{}`, `{"text":"a"}`, `{"text":{"a":[1,2,{"b":null}]}}`, `[[[`, `{"text":"\u0000"}`, `{"n":1e400}`} {
		f.Add([]byte(s))
	}
	schema, err := compile([]byte(noteSchema), nil, true)
	if err != nil {
		f.Fatal(err)
	}
	limits, _ := Limits{}.filled()
	f.Fuzz(func(t *testing.T, raw []byte) {
		value, err := limits.arguments(raw)
		if err != nil {
			return
		}
		ok := schema.Validate(value) == nil
		if err := check(schema, value); (err == nil) != ok {
			t.Errorf("check(%q) = %v, want fits: %v", raw, err, ok)
		}
	})
}

// TestKeep: long outputs get a handle and an excerpt, short ones stay.
func TestKeep(t *testing.T) {
	results, err := result.Open(result.Config{Dir: filepath.Join(t.TempDir(), "results")})
	if err != nil {
		t.Fatal(err)
	}
	defer results.Close()
	long := "begin\n" + strings.Repeat("säge ", 10_000) + "\nend"
	parts := []capability.Part{{Text: "short"}}
	facts := Facts{}
	x := tool{
		facts: func(capability.Call) (Facts, error) { return facts, nil },
		invoke: func(context.Context, capability.Call) (capability.Result, error) {
			return capability.Result{Parts: parts}, nil
		},
	}
	r := newRig(t, x, func(c *Config) { c.Results, c.Limits = results, Limits{DataBytes: 10}.Always })
	call := callOf("look", `{"text":"a"}`)
	invoke := func() capability.Result {
		t.Helper()
		res, err := r.Invoke(t.Context(), call)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	if res := invoke(); res.Handle != "" || res.Parts[0].Text != "short" {
		t.Errorf("short = %+v, want it inline", res)
	}
	facts.Keep = true
	if res := invoke(); res.Handle == "" || res.Parts[0].Text != "short" {
		t.Errorf("short and kept = %+v, want it inline with a handle", res)
	}
	facts.Keep = false
	image := capability.Part{Data: []byte("0123456789"), MIME: "image/png"}
	parts = []capability.Part{{Text: long}, image, {Data: []byte("0123456789a"), MIME: "image/png"}}
	res := invoke()
	if res.Handle == "" || res.Meta[MetaTruncated] != "true" || len(res.Parts) != 3 {
		t.Fatalf("long = %+v, want a handle and three parts", res)
	}
	text := res.Parts[0].Text
	if !strings.HasPrefix(text, "begin\n") || !strings.HasSuffix(text, "end") || len(text) > 20_200 || !strings.Contains(text, res.Handle) || strings.ContainsRune(text, '\uFFFD') {
		t.Errorf("excerpt of %d bytes = %.40q … %.40q", len(text), text, text[len(text)-40:])
	}
	if string(res.Parts[1].Data) != "0123456789" || !strings.Contains(res.Parts[2].Text, "limits.dataBytes") {
		t.Errorf("images = %+v, want one kept and one left out by name", res.Parts[1:])
	}
	got, err := results.Read(t.Context(), result.ScopeOf(call), result.Query{Handle: res.Handle, Op: result.OpInfo})
	if err != nil || got.Entry.Bytes != int64(len(long)) || got.Entry.Extension != "ext" {
		t.Errorf("kept = %+v, %v, want all %d bytes under the extension", got.Entry, err, len(long))
	}
	if rec := r.log.last(t); rec.ResultHandle != res.Handle || rec.ResultBytes != int64(len(long)+21) {
		t.Errorf("record has %q, %d bytes; want the handle and all bytes", rec.ResultHandle, rec.ResultBytes)
	}
	r = newRig(t, x, nil) // nothing keeps results
	if res := invoke(); res.Handle != "" || !strings.Contains(res.Parts[0].Text, "nothing keeps them") {
		t.Errorf("without a store = %+v, want an excerpt that says so", res)
	}
}

// TestExecutors: the exact name, then the longest prefix, else nothing.
func TestExecutors(t *testing.T) {
	named := func(s string) tool { return tool{schema: s} }
	e := Executors{"exec.git": named("git"), "exec.*": named("exec"), "exec.git.*": named("under git"), "tool:*": named("tool"), "analyze.response": named("analyze")}
	if err := e.check(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"exec.git": "git", "exec.git.log": "under git", "exec.gitx": "exec", "exec.postman_cli": "exec", "exec.": "exec",
		"exec": "", "tool:a.b": "tool", "analyze.response": "analyze", "analyze.schema": "", "exec.*": "", "": "", "executor.x": "",
	} {
		got := ""
		if x, ok := e.find(name).(tool); ok {
			got = x.schema
		}
		if got != want {
			t.Errorf("find(%q) = %q, want %q", name, got, want)
		}
	}
	for _, bad := range []string{"*", "", "ex*", "exec.*x", "exec.**"} {
		if err := (Executors{bad: named("x")}).check(); err == nil {
			t.Errorf("check(%q) = nil, want it refused", bad)
		}
	}
	if err := (Executors{"x": nil}).check(); err == nil {
		t.Error("check(nil executor) = nil, want it refused")
	}
}

// TestNew refuses what could not work.
func TestNew(t *testing.T) {
	good := newRig(t, tool{}, nil).cfg
	for name, change := range map[string]func(*Config){
		"no resolve":   func(c *Config) { c.Resolve = nil },
		"no log":       func(c *Config) { c.Log = nil },
		"no executors": func(c *Config) { c.Executors = nil },
		"key alone":    func(c *Config) { c.Key = func(context.Context, capability.Call) string { return "" } },
		"negative":     func(c *Config) { c.Limits = Limits{Queue: -1}.Always },
	} {
		cfg := good
		change(&cfg)
		if _, err := New(cfg); err == nil {
			t.Errorf("New(%s) = nil error, want it refused", name)
		}
	}
}

// TestServersJudgeThemselves: what the schema of an MCP tool leaves open is for
// its server to judge. One that arguments cannot be held to lets no call pass.
func TestServersJudgeThemselves(t *testing.T) {
	c := &capability.Capability{
		ID: "mcp:s/t", Kind: capability.KindTool, Name: "t", Trust: capability.TrustUser, Effects: capability.Effects{ReadOnly: capability.Yes},
		Run: &capability.Recipe{Runner: "mcp.call"},
	}
	for schema, args := range map[string][2]string{ // one that passes, one that does not; the first is empty where none does
		`{"type":"object"}`: {`{"x":1}`, `[1]`},
		`{"type":"object","properties":{"a":{"type":"string"}}}`:                                                                                {`{"a":"b","x":1}`, `{"a":1}`},
		`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`:                                                   {`{"a":"b"}`, `{"x":1}`},
		`{"type":"object","properties":{"a":{"type":"string","pattern":"(?<!a)b"}}}`:                                                            {``, `{"a":"b"}`},
		`{"type":"object","$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`:                                                               {``, `{"a":"b"}`},
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"object","properties":{"child":{"$ref":"#/$defs/t"}}}}}`: {`{"a":{"child":{"child":{}}}}`, `{"a":{"child":1}}`},
		wide(30): {``, `{"x":{"z":1}}`},
		`{"type":"object","properties":{"a":{"$ref":"http://example.com/nowhere"}}}`: {``, `{"a":"b"}`},
	} {
		r := newRig(t, tool{schema: schema}, func(cfg *Config) {
			cfg.Resolve = func(context.Context, capability.Call) (Resolved, error) {
				one := *c
				one.Hash = schema
				return Resolved{Capability: &one, Schema: func(context.Context) (json.RawMessage, error) { return json.RawMessage(schema), nil }}, nil
			}
			cfg.Executors = Executors{"mcp.*": tool{schema: schema, invoke: echo}}
		})
		for i, raw := range args {
			if raw == "" {
				continue
			}
			call := callOf("t", raw)
			call.Target = "mcp:s/t"
			_, err := r.Invoke(t.Context(), call)
			if (err == nil) != (i == 0) || args[0] == "" && (capability.KindOf(err) != capability.Unavailable || !strings.Contains(err.Error(), "invalid input schema")) {
				t.Errorf("%.200s with %s: %v", schema, raw, err)
			}
		}
	}
}

// wide is a schema of a few lines with 10 to the n ways through it.
func wide(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range n {
		ref := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		fmt.Fprintf(&b, `"d%d":{"allOf":[%s]},`, i, strings.Join(slices.Repeat([]string{ref}, 10), ","))
	}
	fmt.Fprintf(&b, `"d%d":{"type":"object"}}}`, n)
	return b.String()
}

// FuzzPlainObject: an object that is read quickly is the one that encoding/json reads.
func FuzzPlainObject(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":"b","n":-1.5e3,"t":true,"f":false,"z":null}`, `{"a":1,"a":2}`, `{"a":{"b":1}}`, `{"a":[1]}`, `{"\u0061":"\n","a":"\u0062"}`, `{"a":1e999}`, `null`, `{"a":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if len(raw) == 0 || !utf8.Valid(raw) {
			return
		}
		got, ok := plainObject(raw)
		if !ok {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(raw, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("plainObject(%q) = %v, encoding/json returns %v, %v", raw, got, want, err)
		}
	})
}
