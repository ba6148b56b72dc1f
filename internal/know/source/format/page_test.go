package format

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"ken/internal/testkit/sourcetest"
	"ken/internal/yamldoc"
)

func TestSplitPage(t *testing.T) {
	tests := []struct {
		name, in, meta, Content, err string
	}{
		{"none", "# Title\n", "", "# Title\n", ""},
		{"empty file", "", "", "", ""},
		{"plain", "---\na: 1\n---\nText\n", `{"a":1}`, "Text\n", ""},
		{"CRLF and mark", "\ufeff---\r\na: 1\r\n---\r\nText\r\nmore\r\n", `{"a":1}`, "Text\nmore\n", ""},
		{"spaces after the dashes", "--- \na: 1\n---\t\nText\n", `{"a":1}`, "Text\n", ""},
		{"closed by dots", "---\na: 1\n...\nText\n", `{"a":1}`, "Text\n", ""},
		{"nothing in it", "---\n---\nText\n", `{}`, "Text\n", ""},
		{"no body", "---\na: 1\n---", `{"a":1}`, "", ""},
		{"dashes in the body", "---\na: 1\n---\nText\n---\nmore\n", `{"a":1}`, "Text\n---\nmore\n", ""},
		{"four dashes are prose", "----\na: 1\n", "", "----\na: 1\n", ""},
		{"never ends", "---\na: 1\nText\n", "", "---\na: 1\nText\n", "line 1: the frontmatter that begins on line 1 never ends; close it with a line of three dashes"},
		{"only dashes", "---\n", "", "---\n", "line 1: the frontmatter"},
		{"bad YAML", "---\na: b: c\n---\nText\n", "", "Text\n", `line 1: a second ": " stands in one value`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := SplitPage([]byte(tt.in), yamldoc.Limits{})
			if got := fmt.Sprint(err); err != nil && (tt.err == "" || !strings.HasPrefix(got, tt.err)) || err == nil && tt.err != "" {
				t.Errorf("splitPage(%q) error = %v, want %q", tt.in, err, tt.err)
			}
			if got := metaJSON(p.Meta); got != tt.meta {
				t.Errorf("splitPage(%q) meta = %s, want %s", tt.in, got, tt.meta)
			}
			if p.Body != tt.Content {
				t.Errorf("splitPage(%q) body = %q, want %q", tt.in, p.Body, tt.Content)
			}
		})
	}
}

func metaJSON(m *yamldoc.Map) string {
	if m == nil {
		return ""
	}
	return string(yamldoc.Value{Any: m}.JSON())
}

func TestPageLinesAreTheFilesLines(t *testing.T) {
	p, err := SplitPage([]byte("---\nname: x\nlist:\n  - a\n---\n\nText\n"), yamldoc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Line(p.Meta.Fields[1].Line); got != 3 {
		t.Errorf("line of list = %d, want 3", got)
	}
	if p.BodyLine != 6 {
		t.Errorf("bodyLine = %d, want 6", p.BodyLine)
	}
	if got := p.Line(0); got != 0 {
		t.Errorf("line(0) = %d, want 0: nowhere in particular", got)
	}
}

func TestLoosePageMends(t *testing.T) {
	tests := []struct {
		name, head, meta string
		mends            []string // "line: words"
	}{
		{"valid", "a: 1\nb: [x]\n", `{"a":1,"b":["x"]}`, nil},
		{"colon", "name: x\ndescription: Use when: needed\n", `{"name":"x","description":"Use when: needed"}`, []string{"3: description is not valid YAML"}},
		{"colon at the end", "description: Examples:\nname: x\n", `{"description":"Examples:","name":"x"}`, []string{"2: description"}},
		{"wrapped with a colon", "description: one\n  two: three\nname: x\n", `{"description":"one two: three","name":"x"}`, []string{"2: description"}},
		{"wrapped without indentation", "description: one\ntwo three\nname: x\n", `{"description":"one two three","name":"x"}`, []string{"2: description"}},
		{"folded without indentation", "description: >\none\ntwo\nname: x\n", `{"description":"one two","name":"x"}`, []string{"2: description"}},
		{"text behind the block mark", "description: > one\n  two\nname: x\n", `{"description":"one two","name":"x"}`, []string{"2: description"}},
		{"bracket", "description: [Beta] tool\n", `{"description":"[Beta] tool"}`, []string{"2: description"}},
		{"two brackets", "argument-hint: [a|b] [c]\n", `{"argument-hint":"[a|b] [c]"}`, []string{"2: argument-hint"}},
		{"star", "description: *bold* text\n", `{"description":"*bold* text"}`, []string{"2: description"}},
		{"anchor", "description: &x text\n", `{"description":"\u0026x text"}`, []string{"2: description"}},
		{"at sign", "author: @me\nname: x\n", `{"author":"@me","name":"x"}`, []string{"2: author"}},
		{"backtick", "description: `x` does y\n", "{\"description\":\"`x` does y\"}", []string{"2: description"}},
		{"quote inside quotes", "description: 'it's here'\n", `{"description":"it's here"}`, []string{"2: description"}},
		{"quote that never closes", "description: \"oh\nname: x\n", `{"description":"oh","name":"x"}`, []string{"2: description"}},
		{"quoted word first", "description: \"This\" and that\n", `{"description":"\"This\" and that"}`, []string{"2: description"}},
		{"unknown escape", "path: \"C:\\dev\"\n", `{"path":"C:\\dev"}`, []string{"2: path"}},
		{"braces", "description: {{x}} here\n", `{"description":"{{x}} here"}`, []string{"2: description"}},
		{"no space after the colon", "name:x\ndescription:y z\n", `{"name":"x","description":"y z"}`, []string{"2: no space", "3: no space"}},
		{"tabs", "metadata:\n\trequires:\n\t\tbins: [gh]\n", `{"metadata":{"requires":{"bins":["gh"]}}}`, []string{"2: metadata is indented with tabs"}},
		{"bad value inside a map", "metadata:\n  author: a: b\n  version: \"2\"\nname: x\n", `{"metadata":{"author":"a: b","version":"2"},"name":"x"}`, []string{"3: author is not valid YAML"}},
		{"bad item of a list", "tags:\n  - a\n  - b: c: d\n  - @e\nname: x\n", `{"tags":["a","b: c: d","@e"],"name":"x"}`, []string{"4: an item", "5: an item"}},
		{"key given twice", "name: x\nname: y\n", `{"name":"x"}`, []string{`3: key "name" is given a second time`}},
		{"a line of no kind", "hello there\nname: x\nd: e: f\n", `{"name":"x","d":"e: f"}`, []string{"2: the line is not", "4: d is"}},
		{"comment", "# about\nname: x\n# more\nd: e: f\n", `{"name":"x","d":"e: f"}`, []string{"5: d is"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := "---\n" + tt.head + "---\nBody\n"
			p, mends := LoosePage([]byte(in))
			if got := metaJSON(p.Meta); got != tt.meta {
				t.Errorf("loosePage(%q) meta = %s, want %s", in, got, tt.meta)
			}
			if p.Body != "Body\n" {
				t.Errorf("loosePage(%q) body = %q", in, p.Body)
			}
			var got []string
			for _, m := range mends {
				got = append(got, fmt.Sprintf("%d: %s", m.Line, m.Message))
				if m.Fix == "" {
					t.Errorf("mend %q does not say what to do", m.Message)
				}
			}
			if len(got) != len(tt.mends) {
				t.Fatalf("loosePage(%q) mends = %q, want %q", in, got, tt.mends)
			}
			for i, want := range tt.mends {
				if !strings.HasPrefix(got[i], want) {
					t.Errorf("mend %d = %q, want %q", i, got[i], want)
				}
			}
		})
	}
}

func TestLoosePageFindsTheEnd(t *testing.T) {
	tests := []struct{ name, in, meta, Content, mend string }{
		{"never closed", "---\nname: x\n\n# Title\n\nText\n", `{"name":"x"}`, "\n# Title\n\nText\n", "2: the frontmatter is not closed"},
		{"closed too late", "---\nname: x\nd: e: f\n\nSome text.\n---\nmore\n", `{"name":"x","d":"e: f"}`, "\nSome text.\n---\nmore\n", "3: the frontmatter is not closed"},
		{"empty lines first", "\n\n---\nname: a: b\n---\nText\n", `{"name":"a: b"}`, "Text\n", "1: empty lines"},
		{"a line across the page", "---\n\nText\n\n---\nmore\n", "", "---\n\nText\n\n---\nmore\n", ""},
		{"no end and no keys", "---\nJust text.\n", "", "---\nJust text.\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, mends := LoosePage([]byte(tt.in))
			if got := metaJSON(p.Meta); got != tt.meta {
				t.Errorf("meta = %s, want %s", got, tt.meta)
			}
			if p.Body != tt.Content {
				t.Errorf("body = %q, want %q", p.Body, tt.Content)
			}
			if tt.mend == "" {
				if len(mends) > 0 {
					t.Errorf("mends = %v, want none", mends)
				}
				return
			}
			if len(mends) == 0 || !strings.HasPrefix(fmt.Sprintf("%d: %s", mends[0].Line, mends[0].Message), tt.mend) {
				t.Errorf("mends = %v, want first %q", mends, tt.mend)
			}
		})
	}
}

func TestLoosePagePassesOverWhatNobodyWrote(t *testing.T) {
	var wide strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&wide, "k%d: v\n", i)
	}
	start := time.Now()
	p, mends := LoosePage([]byte("---\n" + wide.String() + "---\nBody\n"))
	if len(mends) != 1 || !strings.Contains(mends[0].Message, "passed over") || p.Meta != nil {
		t.Errorf("loosePage of 100,000 keys = %d mends, %v, want one that says it is passed over", len(mends), p.Meta)
	}
	if p.Body != "Body\n" {
		t.Errorf("body = %q, want it all the same", p.Body)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// Whatever stands in one value, the other values and the body come through.
func TestLoosePageLosesNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOf(rapid.RuneFrom([]rune(" abc:#'\"[]{}>|*&!%@`,-?\\$~=äß漢"), unicode.Latin)).Draw(t, "value")
		if strings.TrimSpace(value) == "" {
			return
		}
		in := "---\nname: kept\ndescription: " + value + "\nlicense: MIT\n---\nBody\n"
		p, _ := LoosePage([]byte(in))
		r := yamldoc.NewReader(p.Meta)
		if r.String("name") != "kept" || r.String("license") != "MIT" || p.Body != "Body\n" {
			t.Fatalf("loosePage(%q): name %q, license %q, body %q", in, r.String("name"), r.String("license"), p.Body)
		}
	})
}

func TestLoosePageIsSplitPageForValidPages(t *testing.T) {
	word := rapid.StringMatching(`[a-z]{1,8}`)
	rapid.Check(t, func(t *rapid.T) {
		fields := rapid.MapOf(word, word).Draw(t, "fields")
		var head strings.Builder
		for k, v := range fields {
			fmt.Fprintf(&head, "%s: %q\n", k, v)
		}
		in := []byte("---\n" + head.String() + "---\n" + rapid.String().Draw(t, "body"))
		want, err := SplitPage(in, yamldoc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		got, mends := LoosePage(in)
		if len(mends) > 0 || metaJSON(got.Meta) != metaJSON(want.Meta) || got.Body != want.Body || got.BodyLine != want.BodyLine {
			t.Fatalf("loosePage(%q) = %+v, %v, want %+v", in, got, mends, want)
		}
	})
}

func TestSummaryOf(t *testing.T) {
	long := strings.Repeat("word ", 100)
	tests := []struct {
		name, in, want string
		cut            bool
	}{
		{"paragraph", "# T\n\nOne\ntwo.\n\nThree.\n", "One two.", false},
		{"comment, badge, fence, table, rule", "<!-- a\nb -->\n![x](y)\n[![x](y)](z)\n---\n```\ncode\n```\n| a | b |\n\nProse.\n", "Prose.", false},
		{"quote", "> Quoted\n> text\n", "Quoted text", false},
		{"only a heading", "#\n# The Title #\n", "The Title", false},
		{"nothing", "\n---\n", "", false},
		{"long", long, strings.TrimSpace(strings.Repeat("word ", 59)) + "…", true},
	}
	for _, tt := range tests {
		if got, cut := SummaryOf(tt.in); got != tt.want || cut != tt.cut {
			t.Errorf("%s: summaryOf = %q, %v, want %q, %v", tt.name, got, cut, tt.want, tt.cut)
		}
	}
}

func FuzzFrontmatter(f *testing.F) {
	for _, s := range []string{
		"", "---\n", "---\na: 1\n---\nb", "---\nname: x\ndescription: a: b\n---\n", "---\nmetadata:\n\tx:\n\t\t- y: z: q\n---\n",
		"\ufeff---\r\na: [\r\n---\r\n", "\n\n---\na:b\n...\n", "---\nname:x\n\n# T\ntext\n---\n", "---\na: >\nb\nc: |\n d\n---\n", "---\n- a\n- b: c: d\n---\n",
		"---\na: &a [x,x]\nb: [*a,*a]\n---\n", "---\nx: \"\n'y': '\n---",
	} {
		f.Add([]byte(s))
	}
	sourcetest.SeedAttacks(f, func(text, _ string) { f.Add([]byte("---\nname: " + text + "\n---\n" + text)) })
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 8192 {
			return
		}
		watchdog := time.AfterFunc(time.Minute, func() { panic(fmt.Sprintf("loosePage(%q) hangs", data)) })
		defer watchdog.Stop()
		lines := 2 + strings.Count(string(data), "\n")
		strict, err := SplitPage(data, yamldoc.Limits{})
		loose, mends := LoosePage(data)
		if err == nil && strict.Found && (len(mends) > 0 || metaJSON(loose.Meta) != metaJSON(strict.Meta) || loose.Body != strict.Body) {
			t.Fatalf("splitPage(%q) = %+v but loosePage = %+v, %v", data, strict, loose, mends)
		}
		for _, m := range mends {
			if m.Message == "" || m.Line < 0 || m.Line > lines {
				t.Fatalf("loosePage(%q) mend %+v of %d lines", data, m, lines)
			}
		}
		if loose.Meta != nil {
			for _, field := range loose.Meta.Fields {
				if line := loose.Line(field.Line); line < 1 || line > lines {
					t.Fatalf("loosePage(%q): %s at line %d of %d", data, field.Key, line, lines)
				}
			}
		}
	})
}
