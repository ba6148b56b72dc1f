package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"ken/internal/duration"
	"ken/internal/talk/event"
	"ken/internal/testkit"
)

// events reads a turn: an event as JSON on each line.
func events(t testing.TB, data []byte) []event.Event {
	t.Helper()
	var out []event.Event
	for _, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		ev, err := eventOf(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, ev)
	}
	return out
}

func eventOf(line []byte) (event.Event, error) {
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return nil, err
	}
	delete(fields, "type")
	data, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	of := map[string]func([]byte) (event.Event, error){
		"selected": decode[event.Selected], "delta": decode[event.Delta], "started": decode[event.Started], "output": decode[event.Output],
		"asked": decode[event.Asked], "answered": decode[event.Answered], "finished": decode[event.Finished], "intended": decode[event.Intended],
		"notice": decode[event.Notice], "step": decode[event.Step], "done": decode[event.Done],
	}[head.Type]
	if of == nil {
		return nil, fmt.Errorf("there is no event %q", head.Type)
	}
	return of(data)
}

func decode[E event.Event](data []byte) (event.Event, error) {
	var ev E
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(&ev)
	return ev, err
}

// TestTranscripts shows turns as they stand in the scrollback. In each archive
// the comment's last line is what was said, the file events what happened, and
// each other file how it looks at the width of its name.
func TestTranscripts(t *testing.T) {
	goldens(t, "testdata/turns/*.txtar", func(t *testing.T, a *txtar.Archive, width int, kind string) []string {
		comment := strings.Split(strings.TrimSpace(string(a.Comment)), "\n")
		got := transcript(t, comment[len(comment)-1], a.Files[0].Data, width, kind)
		for _, line := range got {
			if n := columns(line); kind == "plain" && n > width {
				t.Errorf("at %d columns %q has %d", width, line, n)
			}
		}
		return got
	})
}

// transcript returns the lines of a turn. The kind "all" has all that can be
// unfolded after it, and why.
func transcript(t testing.TB, said string, data []byte, width int, kind string) []string {
	v := view{colour: kind == "colour", now: clock()}
	v.resize(width)
	out := v.said(said)
	v.begin(said)
	for _, ev := range events(t, data) {
		v.live(20, v.now())
		out = append(out, v.event(ev)...)
	}
	out = append(out, v.settle()...)
	if kind == "all" {
		out = append(out, "== why ==")
		out = append(out, v.why()...)
		for {
			more := v.unfold()
			if more == nil {
				break
			}
			out = append(append(out, "== unfolded =="), more...)
		}
	}
	return out
}

// TestLive shows what a turn looks like while it runs.
func TestLive(t *testing.T) {
	v := view{now: clock()}
	v.resize(40)
	v.begin("x")
	v.event(event.Delta{Thought: "first I look at the repository, then at the tests"})
	check := func(rows int, want ...string) {
		t.Helper()
		got := v.live(rows, v.began)
		for i := range got {
			got[i] = strings.TrimLeft(got[i], "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ")
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("live(%d) = %q, want %q", rows, got, want)
		}
	}
	check(10, "thinking: …itory, then at the tests")
	v.event(event.Delta{Text: "It **wor"})
	check(10, "", "It **wor")
	v.event(event.Started{Call: event.Call{ID: "1", Target: "tool:a", Arguments: []byte(`{"x":1,"y":"two words"}`)}})
	v.event(event.Started{Call: event.Call{ID: "2", Target: "tool:b", Action: "go"}})
	v.event(event.Output{ID: "2", Text: "line one\nline \x1b[2Jtwo\n"})
	check(10, `a x=1 y="two words"`, "b go", "line ⟨U+001B⟩[2Jtwo")
	check(2, "b go", "line ⟨U+001B⟩[2Jtwo")
	v.event(event.Finished{ID: "1", Target: "tool:a"})
	v.event(event.Finished{ID: "2", Target: "tool:b"})
	check(10)
}

// TestLargeFlood shows that of endless output so much is kept as can be looked at,
// and that what is not kept is counted.
func TestLargeFlood(t *testing.T) {
	testkit.CI(t, "writes megabytes")
	v := view{now: clock()}
	v.resize(60)
	for i := range mostFolds + 5 {
		v.event(event.Started{Call: event.Call{ID: "1", Target: "tool:flood"}})
		for range 3 {
			v.event(event.Output{ID: "1", Text: strings.Repeat("x\n", mostKept/4)})
		}
		v.event(event.Finished{ID: "1", Target: "tool:flood"})
		if i == 0 && !strings.Contains(v.folds[0].text, "(524288 bytes more were not kept here)") {
			t.Error("what was not kept is not counted")
		}
	}
	if len(v.folds) != mostFolds {
		t.Errorf("%d outputs are kept, want %d", len(v.folds), mostFolds)
	}
}

func TestNumbers(t *testing.T) {
	if got := strings.Join([]string{count(999), count(9999), count(12345), count(2_500_000)}, " "); got != "999 9999 12k 2.5M" {
		t.Errorf("counts = %s", got)
	}
	for _, tt := range []struct{ d, want string }{{"900µs", "0.9 ms"}, {"12ms", "12 ms"}, {"1500ms", "1.5 s"}, {"125s", "2 min 5 s"}} {
		if got := duration.Text(parsed(t, tt.d)); got != tt.want {
			t.Errorf("Duration(%s) = %q, want %q", tt.d, got, tt.want)
		}
	}
	if a, b := dollars(0.00123), dollars(1.005); a != "$0.0012" || b != "$1.00" {
		t.Errorf("dollars = %s, %s", a, b)
	}
}

// BenchmarkDeltas shows an answer of 10,000 fragments, painted as often as a
// terminal would be if each came 2 ms after the one before.
func BenchmarkDeltas(b *testing.B) {
	var fragments []string
	for i := range 10_000 {
		word := "word "
		switch {
		case i%200 == 199:
			word = "end.\n\n"
		case i%1000 == 500:
			word = "\n\n```go\nx := 1\n```\n\n- "
		case i%37 == 0:
			word = "**bold** "
		}
		fragments = append(fragments, word)
	}
	b.ReportAllocs()
	for b.Loop() {
		v := view{colour: true, now: clock()}
		v.resize(100)
		v.begin("x")
		s := screen{w: discard{}, width: 101, height: 40}
		var final []string
		for i, f := range fragments {
			final = append(final, v.event(event.Delta{Text: f})...)
			if i%12 == 0 {
				s.paint(final, frame{lines: v.live(30, v.began)})
				final = nil
			}
		}
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
