package analyze

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestS5U05Formats: the format and the names of the top level.
func TestS5U05Formats(t *testing.T) {
	for _, tt := range []struct{ text, format, names string }{
		{`{"a":{"b":1},"c":null}`, "JSON, an object of 2 keys", "a (object), c (null)"},
		{`[{"id":1},{"id":2}]`, "JSON, a list of 2 items, the first object", "id (number)"},
		{`[]`, "JSON, a list of 0 items", ""},
		{"{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", "JSON lines, an object in each line", "a (number)"},
		{`{"a":1,"b":2,}`, "JSON, broken: ", "a (number), b (number)"},
		{"name: x\nitems:\n  - 1\n", "YAML", "name (text), items (a list)"},
		{"---\nname: x\n", "YAML", "name (text)"},
		{"- name: x\n- name: y\n", "YAML, a list of 2 items", "name (text)"},
		{"id,name,age\n1,Ada,36\n2,Bob,40\n", "CSV", "id, name, age"},
		{"id\tname\n1\tAda\n2\tBob\n", `CSV, apart by '\t'`, "id, name"},
		{"a;b\n\"x;y\";2\n3;4\n", "CSV, apart by ';'", "a, b"},
		{"<!DOCTYPE html>\n<html><head><TITLE>Hi  there</TITLE></head></html>", "HTML", "Hi there"},
		{"<div>x</div>", "HTML", ""},
		{"<?xml version=\"1.0\"?><feed><entry/><entry/><link/></feed>", "XML, root feed", "entry, link"},
		{"<header><x/></header>", "XML, root header", "x"},
		{"2026-01-02T03:04:05Z INFO up\n2026-01-02T03:04:06Z ERROR down\n  at x\n2026-01-02 03:04:07 [ERROR] again\n", "log", "ERROR 2, INFO 1"},
		{"[2026-01-02 03:04:05] start\n[2026-01-02 03:04:06] stop\n", "log", ""},
		{"Jan  2 03:04:05 host kernel: x\nJan 12 03:04:05 host kernel: y\n", "log", ""},
		{"WARN: one\nERROR: two\n", "log", "ERROR 1, WARN 1"},
		{"Dear all, this is a letter.\nIt has, as letters have, commas.\nAnd ends, soon.\n", "plain text", ""},
		{"Note: this is one line with a colon", "plain text", ""},
		{"[INFO] one line", "plain text", ""},
		{"# Title\n\n- one\n- two\n", "plain text", ""},
		{"x < y and y > z", "plain text", ""},
		{" \n\t", "empty", ""},
		{"a\x00b", "binary", ""},
	} {
		f := look(given(tt.text))
		if !strings.HasPrefix(f.String(), tt.format) || strings.Join(f.names, ", ") != tt.names {
			t.Errorf("look(%q) = %s, %q, want %s, %q", tt.text, f, f.names, tt.format, tt.names)
		}
	}
	// Of a long text only the beginning was read.
	m := given(`{"a":1,"b":[` + strings.Repeat("1,", 100))
	m.tail = "1]}"
	if f := look(m); f.format != formatJSON || !strings.Contains(f.detail, "beginning") {
		t.Errorf("look of a beginning = %s", f)
	}
	if f := look(given(strings.Repeat("key"+"x: {a: 1}\n", 1) + strings.Repeat("# filler\n", 8000) + "z: 2")); f.format != formatYAML {
		t.Errorf("look of long YAML = %s", f)
	}
}

// FuzzMend: whatever the bytes, there is a format, and a summary that is bounded and
// free of what cannot be seen. What is mended is JSON, says what was done, and needs
// no mending a second time; what is valid is taken as it is.
func FuzzMend(f *testing.F) {
	for _, s := range []string{"a: 1\nb:\n  - c", "a,b\n1,2\n3,4", "<html><title>x</title>", "\x1b[31m\u202e", "<!", `{"a":1,}`, `{'a':'b'`, "```json\n[1,2,]\n```", `[1,{"a":[2`, `{a:1}`, `{"a":"x`, `{"a":None}`, "{\"a\":1}\n{\"a\":2}", `{"a":1]}`, `[}]`, `{"a":1 /* x */}`, `"{}"`, `{"a":1,"a":2}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		s = strings.ToValidUTF8(s, "\ufffd") // as the store gives it
		text := given(s).summary("why")
		if look(given(s)).format == "" || !utf8.ValidString(text) || strings.ContainsAny(text, "\x1b\u202e\u200b") || utf8.RuneCountInString(text) > 60_000 {
			t.Errorf("summary of %q = %.60000q", s, text)
		}
		for i, r := range readings(s, look(given(s))) {
			if !json.Valid(r.value) {
				t.Fatalf("readings(%q)[%d] = %q, want JSON", s, i, r.value)
			}
			if key, twice := repeated(string(r.value)); twice {
				t.Errorf("readings(%q)[%d] has the key %q twice", s, i, key)
			}
			if same := string(r.value) == strings.TrimSpace(strings.TrimPrefix(s, "\ufeff")); !same && len(r.mends) == 0 {
				t.Errorf("readings(%q)[%d] = %q, and does not say what was done", s, i, r.value)
			}
			again := readings(string(r.value), form{})
			if len(again) == 0 || string(again[0].value) != string(r.value) || len(again[0].mends) != 0 {
				t.Errorf("readings(%q) = %+v, want it as it is", r.value, again)
			}
		}
	})
}
