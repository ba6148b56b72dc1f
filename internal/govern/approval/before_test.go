package approval_test

import (
	"fmt"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/testkit"
	"ken/internal/testkit/storetest"
)

// TestAskedAgain: a question says in what it differs from the nearest one that
// was answered before in the session.
func TestAskedAgain(t *testing.T) {
	argv := func(words string) approval.Question {
		q := about(callOf(fmt.Sprintf(`{"words":%q}`, words)))
		q.Argv = strings.Split(words, " ")
		return q
	}
	args := func(text string) approval.Question { return about(callOf(text)) }
	long := strings.Repeat("a", 500)
	tests := []struct {
		name     string
		old, new approval.Question
		want     string
	}{
		{"one argument", argv("git push --force origin main"), argv("git push --force origin prod"),
			"argument 4 differs | argument 4: main → prod"},
		{"the program", argv("git push"), argv("hg push"), "program differs | program: git → hg"},
		{"one more in the middle", argv("rm a b"), argv("rm -rf a b"), "argument 1 differs | argument 1:  → -rf"},
		{"one less at the end", argv("ls a b"), argv("ls a"), "argument 2 differs | argument 2: b → "},
		{"a secret", argv("curl --token old x"), argv("curl --token new y"),
			"argument 2, argument 3 differ | argument 2: [redacted] → [redacted] | argument 3: x → y"},
		{"a secret where now is none", argv("curl --token old"), argv("curl --verbose new"),
			"argument 1, argument 2 differ | argument 1: --token → --verbose | argument 2: [redacted] → new"},
		{"a member", args(`{"to":"a","body":{"n":[1,2]}}`), args(`{"body":{"n":[1,3]},"to":"a"}`), "/body/n/1 differs | /body/n/1: 2 → 3"},
		{"members come and go", args(`{"a/b":1,"c":2}`), args(`{"c":"2","d~":null}`),
			`/a~1b, /c, /d~0 differ | /a~1b: 1 →  | /c: 2 → "2" | /d~0:  → null`},
		{"a list grows", args(`{"to":["x"]}`), args(`{"to":["x","eve"]}`), `/to/1 differs | /to/1:  → "eve"`},
		{"a secret member", args(`{"token":"a"}`), args(`{"token":"b"}`), "/token differs | /token: [redacted] → [redacted]"},
		{"another type", args(`{"a":{"b":1}}`), args(`{"a":[1]}`), `/a differs | /a: {"b":1} → [1]`},
		{"a number's spelling", args(`{"a":1}`), args(`{"a":1.0}`), "/a differs | /a: 1 → 1.0"},
		{"far in a long text", args(`{"a":"` + long + `x"}`), args(`{"a":"` + long + `y"}`),
			`/a differs | /a: (451 characters) …` + long[:50] + `x" → (451 characters) …` + long[:50] + `y"`},
		{"the same", args(`{"a":1}`), args(` {"a":1}`), "asked again because the earlier answer was for one call only"},
	}
	for _, test := range tests {
		d, _ := fresh(t)
		first := settle(t, d, ask(t, d, test.old).ID, yes(approval.Once))
		testkit.Must(d.Consume(ctx, first.Grant))(t)
		b := ask(t, d, test.new).Before
		if b == nil || b.Ticket != first.ID || b.By != "ann" {
			t.Errorf("%s: Before = %+v, want ticket %s", test.name, b, first.ID)
			continue
		}
		got := strings.TrimPrefix(b.Reason(), "asked again because ")
		if len(b.Differences) > 0 {
			got, _, _ = strings.Cut(got, " from the call that ann granted at ")
		} else {
			got, _, _ = strings.Cut(b.Reason(), ";")
		}
		for _, one := range b.Differences {
			got += fmt.Sprintf(" | %s: %s → %s", one.Place, one.Old, one.New)
		}
		if got != test.want {
			t.Errorf("%s: %s\nwant %s", test.name, got, test.want)
		}
	}
}

// TestAskedAgainNearest: granted before denied, then the most alike, then the
// newest; what else a digest covers is told too.
func TestAskedAgainNearest(t *testing.T) {
	d, c := fresh(t)
	answer := func(args string, a approval.Answer) string {
		c.advance(1e9)
		id := settle(t, d, ask(t, d, about(callOf(args))).ID, a).ID
		return id
	}
	answer(`{"a":1,"b":1,"c":1}`, yes(approval.Once))
	answer(`{"a":1,"b":2,"c":9}`, no(approval.Once))
	older := answer(`{"a":1,"b":2,"c":8}`, yes(approval.Once))
	newer := answer(`{"a":1,"b":2,"c":7}`, yes(approval.Once))
	_ = older
	call := callOf(`{"a":1,"b":2,"c":3}`)
	call.Intent = "EXECUTE"
	got := ask(t, d, about(call))
	if got.Before == nil || got.Before.Ticket != newer {
		t.Fatalf("Before = %+v, want ticket %s", got.Before, newer)
	}
	if reason := got.Before.Reason(); !strings.HasPrefix(reason, "asked again because /c, intent differ from the call that ann granted at 2030-01-02T03:04:09Z") {
		t.Errorf("Reason = %s", reason)
	}
	var lines []string
	for _, l := range got.Lines() {
		if l.Name == "difference" || l.Name == "again" {
			lines = append(lines, l.Text)
		}
	}
	if len(lines) != 3 || lines[1] != "/c: 7 → 3" || lines[2] != "intent: (none) → EXECUTE" {
		t.Errorf("Lines = %q", lines)
	}
	other := callOf(`{"a":1}`)
	other.Session = "s2"
	if got := ask(t, d, about(other)); got.Before != nil {
		t.Errorf("another session: Before = %+v", got.Before)
	}
}

// TestAskedAgainManyPlaces: a list that is cut says by how much; without a
// redactor no value is shown.
func TestAskedAgainManyPlaces(t *testing.T) {
	d := newDesk(t, storetest.Open(t, storetest.SQLite(t)), approval.Config{})
	object := func(v string) capability.Call {
		var b strings.Builder
		for i := range 30 {
			fmt.Fprintf(&b, `,"k%02d":%q`, i, v)
		}
		return callOf("{" + b.String()[1:] + "}")
	}
	settle(t, d, ask(t, d, about(object("old"))).ID, no(approval.Once))
	b := ask(t, d, about(object("new"))).Before
	if len(b.Differences) != 20 || b.More != 10 || !strings.Contains(b.Reason(), "/k19, 10 more differ from the call that ann denied") {
		t.Errorf("Before = %d and %d more: %s", len(b.Differences), b.More, b.Reason())
	}
	if one := b.Differences[0]; one.Old != "(not shown)" || one.New != "(not shown)" {
		t.Errorf("without a redactor: %+v", one)
	}
}

// FuzzCommandLine: different arguments never look alike.
func FuzzCommandLine(f *testing.F) {
	for _, s := range []string{"", "a b", "it's", `"`, "\u202e", "\xff", "\uFFFD", "a\nb", "' '", `\'`, "a", "b"} {
		f.Add(s, "a b", "c", s)
	}
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		one, two := []string{a, b}, []string{c, d}
		same := a == c && b == d
		if x, y := approval.CommandLine(one), approval.CommandLine(two); (x == y) != same {
			t.Errorf("CommandLine(%q) = %s and CommandLine(%q) = %s", one, x, two, y)
		}
		if x, y := approval.CommandLine(one), approval.CommandLine([]string{a + " " + b}); x == y {
			t.Errorf("CommandLine of %q and of them as one = %s", one, x)
		}
		for _, r := range approval.CommandLine(one) {
			if r < ' ' || r == 0x7f || r == '\u202e' {
				t.Errorf("CommandLine(%q) shows %q", one, r)
			}
		}
	})
}
