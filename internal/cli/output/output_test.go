package output

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ken/internal/run/runner"
)

// TestTable: columns are aligned and cut on a terminal; elsewhere tabs separate
// them, and nothing is cut.
func TestTable(t *testing.T) {
	rows := func() [][]string {
		return [][]string{{"tool:a", "Does one thing\nwell"}, {"tool:longer", "\x1b[31mDoes many things and says so at length"}}
	}
	columns := []Column{{Style: Bold}, {Grow: true}}
	var plain strings.Builder
	New(&plain).Table(columns, rows())
	want := "tool:a\tDoes one thing well\ntool:longer\t⟨U+001B⟩[31mDoes many things and says so at length\n"
	if plain.String() != want {
		t.Errorf("Table in a file = %q, want %q", plain.String(), want)
	}
	var screen strings.Builder
	p := New(&screen)
	p.Terminal, p.Width = true, 34
	p.Table(columns, rows())
	want = "tool:a       Does one thing well\ntool:longer  ⟨U+001B⟩[31mDoes man…\n"
	if screen.String() != want {
		t.Errorf("Table on a terminal = %q, want %q", screen.String(), want)
	}
}

// TestStyle: only a terminal with colours has any.
func TestStyle(t *testing.T) {
	p := New(io.Discard)
	if p.Terminal || p.Colour || p.Style(Red, "x") != "x" || p.Bar(0.5) != "-" {
		t.Errorf("a file has styles: %+v", p)
	}
	p.Terminal, p.Colour = true, true
	if got := p.Style(Red, "x"); got != "\x1b[31mx\x1b[0m" || p.Style("", "x") != "x" || p.Style(Red, "") != "" {
		t.Errorf("Style = %q", got)
	}
	p.Colour = false
	for score, want := range map[float64]string{0: "░░░░░░░░░░", 0.45: "█████░░░░░", 1: "██████████", 7: "██████████"} {
		if got := p.Bar(score); got != want {
			t.Errorf("Bar(%v) = %q, want %q", score, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for _, tt := range []struct {
		n    int
		word string
		want string
	}{{0, "error", "0 errors"}, {1, "error", "1 error"}, {1, "query", "1 query"}, {2, "query", "2 queries"}} {
		if got := Plural(tt.n, tt.word); got != tt.want {
			t.Errorf("Plural(%d, %q) = %q, want %q", tt.n, tt.word, got, tt.want)
		}
	}
}

// fails fails from the second write on.
type fails struct{ writes int }

func (f *fails) Write(b []byte) (int, error) {
	if f.writes++; f.writes > 1 {
		return 0, errors.New("write " + string(b))
	}
	return len(b), nil
}

// TestErr: the first failed write is what the command reports.
func TestErr(t *testing.T) {
	p := New(&fails{})
	for _, line := range []string{"one", "two", "three"} {
		p.Linef("%s", line)
	}
	if err := p.Err(); err == nil || err.Error() != "write two\n" {
		t.Errorf("Err = %v, want that of the second line", err)
	}
}

// TestLive: output goes on as it is to a file, and without what a terminal acts
// on to a terminal; what was shown is known.
func TestLive(t *testing.T) {
	for _, clean := range []bool{false, true} {
		var out, other strings.Builder
		begun := 0
		begin := func() { begun++ }
		l := &Live{W: &out, Clean: clean, Begun: begin, Err: &Live{W: &other, Clean: clean, Begun: begin}}
		if l.Shown() || l.Unfinished() {
			t.Error("something is shown before the first output")
		}
		for _, text := range []string{"", "a\x1b[2Jb\n", "c"} {
			if n, err := l.Write([]byte(text)); n != len(text) || err != nil {
				t.Errorf("Write(%q) = %d, %v", text, n, err)
			}
		}
		want := "a\x1b[2Jb\nc"
		if clean {
			want = "a⟨U+001B⟩[2Jb\nc"
		}
		if out.String() != want || begun != 1 || !l.Shown() || l.Unfinished() != clean {
			t.Errorf("clean %v: %q, begun %d, shown %v, unfinished %v; want %q", clean, out.String(), begun, l.Shown(), l.Unfinished(), want)
		}
	}
	var silent, out strings.Builder
	l := &Live{W: &silent, Begun: func() {}, Err: &Live{W: &out, Begun: func() {}}}
	io.WriteString(l.Stderr(), "oh")
	if !l.Shown() || out.String() != "oh" {
		t.Errorf("standard error %q, shown %v", out.String(), l.Shown())
	}
	if none := (*Live)(nil); none.Shown() || none.Unfinished() {
		t.Error("no output is shown")
	}
}

// TestProgress: a call that takes long and prints nothing shows how far it is,
// and no trace of that is left.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out screen
		p := &Progress{}
		end := p.Begin(&out)
		p.Observe(runner.Transition{State: runner.Executing})
		time.Sleep(patience - time.Millisecond)
		synctest.Wait()
		if out.String() != "" {
			t.Errorf("%q is shown of a quick call", out.String())
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !strings.Contains(out.String(), " s; Ctrl-C ends it") {
			t.Errorf("%q is shown of a slow call", out.String())
		}
		end()
		if !strings.HasSuffix(out.String(), "\r\x1b[K") {
			t.Errorf("%q is left on the screen", out.String())
		}
		shown := len(out.String())
		end = p.Begin(&out)
		p.Hide() // output begins
		time.Sleep(5 * time.Second)
		synctest.Wait()
		end()
		if len(out.String()) != shown {
			t.Errorf("%q is shown over the output of a call", out.String()[shown:])
		}
	})
}

// A screen is written and read at the same time.
type screen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestWork: what takes long shows what it does, once it takes long, and until there
// is output on either stream.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var shows, file screen
		p := &Progress{}
		out := New(&file)
		out.Before = p.Hide
		end := p.Work(&shows, "Reading the catalog")
		time.Sleep(patience / 2)
		synctest.Wait()
		if got := shows.String(); got != "" {
			t.Errorf("shown at once: %q", got)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := shows.String(); !strings.Contains(got, "Reading the catalog … 2 s; Ctrl-C ends it") {
			t.Errorf("shown after two seconds: %q", got)
		}
		out.Linef("done")
		shown := shows.String()
		if !strings.HasSuffix(shown, "\r\x1b[K") {
			t.Errorf("the line is not removed before output: %q", shown)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := shows.String(); got != shown {
			t.Errorf("shown again after output: %q", got)
		}
		end()

		end = p.Work(&shows, "Starting 2 servers")
		time.Sleep(time.Second)
		synctest.Wait()
		if _, err := (Aside{W: &file, Before: p.Hide}).Write([]byte("ken: a warning\n")); err != nil {
			t.Fatal(err)
		}
		end()
		if got := strings.TrimPrefix(shows.String(), shown); !strings.Contains(got, "Starting 2 servers … ") || !strings.HasSuffix(got, "\r\x1b[K") {
			t.Errorf("the second work shows %q", got)
		}

		end = p.Work(Screen(&file), "Never shown") // standard error is no terminal
		time.Sleep(2 * time.Second)
		end()
		if got := file.String(); got != "done\nken: a warning\n" {
			t.Errorf("what is no terminal got %q", got)
		}
	})
}
