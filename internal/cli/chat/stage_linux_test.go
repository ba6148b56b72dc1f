package chat

import (
	"bufio"
	"context"
	"os"
	"strconv"
	"strings"
	"testing"

	"ken/internal/testkit/terminaltest"
)

// A stage is a chat on a real terminal, with somebody who looks and types.
type stage struct {
	*terminaltest.Stage
	t        *testing.T
	dialogue *bufio.Scanner
}

// open begins a chat of so many columns and rows.
func open(t *testing.T, width, height int, cfg Config) *stage {
	t.Helper()
	if cfg.Getenv == nil {
		cfg.Getenv = func(name string) string { return map[string]string{"TERM": "xterm-256color"}[name] }
	}
	return &stage{t: t, Stage: terminaltest.Open(t, width, height, columnsOf, func(ctx context.Context, line *os.File) error {
		cfg.In, cfg.Out = line, line
		return Run(ctx, cfg)
	})}
}

// again begins another chat, with which the dialogue goes on.
func (s *stage) again(width, height int, cfg Config) *stage {
	s.t.Helper()
	next := open(s.t, width, height, cfg)
	next.dialogue = s.dialogue
	return next
}

// prompts waits until the line with the cursor is this one, up to it; an empty
// one when nothing runs any more.
func (s *stage) prompts(line string) {
	s.t.Helper()
	s.Until("the cursor after "+strconv.Quote(line), func(v *terminaltest.VT) bool {
		return v.Line() == line && v.Modes["25"] && (line != "❯ " || !strings.Contains(v.Text(), "Ctrl-C e"))
	})
}

// plays carries out the next part of the dialogue of this test, which is in
// testdata/dialogues: lines of what is typed, and of what must come of it. An empty
// line ends a part.
func (s *stage) plays() {
	s.t.Helper()
	if s.dialogue == nil {
		f, err := os.Open("testdata/dialogues/" + s.t.Name() + ".txt")
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { f.Close() })
		s.dialogue = bufio.NewScanner(f)
	}
	do := map[string]func(string){"types": s.Types, "shows": s.Shows, "hides": s.Hides, "prompts": s.prompts}
	n := 0
	for ; s.dialogue.Scan() && s.dialogue.Text() != ""; n++ {
		word, quoted, _ := strings.Cut(s.dialogue.Text(), " ")
		text, err := strconv.Unquote(quoted)
		if word == "#" {
			continue
		}
		if err != nil || do[word] == nil {
			s.t.Fatalf("what is %q? (%v)", s.dialogue.Text(), err)
		}
		do[word](text)
	}
	if n == 0 {
		s.t.Fatal("the dialogue is over")
	}
}
