package result

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"ken/capability"
)

func TestRead(t *testing.T) {
	s := open(t, Config{})
	keep(t, s, ada, "a", "one\ntwo é\nthree\nfour", false)
	tests := []struct {
		q            Query
		text         string
		lines, chars Range
		left         string // part
	}{
		{Query{}, "one\ntwo é\nthree\nfour", Range{1, 4}, Range{1, 20}, ""},
		{Query{Op: OpHead, Count: 2}, "one\ntwo é\n", Range{1, 2}, Range{1, 10}, "10 characters after it; go on with op chars from 11"},
		{Query{Op: OpTail, Count: 2}, "three\nfour", Range{3, 4}, Range{11, 20}, "10 characters before"},
		{Query{Op: OpLines, From: 2, To: 3}, "two é\nthree\n", Range{2, 3}, Range{5, 16}, "4 characters before this; 4 characters after"},
		{Query{Op: OpLines, From: 4}, "four", Range{4, 4}, Range{17, 20}, ""},
		{Query{Op: OpLines, From: 4, To: 99}, "four", Range{4, 4}, Range{17, 20}, ""},
		{Query{Op: OpLines, From: 5}, "", Range{}, Range{}, "line 5 is past the end: there are 4 lines and 20 characters"},
		{Query{Op: OpChars, From: 9, To: 12}, "é\nth", Range{2, 3}, Range{9, 12}, ""},
		{Query{Op: OpChars, From: 21}, "", Range{}, Range{}, "character 21 is past the end"},
		{Query{Op: OpHead, Limit: 9}, "one\ntwo é", Range{1, 2}, Range{1, 9}, "go on with op chars from 10"},
		{Query{Op: OpTail, Limit: 3}, "our", Range{4, 4}, Range{18, 20}, "17 characters before"},
		{Query{Limit: 5}, "one\nt", Range{1, 2}, Range{1, 5}, "from 6"},
	}
	for _, tt := range tests {
		x := read(t, s, tt.q)
		if x.Text != tt.text || x.Lines != tt.lines || x.Chars != tt.chars || !strings.Contains(x.Left, tt.left) {
			t.Errorf("Read(%+v) = %q, lines %v, chars %v, left %q; want %q, %v, %v, %q",
				tt.q, x.Text, x.Lines, x.Chars, x.Left, tt.text, tt.lines, tt.chars, tt.left)
		}
	}
	keep(t, s, ada, "a", "", false)
	if x := read(t, s, Query{Op: OpTail}); x.Text != "" || x.Entry.Lines != 0 {
		t.Errorf("tail of nothing = %+v", x)
	}
	if x := read(t, s, Query{}); x.Left != "the result is empty" {
		t.Errorf("nothing: left = %q", x.Left)
	}
}

func TestReadRefuses(t *testing.T) {
	s := open(t, Config{})
	keep(t, s, ada, "a", "x", false)
	for _, q := range []Query{
		{Op: "cat"}, {Op: OpSearch}, {Op: OpSearch, Pattern: strings.Repeat("x", longPattern+1)}, {Op: OpSearch, Pattern: "(", Regexp: true},
		{Op: OpLines, From: 3, To: 2}, {From: -1}, {Count: -1}, {Op: OpSearch, Pattern: "a{1001}", Regexp: true},
	} {
		_, err := s.Read(context.Background(), ada, q)
		if e, ok := errors.AsType[*capability.Error](err); !ok || e.Kind != capability.Invalid || e.Fix == "" {
			t.Errorf("Read(%+v) = %v, want a refusal with its fix", q, err)
		}
	}
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, op := range []Op{OpLines, OpChars, OpSearch} {
		if _, err := s.Read(canceled, ada, Query{Op: op, From: 2, Pattern: "x"}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s when canceled = %v, want %v", op, err, context.Canceled)
		}
	}
	if _, err := ParseQuery(json.RawMessage(`{"handel":"x"}`)); capability.KindOf(err) != capability.Invalid {
		t.Errorf("ParseQuery with an unknown key = %v", err)
	}
	if q, err := ParseQuery(json.RawMessage(`{"op":"tail","count":3}`)); err != nil || q.Op != OpTail || q.Count != 3 {
		t.Errorf("ParseQuery = %+v, %v", q, err)
	}
}

// TestQuerySchema: the schema takes what a Query writes, and nothing else.
func TestQuerySchema(t *testing.T) {
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(QuerySchema), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	full := Query{"last", "a", true, OpSearch, 1, 2, 3, "x", true, true, 4}
	raw, _ := json.Marshal(full)
	var value map[string]any
	json.Unmarshal(raw, &value)
	if err := resolved.Validate(value); err != nil || len(value) != len(schema.Properties) {
		t.Errorf("Validate(%s) = %v with %d of %d properties", raw, err, len(value), len(schema.Properties))
	}
	if err := resolved.Validate(map[string]any{"op": "cat"}); err == nil {
		t.Error("Validate takes an op that does not exist")
	}
}

func TestSearch(t *testing.T) {
	s := open(t, Config{})
	long := strings.Repeat("é ", 100_000) + "needle" + strings.Repeat(" x", 100_000)
	keep(t, s, ada, "a", "first\nNeedle é needle\n\n"+long+"\nlast needle", false)
	x := read(t, s, Query{Op: OpSearch, Pattern: "needle"})
	want := []Match{
		{Line: 2, Column: 10, Char: 16, Text: "Needle é needle"},
		{Line: 4, Column: 200_001, Char: 24 + 200_000, Text: strings.Repeat("é ", 60) + "needle" + strings.Repeat(" x", 60), Cut: true},
		{Line: 5, Column: 6, Char: 24 + 400_006 + 1 + 5, Text: "last needle"},
	}
	if diff := cmp.Diff(want, x.Matches); diff != "" || x.Found != 3 || x.Left != "" {
		t.Errorf("search: found %d, left %q (-want +got):\n%s", x.Found, x.Left, diff)
	}
	for _, m := range x.Matches {
		if got := read(t, s, Query{Op: OpChars, From: m.Char, To: m.Char + 5}).Text; got != "needle" {
			t.Errorf("character %d on = %q, want needle", m.Char, got)
		}
	}
	for _, tt := range []struct {
		q     Query
		lines string
	}{
		{Query{Pattern: "NEEDLE", IgnoreCase: true}, "[2 4 5]"},
		{Query{Pattern: "n.*e$", Regexp: true}, "[2 5]"},
		{Query{Pattern: "n.*e$"}, "[]"},
		{Query{Pattern: "^needle", Regexp: true}, "[]"},
		{Query{Pattern: "^$", Regexp: true}, "[3]"},
		{Query{Pattern: "^é .*x$", Regexp: true}, "[4]"},
		{Query{Pattern: "e\nl"}, "[]"},
		{Query{Pattern: "needle", Count: 1}, "[2]"},
	} {
		tt.q.Op = OpSearch
		x := read(t, s, tt.q)
		lines := []int64{}
		for _, m := range x.Matches {
			lines = append(lines, m.Line)
		}
		if got := fmt.Sprint(lines); got != tt.lines {
			t.Errorf("search %+v = lines %s, want %s", tt.q, got, tt.lines)
		}
		if tt.q.Count == 1 && (x.Found != 3 || !strings.Contains(x.Left, "2 more lines match; search for less, or read op lines from 4")) {
			t.Errorf("search for one: found %d, left %q", x.Found, x.Left)
		}
	}
}

// slowText is read as from a slow disk.
type slowText struct {
	text string
	wait func()
}

func (s slowText) ReadAt(p []byte, off int64) (int, error) {
	s.wait()
	return strings.NewReader(s.text).ReadAt(p, off)
}

// TestSearchEndsInTime: after two seconds it gives what it has and says where
// it stopped, in short lines and within a long one.
func TestSearchEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, text := range map[string]string{
			"lines": strings.Repeat("needle in a short line\n", 1<<17),
			"line":  "needle\n" + strings.Repeat("x", 3<<20),
		} {
			o := &stored{text: slowText{text, func() { time.Sleep(100 * time.Millisecond) }}, Entry: Entry{Kept: Extent{Bytes: int64(len(text)), Lines: 1 << 20}}}
			start := time.Now()
			x, err := o.search(context.Background(), Query{Pattern: "needle", Limit: visible})
			if took := time.Since(start); err != nil || took > searchTime+200*time.Millisecond {
				t.Errorf("%s: search took %v, %v", name, took, err)
			}
			if len(x.Matches) == 0 || !strings.Contains(x.Left, "the search stopped after 2 s at line ") {
				t.Errorf("%s: %d matches, left %q", name, len(x.Matches), x.Left)
			}
		}
	})
}

// TestReadAgreesWithPlainStrings compares every way of reading with the
// obvious way, on texts of all kinds written in pieces of all sizes.
func TestReadAgreesWithPlainStrings(t *testing.T) {
	s := open(t, Config{PerSession: 1 << 20})
	piece := rapid.OneOf(
		rapid.StringOf(rapid.RuneFrom([]rune("ab\n\r é漢😀\x00"))),
		rapid.SampledFrom([]string{"\n", "\xff", "\xe6\xbc", "\xa2", "\xf0\x9f", "line\n", strings.Repeat("漢\n", 9000), strings.Repeat("x", 70_000)}),
	)
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(piece, 0, 8).Draw(t, "pieces")
		w, err := s.Create(ada, About{})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pieces {
			w.Write([]byte(p))
		}
		e, err := w.Commit(false, nil)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(pieces, "")
		chars, lines := []rune(text), splitLines(text)
		if e.Bytes != int64(len(text)) || e.Chars != int64(len(chars)) || e.Lines != int64(len(lines)) ||
			e.Binary != (!utf8.ValidString(text) || strings.Contains(text, "\x00")) || e.Kept != (Extent{e.Bytes, e.Chars, e.Lines}) {
			t.Fatalf("entry %+v of %d bytes, %d characters, %d lines", e, len(text), len(chars), len(lines))
		}
		from := rapid.IntRange(1, len(chars)+2).Draw(t, "from")
		count := rapid.IntRange(1, 100).Draw(t, "count")
		limit := rapid.IntRange(1, 50_000).Draw(t, "limit")
		check := func(q Query, want []rune) {
			q.Handle = e.Handle
			x, err := s.Read(context.Background(), ada, q)
			if err != nil || x.Text != string(want) {
				t.Fatalf("Read(%+v) = %.80q, %v, want %.80q", q, x.Text, err, string(want))
			}
			if len(want) > 0 && string(chars[x.Chars.From-1:x.Chars.To]) != string(want) {
				t.Fatalf("Read(%+v) says characters %v, which are others", q, x.Chars)
			}
			if len(want) > 0 && x.Lines.From != int64(strings.Count(string(chars[:x.Chars.From-1]), "\n")+1) {
				t.Fatalf("Read(%+v) says lines %v", q, x.Lines)
			}
		}
		check(Query{Op: OpChars, From: int64(from), To: int64(from + count - 1)}, chars[min(from-1, len(chars)):min(from-1+count, len(chars))])
		first := rapid.IntRange(1, len(lines)+2).Draw(t, "first")
		some := []rune(strings.Join(lines[min(first-1, len(lines)):min(first-1+count, len(lines))], ""))
		check(Query{Op: OpLines, From: int64(first), To: int64(first + count - 1), Limit: int64(limit)}, some[:min(len(some), limit)])
		end := []rune(strings.Join(lines[max(0, len(lines)-count):], ""))
		check(Query{Op: OpTail, Count: int64(count), Limit: int64(limit)}, end[max(0, len(end)-limit):])
		checkSearch(t, s, e.Handle, lines)
		s.Remove(ada, e.Handle)
	})
}

// TestTailOfBytesThatAreNoText: what follows a whole character and is none by
// itself is the last character all the same.
func TestTailOfBytesThatAreNoText(t *testing.T) {
	s := open(t, Config{})
	for text, want := range map[string]string{"a😀\xa2": "\ufffd", "😀\x80\x80\x80\x80": "\ufffd", "漢字": "字", "ab\xf0\x9f": "\ufffd"} {
		e, err := s.Keep(ada, About{}, []byte(text), false, nil)
		if err != nil {
			t.Fatal(err)
		}
		if x, err := s.Read(context.Background(), ada, Query{Handle: e.Handle, Op: OpTail, Limit: 1}); err != nil || x.Text != want {
			t.Errorf("the last character of %q is %q, %v; want %q", text, x.Text, err, want)
		}
	}
}

func checkSearch(t *rapid.T, s *Store, handle string, lines []string) {
	pattern := rapid.SampledFrom([]string{"漢", "a", "^$", "x$", "^[^a]*é", "b\\b", "."}).Draw(t, "pattern")
	re := regexp.MustCompile(pattern)
	x, err := s.Read(context.Background(), ada, Query{Handle: handle, Op: OpSearch, Pattern: pattern, Regexp: true, Count: mostMatches, Limit: Whole})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for i, line := range lines {
		at := re.FindStringIndex(strings.TrimSuffix(line, "\n"))
		if at == nil {
			continue
		}
		if found < len(x.Matches) {
			m := x.Matches[found]
			if m.Line != int64(i+1) || m.Column != int64(utf8.RuneCountInString(line[:at[0]])+1) {
				t.Fatalf("search %q: match %d at %d:%d, want line %d and byte %d", pattern, found, m.Line, m.Column, i+1, at[0])
			}
		}
		found++
	}
	if strings.Contains(x.Left, "the search stopped after") { // a busy machine; it says how far it came
		if x.Found > int64(found) {
			t.Fatalf("search %q: found %d before it stopped, want at most %d", pattern, x.Found, found)
		}
		return
	}
	if x.Found != int64(found) || len(x.Matches) != min(found, mostMatches) {
		t.Fatalf("search %q: found %d, given %d, want %d", pattern, x.Found, len(x.Matches), found)
	}
}

func splitLines(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		out = append(out, line)
	}
	return out
}

// FuzzQuery: no query and no text makes reading fail in another way than a
// refusal, and no answer is longer than asked or cuts a character.
func FuzzQuery(f *testing.F) {
	f.Add("one\ntwo\nthree é\xff", `{"op":"tail","count":2}`)
	f.Add("aaa\n", `{"op":"search","pattern":"(a|b)*$","regexp":true}`)
	f.Add("", `{"op":"chars","from":9223372036854775807,"to":9223372036854775807}`)
	f.Add("x", `{"op":"lines","from":1,"to":9223372036854775807,"limit":1}`)
	s := open(f, Config{PerSession: 4})
	f.Fuzz(func(t *testing.T, text, query string) {
		q, err := ParseQuery(json.RawMessage(query))
		if err != nil {
			return
		}
		q.Handle = keep(t, s, ada, "a", text, false).Handle
		x, err := s.Read(context.Background(), ada, q)
		if err != nil {
			if capability.KindOf(err) != capability.Invalid {
				t.Errorf("Read(%+v) = %v", q, err)
			}
			return
		}
		if q.Limit > 0 && int64(utf8.RuneCountInString(x.Text)) > q.Limit || !utf8.ValidString(x.Text) {
			t.Errorf("Read(%+v) = %q, want at most %d whole characters", q, x.Text, q.Limit)
		}
	})
}

func BenchmarkFlood(b *testing.B) {
	s := open(b, Config{MaxBytes: 1 << 20})
	w, err := s.Create(ada, About{})
	if err != nil {
		b.Fatal(err)
	}
	p := []byte(strings.Repeat("0123456é\n", 4096))
	b.SetBytes(int64(len(p)))
	b.ReportAllocs()
	for b.Loop() {
		w.Write(p)
	}
}
