package chat

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/talk/event"
	"ken/internal/testkit/terminaltest"
	"ken/llm"
)

func TestRunTalk(t *testing.T) {
	said := make(chan string, 10)
	talk := &part{status: Status{Model: "gpt-9", Mode: "code", Session: "s1", Used: 1000, Window: 10_000, Cost: 0.5, Usage: llm.Usage{Input: 10, CachedRead: 5, CachedWrite: 2, Output: 1}}}
	talk.turn = func(ctx context.Context, text string, yield func(event.Event, error) bool) {
		said <- text
		echo(ctx, text, yield)
	}
	s := open(t, 60, 20, Config{Talker: talk, Greeting: []string{"ken chat; /help says more"}})
	s.plays()
	text := s.Ends()
	if got := []string{<-said, <-said}; got[0] != "hello wörld 世界" || got[1] != "no yes!?" {
		t.Errorf("said %q", got)
	}
	if strings.Count(text, "❯ hello") != 1 || strings.Contains(text, "gpt-9") {
		t.Errorf("the terminal keeps\n%s\nwant the conversation and no status", text)
	}
}

func TestRunManyLines(t *testing.T) {
	said := make(chan string, 10)
	talk := &part{turn: func(ctx context.Context, text string, yield func(event.Event, error) bool) {
		said <- text
		echo(ctx, "it", yield)
	}}
	s := open(t, 40, 12, Config{Talker: talk})
	s.plays()
	if got, want := <-said, "one\ntwo\nthree\nfour\nfive\nsix"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	s.plays()
	if got, want := <-said, "pasted\ny\tq[A."; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	s.prompts("❯ ")
	// A paste that is higher than the terminal shows the end, with the cursor.
	s.Types("\x1b[200~" + strings.Repeat("line\n", 50) + "last\x1b[201~")
	s.plays()
	s.Ends()
}

func TestRunHistory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "history")
	talk := &part{turn: echo}
	s := open(t, 60, 20, Config{Talker: talk, History: file})
	for _, text := range []string{"first message", " secret one", "second\x1b\rmessage"} {
		s.prompts("❯ ")
		s.Types(text + "\r")
		s.Shows("you said " + strings.TrimSpace(strings.ReplaceAll(text, "\x1b\r", " ")))
	}
	s.plays()
	s.Ends()

	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history's mode is %v, %v", info, err)
	}
	s = s.again(60, 20, Config{Talker: talk, History: file})
	s.plays()
	s.Until("the second message's first line", func(v *terminaltest.VT) bool { return strings.Contains(v.Text(), "❯ second") })
	s.plays()
	s.Ends()
}

func TestRunComplete(t *testing.T) {
	said := make(chan string, 10)
	talk := &part{offers: []string{"/compact", "/cost", "/mode", "/model"}}
	talk.command = func(_ context.Context, line string) (Output, bool, error) {
		said <- line
		switch line {
		case "/mode":
			return Output{Text: "The mode is **code**.", Fill: "go on"}, true, nil
		case "/cost":
			return Output{}, true, errBroken
		case "/model":
			return Output{Text: "bye", Quit: true}, true, nil
		}
		return Output{}, false, nil
	}
	talk.turn = echo
	s := open(t, 60, 20, Config{Talker: talk})
	s.plays()
	if text := s.Ends(); !strings.HasSuffix(text, "bye") {
		t.Errorf("it ends with\n%s\nwant what the command said last", text)
	}
	for _, want := range []string{"/mode", "/cost", "/other words", "/model"} {
		if got := <-said; got != want {
			t.Errorf("Command(%q), want %q", got, want)
		}
	}
}

// ask yields a question and waits for its answer.
func ask(p *part, yield func(event.Event, error) bool, a event.Asked) (given, bool) {
	if !yield(a, nil) {
		return given{}, false
	}
	got := <-p.replies
	return got, yield(event.Answered{ID: a.ID, Yes: got.Yes}, nil)
}

func TestRunApprove(t *testing.T) {
	talk := &part{replies: make(chan given, 1)}
	consent := event.Asked{ID: "q", What: event.Consent, Wide: true, Lines: []event.Line{{Name: "runs", Text: "rm -rf\x1b[8m /"}}, Offers: []event.Offer{
		{Scope: "once", Covers: "call", Text: "this call, once"}, {Scope: "session", Covers: "call", Text: "not offered here"},
		{Scope: "always", Covers: "call", Text: "this exact call"}, {Scope: "always", Covers: "prefix", Text: "rm *", Examples: []string{"rm x"}},
		{Scope: "session", Covers: "tool", Text: "any arguments"},
	}}
	answers := make(chan given, 10)
	talk.turn = func(_ context.Context, text string, yield func(event.Event, error) bool) {
		a := consent
		a.Wide = text != "narrow"
		got, ok := ask(talk, yield, a)
		answers <- got
		if ok {
			yield(event.Done{Reason: event.EndAnswer, Text: "done"}, nil)
		}
	}
	s := open(t, 80, 20, Config{Talker: talk})
	tests := []struct {
		text, key, shown string
		want             Answer
	}{
		{"wide", "y", "Allow it? this once", Answer{Yes: true, Scope: Once}},
		{"wide", "s", "Allow it? any arguments", Answer{Yes: true, Scope: Session, Covers: "tool"}},
		{"wide", "a", "Allow it? this exact call", Answer{Yes: true, Scope: Always, Covers: "call"}},
		{"wide", "p", "Allow it? rm * (as rm x)", Answer{Yes: true, Scope: Always, Covers: "prefix"}},
		{"wide", "n", "Allow it? no", Answer{Scope: Once}},
		{"wide", "N", "Allow it? no, and do not ask again in this session", Answer{Scope: Session}},
		{"wide", "\r", "Allow it? no", Answer{Scope: Once}},
		{"narrow", "y", "Allow it? this once", Answer{Yes: true, Scope: Once}},
	}
	for _, tt := range tests {
		s.prompts("❯ ")
		s.Types("\x0c") // a clean screen, to wait for what is new
		s.Types(tt.text + "\r")
		s.Shows("runs  rm -rf⟨U+001B⟩[8m /")
		s.Shows("Allow it? [y] this once;")
		s.Types(tt.key)
		s.Shows(tt.shown)
		if got := <-answers; got.Ask != "q" || got.Yes != tt.want.Yes || got.Scope != tt.want.Scope || got.Covers != tt.want.Covers {
			t.Errorf("%s: %q answers %+v, want %+v", tt.text, tt.key, got, tt.want)
		}
	}
	// s and a are no answers where consent cannot be wide, nor is a paste.
	s.plays()
	talk.replies <- given{} // what the test's talker waits for
	if got := <-answers; got.Yes {
		t.Errorf("an aborted question was answered: %+v", got)
	}
	s.plays()
	s.Ends()
}

// TestRunApproveMany shows that each of several questions stands right above
// its answer, and that the answer of somebody else counts.
func TestRunApproveMany(t *testing.T) {
	talk := &part{replies: make(chan given, 2)}
	talk.turn = func(_ context.Context, _ string, yield func(event.Event, error) bool) {
		for _, id := range []string{"first", "second", "third"} {
			if !yield(event.Asked{ID: id, What: event.Consent, Lines: []event.Line{{Name: "runs", Text: id}}}, nil) {
				return
			}
		}
		got := <-talk.replies
		if !yield(event.Answered{ID: got.Ask, Yes: got.Yes}, nil) || !yield(event.Answered{ID: "second", Text: "by Ann"}, nil) {
			return
		}
		got = <-talk.replies
		_ = yield(event.Delta{Text: "last was " + got.Ask}, nil) && yield(event.Done{Reason: event.EndAnswer}, nil)
	}
	s := open(t, 80, 30, Config{Talker: talk, First: "go"})
	s.Shows("Allow it? [y]")
	if text := s.Text(); !strings.Contains(text, "runs  first") || strings.Contains(text, "runs  second") {
		t.Errorf("the first question is shown as\n%s", text)
	}
	s.plays()
	s.Ends()
}

// TestRunTypedAhead shows that what is typed while a turn runs does not answer
// a question that comes up meanwhile.
func TestRunTypedAhead(t *testing.T) {
	talk := &part{replies: make(chan given, 1)}
	begin := make(chan struct{})
	answers := make(chan given, 1)
	talk.turn = func(_ context.Context, _ string, yield func(event.Event, error) bool) {
		if !yield(event.Delta{Text: "One moment."}, nil) {
			return
		}
		<-begin
		got, ok := ask(talk, yield, event.Asked{ID: "q", What: event.Consent})
		answers <- got
		if ok {
			yield(event.Done{Reason: event.EndAnswer}, nil)
		}
	}
	s := open(t, 80, 20, Config{Talker: talk})
	s.plays()
	close(begin)
	s.plays()
	if got := <-answers; got.Yes {
		t.Error("what was typed ahead gave consent")
	}
	s.plays()
	s.Ends()
}

func TestRunQuestions(t *testing.T) {
	talk := &part{replies: make(chan given, 1)}
	answers := make(chan given, 10)
	form := map[string]json.RawMessage{"f": json.RawMessage(`{"method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"required":["age"],"properties":{"age":{"type":"integer"},"name":{"type":"string","title":"Your name"}}}}}`)}
	talk.turn = func(_ context.Context, _ string, yield func(event.Event, error) bool) {
		for _, a := range []event.Asked{
			{ID: "1", What: event.Ask, Text: "Which one?", Choice: []string{"red", "blue"}},
			{ID: "2", What: event.Ask, Text: "And why?"},
			{ID: "3", What: event.Again, Text: "Nobody knows."},
			{ID: "4", What: event.GoOn, Text: "25 steps."},
			{ID: "5", What: event.Inquiry, Requests: form},
			{ID: "6", What: event.Inquiry, Requests: map[string]json.RawMessage{"u": json.RawMessage(`{"method":"elicitation/create","params":{"message":"Look","url":"https://example.com"}}`)}},
		} {
			got, ok := ask(talk, yield, a)
			answers <- got
			if !ok {
				return
			}
		}
		yield(event.Done{Reason: event.EndAnswer, Text: "That is all."}, nil)
	}
	s := open(t, 70, 24, Config{Talker: talk})
	s.plays()
	expect := func(want string) {
		t.Helper()
		raw, err := json.Marshal(<-answers)
		if err != nil || string(raw) != want {
			t.Errorf("answer %s, want %s (%v)", raw, want, err)
		}
	}
	expect(`{"Ask":"1","Yes":true,"Scope":"","Covers":"","Text":"blue","Answers":null}`)
	s.plays()
	expect(`{"Ask":"2","Yes":false,"Scope":"","Covers":"","Text":"","Answers":null}`)
	s.plays()
	expect(`{"Ask":"3","Yes":true,"Scope":"","Covers":"","Text":"","Answers":null}`)
	s.plays()
	expect(`{"Ask":"4","Yes":false,"Scope":"","Covers":"","Text":"","Answers":null}`)
	s.plays()
	s.Types("\x15" + "42\r")
	s.plays()
	expect(`{"Ask":"5","Yes":true,"Scope":"","Covers":"","Text":"","Answers":{"f":{"action":"accept","content":{"age":42,"name":"Ann"}}}}`)
	s.plays()
	expect(`{"Ask":"6","Yes":false,"Scope":"","Covers":"","Text":"","Answers":{"u":{"action":"decline"}}}`)
	s.plays()
	s.Ends()
}

func TestRunAbort(t *testing.T) {
	talk := &part{}
	began := make(chan struct{}, 1)
	talk.turn = func(ctx context.Context, text string, yield func(event.Event, error) bool) {
		if !yield(event.Delta{Text: "It **begins"}, nil) || !yield(event.Started{Call: event.Call{ID: "1", Target: "tool:slow"}}, nil) {
			return
		}
		began <- struct{}{}
		<-ctx.Done()
		if text == "error" {
			yield(nil, ctx.Err())
			return
		}
		yield(event.Done{Reason: event.EndAborted}, nil)
	}
	talk.command = func(ctx context.Context, line string) (Output, bool, error) {
		<-ctx.Done()
		return Output{Text: "stopped"}, true, nil
	}
	s := open(t, 40, 10, Config{Talker: talk, Now: clock()})
	for _, text := range []string{"done", "error"} {
		s.prompts("❯ ")
		s.Types(text + "\r")
		<-began
		s.Until("a spinner", func(v *terminaltest.VT) bool { return strings.Contains(v.Text(), " slow") })
		s.Shows("Ctrl-C ends it")
		s.Types("\x03")
		s.Shows("  aborted")
		s.prompts("❯ ")
		s.Hides(" slow")
		s.Types("\x0c")
	}
	s.plays()
	<-began
	s.Stop()
	if err := <-s.Ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run() = %v, want that it was cancelled", err)
	}
	s.Ended <- nil
	if text := s.Ends(); !strings.Contains(text, "aborted") {
		t.Errorf("it leaves\n%s\nwant the end of the turn", text)
	}
}

// TestRunWaiting shows a turn that ends until somebody answers, and goes on.
func TestRunWaiting(t *testing.T) {
	talk := &part{replies: make(chan given, 2), refuse: errBroken}
	talk.turn = func(_ context.Context, text string, yield func(event.Event, error) bool) {
		if text != "" {
			_ = yield(event.Asked{ID: "1", What: event.Consent, Ticket: "t1"}, nil) && yield(event.Done{Reason: event.EndWaiting, Why: "somebody must answer"}, nil)
			return
		}
		_ = yield(event.Delta{Text: "It went on."}, nil) && yield(event.Done{Reason: event.EndAnswer}, nil)
	}
	s := open(t, 60, 20, Config{Talker: talk, First: "begin"})
	s.plays()
	if got := <-talk.replies; got.Ask != "1" || !got.Yes {
		t.Errorf("answer %+v", got)
	}
	s.Types("\x04")
	s.Ends()
	// Where a turn was left open, a chat may begin by going on.
	s = s.again(60, 20, Config{Talker: talk, GoOn: true})
	s.plays()
	s.Ends()
}

// TestRunResize shows that nothing of the scrollback is lost or painted twice
// when the terminal changes while an answer comes.
func TestRunResize(t *testing.T) {
	next := make(chan string)
	talk := &part{turn: func(_ context.Context, _ string, yield func(event.Event, error) bool) {
		for text := range next {
			if !yield(event.Delta{Text: text}, nil) {
				return
			}
		}
		yield(event.Done{Reason: event.EndAnswer}, nil)
	}}
	s := open(t, 60, 12, Config{Talker: talk})
	s.plays()
	next <- "First paragraph.\n\nThe second paragraph is not over yet and it is rather"
	s.plays()
	s.Until("the draft", func(v *terminaltest.VT) bool { return v.Line() == "❯ draft" })
	for _, width := range []int{30, 16, 90, 20, 60} {
		s.Resize(width, 12)
		s.Types("!")
		s.Until("the draft again", func(v *terminaltest.VT) bool { return strings.HasSuffix(strings.TrimSpace(v.Line()), "!") })
		s.Types("\x7f")
		s.prompts("❯ draft")
	}
	next <- " long.\n\nThird.\n"
	close(next)
	s.plays()
	text := s.Ends()
	for _, want := range []string{"❯ tell me", "First paragraph.", "The second paragraph is not over yet and it is rather long.", "Third."} {
		if strings.Count(strings.ReplaceAll(text, "\n", " "), want) != 1 {
			t.Errorf("%q stands %d times in\n%s", want, strings.Count(text, want), text)
		}
	}
}

// TestRunNarrow shows a terminal too small for anything.
func TestRunNarrow(t *testing.T) {
	talk := &part{turn: echo, offers: []string{"/help"}, status: Status{Model: "a-model-with-a-long-name"}}
	s := open(t, 12, 4, Config{Talker: talk})
	s.plays()
	s.Ends()
}

func TestRunFold(t *testing.T) {
	talk := &part{turn: func(_ context.Context, _ string, yield func(event.Event, error) bool) {
		for _, ev := range []event.Event{
			event.Started{Call: event.Call{ID: "1", Target: "tool:list"}},
			event.Output{ID: "1", Text: "entry-1\nentry-2\nentry-3\nentry-4\nentry-5\nentry-6\n"},
			event.Finished{ID: "1", Target: "tool:list"},
			event.Done{Reason: event.EndAnswer},
		} {
			if !yield(ev, nil) {
				return
			}
		}
	}}
	s := open(t, 60, 20, Config{Talker: talk})
	s.plays()
	if strings.Contains(s.Text(), "entry-1") {
		t.Errorf("it is not folded:\n%s", s.Text())
	}
	s.plays()
	s.Ends()
}

func TestRunPlain(t *testing.T) {
	talk := &part{replies: make(chan given, 1)}
	talk.turn = func(ctx context.Context, text string, yield func(event.Event, error) bool) {
		if text == "ask" {
			if got, ok := ask(talk, yield, event.Asked{ID: "1", What: event.Consent, Text: "May it?"}); !ok || !got.Yes {
				yield(event.Done{Reason: event.EndFailed, Why: "no consent"}, nil)
				return
			}
		}
		echo(ctx, text, yield)
	}
	dumb := func(name string) string { return map[string]string{"TERM": "dumb"}[name] }
	s := open(t, 50, 20, Config{Talker: talk, Getenv: dumb, Greeting: []string{"hello"}})
	s.plays()
	s.Until("the end", func(*terminaltest.VT) bool { return true })
	if err := <-s.Ended; err != nil {
		t.Errorf("Run() = %v", err)
	}
	s.Ended <- nil
	s.Until("no modes, as it is dumb", func(v *terminaltest.VT) bool { return len(v.Modes) == 0 })

	// What is no terminal gives no consent.
	in, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("ask\ny\nlast"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	err = Run(t.Context(), Config{Talker: talk, In: in, Out: out})
	in.Close()
	out.Close()
	got, rerr := os.ReadFile(out.Name())
	if err != nil || rerr != nil || !strings.Contains(string(got), "failed: no consent") || !strings.Contains(string(got), "you said y\n") || !strings.Contains(string(got), "you said last") {
		t.Errorf("Run() = %v, %v and prints\n%s", err, rerr, got)
	}
}

// TestRunStuck shows that a person can leave a turn that does not end.
func TestRunStuck(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	began := make(chan struct{})
	talk := &part{turn: func(_ context.Context, _ string, yield func(event.Event, error) bool) {
		close(began)
		<-release
		if yield(event.Delta{Text: "too late"}, nil) {
			t.Error("somebody takes what nobody waited for")
		}
	}}
	s := open(t, 80, 10, Config{Talker: talk})
	s.plays()
	<-began
	s.plays()
	for _, hint := range []string{"ending it", "Ctrl-C once more leaves without waiting"} {
		s.Types("\x03")
		s.Shows(hint)
	}
	s.Types("\x03")
	s.Ends()
}

// TestRunUnanswered shows that a turn that waits can be left waiting.
func TestRunUnanswered(t *testing.T) {
	talk := &part{turn: func(_ context.Context, _ string, yield func(event.Event, error) bool) {
		_ = yield(event.Asked{ID: "1", What: event.Escalate}, nil) && yield(event.Done{Reason: event.EndWaiting}, nil)
	}}
	s := open(t, 80, 10, Config{Talker: talk, First: "go"})
	s.plays()
	s.Ends()
}

func TestRunSearch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "history")
	if err := os.WriteFile(file, []byte("\"one apple\"\nbroken\n\"two apples\"\n\"pear\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, 60, 10, Config{Talker: &part{turn: echo}, History: file})
	s.plays()
	s.Ends()
}

// TestRunPlainForm fills in a form on a dumb terminal.
func TestRunPlainForm(t *testing.T) {
	talk := &part{replies: make(chan given, 1)}
	var got given
	talk.turn = func(_ context.Context, _ string, yield func(event.Event, error) bool) {
		got, _ = ask(talk, yield, event.Asked{ID: "1", What: event.Inquiry, Requests: map[string]json.RawMessage{"f": json.RawMessage(`{"method":"elicitation/create","params":{"message":"How many?","requestedSchema":{"required":["n"],"properties":{"n":{"type":"integer"}}}}}`)}})
		yield(event.Done{Reason: event.EndAnswer, Text: "thanks"}, nil)
	}
	s := open(t, 60, 20, Config{Talker: talk, First: "go", Getenv: func(string) string { return "dumb" }})
	s.plays()
	if err := <-s.Ended; err != nil {
		t.Errorf("Run() = %v", err)
	}
	s.Ended <- nil
	if string(got.Answers["f"]) != `{"action":"accept","content":{"n":3}}` {
		t.Errorf("answers %s", got.Answers)
	}
}

// TestRunGoOn: a command may go on with a turn that is open, once.
func TestRunGoOn(t *testing.T) {
	for name, env := range map[string]string{"screen": "xterm", "plain": "dumb"} {
		t.Run(name, func(t *testing.T) {
			said := make(chan string, 10)
			talk := &part{
				command: func(context.Context, string) (Output, bool, error) {
					return Output{Text: "Going on with s2", GoOn: true}, true, nil
				},
				turn: func(ctx context.Context, text string, yield func(event.Event, error) bool) {
					said <- text
					echo(ctx, "the rest", yield)
				},
			}
			s := open(t, 60, 20, Config{Talker: talk, Getenv: func(string) string { return env }})
			s.Until("the prompt", func(v *terminaltest.VT) bool { return strings.ContainsAny(v.Text(), "❯>") })
			s.Types("/resume s2\r")
			s.Shows("Going on with s2")
			s.Shows("you said the rest")
			s.Types("\x04")
			if err := <-s.Ended; err != nil {
				t.Errorf("Run() = %v", err)
			}
			s.Ended <- nil
			if got := <-said; got != "" || len(said) > 0 {
				t.Errorf("said %q and %d more, want to go on once", got, len(said))
			}
		})
	}
}

// TestRunFound: Ctrl-O shows what was found where nothing newer is folded.
func TestRunFound(t *testing.T) {
	talk := &part{turn: func(_ context.Context, _ string, yield func(event.Event, error) bool) {
		var found door.Found
		found.Indexed, found.Briefs = 9, []door.Piece{{ID: "tool:tide", Score: 0.8, Why: []string{"matches harbour"}}}
		_ = yield(event.Selected{Found: found, Added: []capability.ID{"tool:tide"}, Tokens: 49}, nil) && yield(event.Done{Reason: event.EndAnswer}, nil)
	}}
	s := open(t, 60, 20, Config{Talker: talk})
	s.plays()
	s.Ends()
}

// TestRunPaste: what is left out of a paste is told, and stays told.
func TestRunPaste(t *testing.T) {
	c := &chat{talk: &part{}, view: view{now: clock()}, past: &history{}}
	c.view.resize(200)
	c.key(t.Context(), key{name: "paste", text: "abc", lost: 7})
	if got := strings.Join(c.final, "\n"); !strings.Contains(got, "more than 16 MB; the last 7 bytes of it were left out") || c.editor.text != "abc" {
		t.Errorf("the line is %q and it says %q", c.editor.text, got)
	}
}
