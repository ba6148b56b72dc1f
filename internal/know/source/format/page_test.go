package format

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"ken/internal/testkit"
	"ken/internal/testkit/sourcetest"
	"ken/internal/yamldoc"
)

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

func TestLargeLoosePagePassesOverWhatNobodyWrote(t *testing.T) {
	testkit.CI(t, "100,000 keys")
	var wide strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&wide, "k%d: v\n", i)
	}
	p, mends := LoosePage([]byte("---\n" + wide.String() + "---\nBody\n"))
	if len(mends) != 1 || !strings.Contains(mends[0].Message, "passed over") || p.Meta != nil {
		t.Errorf("loosePage of 100,000 keys = %d mends, %v, want one that says it is passed over", len(mends), p.Meta)
	}
	if p.Body != "Body\n" {
		t.Errorf("body = %q, want it all the same", p.Body)
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
